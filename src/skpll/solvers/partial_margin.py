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

The problem of one example, with the variables of all others fixed, has the same form, with one over
the squared length of the example in the place of :math:`\sigma C`. Dense problems are brought near
the optimum by *sweeps* that solve it for one example after the other (a sequential dual method) and
look only at rivals that matter; *screening*, one product of matrices, finds these and the duality
gap. Where that is slow, and for sparse features, Newton's method does the rest.

Weights that are very large for the lengths of the examples (features as they come) hardly matter,
but make the problem slow to solve. Dense problems are then solved with smaller ones first:
variables that stay below their bounds solve it for all larger bounds, too, which their duality gap
in the problem itself certifies.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from skpll._docs import documented
from skpll._typing import Floats, Ints
from skpll.engine.arrays import Matrix

from ._compiled import inner_kernel, kernel
from ._crammer_singer_kernels import best_scale
from .dual_newton import (
    Bend,
    LinearSolution,
    Report,
    Response,
    Rows,
    check_pattern,
    check_state,
    minimize_linear,
)

BELOW_BOUND = 1.0 - 1e-12
"""A sum of variables below this share of its bound can grow."""

SWEEP_PROGRESS, SWEEP_TARGET = 0.1, 0.3
"""Sweeps end at this share of the gap that screening found, or of the gap that is asked for."""

MIN_SWEEPS, MAX_SWEEPS, MAX_TOTAL_SWEEPS = 5, 80, 600
"""Number of sweeps between two screenings, at first and at most, and in all."""

SLOW_PROGRESS = 0.97
"""Sweeps are given up if a screening finds more than this share of the gap before."""

MAX_PRODUCT = 1e3
"""Weights whose product with the mean squared length exceeds this are replaced by smaller ones
first, with ever smaller gaps (`SMALLER_GAPS`) while no variable reaches `NEAR_BOUND`."""

SMALLER_GAPS, NEAR_BOUND = (1.0, 0.25, 0.06), 0.999

NEGLIGIBLE = 0.03
"""An example is left out if its part of the gap is below this share of the mean aimed at."""


@documented
def fit_partial_margin(
    X: Matrix,
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

    <<Parameters: pattern>>
    targets : array of the size of `indices`
        How much each candidate counts; non-negative, with sum one in every row.
    C : float or array of shape (n,)
        The positive weight of the loss of each example.
    n_classes : int
        Number of classes q.
    <<constant_feature>>
    state : LinearSolution, optional
        The solution for other targets or weights, to start from.
    tol : float, default=1e-4
        Stop when the duality gap is at most `tol` times the objective.
    <<until>>

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
    loss = PartialMarginLoss(starts, classes, _check_targets(targets, starts), weights)
    problem = _Problem(X, n_classes, fit_intercept, max_iter)
    if not sparse.issparse(X):
        if state is not None:
            check_state(state, X.shape[0], n_classes)
        problem = problem._replace(X=np.ascontiguousarray(X, dtype=np.float64))
        state = problem.approach(loss, state, tol)
    return problem.solve(loss, state, tol, report)


class _Problem(NamedTuple):
    """What stays the same whatever the weights are."""

    X: Matrix
    n_classes: int
    fit_intercept: bool
    max_iter: int

    def solve(
        self,
        loss: PartialMarginLoss,
        state: LinearSolution | None,
        tol: float,
        report: Report | None = None,
    ) -> LinearSolution:
        """Sweep, where features are dense; take Newton's steps where that is not enough."""
        if not sparse.issparse(self.X):
            state = self._sweeps(loss).solve(state, tol)
            if state.converged:
                if report is not None:
                    report(state.n_iter, state.objective, state.gap)
                return state
        return minimize_linear(
            self.X,
            loss,
            self.n_classes,
            fit_intercept=self.fit_intercept,
            state=state,
            tol=tol,
            max_iter=self.max_iter,
            report=report,
        )

    def approach(
        self, loss: PartialMarginLoss, state: LinearSolution | None, tol: float
    ) -> LinearSolution | None:
        """Solve the problem with smaller weights, where its own are very large.

        The solution is a start only where no variable is near its bound: elsewhere larger weights
        have another one, which is found sooner without it.
        """
        length = float(np.einsum("ij,ij->i", self.X, self.X).mean())
        highest = MAX_PRODUCT / length if length > 0 else np.inf
        if highest >= loss.C.max():
            return state
        smaller = loss._replace(C=np.minimum(loss.C, highest))
        found = state
        for accuracy in SMALLER_GAPS:
            found = self.solve(smaller, found, accuracy * tol)
            if (np.maximum(found.slopes, 0).sum(axis=1) >= NEAR_BOUND * highest).any():
                return state
            if self._sweeps(loss).certify(found, tol).converged:
                break
        return found

    def _sweeps(self, loss: PartialMarginLoss) -> _Sweeps:
        return _Sweeps(self.X, loss, self.n_classes, self.fit_intercept)


def _check_targets(targets: ArrayLike, starts: NDArray[np.int64]) -> Floats:
    checked = np.asarray(targets, dtype=np.float64)
    if checked.shape != (starts[-1],):
        raise ValueError(f"targets: {checked.size} values for {starts[-1]} candidates.")
    sums = np.add.reduceat(checked, starts[:-1])
    lowest = np.minimum.reduceat(checked, starts[:-1])
    wrong = np.flatnonzero(~((np.abs(sums - 1) <= 1e-9) & (lowest >= 0)))
    if len(wrong):
        raise ValueError(
            f"targets: those of row {wrong[0]} have sum {sums[wrong[0]]:.6g} and minimum "
            f"{lowest[wrong[0]]:.6g}; they must be non-negative with sum one."
        )
    return checked


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
        return Response(
            *_respond(self, scores, multipliers, sharpness, slopes, np.empty(scores.shape[1]))
        )

    def curvature(self, slopes: Floats, sharpness: float) -> tuple[Rows, Bend]:
        """Return the rows whose variables can move: not all zero, nor one alone at its bound."""
        positive = np.maximum(slopes, 0)
        totals = positive.sum(axis=1)
        below = (totals > 0) & (totals < BELOW_BOUND * self.C)
        rows = np.flatnonzero(below | (np.count_nonzero(positive, axis=1) > 1))
        return rows, partial(_bend, self, rows, slopes, sharpness)


@inner_kernel
def _threshold(pulls, n_pulls, start, offset, extra):  # type: ignore[no-untyped-def]
    """Find the fixed point ``t = (offset + sum of the pulls above t) / (extra + their number)``.

    From a start below it the thresholds rise, and ever fewer pulls are above them. More than before
    can only be above by rounding, when a pull is as large as the threshold: it makes no difference.
    """
    threshold = start
    n_above = n_pulls + 1
    while True:
        total = offset
        n_before, n_above = n_above, 0
        for k in range(n_pulls):
            if pulls[k] > threshold:
                total += pulls[k]
                n_above += 1
        if n_above == 0 or n_above >= n_before:
            return threshold
        threshold = total / (extra + n_above)


@kernel
def _respond(  # type: ignore[no-untyped-def]
    problem, scores, multipliers, sharpness, slopes, pulls
):
    r"""Solve the problem of every example; `pulls` is room for a number for each class.

    With :math:`F` the classes above the threshold, :math:`o = \pi^\top z - 1` and
    :math:`\kappa = \|\pi\|^2`, it is
    :math:`\beta = (o / \kappa + \sum_F z_p) / (1 / \kappa + |F|)` or, if that would make the sum of
    the variables exceed its bound, :math:`\beta = (\sum_F z_p - 1 / \sigma) / |F|`.
    """
    indptr, indices, targets, C = problem.indptr, problem.indices, problem.targets, problem.C
    n, q = scores.shape
    loss, residual = 0.0, 0.0
    for i in range(n):
        target, spread = 0.0, 0.0
        for p in range(q):
            slopes[i, p] = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            target += targets[k] * scores[i, indices[k]]
            spread += targets[k] * targets[k]
            slopes[i, indices[k]] = -1.0
        n_rivals, multiplier, top = 0, 0.0, -np.inf
        for p in range(q):
            if slopes[i, p] == 0.0:
                part = multipliers[i, p] / C[i]
                multiplier += part
                top = max(top, scores[i, p])
                pulls[n_rivals] = scores[i, p] + part / sharpness
                n_rivals += 1
        own, width = target - 1.0 - spread * multiplier / sharpness, 1.0 / sharpness
        threshold = _threshold(pulls, n_rivals, own, own / spread, 1.0 / spread)
        if threshold - own >= spread * width:
            threshold = _threshold(pulls, n_rivals, threshold, -width, 0.0)
        hinge = max(0.0, 1.0 + top - target)
        total, place = 0.0, 0
        for p in range(q):
            if slopes[i, p] == 0.0:
                slopes[i, p] = C[i] * sharpness * max(0.0, pulls[place] - threshold)
                residual += slopes[i, p] * (hinge - 1.0 - scores[i, p] + target)
                total += slopes[i, p]
                place += 1
        for k in range(indptr[i], indptr[i + 1]):
            slopes[i, indices[k]] = -total * targets[k]
        loss += C[i] * hinge
        residual += max(0.0, C[i] - total) * hinge
    return loss, residual


@kernel
def _bend(loss, rows, slopes, sharpness, changes):  # type: ignore[no-untyped-def]
    indptr, indices, targets, C = loss.indptr, loss.indices, loss.targets, loss.C
    q = slopes.shape[1]
    for r in range(len(rows)):
        i = rows[r]
        gain = sharpness * C[i]
        own, spread = 0.0, 0.0
        for k in range(indptr[i], indptr[i + 1]):
            own += targets[k] * changes[r, indices[k]]
            spread += targets[k] * targets[k]
        n_positive, total, pull = 0, 0.0, 0.0
        for p in range(q):
            if slopes[i, p] > 0.0:
                n_positive += 1
                total += slopes[i, p]
                pull += changes[r, p]
        if total < BELOW_BOUND * C[i]:
            moved = (pull - n_positive * own) / (1.0 + spread * n_positive)
            shift = own + spread * moved
        else:
            moved = 0.0
            shift = pull / n_positive
        for p in range(q):
            changes[r, p] = gain * (changes[r, p] - shift) if slopes[i, p] > 0.0 else 0.0
        for k in range(indptr[i], indptr[i + 1]):
            changes[r, indices[k]] = -gain * moved * targets[k]


class _Work(NamedTuple):
    """What the sequential dual method works on.

    Attributes
    ----------
    X, bias, norms : array of shape (n, d), float, array of shape (n,)
        The features, the constant feature (zero if there is none), and the squared lengths of both.
    U : array of shape (n, q)
        The dual variables.
    active, n_active : int arrays of shape (n, q) and (n,)
        The rivals that matter, in the first places of each row, and their number.
    margins, gaps : arrays of shape (n,)
        The margin of each example, and its part of the duality gap.
    room : array of shape (2, q)
        Room for the numbers of one example.
    """

    X: Floats
    bias: float
    norms: Floats
    U: Floats
    active: NDArray[np.int32]
    n_active: NDArray[np.int32]
    margins: Floats
    gaps: Floats
    room: Floats


class _Sweeps:
    """The sequential dual method on dense features.

    Parameters
    ----------
    X : array of shape (n, d)
        The features.
    loss : PartialMarginLoss
        The loss.
    n_classes : int
        Number of classes.
    has_constant : bool
        Whether there is a constant feature; weights have it last.
    """

    def __init__(
        self, X: Floats, loss: PartialMarginLoss, n_classes: int, has_constant: bool
    ) -> None:
        n, bias = len(X), float(has_constant)
        self.loss, self.rows = loss, np.repeat(np.arange(n), np.diff(loss.indptr))
        self.work = _Work(
            X=X,
            bias=bias,
            norms=np.einsum("ij,ij->i", X, X) + bias**2,
            U=np.zeros((n, n_classes)),
            active=np.empty((n, n_classes), dtype=np.int32),
            n_active=np.zeros(n, dtype=np.int32),
            margins=np.empty(n),
            gaps=np.empty(n),
            room=np.empty((2, n_classes)),
        )

    def solve(self, state: LinearSolution | None, tol: float) -> LinearSolution:
        """Continue until the gap is as small as is asked for, or sweeps are slow."""
        self._begin(state)
        random, done, n_sweeps, before = np.random.RandomState(0), 0, MIN_SWEEPS, np.inf
        negligible = 0.0
        while True:
            solution, gap = self._screen(tol, done, negligible / 2)
            slow = gap > SLOW_PROGRESS * before
            if solution.converged or done >= MAX_TOTAL_SWEEPS or (slow and n_sweeps == MAX_SWEEPS):
                return solution
            before = gap
            goal = max(SWEEP_PROGRESS * gap, SWEEP_TARGET * tol * solution.objective)
            negligible = max(NEGLIGIBLE * goal / len(self.work.X), negligible / 2)
            members = np.flatnonzero(self.work.gaps > negligible)
            for _ in range(n_sweeps):
                members = members[random.permutation(len(members))]
                left, n_open = _sweep(self.loss, self.work, self.W, members, negligible)
                members, done = members[:n_open], done + 1
                if left <= goal or not n_open:
                    break
            else:
                n_sweeps = min(2 * n_sweeps, MAX_SWEEPS)

    def certify(self, state: LinearSolution, tol: float) -> LinearSolution:
        """Compute the duality gap of a solution for other weights."""
        self._begin(state)
        return self._screen(tol, state.n_iter, 0.0)[0]

    def _begin(self, state: LinearSolution | None) -> None:
        """Start from variables that are zero on candidates and within their bounds elsewhere."""
        U, C = self.work.U, self.loss.C
        U[:] = 0.0 if state is None else np.maximum(state.slopes, 0.0)
        U[self.rows, self.loss.indices] = 0.0
        totals = U.sum(axis=1)
        over = totals > C
        U[over] *= (C[over] / totals[over])[:, np.newaxis]

    def _screen(self, tol: float, n_iter: int, negligible: float) -> tuple[LinearSolution, float]:
        """Compute weights and scores anew; return the best multiple of the weights, and the gap."""
        X, bias, U, C = self.work.X, self.work.bias, self.work.U, self.loss.C
        slopes = U.copy()
        slopes[self.rows, self.loss.indices] = -U.sum(axis=1)[self.rows] * self.loss.targets
        total = slopes.sum(axis=0)[:, np.newaxis] * bias
        self.W = np.ascontiguousarray(np.column_stack([-(slopes.T @ X), -total]))
        coef, intercept = self.W[:, :-1], bias * self.W[:, -1]
        scores = X @ coef.T + intercept
        _screen(self.loss, self.work, scores, negligible)
        squared_norm = float(np.vdot(self.W, self.W))
        rivaled = np.isfinite(self.work.margins)
        factor, _, objective = best_scale(squared_norm, C[rivaled], self.work.margins[rivaled])
        objective, gap = float(objective), float(self.work.gaps.sum())
        certified = gap
        if factor != 1.0:
            certified = max(objective - float(U.sum()) + squared_norm / 2, 0.0)
        return LinearSolution(
            coef=factor * coef,
            intercept=factor * intercept,
            objective=objective,
            gap=certified,
            n_iter=n_iter,
            converged=certified <= tol * objective,
            scores=factor * scores,
            slopes=slopes,
        ), gap


@inner_kernel
def _solve_block(room, n_pulls, own, spread, norm, C):  # type: ignore[no-untyped-def]
    """Solve the problem of one example, see `_respond`: from the first row of `room` to the second.

    The threshold is at least what it would be for the strongest rival alone.
    """
    pulls, new = room[0], room[1]
    width, top = norm * C, pulls[0]
    for k in range(1, n_pulls):
        top = max(top, pulls[k])
    if top <= own:
        for k in range(n_pulls):
            new[k] = 0.0
        return
    threshold = (own + spread * top) / (1.0 + spread)
    full = threshold - own >= spread * width
    if not full:
        threshold = _threshold(pulls, n_pulls, threshold, own / spread, 1.0 / spread)
        full = threshold - own >= spread * width
    if full:
        threshold = _threshold(pulls, n_pulls, max(threshold, top - width), -width, 0.0)
    total = 0.0
    for k in range(n_pulls):
        new[k] = max(0.0, pulls[k] - threshold) / norm
        total += new[k]
    if full and total > 0.0:
        # To the last bit: a block short of its bound would never look settled.
        for k in range(n_pulls):
            new[k] *= C / total


@kernel
def _screen(loss, work, scores, negligible):  # type: ignore[no-untyped-def]
    """Find margins, parts of the gap and, where these matter, the rivals that are called for."""
    indptr, indices, targets, C = loss.indptr, loss.indices, loss.targets, loss.C
    norms, U, active, n_active = work.norms, work.U, work.active, work.n_active
    margins, gaps = work.margins, work.gaps
    n, q = scores.shape
    pulls, new = work.room[0], work.room[1]
    for i in range(n):
        target, spread = 0.0, 0.0
        for k in range(indptr[i], indptr[i + 1]):
            target += targets[k] * scores[i, indices[k]]
            spread += targets[k] * targets[k]
        n_rivals, top, total, pulled, place = 0, -np.inf, 0.0, 0.0, indptr[i]
        for p in range(q):
            if place < indptr[i + 1] and indices[place] == p:
                place += 1
                continue
            active[i, n_rivals] = p
            top = max(top, scores[i, p])
            total += U[i, p]
            pulled += U[i, p] * (target - scores[i, p] - 1.0)
            n_rivals += 1
        margins[i], gaps[i], n_active[i] = target - top, 0.0, 0
        if n_rivals == 0:
            continue
        hinge = max(0.0, 1.0 + top - target)
        gaps[i] = max(max(C[i], total) * hinge + pulled, 0.0)
        if gaps[i] <= negligible:
            continue
        for k in range(n_rivals):
            pulls[k] = scores[i, active[i, k]] + norms[i] * U[i, active[i, k]]
            new[k] = 0.0
        if norms[i] > 0.0:
            own = target - 1.0 - spread * norms[i] * total
            _solve_block(work.room, n_rivals, own, spread, norms[i], C[i])
        for k in range(n_rivals):
            p = active[i, k]
            if U[i, p] > 0.0 or new[k] > 0.0 or scores[i, p] == top:
                active[i, n_active[i]] = p
                n_active[i] += 1


@inner_kernel(fastmath={"reassoc", "contract", "nsz"})
def _score(X, i, bias, W, p):  # type: ignore[no-untyped-def]
    d = X.shape[1]
    total = bias * W[p, d]
    for j in range(d):
        total += X[i, j] * W[p, j]
    return total


@inner_kernel
def _add_row(X, i, bias, W, p, step):  # type: ignore[no-untyped-def]
    d = X.shape[1]
    W[p, d] += step * bias
    for j in range(d):
        W[p, j] += step * X[i, j]


@kernel
def _sweep(loss, work, W, members, negligible):  # type: ignore[no-untyped-def]
    """Solve the problems of the members, one after the other.

    Those whose part of the gap is negligible are left as they are, the others are moved to the
    front. Rivals whose variable stays zero lose their place until the next screening. Returns the
    sum of the parts of the gap as they were, and the number of the others.
    """
    indptr, indices, targets, C = loss.indptr, loss.indices, loss.targets, loss.C
    X, bias, norms, U = work.X, work.bias, work.norms, work.U
    active, n_active = work.active, work.n_active
    pulls, new = work.room[0], work.room[1]
    left, n_open = 0.0, 0
    for m in range(members.size):
        i = members[m]
        target, spread = 0.0, 0.0
        for k in range(indptr[i], indptr[i + 1]):
            if targets[k] > 0.0:
                target += targets[k] * _score(X, i, bias, W, indices[k])
                spread += targets[k] * targets[k]
        total, top = 0.0, -np.inf
        for k in range(n_active[i]):
            pulls[k] = _score(X, i, bias, W, active[i, k])
            top = max(top, pulls[k])
            total += U[i, active[i, k]]
        hinge = max(0.0, 1.0 + top - target)
        gap = max(0.0, C[i] - total) * hinge
        for k in range(n_active[i]):
            u = U[i, active[i, k]]
            gap += u * (hinge - 1.0 - pulls[k] + target)
            pulls[k] += norms[i] * u
        left += gap
        if gap <= negligible:
            continue
        members[n_open] = i
        n_open += 1
        if norms[i] == 0.0:
            U[i, active[i, 0]] = C[i]
            continue
        own = target - 1.0 - spread * norms[i] * total
        _solve_block(work.room, n_active[i], own, spread, norms[i], C[i])
        total, n_stay = 0.0, 0
        for k in range(n_active[i]):
            p = active[i, k]
            change = new[k] - U[i, p]
            if change != 0.0:
                _add_row(X, i, bias, W, p, -change)
                U[i, p] = new[k]
                total += change
            active[i, n_stay] = p
            n_stay += change != 0.0 or new[k] > 0.0
        n_active[i] = max(n_stay, 1)
        if total != 0.0:
            for k in range(indptr[i], indptr[i + 1]):
                if targets[k] > 0.0:
                    _add_row(X, i, bias, W, indices[k], total * targets[k])
    return left, n_open
