import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import approx_fprime
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression

from skpll.solvers import softmax_regression
from skpll.solvers.softmax_regression import SoftmaxProblem


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    T = rng.dirichlet(np.ones(4), size=50) * (rng.random((50, 4)) < 0.6)
    T[:, 0] += 0.1
    return X, T / T.sum(axis=1, keepdims=True), rng.uniform(0.5, 2, 50)


@pytest.mark.parametrize("many", [0, 4000])
def test_it_is_logistic_regression_on_weighted_copies(problem, monkeypatch, many):
    monkeypatch.setattr(softmax_regression, "MAX_FACTORED_FEATURES", many)
    X, T, c = problem
    model = SoftmaxProblem(X, c).fit(sparse.csr_array(T), tol=1e-15, max_iter=1000)
    rows, columns = np.nonzero(T)
    rival = LogisticRegression(tol=1e-10, max_iter=10000)
    rival.fit(X[rows], columns, sample_weight=c[rows] * T[rows, columns])
    np.testing.assert_allclose(model.coef, rival.coef_, atol=1e-5)
    np.testing.assert_allclose(model.log_probabilities, rival.predict_log_proba(X), atol=1e-5)


def test_the_objective_is_the_formula_and_stationary(problem):
    X, T, c = problem
    model = SoftmaxProblem(X, c).fit(sparse.csr_array(T), tol=1e-15, max_iter=1000)

    def objective(flat):
        W = flat.reshape(4, 4)
        log_p = log_softmax(X @ W[:, :3].T + W[:, 3], axis=1)
        return np.sum(W[:, :3] ** 2) / 2 - np.sum(c[:, None] * T * log_p)

    reached = np.column_stack([model.coef, model.intercept]).ravel()
    assert np.abs(approx_fprime(reached, objective, 1e-7)).max() < 1e-4


def test_sparse_features_and_a_start(problem):
    X, T, c = problem
    X, T = np.where(np.abs(X) > 0.5, X, 0), sparse.csr_array(T)
    dense = SoftmaxProblem(X, c).fit(T, tol=1e-15, max_iter=1000)
    compressed = SoftmaxProblem(sparse.csr_array(X), c).fit(T, tol=1e-15, max_iter=1000)
    np.testing.assert_allclose(compressed.coef, dense.coef, atol=1e-6)
    again = SoftmaxProblem(X, c).fit(T, start=dense, max_iter=1)
    np.testing.assert_allclose(again.coef, dense.coef, atol=1e-6)


def test_features_that_are_all_but_the_same(problem):
    X, T, c = problem
    X = np.column_stack([X, X + 1e-4 * np.random.default_rng(1).normal(size=X.shape)]) * 30
    problem, steps = SoftmaxProblem(X, c), []
    for max_iter in (40, 400):
        model = problem.fit(sparse.csr_array(T), tol=1e-15, max_iter=max_iter)
        steps.append(0.5 * np.sum(model.coef**2) - np.sum(c[:, None] * T * model.log_probabilities))
    assert steps[0] == pytest.approx(steps[1], rel=1e-8)
