r"""The margin between the candidates and all other classes.

PL-SVM wants the best candidate of every example to outscore all non-candidates by one. That loss,

.. math:: L(s) = \max\Bigl(0,\; 1 - \max_{p \in S} s_p + \max_{p \notin S} s_p\Bigr),

is not convex. With targets :math:`\pi \ge 0`, :math:`\sum_{p \in S} \pi_p = 1`, in the place of
the best candidate, it becomes a convex upper bound,

.. math:: \ell(s) = \max\Bigl(0,\; 1 - \sum_{p \in S} \pi_p s_p + \max_{p \notin S} s_p\Bigr)
          \;\ge\; L(s),

which touches it where the targets pick a best candidate. For :math:`S = \{y\}` it is the loss of
Crammer and Singer.

The dual variables of an example with weight :math:`C` are :math:`u_p \ge 0` for
:math:`p \notin S`, with the sum :math:`t = \sum_p u_p \le C`; the slopes of the scores are
:math:`u_p` on the non-candidates and :math:`-t \pi_p` on the candidates. The slope of the envelope
of sharpness :math:`\sigma C` is the maximizer of

.. math:: \sum_{p \notin S} u_p (1 + z_p - \pi^\top z)
          - \frac{1}{2 \sigma C} \Bigl(\sum_p u_p^2 + \|\pi\|^2 t^2\Bigr),

where :math:`z` are the scores moved by the multipliers. It has the form
:math:`u_p = \sigma C \max(0, z_p - \beta)`; the threshold :math:`\beta` is found by dropping the
classes below it, which raises it, until none is left to drop.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from .dual_newton import (
    Floats,
    LinearSolution,
    Report,
    Response,
    Rows,
    check_pattern,
    minimize_linear,
)

__all__ = ["PartialMarginLoss", "fit_partial_margin", "partial_margin_loss"]

_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
_BELOW_BOUND = 1.0 - 1e-12


def fit_partial_margin(
    X: Any,
    indptr: ArrayLike,
    indices: ArrayLike,
    targets: ArrayLike,
    C: ArrayLike,
    n_classes: int,
    *,
    fit_intercept: bool = True,
    state: LinearSolution | None = None,
    tol: float = 1e-4,
    max_iter: int = 1000,
    report: Report | None = None,
) -> LinearSolution:
    """Minimize half the squared norm of the weights plus the convex margin loss for given targets.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        The features.
    indptr, indices : int arrays
        The candidates, as the pattern of an n × q CSR matrix.
    targets : array of the size of `indices`
        How much each candidate counts; non-negative, with sum one in every row.
    C : float or array of shape (n,)
        The positive weight of the loss of each example.
    n_classes : int
        Number of classes q.
    fit_intercept : bool, default=True
        Whether to add a constant feature, whose weights are regularized like all others.
    state : LinearSolution, optional
        The solution for other targets or weights, to start from.
    tol : float, default=1e-4
        Stop when the duality gap is at most `tol` times the objective.
    max_iter : int, default=1000
        Largest number of steps.
    report : callable, optional
        Called before every step with the number of steps done, the objective and the gap.

    Returns
    -------
    LinearSolution

    Examples
    --------
    >>> import numpy as np
    >>> from skpll.solvers import fit_partial_margin
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> candidates = [0, 1, 3, 4, 6], [0, 0, 1, 1, 1, 2]
    >>> solution = fit_partial_margin(X, *candidates, [1, 1, 0, 1, 1, 0], 1.0, 3)
    >>> (X @ solution.coef.T + solution.intercept).argmax(axis=1)
    array([0, 0, 1, 1])
    """
    starts, classes, weights = check_pattern(X, indptr, indices, C, n_classes)
    shares = _check_targets(targets, starts)
    return minimize_linear(
        X,
        PartialMarginLoss(starts, classes, shares, weights),
        n_classes,
        fit_intercept=fit_intercept,
        state=state,
        tol=tol,
        max_iter=max_iter,
        report=report,
    )


def _check_targets(targets: ArrayLike, starts: NDArray[np.int64]) -> Floats:
    shares = np.asarray(targets, dtype=np.float64)
    if shares.shape != (starts[-1],):
        raise ValueError(f"targets: {shares.size} values for {starts[-1]} candidates.")
    sums = np.add.reduceat(shares, starts[:-1])
    lowest = np.minimum.reduceat(shares, starts[:-1])
    wrong = np.flatnonzero(~((np.abs(sums - 1) <= 1e-9) & (lowest >= 0)))
    if len(wrong):
        raise ValueError(
            f"targets: those of row {wrong[0]} have sum {sums[wrong[0]]:.6g} and minimum "
            f"{lowest[wrong[0]]:.6g}; they must be non-negative with sum one."
        )
    return shares


def partial_margin_loss(
    scores: Floats, indptr: NDArray[Any], indices: NDArray[Any], C: Floats
) -> float:
    r"""Sum the weighted losses :math:`C_i L(s_i)`, which are not convex.

    Parameters
    ----------
    scores : array of shape (n, q)
        The scores.
    indptr, indices : int arrays
        The candidates, as the pattern of an n × q CSR matrix.
    C : array of shape (n,)
        The weight of each example.

    Returns
    -------
    loss : float
    """
    return float(_loss(scores, indptr, indices, C))


class PartialMarginLoss(NamedTuple):
    """The convex loss as `minimize_linear` takes it.

    Attributes
    ----------
    indptr, indices : int arrays
        The candidates, as the pattern of an n × q CSR matrix.
    targets : array of the size of `indices`
        How much each candidate counts.
    C : array of shape (n,)
        The weight of each example.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    targets: Floats
    C: Floats

    def respond(
        self, scores: Floats, multipliers: Floats, sharpness: float, slopes: Floats
    ) -> Response:
        """Write the slopes of the envelopes to `slopes`; return the loss and the residual."""
        return Response(*_respond(self, scores, multipliers, sharpness, slopes))

    def curved_rows(self, slopes: Floats) -> Rows:
        """Give the rows whose variables can move: not all zero, nor one alone at its bound."""
        return np.flatnonzero(_curved_rows(self, slopes))

    def bend(self, rows: Rows, slopes: Floats, sharpness: float, changes: Floats) -> None:
        """Turn changes of the scores into changes of the slopes."""
        _bend(self, rows, slopes, sharpness, changes)


@njit(**_OPTIONS)
def _loss(scores, indptr, indices, C):  # type: ignore[no-untyped-def]
    n, q = scores.shape
    is_candidate = np.zeros(q, dtype=np.bool_)
    loss = 0.0
    for i in range(n):
        is_candidate[indices[indptr[i] : indptr[i + 1]]] = True
        best = -np.inf
        rival = -np.inf
        for p in range(q):
            if is_candidate[p]:
                best = max(best, scores[i, p])
                is_candidate[p] = False
            else:
                rival = max(rival, scores[i, p])
        loss += C[i] * max(0.0, 1.0 + rival - best)
    return loss


@njit(**_OPTIONS)
def _threshold(pulls, start, offset, extra):  # type: ignore[no-untyped-def]
    """Find the fixed point ``t = (offset + sum of the pulls above t) / (extra + their number)``."""
    threshold = start
    n_above = len(pulls) + 1
    while True:
        total = offset
        n_before, n_above = n_above, 0
        for pull in pulls:
            if pull > threshold:
                total += pull
                n_above += 1
        if n_above == 0 or n_above == n_before:
            return threshold
        threshold = total / (extra + n_above)


@njit(**_OPTIONS)
def _block_threshold(pulls, own, spread, width):  # type: ignore[no-untyped-def]
    r"""Solve the problem of one example.

    With :math:`F` the classes above the threshold, it is
    :math:`\beta = (o / \kappa + \sum_F z_p) / (1 / \kappa + |F|)` or, if that would make the sum of
    the variables exceed its bound, :math:`\beta = (\sum_F z_p - 1 / \sigma) / |F|`.

    Parameters
    ----------
    pulls : array
        The values :math:`z_p` of the non-candidates.
    own : float
        The value :math:`o = \pi^\top z - 1`.
    spread : float
        The value :math:`\kappa = \|\pi\|^2`.
    width : float
        The value :math:`1 / \sigma`.
    """
    threshold = _threshold(pulls, own, own / spread, 1.0 / spread)
    if threshold - own < spread * width:
        return threshold
    return _threshold(pulls, threshold, -width, 0.0)


@njit(**_OPTIONS)
def _target(problem, i, values):  # type: ignore[no-untyped-def]
    """Weigh the values of a row with its targets; also the squared norm of the targets."""
    total = 0.0
    spread = 0.0
    for k in range(problem.indptr[i], problem.indptr[i + 1]):
        total += problem.targets[k] * values[problem.indices[k]]
        spread += problem.targets[k] ** 2
    return total, spread


@njit(**_OPTIONS)
def _respond(problem, scores, multipliers, sharpness, slopes):  # type: ignore[no-untyped-def]
    n, q = scores.shape
    is_candidate = np.zeros(q, dtype=np.bool_)
    rivals = np.empty(q, dtype=np.int64)
    pulls = np.empty(q)
    loss = 0.0
    residual = 0.0
    for i in range(n):
        C = problem.C[i]
        first, last = problem.indptr[i], problem.indptr[i + 1]
        target, spread = _target(problem, i, scores[i])
        is_candidate[problem.indices[first:last]] = True
        n_rivals = 0
        multiplier = 0.0
        top = -np.inf
        for p in range(q):
            if is_candidate[p]:
                is_candidate[p] = False
                continue
            share = multipliers[i, p] / C
            multiplier += share
            top = max(top, scores[i, p])
            rivals[n_rivals] = p
            pulls[n_rivals] = scores[i, p] + share / sharpness
            n_rivals += 1
        own = target - 1.0 - spread * multiplier / sharpness
        threshold = _block_threshold(pulls[:n_rivals], own, spread, 1.0 / sharpness)
        hinge = max(0.0, 1.0 + top - target)
        total = 0.0
        for k in range(n_rivals):
            p = rivals[k]
            slopes[i, p] = C * sharpness * max(0.0, pulls[k] - threshold)
            residual += slopes[i, p] * (hinge - 1.0 - scores[i, p] + target)
            total += slopes[i, p]
        for k in range(first, last):
            slopes[i, problem.indices[k]] = -total * problem.targets[k]
        loss += C * hinge
        residual += max(0.0, C - total) * hinge
    return loss, residual


@njit(**_OPTIONS)
def _curved_rows(problem, slopes):  # type: ignore[no-untyped-def]
    n, q = slopes.shape
    curved = np.zeros(n, dtype=np.bool_)
    for i in range(n):
        n_positive = 0
        total = 0.0
        for p in range(q):
            if slopes[i, p] > 0.0:
                n_positive += 1
                total += slopes[i, p]
        curved[i] = n_positive > 1 or 0.0 < total < _BELOW_BOUND * problem.C[i]
    return curved


@njit(**_OPTIONS)
def _bend(problem, rows, slopes, sharpness, changes):  # type: ignore[no-untyped-def]
    q = slopes.shape[1]
    for r in range(len(rows)):
        i = rows[r]
        gain = sharpness * problem.C[i]
        own, spread = _target(problem, i, changes[r])
        n_positive = 0
        total = 0.0
        pull = 0.0
        for p in range(q):
            if slopes[i, p] > 0.0:
                n_positive += 1
                total += slopes[i, p]
                pull += changes[r, p]
        if total < _BELOW_BOUND * problem.C[i]:
            moved = (pull - n_positive * own) / (1.0 + spread * n_positive)
            shift = own + spread * moved
        else:
            moved = 0.0
            shift = pull / n_positive
        for p in range(q):
            changes[r, p] = gain * (changes[r, p] - shift) if slopes[i, p] > 0.0 else 0.0
        for k in range(problem.indptr[i], problem.indptr[i + 1]):
            changes[r, problem.indices[k]] = -gain * moved * problem.targets[k]
