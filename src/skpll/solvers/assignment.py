r"""Exact assignment of candidate labels under bounds on the size of every class.

The problem (OP(5) of SP-PLL, with bounds in the place of exact counts) is

.. math::

    \min_y \sum_i c_{i, y_i} \quad\text{s.t.}\quad y_i \in S_i,\quad
    l_p \le |\{i : y_i = p\}| \le u_p .

It is a transportation problem, but one with few labels and many examples, so everything here
happens on the graph of the labels. A label :math:`p` has a price :math:`\pi_p` that is added to its
cost, and the dual problem is to maximize

.. math::

    D(\pi) = \sum_i \min_{p \in S_i} (c_{ip} + \pi_p) - \sum_p \max(l_p \pi_p, u_p \pi_p) .

The solver takes three steps:

1. *Choose*: every example takes its cheapest candidate under the prices at hand.
2. *Ascend*: where that leaves many examples in the wrong place, prices are improved one at a time;
   the best price of one label is an order statistic of what its examples would pay to avoid it.
3. *Repair*: what is still in the wrong place moves along shortest paths between labels. The length
   of the edge from :math:`p` to :math:`r` is the least reduced cost at which an example now in
   :math:`p` goes to :math:`r`; a table holds these moves. One search starts from all labels with
   too many examples at once and finds a path for about half of them.

Every path of the repair puts at least one more example right and never undoes another, so that the
solver ends after a bounded number of steps whatever rounding does to the prices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpll._typing import Floats

from . import _assignment_kernels as kernels
from ._assignment_kernels import Longs, Places, Problem


@dataclass(frozen=True)
class Assignment:
    """Labels of least cost within bounds on the size of every class.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        The class index chosen for each example, always one of its candidates.
    places : ndarray of shape (n,)
        Where the chosen labels stand in ``indices``.
    cost : float
        The sum of the costs of the chosen candidates, without penalties.
    prices : ndarray of shape (q,)
        Optimal dual variables. Every chosen label minimizes ``cost + price`` among the candidates
        of its example. A positive price repels and occurs only where a class is at its upper bound,
        a negative price attracts and occurs only where a class is at its lower bound (a bound that
        had to give counts as met). They make a good start for a similar problem.
    relaxed : int
        The sum over all classes of what is missing to the lower or in excess of the upper bound.
        With an infinite penalty, the least possible, and 0 whenever the bounds can be met.
    """

    labels: Longs
    places: Longs
    cost: float
    prices: Floats
    relaxed: int


FAULTS = (
    "lower is greater than upper for class {0}; lower the one or raise the other.",
    "prices must be finite; prices[{0}] is not.",
    "indptr gives example {0} no candidate; every example needs at least one.",
    "indices[{0}] is no class index; there are bounds for {1} classes.",
    "costs must be finite, and less than {2} in size; costs[{0}] is not.",
    "indices names a candidate of example {0} twice; name it once.",
)


def _solve(problem: Problem, prices: Floats, penalty: float) -> tuple[bool, Places, Floats]:
    """Solve a problem from given prices; returns whether it is feasible, the choice, the prices.

    Bounds may be broken at the price of ``penalty`` an example. A class gets no more examples than
    can have it, and no fewer than must. Bounds beyond that are widened. So a positive price makes
    sense where more than the upper bound could take the class, a negative one where fewer than the
    lower bound have to, and none need be very large; others are dropped. Prices with a dual value
    below that of zero prices are not used.
    """
    indptr, indices, costs, lower, upper = problem
    n, q = indptr.size - 1, lower.size
    must, can, seen = np.empty((3, q), np.int64)
    fault, where, peak, free_cost = kernels.survey(problem, prices, must, can, seen)
    if fault >= 0:
        raise ValueError(FAULTS[fault].format(where, q, kernels.LARGEST_COST))
    lower, upper = np.minimum(lower, can), np.maximum(np.minimum(upper, n), must)
    problem = indptr, indices, costs, lower, upper
    is_useful = np.where(prices > 0, upper < can, lower > must)
    is_useful &= np.abs(prices).max(initial=0.0) <= 4 * q * peak
    prices = np.where(is_useful, np.clip(prices, -penalty, penalty), 0.0)
    chosen, load = np.empty(n, np.int32), np.empty(q, np.int64)
    if not kernels.choose(problem, prices, chosen, load) >= free_cost and prices.any():
        prices[:] = 0.0
        kernels.choose(problem, prices, chosen, load)
    _ascend(problem, prices, chosen, load, penalty)
    return _repair(problem, prices, chosen, load, penalty), chosen, prices


def _ascend(problem: Problem, prices: Floats, chosen: Places, load: Longs, penalty: float) -> None:
    """Improve the prices one at a time for as long as that is cheaper than to repair.

    Costs are counted in entries looked at; those of a path are a rough estimate.
    """
    indptr, indices, _, _, _ = problem
    q = load.size
    drain, excess = np.empty(q, np.int64), np.empty(q + 1, np.int64)
    misplaced = kernels.balance(problem, prices, load, penalty, drain, excess)
    path_cost = 50 + q + 100 * misplaced // q
    if 4 * misplaced * path_cost < indices.size:
        return
    sizes = np.bincount(indices, minlength=q)
    labels = indices.astype(np.uint16) if q <= 2**16 else indices  # short ones are sorted faster
    entries = np.argsort(labels, kind="stable").astype(np.int32)
    rows = np.repeat(np.arange(indptr.size - 1, dtype=np.int32), np.diff(indptr))[entries]
    columns = np.concatenate([[0], np.cumsum(sizes)]), rows, entries
    room = np.empty(sizes.max()), *np.empty((2, sizes.max()), np.int32)
    progress = True
    while progress:
        flow = chosen, prices, load
        work = kernels.ascend(problem, columns, flow, penalty, path_cost, room)
        before = misplaced
        misplaced = kernels.balance(problem, prices, load, penalty, drain, excess)
        progress = (before - misplaced) * path_cost > work


def _repair(problem: Problem, prices: Floats, chosen: Places, load: Longs, penalty: float) -> bool:
    """Make the choice optimal by moving examples along shortest paths; the prices follow.

    Bounds may be broken at the price of ``penalty`` an example. Returns False if the bounds cannot
    be met, which happens with an infinite penalty only.
    """
    n, m, q = chosen.size, problem[1].size, load.size
    drain, excess = np.empty(q, np.int64), np.empty(q + 1, np.int64)
    misplaced = kernels.balance(problem, prices, load, penalty, drain, excess)
    if misplaced == 0:
        return True
    levels = np.append(prices, 0.0)
    members = np.empty(q, np.int64), *np.empty((2, n), np.int64)
    rows = np.empty(m, np.int64)
    kernels.link(problem, chosen, members, rows)
    moves = np.empty((q, q)), np.empty((q, q), np.int32), np.ones(q, np.int64)
    graph = problem, (chosen, levels, drain, excess), moves, members, penalty
    parent, is_settled, goals = np.empty((3, q + 1), np.int64)
    tree = np.empty(q + 1), parent, np.empty(q + 1)
    while misplaced > 0:
        n_goals = kernels.search(graph, tree, is_settled, goals)
        if n_goals == 0:
            break
        misplaced -= kernels.push(graph, rows, tree, goals, n_goals)
    prices[:] = levels[:q] - levels[q]
    return misplaced == 0


def _solve_relaxed(problem: Problem, prices: Floats) -> tuple[Places, Floats]:
    """Solve an infeasible problem: break the bounds by as little as possible, then at least cost.

    The labelings that break the bounds least are those that agree with the prices of
    `_least_violation`: examples stay with their candidates of the least such price, classes with
    price 1 have their upper bound as the lower one, those with -1 their lower one as the upper.
    """
    indptr, indices, costs, lower, upper = problem
    n = indptr.size - 1
    lower, upper = np.minimum(lower, n), np.minimum(upper, n)
    level = _least_violation((indptr, indices, np.zeros_like(costs), lower, upper))
    starts, sizes = indptr[:-1], np.diff(indptr)
    surplus = level[indices]
    surplus -= np.repeat(np.minimum.reduceat(surplus, starts), sizes)
    keep = surplus == 0
    kept = (
        np.concatenate([[0], np.cumsum(np.add.reduceat(keep, starts, dtype=np.int64))]),
        indices[keep],
        costs[keep],
        np.select([level > 0, level < 0], [upper, 0], lower),
        np.select([level > 0, level < 0], [n, lower], upper),
    )
    _, chosen, prices = _solve(kept, prices, np.inf)
    chosen = np.flatnonzero(keep).astype(np.int32)[chosen]
    saving = costs + prices[indices]
    saving = np.repeat(saving[chosen], sizes) - saving
    height = np.concatenate([[0.0], saving[~keep] / surplus[~keep], -(prices * level)]).max()
    return chosen, prices + height * level


def _least_violation(problem: Problem) -> Floats:
    """Prices in {-1, 0, 1} of the problem to break the bounds by as little as possible.

    A class has the price 1 if it is full in every such labeling, -1 if it is never above its lower
    bound, and no example can be better off than with a candidate of the least price. The costs of
    the problem are zero.
    """
    indptr, _, _, lower, _ = problem
    chosen, load = np.empty(indptr.size - 1, np.int32), np.empty(lower.size, np.int64)
    prices = np.zeros(lower.size)
    kernels.choose(problem, prices, chosen, load)
    _repair(problem, prices, chosen, load, 1.0)
    return prices


def _settle(
    prices: Floats, load: Longs, lower: Longs, upper: Longs, penalty: float
) -> tuple[Floats, int]:
    """Remove prices of mere rounding errors; tell by how much the bounds gave.

    Where all classes are full, and the penalty is infinite, the prices are determined up to a
    constant: the least becomes zero.
    """
    if (load >= upper).all() and penalty == np.inf:
        prices = prices - prices.min()
    prices = np.where(load < upper, np.minimum(prices, 0.0), prices)
    prices = np.where(load > lower, np.maximum(prices, 0.0), prices)
    return prices, int(np.maximum(np.maximum(lower - load, load - upper), 0).sum())


def _own(values: ArrayLike, dtype: type) -> NDArray:
    """Bring an array to the one form that the kernels are compiled for."""
    array: NDArray = np.asarray(values, dtype)
    return array if array.flags.carray else array.copy()


def _check_pattern(indptr: ArrayLike, indices: ArrayLike) -> tuple[Longs, Places]:
    starts, labels = np.asarray(indptr), np.asarray(indices)
    for name, array in (("indptr", starts), ("indices", labels)):
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise ValueError(
                f"{name} must be a one-dimensional array of integers; "
                f"got {array.ndim} dimensions of {array.dtype}."
            )
    if labels.size >= 2**31:
        raise ValueError(f"indices has {labels.size} entries; at most 2**31 - 1 are supported.")
    if starts.size == 0 or starts[0] != 0 or starts[-1] != labels.size:
        raise ValueError(
            f"indptr must start with 0 and end with the number of indices, {labels.size}."
        )
    if labels.dtype != np.int32:  # what does not fit becomes -1, which is no class index
        labels = np.where(labels < 2**31, labels.astype(np.int64), -1)
    return _own(starts, np.int64), _own(labels, np.int32)


def _check_shape(name: str, values: ArrayLike, size: int) -> Floats:
    array = _own(values, np.float64)
    if array.shape != (size,):
        raise ValueError(f"{name} must have shape ({size},); got {array.shape}.")
    return array


def _check_bound(name: str, bound: ArrayLike) -> Longs:
    array = np.asarray(bound)
    if array.ndim > 1 or array.dtype.kind not in "iuf":
        raise ValueError(f"{name} must be None, an integer, or an array with one integer a class.")
    good = (array >= 0) & (array == np.trunc(array)) & np.isfinite(array)
    if not good.all():
        p = np.flatnonzero(~good)[0]
        raise ValueError(
            f"{name} must consist of non-negative integers; found {array.flat[p]} at position {p}. "
            "Use None for no bound."
        )
    return _own(array, np.int64)


def _check_bounds(
    lower: ArrayLike | None, upper: ArrayLike | None, indices: Places, n: int
) -> tuple[Longs, Longs]:
    """Bring the bounds to one integer a class."""
    low = _check_bound("lower", 0 if lower is None else lower)
    high = _check_bound("upper", np.maximum(low, n) if upper is None else upper)
    if low.ndim and high.ndim and low.size != high.size:
        raise ValueError(f"lower and upper differ in length: {low.size} and {high.size}.")
    shape = low.shape or high.shape or (int(indices.max(initial=-1)) + 1,)
    return np.full(shape, low), np.full(shape, high)


def assign_labels(
    indptr: ArrayLike,
    indices: ArrayLike,
    costs: ArrayLike,
    lower: ArrayLike | None,
    upper: ArrayLike | None,
    *,
    prices: ArrayLike | None = None,
    penalty: float = math.inf,
) -> Assignment:
    """Assign candidates to examples at least total cost, within bounds on class sizes.

    The result is exact up to the rounding of sums of costs. Where the bounds cannot be met they
    give by the least possible number of examples in total, and the cost is the least among all
    labelings that break them by no more. With a finite penalty the bounds are wishes: each example
    above or below them costs as much, and the sum of all costs is the least.

    Parameters
    ----------
    indptr, indices : array-like of int, shapes (n + 1,) and (nnz,)
        The candidates of example ``i`` are the class indices ``indices[indptr[i]:indptr[i + 1]]``;
        there is at least one.
    costs : array-like of shape (nnz,)
        What it costs to give an example the candidate at the same place of ``indices``. Finite, of
        either sign.
    lower, upper : int, array-like of int of shape (q,), or None
        Least and greatest number of examples of each class; one integer stands for all classes,
        None for no bound.
    prices : array-like of shape (q,), default=None
        The prices of a similar problem. They only make the solution faster.
    penalty : float, default=inf
        What each example costs that a class has above its upper or below its lower bound. No price
        is greater.

    Returns
    -------
    Assignment
        The labels, their cost, the label prices that prove it least, and by how much the bounds
        had to give.

    Notes
    -----
    The same input always gives the same labels. Where several labelings have the same cost, the
    one that is found depends on the starting prices; examples with candidates of equal cost fill
    the classes evenly. Memory is O(nnz + q²).

    Examples
    --------
    Three examples prefer class 0, which has room for one:

    >>> from skpll.solvers import assign_labels
    >>> result = assign_labels([0, 2, 4, 6], [0, 1, 0, 1, 0, 1], [1, 2, 0, 3, 1, 5], 0, [1, 2])
    >>> result.labels
    array([1, 1, 0])
    >>> result.cost
    6.0
    """
    starts, labels = _check_pattern(indptr, indices)
    n = starts.size - 1
    weights = _check_shape("costs", costs, labels.size)
    low, high = _check_bounds(lower, upper, labels, n)
    start = np.zeros(low.size) if prices is None else _check_shape("prices", prices, low.size)
    problem = starts, labels, weights, low, high
    if not penalty >= 0:
        raise ValueError(f"penalty must be non-negative; got {penalty}.")
    feasible, places, found = _solve(problem, start, float(penalty))
    if not feasible:
        places, found = _solve_relaxed(problem, start)
    chosen = labels[places].astype(np.int64)
    load = np.bincount(chosen, minlength=low.size)
    final, relaxed = _settle(found, load, low, high, float(penalty))
    cost = float(weights[places].sum())
    return Assignment(chosen, places.astype(np.int64), cost, final, relaxed)
