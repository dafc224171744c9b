r"""Many weighted logistic regressions on the same features, solved together.

A gate is a logistic regression with soft targets. Example :math:`n` wants gate :math:`k` open with
weight :math:`a_{nk}` and shut with weight :math:`b_{nk}`; with the link
:math:`u_{nk} = c_k + w_k^\top x_n` the gate minimizes

.. math:: f_k(c_k, w_k) = \sum_n \bigl[a_{nk} \log(1 + e^{-u_{nk}})
          + b_{nk} \log(1 + e^{u_{nk}})\bigr] + \frac{\lVert w_k \rVert^2}{2 \sigma^2}.

The intercept :math:`c_k` is not penalized. Gates are the columns of a matrix whose first row holds
the intercepts. They do not depend on each other, but they share the features: Newton's method runs
on all of them side by side, so that every product with the features is one matrix product.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._descent import backtrack, conjugate_gradients

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_LEAST_CURVATURE = 1e-7
_RESIDUAL_REDUCTION = 0.3
_MAX_CONJUGATE_STEPS = 20


def fit_gates(
    X: Any,
    positive: Matrix,
    negative: Matrix,
    variance: float,
    *,
    start: Matrix,
    tol: float = 1e-6,
    max_iter: int = 100,
) -> Matrix:
    r"""Minimize the objective of every gate by truncated Newton steps with backtracking.

    No gate ever ends above the objective it started with. A gate is done when the decrease that a
    diagonal model of its objective predicts, :math:`\tfrac12 g^\top D^{-1} g`, is not above `tol`,
    or when its Newton step no longer brings it down in floating-point numbers.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        The features.
    positive, negative : array of shape (n, m)
        How much each example wants each gate open, and shut; non-negative.
    variance : float
        The prior variance :math:`\sigma^2` of the coefficients.
    start : array of shape (1 + d, m)
        The gates to start from, for instance the result of a similar problem.
    tol : float, default=1e-6
        The predicted decrease of its objective at which a gate is done.
    max_iter : int, default=100
        Number of Newton steps at most.

    Returns
    -------
    gates : array of shape (1 + d, m)
    """
    precisions = np.full((len(start), 1), 1 / variance)
    precisions[0] = 0  # the intercept is not penalized
    problem = _Problem(X, positive, negative, precisions)
    squares = _mean_squares(X, positive, negative)
    gates, active = start.copy(), np.arange(start.shape[1])
    point = problem.evaluate(start, gate_links(X, start))
    before = np.full(len(active), np.inf)
    for _ in range(max_iter):
        gradient = problem.gradient(point)
        scale = problem.precisions + squares * point.curvatures.sum(axis=0)
        going = (_dot(gradient, _divide(gradient, scale)) > 2 * tol) & (point.value < before)
        if not going.any():
            break
        active, gradient, scale, positive, negative = _columns(
            going, active, gradient, scale, positive, negative
        )
        problem = problem._replace(positive=positive, negative=negative)
        point = _Point(*_columns(going, *point))
        direction = _newton_direction(problem, point, gradient, scale)
        before, point = point.value, _descend(problem, point, gradient, direction)
        gates[:, active] = point.gates
    return gates


def gate_links(X: Any, gates: Matrix) -> Matrix:
    """Give the log-odds that each gate is open for each example.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        The features.
    gates : array of shape (1 + d, m)
        Intercepts in the first row, then the coefficients.

    Returns
    -------
    links : array of shape (n, m)
    """
    return np.asarray(X @ gates[1:]) + gates[0]


def logistic_terms(
    links: Matrix, positive: Matrix, negative: Matrix
) -> tuple[Vector, Matrix, Matrix]:
    r"""Evaluate the losses of all gates and their derivatives with respect to the links.

    Parameters
    ----------
    links : array of shape (n, m)
        The log-odds :math:`u` that each gate is open.
    positive, negative : array of shape (n, m)
        The weights :math:`a` and :math:`b`.

    Returns
    -------
    values : array of shape (m,)
        :math:`\sum_n a \log(1 + e^{-u}) + b \log(1 + e^u)`.
    slopes : array of shape (n, m)
        First derivatives, :math:`b \sigma(u) - a \sigma(-u)`.
    curvatures : array of shape (n, m)
        Second derivatives, :math:`(a + b) \sigma(u) \sigma(-u)`, but never less than a tiny share
        of :math:`a + b`: Newton steps stay bounded where a gate is far on the wrong side.
    """
    small = np.exp(-np.abs(links))
    likely = 1 / (1 + small)
    unlikely = small * likely
    opened = np.where(links >= 0, likely, unlikely)
    slopes = (positive + negative) * opened - positive
    curvatures = (positive + negative) * np.maximum(likely * unlikely, _LEAST_CURVATURE)
    losses = positive * np.maximum(-links, 0) + negative * np.maximum(links, 0)
    losses += (positive + negative) * np.log1p(small)
    return losses.sum(axis=0), slopes, curvatures


class _Point(NamedTuple):
    """Gates with everything that Newton's method wants to know about them."""

    gates: Matrix
    links: Matrix
    value: Vector
    slopes: Matrix
    curvatures: Matrix


class _Problem(NamedTuple):
    """The objectives of a batch of gates."""

    X: Any
    positive: Matrix
    negative: Matrix
    precisions: Matrix

    def evaluate(self, gates: Matrix, links: Matrix) -> _Point:
        values, slopes, curvatures = logistic_terms(links, self.positive, self.negative)
        values += 0.5 * _dot(gates, self.precisions * gates)
        return _Point(gates, links, values, slopes, curvatures)

    def gradient(self, point: _Point) -> Matrix:
        return self._adjoint(point.slopes) + self.precisions * point.gates

    def hessian_product(self, curvatures: Matrix, direction: Matrix) -> Matrix:
        curved = curvatures * gate_links(self.X, direction)
        return self._adjoint(curved) + self.precisions * direction

    def _adjoint(self, links: Matrix) -> Matrix:
        return np.concatenate((links.sum(axis=0, keepdims=True), self.X.T @ links))


def _newton_direction(problem: _Problem, point: _Point, gradient: Matrix, scale: Matrix) -> Matrix:
    """Solve Hessian · direction = −gradient roughly, for all gates side by side."""
    return conjugate_gradients(
        lambda direction: problem.hessian_product(point.curvatures, direction),
        -gradient,
        inner=_dot,
        reduction=_RESIDUAL_REDUCTION,
        max_iter=_MAX_CONJUGATE_STEPS,
        precondition=lambda residual: _divide(residual, scale),
    )


def _descend(problem: _Problem, point: _Point, gradient: Matrix, direction: Matrix) -> _Point:
    """Go along the direction until the objective of each gate falls enough.

    Links are linear along the direction, so that trying a step takes no product with the features.
    """
    along = gate_links(problem.X, direction)

    def attempt(step: Vector) -> _Point:
        return problem.evaluate(point.gates + step * direction, point.links + step * along)

    return backtrack(attempt, point.value, _dot(gradient, direction))[1]


def _mean_squares(X: Any, positive: Matrix, negative: Matrix) -> Matrix:
    """Give the weighted mean square of each feature, after that of the constant."""
    weights = positive.sum(axis=1) + negative.sum(axis=1)
    weights /= max(weights.sum(), np.finfo(np.float64).tiny)
    if isinstance(X, np.ndarray):
        squares = np.einsum("n,nd,nd->d", weights, X, X)
    else:
        squares = X.multiply(X).T @ weights
    return np.concatenate(([1.0], squares))[:, np.newaxis]


def _columns(chosen: NDArray[np.bool_], *parts: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Take the same columns, or elements, of several arrays."""
    if chosen.all():
        return parts
    return tuple(np.compress(chosen, part, axis=-1) for part in parts)


def _dot(left: Matrix, right: Matrix) -> Vector:
    """Give the inner products of corresponding columns."""
    return np.asarray(np.einsum("dk,dk->k", left, right))


def _divide(numerator: Matrix, denominator: Matrix) -> Matrix:
    """Divide; nothing comes of dividing by zero."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
