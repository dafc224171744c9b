r"""Newton's method for linear models with a convex loss on the scores, smooth or not.

The problem is

.. math:: \min_W \; P(W) = \tfrac12 \|W\|_F^2 + \sum_i \ell_i(s_i), \qquad s_i = W x_i,

with one row of :math:`W` for each class; a constant feature may play the part of the intercept.
Its dual has a vector of slopes :math:`g_i` for each example and reads, with the conjugates
:math:`\ell_i^*` and :math:`W(G) = -\sum_i g_i x_i^\top`,

.. math:: \max_G \; D(G) = -\tfrac12 \|W(G)\|_F^2 - \sum_i \ell_i^*(g_i).

*A smooth loss* has the slopes :math:`g_i = \nabla \ell_i(s_i)`, and the gradient of the primal
problem is :math:`W - W(G)`. Newton's method solves it; each step is found by conjugate gradients,
which need nothing but products with the features.

*A loss with kinks* is replaced by its Moreau envelope around multipliers :math:`m_i`, the slopes of
the round before: :math:`g_i` is then the slope of the envelope of width :math:`1/\sigma` at
:math:`s_i + m_i / \sigma`. Newton's method solves the smooth problem, the slopes found become the
multipliers, the sharpness :math:`\sigma` grows, and so on. This is the method of multipliers (a
proximal method for the dual problem): it needs few rounds and, unlike a smoothed loss, ends at the
optimum of the problem itself. Examples whose slopes do not react to small changes of their scores
take no part in the conjugate gradients.

The certificate is the duality gap, a sum of non-negative terms without cancellation:

.. math:: P(W) - D(G) = \tfrac12 \|W - W(G)\|_F^2
          + \sum_i \bigl(\ell_i(s_i) + \ell_i^*(g_i) - g_i^\top s_i\bigr).

A round ends when the first term is small in comparison with the second, the *residual*.

Features as they come, with lengths in the thousands, make systems that conjugate gradients don't
solve. Once many were left unsolved, those that follow are *preconditioned*: by the blocks of the
matrix that belong to one class each, where these are small enough to be factored.

References
----------
R. T. Rockafellar: Augmented Lagrangians and applications of the proximal point algorithm in convex
programming. Mathematics of Operations Research 1(2), 1976.

X.-Y. Zhao, D. Sun, K.-C. Toh: A Newton-CG augmented Lagrangian method for semidefinite programming.
SIAM Journal on Optimization 20(4), 2010.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from skpll._typing import Floats, Ints
from skpll.engine.arrays import Matrix, is_sparse

from ._descent import conjugate_gradients, with_constant

Rows = NDArray[np.intp]
Report = Callable[[int, float, float], object]
Bend = Callable[[Floats], None]
Response = tuple[float, float]
"""The sum of the losses and the residual, which is the sum of ℓᵢ(sᵢ) + ℓᵢ*(gᵢ) − gᵢ·sᵢ."""

START_SHARPNESS = 1.0

SHARPNESS_GROWTH = 2.0
"""Factor of the sharpness if a round leaves more than `GOOD_PROGRESS` of the residual."""

GOOD_PROGRESS = 0.5

ROUND_END = 0.3
"""A round ends when the distance to its optimum is below this share of the residual."""

MAX_CONJUGATE_STEPS = 250
CONJUGATE_REDUCTION = 0.1

MAX_UNSOLVED = 30
"""After this number of unsolved systems, the blocks of the classes are factored."""

MAX_FACTORED = 2**24
"""Largest number of entries of all blocks."""

BLOCK_ROUNDING = 1e-12
MAX_LINE_STEPS = 30

BELOW_BOUND = 1.0 - 1e-12
"""Variables below this share of their bound can grow; others are at the bound but for rounding."""

FLAT_SLOPE = 0.1
"""A step is long enough if the slope there is below this share of the first."""


class RowLoss(Protocol):
    """A convex loss that is a sum over the rows of a matrix of scores (n × q)."""

    def respond(
        self, scores: Floats, multipliers: Floats, sharpness: float, slopes: Floats
    ) -> Response:
        """Write the slopes of the envelopes (of the losses, where they are smooth) to `slopes`."""

    def curvature(self, slopes: Floats, sharpness: float) -> tuple[Rows, Bend]:
        """Return the rows whose slopes react to small changes of their scores, and how.

        The function replaces changes of the scores of these rows by those of the slopes they cause.
        """


@dataclass(frozen=True, slots=True)
class LinearSolution:
    r"""Solution of a linear problem with its certificate, and the state of a warm start.

    Attributes
    ----------
    coef : array of shape (q, d)
        The weight vectors.
    intercept : array of shape (q,)
        The intercepts: the scores of `X` are ``X @ coef.T + intercept``.
    objective : float
        The value of the primal problem.
    gap : float
        The duality gap: by how much `objective` can at most exceed the optimum.
    n_iter : int
        Number of Newton steps and changes of the multipliers.
    converged : bool
        Whether the gap has reached the tolerance.
    scores : array of shape (n, q)
        The scores of the examples.
    slopes : array of shape (n, q)
        The dual solution.
    """

    coef: Floats
    intercept: Floats
    objective: float
    gap: float
    n_iter: int
    converged: bool
    scores: Floats
    slopes: Floats


def minimize_linear(
    X: Matrix,
    loss: RowLoss,
    n_classes: int,
    *,
    fit_intercept: bool = True,
    state: LinearSolution | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
    report: Report | None = None,
) -> LinearSolution:
    """Minimize half the squared norm of the weights plus a convex loss on the scores.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        The features.
    loss : RowLoss
        The loss.
    n_classes : int
        Number of classes q, the columns of the scores.
    fit_intercept : bool, default=True
        Whether to add a constant feature, whose weights are regularized like all others.
    state : LinearSolution, optional
        The solution of a similar problem to start from.
    tol : float, default=1e-8
        Stop when the duality gap is at most `tol` times the objective.
    max_iter : int, default=1000
        Largest number of steps.
    report : callable, optional
        Called before every step with the number of steps done, the objective and the gap.

    Returns
    -------
    LinearSolution
    """
    W, multipliers = np.zeros((n_classes, X.shape[1])), np.zeros((X.shape[0], n_classes))
    intercept = np.zeros(n_classes)
    if state is not None:
        W, intercept, multipliers = state.coef.copy(), state.intercept, state.slopes.copy()
    design = X.astype(np.float64, copy=False)
    if fit_intercept:
        design, W = with_constant(design), np.column_stack([intercept, W])
    search = _Search(design, loss, W, multipliers)
    n_iter = 0
    while True:
        search.look()
        if report is not None:
            report(n_iter, search.objective, search.gap)
        converged = search.gap <= tol * search.objective
        if converged or n_iter >= max_iter:
            break
        if search.distance <= ROUND_END * search.residual:
            search.change_multipliers()
        else:
            search.step()
        n_iter += 1
    return LinearSolution(
        coef=np.ascontiguousarray(search.W[:, 1:]) if fit_intercept else search.W,
        intercept=search.W[:, 0].copy() if fit_intercept else np.zeros(n_classes),
        objective=search.objective,
        gap=search.gap,
        n_iter=n_iter,
        converged=converged,
        scores=search.scores,
        slopes=search.slopes,
    )


class ConvexPartialLoss:
    r"""The convex loss of partial labels: one term for the candidates, one for every other class.

    For an example with candidates :math:`S`, weights :math:`a` and :math:`b`, and scores :math:`s`,

    .. math:: \ell(s) = a\, \psi\Bigl(\frac{1}{|S|} \sum_{p \in S} s_p\Bigr)
              + b \sum_{p \notin S} \psi(-s_p), \qquad
              \psi(z) = \max(0, 1 - z)^2 \;\text{or}\; \max(0, 1 - z).

    The terms see different classes, and so are orthogonal directions of the scores: everything that
    `minimize_linear` asks of a loss falls apart into terms. They are kept in n × q matrices, that
    of the candidates in the place of the first candidate. With :math:`t = -\sum_{p \in S} s_p` and
    the share :math:`f = 1/|S|` for the candidates, :math:`t = s_p` and :math:`f = 1` for another
    class, a term of weight :math:`c` has the violation :math:`v = 1 + f t` and a variable
    :math:`u \ge 0`, and its slope by :math:`t` is :math:`f u`. For the squared hinge
    :math:`u = 2 c \max(0, v)`; for the hinge :math:`u \le c`, and the slope of the envelope around
    the multiplier :math:`m` is :math:`u = \min(c, \max(0, m + \sigma c v / f))`.

    Parameters
    ----------
    indptr, indices : int arrays
        The candidates, as the pattern of an n × q CSR matrix.
    own_weights, weights : arrays of shape (n,)
        The weight of each example in the term of its candidates, and in those of other classes.
    n_classes : int
        Number of classes q.
    squared : bool
        Whether ψ is the squared hinge.
    """

    def __init__(
        self,
        indptr: Ints,
        indices: Ints,
        own_weights: Floats,
        weights: Floats,
        n_classes: int,
        squared: bool,
    ) -> None:
        n, sizes = len(weights), np.diff(indptr)
        self.rows, self.columns = np.repeat(np.arange(n), sizes), indices
        self.first = np.arange(n), indices[indptr[:-1]]
        self.weights = np.repeat(weights[:, np.newaxis], n_classes, axis=1)
        self.weights[self.rows, self.columns] = 0.0
        self.weights[self.first] = own_weights
        self.shares = np.ones((n, n_classes))
        self.shares[self.first] = 1 / sizes
        self.squared = squared

    def respond(
        self, scores: Floats, multipliers: Floats, sharpness: float, slopes: Floats
    ) -> Response:
        """Write the slopes to `slopes`; return the loss and the residual."""
        violations = self._terms(scores)
        violations *= self.shares
        violations += 1
        costs = np.maximum(violations, 0)
        if self.squared:
            np.multiply(self.weights, costs, out=slopes)
            loss, residual = float(np.vdot(slopes, costs)), 0.0
            slopes *= 2
        else:
            costs *= self.weights
            np.divide(self.weights, self.shares, out=slopes)
            slopes *= violations
            slopes *= sharpness
            slopes += self._terms(multipliers)
            np.clip(slopes, 0, self.weights, out=slopes)
            loss, residual = float(costs.sum()), float(np.sum(costs - slopes * violations))
        slopes *= self.shares
        slopes[self.rows, self.columns] = -slopes[self.first][self.rows]
        return loss, residual

    def curvature(self, slopes: Floats, sharpness: float) -> tuple[Rows, Bend]:
        """Return the rows with a term whose variable is not at a bound, and how these react."""
        u = self._terms(slopes)
        free = u > 0
        if not self.squared:
            free &= u < BELOW_BOUND * self.weights
        chosen = np.asarray(free.any(axis=1))
        rows, here = np.flatnonzero(chosen), chosen[self.rows]
        places, columns = (np.cumsum(chosen) - 1)[self.rows[here]], self.columns[here]
        first = np.arange(len(rows)), self.first[1][rows]
        gains = self.weights[rows] * self.shares[rows] * free[rows]
        gains *= 2 * self.shares[rows] if self.squared else sharpness

        def bend(changes: Floats) -> None:
            changes[first] = np.bincount(places, changes[places, columns], len(rows))
            changes *= gains
            changes[places, columns] = changes[first][places]

        return rows, bend

    def _terms(self, values: Floats) -> Floats:
        """Return the values t of all terms: minus the sum over the candidates, or a value."""
        terms = values.copy()
        terms[self.rows, self.columns] = 0.0
        sums = np.bincount(self.rows, values[self.rows, self.columns], len(values))
        terms[self.first] = -sums
        return terms


class _System:
    """The generalized Hessian of a round.

    Parameters
    ----------
    X : array or CSR matrix
        The examples whose slopes react to small changes of their scores.
    bend : callable
        How they react.
    """

    def __init__(self, X: Matrix, bend: Bend) -> None:
        self.X, self.bend, self.n_products = X, bend, 0

    def product(self, direction: Floats) -> Floats:
        self.n_products += 1
        changes = np.asarray(self.X @ direction.T)
        self.bend(changes)
        return direction + np.asarray(self.X.T @ changes).T

    def block_inverse(self, n_classes: int) -> Callable[[Floats], Floats]:
        """Factor the block of each class: what its own scores do to its own weights."""
        factors = []
        for p in range(n_classes):
            changes = np.zeros((self.X.shape[0], n_classes))
            changes[:, p] = 1.0
            self.bend(changes)
            block = (self.X * changes[:, p, np.newaxis]).T @ self.X
            block.flat[:: len(block) + 1] += 1.0 + BLOCK_ROUNDING * block.trace()
            factors.append(cho_factor(block))
        return lambda residual: np.stack(
            [cho_solve(factor, row) for factor, row in zip(factors, residual, strict=True)]
        )


class _Search:
    """The weights, scores, slopes and multipliers while the search goes on."""

    def __init__(self, X: Matrix, loss: RowLoss, W: Floats, multipliers: Floats) -> None:
        self.X, self.loss, self.W, self.multipliers = X, loss, W, multipliers
        self.scores = np.asarray(X @ W.T)
        self.slopes = np.empty_like(self.multipliers)
        self.sharpness = START_SHARPNESS
        self.last_residual = np.inf
        self.n_unsolved = 0

    def look(self) -> None:
        """Update the slopes, the gradient, the objective and the gap."""
        loss, self.residual = self._respond(self.scores)
        self.gradient = self.W + np.asarray(self.X.T @ self.slopes).T
        self.distance = 0.5 * _inner(self.gradient, self.gradient)
        self.objective = 0.5 * _inner(self.W, self.W) + loss
        self.gap = self.distance + self.residual

    def change_multipliers(self) -> None:
        """Begin a new round, with a sharper envelope where the last one did not gain much."""
        self.multipliers, self.slopes = self.slopes, self.multipliers
        if self.residual > GOOD_PROGRESS * self.last_residual:
            self.sharpness *= SHARPNESS_GROWTH
        self.last_residual = self.residual

    def step(self) -> None:
        """Take a Newton step on the smooth problem of the round."""
        share = np.sqrt(2 * self.distance / self.objective) if self.objective > 0 else 0.0
        rows, bend = self.loss.curvature(self.slopes, self.sharpness)
        system = _System(self.X if len(rows) == self.X.shape[0] else self.X[rows], bend)
        direction = conjugate_gradients(
            system.product,
            -self.gradient,
            inner=_inner,
            reduction=min(CONJUGATE_REDUCTION, share),
            max_iter=MAX_CONJUGATE_STEPS,
            precondition=system.block_inverse(len(self.W)) if self._is_hard() else None,
        )
        self.n_unsolved += system.n_products == MAX_CONJUGATE_STEPS
        change = np.asarray(self.X @ direction.T)
        length = self._step_length(direction, change)
        self.W += length * direction
        self.scores += length * change

    def _is_hard(self) -> bool:
        size = self.W.size * self.W.shape[1]
        return self.n_unsolved >= MAX_UNSOLVED and size <= MAX_FACTORED and not is_sparse(self.X)

    def _respond(self, scores: Floats) -> Response:
        return self.loss.respond(scores, self.multipliers, self.sharpness, self.slopes)

    def _step_length(self, direction: Floats, change: Floats) -> float:
        """Find where the slope along the direction is nearly zero; at most the full step.

        The slope rises with the length. Once it is known on both sides of zero, the next guess is
        the zero of the line through the two values, kept away from both ends.
        """
        first_slope = _inner(self.gradient, direction)
        along, across = _inner(self.W, direction), _inner(direction, direction)
        low, low_slope = 0.0, first_slope
        high, high_slope = 1.0, np.inf
        length = 1.0
        for _ in range(MAX_LINE_STEPS):
            self._respond(self.scores + length * change)
            slope = along + length * across + _inner(self.slopes, change)
            if abs(slope) <= -FLAT_SLOPE * first_slope or (slope < 0 and length == 1.0):
                break
            if slope < 0:
                low, low_slope = length, slope
            else:
                high, high_slope = length, slope
            share = low_slope / (low_slope - high_slope)
            length = low + min(0.9, max(0.1, share)) * (high - low)
        return length


def _inner(a: Floats, b: Floats) -> float:
    return float(np.vdot(a, b))
