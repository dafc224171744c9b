r"""The convex loss of partial labels: one term for the candidates, one for every other class.

For an example with candidates :math:`S`, weight :math:`C` and scores :math:`s`,

.. math:: \ell(s) = C \Bigl[ \psi\Bigl(\frac{1}{|S|} \sum_{p \in S} s_p\Bigr)
          + \sum_{p \notin S} \psi(-s_p) \Bigr], \qquad
          \psi(z) = \max(0, 1 - z)^2 \;\text{or}\; \max(0, 1 - z).

The terms see different classes, and so are orthogonal directions of the scores: everything that
`skpll.solvers.dual_newton` asks of a loss falls apart into terms. A term has the violation
:math:`v = 1 - z` and a dual variable :math:`u \ge 0`; the slopes of the scores are :math:`-u/|S|`
on the candidates and :math:`u` on another class. For the squared hinge
:math:`u = 2 C \max(0, v)`. For the hinge, :math:`0 \le u \le C`, and the slope of the envelope
around the multiplier :math:`m` is :math:`u = \min(C, \max(0, m + \sigma C k v))`, where :math:`k`
is :math:`|S|` for the candidates and 1 for another class.
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

__all__ = ["ConvexPartialLoss", "fit_convex_partial"]

_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
_BELOW_BOUND = 1.0 - 1e-12


def fit_convex_partial(
    X: Any,
    indptr: ArrayLike,
    indices: ArrayLike,
    C: ArrayLike,
    n_classes: int,
    *,
    loss: str = "squared_hinge",
    fit_intercept: bool = True,
    tol: float = 1e-8,
    max_iter: int = 1000,
    report: Report | None = None,
) -> LinearSolution:
    """Minimize half the squared norm of the weights plus the convex loss of partial labels.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        The features.
    indptr, indices : int arrays
        The candidates, as the pattern of an n × q CSR matrix.
    C : float or array of shape (n,)
        The positive weight of the loss of each example.
    n_classes : int
        Number of classes q.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        The function ψ.
    fit_intercept : bool, default=True
        Whether to add a constant feature, whose weights are regularized like all others.
    tol : float, default=1e-8
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
    >>> from skpll.solvers import fit_convex_partial
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> solution = fit_convex_partial(X, [0, 1, 3, 4, 6], [0, 0, 1, 1, 1, 2], 1.0, 3)
    >>> (X @ solution.coef.T + solution.intercept).argmax(axis=1)
    array([0, 0, 1, 1])
    """
    if loss not in ("squared_hinge", "hinge"):
        raise ValueError(f"loss: {loss!r} is unknown; use 'squared_hinge' or 'hinge'.")
    starts, classes, weights = check_pattern(X, indptr, indices, C, n_classes)
    return minimize_linear(
        X,
        ConvexPartialLoss(starts, classes, weights, loss == "squared_hinge"),
        n_classes,
        fit_intercept=fit_intercept,
        tol=tol,
        max_iter=max_iter,
        report=report,
    )


class ConvexPartialLoss(NamedTuple):
    """The loss as `minimize_linear` takes it.

    Attributes
    ----------
    indptr, indices : int arrays
        The candidates, as the pattern of an n × q CSR matrix.
    C : array of shape (n,)
        The weight of each example.
    squared : bool
        Whether ψ is the squared hinge.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    C: Floats
    squared: bool

    def respond(
        self, scores: Floats, multipliers: Floats, sharpness: float, slopes: Floats
    ) -> Response:
        """Write the slopes to `slopes`; return the loss and the residual."""
        return Response(*_respond(self, scores, multipliers, sharpness, slopes))

    def curved_rows(self, slopes: Floats) -> Rows:
        """Give the rows with a term whose variable is not at a bound."""
        return np.flatnonzero(_curved_rows(self, slopes))

    def bend(self, rows: Rows, slopes: Floats, sharpness: float, changes: Floats) -> None:
        """Turn changes of the scores into changes of the slopes."""
        _bend(self, rows, slopes, sharpness, changes)


@njit(**_OPTIONS)
def _term(violation, C, multiplier, gain, squared):  # type: ignore[no-untyped-def]
    """Variable, loss and residual of a term."""
    hinge = max(0.0, violation)
    if squared:
        return 2.0 * C * hinge, C * hinge**2, 0.0
    u = min(C, max(0.0, multiplier + gain * violation))
    return u, C * hinge, (C - u) * hinge + u * max(0.0, -violation)


@njit(**_OPTIONS)
def _is_free(u, C, squared):  # type: ignore[no-untyped-def]
    """Whether a small change of the score changes the variable of a term."""
    return u > 0.0 and (squared or u < _BELOW_BOUND * C)


@njit(**_OPTIONS)
def _respond(problem, scores, multipliers, sharpness, slopes):  # type: ignore[no-untyped-def]
    n, q = scores.shape
    is_candidate = np.zeros(q, dtype=np.bool_)
    loss = 0.0
    residual = 0.0
    for i in range(n):
        candidates = problem.indices[problem.indptr[i] : problem.indptr[i + 1]]
        size = len(candidates)
        C = problem.C[i]
        gain = sharpness * C
        mean = 0.0
        for p in candidates:
            is_candidate[p] = True
            mean += scores[i, p] / size
        own_multiplier = -size * multipliers[i, candidates[0]]
        own, own_loss, own_residual = _term(
            1.0 - mean, C, own_multiplier, gain * size, problem.squared
        )
        loss += own_loss
        residual += own_residual
        for p in range(q):
            if is_candidate[p]:
                slopes[i, p] = -own / size
                is_candidate[p] = False
                continue
            slopes[i, p], term_loss, term_residual = _term(
                1.0 + scores[i, p], C, multipliers[i, p], gain, problem.squared
            )
            loss += term_loss
            residual += term_residual
    return loss, residual


@njit(**_OPTIONS)
def _curved_rows(problem, slopes):  # type: ignore[no-untyped-def]
    n, q = slopes.shape
    curved = np.zeros(n, dtype=np.bool_)
    for i in range(n):
        C = problem.C[i]
        candidates = problem.indices[problem.indptr[i] : problem.indptr[i + 1]]
        own = -slopes[i, candidates[0]] * len(candidates)
        curved[i] = _is_free(own, C, problem.squared)
        for p in range(q):
            if curved[i]:
                break
            curved[i] = _is_free(slopes[i, p], C, problem.squared)
    return curved


@njit(**_OPTIONS)
def _bend(problem, rows, slopes, sharpness, changes):  # type: ignore[no-untyped-def]
    q = slopes.shape[1]
    is_candidate = np.zeros(q, dtype=np.bool_)
    for r in range(len(rows)):
        i = rows[r]
        candidates = problem.indices[problem.indptr[i] : problem.indptr[i + 1]]
        size = len(candidates)
        C = problem.C[i]
        gain = 2.0 * C if problem.squared else sharpness * C
        own_gain = gain / size if problem.squared else gain
        mean = 0.0
        for p in candidates:
            is_candidate[p] = True
            mean += changes[r, p] / size
        own = -slopes[i, candidates[0]] * size
        own_change = own_gain * mean if _is_free(own, C, problem.squared) else 0.0
        for p in range(q):
            if is_candidate[p]:
                changes[r, p] = own_change
                is_candidate[p] = False
            elif _is_free(slopes[i, p], C, problem.squared):
                changes[r, p] *= gain
            else:
                changes[r, p] = 0.0
