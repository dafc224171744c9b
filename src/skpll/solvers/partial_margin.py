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

where :math:`z` are the scores moved by the multipliers: the problem of a block in the sequential
dual method, with the norm :math:`1 / (\sigma C)`.

Where targets pick a single candidate, this is the problem of Crammer and Singer in which the other
candidates don't compete, and the sequential dual method solves it. Newton's method solves the
others, and does the rest where the sequential method is slow.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skpll._typing import Floats, Ints
from skpll.engine.arrays import Matrix

from . import _margin_kernels as kernels
from .crammer_singer import CrammerSingerResult, fit_crammer_singer, row_starts
from .dual_newton import Bend, LinearSolution, Response, Rows, minimize_linear

Start: TypeAlias = LinearSolution | None

MAX_SWEEPS = 1000
"""Number of sweeps after which the sequential dual method gives up."""


def fit_partial_margin(
    X: Matrix,
    loss: PartialMarginLoss,
    n_classes: int,
    *,
    fit_intercept: bool = True,
    state: Start = None,
    tol: float = 1e-4,
    max_iter: int = 1000,
) -> LinearSolution:
    """Minimize half the squared norm of the weights plus the convex margin loss for given targets.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        The features.
    loss : PartialMarginLoss
        The candidates with their targets, and the weights of the examples.
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

    Returns
    -------
    LinearSolution
    """
    if np.isin(loss.targets, (0.0, 1.0)).all():
        state = _fit_to_single_targets(X, loss, n_classes, fit_intercept, state, tol)
        if state.converged:
            return state
    return minimize_linear(
        X, loss, n_classes, fit_intercept=fit_intercept, state=state, tol=tol, max_iter=max_iter
    )


def _fit_to_single_targets(
    X: Matrix,
    loss: PartialMarginLoss,
    n_classes: int,
    fit_intercept: bool,
    state: Start,
    tol: float,
) -> LinearSolution:
    """Solve the problem in which every example has one target, by the sequential dual method."""
    rows = np.repeat(np.arange(len(loss.C)), np.diff(loss.indptr))
    is_target = loss.targets == 1
    own, others = loss.indices[is_target].astype(np.int32), ~is_target
    found = fit_crammer_singer(
        X,
        own,
        loss.C,
        n_classes,
        state=None if state is None else _as_start(state, loss.C, own),
        tol=tol,
        max_iter=MAX_SWEEPS,
        fit_intercept=fit_intercept,
        absent=(row_starts(rows[others], len(own)), loss.indices[others]),
    )
    duals = found.dual_values, found.dual_classes, found.dual_indptr
    slopes = sparse.csr_array(duals, shape=(len(own), n_classes)).toarray()
    slopes[np.arange(len(own)), own] = -slopes.sum(axis=1)
    return LinearSolution(
        coef=found.coef,
        intercept=found.intercept,
        objective=found.objective,
        gap=found.gap,
        n_iter=found.n_iter,
        converged=found.converged,
        scores=np.asarray(X @ found.coef.T, dtype=np.float64) + found.intercept,
        slopes=slopes,
    )


def _as_start(state: LinearSolution, C: Floats, own: NDArray[np.int32]) -> CrammerSingerResult:
    """Turn a solution for other targets or weights into a start for these targets."""
    duals = np.maximum(state.slopes, 0.0)
    totals = duals.sum(axis=1)
    over = totals > C
    duals[over] *= (C[over] / totals[over])[:, np.newaxis]
    stored = sparse.csr_array(duals)
    return CrammerSingerResult(
        coef=state.coef,
        intercept=state.intercept,
        y=own,
        C=C,
        dual_indptr=stored.indptr.astype(np.int64),
        dual_classes=stored.indices.astype(np.int32),
        dual_values=stored.data,
    )


def partial_margin_loss(scores: Floats, indptr: Ints, indices: Ints, C: Floats) -> float:
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
    rows = np.repeat(np.arange(len(scores)), np.diff(indptr))
    best = np.maximum.reduceat(scores[rows, indices], indptr[:-1])
    rivals = scores.copy()
    rivals[rows, indices] = -np.inf
    return float(C @ np.maximum(0, 1 + rivals.max(axis=1) - best))


class PartialMarginLoss(NamedTuple):
    """The convex loss as `minimize_linear` takes it.

    Attributes
    ----------
    indptr, indices : int arrays
        The candidates, as the pattern of an n × q CSR matrix.
    targets : array of the size of `indices`
        How much each candidate counts; non-negative, with sum one in every row.
    C : array of shape (n,)
        The positive weight of each example.
    """

    indptr: Ints
    indices: Ints
    targets: Floats
    C: Floats

    def respond(
        self, scores: Floats, multipliers: Floats, sharpness: float, slopes: Floats
    ) -> Response:
        """Write the slopes of the envelopes to `slopes`; return the loss and the residual."""
        room = np.empty((2, scores.shape[1]))
        loss, residual = kernels.respond(self, scores, multipliers, sharpness, slopes, room)
        return float(loss), float(residual)

    def curvature(self, slopes: Floats, sharpness: float) -> tuple[Rows, Bend]:
        """Return the rows whose variables can move: not all zero, nor one alone at its bound."""
        positive = np.maximum(slopes, 0)
        totals = positive.sum(axis=1)
        below = (totals > 0) & (totals < kernels.BELOW_BOUND * self.C)
        rows = np.flatnonzero(below | (np.count_nonzero(positive, axis=1) > 1))
        return rows, partial(kernels.bend, self, rows, slopes, sharpness)
