"""Leave-one-out predictions against refitting without the row."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skpll.engine.ridge import (
    DualRidge,
    PrimalRidge,
    leave_one_out_answers,
    leverages,
    weighted_gram,
)

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


def by_features(Z, targets, offset, weights, alpha, in_sample=False):
    """Everything that a ridge on features says, from sums over two blocks of rows."""
    blocks = [slice(0, 7), slice(7, N)]
    T = targets.toarray() - offset
    ridge = PrimalRidge(sum(weighted_gram(Z[b], weights[b]) for b in blocks), alpha)
    coef = ridge.coefficients(sum(Z[b].T @ (weights[b, None] * T[b]) for b in blocks))
    fitted = np.vstack([Z[b] @ coef for b in blocks])
    if in_sample:
        return fitted + offset
    h = np.concatenate([leverages(Z[b], weights[b], ridge.root) for b in blocks])
    return leave_one_out_answers(fitted, T, h[:, None]) + offset


def by_kernel(Z, targets, offset, weights, alpha, in_sample=False):
    """Everything that a ridge on the kernel says."""
    K = np.asarray((Z @ Z.T).toarray() if sparse.issparse(Z) else Z @ Z.T)
    ridge = DualRidge.of(K, weights, alpha)
    dual = ridge.coefficients(targets.toarray(), offset)
    shift = ridge.ridge if in_sample else 1 / ridge.diagonal
    return targets.toarray() - dual * shift[:, None]


WAYS = [by_features, by_kernel]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_leave_one_out_is_refitting_without_the_row(problem, way, layout):
    Z, targets, offset, weights, alpha = problem
    expected = refitted(Z, targets, offset, weights, alpha)
    answers = way(layout(Z), targets, offset, weights, alpha)
    np.testing.assert_allclose(answers, expected, rtol=1e-8, atol=1e-8)


def test_in_sample_predictions_are_those_of_the_fitted_model(problem):
    Z, targets, offset, weights, alpha = problem
    C = weights[:, None]
    T = targets.toarray() - offset
    fitted = Z @ np.linalg.solve(Z.T @ (C * Z) + alpha * np.eye(M), Z.T @ (C * T)) + offset
    for way in WAYS:
        answers = way(Z, targets, offset, weights, alpha, in_sample=True)
        np.testing.assert_allclose(answers, fitted, rtol=1e-8, atol=1e-10)


def test_temporary_results_make_no_difference(problem, monkeypatch):
    Z, _, _, weights, _ = problem
    root = np.random.default_rng(0).normal(size=(M, M)) / 10
    whole = leverages(Z, weights, root)
    monkeypatch.setattr("skpll.engine.ridge.MAX_TEMPORARY_NUMBERS", 13)
    np.testing.assert_allclose(leverages(Z, weights, root), whole, rtol=1e-12)
    gram = Z.T @ (weights[:, None] * Z)
    monkeypatch.setattr("skpll.engine.ridge.MAX_SUM_ROWS", 4)
    np.testing.assert_allclose(weighted_gram(Z, weights), gram, rtol=1e-12)
    np.testing.assert_allclose(weighted_gram(sparse.csr_array(Z), weights), gram, rtol=1e-12)


def test_single_precision_stays_single(problem):
    Z, targets, offset, weights, alpha = problem
    Z, single = Z.astype(np.float32), weights.astype(np.float32)
    exact = refitted(Z.astype(float), targets, offset, weights, alpha)
    for way in WAYS:
        np.testing.assert_allclose(way(Z, targets, offset, single, alpha), exact, atol=0.02)
    assert DualRidge.of(Z @ Z.T, weights, alpha).inverse.dtype == np.float32
    assert leverages(Z, single, np.eye(M, dtype=np.float32)).dtype == np.float32
    assert weighted_gram(Z, single).dtype == np.float64


def test_a_row_that_nobody_can_speak_for_stays_finite():
    Z = np.vstack([np.eye(3), [[0, 0, 1]]])
    ridge = PrimalRidge(weighted_gram(Z, np.ones(4)), 1e-12)
    h = leverages(Z, np.ones(4), ridge.root)
    assert (h < 1).all()
    assert np.isfinite(leave_one_out_answers(Z, Z, h[:, None])).all()


def test_the_inverse_of_a_kernel_in_several_blocks():
    Z = np.random.default_rng(5).normal(size=(600, 40))
    K, weights = Z @ Z.T, np.linspace(0.5, 2, 600)
    ridge = DualRidge.of(K, weights, 0.3)
    expected = np.linalg.inv(K + np.diag(0.3 / weights))
    assert_allclose(ridge.inverse, expected, rtol=0, atol=1e-11 * np.abs(expected).max())
    assert_array_equal(ridge.inverse, ridge.inverse.T)
    assert_array_equal(ridge.diagonal, np.diag(ridge.inverse))


def test_a_fold_follows_from_the_inverse_of_the_whole(problem):
    Z, targets, offset, weights, alpha = problem
    held_out = np.arange(N) % 3 == 1
    K, Y = Z @ Z.T, targets.toarray()[~held_out] - offset
    others, predict = DualRidge.of(K, weights, alpha).without(held_out)
    expected = DualRidge.of(K[~held_out][:, ~held_out], weights[~held_out], alpha)
    assert_allclose(others.inverse, expected.inverse, rtol=1e-8, atol=1e-8)
    assert_allclose(others.ridge, expected.ridge)
    assert_allclose(others.row_sums, expected.row_sums, atol=1e-8)
    predictions = K[held_out][:, ~held_out] @ expected.inverse @ Y
    assert_allclose(predict(Y), predictions, atol=1e-8)
