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

Among more than a hundred classes an example is given no more than ten new ones by a screening, the
strongest: at first all of them look alike, and sweeps over all would take q times as long. The
weights are small differences of large sums then. When labels change, what is left of the sums can
be far from the optimum while the weights of the solution before are near it, so that a warm start
takes these for the best so far, and ends with the best that it has seen.

The variables approach their optimum sooner than :math:`W(u)` does: where the examples are nearly
separable, many margins fall short of one by a little. A multiple of :math:`W(u)` mends that. The
solution is the multiple with the least objective.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpll._typing import Array, Floats
from skpll.engine.arrays import Matrix, is_sparse

from . import _margin_kernels as kernels
from ._margin_kernels import Buffers, Classes, Longs, Pool, Problem, Rows, Sweeping
from .margins import ScoreBlocks

# Sweeps stop at this share of the gap found by screening, or of what is asked for. At first that is
# more than one: a sweep sees the gap as it was before, and after a warm start one sweep often does.
SWEEP_PROGRESS = 0.1
FIRST_TARGET, SWEEP_TARGET = 10.0, 0.3
# Limits of the number of sweeps between screenings. It doubles when screening finds at most
# MAX_GAP_GROWTH times the gap that the sweeps have left, and is halved when other classes are
# needed.
_SWEEPS_MIN, _SWEEPS_MAX = 5, 80
MAX_GAP_GROWTH = 2.0
# Number of sweeps after which the weights are computed anew, because rounding errors add up.
_SWEEPS_BEFORE_REBUILDING = 100
# Number of sweeps to extrapolate from, and what is added to the Gram matrix of their changes, as a
# share of its trace.
EXTRAPOLATED_SWEEPS = 10
EXTRAPOLATION_RIDGE = 1e-8

Duals = tuple[Longs, Classes, Floats]
ScoreParts = Iterable[tuple[int, Floats]]


@dataclass(frozen=True, slots=True)
class CrammerSingerResult:
    """Solution of the maximum-margin problem, and the state of a warm start.

    Attributes
    ----------
    coef : ndarray of shape (n_classes, n_features)
        Weight vectors: the multiple of those of the dual variables with the least objective, or
        among more than a hundred classes the best weights on the way from `state`.
    intercept : ndarray of shape (n_classes,)
        Intercepts: the scores of `X` are ``X @ coef.T + intercept``.
    y : ndarray of shape (n_samples,)
        Class of each example.
    C : ndarray of shape (n_samples,)
        Weight of each example.
    dual_indptr, dual_classes, dual_values : ndarray
        The positive dual variables as a CSR matrix of shape (n_samples, n_classes).
    objective : float
        Value of the primal problem at the solution.
    gap : float
        Duality gap, primal minus dual value: how much `objective` can exceed the optimum.
    n_iter : int
        Number of sweeps.
    converged : bool
        Whether the gap has reached ``tol * objective``.
    scores : iterable of (int, ndarray)
        Scores of the examples in blocks of rows, each with the number of its first row. They are
        at hand if there is a single block, and computed anew otherwise; those of absent classes
        are minus infinity.
    """

    coef: Floats
    intercept: Floats
    y: Classes
    C: Floats
    dual_indptr: Longs
    dual_classes: Classes
    dual_values: Floats
    objective: float = np.inf
    gap: float = np.inf
    n_iter: int = 0
    converged: bool = False
    scores: ScoreParts = ()

    @property
    def relative_gap(self) -> float:
        """Duality gap as a share of the objective."""
        return self.gap / self.objective if self.objective > 0 else 0.0


def fit_crammer_singer(
    X: Matrix,
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
    absent: tuple[NDArray[np.integer], NDArray[np.integer]] | None = None,
) -> CrammerSingerResult:
    r"""Fit the weighted multi-class maximum-margin classifier of Crammer and Singer.

    Minimises ``½‖W‖² + ½‖b‖² + Σᵢ Cᵢ max(0, 1 + max_{p ≠ yᵢ} s_p(xᵢ) − s_{yᵢ}(xᵢ))`` with the
    scores ``s_p(x) = w_p·x + intercept_scaling · b_p`` by a sequential dual method.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Features. C-contiguous float64 arrays and CSR matrices are used as they are.
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
    absent : tuple of int arrays (indptr, indices), optional
        The pattern of a CSR matrix of shape (n_samples, n_classes): classes that don't compete
        with that of the example. Their scores count as minus infinity.

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
    problem = Problem(rows, bias, _squared_norms(X, bias), labels, weights)
    search = _Search(
        X=X,
        problem=problem,
        pool=_open_pool(_initial_duals(state, labels, weights, n_classes), n_classes),
        W=np.zeros((n_classes, n_features + 1), order="F" if is_sparse(X) else "C"),
        margins=np.empty(n_samples),
        gaps=np.empty(n_samples),
        buffers=Buffers._make([*np.empty((4, n_classes)), np.empty(n_classes, dtype=np.int32)]),
        random=np.array([2 * seed + 1], dtype=np.uint64),
        absent=absent,
    )
    if state is not None and n_classes > kernels.MAX_FREE_CLASSES:
        search.recall(state)
    objective, gap, scores = search.run(float(tol), int(max_iter))
    return CrammerSingerResult(
        np.ascontiguousarray(search.W[:, :n_features]),
        bias * search.W[:, n_features],
        labels,
        weights,
        *_close_pool(search.pool),
        objective=objective,
        gap=gap,
        n_iter=search.n_iter,
        converged=gap <= tol * objective,
        scores=scores,
    )


# --------------------------------------------------------------------------------------------------
# Input
# --------------------------------------------------------------------------------------------------


def _as_rows(X: Matrix) -> tuple[Matrix, Rows]:
    """Features as a matrix and as the kernels take them: both share their memory."""
    if is_sparse(X):
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        X = X.astype(np.float64, copy=False)
        return X, (_read_only(X.data), _read_only(X.indices), _read_only(X.indptr))
    X = np.ascontiguousarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise ValueError(
            f"X must have two dimensions, got {X.ndim}: reshape it to rows of features"
        )
    return X, _read_only(X)


def _read_only(array: Array) -> Array:
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
    good = (given >= 0) & (given < n_classes)
    if not good.all():
        row = int(good.argmin())
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
    weights = np.full(n_samples, given)
    good = (weights >= 0) & (weights < np.inf)
    if not good.all():
        row = int(good.argmin())
        raise ValueError(f"C must be finite and not negative, got {weights[row]} for row {row}")
    return weights


def _squared_norms(X: Matrix, bias: float) -> Floats:
    """Squared norms of the rows, the constant feature included."""
    if isinstance(X, np.ndarray):
        norms = np.einsum("ij,ij->i", X, X) + bias * bias
    else:
        norms = np.asarray(X.power(2).sum(axis=1)).ravel() + bias * bias
    if not (norms < np.inf).all():
        row = int((norms < np.inf).argmin())
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
    n = len(y)
    rows = np.repeat(np.arange(n), np.diff(state.dual_indptr))
    shares = state.dual_values / state.C[rows]
    filled = np.bincount(rows, shares, minlength=n)
    # A full block stays full to the last bit.
    unit = np.divide(C, filled, out=C.copy(), where=filled > kernels.BELOW_BOUND)
    values = shares * unit[rows]
    kept = (y == state.y)[rows] & (values > 0.0)
    return row_starts(rows[kept], n), state.dual_classes[kept], values[kept]


def row_starts(rows: Longs, n: int) -> Longs:
    """Return where each of n rows starts, given the row of every entry, in order."""
    return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])


def _open_pool(duals: Duals, n_classes: int) -> Pool:
    """Pool that holds the given variables, with space for new ones."""
    indptr, dual_classes, dual_values = duals
    size = np.diff(indptr)
    n_used = len(dual_values)
    new = kernels.MAX_NEW_CLASSES if n_classes > kernels.MAX_FREE_CLASSES else 2
    classes = np.empty(2 * n_used + new * len(size) + n_classes, dtype=np.int32)
    values = np.empty(len(classes))
    classes[:n_used], values[:n_used] = dual_classes, dual_values
    return Pool(indptr.copy(), size, size.copy(), classes, values)


def _slots(pool: Pool) -> tuple[Longs, Longs]:
    """All slots of the pool that are in use, and the examples that they belong to."""
    rows = np.repeat(np.arange(len(pool.size)), pool.size)
    before = np.cumsum(pool.size) - pool.size
    return rows, np.arange(len(rows)) + (pool.start[:-1] - before)[rows]


def _close_pool(pool: Pool) -> Duals:
    """Positive variables of the pool in CSR format."""
    rows, slots = _slots(pool)
    kept = pool.values[slots] > 0.0
    slots = slots[kept]
    indptr = row_starts(rows[kept], len(pool.size))
    return indptr, pool.classes[slots], pool.values[slots]


# --------------------------------------------------------------------------------------------------
# Search
# --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Search:
    """The variables and weights that the sweeps work on, and the effort so far."""

    X: Matrix
    problem: Problem
    pool: Pool
    W: Floats
    margins: Floats
    gaps: Floats
    buffers: Buffers
    random: NDArray[np.uint64]
    absent: tuple[NDArray[np.integer], NDArray[np.integer]] | None
    n_iter: int = 0
    best: tuple[float, Floats] | None = None

    def recall(self, state: CrammerSingerResult) -> None:
        """Take the weights of an earlier solution, or a multiple, for the best so far."""
        bias = self.problem.bias
        self.W[:, :-1] = state.coef
        self.W[:, -1] = state.intercept / bias if bias else 0.0
        scale, objective, _ = self.measure(self.score_blocks())
        self.best = objective, scale * self.W
        self.W.fill(0.0)

    def run(self, tol: float, max_iter: int) -> tuple[float, float, ScoreParts]:
        """Screen and refine in turn until the gap is small.

        Returns the objective, the gap and the scores of all examples and classes.
        """
        share, left, max_sweeps, is_slow = FIRST_TARGET, np.inf, _SWEEPS_MIN, False
        rebuilt = 0
        self.start()
        while True:
            blocks = self.score_blocks()
            scale, objective, gap = self.measure(blocks)
            bound = objective - gap
            if self.best is not None and objective < self.best[0]:
                self.best = objective, scale * self.W
            if self.best is not None:
                objective, gap = self.best[0], max(0.0, self.best[0] - bound)
            if gap <= tol * objective or self.n_iter >= max_iter:
                if self.best is None:
                    return objective, gap, self.rescale(scale, blocks)
                self.W = self.best[1]
                return objective, gap, self.score_blocks()
            unscaled = float(self.gaps.sum())
            max_sweeps = max_sweeps // 2 if unscaled > MAX_GAP_GROWTH * left else 2 * max_sweeps
            max_sweeps = min(max(max_sweeps, _SWEEPS_MIN), _SWEEPS_MAX)
            target = unscaled * max(SWEEP_PROGRESS, share * tol * objective / gap)
            self.admit_classes(blocks)
            left, is_slow = self.refine(target, min(self.n_iter + max_sweeps, max_iter), is_slow)
            if self.n_iter >= rebuilt + _SWEEPS_BEFORE_REBUILDING:
                self.W.fill(0.0)
                kernels.build_weights(self.problem, self.pool, self._kernel_weights())
                rebuilt = self.n_iter
            share = SWEEP_TARGET

    def start(self) -> None:
        """Compute the first weights; shrink all variables by a common factor if that is better.

        The dual objective of ``t u`` is ``t Σ u − ½ t² ‖W(u)‖²``: largest at a ``t < 1`` if the
        variables have followed an increase of `C` too far.
        """
        total = kernels.build_weights(self.problem, self.pool, self._kernel_weights())
        squared_norm = float(np.vdot(self.W, self.W))
        if total < squared_norm:
            self.pool.values[: self.pool.start[-1]] *= total / squared_norm
            self.W *= total / squared_norm

    def _state(self) -> Sweeping:
        return Sweeping(self.problem, self._kernel_weights(), self.pool, self.buffers)

    def _kernel_weights(self) -> Floats:
        """Weights by class for dense rows, by feature for sparse ones."""
        return self.W.T if is_sparse(self.X) else self.W

    def score_blocks(self) -> ScoreParts:
        """Scores of all examples and classes; kept if they fit into one block."""
        intercept = self.problem.bias * self.W[:, -1]
        blocks = ScoreBlocks(self.X, self.W[:, :-1], intercept, self.absent)
        return list(blocks) if len(blocks) == 1 else blocks

    def measure(self, blocks: ScoreParts) -> tuple[float, float, float]:
        """Find the best multiple of the weights, its objective and its duality gap."""
        for first, scores in blocks:
            kernels.measure(self.problem, self.pool, first, scores, self.margins, self.gaps)
        squared_norm = float(np.vdot(self.W, self.W))
        scale, unscaled, objective = kernels.best_scale(squared_norm, self.problem.C, self.margins)
        return scale, objective, max(0.0, float(self.gaps.sum()) - (unscaled - objective))

    def rescale(self, scale: float, blocks: ScoreParts) -> ScoreParts:
        """Multiply the weights and their scores."""
        self.W *= scale
        if not isinstance(blocks, list):
            return self.score_blocks()
        for _, scores in blocks:
            scores *= scale
        return blocks

    def admit_classes(self, blocks: ScoreParts) -> None:
        """Find the classes that the examples with a part in the gap need."""
        n_classes = len(self.W)
        if n_classes > kernels.MAX_FREE_CLASSES:  # make room: a full pool forgets the first
            self.pool = _open_pool(_close_pool(self.pool), n_classes)
        for first, scores in blocks:
            row = 0
            while row < len(scores):
                row = kernels.admit_classes(self._state(), first, scores, row, self.gaps)
                if row < len(scores):  # the pool is full
                    self.pool = _open_pool(_close_pool(self.pool), n_classes)

    def refine(self, target: float, max_iter: int, is_slow: bool) -> tuple[float, bool]:
        """Sweep over the examples with a part in the gap, with the classes in the pool only.

        Stops after `max_iter` sweeps in all, or when the parts of the gap that a sweep has met add
        up to `target` at most. Each sweep has a random order of its own, until they make slow
        progress, which `is_slow` says of the first already. From then on they keep their order, so
        that one can extrapolate from them.

        Returns the gap that the last sweep has met, and whether they were slow.
        """
        members = np.flatnonzero(self.gaps > 0)
        n_members, gap = len(members), np.inf

        def sweep(max_sweeps: int, slots: Longs, history: Floats) -> int:
            nonlocal n_members, gap
            n_sweeps, n_members, gap = kernels.sweeps(
                self._state(), members, n_members, target, max_sweeps, self.random, slots, history
            )
            self.n_iter += n_sweeps
            return int(n_sweeps)

        n_random = 1 if is_slow else max_iter - self.n_iter
        sweep(n_random, np.empty(0, np.int64), np.empty((0, 0)))
        if self.n_iter == max_iter or gap <= target:
            return gap, False
        rows, slots = _slots(self.pool)
        history = np.empty((EXTRAPOLATED_SWEEPS, len(slots)))
        while self.n_iter < max_iter and gap > target:
            left = min(EXTRAPOLATED_SWEEPS, max_iter - self.n_iter)
            if sweep(left, slots, history) == left > 2:
                self.extrapolate(history[:left], rows, slots)
        return gap, True

    def extrapolate(self, history: Floats, rows: Longs, slots: Longs) -> None:
        """Move on to where the sweeps lead, if that is better (Anderson acceleration).

        `history` has the variables after each sweep, one row for each. The combination of the rows
        is taken for which the same combination of the changes from row to row is smallest.
        """
        C, values = self.problem.C, self.pool.values
        changes = history[1:] - history[:-1]
        gram = changes @ changes.T
        trace = gram.trace()
        if trace == 0.0:
            return
        gram.flat[:: len(gram) + 1] += EXTRAPOLATION_RIDGE * trace
        shares = np.linalg.solve(gram, np.ones(len(gram)))
        point = np.maximum(0.0, (shares / shares.sum()) @ history[1:])
        totals = np.bincount(rows, point, minlength=len(C))
        is_full = totals > C * kernels.BELOW_BOUND
        point *= np.divide(C, totals, out=np.ones(len(C)), where=is_full)[rows]
        moved = values.copy()
        moved[slots] = point
        V = np.zeros_like(self.W)
        pool = self.pool._replace(values=moved)
        kernels.build_weights(self.problem, pool, V.T if is_sparse(self.X) else V)
        gain = (point - values[slots]).sum() + (np.vdot(self.W, self.W) - np.vdot(V, V)) / 2
        if gain > 0:
            self.W[:] = V
            values[slots] = point
