import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import approx_fprime
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from skpll.solvers import stick_breaking
from skpll.solvers.stick_breaking import Gates, Links, _Batch, _Goal


def random_problem(seed, n=40, d=3, m=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(0.1, 10, d)
    return X, rng.exponential(size=(m, n)), rng.exponential(size=(m, n))


def fit_gates(X, positive, negative, variance, *, start, **options):
    gates = Gates(X, start)
    gates.improve(positive, negative, variance, **options)
    np.testing.assert_allclose(gates.links.odds, links(X, gates.coef), rtol=1e-6, atol=1e-6)
    return gates.coef


def links(X, gates):
    return gates[:, :1] + gates[:, 1:] @ X.T


def objective(X, positive, negative, variance, gates):
    """The formula, term by term."""
    odds = links(X, gates)
    losses = positive * np.logaddexp(0, -odds) + negative * np.logaddexp(0, odds)
    return losses.sum(axis=1) + (gates[:, 1:] ** 2).sum(axis=1) / (2 * variance)


def reference(X, positive, negative, variance):
    """Solve one gate after the other with scikit-learn, each example once as yes and once as no."""
    gates = []
    for a, b in zip(positive, negative, strict=True):
        model = LogisticRegression(C=variance, solver="newton-cholesky", tol=1e-10, max_iter=500)
        targets = np.repeat([1, 0], len(X))
        model.fit(np.concatenate((X, X)), targets, sample_weight=np.concatenate((a, b)))
        gates.append(np.concatenate((model.intercept_, model.coef_[0])))
    return np.array(gates)


def updated(odds):
    links = Links(odds, *np.empty((3, *odds.shape)))
    links.update()
    return links


@given(seed=st.integers(0, 10**6), scale=st.sampled_from([0.1, 1.0, 30.0, 1e4]))
def test_links(seed, scale):
    odds = scale * np.random.default_rng(seed).normal(size=(2, 5))
    links = updated(odds)
    np.testing.assert_allclose(links.losses, np.logaddexp(0, odds), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(links.opened, expit(odds), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(links.shut, expit(-odds), rtol=1e-12, atol=1e-300)


def test_links_far_out():
    links = updated(np.array([[800.0, -800.0, 1e300, -1e300]]))
    np.testing.assert_allclose(links.losses, [[800, 0, 1e300, 0]])
    np.testing.assert_allclose(links.opened, [[1, 0, 1, 0]])
    np.testing.assert_allclose(links.shut, [[0, 1, 0, 1]], atol=1e-300)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_derivatives_of_a_batch(as_sparse):
    X, positive, negative = random_problem(0, n=15, d=3, m=2)
    features = sparse.csr_array(X) if as_sparse else X
    rng = np.random.default_rng(1)
    start, direction = rng.normal(size=(2, 2, 4))
    precisions = np.array([0.0, 2.0, 2.0, 2.0])

    goal = _Goal(positive, negative, precisions, np.ones(features.shape[1] + 1))

    def at(coef):
        return _Batch(Gates(features, coef), np.arange(2), goal)

    def total(flat):
        return objective(X, positive, negative, 0.5, flat.reshape(2, 4)).sum()

    batch = at(start)
    value = batch.value(batch.coef, batch.links)
    np.testing.assert_allclose(value[:, 0], objective(X, positive, negative, 0.5, start))
    numerical = approx_fprime(start.ravel(), total, 1e-7)
    np.testing.assert_allclose(batch.gradient().ravel(), numerical, rtol=1e-4, atol=1e-4)
    product = batch.hessian_product(batch.curvatures())(direction)
    h = 1e-6
    numerical = at(start + h * direction).gradient() - at(start - h * direction).gradient()
    np.testing.assert_allclose(product, numerical / (2 * h), rtol=1e-5, atol=1e-5)


def test_curvatures_are_never_zero():
    X, positive, negative = random_problem(0, n=15, d=3, m=2)
    gates = Gates(X, np.full((2, 4), 1e6))
    goal = _Goal(positive, negative, np.ones(4), np.ones(4))
    batch = _Batch(gates, np.arange(2), goal)
    np.testing.assert_allclose(batch.curvatures(), 1e-7 * (positive + negative))


@pytest.mark.parametrize("as_sparse", [False, True])
def test_batches_change_nothing(as_sparse, monkeypatch):
    X, positive, negative = random_problem(8, m=11)
    features = sparse.csr_array(X) if as_sparse else X
    whole = fit_gates(features, positive, negative, 1.0, start=np.zeros((11, 4)), max_iter=3)
    monkeypatch.setattr(stick_breaking, "BATCH_VALUES", 1)
    monkeypatch.setattr(stick_breaking, "MIN_BATCH_GATES", 2)
    parts = fit_gates(features, positive, negative, 1.0, start=np.zeros((11, 4)), max_iter=3)
    np.testing.assert_allclose(parts, whole, rtol=1e-7)


@pytest.mark.parametrize("variance", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_against_scikit_learn(variance, as_sparse):
    X, positive, negative = random_problem(2)
    features = sparse.csr_array(X) if as_sparse else X
    gates = fit_gates(features, positive, negative, variance, start=np.zeros((4, 4)), tol=1e-14)
    np.testing.assert_allclose(gates, reference(X, positive, negative, variance), atol=1e-5)


def test_the_start_does_not_matter():
    X, positive, negative = random_problem(3)
    far = 30 * np.random.default_rng(0).normal(size=(4, 4))
    gates = [
        fit_gates(X, positive, negative, 1.0, start=start, tol=1e-13)
        for start in (np.zeros((4, 4)), far)
    ]
    np.testing.assert_allclose(gates[0], gates[1], atol=1e-5)


@given(
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([1e-3, 1.0, 1e3]),
    steps=st.integers(1, 4),
)
def test_no_gate_ever_gets_worse(seed, scale, steps):
    X, positive, negative = random_problem(seed, n=20)
    start = scale * np.random.default_rng(seed + 1).normal(size=(4, 4))
    gates = fit_gates(X, positive, negative, 1.0, start=start, max_iter=steps)
    before = objective(X, positive, negative, 1.0, start)
    after = objective(X, positive, negative, 1.0, gates)
    assert (after <= before + 1e-9 * (1 + before)).all()
    assert (after < before).any()


def test_gates_do_not_influence_each_other():
    X, positive, negative = random_problem(4)
    together = fit_gates(X, positive, negative, 1.0, start=np.zeros((4, 4)), tol=1e-13)
    alone = fit_gates(X, positive[2:3], negative[2:3], 1.0, start=np.zeros((1, 4)), tol=1e-13)
    np.testing.assert_allclose(together[2:3], alone, atol=1e-6)


def test_gates_that_nobody_cares_about_stay():
    X, positive, negative = random_problem(5)
    positive[1] = negative[1] = 0
    start = np.full((4, 4), 0.3)
    gates = fit_gates(X, positive, negative, 1.0, start=start)
    np.testing.assert_array_equal(gates[1, 1:] < 0.3, True)  # only the penalty speaks
    assert gates[1, 0] == 0.3


def test_no_gates_at_all():
    empty, start = np.zeros((0, 40)), np.zeros((0, 4))
    assert fit_gates(random_problem(6)[0], empty, empty, 1.0, start=start).shape == (0, 4)


@pytest.mark.parametrize("scale", [1e-8, 1e8, 1e100])
def test_features_of_any_scale(scale):
    X, positive, negative = random_problem(7)
    plain = fit_gates(X, positive, negative, 1.0, start=np.zeros((4, 4)), tol=1e-13)
    scaled = fit_gates(X * scale, positive, negative, scale**-2, start=np.zeros((4, 4)), tol=1e-13)
    np.testing.assert_allclose(links(X * scale, scaled), links(X, plain), atol=1e-4)


def test_separable_targets_without_end():
    X = np.linspace(-1, 1, 20)[:, np.newaxis]
    ones = np.ones((1, 20))
    gates = fit_gates(X, ones, 0 * ones, 1.0, start=np.zeros((1, 2)), max_iter=1000)
    assert np.isfinite(gates).all()
    assert objective(X, ones, 0 * ones, 1.0, gates)[0] < 1e-4
