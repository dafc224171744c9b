"""The maximum-margin solver against liblinear, a general solver, and its own certificate."""

import copy
import warnings
from dataclasses import fields

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from skpll.solvers import fit_crammer_singer, margins

TIGHT = 1e-9


def make_problem(n=120, d=6, q=4, *, separation=1.0, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % q
    X = rng.normal(size=(n, d)) + separation * rng.normal(size=(q, d))[y]
    return X, y


def primal(X, y, C, coef, intercept, *, scaling=1.0):
    """Objective of the problem, written out."""
    rows = np.arange(len(y))
    scores = np.asarray(X @ coef.T) + intercept
    own = scores[rows, y]
    scores[rows, y] = -np.inf
    hinge = np.maximum(0.0, 1.0 + scores.max(axis=1, initial=-np.inf) - own)
    return 0.5 * (coef**2).sum() + 0.5 * ((intercept / scaling) ** 2).sum() + (C * hinge).sum()


def dual_matrix(model):
    """Dual variables as a dense matrix, one row for each example."""
    parts = (model.dual_values, model.dual_classes, model.dual_indptr)
    return sp.csr_array(parts, shape=(len(model.y), len(model.coef))).toarray()


def assert_certified(X, y, C, model, *, scaling=1.0, fit_intercept=True, tol=TIGHT):
    """Check with plain NumPy that `model` is feasible and its duality gap as small as it says."""
    C = np.broadcast_to(np.asarray(C, dtype=float), len(y))
    X = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=float)
    u = dual_matrix(model)
    sums = u.sum(axis=1)
    assert (model.dual_values > 0).all()
    assert (u[np.arange(len(y)), y] == 0).all()
    assert (sums <= C * (1 + 1e-12)).all()

    signed = -u
    signed[np.arange(len(y)), y] = sums
    coef = signed.T @ X
    bias = scaling * signed.sum(axis=0) if fit_intercept else np.zeros(len(coef))
    # The solution is a multiple of the weights of the dual variables. What cancels in the sums
    # leaves rounding errors of the size of the terms.
    size = 1e-12 * max(1.0, scaling) * (sums @ np.abs(X).max(axis=1, initial=1.0)) + 1e-300
    weights, found = np.column_stack([coef, bias]), np.column_stack([model.coef, model.intercept])
    found[:, -1] /= scaling
    scale = np.vdot(weights, found) / np.vdot(weights, weights) if weights.any() else 1.0
    assert 0.0 < scale <= 2.0
    np.testing.assert_allclose(model.coef, scale * coef, rtol=1e-9, atol=size)
    np.testing.assert_allclose(
        model.intercept, scale * scaling * bias, rtol=1e-9, atol=size * scaling
    )

    upper = primal(X, y, C, model.coef, model.intercept, scaling=scaling)
    lower = sums.sum() - 0.5 * (coef**2).sum() - 0.5 * (bias**2).sum()
    assert model.objective == pytest.approx(upper, rel=1e-10, abs=1e-300)
    assert model.gap == pytest.approx(upper - lower, rel=1e-6, abs=1e-11 * upper)
    assert model.relative_gap <= tol
    assert model.converged


# --------------------------------------------------------------------------------------------------
# The optimum
# --------------------------------------------------------------------------------------------------


def liblinear_objective(X, y, C, q, *, sample_weight=None, scaling=1.0, fit_intercept=True):
    model = LinearSVC(
        C=C,
        multi_class="crammer_singer",
        tol=1e-9,
        max_iter=10**6,
        intercept_scaling=scaling,
        fit_intercept=fit_intercept,
        random_state=0,
    )
    with warnings.catch_warnings():
        # scikit-learn 1.6 does not set the number of iterations here, and warns by chance.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y, sample_weight=sample_weight)
    coef, intercept = model.coef_, np.broadcast_to(model.intercept_, len(model.coef_))
    if q == 2:  # liblinear keeps the difference of the two weight vectors, which are opposite
        coef, intercept = np.vstack([-coef, coef]) / 2, np.concatenate([-intercept, intercept]) / 2
    weights = C * (np.ones(len(y)) if sample_weight is None else sample_weight)
    return primal(X, y, weights, coef, intercept, scaling=scaling)


@pytest.mark.parametrize("q", [2, 3, 5, 20])
@pytest.mark.parametrize("C", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("as_features", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_same_optimum_as_liblinear(q, C, as_features):
    X, y = make_problem(q=q)
    weight = np.random.default_rng(1).uniform(0.2, 3.0, len(y))
    features = as_features(X)
    model = fit_crammer_singer(features, y, C * weight, q, tol=TIGHT)
    assert_certified(features, y, C * weight, model)
    expected = liblinear_objective(X, y, C, q, sample_weight=weight)
    assert model.objective == pytest.approx(expected, rel=1e-6)


def test_same_optimum_as_liblinear_with_many_classes():
    X, y = make_problem(n=600, d=30, q=200)
    model = fit_crammer_singer(X, y, 0.05, 200, tol=1e-8)
    assert_certified(X, y, 0.05, model, tol=1e-8)
    assert model.objective == pytest.approx(liblinear_objective(X, y, 0.05, 200), rel=1e-6)


def test_same_optimum_as_liblinear_on_text():
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 500), density=0.03, rng=rng, format="csr")
    y = np.arange(300) % 7
    model = fit_crammer_singer(X, y, 1.0, 7, tol=TIGHT)
    assert_certified(X, y, 1.0, model)
    assert model.objective == pytest.approx(liblinear_objective(X, y, 1.0, 7), rel=1e-6)


@pytest.mark.parametrize(("fit_intercept", "scaling"), [(False, 1.0), (True, 10.0), (True, 0.1)])
def test_intercept(fit_intercept, scaling):
    X, y = make_problem()
    options = {"fit_intercept": fit_intercept, "intercept_scaling": scaling}
    model = fit_crammer_singer(X + 1.0, y, 0.1, 4, tol=TIGHT, **options)
    assert_certified(X + 1.0, y, 0.1, model, scaling=scaling, fit_intercept=fit_intercept)
    assert model.intercept.any() == fit_intercept
    expected = liblinear_objective(X + 1.0, y, 0.1, 4, scaling=scaling, fit_intercept=fit_intercept)
    assert model.objective == pytest.approx(expected, rel=1e-6)


def general_solver_objective(X, y, C, q):
    """Optimum of the dual by sequential quadratic programming."""
    n = len(y)
    rows = np.arange(n)
    X = np.column_stack([X, np.ones(n)])
    others = np.ones((n, q), dtype=bool)
    others[rows, y] = False

    def negative_dual(flat):
        u = np.zeros((n, q))
        u[others] = flat
        signed = -u
        signed[rows, y] = u.sum(axis=1)
        W = signed.T @ X
        scores = X @ W.T
        gradient = scores[rows, y][:, None] - scores - 1.0
        return 0.5 * (W**2).sum() - u.sum(), gradient[others]

    limits = np.repeat(np.eye(n), q - 1, axis=1)
    found = minimize(
        negative_dual,
        np.zeros(n * (q - 1)),
        jac=True,
        method="SLSQP",
        bounds=[(0, C)] * (n * (q - 1)),
        constraints={"type": "ineq", "fun": lambda u: C - limits @ u, "jac": lambda _: -limits},
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    return -found.fun


@pytest.mark.parametrize("q", [2, 3, 4])
@pytest.mark.parametrize("C", [0.05, 1.0])
def test_same_optimum_as_a_general_solver(q, C):
    X, y = make_problem(n=14, d=2, q=q, separation=0.5, seed=q)
    model = fit_crammer_singer(X, y, C, q, tol=1e-10)
    assert model.objective == pytest.approx(general_solver_objective(X, y, C, q), rel=1e-6)


def test_unused_classes_compete():
    # With a class that no example has, its score must stay one below the right one.
    X, y = make_problem(q=3)
    model = fit_crammer_singer(X, 2 * y, 0.1, 7, tol=TIGHT)
    assert_certified(X, 2 * y, 0.1, model)
    without = fit_crammer_singer(X, y, 0.1, 3, tol=TIGHT)
    assert model.objective > without.objective
    assert model.coef[[1, 3, 5, 6]].any(axis=1).all()


# --------------------------------------------------------------------------------------------------
# Weights and layouts
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("q", [4, 130])
@pytest.mark.parametrize("as_features", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_absent_classes_do_not_compete(q, as_features, monkeypatch):
    """The objective is that of the other classes alone."""
    monkeypatch.setattr(margins, "MAX_BLOCK_SCORES", 16 * q)
    X, y = make_problem(60, q=4)
    absent = sp.csr_array(np.eye(q, dtype=int)[(y + 1) % 4])
    model = fit_crammer_singer(
        as_features(X), y, 0.3, q, tol=TIGHT, absent=(absent.indptr, absent.indices)
    )
    scores = X @ model.coef.T + model.intercept
    own = scores[np.arange(60), y]
    scores[np.arange(60), y] = scores[np.arange(60), (y + 1) % 4] = -np.inf
    norm = (model.coef**2).sum() + (model.intercept**2).sum()
    loss = np.maximum(0, 1 + scores.max(axis=1) - own).sum()
    assert model.objective == pytest.approx(norm / 2 + 0.3 * loss)
    assert model.gap <= TIGHT * model.objective
    assert (dual_matrix(model)[np.arange(60), (y + 1) % 4] == 0).all()
    every = sp.csr_array(1 - np.eye(q, dtype=int)[y])
    nothing = fit_crammer_singer(as_features(X), y, 0.3, q, absent=(every.indptr, every.indices))
    assert nothing.objective == 0


def test_weights_are_replications():
    X, y = make_problem(n=60)
    count = np.random.default_rng(0).integers(0, 4, 60)
    weighted = fit_crammer_singer(X, y, 0.1 * count, 4, tol=TIGHT)
    repeated = fit_crammer_singer(X.repeat(count, axis=0), y.repeat(count), 0.1, 4, tol=TIGHT)
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-8)
    np.testing.assert_allclose(weighted.coef, repeated.coef, atol=1e-4)


def test_weight_zero_removes_a_row():
    X, y = make_problem(n=60)
    X[::3] *= 100.0
    C = np.where(np.arange(60) % 3, 0.1, 0.0)
    zeroed = fit_crammer_singer(X, y, C, 4, tol=TIGHT)
    removed = fit_crammer_singer(X[C > 0], y[C > 0], 0.1, 4, tol=TIGHT)
    assert zeroed.objective == pytest.approx(removed.objective, rel=1e-8)
    assert (np.diff(zeroed.dual_indptr)[C == 0] == 0).all()


@pytest.mark.parametrize(
    "convert",
    [
        sp.csr_array,
        sp.csr_matrix,
        sp.csc_array,
        sp.coo_array,
        np.asfortranarray,
        lambda X: np.repeat(X, 2, axis=0)[::2],
        lambda X: X.tolist(),
    ],
    ids=["csr_array", "csr_matrix", "csc", "coo", "fortran", "strided", "list"],
)
def test_layouts_agree(convert):
    X, y = make_problem()
    expected = fit_crammer_singer(X, y, 0.1, 4, tol=TIGHT)
    model = fit_crammer_singer(convert(X), y, 0.1, 4, tol=TIGHT)
    assert model.objective == pytest.approx(expected.objective, rel=1e-8)
    np.testing.assert_allclose(model.coef, expected.coef, atol=1e-4)


def test_sparse_duplicates_are_summed_and_the_input_is_kept():
    X, y = make_problem(n=40)
    exact = sp.csr_array(X)
    halves = sp.csr_array(
        (exact.data.repeat(2) / 2, exact.indices.repeat(2), 2 * exact.indptr), shape=X.shape
    )
    model = fit_crammer_singer(halves, y, 0.1, 4, tol=TIGHT)
    assert halves.nnz == 2 * exact.nnz
    assert_certified(exact, y, 0.1, model)


def test_integers_and_booleans():
    X, y = make_problem(n=40)
    expected = fit_crammer_singer((X > 0).astype(float), y, 0.1, 4, tol=TIGHT)
    for features in (X > 0, (X > 0).astype(int), sp.csr_array(X > 0)):
        model = fit_crammer_singer(features, y, 0.1, 4, tol=TIGHT)
        assert model.objective == pytest.approx(expected.objective, rel=1e-8)


def test_single_precision():
    X, y = make_problem()
    single = X.astype(np.float32)
    model = fit_crammer_singer(single, y, 0.1, 4, tol=TIGHT)
    assert_certified(single, y, 0.1, model)
    same = fit_crammer_singer(single.astype(np.float64), y, 0.1, 4, tol=TIGHT)
    assert model.objective == pytest.approx(same.objective, rel=1e-8)


def test_read_only_input():
    X, y = make_problem(n=40)
    X.flags.writeable = y.flags.writeable = False
    assert_certified(X, y, 0.1, fit_crammer_singer(X, y, 0.1, 4, tol=TIGHT))


# --------------------------------------------------------------------------------------------------
# Warm start
# --------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    q=st.integers(2, 6),
    scales=st.tuples(st.floats(-6, 2), st.floats(-6, 2)),
    tol=st.sampled_from([1e-1, 1e-4, TIGHT]),
)
def test_any_state_leads_to_the_same_optimum(seed, q, scales, tol):
    rng = np.random.default_rng(seed)
    X, y = make_problem(n=40, d=4, q=q, seed=seed)
    old_y = np.where(rng.random(40) < 0.3, rng.integers(0, q, 40), y)
    old_C, C = (10.0**scale * rng.uniform(size=40) * (rng.random(40) < 0.8) for scale in scales)
    state = fit_crammer_singer(X, old_y, old_C, q, tol=tol)
    warm = fit_crammer_singer(X, y, C, q, state=state, tol=1e-8, max_iter=10**6)
    cold = fit_crammer_singer(X, y, C, q, tol=1e-8, max_iter=10**6)
    assert_certified(X, y, C, warm, tol=1e-8)
    assert warm.objective == pytest.approx(cold.objective, rel=1e-7, abs=1e-300)


def test_a_warm_start_leaves_its_state_alone():
    X, y = make_problem()
    state = fit_crammer_singer(X, y, 0.01, 4)
    before = copy.deepcopy({field.name: getattr(state, field.name) for field in fields(state)})
    fit_crammer_singer(X, np.roll(y, 1), 10.0, 4, state=state, tol=1e-6)
    ((_, scores),), ((_, old_scores),) = state.scores, before.pop("scores")
    np.testing.assert_array_equal(scores, old_scores)
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(state, name), value)


def test_a_solved_problem_needs_no_sweep():
    X, y = make_problem()
    state = fit_crammer_singer(X, y, 0.1, 4, tol=1e-6)
    again = fit_crammer_singer(X, y, 0.1, 4, state=state, tol=1e-5)
    assert again.n_iter == 0
    assert again.objective == pytest.approx(state.objective, rel=1e-5)


def test_scores_are_those_of_the_machine(monkeypatch):
    X, y = make_problem()
    kept = fit_crammer_singer(X, y, 0.1, 4)
    monkeypatch.setattr("skpll.solvers.margins.MAX_BLOCK_SCORES", 60)
    computed = fit_crammer_singer(X, y, 0.1, 4)
    assert computed.objective == pytest.approx(kept.objective, rel=1e-3)
    for model, n_blocks in ((kept, 1), (computed, 8)):
        blocks = list(model.scores)
        assert [first for first, _ in blocks] == [k * 120 // n_blocks for k in range(n_blocks)]
        scores = np.vstack([scores for _, scores in blocks])
        np.testing.assert_allclose(scores, X @ model.coef.T + model.intercept, atol=1e-12)


def test_a_path_of_warm_starts_takes_fewer_sweeps():
    X, y = make_problem(n=300, d=10, q=6)
    path = 1e-5 * 1.5 ** np.arange(29)
    state, n_warm, n_cold = None, 0, 0
    for C in path:
        state = fit_crammer_singer(X, y, C, 6, state=state, tol=1e-3)
        n_warm += state.n_iter
        n_cold += fit_crammer_singer(X, y, C, 6, tol=1e-3).n_iter
        assert state.converged
    assert n_warm < n_cold


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_among_many_classes_a_warm_start_keeps_the_best_weights(convert):
    X, y = make_problem(1100, 8, 110, separation=2.0)
    X, C = convert(X), 10.0
    first = fit_crammer_singer(X, y, C, 110, tol=1e-3)
    others = y.copy()
    others[::300] = (others[::300] + 1) % 110
    attained = primal(X, others, C, first.coef, first.intercept)
    optimum = fit_crammer_singer(X, others, C, 110, tol=1e-3)
    for tol in (0.3, 0.03):
        model = fit_crammer_singer(X, others, C, 110, state=first, tol=tol)
        assert model.objective <= attained  # the dual variables alone lead to worse, if tol = 0.3
        assert model.gap <= tol * model.objective
        assert model.objective - model.gap <= optimum.objective
        assert model.objective >= optimum.objective - optimum.gap
        value = primal(X, others, C, model.coef, model.intercept)
        np.testing.assert_allclose(value, model.objective, rtol=1e-9)


def test_a_state_serves_other_features():
    X, y = make_problem()
    other, _ = make_problem(d=9, seed=1)
    state = fit_crammer_singer(X, y, 0.1, 4)
    assert_certified(other, y, 0.1, fit_crammer_singer(other, y, 0.1, 4, state=state, tol=TIGHT))


# --------------------------------------------------------------------------------------------------
# Extreme problems
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-8, 1e-4, 1e4, 1e8])
@pytest.mark.parametrize("C", [1e-8, 1.0, 1e8])
def test_scales(scale, C):
    X, y = make_problem(n=40, d=3, q=3)
    model = fit_crammer_singer(scale * X, y, C, 3, tol=1e-3, max_iter=2000)
    assert np.isfinite(model.coef).all()
    assert np.isfinite(model.intercept).all()
    assert model.n_iter <= 2000
    assert 0 <= model.objective <= 40 * C * (1 + 1e-9) + model.gap
    assert model.gap >= 0
    if C * max(1.0, scale**2) <= 1e4:  # the others are too badly conditioned to end in time
        assert_certified(scale * X, y, C, model, tol=1e-3)


@pytest.mark.parametrize(
    "X",
    [
        np.ones((6, 3)),
        np.zeros((6, 3)),
        np.repeat([[1.0, 2.0], [3.0, -1.0]], 3, axis=0),
        np.arange(6.0)[:, None],
        np.column_stack([np.arange(6.0), np.full(6, 7.0)]),
        np.zeros((6, 0)),
        np.diag([1e-160, 1e-8, 1.0, 1e8, 0.0, 2.0]),
    ],
    ids=["constant", "zero", "duplicates", "one feature", "constant column", "none", "mixed"],
)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_degenerate_features(X, fit_intercept):
    y = np.array([0, 1, 2, 0, 1, 2])
    model = fit_crammer_singer(X, y, 0.5, 3, tol=1e-8, fit_intercept=fit_intercept)
    assert_certified(X, y, 0.5, model, fit_intercept=fit_intercept, tol=1e-8)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_examples(n):
    X, y = np.array([[1.0, -2.0], [0.5, 1.0]])[:n], np.array([1, 0])[:n]
    model = fit_crammer_singer(X, y, 1.0, 3, tol=TIGHT)
    assert_certified(X, y, 1.0, model)
    assert model.coef.shape == (3, 2)


def test_one_example_in_closed_form():
    # u = 1 / (2 A) with A = 1² + 2² + 1² is below the bound, and the margin is exactly one.
    model = fit_crammer_singer(np.array([[1.0, 2.0]]), [0], 10.0, 2, tol=1e-12)
    np.testing.assert_allclose(model.coef, [[1 / 12, 2 / 12], [-1 / 12, -2 / 12]], rtol=1e-12)
    np.testing.assert_allclose(model.intercept, [1 / 12, -1 / 12], rtol=1e-12)
    assert model.objective == pytest.approx(1 / 24)


def test_small_weights_are_exact():
    # Below the first kink every dual variable is at its bound, and the first sweep finds them all.
    X, y = make_problem(n=50, q=2)
    model = fit_crammer_singer(X, y, 1e-12, 2, tol=1e-12)
    assert model.n_iter <= 3
    np.testing.assert_array_equal(dual_matrix(model).sum(axis=1), np.full(50, 1e-12))


def test_one_class():
    model = fit_crammer_singer(np.ones((4, 2)), np.zeros(4, dtype=int), 1.0, 1)
    assert model.converged
    assert (model.objective, model.gap, model.relative_gap) == (0.0, 0.0, 0.0)
    np.testing.assert_array_equal(model.coef, np.zeros((1, 2)))


def test_no_weight_at_all():
    X, y = make_problem(n=10)
    model = fit_crammer_singer(X, y, 0.0, 4)
    assert model.converged
    assert model.objective == 0.0
    assert not model.coef.any()


# --------------------------------------------------------------------------------------------------
# Contract
# --------------------------------------------------------------------------------------------------


def test_same_seed_same_bits():
    X, y = make_problem()
    first = fit_crammer_singer(X, y, 1.0, 4, seed=3)
    second = fit_crammer_singer(X, y, 1.0, 4, seed=3)
    other = fit_crammer_singer(X, y, 1.0, 4, seed=4)
    np.testing.assert_array_equal(first.coef, second.coef)
    assert (first.coef != other.coef).any()
    assert first.objective == pytest.approx(other.objective, rel=1e-3)


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
def test_the_gap_is_what_was_asked_for(tol):
    X, y = make_problem(n=300, q=5, separation=0.3)
    optimum = fit_crammer_singer(X, y, 1.0, 5, tol=TIGHT, max_iter=10**6).objective
    model = fit_crammer_singer(X, y, 1.0, 5, tol=tol)
    assert_certified(X, y, 1.0, model, tol=tol)
    assert model.objective <= optimum * (1 + tol) / (1 - tol)


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_no_multiple_of_the_solution_is_better(C):
    X, y = make_problem(n=200, d=20, q=5)
    model = fit_crammer_singer(X, y, C, 5, tol=0.1)
    for scale in (0.99, 0.999, 1.001, 1.01):
        assert primal(X, y, C, scale * model.coef, scale * model.intercept) > model.objective


def test_max_iter():
    X, y = make_problem(separation=0.0)
    model = fit_crammer_singer(X, y, 10.0, 4, tol=1e-12, max_iter=3)
    assert model.n_iter == 3
    assert not model.converged
    assert model.gap > 1e-12 * model.objective


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.ones(5)}, "X must have two dimensions"),
        ({"X": np.full((5, 2), np.nan)}, "X has NaN.*row 0"),
        ({"y": [0, 1, 2]}, r"y must have one class for each of the 5 rows.*\(3,\)"),
        ({"y": [0.0, 1.0, 0.0, 1.0, 0.0]}, "y must hold integer class indices.*float64"),
        ({"y": [0, 1, 3, 0, 1]}, r"y\[2\] is 3"),
        ({"y": [0, 1, 0, -1, 1]}, r"y\[3\] is -1"),
        ({"C": [1.0, 2.0]}, r"C must be a number or one value.*\(2,\)"),
        ({"C": [1.0, -2.0, 1.0, 1.0, 1.0]}, "C must be finite.*-2.0 for row 1"),
        ({"C": np.nan}, "C must be finite.*nan for row 0"),
        ({"n_classes": 0}, "n_classes must be at least 1, got 0"),
        ({"max_iter": 0}, "max_iter must be at least 1, got 0"),
        ({"tol": -1.0}, "tol must not be negative, got -1.0"),
    ],
)
def test_bad_input(change, message):
    arguments = {"X": np.ones((5, 2)), "y": [0, 1, 0, 1, 2], "C": 1.0, "n_classes": 3} | change
    with pytest.raises(ValueError, match=message):
        fit_crammer_singer(**arguments)


def test_a_state_of_another_size():
    X, y = make_problem(n=40)
    state = fit_crammer_singer(X, y, 1.0, 4)
    with pytest.raises(ValueError, match="state holds 40 examples and 4 classes"):
        fit_crammer_singer(X[:20], y[:20], 1.0, 4, state=state)
    with pytest.raises(ValueError, match="state holds 40 examples and 4 classes"):
        fit_crammer_singer(X, y, 1.0, 5, state=state)
