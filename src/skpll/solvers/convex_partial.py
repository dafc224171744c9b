r"""The convex loss of partial labels: one term for the candidates, one for every other class.

For an example with candidates :math:`S`, weight :math:`C`, weight :math:`a` of the candidates and
scores :math:`s`,

.. math:: \ell(s) = C \Bigl[ a\, \psi\Bigl(\frac{1}{|S|} \sum_{p \in S} s_p\Bigr)
          + \sum_{p \notin S} \psi(-s_p) \Bigr], \qquad
          \psi(z) = \max(0, 1 - z)^2 \;\text{or}\; \max(0, 1 - z).

The terms see different classes, and so are orthogonal directions of the scores: everything that
`skpll.solvers.dual_newton` asks of a loss falls apart into terms. A term has the violation
:math:`v = 1 - z` and a dual variable :math:`u \ge 0`; the slopes of the scores are :math:`-u/|S|`
on the candidates and :math:`u` on another class. With :math:`C` the weight of the term, for the
squared hinge :math:`u = 2 C \max(0, v)`; for the hinge :math:`0 \le u \le C`, and the slope of the
envelope around the multiplier :math:`m` is :math:`u = \min(C, \max(0, m + \sigma C k v))`, where
:math:`k` is :math:`|S|` for the candidates and 1 for another class.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpll._docs import documented
from skpll._typing import Floats
from skpll.engine.arrays import Matrix

from .dual_newton import (
    Bend,
    LinearSolution,
    Report,
    Response,
    Rows,
    check_pattern,
    minimize_linear,
)

_BELOW_BOUND = 1.0 - 1e-12


@documented
def fit_convex_partial(
    X: Matrix,
    indptr: ArrayLike,
    indices: ArrayLike,
    C: ArrayLike,
    n_classes: int,
    *,
    loss: str = "squared_hinge",
    candidate_weight: ArrayLike = 1.0,
    fit_intercept: bool = True,
    tol: float = 1e-8,
    max_iter: int = 1000,
    report: Report | None = None,
) -> LinearSolution:
    """Minimize half the squared norm of the weights plus the convex loss of partial labels.

    <<Parameters: pattern>>
    C : float or array of shape (n,)
        The positive weight of the loss of each example.
    n_classes : int
        Number of classes q.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        The function ψ.
    candidate_weight : float or array of shape (n,), default=1.0
        The weight a of the term of the candidates against that of any other class.
    <<constant_feature>>
    tol : float, default=1e-8
        Stop when the duality gap is at most `tol` times the objective.
    <<until>>

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
        ConvexPartialLoss(
            starts,
            classes,
            weights,
            weights * np.asarray(candidate_weight, dtype=np.float64),
            loss == "squared_hinge",
        ),
        n_classes,
        fit_intercept=fit_intercept,
        tol=tol,
        max_iter=max_iter,
        report=report,
    )


class ConvexPartialLoss:
    """The loss as `minimize_linear` takes it.

    Parameters
    ----------
    indptr, indices : int arrays
        The candidates, as the pattern of an n × q CSR matrix.
    C, own_C : arrays of shape (n,)
        The weight of each example in the terms of other classes, and in that of its candidates.
    squared : bool
        Whether ψ is the squared hinge.
    """

    def __init__(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int64],
        C: Floats,
        own_C: Floats,
        squared: bool,
    ) -> None:
        self.sizes = np.diff(indptr)
        self.rows, self.columns = np.repeat(np.arange(len(C)), self.sizes), indices
        self.C, self.own_C = C, own_C
        self.squared = squared

    def respond(
        self, scores: Floats, multipliers: Floats, sharpness: float, slopes: Floats
    ) -> Response:
        """Write the slopes to `slopes`; return the loss and the residual."""
        own_scores = self._own(scores) / self.sizes
        own, own_response = self._terms(
            1 - own_scores, self.own_C, -self._own(multipliers), sharpness * self.sizes
        )
        slopes[:], response = self._terms(
            self._others(1 + scores), self.C[:, np.newaxis], multipliers, sharpness
        )
        slopes[self.rows, self.columns] = np.repeat(-own / self.sizes, self.sizes)
        return Response(*(a + b for a, b in zip(own_response, response, strict=True)))

    def curvature(self, slopes: Floats, sharpness: float) -> tuple[Rows, Bend]:
        """Return the rows with a term whose variable is not at a bound, and how these react."""
        free = self._is_free(slopes, self.C[:, np.newaxis])
        own_free = self._is_free(-self._own(slopes), self.own_C)
        chosen = own_free | free.any(axis=1)
        rows, here = np.flatnonzero(chosen), chosen[self.rows]
        places, columns = (np.cumsum(chosen) - 1)[self.rows[here]], self.columns[here]
        sizes = self.sizes[rows]
        starts = np.cumsum(sizes) - sizes
        gain = 2.0 if self.squared else sharpness
        gains = gain * self.C[rows, np.newaxis] * free[rows]
        own_gains = gain * self.own_C[rows] * own_free[rows] / sizes
        if self.squared:
            own_gains /= sizes

        def bend(changes: Floats) -> None:
            own = own_gains * np.add.reduceat(changes[places, columns], starts)
            changes *= gains
            changes[places, columns] = np.repeat(own, sizes)

        return rows, bend

    def _terms(
        self, violations: Floats, C: Floats, multipliers: Floats, sharpness: float | Floats
    ) -> tuple[Floats, tuple[float, float]]:
        """Variables of terms, and the sums of their losses and residuals."""
        hinges = np.maximum(violations, 0)
        if self.squared:
            return 2 * C * hinges, (float(np.sum(C * hinges**2)), 0.0)
        u = np.clip(multipliers + sharpness * C * violations, 0, C)
        residuals = (C - u) * hinges - u * np.minimum(violations, 0)
        return u, (float(np.sum(C * hinges)), float(np.sum(residuals)))

    def _is_free(self, u: Floats, C: Floats) -> NDArray[np.bool_]:
        """Whether a small change of the score changes the variable of a term."""
        return u > 0 if self.squared else (u > 0) & (u < _BELOW_BOUND * C)

    def _own(self, values: Floats) -> Floats:
        """Sum over the candidates of each row."""
        own = values[self.rows, self.columns]
        return np.bincount(self.rows, own, len(self.sizes)).astype(np.float64, copy=False)

    def _others(self, violations: Floats) -> Floats:
        """Leave out the candidates, which have no terms of their own."""
        violations[self.rows, self.columns] = 0.0
        return violations
