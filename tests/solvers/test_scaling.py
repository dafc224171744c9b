"""Sinkhorn's scaling against an independent solution of the same problem."""

import numpy as np
import pytest
from scipy.optimize import minimize

from skpll import as_candidates
from skpll.solvers.scaling import log_scaling


def scaled(S, values, logs, weights):
    Q = values * np.exp(logs)[S.indices]
    return Q * np.repeat(weights / np.add.reduceat(Q, S.indptr[:-1]), S.sizes)


def found(S, values, targets, weights, **settings):
    """Find the scaling of values on candidates."""

    def sums(logs):
        return np.bincount(S.indices, scaled(S, values, logs, weights), len(targets))

    return log_scaling(sums, targets, **settings)


@pytest.mark.parametrize("seed", range(5))
def test_columns_meet_their_targets_as_the_dual_problem_says(seed):
    rng = np.random.default_rng(seed)
    n, q = 40, 5
    M = rng.random((n, q)) < 0.5
    M[np.arange(n), rng.integers(0, q, n)] = True
    S = as_candidates(M.astype(int))
    values, weights = rng.uniform(0.05, 1, len(S.indices)), rng.uniform(0.5, 2, n)
    targets = S.expected_counts(weights)
    logs = found(S, values, targets, weights, tol=1e-12, max_iter=100_000)
    Q = scaled(S, values, logs, weights)
    np.testing.assert_allclose(np.bincount(S.indices, Q, q), targets, rtol=1e-8)

    def dual(u):  # its minimum is the scaling: the gradient is the difference of the sums
        sums = np.add.reduceat(values * np.exp(u)[S.indices], S.indptr[:-1])
        gradient = np.bincount(S.indices, scaled(S, values, u, weights), q) - targets
        return weights @ np.log(sums) - targets @ u, gradient

    best = minimize(dual, np.zeros(q), jac=True, method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(Q, scaled(S, values, best.x, weights), atol=1e-6)


def test_a_start_is_gone_on_from():
    S = as_candidates([{0, 1}, {0, 1}, {1, 2}, {0, 2}])
    values, weights = np.array([0.9, 0.1, 0.8, 0.2, 0.5, 0.5, 0.3, 0.7]), np.ones(4)
    targets = S.expected_counts()
    settled = found(S, values, targets, weights, tol=0, max_iter=500)
    again = found(S, values, targets, weights, start=settled, tol=0, max_iter=1)
    np.testing.assert_allclose(
        scaled(S, values, again, weights), scaled(S, values, settled, weights), atol=1e-12
    )


def test_a_column_that_expects_nobody_gets_next_to_nothing():
    S = as_candidates([{0, 1}, {0, 1}, {1, 2}])
    logs = found(S, np.ones(6), np.array([0.0, 2.0, 1.0]), np.ones(3), max_iter=50)
    assert np.bincount(S.indices, scaled(S, np.ones(6), logs, np.ones(3)), 3)[0] < 1e-12
