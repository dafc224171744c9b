r"""Weighted multi-class maximum-margin classifier of Crammer and Singer.

The problem, for examples :math:`x_i` with class :math:`y_i` and weight :math:`C_i \ge 0`, is

.. math::

    \min_W \; \tfrac12 \|W\|_F^2 + \sum_i C_i \xi_i, \qquad
    \xi_i = \max\Bigl(0,\; 1 + \max_{p \ne y_i} w_p^\top x_i - w_{y_i}^\top x_i\Bigr),

where a constant feature plays the part of the intercept. Its dual has a block of variables
:math:`u_i \ge 0` for each example, one for each class other than :math:`y_i`:

.. math::

    \max_u \; \sum_i \sigma_i - \tfrac12 \|W(u)\|_F^2
    \quad\text{s.t.}\quad u_{ip} \ge 0, \;\; \sigma_i = \sum_p u_{ip} \le C_i,

with :math:`W(u) = \sum_i (\sigma_i e_{y_i} - \sum_p u_{ip} e_p) x_i^\top`. Few of the
:math:`u_{ip}` differ from zero, and only those are stored.

The duality gap is a sum of one non-negative term for each example,

.. math::

    g_i = (C_i - \sigma_i) \xi_i
        + \sum_p u_{ip} \bigl(\xi_i - 1 - w_p^\top x_i + w_{y_i}^\top x_i\bigr).

The solver alternates two steps. It *screens* all examples and classes at once: one product of
matrices gives all scores, hence the gap, the examples that cause it and the classes that they need.
And it *refines* the variables of these classes by a sequential dual method: *sweeps* visit the
examples in random order, solve the block of each exactly, and pass over those that are settled.
Where that makes slow progress, Anderson acceleration extrapolates from a number of sweeps.

The variables approach their optimum sooner than :math:`W(u)` does: where the examples are nearly
separable, many margins fall short of one by a little. A multiple of :math:`W(u)` mends that. The
solution is the multiple with the least objective.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from . import _crammer_singer_kernels as kernels
from ._crammer_singer_kernels import Classes, Duals, Floats, Longs, Pool, Problem, Rows
from .margins import ScoreBlocks

__all__ = ["CrammerSingerResult", "fit_crammer_singer"]

# Sweeps stop at this share of the gap found by screening, or of what is asked for. At first that is
# more than one: a sweep sees the gap as it was before, and after a warm start one sweep often does.
_PROGRESS = 0.1
_FIRST_TARGET, _TARGET = 10.0, 0.3
# Limits of the number of sweeps between screenings. It doubles when screening finds no more than so
# many times the gap that the sweeps have left, and is halved when other classes are needed.
_SWEEPS_MIN, _SWEEPS_MAX = 5, 80
_SURPRISE = 2.0
# An example is dropped when its part of the gap is below this share of the average aimed at.
_NEGLIGIBLE = 0.03
# How close to the optimum a machine at hand must be proved, as a share of the tolerance. It is less
# than one lest small gains be missed again and again.
_VERIFIED = 0.3
# After so many sweeps the weights are computed anew, for rounding errors add up.
_SWEEPS_BEFORE_REBUILDING = 100


@dataclass(frozen=True, slots=True)
class CrammerSingerResult:
    """Solution of the maximum-margin problem, and the state of a warm start.

    Attributes
    ----------
    coef : ndarray of shape (n_classes, n_features)
        Weight vectors: the multiple of those of the dual variables with the least objective.
    intercept : ndarray of shape (n_classes,)
        Intercepts: the scores of `X` are ``X @ coef.T + intercept``.
    objective : float
        Value of the primal problem at the solution.
    gap : float
        Duality gap, primal minus dual value: how much `objective` can exceed the optimum.
    n_iter : int
        Number of sweeps.
    converged : bool
        Whether the gap has reached ``tol * objective``.
    y : ndarray of shape (n_samples,)
        Class of each example.
    C : ndarray of shape (n_samples,)
        Weight of each example.
    dual_indptr, dual_classes, dual_values : ndarray
        The positive dual variables as a CSR matrix of shape (n_samples, n_classes).
    scores : iterable of (int, ndarray)
        Scores of the examples in blocks of rows, each with the number of its first row. They are
        at hand if there is a single block, and computed anew otherwise.
    """

    coef: Floats
    intercept: Floats
    objective: float
    gap: float
    n_iter: int
    converged: bool
    y: Classes
    C: Floats
    dual_indptr: Longs
    dual_classes: Classes
    dual_values: Floats
    scores: Iterable[tuple[int, Floats]]

    @property
    def relative_gap(self) -> float:
        """Duality gap as a share of the objective."""
        return self.gap / self.objective if self.objective > 0 else 0.0


def fit_crammer_singer(
    X: Any,
    y: ArrayLike,
    C: ArrayLike,
    n_classes: int,
    *,
    state: CrammerSingerResult | None = None,
    tol: float = 1e-4,
    attained: float = np.inf,
    max_iter: int = 10_000,
    fit_intercept: bool = True,
    intercept_scaling: float = 1.0,
    seed: int = 0,
) -> CrammerSingerResult:
    r"""Fit the weighted multi-class maximum-margin classifier of Crammer and Singer.

    Minimises ``½‖W‖² + ½‖b‖² + Σᵢ Cᵢ max(0, 1 + max_{p ≠ yᵢ} s_p(xᵢ) − s_{yᵢ}(xᵢ))`` with the
    scores ``s_p(x) = w_p·x + intercept_scaling · b_p`` by a sequential dual method.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Features. C-contiguous float64 or float32 arrays and CSR matrices are used as they are.
    y : array-like of int, shape (n_samples,)
        Class of each example, in ``[0, n_classes)``. A class without examples still competes.
    C : float or array-like of shape (n_samples,)
        Weight of the loss of each example. An example with weight 0 takes no part.
    n_classes : int
        Number of classes. With a single class there is nothing to separate, and all weights are 0.
    state : CrammerSingerResult, optional
        Earlier solution for as many examples and classes, to start from. The dual variables of an
        example follow its weight `C`, and start at zero if its class has changed. `state` itself
        stays as it is.
    tol : float, default=1e-4
        Stop when the duality gap is at most `tol` times the primal objective.
    attained : float, default=inf
        Objective of a machine at hand. The solver also stops when it has proved that this machine
        is close to the optimum, which may take less than to find a better one: when the dual value
        ``objective - gap`` is at least ``(1 - 0.3 * tol) * attained``.
    max_iter : int, default=10000
        Largest number of sweeps over the examples.
    fit_intercept : bool, default=True
        Whether to add a constant feature, whose weights are regularised like all others.
    intercept_scaling : float, default=1.0
        Value of the constant feature.
    seed : int, default=0
        Seed of the order in which the examples are visited.

    Returns
    -------
    CrammerSingerResult
        The solution with its certificate (`objective`, `gap`), which may be passed as `state`.

    References
    ----------
    .. [1] S. S. Keerthi, S. Sundararajan, K.-W. Chang, C.-J. Hsieh, C.-J. Lin, "A sequential dual
       method for large scale multi-class linear SVMs", KDD 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from skpll.solvers import fit_crammer_singer
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> model = fit_crammer_singer(X, [0, 0, 1, 1], 1.0, 2)
    >>> (X @ model.coef.T + model.intercept).argmax(axis=1)
    array([0, 0, 1, 1])
    """
    X, rows = _as_rows(X)
    n_samples, n_features = X.shape
    if max_iter < 1:
        raise ValueError(f"max_iter must be at least 1, got {max_iter}")
    if not tol >= 0:
        raise ValueError(f"tol must not be negative, got {tol}")
    labels = _as_labels(y, n_samples, n_classes)
    weights = _as_weights(C, n_samples)
    bias = float(intercept_scaling) if fit_intercept else 0.0
    norms = _squared_norms(rows, n_samples, bias)
    duals = _initial_duals(state, labels, weights, n_classes)
    search = _Search(
        X=X,
        problem=(rows, bias, norms, labels, weights, n_classes),
        pool=kernels.open_pool(duals, n_classes),
        W=np.zeros((n_classes, n_features + 1), order="F" if sp.issparse(X) else "C"),
        margins=np.empty(n_samples),
        gaps=np.empty(n_samples),
        random=np.array([2 * seed + 1], dtype=np.uint64),
    )
    objective, gap, scores = search.run(float(tol), float(attained), int(max_iter))
    indptr, classes, values = kernels.close_pool(search.pool)
    return CrammerSingerResult(
        coef=np.ascontiguousarray(search.W[:, :n_features]),
        intercept=bias * search.W[:, n_features],
        objective=objective,
        gap=gap,
        n_iter=search.n_iter,
        converged=gap <= tol * objective,
        y=labels,
        C=weights,
        dual_indptr=indptr,
        dual_classes=classes,
        dual_values=values,
        scores=scores,
    )


# --------------------------------------------------------------------------------------------------
# Input
# --------------------------------------------------------------------------------------------------


def _as_rows(X: Any) -> tuple[Any, Rows]:
    """Features as a matrix and as the kernels take them: both share their memory."""
    if sp.issparse(X):
        return _as_sparse_rows(X)
    dtype = np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64
    X = np.ascontiguousarray(X, dtype=dtype)
    if X.ndim != 2:
        raise ValueError(
            f"X must have two dimensions, got {X.ndim}: reshape it to rows of features"
        )
    return X, _read_only(X)


def _as_sparse_rows(X: Any) -> tuple[Any, Rows]:
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if X.dtype not in (np.float64, np.float32):
        X = X.astype(np.float64)
    return X, (_read_only(X.data), _read_only(X.indices), _read_only(X.indptr))


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that cannot be written to: one type, and one compilation, for all input."""
    view = array.view()
    view.flags.writeable = False
    return view


def _as_labels(y: ArrayLike, n_samples: int, n_classes: int) -> Classes:
    """Check the classes and return a private copy."""
    if n_classes < 1:
        raise ValueError(f"n_classes must be at least 1, got {n_classes}")
    given = np.asarray(y)
    if given.shape != (n_samples,):
        raise ValueError(
            f"y must have one class for each of the {n_samples} rows of X, got shape {given.shape}"
        )
    if n_samples and given.dtype.kind not in "iu":
        raise ValueError(
            f"y must hold integer class indices, got dtype {given.dtype}: encode the labels"
        )
    if n_samples and not (given.min() >= 0 and given.max() < n_classes):
        row = int(np.flatnonzero((given < 0) | (given >= n_classes))[0])
        raise ValueError(f"y[{row}] is {given[row]}, but class indices lie in [0, {n_classes})")
    return given.astype(np.int32)


def _as_weights(C: ArrayLike, n_samples: int) -> Floats:
    """Check the weights and return a private copy, one value for each example."""
    given = np.asarray(C, dtype=np.float64)
    if given.ndim and given.shape != (n_samples,):
        raise ValueError(
            f"C must be a number or one value for each of the {n_samples} rows of X, "
            f"got shape {given.shape}"
        )
    weights = np.empty(n_samples)
    weights[:] = given
    if n_samples and not (weights.min() >= 0 and weights.max() < np.inf):
        row = int(np.flatnonzero(~((weights >= 0) & (weights < np.inf)))[0])
        raise ValueError(f"C must be finite and not negative, got {weights[row]} for row {row}")
    return weights


def _squared_norms(rows: Rows, n_samples: int, bias: float) -> Floats:
    """Squared norms of the rows, the constant feature included."""
    norms = np.empty(n_samples)
    kernels.fill_squared_norms(rows, bias, norms)
    if n_samples and not norms.max() < np.inf:
        row = int(np.flatnonzero(~(norms < np.inf))[0])
        raise ValueError(
            f"X has NaN, infinite or too large values, first in row {row}: "
            "impute or scale the features"
        )
    return norms


def _initial_duals(
    state: CrammerSingerResult | None, y: Classes, C: Floats, n_classes: int
) -> Duals:
    """Dual variables of `state`, made feasible for the classes `y` and the weights `C`."""
    if state is None:
        return np.zeros(len(y) + 1, dtype=np.int64), np.empty(0, dtype=np.int32), np.empty(0)
    if len(state.y) != len(y) or len(state.coef) != n_classes:
        raise ValueError(
            f"state holds {len(state.y)} examples and {len(state.coef)} classes, the problem "
            f"{len(y)} and {n_classes}: start without a state"
        )
    earlier = (state.dual_indptr, state.dual_classes, state.dual_values)
    return kernels.transfer_duals(earlier, state.y, state.C, y, C)


# --------------------------------------------------------------------------------------------------
# Search
# --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Search:
    """The variables and weights that the sweeps work on, and the effort so far."""

    X: Any
    problem: Problem
    pool: Pool
    W: Floats
    margins: Floats
    gaps: Floats
    random: NDArray[np.uint64]
    n_iter: int = 0

    def run(
        self, tol: float, attained: float, max_iter: int
    ) -> tuple[float, float, Iterable[tuple[int, Floats]]]:
        """Screen and refine in turn until the gap is small.

        Returns the objective, the gap and the scores of all examples and classes.
        """
        enough = (1 - _VERIFIED * tol) * attained
        share, left, max_sweeps, is_slow = _FIRST_TARGET, np.inf, _SWEEPS_MIN, False
        rebuilt = 0
        self.start()
        while True:
            blocks = self.score_blocks()
            scale, objective, gap = self.measure(blocks)
            if gap <= tol * objective or objective - gap >= enough or self.n_iter >= max_iter:
                return objective, gap, self.rescale(scale, blocks)
            unscaled = float(self.gaps.sum())
            max_sweeps = max_sweeps // 2 if unscaled > _SURPRISE * left else 2 * max_sweeps
            max_sweeps = min(max(max_sweeps, _SWEEPS_MIN), _SWEEPS_MAX)
            target = unscaled * max(_PROGRESS, share * tol * objective / gap)
            negligible = _NEGLIGIBLE * target / len(self.gaps)
            self.admit_classes(blocks, negligible)
            n_sweeps, left, is_slow = kernels.refine(
                self.problem,
                self._kernel_weights(),
                self.pool,
                np.flatnonzero(self.gaps > negligible),
                target,
                negligible,
                min(max_sweeps, max_iter - self.n_iter),
                is_slow,
                self.random,
            )
            self.n_iter += n_sweeps
            if self.n_iter >= rebuilt + _SWEEPS_BEFORE_REBUILDING:
                kernels.build_weights(self.problem, self.pool, self._kernel_weights())
                rebuilt = self.n_iter
            share = _TARGET

    def start(self) -> None:
        """Compute the first weights; shrink all variables by a common factor if that is better.

        The dual objective of ``t u`` is ``t Σ u − ½ t² ‖W(u)‖²``: largest at a ``t < 1`` if the
        variables have followed an increase of `C` too far.
        """
        start, *_, values = self.pool
        total = kernels.build_weights(self.problem, self.pool, self._kernel_weights())
        squared_norm = float(np.vdot(self.W, self.W))
        if total < squared_norm:
            values[: start[-1]] *= total / squared_norm
            self.W *= total / squared_norm

    def _kernel_weights(self) -> Floats:
        """Weights by class for dense rows, by feature for sparse ones."""
        return self.W.T if sp.issparse(self.X) else self.W

    def score_blocks(self) -> Iterable[tuple[int, Floats]]:
        """Scores of all examples and classes; kept if they fit into one block."""
        bias = self.problem[1]
        blocks = ScoreBlocks(self.X, self.W[:, :-1], bias * self.W[:, -1])
        return list(blocks) if len(blocks) == 1 else blocks

    def measure(self, blocks: Iterable[tuple[int, Floats]]) -> tuple[float, float, float]:
        """Find the best multiple of the weights, its objective and its duality gap."""
        _, _, _, y, C, _ = self.problem
        for first, scores in blocks:
            kernels.measure(y, C, self.pool, scores, first, self.margins, self.gaps)
        squared_norm = float(np.vdot(self.W, self.W))
        scale, unscaled, objective = kernels.best_scale(squared_norm, C, self.margins)
        return scale, objective, max(0.0, float(self.gaps.sum()) - (unscaled - objective))

    def rescale(
        self, scale: float, blocks: Iterable[tuple[int, Floats]]
    ) -> Iterable[tuple[int, Floats]]:
        """Multiply the weights and their scores."""
        self.W *= scale
        if not isinstance(blocks, list):
            return self.score_blocks()
        for _, scores in blocks:
            scores *= scale
        return blocks

    def admit_classes(self, blocks: Iterable[tuple[int, Floats]], negligible: float) -> None:
        """Find the classes that the examples need whose part of the gap is not negligible."""
        _, _, norms, y, C, _ = self.problem
        for first, scores in blocks:
            self.pool = kernels.admit_classes(
                y, C, norms, self.pool, scores, first, self.gaps, negligible
            )
