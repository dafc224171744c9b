"""Parts of descent methods: conjugate gradients, how far to go, a constant feature.

Problems that do not depend on each other may be solved side by side, as the columns of matrices:
inner products are then one number for each column, and each column goes its own way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numpy as np
from scipy import sparse

from skpll._typing import Floats
from skpll.engine.arrays import Matrix, is_sparse

Numbers: TypeAlias = Any
"""A number, or one for each column."""

Trial = TypeVar("Trial")

_SUFFICIENT_DECREASE = 1e-4
_MAX_HALVINGS = 50


def conjugate_gradients(
    product: Callable[[Floats], Floats],
    right: Floats,
    *,
    inner: Callable[[Floats, Floats], Numbers],
    reduction: Numbers,
    max_iter: int,
    precondition: Callable[[Floats], Floats] | None = None,
) -> Floats:
    """Solve positive semi-definite systems roughly; every iterate is a direction of descent.

    Parameters
    ----------
    product : callable
        The product with the matrix.
    right : array
        The right-hand side.
    inner : callable
        The inner product of two such arrays: a number, or one for each column.
    reduction : float or array
        A system is solved when the norm of its residual has fallen to this share of the first.
    max_iter : int
        Largest number of products.
    precondition : callable, optional
        An approximation of the inverse of the matrix; of the identity, if there is none.

    Returns
    -------
    solution : array
    """
    precondition = precondition or (lambda residual: residual)
    solution, residual = np.zeros_like(right), right
    direction = precondition(residual)
    energy = inner(residual, direction)
    goal = reduction**2 * energy
    going = energy > 0
    for _ in range(max_iter):
        image = product(direction)
        curvature = inner(direction, image)
        going = going & (curvature > 0)
        length = _ratio(energy, curvature, going)
        solution += length * direction
        residual = residual - length * image
        preconditioned = precondition(residual)
        before, energy = energy, inner(residual, preconditioned)
        going = going & (energy > goal)
        if not np.any(going):
            break
        direction = preconditioned + _ratio(energy, before, going) * direction
    return solution


def backtrack(
    attempt: Callable[[Numbers], Trial], value: Numbers, slope: Numbers
) -> tuple[Numbers, Trial]:
    """Halve the step of each problem until its objective falls enough; stay where it never does.

    Parameters
    ----------
    attempt : callable
        From steps to something that has the objectives there as its attribute `value`.
    value, slope : float or array
        The objectives at the start, and their slopes along the direction.

    Returns
    -------
    steps : float or array
        Zero where no step was short enough.
    trial
        What was found there.
    """
    step = np.ones_like(value)
    for _ in range(_MAX_HALVINGS):
        trial = attempt(step)
        enough = trial.value <= value + _SUFFICIENT_DECREASE * step * slope  # type: ignore[attr-defined]
        if np.all(enough):
            return step, trial
        step = np.where(enough, step, step / 2)
    step = np.where(enough, step, 0.0)
    return step, attempt(step)


def with_constant(X: Matrix) -> Matrix:
    """Return features with a feature that is one everywhere before the others."""
    columns = [np.ones((X.shape[0], 1)), X]
    return sparse.hstack(columns, "csr") if is_sparse(X) else np.hstack(columns)


def _ratio(numerator: Numbers, denominator: Numbers, where: Numbers) -> Numbers:
    """Divide where the mask is True, and return zero elsewhere."""
    return np.divide(numerator, denominator, out=np.zeros(np.shape(numerator)), where=where)
