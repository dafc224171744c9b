"""The convex partial-label loss against a general convex solver and finite differences."""

import cvxpy
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from skpll.solvers import dual_newton
from skpll.solvers.dual_newton import ConvexPartialLoss, minimize_linear

LOSSES = ["squared_hinge", "hinge"]


def fit_convex_partial(
    X, indptr, indices, C, q, *, loss="squared_hinge", candidate_weight=1.0, **options
):
    C = np.full(X.shape[0], C)
    squared = loss == "squared_hinge"
    problem = ConvexPartialLoss(indptr, indices, candidate_weight * C, C, q, squared)
    return minimize_linear(X, problem, q, **options)


def make_problem(seed, n=14, d=3, q=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    M = rng.random((n, q)) < 0.4
    M[np.arange(n), rng.integers(0, q, n)] = True
    M[0] = True
    pattern = sparse.csr_array(M)
    return X, M, pattern.indptr, pattern.indices, rng.uniform(0.1, 2, n)


def loss_of(scores, M, C, loss, candidate_weight=1):
    power = 2 if loss == "squared_hinge" else 1
    mean = (scores * M).sum(axis=1) / M.sum(axis=1)
    own = np.maximum(0, 1 - mean) ** power
    others = (np.maximum(0, 1 + scores) ** power * ~M).sum(axis=1)
    return float((C * (candidate_weight * own + others)).sum())


def optimum(X, M, C, loss, fit_intercept, candidate_weight=1):
    W = cvxpy.Variable((M.shape[1], X.shape[1]))
    b = cvxpy.Variable(M.shape[1]) if fit_intercept else np.zeros(M.shape[1])
    scores = X @ W.T + np.ones((len(X), 1)) @ cvxpy.reshape(b, (1, M.shape[1]), order="C")
    power = cvxpy.square if loss == "squared_hinge" else (lambda z: z)
    mean = cvxpy.sum(cvxpy.multiply(scores, M / M.sum(axis=1, keepdims=True)), axis=1)
    own = power(cvxpy.pos(1 - mean))
    others = cvxpy.sum(cvxpy.multiply(~M, power(cvxpy.pos(1 + scores))), axis=1)
    objective = 0.5 * (cvxpy.sum_squares(W) + cvxpy.sum_squares(b)) + C @ (
        candidate_weight * own + others
    )
    return cvxpy.Problem(cvxpy.Minimize(objective)).solve(solver="CLARABEL")


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(4))
def test_the_optimum_is_that_of_a_general_solver(seed, loss, fit_intercept):
    X, M, indptr, indices, C = make_problem(seed)
    solution = fit_convex_partial(
        X, indptr, indices, C, 4, loss=loss, fit_intercept=fit_intercept, tol=1e-10
    )
    assert solution.converged
    assert solution.objective == pytest.approx(
        optimum(X, M, C, loss, fit_intercept), rel=1e-6, abs=1e-6
    )


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_preconditioned_systems_have_the_same_optimum(loss, fit_intercept, monkeypatch):
    monkeypatch.setattr(dual_newton, "MAX_UNSOLVED", 0)
    X, M, indptr, indices, C = make_problem(5)
    solution = fit_convex_partial(
        X, indptr, indices, C, 4, loss=loss, fit_intercept=fit_intercept, tol=1e-10
    )
    assert solution.converged
    assert solution.objective == pytest.approx(
        optimum(X, M, C, loss, fit_intercept), rel=1e-6, abs=1e-6
    )


def test_features_as_they_come(monkeypatch):
    """Of columns ten thousand times larger than others few systems are solved without blocks."""
    X, M, indptr, indices, C = make_problem(6, n=150, d=50, q=3)
    X = np.cumsum(X, axis=1) * np.logspace(0, 4, 50)
    problem = (X, indptr, indices, C, 3)
    solution = fit_convex_partial(*problem)
    assert solution.converged
    scores = X @ solution.coef.T + solution.intercept
    norm = (solution.coef**2).sum() + (solution.intercept**2).sum()
    assert solution.objective == pytest.approx(0.5 * norm + loss_of(scores, M, C, "squared_hinge"))
    monkeypatch.setattr(dual_newton, "MAX_FACTORED", 0)
    assert not fit_convex_partial(*problem, max_iter=2 * solution.n_iter).converged


@pytest.mark.parametrize("loss", LOSSES)
def test_weight_of_the_candidates(loss):
    X, M, indptr, indices, C = make_problem(1)
    weight = 3.0
    solution = fit_convex_partial(
        X, indptr, indices, C, 4, loss=loss, candidate_weight=weight, tol=1e-10
    )
    expected = optimum(X, M, C, loss, True, weight)
    assert solution.objective == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@given(seed=st.integers(0, 10**6), scale=st.floats(0.01, 30))
def test_objective_and_gap_are_what_they_say(loss, seed, scale):
    X, M, indptr, indices, C = make_problem(seed)
    C = scale * C
    solution = fit_convex_partial(X, indptr, indices, C, 4, loss=loss, tol=1e-7)
    scores = X @ solution.coef.T + solution.intercept
    norm = (solution.coef**2).sum() + (solution.intercept**2).sum()
    assert solution.objective == pytest.approx(0.5 * norm + loss_of(scores, M, C, loss))
    # The dual objective, from its definition.
    u_own = -solution.slopes[np.arange(len(X)), M.argmax(axis=1)] * M.sum(axis=1)
    u_others = solution.slopes[~M]
    u = np.concatenate([u_own, u_others])
    bound = np.concatenate([C, np.repeat(C, (~M).sum(axis=1))])
    assert u.min() >= 0
    W = solution.slopes.T @ np.column_stack([X, np.ones(len(X))])
    dual = u.sum() - 0.5 * (W**2).sum()
    if loss == "squared_hinge":
        dual -= (u**2 / (4 * bound)).sum()
    else:
        assert (u <= bound * (1 + 1e-12)).all()
    assert solution.objective - dual == pytest.approx(solution.gap, abs=1e-9 * solution.objective)
    assert solution.gap <= 1e-7 * solution.objective


@pytest.mark.parametrize("loss", LOSSES)
def test_slopes_and_their_changes_against_finite_differences(loss):
    X, M, indptr, indices, C = make_problem(5)
    rng = np.random.default_rng(0)
    problem = ConvexPartialLoss(indptr, indices, 3 * C, C, 4, loss == "squared_hinge")
    scores, change = rng.normal(size=(2, *M.shape))
    multipliers = np.where(M, -0.3 * C[:, None] / M.sum(axis=1, keepdims=True), 0.2 * C[:, None])
    slopes, moved = np.empty_like(scores), np.empty_like(scores)
    problem.respond(scores, multipliers, 0.7, slopes)
    step = 1e-7
    problem.respond(scores + step * change, multipliers, 0.7, moved)
    rows, bend = problem.curvature(slopes, 0.7)
    bent = change[rows].copy()
    bend(bent)
    expected = (moved - slopes) / step
    np.testing.assert_allclose(bent, expected[rows], atol=1e-5)
    flat = np.setdiff1d(np.arange(len(X)), rows)
    np.testing.assert_allclose(expected[flat], 0, atol=1e-12)
    if loss == "squared_hinge":
        ahead, behind = (loss_of(scores + t * change, M, C, loss, 3) for t in (1e-6, -1e-6))
        assert (slopes * change).sum() == pytest.approx((ahead - behind) / 2e-6, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_sparse_features_and_weights_as_copies(loss):
    X, M, indptr, indices, _ = make_problem(7)
    X[np.abs(X) < 0.5] = 0
    copies = 1 + np.arange(len(X)) % 3
    solution = fit_convex_partial(
        sparse.csr_array(X), indptr, indices, 0.5 * copies, 4, loss=loss, tol=1e-12
    )
    repeated = sparse.csr_array(np.repeat(M, copies, axis=0))
    again = fit_convex_partial(
        np.repeat(X, copies, axis=0),
        repeated.indptr,
        repeated.indices,
        0.5,
        4,
        loss=loss,
        tol=1e-12,
    )
    np.testing.assert_allclose(solution.coef, again.coef, atol=1e-5)
    assert solution.objective == pytest.approx(again.objective, rel=1e-10)
