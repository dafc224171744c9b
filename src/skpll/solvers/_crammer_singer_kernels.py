"""Compiled parts of the maximum-margin solver: rows, dual variables, sweeps, conjugate gradients.

They are in one file because the compiler's cache on disk notices changes only in the file of the
function that is called. For the same reason they take plain tuples: the cache refers to classes by
name, and could not be read any more where a class has a new name.

==========  ========================================================================================
`rows`      the features: a C-contiguous array, or (data, indices, indptr) of a CSR matrix
`problem`   (rows, bias, norms, y, C, n_classes): what stays the same during a solve
`pool`      (start, size, room, classes, values): the dual variables while they change. Those of
            example ``i`` are the ``size[i]`` slots from ``start[i]``, which may grow to
            ``room[i]``. Who needs more moves to the end, whose position is ``start[-1]``.
`face`      (examples, is_full, indptr, slots): blocks of free variables, the slots of each in the
            pool, and whether the sum of a block is fixed
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
Face: TypeAlias = tuple[Longs, NDArray[np.bool_], Longs, Longs]

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
# Conjugate gradients stop at this share of the first residual, squared.
_CG_REDUCTION = 0.01
_CG_BACKTRACK = 0.4


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
    data, _, indptr = rows
    total = 0.0
    for k in range(indptr[i], indptr[i + 1]):
        total += np.float64(data[k]) * data[k]
    return total


def _squared_norm_dense(rows: Any, i: int) -> float:
    total = 0.0
    for j in range(rows.shape[1]):
        total += np.float64(rows[i, j]) * rows[i, j]
    return total


def _scores_sparse(
    rows: Any, i: int, bias: float, W: Floats, classes: Classes, n_given: int, out: Floats
) -> None:
    data, indices, indptr = rows
    for c in range(n_given):
        out[c] = bias * W[-1, classes[c]]
    for k in range(indptr[i], indptr[i + 1]):
        j = np.uint64(indices[k])
        for c in range(n_given):
            out[c] += data[k] * W[j, np.uint64(classes[c])]


def _scores_dense(
    rows: Any, i: int, bias: float, W: Floats, classes: Classes, n_given: int, out: Floats
) -> None:
    for c in range(n_given):
        p = classes[c]
        total = bias * W[p, -1]
        for j in range(rows.shape[1]):
            total += rows[i, j] * W[p, j]
        out[c] = total


def _add_row_sparse(
    rows: Any, i: int, bias: float, W: Floats, classes: Classes, steps: Floats, n_given: int
) -> None:
    data, indices, indptr = rows
    for c in range(n_given):
        W[-1, classes[c]] += steps[c] * bias
    for k in range(indptr[i], indptr[i + 1]):
        j = np.uint64(indices[k])
        for c in range(n_given):
            W[j, np.uint64(classes[c])] += steps[c] * data[k]


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
_squared_norm = _by_layout(_squared_norm_sparse, _squared_norm_dense, _FAST)
_scores = _by_layout(_scores_sparse, _scores_dense, _FAST)
_add_row = _by_layout(_add_row_sparse, _add_row_dense, {})


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


@njit(**_OUTER)
def dual_value(pool: Pool, W: Floats) -> float:
    """Value of the dual problem, given the weights of the variables."""
    start, size, _, _, values = pool
    total = 0.0
    for i in range(len(size)):
        for k in range(start[i], start[i] + size[i]):
            total += values[k]
    return total - _half_squared_norm(W)


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
    # No variable exceeds C: what is further below the largest than that plays no part.
    threshold = _threshold(pulls, n_given, max(own, -limit), own, 1)
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


@njit(**_OUTER)
def measure(
    y: Classes, C: Floats, pool: Pool, scores: Floats, first: int, gaps: Floats
) -> tuple[float, float]:
    """Weighted loss and duality gap of the examples from `first` on, given all their scores.

    Each part of the gap is written to `gaps`.
    """
    start, size, _, classes, values = pool
    loss_sum = 0.0
    gap_sum = 0.0
    for m in range(len(scores)):
        i = first + m
        own_class, own_score = y[i], scores[m, y[i]]
        top = -np.inf
        for p in range(own_class):
            top = max(top, scores[m, p])
        for p in range(own_class + 1, scores.shape[1]):
            top = max(top, scores[m, p])
        loss = max(0.0, 1.0 + top - own_score)
        total = 0.0
        gap = 0.0
        for k in range(start[i], start[i] + size[i]):
            total += values[k]
            if values[k] > 0.0:
                gap += values[k] * (loss - 1.0 - scores[m, classes[k]] + own_score)
        gaps[i] = gap + max(0.0, C[i] - total) * loss
        loss_sum += C[i] * loss
        gap_sum += gaps[i]
    return loss_sum, gap_sum


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
    start, size, _, classes, values = pool
    n_classes = scores.shape[1]
    old, new, pulls = np.zeros(n_classes), np.empty(n_classes), np.empty(n_classes)
    for m in range(len(scores)):
        i = first + m
        if gaps[i] <= negligible:
            continue
        total = 0.0
        for k in range(start[i], start[i] + size[i]):
            old[classes[k]] = values[k]
            total += values[k]
        for p in range(n_classes):
            pulls[p] = scores[m, p] + norms[i] * old[p]
        own = scores[m, y[i]] - 1.0 - norms[i] * total
        pulls[y[i]] = -np.inf
        _solve_block(pulls, n_classes, own, norms[i], C[i], new)
        if start[-1] + n_classes > len(values):
            pool = _enlarge(pool, n_classes)
            start, size, _, classes, values = pool
        _make_room(pool, i, old, new)
    return pool


@njit(**_INNER)
def _make_room(pool: Pool, i: int, old: Floats, new: Floats) -> None:
    """Give the classes where `old` or `new` is positive a slot, with the value of `old`.

    `old` is set to zero.
    """
    start, size, room, classes, values = pool
    n_needed = 0
    for p in range(len(old)):
        n_needed += old[p] > 0.0 or new[p] > 0.0
    if n_needed > room[i]:
        start[i] = start[-1]
        room[i] = n_needed
        start[-1] += n_needed
    slot = start[i]
    for p in range(len(old)):
        if old[p] > 0.0 or new[p] > 0.0:
            classes[slot] = p
            values[slot] = old[p]
            old[p] = 0.0
            slot += 1
    size[i] = n_needed


@njit(**_OUTER)
def restricted_sweeps(
    problem: Problem,
    W: Floats,
    pool: Pool,
    members: Longs,
    n_members: int,
    target: float,
    negligible: float,
    max_sweeps: int,
    random: NDArray[np.uint64],
) -> tuple[int, int, int, float]:
    """Visit the first members in random order, with the classes in the pool only, again and again.

    Those whose part of the gap is negligible are dropped, the others are moved to the front.
    Returns after `max_sweeps`, or when the sum of the parts of the gap is at most `target`: the
    number of sweeps, of members before and after the last one, and that sum.
    """
    rows, bias, norms, y, C, n_classes = problem
    start, size, _, classes, values = pool
    scores, pulls = np.empty(n_classes), np.empty(n_classes)
    old, new, steps = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    given = np.empty(n_classes, dtype=np.int32)
    moved = np.empty(n_classes, dtype=np.int32)
    n_before = n_members
    gap_sum = np.inf
    n_sweeps = 0
    while n_sweeps < max_sweeps and gap_sum > target:
        _shuffle(members, n_members, random)
        n_before, n_members = n_members, 0
        gap_sum = 0.0
        for m in range(n_before):
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
            n_positive = 0
            for k in range(n_given):
                classes[first + n_positive] = given[k]
                values[first + n_positive] = new[k]
                n_positive += new[k] > 0.0
            size[i] = n_positive
            members[n_members] = i
            n_members += 1
            gap_sum += gap
        n_sweeps += 1
    return n_sweeps, n_before, n_members, gap_sum


# --------------------------------------------------------------------------------------------------
# Conjugate gradients over the free variables
# --------------------------------------------------------------------------------------------------


@njit(**_INNER)
def _find_face(problem: Problem, pool: Pool, members: Longs) -> Face:
    """Find the positive variables, except those that are alone in a block with a fixed sum."""
    start, size, _, _, values = pool
    C = problem[4]
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
    return examples[:n_blocks], is_full[:n_blocks], indptr[: n_blocks + 1], slots[:end]


@njit(**_INNER)
def _add_weights(problem: Problem, pool: Pool, face: Face, direction: Floats, W: Floats) -> None:
    """Add the weights of a direction, given for the variables of the face, to `W`."""
    rows, bias, _, y, _, n_classes = problem
    examples, _, indptr, slots = face
    classes = pool[3]
    moved, steps = np.empty(n_classes, dtype=np.int32), np.empty(n_classes)
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
    problem: Problem, pool: Pool, face: Face, W: Floats, factor: float, out: Floats
) -> None:
    """Add a multiple of the margins ``w_y·x − w_p·x`` to the variables of the face."""
    rows, bias, _, y, _, n_classes = problem
    examples, _, indptr, slots = face
    classes = pool[3]
    given, scores = np.empty(n_classes, dtype=np.int32), np.empty(n_classes)
    for m in range(len(examples)):
        first, n_given = indptr[m], indptr[m + 1] - indptr[m]
        for k in range(n_given):
            given[k] = classes[slots[first + k]]
        given[n_given] = y[examples[m]]
        _scores(rows, examples[m], bias, W, given, n_given + 1, scores)
        for k in range(n_given):
            out[first + k] += factor * (scores[n_given] - scores[k])


@njit(**_INNER)
def _precondition(problem: Problem, face: Face, residual: Floats, out: Floats) -> float:
    """Solve with the diagonal blocks of the Hessian; return the product with the residual.

    The block of an example is ``A (I + 11ᵀ)``, or ``A I`` on the vectors of sum zero if it is full.
    """
    norms = problem[2]
    examples, is_full, indptr, _ = face
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
    problem: Problem, pool: Pool, face: Face, direction: Floats, step: float, out: Floats
) -> float:
    """Change of the variables by a step, cut off at the bounds; return the change of their sum."""
    values, C = pool[4], problem[4]
    examples, is_full, indptr, slots = face
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
    problem: Problem,
    W: Floats,
    V: Floats,
    pool: Pool,
    face: Face,
    max_steps: int,
    direction: Floats,
) -> int:
    """Minimise the dual over the face, bounds aside, by conjugate gradients; count the steps.

    `V` is a buffer of the shape of `W`.
    """
    n_free = len(direction)
    residual = np.ones(n_free)
    solved = np.empty(n_free)
    search = np.zeros(n_free)
    _add_margins(problem, pool, face, W, -1.0, residual)
    product = _precondition(problem, face, residual, solved)
    enough = _CG_REDUCTION * product
    ratio = 0.0
    for n_steps in range(max_steps):
        for k in range(n_free):
            search[k] = solved[k] + ratio * search[k]
        V.fill(0.0)
        _add_weights(problem, pool, face, search, V)
        curvature = 2.0 * _half_squared_norm(V)
        if not (product > enough and curvature > 0.0):
            return n_steps
        step = product / curvature
        for k in range(n_free):
            direction[k] += step * search[k]
        _add_margins(problem, pool, face, V, -step, residual)
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
def descend_face(
    problem: Problem, W: Floats, pool: Pool, members: Longs, max_steps: int, max_trials: int
) -> tuple[int, bool]:
    """Move the free variables towards the minimum over their face, as far as the bounds allow.

    Returns the number of passes over the variables and whether the first step was a success.
    """
    face = _find_face(problem, pool, members)
    values, slots = pool[4], face[3]
    n_free = len(slots)
    if n_free == 0:
        return 0, False
    V = np.empty_like(W)
    direction = np.zeros(n_free)
    change = np.empty(n_free)
    n_passes = _newton_direction(problem, W, V, pool, face, max_steps, direction)
    before = _half_squared_norm(W)
    step = 1.0
    for trial in range(max_trials):
        sum_change = _feasible_change(problem, pool, face, direction, step, change)
        _copy(W, V)
        _add_weights(problem, pool, face, change, V)
        n_passes += 1
        if _half_squared_norm(V) - sum_change < before:
            _copy(V, W)
            for k in range(n_free):
                values[slots[k]] += change[k]
            return n_passes, trial == 0
        step *= _CG_BACKTRACK
    return n_passes, False
