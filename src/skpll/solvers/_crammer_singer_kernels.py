"""Compiled parts of the maximum-margin solver: rows, dual variables, sweeps, extrapolation.

They are in one file because the compiler's cache on disk notices changes only in the file of the
function that is called. For the same reason they take plain tuples: the cache refers to classes by
name, and could not be read any more where a class has a new name.

==========  ========================================================================================
`rows`      the features: a C-contiguous array, or (data, indices, indptr) of a CSR matrix
`problem`   (rows, bias, norms, y, C, n_classes): what stays the same during a solve
`pool`      (start, size, room, classes, values): the dual variables while they change. Those of
            example ``i`` are the ``size[i]`` slots from ``start[i]``, which may grow to
            ``room[i]``. Who needs more moves to the end, whose position is ``start[-1]``.
`blocks`    (examples, indptr, slots): some examples, and the slots of each in the pool
==========  ========================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numba import njit, types
from numba.extending import overload
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Classes: TypeAlias = NDArray[np.int32]
Longs: TypeAlias = NDArray[np.int64]
Rows: TypeAlias = NDArray[Any] | tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
Problem: TypeAlias = tuple[Rows, float, Floats, Classes, Floats, int]
Duals: TypeAlias = tuple[Longs, Classes, Floats]
Pool: TypeAlias = tuple[Longs, Classes, Classes, Classes, Floats]
Blocks: TypeAlias = tuple[Longs, Longs, Longs]

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
# The best scale of the weights is searched for by so many bisections.
_BISECTIONS = 16
# Sweeps are slow when one leaves more than this share of the gap.
_SLOW = 0.9
# Number of sweeps to extrapolate from, and what is added to the Gram matrix of their changes, as a
# share of its trace.
_MEMORY = 10
_RIDGE = 1e-8


# --------------------------------------------------------------------------------------------------
# Rows and weights: all that depends on the layout of the features
#
# The weights have the constant feature last. They are stored by class for dense rows, where a score
# is a product of two contiguous vectors, and by feature for sparse rows, where one feature touches
# the weights of all classes.
# --------------------------------------------------------------------------------------------------


def _by_layout(sparse: Callable, dense: Callable) -> Callable:
    """Make a compiled function of one for sparse and one for dense rows, its first argument."""

    def function(rows: Any, *others: Any) -> Any:
        raise NotImplementedError("to be called from compiled code")

    def choose(rows: types.Type, *_: types.Type) -> Callable:
        return sparse if isinstance(rows, types.BaseTuple) else dense

    overload(function, strict=False)(choose)
    return function


def _squared_norm_sparse(rows: Any, i: int) -> float:
    data, _, indptr = rows
    total = 0.0
    for k in range(indptr[i], indptr[i + 1]):
        total += np.float64(data[k]) * data[k]
    return total


def _squared_norm_dense(rows: Any, i: int) -> float:
    return _product(rows, i, rows, i)


@njit(**_INNER, **_FAST)
def _product(rows: Any, i: int, W: Any, p: int) -> float:
    total = 0.0
    for j in range(rows.shape[1]):
        total += np.float64(rows[i, j]) * W[p, j]
    return total


def _scores_sparse(
    rows: Any, i: int, bias: float, W: Floats, classes: Classes, n_given: int, out: Floats
) -> None:
    data, indices, indptr = rows
    first, last = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
    one = np.uint64(1)
    for c in range(n_given):
        p = np.uint64(classes[c])
        # Two sums, each in the order written, are faster than a vectorised gather.
        even, odd = bias * W[-1, p], 0.0
        for k in range(first, last - (last - first) % 2, 2):
            even += data[k] * W[np.uint64(indices[k]), p]
            odd += data[k + one] * W[np.uint64(indices[k + one]), p]
        if (last - first) % 2:
            odd += data[last - one] * W[np.uint64(indices[last - one]), p]
        out[c] = even + odd


def _scores_dense(
    rows: Any, i: int, bias: float, W: Floats, classes: Classes, n_given: int, out: Floats
) -> None:
    for c in range(n_given):
        out[c] = bias * W[classes[c], -1] + _product(rows, i, W, classes[c])


def _add_row_sparse(
    rows: Any, i: int, bias: float, W: Floats, classes: Classes, steps: Floats, n_given: int
) -> None:
    data, indices, indptr = rows
    for c in range(n_given):
        p = np.uint64(classes[c])
        step = steps[c]
        W[-1, p] += step * bias
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            W[np.uint64(indices[k]), p] += step * data[k]


def _add_row_dense(
    rows: Any, i: int, bias: float, W: Floats, classes: Classes, steps: Floats, n_given: int
) -> None:
    for c in range(n_given):
        p = classes[c]
        step = steps[c]
        W[p, -1] += step * bias
        for j in range(rows.shape[1]):
            W[p, j] += step * rows[i, j]


# The squared norm of a row; its scores for the given classes; the weights of the given classes plus
# multiples of it.
_squared_norm = _by_layout(_squared_norm_sparse, _squared_norm_dense)
_scores = _by_layout(_scores_sparse, _scores_dense)
_add_row = _by_layout(_add_row_sparse, _add_row_dense)


@njit(**_OUTER)
def fill_squared_norms(rows: Rows, bias: float, out: Floats) -> None:
    """Squared norms of the rows, the constant feature included."""
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
def transfer_duals(earlier: Duals, old_y: Classes, old_C: Floats, y: Classes, C: Floats) -> Duals:
    """Scale the variables of each example with its weight; drop them where the class changed."""
    old_indptr, old_classes, old_values = earlier
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
    return indptr, classes[:end].copy(), values[:end].copy()


@njit(**_OUTER)
def open_pool(duals: Duals, n_classes: int) -> Pool:
    """Pool that holds the given variables, with space for new ones."""
    indptr, dual_classes, dual_values = duals
    n_samples = len(indptr) - 1
    n_used = indptr[n_samples]
    classes = np.empty(n_used + 2 * n_samples + n_classes, dtype=np.int32)
    values = np.empty(len(classes))
    size = np.empty(n_samples, dtype=np.int32)
    for k in range(n_used):
        classes[k] = dual_classes[k]
        values[k] = dual_values[k]
    for i in range(n_samples):
        size[i] = indptr[i + 1] - indptr[i]
    return indptr.copy(), size, size.copy(), classes, values


@njit(**_INNER)
def _enlarge(pool: Pool, n_classes: int) -> Pool:
    """Copy of a pool without the places that have become vacant, but with new ones at the end."""
    old_start, size, _, old_classes, old_values = pool
    start = np.zeros_like(old_start)
    for i in range(len(size)):
        start[i + 1] = start[i] + size[i]
    classes = np.empty(2 * (start[-1] + len(size)) + n_classes, dtype=np.int32)
    values = np.empty(len(classes))
    for i in range(len(size)):
        for k in range(size[i]):
            classes[start[i] + k] = old_classes[old_start[i] + k]
            values[start[i] + k] = old_values[old_start[i] + k]
    return start, size, size.copy(), classes, values


@njit(**_OUTER)
def close_pool(pool: Pool) -> Duals:
    """Positive variables of the pool in CSR format."""
    start, size, _, pool_classes, pool_values = pool
    n_samples = len(size)
    indptr = np.zeros(n_samples + 1, dtype=np.int64)
    for i in range(n_samples):
        indptr[i + 1] = indptr[i]
        for k in range(start[i], start[i] + size[i]):
            indptr[i + 1] += pool_values[k] > 0.0
    classes = np.empty(indptr[n_samples], dtype=np.int32)
    values = np.empty(indptr[n_samples])
    end = 0
    for i in range(n_samples):
        for k in range(start[i], start[i] + size[i]):
            if pool_values[k] > 0.0:
                classes[end] = pool_classes[k]
                values[end] = pool_values[k]
                end += 1
    return indptr, classes, values


@njit(**_OUTER)
def build_weights(problem: Problem, pool: Pool, W: Floats) -> float:
    """Compute ``W(u)``; return the sum of all variables."""
    rows, bias, _, y, _, n_classes = problem
    start, size, _, classes, values = pool
    moved, steps = np.empty(n_classes, dtype=np.int32), np.empty(n_classes)
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
    # What is below the threshold that the largest has alone plays no part.
    threshold = _threshold(pulls, n_given, max(0.5 * own, -limit), own, 1)
    is_full = threshold - own >= limit
    if is_full:
        threshold = _threshold(pulls, n_given, max(threshold, -limit), -limit, 0)
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
    rows: Rows,
    i: int,
    bias: float,
    W: Floats,
    classes: Classes,
    old: Floats,
    new: Floats,
    n_given: int,
    moved: Classes,
    steps: Floats,
) -> None:
    """Carry the change of the variables of an example over to the weights.

    The own class follows the `n_given` others; `moved` and `steps` are buffers.
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
    moved[n_moved] = classes[n_given]
    steps[n_moved] = total
    _add_row(rows, i, bias, W, moved, steps, n_moved + 1)


# --------------------------------------------------------------------------------------------------
# Sweeps
# --------------------------------------------------------------------------------------------------


@njit(**_INNER)
def _shuffle(order: Longs, random: NDArray[np.uint64]) -> None:
    """Shuffle in place (Fisher and Yates) with a 64-bit xorshift generator."""
    state = random[0]
    for k in range(len(order) - 1, 0, -1):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        j = np.int64((state >> np.uint64(11)) % np.uint64(k + 1))
        order[k], order[j] = order[j], order[k]
    random[0] = state


@njit(**_INNER)
def _block_gap(
    scores: Floats, own_score: float, values: Floats, n_given: int, C: float
) -> tuple[float, float]:
    """Sum of the variables of an example and its part of the duality gap.

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
    return total, gap


@njit(**_INNER, fastmath={"nnan", "nsz"})
def _largest(values: Floats) -> float:
    top = -np.inf
    for k in range(len(values)):
        top = values[k] if values[k] > top else top
    return top


@njit(**_OUTER)
def measure(
    y: Classes, C: Floats, pool: Pool, scores: Floats, first: int, margins: Floats, gaps: Floats
) -> None:
    """Margins and parts of the duality gap of the examples from `first` on, given all scores."""
    start, size, _, classes, values = pool
    for m in range(len(scores)):
        i = first + m
        own_score = scores[m, y[i]]
        top = max(_largest(scores[m, : y[i]]), _largest(scores[m, y[i] + 1 :]))
        loss = max(0.0, 1.0 + top - own_score)
        total = 0.0
        gap = 0.0
        for k in range(start[i], start[i] + size[i]):
            total += values[k]
            if values[k] > 0.0:
                gap += values[k] * (loss - 1.0 - scores[m, classes[k]] + own_score)
        margins[i] = own_score - top
        gaps[i] = gap + max(0.0, C[i] - total) * loss


@njit(**_OUTER)
def best_scale(squared_norm: float, C: Floats, margins: Floats) -> tuple[float, float, float]:
    """Find the multiple of the weights with the least objective, by bisection up to twice.

    Returns the factor, the objective of the weights as they are, and that of their multiple.
    """
    low, high = 0.0, 2.0
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        if middle * squared_norm < _pull_of_losses(C, margins, middle):
            low = middle
        else:
            high = middle
    at_one = 0.5 * squared_norm + _sum_of_losses(C, margins, 1.0)
    at_high = 0.5 * squared_norm * high * high + _sum_of_losses(C, margins, high)
    return (high, at_one, at_high) if at_high < at_one else (1.0, at_one, at_one)


@njit(**_INNER, **_FAST)
def _sum_of_losses(C: Floats, margins: Floats, scale: float) -> float:
    total = 0.0
    for i in range(len(C)):
        total += C[i] * max(0.0, 1.0 - scale * margins[i])
    return total


@njit(**_INNER, **_FAST)
def _pull_of_losses(C: Floats, margins: Floats, scale: float) -> float:
    """By how much the losses fall for each unit of scale."""
    total = 0.0
    for i in range(len(C)):
        total += C[i] * margins[i] if scale * margins[i] < 1.0 else 0.0
    return total


@njit(**_OUTER)
def admit_classes(
    y: Classes,
    C: Floats,
    norms: Floats,
    pool: Pool,
    scores: Floats,
    first: int,
    gaps: Floats,
    negligible: float,
) -> Pool:
    """Give the classes that the blocks call for a place in the pool, where the gap is large."""
    start, size, room, classes, values = pool
    n_classes = scores.shape[1]
    old, new, pulls = np.zeros(n_classes), np.empty(n_classes), np.empty(n_classes)
    given = np.empty(n_classes, dtype=np.int32)
    for m in range(len(scores)):
        i = first + m
        if gaps[i] <= negligible:
            continue
        norm = norms[i]
        for p in range(n_classes):
            pulls[p] = scores[m, p]
        total = 0.0
        n_positive = 0
        for k in range(start[i], start[i] + size[i]):
            old[classes[k]] = values[k]
            pulls[classes[k]] += norm * values[k]
            total += values[k]
            n_positive += values[k] > 0.0
        own = pulls[y[i]] - 1.0 - norm * total
        pulls[y[i]] = -np.inf
        top = _largest(pulls)
        # A class below the threshold that the strongest one has alone plays no part.
        least = max(0.5 * (own + top), top - norm * C[i])
        n_given = 0
        for p in range(n_classes):
            given[n_given] = p
            pulls[n_given] = pulls[p]
            n_given += (pulls[p] >= least) | (old[p] > 0.0)
        if n_given == n_positive:  # all that could be needed has its place
            for k in range(n_given):
                old[given[k]] = 0.0
            continue
        _solve_block(pulls, n_given, own, norm, C[i], new)
        n_needed = 0
        for k in range(n_given):
            given[n_needed] = given[k]
            n_needed += (old[given[k]] > 0.0) | (new[k] > 0.0)
        if n_needed > room[i]:
            if start[-1] + n_needed > len(values):
                pool = _enlarge(pool, n_classes)
                start, size, room, classes, values = pool
            start[i] = start[-1]
            room[i] = n_needed
            start[-1] += n_needed
        size[i] = n_needed
        for k in range(n_needed):
            classes[start[i] + k] = given[k]
            values[start[i] + k] = old[given[k]]
            old[given[k]] = 0.0
    return pool


@njit(**_OUTER)
def refine(
    problem: Problem,
    W: Floats,
    pool: Pool,
    members: Longs,
    target: float,
    negligible: float,
    max_sweeps: int,
    is_slow: bool,
    random: NDArray[np.uint64],
) -> tuple[int, float, bool]:
    """Sweep over the members, with the classes in the pool only, again and again.

    Stops after `max_sweeps`, or when the parts of the gap that a sweep has met add up to `target`
    at most. Each sweep has a random order of its own, until they make slow progress, which
    `is_slow` says of the first already. From then on they keep their order, so that one can
    extrapolate from them.

    Returns the number of sweeps, the gap that the last one has met, and whether they were slow.
    """
    n_members, n_sweeps = len(members), 0
    before = gap = np.inf
    max_random = 1 if is_slow else max_sweeps
    while n_sweeps < max_random and gap > target and gap <= _SLOW * before:
        _shuffle(members[:n_members], random)
        before = gap
        n_members, gap = _sweep(problem, W, pool, members, n_members, negligible, True)
        n_sweeps += 1
    if n_sweeps == max_sweeps or gap <= target:
        return n_sweeps, gap, False
    blocks = _locate(pool, members[:n_members])
    slots, values = blocks[2], pool[4]
    history = np.empty((_MEMORY, len(slots)))
    n_known = 0
    while n_sweeps < max_sweeps and gap > target:
        n_members, gap = _sweep(problem, W, pool, members, n_members, negligible, False)
        n_sweeps += 1
        for k in range(len(slots)):
            history[n_known, k] = values[slots[k]]
        n_known += 1
        if n_known == _MEMORY or (n_known > 2 and n_sweeps == max_sweeps):
            _extrapolate(problem, W, pool, blocks, history[:n_known])
            n_known = 0
    return n_sweeps, gap, True


@njit(**_INNER)
def _locate(pool: Pool, members: Longs) -> Blocks:
    """Find the slots of some examples in the pool."""
    start, size, _, _, _ = pool
    indptr = np.zeros(len(members) + 1, dtype=np.int64)
    for m in range(len(members)):
        indptr[m + 1] = indptr[m] + size[members[m]]
    slots = np.empty(indptr[-1], dtype=np.int64)
    for m in range(len(members)):
        for k in range(size[members[m]]):
            slots[indptr[m] + k] = start[members[m]] + k
    return members.copy(), indptr, slots


@njit(**_INNER)
def _sweep(
    problem: Problem,
    W: Floats,
    pool: Pool,
    members: Longs,
    n_members: int,
    negligible: float,
    drop: bool,
) -> tuple[int, float]:
    """Solve the blocks of the first members, one after the other.

    Those whose part of the gap is negligible are left as they are, the others are moved to the
    front. Returns the number of these, and the sum of the parts of the gap. If asked to `drop`,
    classes whose variable has become zero lose their place in the pool.
    """
    rows, bias, norms, y, C, n_classes = problem
    start, size, _, classes, values = pool
    scores, pulls = np.empty(n_classes), np.empty(n_classes)
    old, new, steps = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    given = np.empty(n_classes, dtype=np.int32)
    moved = np.empty(n_classes, dtype=np.int32)
    n_kept = 0
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
        total, gap = _block_gap(scores, own_score, old, n_given, C[i])
        if gap <= negligible:
            continue
        for k in range(n_given):
            pulls[k] = scores[k] + norm * old[k]
        _solve_block(pulls, n_given, own_score - 1.0 - norm * total, norm, C[i], new)
        _move_block(rows, i, bias, W, given, old, new, n_given, moved, steps)
        n_stay = 0
        for k in range(n_given):
            classes[first + n_stay] = given[k]
            values[first + n_stay] = new[k]
            n_stay += new[k] > 0.0 or not drop
        size[i] = n_stay
        members[n_kept] = i
        n_kept += 1
        gap_sum += gap
    return n_kept, gap_sum


# --------------------------------------------------------------------------------------------------
# Extrapolation
# --------------------------------------------------------------------------------------------------


@njit(**_INNER)
def _extrapolate(problem: Problem, W: Floats, pool: Pool, blocks: Blocks, history: Floats) -> None:
    """Move on to where the sweeps lead, if that is better (Anderson acceleration).

    `history` has the variables after each sweep, one row for each. The combination of the rows is
    taken for which the same combination of the changes from row to row is smallest.
    """
    rows, bias, _, y, C, n_classes = problem
    examples, indptr, slots = blocks
    classes, values = pool[3], pool[4]
    shares = _smallest_combination(history)
    V = W.copy()
    old, new, steps = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    given = np.empty(n_classes, dtype=np.int32)
    moved = np.empty(n_classes, dtype=np.int32)
    point = np.zeros(len(slots))
    for r in range(len(shares)):
        for k in range(len(slots)):
            point[k] += shares[r] * history[r + 1, k]
    gain = _half_squared_norm(W)
    for m in range(len(examples)):
        i, first, n_given = examples[m], indptr[m], indptr[m + 1] - indptr[m]
        total = 0.0
        for k in range(n_given):
            new[k] = max(0.0, point[first + k])
            total += new[k]
        factor = C[i] / total if total > C[i] * (1.0 - _ROUNDING) else 1.0
        for k in range(n_given):
            given[k] = classes[slots[first + k]]
            old[k] = values[slots[first + k]]
            new[k] *= factor
            point[first + k] = new[k]
            gain += new[k] - old[k]
        given[n_given] = y[i]
        _move_block(rows, i, bias, V, given, old, new, n_given, moved, steps)
    if gain > _half_squared_norm(V):
        for j in range(W.shape[0]):
            for k in range(W.shape[1]):
                W[j, k] = V[j, k]
        for k in range(len(slots)):
            values[slots[k]] = point[k]


@njit(**_INNER, **_FAST)
def _smallest_combination(history: Floats) -> Floats:
    """Shares of sum one for which the combination of the changes from row to row is smallest."""
    n = len(history) - 1
    gram = np.empty((n, n))
    for a in range(n):
        for b in range(a + 1):
            total = 0.0
            for k in range(history.shape[1]):
                total += (history[a + 1, k] - history[a, k]) * (history[b + 1, k] - history[b, k])
            gram[a, b] = total
            gram[b, a] = total
    trace = 0.0
    for a in range(n):
        trace += gram[a, a]
    # Gaussian elimination; the matrix is positive definite.
    shares = np.ones(n)
    for a in range(n):
        gram[a, a] += _RIDGE * trace
    for a in range(n):
        for b in range(a + 1, n):
            factor = gram[b, a] / gram[a, a]
            for c in range(a, n):
                gram[b, c] -= factor * gram[a, c]
            shares[b] -= factor * shares[a]
    for a in range(n - 1, -1, -1):
        for c in range(a + 1, n):
            shares[a] -= gram[a, c] * shares[c]
        shares[a] /= gram[a, a]
    return shares / shares.sum()
