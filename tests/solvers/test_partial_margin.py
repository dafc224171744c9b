"""The margin loss with targets against a general convex solver, liblinear, and the definition."""

import cvxpy
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.svm import LinearSVC

from skpll.solvers._margin_kernels import _solve_block
from skpll.solvers.partial_margin import PartialMarginLoss, fit_partial_margin, partial_margin_loss


def fit(X, indptr, indices, targets, C, q, **options):
    loss = PartialMarginLoss(indptr, indices, targets, np.full(X.shape[0], C))
    return fit_partial_margin(X, loss, q, **options)


def make_problem(seed, n=14, d=3, q=4, single=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    M = rng.random((n, q)) < 0.35
    M[np.arange(n), rng.integers(0, q, n)] = True
    M[0] = True
    targets = np.where(M, rng.exponential(size=M.shape), 0)
    if single:
        targets = (targets == targets.max(axis=1, keepdims=True)).astype(float)
    targets /= targets.sum(axis=1, keepdims=True)
    pattern = sparse.csr_array(M)
    return X, M, targets, pattern.indptr, pattern.indices, rng.uniform(0.1, 2, n)


def loss_of(scores, M, targets, C):
    rival = np.where(M, -np.inf, scores).max(axis=1)
    return float((C * np.maximum(0, 1 - (targets * scores).sum(axis=1) + rival)).sum())


def optimum(X, M, targets, C, unit=1.0):
    """Solve it in weights that are `unit` times as large, and an objective of its square."""
    W = cvxpy.Variable((M.shape[1], X.shape[1] + 1))
    C = unit**2 * C
    scores = np.column_stack([X, np.ones(len(X))]) / unit @ W.T
    own = cvxpy.sum(cvxpy.multiply(scores, targets), axis=1)
    losses = [
        C[i] * cvxpy.pos(1 - own[i] + cvxpy.max(scores[i, np.flatnonzero(~M[i])]))
        for i in range(len(X))
        if not M[i].all()
    ]
    problem = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(W) + sum(losses)))
    return problem.solve(solver="CLARABEL") / unit**2


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_the_optimum_is_that_of_a_general_solver(seed, single, layout):
    X, M, targets, indptr, indices, C = make_problem(seed, single=single)
    solution = fit(layout(X), indptr, indices, targets[M], C, 4, tol=1e-10)
    assert solution.converged
    assert solution.objective == pytest.approx(optimum(X, M, targets, C), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("d", [3, 20])  # what no model fits, and what one fits without a loss
@pytest.mark.parametrize("seed", range(3))
def test_weights_far_too_large_for_the_features(seed, d, single):
    X, M, targets, indptr, indices, C = make_problem(seed, d=d, single=single)
    X *= 200
    solution = fit(X, indptr, indices, targets[M], C, 4, tol=1e-7)
    assert solution.converged
    assert solution.objective == pytest.approx(optimum(X, M, targets, C, 200), rel=1e-6)
    assert (np.maximum(solution.slopes, 0).sum(axis=1).max() < 0.01) == (d == 20)


@pytest.mark.parametrize("single", [True, False])
def test_the_solution_for_other_targets_and_weights_is_a_start(single):
    X, M, targets, indptr, indices, C = make_problem(2, n=40, single=single)
    _, _, _, _, _, other = make_problem(3, n=40)
    even = (M / M.sum(axis=1, keepdims=True))[M]
    start = fit(X, indptr, indices, even, 5 * other, 4, tol=1e-3)
    problem = (X, indptr, indices, targets[M], C, 4)
    warm = fit(*problem, state=start, tol=1e-9)
    cold = fit(*problem, tol=1e-9)
    np.testing.assert_allclose(warm.coef, cold.coef, atol=1e-4)
    assert fit(*problem, state=cold, tol=1e-9).n_iter == 0


# scikit-learn 1.6 does not set the number of iterations here, and warns by chance.
@pytest.mark.filterwarnings("ignore:Liblinear failed to converge")
def test_on_plain_labels_it_is_the_machine_of_crammer_and_singer():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 60)
    X = rng.normal(size=(60, 5)) + rng.normal(size=(4, 5))[y]
    solution = fit(X, np.arange(61), y, np.ones(60), 0.3, 4, tol=1e-9)
    reference = LinearSVC(multi_class="crammer_singer", C=0.3, tol=1e-8, max_iter=10**6).fit(X, y)
    np.testing.assert_allclose(solution.coef, reference.coef_, atol=1e-4)
    np.testing.assert_allclose(solution.intercept, reference.intercept_, atol=1e-4)


@given(seed=st.integers(0, 10**6), scale=st.floats(0.01, 30), single=st.booleans())
def test_objective_and_gap_are_what_they_say(seed, scale, single):
    X, M, targets, indptr, indices, C = make_problem(seed, single=single)
    C = scale * C
    solution = fit(X, indptr, indices, targets[M], C, 4, tol=1e-7)
    scores = X @ solution.coef.T + solution.intercept
    norm = (solution.coef**2).sum() + (solution.intercept**2).sum()
    assert solution.objective == pytest.approx(0.5 * norm + loss_of(scores, M, targets, C))
    u = np.where(M, 0, solution.slopes)
    totals = u.sum(axis=1)
    assert u.min() >= 0
    assert (totals <= C * (1 + 1e-9)).all()
    np.testing.assert_allclose(
        np.where(M, solution.slopes, 0), -totals[:, None] * targets, atol=1e-12
    )
    W = solution.slopes.T @ np.column_stack([X, np.ones(len(X))])
    dual = u.sum() - 0.5 * (W**2).sum()
    assert solution.objective - dual == pytest.approx(solution.gap, abs=1e-9 * solution.objective)
    assert solution.gap <= 1e-7 * solution.objective


@given(seed=st.integers(0, 10**6), sharpness=st.floats(0.05, 20))
def test_slopes_maximize_the_problem_of_the_envelope(seed, sharpness):
    """No random feasible point is better, and the step ahead is the one that `bend` predicts."""
    X, M, targets, indptr, indices, C = make_problem(seed)
    rng = np.random.default_rng(seed + 1)
    problem = PartialMarginLoss(indptr, indices, targets[M], C)
    scores, change = rng.normal(size=(2, *M.shape))
    old = np.where(M, 0, rng.random(M.shape)) * C[:, None] / 4
    multipliers = old - old.sum(axis=1, keepdims=True) * targets
    slopes = np.empty_like(scores)
    problem.respond(scores, multipliers, sharpness, slopes)
    gains = sharpness * C[:, None]

    def value(u):
        g = u - u.sum(axis=1, keepdims=True) * targets
        z = scores + multipliers / gains
        return u.sum(axis=1) + (g * z).sum(axis=1) - (g**2 / (2 * gains)).sum(axis=1)

    best = value(np.where(M, 0, slopes))
    for _ in range(20):
        other = np.where(M, 0, rng.exponential(size=M.shape) * (rng.random(M.shape) < 0.6))
        total = np.maximum(other.sum(axis=1, keepdims=True), 1e-300)
        other *= np.minimum(1, C[:, None] / total)
        assert (value(other) <= best + 1e-9).all()
    step = 1e-8
    moved = np.empty_like(scores)
    problem.respond(scores + step * change, multipliers, sharpness, moved)
    rows, bend = problem.curvature(slopes, sharpness)
    bent = change[rows].copy()
    bend(bent)
    full = np.zeros_like(change)
    full[rows] = bent
    np.testing.assert_allclose((moved - slopes) / step, full, atol=1e-4 * (1 + sharpness))


@pytest.mark.parametrize("single", [True, False])
def test_examples_without_a_rival_take_no_part(single):
    X, M, targets, indptr, indices, C = make_problem(3, single=single)
    solution = fit(X, indptr, indices, targets[M], C, 4, tol=1e-10)
    rest = sparse.csr_array(M[1:])
    without = fit(X[1:], rest.indptr, rest.indices, targets[1:][M[1:]], C[1:], 4, tol=1e-10)
    assert M[0].all()
    np.testing.assert_allclose(solution.coef, without.coef, atol=1e-5)
    assert (solution.slopes[0] == 0).all()


def test_targets_on_the_best_candidate_touch_the_loss_from_above():
    X, M, targets, indptr, indices, C = make_problem(4)
    scores = np.random.default_rng(0).normal(size=M.shape)
    best = np.where(M, scores, -np.inf)
    touching = best == best.max(axis=1, keepdims=True)
    loss = partial_margin_loss(scores, indptr, indices, C)
    assert loss == pytest.approx(loss_of(scores, M, touching, C))
    assert loss <= loss_of(scores, M, targets, C)


def test_a_pull_as_large_as_the_threshold_does_not_go_round_in_circles():
    pulls = np.array(
        [0.0009217409464577692, 0.010280756673136967, 0.022812725219778573, -0.008, 0.0004]
    )
    width = 1 / 32  # with the first of them the threshold rises above it by rounding alone
    for shift in np.linspace(0.0, 0.1, 300):
        found = np.empty(len(pulls))
        own = shift - 0.14285714285714288
        _solve_block.py_func(pulls + shift, len(pulls), own, 1.0, width, 1.0, found)
        assert found.sum() == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("spread", [1.0, 0.3])
@given(seed=st.integers(0, 10**6), q=st.integers(1, 6))
def test_a_block_is_solved_exactly(seed, q, spread):
    rng = np.random.default_rng(seed)
    pulls, own, norm, C = rng.normal(size=q), rng.normal(), rng.uniform(0.1, 2), rng.uniform(0.1, 2)
    u = np.empty(q)
    _solve_block.py_func(pulls.copy(), q, own, spread, norm, C, u)
    assert u.min() >= 0
    assert u.sum() <= C * (1 + 1e-12)
    gains = pulls - own - norm * (u + spread * u.sum())
    free = max(gains.max(), 0.0) if u.sum() > C * (1 - 1e-12) else 0.0
    np.testing.assert_allclose(gains[u > 0], free, atol=1e-9)
    assert gains.max() <= free + 1e-9
