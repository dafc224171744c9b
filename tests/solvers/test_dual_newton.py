"""The Newton solver on losses whose optimum is known otherwise."""

import cvxpy
import numpy as np
import pytest
from scipy import sparse

from skpll.solvers.dual_newton import minimize_linear


class SquaredLoss:
    """½‖s − t‖² in each row: ridge regression, with a solution in closed form."""

    def __init__(self, targets):
        self.targets = targets

    def respond(self, scores, multipliers, sharpness, slopes):
        slopes[:] = scores - self.targets
        return 0.5 * float((slopes**2).sum()), 0.0

    def curvature(self, slopes, sharpness):
        return np.arange(len(slopes)), lambda changes: None


class AbsoluteLoss:
    """‖s − t‖₁ in each row, by its envelopes: slopes clipped to [−1, 1]."""

    def __init__(self, targets):
        self.targets = targets

    def respond(self, scores, multipliers, sharpness, slopes):
        errors = scores - self.targets
        slopes[:] = np.clip(multipliers + sharpness * errors, -1, 1)
        return float(np.abs(errors).sum()), float((np.abs(errors) - slopes * errors).sum())

    def curvature(self, slopes, sharpness):
        gains = sharpness * (np.abs(slopes) < 1)
        rows = np.flatnonzero(gains.any(axis=1))
        return rows, lambda changes: np.multiply(changes, gains[rows], out=changes)


@pytest.fixture
def regression():
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 5)), rng.normal(size=(40, 3))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.csc_matrix, np.float32])
def test_ridge_regression(regression, fit_intercept, make):
    X, targets = regression
    X = np.asarray(X, dtype=np.float32)
    design = np.column_stack([X, np.ones(40)]) if fit_intercept else X
    design = design.astype(np.float64)
    expected = np.linalg.solve(design.T @ design + np.eye(design.shape[1]), design.T @ targets).T
    solution = minimize_linear(
        make(X), SquaredLoss(targets), 3, fit_intercept=fit_intercept, tol=1e-20
    )
    found = np.column_stack([solution.coef, solution.intercept])
    np.testing.assert_allclose(found[:, : design.shape[1]], expected, atol=1e-9)
    assert solution.converged
    assert fit_intercept or (solution.intercept == 0).all()
    np.testing.assert_allclose(solution.scores, design @ expected.T, atol=1e-8)


def test_a_loss_with_kinks_against_a_general_solver(regression):
    X, targets = regression
    W = cvxpy.Variable((3, 5))
    objective = 0.5 * cvxpy.sum_squares(W) + cvxpy.sum(cvxpy.abs(X @ W.T - targets))
    expected = cvxpy.Problem(cvxpy.Minimize(objective)).solve(solver="CLARABEL")
    solution = minimize_linear(X, AbsoluteLoss(targets), 3, fit_intercept=False, tol=1e-12)
    assert solution.converged
    assert solution.objective == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(solution.coef, W.value, atol=1e-4)
    assert np.abs(solution.slopes).max() <= 1


def test_reports_end_with_the_certificate(regression):
    X, targets = regression
    seen = []
    solution = minimize_linear(
        X, AbsoluteLoss(targets), 3, report=lambda *values: seen.append(values)
    )
    assert seen[-1] == (solution.n_iter, solution.objective, solution.gap)
    assert [n for n, _, _ in seen] == list(range(solution.n_iter + 1))
    best = min(objective for _, objective, _ in seen)
    assert all(objective - gap <= best * (1 + 1e-12) for _, objective, gap in seen)


def test_a_warm_start_at_the_solution_needs_few_steps(regression):
    X, targets = regression
    cold = minimize_linear(X, AbsoluteLoss(targets), 3, tol=1e-6)
    warm = minimize_linear(X, AbsoluteLoss(targets), 3, tol=1e-6, state=cold)
    assert warm.n_iter < cold.n_iter / 2


def test_the_step_limit(regression):
    X, targets = regression
    solution = minimize_linear(X, AbsoluteLoss(targets), 3, max_iter=2, tol=1e-12)
    assert solution.n_iter == 2
    assert not solution.converged
    assert solution.gap > 1e-12 * solution.objective
