import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import approx_fprime
from sklearn.linear_model import LogisticRegression

from skpll.solvers.logistic_gates import _Problem, fit_gates, gate_links, logistic_terms


def random_problem(seed, n=40, d=3, m=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(0.1, 10, d)
    return X, rng.exponential(size=(n, m)), rng.exponential(size=(n, m))


def objective(X, positive, negative, variance, gates):
    """The formula, term by term."""
    links = X @ gates[1:] + gates[0]
    losses = positive * np.logaddexp(0, -links) + negative * np.logaddexp(0, links)
    return losses.sum(axis=0) + (gates[1:] ** 2).sum(axis=0) / (2 * variance)


def reference(X, positive, negative, variance):
    """Solve one gate after the other with scikit-learn, each example once as yes and once as no."""
    gates = []
    for a, b in zip(positive.T, negative.T, strict=True):
        model = LogisticRegression(C=variance, solver="newton-cholesky", tol=1e-10, max_iter=500)
        targets = np.repeat([1, 0], len(X))
        model.fit(np.concatenate((X, X)), targets, sample_weight=np.concatenate((a, b)))
        gates.append(np.concatenate((model.intercept_, model.coef_[0])))
    return np.transpose(gates)


@given(seed=st.integers(0, 10**6), scale=st.sampled_from([0.1, 1.0, 30.0]))
def test_terms_and_their_derivatives(seed, scale):
    rng = np.random.default_rng(seed)
    links, positive, negative = scale * rng.normal(size=(5, 2)), *rng.random((2, 5, 2))
    values, slopes, curvatures = logistic_terms(links, positive, negative)
    expected = positive * np.logaddexp(0, -links) + negative * np.logaddexp(0, links)
    np.testing.assert_allclose(values, expected.sum(axis=0), rtol=1e-12)
    h = 1e-5
    up, down = (logistic_terms(links + s, positive, negative) for s in (h, -h))
    np.testing.assert_allclose(slopes.sum(axis=0), (up[0] - down[0]) / (2 * h), atol=1e-6)
    np.testing.assert_allclose(curvatures, (up[1] - down[1]) / (2 * h), atol=1e-6)


def test_terms_far_out():
    links = np.array([[800.0, -800.0, 1e300, -1e300]])
    ones = np.ones_like(links)
    values, slopes, curvatures = logistic_terms(links, 0.25 * ones, 0.75 * ones)
    np.testing.assert_allclose(values, [600, 200, 0.75e300, 0.25e300])
    np.testing.assert_allclose(slopes, [[0.75, -0.25, 0.75, -0.25]])
    np.testing.assert_array_equal(curvatures, 1e-7)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_gradient_and_hessian_of_a_batch(as_sparse):
    X, positive, negative = random_problem(0, n=15, d=3, m=2)
    precisions = np.array([[0.0], [2.0], [2.0], [2.0]])
    features = sparse.csr_array(X) if as_sparse else X
    problem = _Problem(features, positive, negative, precisions)
    rng = np.random.default_rng(1)
    gates, direction = rng.normal(size=(2, 4, 2))

    def total(flat):
        return objective(X, positive, negative, 0.5, flat.reshape(4, 2)).sum()

    def gradient(flat):
        gates = flat.reshape(4, 2)
        return problem.gradient(problem.evaluate(gates, gate_links(features, gates))).ravel()

    point = problem.evaluate(gates, gate_links(features, gates))
    np.testing.assert_allclose(point.value, objective(X, positive, negative, 0.5, gates))
    numerical = approx_fprime(gates.ravel(), total, 1e-7)
    np.testing.assert_allclose(gradient(gates.ravel()), numerical, rtol=1e-4, atol=1e-4)
    product = problem.hessian_product(point.curvatures, direction).ravel()
    h = 1e-6
    numerical = (
        gradient((gates + h * direction).ravel()) - gradient((gates - h * direction).ravel())
    ) / (2 * h)
    np.testing.assert_allclose(product, numerical, rtol=1e-5, atol=1e-5)


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
    alone = fit_gates(X, positive[:, 2:3], negative[:, 2:3], 1.0, start=np.zeros((4, 1)), tol=1e-13)
    np.testing.assert_allclose(together[:, 2:3], alone, atol=1e-6)


def test_gates_that_nobody_cares_about_stay():
    X, positive, negative = random_problem(5)
    positive[:, 1] = negative[:, 1] = 0
    start = np.full((4, 4), 0.3)
    gates = fit_gates(X, positive, negative, 1.0, start=start)
    np.testing.assert_array_equal(gates[1:, 1] < 0.3, True)  # only the penalty speaks
    assert gates[0, 1] == 0.3


def test_no_gates_at_all():
    empty = np.zeros((40, 0))
    assert fit_gates(random_problem(6)[0], empty, empty, 1.0, start=np.zeros((4, 0))).shape == (
        4,
        0,
    )


@pytest.mark.parametrize("scale", [1e-8, 1e8, 1e100])
def test_features_of_any_scale(scale):
    X, positive, negative = random_problem(7)
    plain = fit_gates(X, positive, negative, 1.0, start=np.zeros((4, 4)), tol=1e-13)
    scaled = fit_gates(X * scale, positive, negative, scale**-2, start=np.zeros((4, 4)), tol=1e-13)
    np.testing.assert_allclose(gate_links(X * scale, scaled), gate_links(X, plain), atol=1e-4)


def test_separable_targets_without_end():
    X = np.linspace(-1, 1, 20)[:, np.newaxis]
    ones = np.ones((20, 1))
    gates = fit_gates(X, ones, 0 * ones, 1.0, start=np.zeros((2, 1)), max_iter=1000)
    assert np.isfinite(gates).all()
    assert objective(X, ones, 0 * ones, 1.0, gates)[0] < 1e-4
