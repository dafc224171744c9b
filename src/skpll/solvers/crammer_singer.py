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

The solver is a sequential dual method: it visits the examples in random order and solves the block
of each exactly. A *full* sweep looks at all classes of all examples. The *restricted* sweeps
between two full ones see only the variables that were positive, and pass over examples that are
settled. Where that makes slow progress, conjugate gradients move all free variables at once, as far
as the bounds allow. The duality gap is a sum of one non-negative term for each example,

.. math::

    g_i = (C_i - \sigma_i) \xi_i
        + \sum_p u_{ip} \bigl(\xi_i - 1 - w_p^\top x_i + w_{y_i}^\top x_i\bigr),

so that a sweep estimates it at no cost; before the solver stops, it is measured with fixed weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit, types
from numba.extending import overload
from numpy.typing import ArrayLike, NDArray

__all__ = ["CrammerSingerResult", "fit_crammer_singer"]

Floats = NDArray[np.float64]
Classes = NDArray[np.int32]
Longs = NDArray[np.int64]

# Sums may be reordered, which lets them be vectorised.
_FAST: dict[str, Any] = {"fastmath": {"reassoc", "contract", "nsz"}}
# Functions called from Python, and those that are only called by other compiled ones.
_OUTER: dict[str, Any] = {"error_model": "numpy", "cache": True, "nogil": True}
_INNER: dict[str, Any] = {
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}

# A block whose sum is this close to its bound, relatively, is full.
_ROUNDING = 1e-12
# Measure the gap once the estimate of a full sweep, which lags behind, is below this many `tol`.
# A measurement costs less than a sweep, and one sweep often suffices after a warm start.
_CERTIFY_BELOW = 20.0
# Restricted sweeps stop at this share of the gap of the last full sweep, or of what is asked for.
_RESTRICTED_PROGRESS = 0.1
_RESTRICTED_TARGET = 0.3
_RESTRICTED_SWEEPS = 100
# An example is dropped when its part of the gap is below this share of the average aimed at.
_NEGLIGIBLE = 0.1
# Conjugate gradients follow so many restricted sweeps; their number of steps adapts to success.
_SWEEPS_BEFORE_CG = 5
_CG_STEPS_FIRST, _CG_STEPS_MIN, _CG_STEPS_MAX = 4, 2, 64
_CG_REDUCTION = 0.01
_CG_TRIALS = 3
_CG_BACKTRACK = 0.4


@dataclass(frozen=True, slots=True)
class CrammerSingerResult:
    """Solution of the maximum-margin problem, and the state of a warm start.

    Attributes
    ----------
    coef : ndarray of shape (n_classes, n_features)
        Weight vectors.
    intercept : ndarray of shape (n_classes,)
        Intercepts: the scores of `X` are ``X @ coef.T + intercept``.
    objective : float
        Value of the primal problem at the solution.
    gap : float
        Duality gap, primal minus dual value: how much `objective` can exceed the optimum.
    n_iter : int
        Number of sweeps, full and restricted.
    converged : bool
        Whether the gap has reached ``tol * objective``.
    y : ndarray of shape (n_samples,)
        Class of each example.
    C : ndarray of shape (n_samples,)
        Weight of each example.
    dual_indptr, dual_classes, dual_values : ndarray
        The positive dual variables as a CSR matrix of shape (n_samples, n_classes).
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
    rows, (n_samples, n_features) = _as_rows(X)
    if max_iter < 1:
        raise ValueError(f"max_iter must be at least 1, got {max_iter}")
    if not tol >= 0:
        raise ValueError(f"tol must not be negative, got {tol}")
    labels = _as_labels(y, n_samples, n_classes)
    weights = _as_weights(C, n_samples)
    bias = float(intercept_scaling) if fit_intercept else 0.0
    norms = _squared_norms(rows, n_samples, bias)
    duals = _initial_duals(state, labels, weights, n_classes)
    problem = _Problem(rows, bias, norms, labels, weights)
    W, duals, objective, gap, n_iter = _solve(
        problem, n_features, n_classes, duals, float(tol), int(max_iter), int(seed)
    )
    if isinstance(rows, _Rows):
        W = W.T
    return CrammerSingerResult(
        coef=np.ascontiguousarray(W[:, :n_features]),
        intercept=bias * W[:, n_features],
        objective=objective,
        gap=gap,
        n_iter=n_iter,
        converged=gap <= tol * objective,
        y=labels,
        C=weights,
        dual_indptr=duals.indptr,
        dual_classes=duals.classes,
        dual_values=duals.values,
    )


class _Rows(NamedTuple):
    """Rows of a CSR matrix."""

    data: NDArray[Any]
    indices: NDArray[Any]
    indptr: NDArray[Any]


class _Duals(NamedTuple):
    """Positive dual variables in CSR format."""

    indptr: Longs
    classes: Classes
    values: Floats


class _Pool(NamedTuple):
    """Dual variables while they change.

    The variables of example ``i`` are the ``size[i]`` slots from ``start[i]``, which may grow to
    ``room[i]``. Who needs more moves to the end, whose position is ``start[-1]``.
    """

    start: Longs
    size: Classes
    room: Classes
    classes: Classes
    values: Floats


class _Scratch(NamedTuple):
    """Buffers with one value for each class, for the example at hand."""

    scores: Floats
    pulls: Floats
    old: Floats
    block: Floats
    new: Floats
    steps: Floats
    moved: Classes
    given: Classes
    every_class: Classes


class _Face(NamedTuple):
    """Blocks of free variables: the slots in the pool of each, and whether its sum is fixed."""

    examples: Longs
    is_full: NDArray[np.bool_]
    indptr: Longs
    slots: Longs


class _Problem(NamedTuple):
    """What stays the same during a solve."""

    rows: NDArray[Any] | _Rows
    bias: float
    norms: Floats
    y: Classes
    C: Floats


# --------------------------------------------------------------------------------------------------
# Input
# --------------------------------------------------------------------------------------------------


def _as_rows(X: Any) -> tuple[NDArray[Any] | _Rows, tuple[int, int]]:
    """Features as the kernels take them: a C-contiguous array or the parts of a CSR matrix."""
    if sp.issparse(X):
        return _as_sparse_rows(X)
    dtype = np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64
    X = np.ascontiguousarray(X, dtype=dtype)
    if X.ndim != 2:
        raise ValueError(
            f"X must have two dimensions, got {X.ndim}: reshape it to rows of features"
        )
    return _read_only(X), X.shape


def _as_sparse_rows(X: Any) -> tuple[_Rows, tuple[int, int]]:
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    data = X.data if X.dtype in (np.float64, np.float32) else X.data.astype(np.float64)
    return _Rows(_read_only(data), _read_only(X.indices), _read_only(X.indptr)), X.shape


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


def _squared_norms(rows: NDArray[Any] | _Rows, n_samples: int, bias: float) -> Floats:
    """Squared norms of the rows, the constant feature included."""
    norms = np.empty(n_samples)
    _fill_squared_norms(rows, bias, norms)
    if n_samples and not norms.max() < np.inf:
        row = int(np.flatnonzero(~(norms < np.inf))[0])
        raise ValueError(
            f"X has NaN, infinite or too large values, first in row {row}: "
            "impute or scale the features"
        )
    return norms


def _initial_duals(
    state: CrammerSingerResult | None, y: Classes, C: Floats, n_classes: int
) -> _Duals:
    """Dual variables of `state`, made feasible for the classes `y` and the weights `C`."""
    if state is None:
        return _Duals(
            np.zeros(len(y) + 1, dtype=np.int64), np.empty(0, dtype=np.int32), np.empty(0)
        )
    if len(state.y) != len(y) or len(state.coef) != n_classes:
        raise ValueError(
            f"state holds {len(state.y)} examples and {len(state.coef)} classes, the problem "
            f"{len(y)} and {n_classes}: start without a state"
        )
    earlier = _Duals(state.dual_indptr, state.dual_classes, state.dual_values)
    return _transfer_duals(earlier, state.y, state.C, y, C)


@njit(**_OUTER)
def _transfer_duals(
    earlier: _Duals, old_y: Classes, old_C: Floats, y: Classes, C: Floats
) -> _Duals:
    """Scale the variables of each example with its weight; drop them where the class changed."""
    old_indptr, old_classes, old_values = earlier.indptr, earlier.classes, earlier.values
    indptr = np.zeros_like(old_indptr)
    classes = np.empty_like(old_classes)
    values = np.empty_like(old_values)
    end = 0
    for i in range(len(y)):
        indptr[i] = end
        if y[i] != old_y[i] or C[i] == 0.0 or old_C[i] == 0.0:
            continue
        share = 0.0
        for k in range(old_indptr[i], old_indptr[i + 1]):
            share += old_values[k] / old_C[i]
        # A full block stays full to the last bit.
        unit = C[i] / share if share > 1.0 - _ROUNDING else C[i]
        for k in range(old_indptr[i], old_indptr[i + 1]):
            classes[end] = old_classes[k]
            values[end] = old_values[k] / old_C[i] * unit
            end += values[end] > 0.0
    indptr[-1] = end
    return _Duals(indptr, classes[:end].copy(), values[:end].copy())


# --------------------------------------------------------------------------------------------------
# Rows and weights: all that depends on the layout of the features
#
# The weights have the constant feature last. They are stored by class for dense rows, where a score
# is a product of two contiguous vectors, and by feature for sparse rows, where one feature touches
# the weights of all classes.
# --------------------------------------------------------------------------------------------------


def _by_layout(sparse: Callable, dense: Callable, options: Any) -> Callable:
    """Make a compiled function of one for sparse and one for dense rows, its first argument."""

    def function(rows: Any, *others: Any) -> Any:
        raise NotImplementedError("to be called from compiled code")

    def choose(rows: types.Type, *_: types.Type) -> Callable:
        return sparse if isinstance(rows, types.BaseTuple) else dense

    overload(function, strict=False, jit_options=options)(choose)
    return function


def _squared_norm_sparse(rows: Any, i: int) -> float:
    total = 0.0
    for k in range(rows.indptr[i], rows.indptr[i + 1]):
        total += np.float64(rows.data[k]) * rows.data[k]
    return total


def _squared_norm_dense(rows: Any, i: int) -> float:
    total = 0.0
    for j in range(rows.shape[1]):
        total += np.float64(rows[i, j]) * rows[i, j]
    return total


def _scores_sparse(
    rows: Any, i: int, bias: float, W: Floats, classes: Classes, n_given: int, out: Floats
) -> None:
    for c in range(n_given):
        out[c] = bias * W[-1, classes[c]]
    for k in range(rows.indptr[i], rows.indptr[i + 1]):
        j = np.uint64(rows.indices[k])
        for c in range(n_given):
            out[c] += rows.data[k] * W[j, np.uint64(classes[c])]


def _scores_dense(
    rows: Any, i: int, bias: float, W: Floats, classes: Classes, n_given: int, out: Floats
) -> None:
    for c in range(n_given):
        p = classes[c]
        total = bias * W[p, -1]
        for j in range(rows.shape[1]):
            total += rows[i, j] * W[p, j]
        out[c] = total


def _all_scores_sparse(rows: Any, i: int, bias: float, W: Floats, out: Floats) -> None:
    for p in range(len(out)):
        out[p] = bias * W[-1, p]
    for k in range(rows.indptr[i], rows.indptr[i + 1]):
        j = np.uint64(rows.indices[k])
        value = rows.data[k]
        for p in range(len(out)):
            out[p] += value * W[j, p]


def _all_scores_dense(rows: Any, i: int, bias: float, W: Floats, out: Floats) -> None:
    # Four classes at a time, so that each feature is loaded once for all four.
    n_blocked = len(out) // 4 * 4
    for p in range(0, n_blocked, 4):
        a = bias * W[p, -1]
        b = bias * W[p + 1, -1]
        c = bias * W[p + 2, -1]
        d = bias * W[p + 3, -1]
        for j in range(rows.shape[1]):
            value = rows[i, j]
            a += value * W[p, j]
            b += value * W[p + 1, j]
            c += value * W[p + 2, j]
            d += value * W[p + 3, j]
        out[p] = a
        out[p + 1] = b
        out[p + 2] = c
        out[p + 3] = d
    for p in range(n_blocked, len(out)):
        total = bias * W[p, -1]
        for j in range(rows.shape[1]):
            total += rows[i, j] * W[p, j]
        out[p] = total


def _add_row_sparse(
    rows: Any, i: int, bias: float, W: Floats, classes: Classes, steps: Floats, n_given: int
) -> None:
    for c in range(n_given):
        W[-1, classes[c]] += steps[c] * bias
    for k in range(rows.indptr[i], rows.indptr[i + 1]):
        j = np.uint64(rows.indices[k])
        for c in range(n_given):
            W[j, np.uint64(classes[c])] += steps[c] * rows.data[k]


def _add_row_dense(
    rows: Any, i: int, bias: float, W: Floats, classes: Classes, steps: Floats, n_given: int
) -> None:
    for c in range(n_given):
        p = classes[c]
        step = steps[c]
        W[p, -1] += step * bias
        for j in range(rows.shape[1]):
            W[p, j] += step * rows[i, j]


# The squared norm of a row; its scores for the given classes, and for all; the weights of the given
# classes plus multiples of it.
_squared_norm = _by_layout(_squared_norm_sparse, _squared_norm_dense, _FAST)
_scores = _by_layout(_scores_sparse, _scores_dense, _FAST)
_all_scores = _by_layout(_all_scores_sparse, _all_scores_dense, _FAST)
_add_row = _by_layout(_add_row_sparse, _add_row_dense, {})


@njit(**_OUTER)
def _fill_squared_norms(rows: Any, bias: float, out: Floats) -> None:
    for i in range(len(out)):
        out[i] = _squared_norm(rows, i) + bias * bias


@njit(**_INNER, **_FAST)
def _half_squared_norm(W: Floats) -> float:
    total = 0.0
    for j in range(W.shape[0]):
        for k in range(W.shape[1]):
            total += W[j, k] * W[j, k]
    return 0.5 * total


# --------------------------------------------------------------------------------------------------
# Dual variables
# --------------------------------------------------------------------------------------------------


@njit(**_OUTER)
def _open_pool(duals: _Duals, n_classes: int) -> _Pool:
    """Pool that holds the given variables, with space for new ones."""
    n_samples = len(duals.indptr) - 1
    n_used = duals.indptr[n_samples]
    classes = np.empty(n_used + 2 * n_samples + n_classes, dtype=np.int32)
    values = np.empty(len(classes))
    size = np.empty(n_samples, dtype=np.int32)
    for k in range(n_used):
        classes[k] = duals.classes[k]
        values[k] = duals.values[k]
    for i in range(n_samples):
        size[i] = duals.indptr[i + 1] - duals.indptr[i]
    return _Pool(duals.indptr.copy(), size, size.copy(), classes, values)


@njit(**_OUTER)
def _close_pool(pool: _Pool) -> _Duals:
    """Positive variables of the pool in CSR format."""
    n_samples = len(pool.size)
    indptr = np.zeros(n_samples + 1, dtype=np.int64)
    for i in range(n_samples):
        indptr[i + 1] = indptr[i]
        for k in range(pool.start[i], pool.start[i] + pool.size[i]):
            indptr[i + 1] += pool.values[k] > 0.0
    classes = np.empty(indptr[n_samples], dtype=np.int32)
    values = np.empty(indptr[n_samples])
    end = 0
    for i in range(n_samples):
        for k in range(pool.start[i], pool.start[i] + pool.size[i]):
            if pool.values[k] > 0.0:
                classes[end] = pool.classes[k]
                values[end] = pool.values[k]
                end += 1
    return _Duals(indptr, classes, values)


@njit(**_OUTER)
def _build_weights(problem: _Problem, pool: _Pool, W: Floats, scratch: _Scratch) -> float:
    """Compute ``W(u)``; return the sum of all variables."""
    rows, bias, y = problem.rows, problem.bias, problem.y
    start, size, classes, values = pool.start, pool.size, pool.classes, pool.values
    moved, steps = scratch.moved, scratch.steps
    W.fill(0.0)
    sum_all = 0.0
    for i in range(len(y)):
        n_moved = 0
        total = 0.0
        for k in range(start[i], start[i] + size[i]):
            moved[n_moved] = classes[k]
            steps[n_moved] = -values[k]
            n_moved += 1
            total += values[k]
        if total > 0.0:
            moved[n_moved] = y[i]
            steps[n_moved] = total
            _add_row(rows, i, bias, W, moved, steps, n_moved + 1)
            sum_all += total
    return sum_all


@njit(**_INNER)
def _threshold(pulls: Floats, n_given: int, start: float, offset: float, extra: int) -> float:
    """Solve ``t = (offset + sum of the pulls above t) / (extra + their number)``.

    Starting from below: a set that is too large gives a threshold that is too low, so that the
    pulls below it can be dropped for good.
    """
    threshold = start
    n_above = n_given + 1
    while True:
        total = offset
        n_before, n_above = n_above, 0
        for k in range(n_given):
            if pulls[k] > threshold:
                total += pulls[k]
                n_above += 1
        if n_above == 0 or n_above >= n_before:
            return threshold
        threshold = total / (n_above + extra)


@njit(**_INNER)
def _solve_block(
    pulls: Floats, n_given: int, own: float, norm: float, C: float, out: Floats
) -> None:
    r"""Solve the dual problem over the variables of one example.

    With all others fixed it reads, up to a constant,

    .. math::

        \min_{u \ge 0,\; \sigma = \sum_p u_p \le C} \;
        \tfrac12 A \bigl(\sum_p u_p^2 + \sigma^2\bigr) - \sum_p u_p (z_p - o),

    so that :math:`u_p = \max(0, z_p - \beta) / A`. The threshold depends on the set :math:`S` of
    positive variables: it is :math:`\beta = (o + \sum_S z_p) / (1 + |S|)`, or
    :math:`\beta = (\sum_S z_p - A C) / |S|` if that would make the sum exceed :math:`C`.

    Parameters
    ----------
    pulls : ndarray
        The values :math:`z_p`; overwritten with their differences from the largest.
    n_given : int
        Number of classes.
    own : float
        The value :math:`o` of the own class.
    norm : float
        Squared norm :math:`A` of the example.
    C : float
        Bound on the sum.
    out : ndarray
        Overwritten with the solution.
    """
    top = 0
    for k in range(n_given):
        out[k] = 0.0
        if pulls[k] > pulls[top]:
            top = k
    own -= pulls[top]
    if own >= 0.0:
        return
    limit = norm * C
    if limit == 0.0 or n_given == 1:
        out[top] = C if -own > 2.0 * limit else 0.5 * -own / norm
        return
    # Relative to the largest, small differences keep their digits.
    shift = pulls[top]
    for k in range(n_given):
        pulls[k] -= shift
    threshold = _threshold(pulls, n_given, own, own, 1)
    is_full = threshold - own >= limit
    if is_full:
        threshold = _threshold(pulls, n_given, threshold, -limit, 0)
    total = 0.0
    for k in range(n_given):
        out[k] = max(0.0, pulls[k] - threshold) / norm
        total += out[k]
    if is_full:
        # To the last bit: a block short of its bound would never look settled.
        for k in range(n_given):
            out[k] *= C / total


@njit(**_INNER)
def _move_block(
    rows: Any,
    i: int,
    bias: float,
    W: Floats,
    own_class: int,
    classes: Classes,
    old: Floats,
    new: Floats,
    n_given: int,
    moved: Classes,
    steps: Floats,
) -> None:
    """Carry the change of the variables of an example over to the weights.

    `moved` and `steps` are buffers.
    """
    n_moved = 0
    total = 0.0
    for k in range(n_given):
        change = new[k] - old[k]
        if change != 0.0:
            moved[n_moved] = classes[k]
            steps[n_moved] = -change
            n_moved += 1
            total += change
    moved[n_moved] = own_class
    steps[n_moved] = total
    _add_row(rows, i, bias, W, moved, steps, n_moved + 1)


# --------------------------------------------------------------------------------------------------
# Sweeps
# --------------------------------------------------------------------------------------------------


@njit(**_INNER)
def _shuffle(order: Longs, n: int, random: NDArray[np.uint64]) -> None:
    """Shuffle the first `n` entries (Fisher and Yates) with a 64-bit xorshift generator."""
    state = random[0]
    for k in range(n - 1, 0, -1):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        j = np.int64((state >> np.uint64(11)) % np.uint64(k + 1))
        order[k], order[j] = order[j], order[k]
    random[0] = state


@njit(**_INNER)
def _loss_and_gap(
    scores: Floats, own_score: float, values: Floats, n_given: int, C: float
) -> tuple[float, float, float]:
    """Hinge loss of an example, the sum of its variables and its part of the duality gap.

    The scores and variables are those of the other classes.
    """
    top = -np.inf
    total = 0.0
    for k in range(n_given):
        top = max(top, scores[k])
        total += values[k]
    loss = max(0.0, 1.0 + top - own_score)
    gap = max(0.0, C - total) * loss
    for k in range(n_given):
        if values[k] > 0.0:
            gap += values[k] * (loss - 1.0 - scores[k] + own_score)
    return loss, total, gap


@njit(**_OUTER)
def _full_sweep(
    problem: _Problem,
    W: Floats,
    pool: _Pool,
    members: Longs,
    random: NDArray[np.uint64],
    scratch: _Scratch,
) -> tuple[_Pool, float, float]:
    """Visit the members once in random order, with all their classes.

    Returns the pool, and estimates of the primal objective and of the duality gap: each example
    contributes what was true when it was visited.
    """
    rows, bias, norms, y, C = problem.rows, problem.bias, problem.norms, problem.y, problem.C
    start, size, room = pool.start, pool.size, pool.room
    classes, values = pool.classes, pool.values
    scores, pulls, old, new = scratch.scores, scratch.pulls, scratch.old, scratch.new
    every_class, moved, steps = scratch.every_class, scratch.moved, scratch.steps
    n_classes = len(scores)
    _shuffle(members, len(members), random)
    loss_sum = 0.0
    gap_sum = 0.0
    for i in members:
        own_class, norm = y[i], norms[i]
        _all_scores(rows, i, bias, W, scores)
        own_score = scores[own_class]
        scores[own_class] = -np.inf
        for k in range(start[i], start[i] + size[i]):
            old[classes[k]] = values[k]
        loss, total, gap = _loss_and_gap(scores, own_score, old, n_classes, C[i])
        loss_sum += C[i] * loss
        gap_sum += gap
        if gap > 0.0:
            own = own_score - 1.0 - norm * total
            for p in range(n_classes):
                pulls[p] = scores[p] + norm * old[p]
            _solve_block(pulls, n_classes, own, norm, C[i], new)
            _move_block(rows, i, bias, W, own_class, every_class, old, new, n_classes, moved, steps)
        for k in range(start[i], start[i] + size[i]):
            old[classes[k]] = 0.0
        if gap > 0.0:
            if start[-1] + n_classes > len(values):
                pool = _open_pool(_close_pool(pool), n_classes)
                start, size, room = pool.start, pool.size, pool.room
                classes, values = pool.classes, pool.values
            _store_block(start, size, room, classes, values, i, new)
    return pool, loss_sum + _half_squared_norm(W), gap_sum


@njit(**_INNER)
def _store_block(
    start: Longs,
    size: Classes,
    room: Classes,
    classes: Classes,
    values: Floats,
    i: int,
    block: Floats,
) -> None:
    """Replace the variables of an example in the pool by those in `block` that are positive."""
    n_positive = 0
    for p in range(len(block)):
        n_positive += block[p] > 0.0
    if n_positive > room[i]:
        start[i] = start[-1]
        room[i] = n_positive
        start[-1] += n_positive
    slot = start[i]
    for p in range(len(block)):
        if block[p] > 0.0:
            classes[slot] = p
            values[slot] = block[p]
            slot += 1
    size[i] = n_positive


@njit(**_OUTER)
def _restricted_sweep(
    problem: _Problem,
    W: Floats,
    pool: _Pool,
    members: Longs,
    n_members: int,
    negligible: float,
    random: NDArray[np.uint64],
    scratch: _Scratch,
) -> tuple[int, float]:
    """Visit the first members in random order, with the classes in the pool only.

    Those whose part of the gap is negligible are dropped. Returns the number of the others, which
    have been moved to the front, and the sum of their parts of the gap.
    """
    rows, bias, norms, y, C = problem.rows, problem.bias, problem.norms, problem.y, problem.C
    start, size, classes, values = pool.start, pool.size, pool.classes, pool.values
    scores, pulls, old, new = scratch.scores, scratch.pulls, scratch.block, scratch.new
    given, moved, steps = scratch.given, scratch.moved, scratch.steps
    _shuffle(members, n_members, random)
    n_left = 0
    gap_sum = 0.0
    for m in range(n_members):
        i = members[m]
        first, n_given, norm = start[i], size[i], norms[i]
        for k in range(n_given):
            given[k] = classes[first + k]
            old[k] = values[first + k]
        given[n_given] = y[i]
        _scores(rows, i, bias, W, given, n_given + 1, scores)
        own_score = scores[n_given]
        _, total, gap = _loss_and_gap(scores, own_score, old, n_given, C[i])
        if gap <= negligible:
            continue
        for k in range(n_given):
            pulls[k] = scores[k] + norm * old[k]
        _solve_block(pulls, n_given, own_score - 1.0 - norm * total, norm, C[i], new)
        _move_block(rows, i, bias, W, y[i], given, old, new, n_given, moved, steps)
        for k in range(n_given):
            values[first + k] = new[k]
        members[n_left] = i
        n_left += 1
        gap_sum += gap
    return n_left, gap_sum


@njit(**_OUTER)
def _measure(
    problem: _Problem, W: Floats, pool: _Pool, members: Longs, scratch: _Scratch
) -> tuple[float, float]:
    """Return the primal objective and the duality gap."""
    rows, bias, y, C = problem.rows, problem.bias, problem.y, problem.C
    start, size, classes, values = pool.start, pool.size, pool.classes, pool.values
    scores, old = scratch.scores, scratch.old
    objective = _half_squared_norm(W)
    gap_sum = 0.0
    for i in members:
        _all_scores(rows, i, bias, W, scores)
        own_score = scores[y[i]]
        scores[y[i]] = -np.inf
        for k in range(start[i], start[i] + size[i]):
            old[classes[k]] = values[k]
        loss, _, gap = _loss_and_gap(scores, own_score, old, len(scores), C[i])
        for k in range(start[i], start[i] + size[i]):
            old[classes[k]] = 0.0
        objective += C[i] * loss
        gap_sum += gap
    return objective, gap_sum


# --------------------------------------------------------------------------------------------------
# Conjugate gradients over the free variables
# --------------------------------------------------------------------------------------------------


@njit(**_INNER)
def _find_face(problem: _Problem, pool: _Pool, members: Longs) -> _Face:
    """Find the positive variables, except those that are alone in a block with a fixed sum."""
    start, size, values, C = pool.start, pool.size, pool.values, problem.C
    n_slots = 0
    for i in members:
        n_slots += size[i]
    examples = np.empty(len(members), dtype=np.int64)
    is_full = np.empty(len(members), dtype=np.bool_)
    indptr = np.zeros(len(members) + 1, dtype=np.int64)
    slots = np.empty(n_slots, dtype=np.int64)
    n_blocks = 0
    end = 0
    for i in members:
        total = 0.0
        for k in range(start[i], start[i] + size[i]):
            if values[k] > 0.0:
                total += values[k]
                slots[end] = k
                end += 1
        full = total >= C[i] * (1.0 - _ROUNDING)
        n_free = end - indptr[n_blocks] - full
        if n_free <= 0:
            end = indptr[n_blocks]
            continue
        examples[n_blocks] = i
        is_full[n_blocks] = full
        n_blocks += 1
        indptr[n_blocks] = end
    return _Face(examples[:n_blocks], is_full[:n_blocks], indptr[: n_blocks + 1], slots[:end])


@njit(**_INNER)
def _add_weights(
    problem: _Problem, pool: _Pool, face: _Face, direction: Floats, W: Floats, scratch: _Scratch
) -> None:
    """Add the weights of a direction, given for the variables of the face, to `W`."""
    rows, bias, y, classes = problem.rows, problem.bias, problem.y, pool.classes
    examples, indptr, slots = face.examples, face.indptr, face.slots
    moved, steps = scratch.moved, scratch.steps
    for m in range(len(examples)):
        first, n_given = indptr[m], indptr[m + 1] - indptr[m]
        total = 0.0
        for k in range(n_given):
            moved[k] = classes[slots[first + k]]
            steps[k] = -direction[first + k]
            total += direction[first + k]
        moved[n_given] = y[examples[m]]
        steps[n_given] = total
        _add_row(rows, examples[m], bias, W, moved, steps, n_given + 1)


@njit(**_INNER)
def _add_margins(
    problem: _Problem,
    pool: _Pool,
    face: _Face,
    W: Floats,
    factor: float,
    out: Floats,
    scratch: _Scratch,
) -> None:
    """Add a multiple of the margins ``w_y·x − w_p·x`` to the variables of the face."""
    rows, bias, y, classes = problem.rows, problem.bias, problem.y, pool.classes
    examples, indptr, slots = face.examples, face.indptr, face.slots
    given, scores = scratch.given, scratch.scores
    for m in range(len(examples)):
        first, n_given = indptr[m], indptr[m + 1] - indptr[m]
        for k in range(n_given):
            given[k] = classes[slots[first + k]]
        given[n_given] = y[examples[m]]
        _scores(rows, examples[m], bias, W, given, n_given + 1, scores)
        for k in range(n_given):
            out[first + k] += factor * (scores[n_given] - scores[k])


@njit(**_INNER)
def _precondition(problem: _Problem, face: _Face, residual: Floats, out: Floats) -> float:
    """Solve with the diagonal blocks of the Hessian; return the product with the residual.

    The block of an example is ``A (I + 11ᵀ)``, or ``A I`` on the vectors of sum zero if it is full.
    """
    norms = problem.norms
    examples, is_full, indptr = face.examples, face.is_full, face.indptr
    product = 0.0
    for m in range(len(examples)):
        first, last = indptr[m], indptr[m + 1]
        total = 0.0
        for k in range(first, last):
            total += residual[k]
        mean = total / (last - first + (0 if is_full[m] else 1))
        for k in range(first, last):
            out[k] = (residual[k] - mean) / norms[examples[m]]
            product += out[k] * residual[k]
    return product


@njit(**_INNER)
def _feasible_change(
    problem: _Problem, pool: _Pool, face: _Face, direction: Floats, step: float, out: Floats
) -> float:
    """Change of the variables by a step, cut off at the bounds; return the change of their sum."""
    values, C = pool.values, problem.C
    examples, is_full, indptr, slots = face.examples, face.is_full, face.indptr, face.slots
    change = 0.0
    for m in range(len(examples)):
        first, last, bound = indptr[m], indptr[m + 1], C[examples[m]]
        total = 0.0
        for k in range(first, last):
            out[k] = max(0.0, values[slots[k]] + step * direction[k])
            total += out[k]
        factor = bound / total if total > bound or (is_full[m] and total > 0.0) else 1.0
        for k in range(first, last):
            out[k] = factor * out[k] - values[slots[k]]
            change += out[k]
    return change


@njit(**_INNER)
def _newton_direction(
    problem: _Problem,
    W: Floats,
    V: Floats,
    pool: _Pool,
    face: _Face,
    max_steps: int,
    direction: Floats,
    scratch: _Scratch,
) -> int:
    """Minimise the dual over the face, bounds aside, by conjugate gradients; count the steps.

    `V` is a buffer of the shape of `W`.
    """
    n_free = len(direction)
    residual = np.ones(n_free)
    solved = np.empty(n_free)
    search = np.zeros(n_free)
    _add_margins(problem, pool, face, W, -1.0, residual, scratch)
    product = _precondition(problem, face, residual, solved)
    enough = _CG_REDUCTION * product
    ratio = 0.0
    for n_steps in range(max_steps):
        for k in range(n_free):
            search[k] = solved[k] + ratio * search[k]
        V.fill(0.0)
        _add_weights(problem, pool, face, search, V, scratch)
        curvature = 2.0 * _half_squared_norm(V)
        if not (product > enough and curvature > 0.0):
            return n_steps
        step = product / curvature
        for k in range(n_free):
            direction[k] += step * search[k]
        _add_margins(problem, pool, face, V, -step, residual, scratch)
        before = product
        product = _precondition(problem, face, residual, solved)
        ratio = product / before
    return max_steps


@njit(**_INNER)
def _copy(source: Floats, target: Floats) -> None:
    for j in range(source.shape[0]):
        for k in range(source.shape[1]):
            target[j, k] = source[j, k]


@njit(**_OUTER)
def _descend_face(
    problem: _Problem, W: Floats, pool: _Pool, members: Longs, max_steps: int, scratch: _Scratch
) -> tuple[int, bool]:
    """Move the free variables towards the minimum over their face, as far as the bounds allow.

    Returns the number of passes over the variables and whether the first step was a success.
    """
    face = _find_face(problem, pool, members)
    n_free = len(face.slots)
    if n_free == 0:
        return 0, False
    V = np.empty_like(W)
    direction = np.zeros(n_free)
    change = np.empty(n_free)
    n_passes = _newton_direction(problem, W, V, pool, face, max_steps, direction, scratch)
    before = _half_squared_norm(W)
    step = 1.0
    for trial in range(_CG_TRIALS):
        sum_change = _feasible_change(problem, pool, face, direction, step, change)
        _copy(W, V)
        _add_weights(problem, pool, face, change, V, scratch)
        n_passes += 1
        if _half_squared_norm(V) - sum_change < before:
            _copy(V, W)
            for k in range(n_free):
                pool.values[face.slots[k]] += change[k]
            return n_passes, trial == 0
        step *= _CG_BACKTRACK
    return n_passes, False


# --------------------------------------------------------------------------------------------------
# Outer loop
# --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Search:
    """The variables and weights that the sweeps work on, and the effort so far."""

    problem: _Problem
    pool: _Pool
    W: Floats
    members: Longs
    scratch: _Scratch
    random: NDArray[np.uint64]
    n_iter: int = 0
    cg_steps: int = _CG_STEPS_FIRST

    def start(self) -> None:
        """Compute the first weights; shrink all variables by a common factor if that is better.

        The dual objective of ``t u`` is ``t Σ u − ½ t² ‖W(u)‖²``: largest at a ``t < 1`` if the
        variables have followed an increase of `C` too far.
        """
        total = _build_weights(self.problem, self.pool, self.W, self.scratch)
        squared_norm = float((self.W * self.W).sum())
        if total < squared_norm:
            self.pool.values[: self.pool.start[-1]] *= total / squared_norm
            self.W *= total / squared_norm

    def sweep(self) -> tuple[float, float]:
        """Sweep over everything; return estimates of the objective and of the duality gap."""
        self.pool, objective, gap = _full_sweep(
            self.problem, self.W, self.pool, self.members, self.random, self.scratch
        )
        self.n_iter += 1
        return objective, gap

    def certify(self) -> tuple[float, float]:
        """Recompute the weights and measure the objective and the duality gap."""
        _build_weights(self.problem, self.pool, self.W, self.scratch)
        return _measure(self.problem, self.W, self.pool, self.members, self.scratch)

    def refine(self, target: float, max_iter: int) -> None:
        """Optimise over the variables in the pool until their gap is at most `target`."""
        supported = self.members[self.pool.size[self.members] > 0]
        negligible = _NEGLIGIBLE * target / max(1, len(supported))
        active, n_active = supported.copy(), len(supported)
        patience = _SWEEPS_BEFORE_CG
        while self.n_iter < max_iter:
            n_visited = n_active
            n_active, gap = _restricted_sweep(
                self.problem,
                self.W,
                self.pool,
                active,
                n_active,
                negligible,
                self.random,
                self.scratch,
            )
            self.n_iter += 1
            patience -= 1
            if gap > target:
                too_late = self.n_iter + self.cg_steps + _CG_TRIALS > max_iter
                if patience > 0 or too_late:
                    continue
                patience = self.accelerate(supported)
            elif n_visited == len(supported):
                return
            active[:] = supported
            n_active = len(supported)

    def accelerate(self, supported: Longs) -> int:
        """Take conjugate gradient steps; return how many sweeps should pass before the next."""
        n_passes, is_success = _descend_face(
            self.problem, self.W, self.pool, supported, self.cg_steps, self.scratch
        )
        self.n_iter += n_passes
        if is_success:
            self.cg_steps = min(2 * self.cg_steps, _CG_STEPS_MAX)
            return _SWEEPS_BEFORE_CG
        if self.cg_steps > _CG_STEPS_MIN:
            self.cg_steps //= 2
            return _SWEEPS_BEFORE_CG
        return 3 * _SWEEPS_BEFORE_CG


def _solve(
    problem: _Problem,
    n_features: int,
    n_classes: int,
    duals: _Duals,
    tol: float,
    max_iter: int,
    seed: int,
) -> tuple[Floats, _Duals, float, float, int]:
    """Alternate full and restricted sweeps until the duality gap is small.

    Returns the weights, the dual variables, the objective, the gap and the number of sweeps.
    """
    shape = (n_features + 1, n_classes)
    search = _Search(
        problem=problem,
        pool=_open_pool(duals, n_classes),
        W=np.zeros(shape if isinstance(problem.rows, _Rows) else shape[::-1]),
        members=np.flatnonzero(problem.C),
        scratch=_new_scratch(n_classes),
        random=np.array([2 * seed + 1], dtype=np.uint64),
    )
    search.start()
    while search.n_iter < max_iter:
        objective, gap = search.sweep()
        if gap <= _CERTIFY_BELOW * tol * objective:
            objective, gap = search.certify()
            if gap <= tol * objective:
                break
        target = max(_RESTRICTED_PROGRESS * gap, _RESTRICTED_TARGET * tol * objective)
        search.refine(target, min(search.n_iter + _RESTRICTED_SWEEPS, max_iter - 1))
    else:
        objective, gap = search.certify()
    return search.W, _close_pool(search.pool), objective, gap, search.n_iter


def _new_scratch(n_classes: int) -> _Scratch:
    return _Scratch(
        scores=np.empty(n_classes),
        pulls=np.empty(n_classes),
        old=np.zeros(n_classes),
        block=np.empty(n_classes),
        new=np.empty(n_classes),
        steps=np.empty(n_classes),
        moved=np.empty(n_classes, dtype=np.int32),
        given=np.empty(n_classes, dtype=np.int32),
        every_class=np.arange(n_classes, dtype=np.int32),
    )
