"""Leave-one-out predictions against refitting without the row."""

import numpy as np
import pytest
from scipy import sparse

from skpll.solvers.leave_one_out import DualRidge, PrimalRidge, weighted_gram

N, M, Q = 25, 6, 5


@pytest.fixture(params=[0, 1, 2])
def problem(request):
    rng = np.random.default_rng(request.param)
    Z = rng.normal(size=(N, M))
    pattern = rng.random((N, Q)) < 0.4
    pattern[np.arange(N), rng.integers(0, Q, N)] = True
    targets = sparse.csr_array(np.where(pattern, rng.random((N, Q)) + 0.1, 0.0))
    weights = rng.uniform(0.2, 3, N)
    return Z, targets, rng.random(Q), weights, rng.choice([0.01, 0.5, 3.0])


def refitted(Z, targets, offset, weights, alpha):
    """Fit the ridge N times, each time without one row, and predict that row."""
    T = targets.toarray() - offset
    answers = np.empty((N, Q))
    for i in range(N):
        others = np.arange(N) != i
        A, c = Z[others], weights[others]
        W = np.linalg.solve(
            A.T @ (c[:, None] * A) + alpha * np.eye(M), A.T @ (c[:, None] * T[others])
        )
        answers[i] = Z[i] @ W
    return answers + offset


def ridges(Z, weights, alpha):
    yield PrimalRidge(Z, weighted_gram(Z, weights), weights, alpha)
    yield DualRidge(Z @ Z.T, weights, alpha)
    S = sparse.csr_array(Z)
    yield PrimalRidge(S, weighted_gram(S, weights), weights, alpha)


def test_leave_one_out_is_refitting_without_the_row(problem):
    Z, targets, offset, weights, alpha = problem
    expected = refitted(Z, targets, offset, weights, alpha)
    rows, columns = targets.nonzero()
    for ridge in ridges(Z, weights, alpha):
        everywhere = ridge.predict_everywhere(targets, offset)
        np.testing.assert_allclose(everywhere, expected, rtol=1e-8, atol=1e-8)
        at_entries = ridge.predict(targets, offset)
        np.testing.assert_allclose(at_entries, expected[rows, columns], rtol=1e-8, atol=1e-8)


def test_candidates_alone_are_computed_as_the_whole_matrix_is(problem, monkeypatch):
    Z, targets, offset, weights, alpha = problem
    for ridge in list(ridges(Z, weights, alpha))[:2]:
        whole = ridge.predict(targets, offset)
        monkeypatch.setattr("skpll.solvers.leave_one_out._FEW_COLUMNS", 0)
        monkeypatch.setattr("skpll.solvers.leave_one_out._BLOCK", 64)
        picked = ridge.predict(targets, offset)
        monkeypatch.undo()
        np.testing.assert_allclose(picked, whole, rtol=1e-10)


def test_in_sample_predictions_are_those_of_the_fitted_model(problem):
    Z, targets, offset, weights, alpha = problem
    rows, columns = targets.nonzero()
    primal, dual, _ = ridges(Z, weights, alpha)
    fitted = Z @ primal.coefficients(targets, offset) + offset
    again = Z @ Z.T @ dual.coefficients(targets, offset) + offset
    np.testing.assert_allclose(again, fitted, rtol=1e-8, atol=1e-10)
    for ridge in (primal, dual):
        inside = ridge.predict(targets, offset, in_sample=True)
        np.testing.assert_allclose(inside, fitted[rows, columns], rtol=1e-8, atol=1e-10)


def test_single_precision_stays_single(problem):
    Z, targets, offset, weights, alpha = problem
    Z = Z.astype(np.float32)
    for ridge in ridges(Z, weights, alpha):
        exact = refitted(Z.astype(float), targets, offset, weights, alpha)
        np.testing.assert_allclose(ridge.predict_everywhere(targets, offset), exact, atol=0.02)
    assert DualRidge(Z @ Z.T, weights, alpha).inverse.dtype == np.float32


def test_a_row_that_nobody_can_speak_for_stays_finite():
    Z = np.vstack([np.eye(3), [[0, 0, 1]]])
    targets = sparse.csr_array(np.eye(4, 2) + 0.1)
    ridge = PrimalRidge(Z, weighted_gram(Z, np.ones(4)), np.ones(4), 1e-12)
    assert np.isfinite(ridge.predict_everywhere(targets, np.zeros(2))).all()
