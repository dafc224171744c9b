import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from skpll.solvers import multi_output_svr
from skpll.solvers.multi_output_svr import FeatureModel, KernelModel, fit_multi_output_svr


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    targets = rng.dirichlet(np.ones(3), 30)
    return X, targets, 0.3 * rng.normal(size=(30, 3))


def value_and_gradient(X, targets, pull, C, epsilon, flat):
    """The objective in the primal, written down once more."""
    d, q = X.shape[1], targets.shape[1]
    W, b = flat[: d * q].reshape(d, q), flat[d * q :]
    error = targets - X @ W - b
    length = np.linalg.norm(error, axis=1)
    excess = np.maximum(length - epsilon, 0)
    value = 0.5 * np.sum(W**2) + C * np.sum(excess**2) - np.sum(pull * (X @ W + b))
    direction = error / np.where(length > 0, length, 1)[:, None]
    slope = -2 * C * excess[:, None] * direction - pull
    return value, np.concatenate([(W + X.T @ slope).ravel(), slope.sum(axis=0)])


@pytest.mark.parametrize("C", [0.3, 10.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("pulled", [False, True])
def test_against_a_generic_solver(data, C, epsilon, pulled):
    X, targets, pull = data
    pull = pull if pulled else 0 * pull
    result = fit_multi_output_svr(
        FeatureModel(X), targets, pull, C=C, epsilon=epsilon, tol=1e-12, max_iter=5000
    )
    reference = minimize(
        lambda flat: value_and_gradient(X, targets, pull, C, epsilon, flat),
        np.zeros(15),
        jac=True,
        method="BFGS",
        options={"gtol": 1e-9},
    )
    flat = np.concatenate([result.coef.ravel(), result.intercept])
    value, gradient = value_and_gradient(X, targets, pull, C, epsilon, flat)
    assert result.converged
    assert result.objective[-1] == pytest.approx(value)
    assert value <= reference.fun + 1e-8
    np.testing.assert_allclose(gradient, 0, atol=1e-3 * C)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("epsilon", [0.05, 0.4])
def test_kernel_and_features_give_the_same_model(data, container, epsilon):
    X, targets, pull = data
    settings = {"C": 5.0, "epsilon": epsilon, "tol": 1e-13, "max_iter": 1000}
    by_features = fit_multi_output_svr(FeatureModel(container(X)), targets, pull, **settings)
    by_kernel = fit_multi_output_svr(KernelModel(X @ X.T), targets, pull, **settings)
    np.testing.assert_allclose(by_kernel.objective[-1], by_features.objective[-1], rtol=1e-9)
    np.testing.assert_allclose(X.T @ by_kernel.coef, by_features.coef, atol=1e-4)
    np.testing.assert_allclose(by_kernel.outputs, by_features.outputs, atol=1e-4)


@pytest.mark.parametrize("roughly", [False, True])
def test_stationarity_in_the_dual(data, roughly, monkeypatch):
    if roughly:
        monkeypatch.setattr(multi_output_svr, "MIN_GRADIENT_EXAMPLES", 0)
        monkeypatch.delattr(KernelModel, "solve")
    X, targets, pull = data
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    result = fit_multi_output_svr(
        KernelModel(K), targets, pull, C=2.0, epsilon=0.2, tol=1e-14, max_iter=1000
    )
    error = targets - result.outputs
    length = np.linalg.norm(error, axis=1, keepdims=True)
    expected = 2 * 2.0 * np.maximum(length - 0.2, 0) / length * error + pull
    np.testing.assert_allclose(result.outputs, K @ result.coef + result.intercept, atol=1e-9)
    np.testing.assert_allclose(result.coef, expected, atol=1e-4)
    np.testing.assert_allclose(result.coef.sum(axis=0), 0, atol=1e-8)


@pytest.mark.parametrize("C", [0.1, 10.0, 1e3, 1e6])
@pytest.mark.parametrize("epsilon", [0.1, 0.8])
def test_conjugate_gradients_find_what_factors_find(C, epsilon, monkeypatch):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(150, 3)), rng.integers(0, 4, 150)
    targets, pull = np.eye(4)[y], np.eye(4)[y] - 0.25
    K = np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2))
    settings = {"C": C, "epsilon": epsilon, "tol": 1e-9, "max_iter": 1000}
    exact = fit_multi_output_svr(KernelModel(K), targets, pull, **settings)
    monkeypatch.setattr(multi_output_svr, "MIN_GRADIENT_EXAMPLES", 0)
    monkeypatch.setattr(multi_output_svr, "N_LANDMARKS", 10)
    rough = fit_multi_output_svr(KernelModel(K), targets, pull, **settings)
    assert rough.converged
    assert (np.diff(rough.objective) <= 0).all()
    assert rough.objective[-1] <= exact.objective[-1] + 1e-5 * abs(exact.objective[0])
    np.testing.assert_allclose(rough.outputs, exact.outputs, atol=1e-2)


def test_without_a_tube_it_is_ridge_regression(data):
    X, targets, pull = data
    result = fit_multi_output_svr(FeatureModel(X), targets, 0 * pull, C=0.7, epsilon=0.0, tol=1e-12)
    centred = X - X.mean(axis=0)
    expected = np.linalg.solve(
        centred.T @ centred + np.eye(4) / (2 * 0.7), centred.T @ (targets - targets.mean(axis=0))
    )
    np.testing.assert_allclose(result.coef, expected, atol=1e-9)


def test_the_objective_never_rises(data):
    X, targets, pull = data
    seen = []
    result = fit_multi_output_svr(
        FeatureModel(X),
        targets,
        pull,
        C=10.0,
        epsilon=0.5,
        tol=1e-12,
        max_iter=500,
        report=lambda iteration, value: seen.append((iteration, value)),
    )
    assert len(result.objective) > 3
    assert (np.diff(result.objective) <= 0).all()
    assert seen == list(enumerate(result.objective))[1:]


def test_a_tube_that_holds_everything(data):
    X, targets, pull = data
    flat = fit_multi_output_svr(FeatureModel(X), targets, 0 * pull, C=1.0, epsilon=9.0)
    assert flat.converged
    assert not flat.coef.any()
    pulled = fit_multi_output_svr(
        FeatureModel(X), targets, pull, C=1.0, epsilon=9.0, tol=1e-12, max_iter=1000
    )
    _, gradient = value_and_gradient(
        X, targets, pull, 1.0, 9.0, np.concatenate([pulled.coef.ravel(), pulled.intercept])
    )
    np.testing.assert_allclose(gradient, 0, atol=1e-2)


def test_max_iter(data):
    X, targets, pull = data
    result = fit_multi_output_svr(
        FeatureModel(X), targets, pull, C=10.0, epsilon=0.5, tol=1e-12, max_iter=2
    )
    assert len(result.objective) == 3
    assert not result.converged
