"""Conjugate gradients against a direct solver, backtracking against its own condition."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from skpll.solvers._descent import backtrack, conjugate_gradients


def columns(a, b):
    return np.einsum("ij,ij->j", a, b)


def problem(seed=0, n=8, m=3):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n))
    return A @ A.T + np.eye(n), rng.normal(size=(n, m))


@pytest.mark.parametrize("inner", [columns, lambda a, b: float(np.vdot(a, b))])
@pytest.mark.parametrize("preconditioned", [True, False])
def test_as_many_products_as_unknowns_solve_a_system(inner, preconditioned):
    G, right = problem()
    if inner is not columns:
        right = right[:, :1]
    scale = np.diag(G)[:, np.newaxis] if preconditioned else 1.0
    before = right.copy()
    found = conjugate_gradients(
        lambda v: G @ v,
        right,
        inner=inner,
        reduction=1e-12,
        max_iter=8,
        precondition=(lambda r: r / scale) if preconditioned else lambda r: r,
    )
    np.testing.assert_allclose(found, np.linalg.solve(G, right), atol=1e-8)
    np.testing.assert_array_equal(right, before)


def test_columns_go_their_own_ways():
    G, right = problem(1)
    right[:, 1] = 0
    together = conjugate_gradients(
        lambda v: G @ v, right, inner=columns, reduction=0.3, max_iter=20
    )
    assert not together[:, 1].any()
    for k in (0, 2):
        alone = conjugate_gradients(
            lambda v: G @ v, right[:, [k]], inner=columns, reduction=0.3, max_iter=20
        )
        np.testing.assert_allclose(together[:, [k]], alone, atol=1e-12)


@dataclass
class Trial:
    value: Any


def test_steps_are_halved_where_they_are_too_long():
    start, slope = np.array([1.0, 1.0]), np.array([-2.0, -2.0])
    curvature = np.array([1.0, 10.0])
    step, trial = backtrack(lambda t: Trial(start + slope * t + curvature * t**2), start, slope)
    assert step.tolist() == [1.0, 0.125]
    assert (trial.value < start).all()


def test_no_step_where_nothing_falls():
    step, trial = backtrack(lambda t: Trial(1.0 + t), 1.0, -1.0)
    assert step == 0
    assert trial.value == 1.0


def test_a_residual_falls_to_the_share_that_is_asked_for_and_not_far_below():
    G, right = problem(2, n=40, m=1)
    for reduction in (0.5, 0.1, 1e-3):
        products = []

        def product(v, products=products):
            products.append(v)
            return G @ v

        found = conjugate_gradients(
            product, right, inner=columns, reduction=reduction, max_iter=200
        )
        assert np.linalg.norm(right - G @ found) <= reduction * np.linalg.norm(right)
        one_less = conjugate_gradients(
            lambda v: G @ v, right, inner=columns, reduction=0.0, max_iter=len(products) - 1
        )
        assert np.linalg.norm(right - G @ one_less) > reduction * np.linalg.norm(right)
