"""Compiled parts of the maximum-margin solvers: weights, screening, sweeps, envelopes.

Features come as `rows`: a C-contiguous array, or (data, indices, indptr) of a CSR matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

from skpll._typing import Array, Floats

from ._compiled import inner_kernel, kernel

Classes: TypeAlias = NDArray[np.int32]
Longs: TypeAlias = NDArray[np.int64]
SparseRows: TypeAlias = tuple[Array, Array, Array]
Rows: TypeAlias = Array | SparseRows

# Not a plain constant: functions would be compiled for that alone, and then for any number.
_ZERO: int = np.int64(0)  # type: ignore[assignment]

_FAST = {"reassoc", "contract", "nsz"}
"""Sums may be reordered, which lets them be vectorised."""

SLOW_PROGRESS = 0.9
"""Sweeps are slow when one leaves more than this share of the gap."""

MAX_FREE_CLASSES, MAX_NEW_CLASSES = 100, 10
"""With more classes than the first number, a screening adds at most the second to an example."""

BELOW_BOUND = 1.0 - 1e-12
"""A block whose sum is below this share of its bound can grow; it is full otherwise."""

N_BISECTIONS = 16
"""Number of bisections to find the best scale of the weights."""


class Problem(NamedTuple):
    """What stays the same: features, the constant feature, squared norms, classes, bounds."""

    rows: Rows
    bias: float
    norms: Floats
    y: Classes
    C: Floats


class Pool(NamedTuple):
    """The dual variables while they change.

    Those of example ``i`` are the ``size[i]`` slots from ``start[i]``, which may grow to
    ``room[i]``. An example that needs more moves to the end, whose position is ``start[-1]``.
    """

    start: Longs
    size: Longs
    room: Longs
    classes: Classes
    values: Floats


class Buffers(NamedTuple):
    """Memory to work in, with an element for each class."""

    scores: Floats
    pulls: Floats
    old: Floats
    new: Floats
    given: Classes


class Sweeping(NamedTuple):
    """What sweeps change: the weights and the dual variables, with memory to work in."""

    problem: Problem
    W: Floats
    pool: Pool
    buffers: Buffers


# --------------------------------------------------------------------------------------------------
# Rows and weights: all that depends on the layout of the features
#
# The weights have the constant feature last. They are stored by class for dense rows, where a score
# is a product of two contiguous vectors, and by feature for sparse rows, where one feature touches
# the weights of all classes.
# --------------------------------------------------------------------------------------------------


def _by_layout(sparse: Callable, dense: Callable) -> Callable:
    """Make a compiled function of one for sparse and one for dense rows, its first argument.

    What is called from Python serves where the compiler is switched off (NUMBA_DISABLE_JIT).
    """

    def function(rows: Rows, *others: object) -> object:
        return (sparse if isinstance(rows, tuple) else dense)(rows, *others)

    def choose(rows: types.Type, *_: types.Type) -> Callable:
        return sparse if isinstance(rows, types.BaseTuple) else dense

    overload(function, strict=False)(choose)
    return function


def _score_sparse(rows: SparseRows, i: int, bias: float, W: Floats, p: int) -> float:
    data, indices, indptr = rows
    total = bias * W[-1, p]
    for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
        total += data[k] * W[np.uint64(indices[k]), p]
    return total


def _score_dense(rows: Array, i: int, bias: float, W: Floats, p: int) -> float:
    return bias * W[p, -1] + _product(rows, i, W, p)


@inner_kernel(fastmath=_FAST)
def _product(rows: Array, i: int, W: Floats, p: int) -> float:
    total = 0.0
    for j in range(rows.shape[1]):
        total += rows[i, j] * W[p, j]
    return total


def _add_row_sparse(rows: SparseRows, i: int, bias: float, W: Floats, p: int, step: float) -> None:
    data, indices, indptr = rows
    W[-1, p] += step * bias
    for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
        W[np.uint64(indices[k]), p] += step * data[k]


def _add_row_dense(rows: Array, i: int, bias: float, W: Floats, p: int, step: float) -> None:
    W[p, -1] += step * bias
    for j in range(rows.shape[1]):
        W[p, j] += step * rows[i, j]


# The score of a row for a class; the weights of a class plus a multiple of the row.
_score = _by_layout(_score_sparse, _score_dense)
_add_row = _by_layout(_add_row_sparse, _add_row_dense)


@kernel
def build_weights(problem: Problem, pool: Pool, W: Floats) -> float:
    """Add ``W(u)`` to weights that are zero; return the sum of all variables."""
    rows, bias, y = problem.rows, problem.bias, problem.y
    start, size, classes, values = pool.start, pool.size, pool.classes, pool.values
    sum_all = 0.0
    for i in range(y.size):
        total = 0.0
        for k in range(start[i], start[i] + size[i]):
            total += values[k]
            if values[k] > 0.0:
                _add_row(rows, i, bias, W, classes[k], -values[k])
        if total > 0.0:
            _add_row(rows, i, bias, W, y[i], total)
            sum_all += total
    return sum_all


# --------------------------------------------------------------------------------------------------
# Screening
# --------------------------------------------------------------------------------------------------


@inner_kernel(fastmath={"nnan", "nsz"})  # lets a maximum be vectorised
def _best_rival(scores: Floats, m: int, own: int, top: float) -> float:
    """Largest score of a row but for one class, or `top` if that is larger."""
    for p in range(own):
        top = scores[m, p] if scores[m, p] > top else top
    for p in range(own + 1, scores.shape[1]):
        top = scores[m, p] if scores[m, p] > top else top
    return top


@kernel
def measure(
    problem: Problem, pool: Pool, first: int, scores: Floats, margins: Floats, gaps: Floats
) -> None:
    """Compute margins and parts of the duality gap of the examples from `first` on."""
    y, C = problem.y, problem.C
    start, size, classes, values = pool.start, pool.size, pool.classes, pool.values
    for m in range(scores.shape[0]):
        i = first + m
        own_score, top = scores[m, y[i]], _best_rival(scores, m, y[i], -np.inf)
        loss = 1.0 + top - own_score
        loss = loss if loss > 0.0 else 0.0
        total = gap = 0.0
        for k in range(start[i], start[i] + size[i]):
            total += values[k]
            if values[k] > 0.0:
                gap += values[k] * (loss - 1.0 - scores[m, classes[k]] + own_score)
        margins[i] = own_score - top
        gaps[i] = gap + (C[i] - total) * loss if C[i] > total else gap


@kernel(fastmath=_FAST)
def best_scale(squared_norm: float, C: Floats, margins: Floats) -> tuple[float, float, float]:
    """Find the multiple of the weights with the least objective, by bisection up to twice.

    Returns the factor, the objective of the weights as they are, and that of their multiple.
    """
    low, high = 0.0, 2.0
    for _ in range(N_BISECTIONS):
        middle = 0.5 * (low + high)
        pull = 0.0  # by how much the losses fall for each unit of scale
        for i in range(C.size):
            pull += C[i] * margins[i] if middle * margins[i] < 1.0 else 0.0
        if middle * squared_norm < pull:
            low = middle
        else:
            high = middle
    at_one, at_high = 0.5 * squared_norm, 0.5 * squared_norm * high * high
    for i in range(C.size):
        at_one += C[i] * (1.0 - margins[i]) if margins[i] < 1.0 else 0.0
        at_high += C[i] * (1.0 - high * margins[i]) if high * margins[i] < 1.0 else 0.0
    return (high, at_one, at_high) if at_high < at_one else (1.0, at_one, at_one)


@inner_kernel
def _solve_block(
    pulls: Floats, n_given: int, own: float, spread: float, norm: float, C: float, out: Floats
) -> None:
    r"""Solve the dual problem over the variables of one example.

    With all others fixed it reads, up to a constant,

    .. math::

        \min_{u \ge 0,\; \sigma = \sum_p u_p \le C} \;
        \tfrac12 A \bigl(\sum_p u_p^2 + \kappa \sigma^2\bigr) - \sum_p u_p (z_p - o),

    so that :math:`u_p = \max(0, z_p - \beta) / A`. The threshold depends on the set :math:`S` of
    positive variables: it is :math:`\beta = (o / \kappa + \sum_S z_p) / (1 / \kappa + |S|)`, or
    :math:`\beta = (\sum_S z_p - A C) / |S|` if that would make the sum exceed :math:`C`.

    Parameters
    ----------
    pulls : ndarray
        The values :math:`z_p`; overwritten with their differences from the largest.
    n_given : int
        Number of classes.
    own : float
        The value :math:`o` of the own class, or the mean of the targets.
    spread : float
        The sum :math:`\kappa` of the squared targets: 1 for a single one.
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
    if n_given == 0 or own >= pulls[top]:
        return
    own -= pulls[top]
    limit = norm * C
    if limit == 0.0 or n_given == 1:
        out[top] = C if -own > (1.0 + spread) * limit else -own / ((1.0 + spread) * norm)
        return
    # Relative to the largest, small differences keep their digits.
    shift = pulls[top]
    for k in range(n_given):
        pulls[k] -= shift
    # From below: a set that is too large gives a threshold that is too low, so that the pulls below
    # it can be dropped for good. Those below the threshold that the largest has alone play no part.
    least = own / (1.0 + spread)
    threshold = least if least > -limit else -limit
    is_full, n_above = False, n_given + 1
    while True:
        total = -limit if is_full else own / spread
        n_before, n_above = n_above, 0
        for k in range(n_given):
            if pulls[k] > threshold:
                total += pulls[k]
                n_above += 1
        if 0 < n_above < n_before:
            threshold = total / (n_above if is_full else n_above + 1.0 / spread)
        elif is_full or threshold - own < spread * limit:
            break
        else:
            is_full, n_above = True, n_given + 1
            threshold = threshold if threshold > -limit else -limit
    total = 0.0
    for k in range(n_given):
        out[k] = (pulls[k] - threshold) / norm if pulls[k] > threshold else 0.0
        total += out[k]
    if is_full:
        # To the last bit: a block short of its bound would never look settled.
        for k in range(n_given):
            out[k] *= C / total


@inner_kernel
def _strongest(scores: Floats, m: int, own: int, begin: int, buffers: Buffers) -> int:
    """Find the few classes with the largest scores whose variables are zero; return their number.

    Where no class is stronger than others, as in the first screening, the first from `begin` win.
    """
    old, pulls, given = buffers.old, buffers.pulls, buffers.given
    n_classes = scores.shape[1]
    n_found = 0
    for step in range(n_classes):
        p = begin + step if begin + step < n_classes else begin + step - n_classes
        score = scores[m, p]
        if p == own or old[p] > 0.0:
            continue
        if n_found == MAX_NEW_CLASSES and score <= pulls[MAX_NEW_CLASSES - 1]:
            continue
        k = n_found if n_found < MAX_NEW_CLASSES else MAX_NEW_CLASSES - 1
        n_found = k + 1
        while k > 0 and pulls[k - 1] < score:
            pulls[k], given[k] = pulls[k - 1], given[k - 1]
            k -= 1
        pulls[k], given[k] = score, p
    return n_found


@kernel
def admit_classes(state: Sweeping, first: int, scores: Floats, begin: int, gaps: Floats) -> int:
    """Admit the classes that the examples from `first` on call for, where there is a gap.

    Work begins at one of the rows of the scores. Returns the row at which the pool was full, or the
    number of rows.
    """
    norms, y, C = state.problem.norms, state.problem.y, state.problem.C
    start, size, room, classes, values = state.pool
    _, pulls, old, new, given = state.buffers
    n_classes = scores.shape[1]
    for p in range(n_classes):
        old[p] = 0.0
    for m in range(begin, scores.shape[0]):
        i = first + m
        if gaps[i] <= 0.0:
            continue
        if start[start.size - 1] + n_classes > values.size:
            return m
        norm = norms[i]
        total, top = 0.0, -np.inf
        n_positive = 0
        for k in range(start[i], start[i] + size[i]):
            old[classes[k]] = values[k]
            pull = scores[m, classes[k]] + norm * values[k]
            top = pull if pull > top else top
            total += values[k]
            n_positive += values[k] > 0.0
        own = scores[m, y[i]] - 1.0 - norm * total
        top = _best_rival(scores, m, y[i], top)
        # A class below the threshold that the strongest one has alone plays no part.
        least = 0.5 * (own + top)
        least = top - norm * C[i] if top - norm * C[i] > least else least
        n_given = _ZERO
        if n_classes > MAX_FREE_CLASSES:
            begin_at = MAX_NEW_CLASSES * i % n_classes
            n_given += _strongest(scores, m, y[i], begin_at, state.buffers)
            while n_given > 0 and pulls[n_given - 1] < least:
                n_given -= 1
            for k in range(start[i], start[i] + size[i]):
                given[n_given] = classes[k]
                pulls[n_given] = scores[m, classes[k]] + norm * values[k]
                n_given += values[k] > 0.0
        else:
            for p in range(n_classes):
                pull = scores[m, p] + norm * old[p]
                given[n_given] = p
                pulls[n_given] = pull
                n_given += (p != y[i]) & ((pull >= least) | (old[p] > 0.0))
        n_needed = n_given
        if n_given > n_positive:  # otherwise all that could be needed has its place
            _solve_block(pulls, n_given, own, 1.0, norm, C[i], new)
            n_needed = 0
            for k in range(n_given):
                given[n_needed] = given[k]
                n_needed += (old[given[k]] > 0.0) | (new[k] > 0.0)
            if n_needed > room[i]:
                start[i] = start[start.size - 1]
                room[i] = n_needed
                start[start.size - 1] += n_needed
            size[i] = n_needed
            for k in range(n_needed):
                classes[start[i] + k] = given[k]
                values[start[i] + k] = old[given[k]]
        for k in range(n_needed):
            old[given[k]] = 0.0
    return scores.shape[0]


# --------------------------------------------------------------------------------------------------
# Sweeps
# --------------------------------------------------------------------------------------------------


@inner_kernel
def _shuffle(order: Longs, size: int, random: NDArray[np.uint64]) -> None:
    """Shuffle in place (Fisher and Yates) with a 64-bit xorshift generator."""
    state = random[0]
    for k in range(size - 1, 0, -1):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        j = np.int64((state >> np.uint64(11)) % np.uint64(k + 1))
        order[k], order[j] = order[j], order[k]
    random[0] = state


@inner_kernel
def _sweep(state: Sweeping, members: Longs, n_members: int, drop: bool) -> tuple[int, float]:
    """Solve the blocks of the first members, one after the other.

    Those that are optimal already are left as they are, the others are moved to the front. Returns
    the number of these, and the sum of the parts of the gap. If asked to `drop`, classes whose
    variable has become zero lose their place in the pool.
    """
    rows, bias, norms, y, C = state.problem
    start, size, _, classes, values = state.pool
    scores, pulls, old, new, given = state.buffers
    W = state.W
    n_kept = 0
    gap_sum = 0.0
    for m in range(n_members):
        i = members[m]
        first, n_given, norm = start[i], size[i], norms[i]
        own_score, top, total = _score(rows, i, bias, W, y[i]), -np.inf, 0.0
        for k in range(n_given):
            given[k] = classes[first + k]
            old[k] = values[first + k]
            scores[k] = _score(rows, i, bias, W, given[k])
            top = scores[k] if scores[k] > top else top
            total += old[k]
        loss = 1.0 + top - own_score
        loss = loss if loss > 0.0 else 0.0
        gap = (C[i] - total) * loss if C[i] > total else 0.0
        for k in range(n_given):
            if old[k] > 0.0:
                gap += old[k] * (loss - 1.0 - scores[k] + own_score)
            pulls[k] = scores[k] + norm * old[k]
        if gap <= 0.0:
            continue
        own = own_score - 1.0 - norm * total
        _solve_block(pulls, n_given, own, 1.0, norm, C[i], new)
        total = 0.0
        n_stay = 0
        for k in range(n_given):
            change = new[k] - old[k]
            if change != 0.0:
                _add_row(rows, i, bias, W, given[k], -change)
                total += change
            classes[first + n_stay] = given[k]
            values[first + n_stay] = new[k]
            n_stay += new[k] > 0.0 or not drop
        _add_row(rows, i, bias, W, y[i], total)
        size[i] = n_stay
        members[n_kept] = i
        n_kept += 1
        gap_sum += gap
    return n_kept, gap_sum


@kernel
def sweeps(
    state: Sweeping,
    members: Longs,
    n_members: int,
    target: float,
    max_sweeps: int,
    random: NDArray[np.uint64],
    slots: Longs,
    history: Floats,
) -> tuple[int, int, float]:
    """Sweep over the members repeatedly, until the gap is at most the target.

    If the history has room, sweeps keep their order, and the variables in these slots of the pool
    are noted after each of them. Otherwise each has a random order of its own, variables may drop
    out, and the sweeps end when they make slow progress.

    Returns the number of sweeps, the number of members left, and the gap that the last one has met.
    """
    is_random = history.shape[0] == 0
    n_sweeps, before, gap = 0, np.inf, np.inf
    while n_sweeps < max_sweeps and gap > target:
        if is_random and gap > SLOW_PROGRESS * before:
            break
        if is_random:
            _shuffle(members, n_members, random)
        before = gap
        n_members, gap = _sweep(state, members, n_members, is_random)
        for k in range(slots.size):
            history[n_sweeps, k] = state.pool.values[slots[k]]
        n_sweeps += 1
    return n_sweeps, n_members, gap


# --------------------------------------------------------------------------------------------------
# Envelopes of the loss with several targets
# --------------------------------------------------------------------------------------------------


@kernel
def respond(loss, scores, multipliers, sharpness, slopes, room):  # type: ignore[no-untyped-def]
    """Write the slopes of the envelopes of a partial margin loss; return its value and residual."""
    indptr, indices, targets, C = loss.indptr, loss.indices, loss.targets, loss.C
    pulls, new = room[0], room[1]
    n, q = scores.shape
    value, residual = 0.0, 0.0
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
        own = target - 1.0 - spread * multiplier / sharpness
        _solve_block(pulls, n_rivals, own, spread, 1.0 / (sharpness * C[i]), C[i], new)
        hinge = max(0.0, 1.0 + top - target)
        total, place = 0.0, 0
        for p in range(q):
            if slopes[i, p] == 0.0:
                slopes[i, p] = new[place]
                residual += new[place] * (hinge - 1.0 - scores[i, p] + target)
                total += new[place]
                place += 1
        for k in range(indptr[i], indptr[i + 1]):
            slopes[i, indices[k]] = -total * targets[k]
        value += C[i] * hinge
        residual += max(0.0, C[i] - total) * hinge
    return value, residual


@kernel
def bend(loss, rows, slopes, sharpness, changes):  # type: ignore[no-untyped-def]
    """Replace changes of the scores of some rows by those of the slopes they cause."""
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
