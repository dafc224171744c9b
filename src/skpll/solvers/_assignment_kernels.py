"""Compiled parts of the assignment solver: survey, choose, ascend, search, push.

==========  ========================================================================================
`problem`   (indptr, indices, costs, lower, upper): the candidates in CSR form, and the bounds on
            the size of every class
`chosen`    for every example the entry of the candidate that it has
`load`      for every class the number of its examples
`flow`      (chosen, prices, drain, excess): the state of the repair. Its graph has a vertex for
            each class and the hub, the last one, into which all classes drain: `drain` is the
            number of examples that the price asks of a class, `excess` what the class holds beyond
            that (the hub: what it is given beyond the number of examples). Without any excess the
            choice is optimal.
`moves`     (cost, entry, is_stale): for every pair of classes the least cost at which an example of
            the first moves to the second, and the entry that it moves to; and which rows of these
            tables have to be looked up anew
`members`   (first, after, before): a linked list of the examples of each class
`graph`     (problem, flow, moves, members, penalty): all that the repair works on
`tree`      (distance, parent, key): the shortest paths from the vertices with an excess; the `key`
            of a vertex is the cost of the last edge on the way there
==========  ========================================================================================
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from skpll._typing import Floats

from ._compiled import inner_kernel, kernel

Places: TypeAlias = NDArray[np.int32]
Longs: TypeAlias = NDArray[np.int64]
Problem: TypeAlias = tuple[Longs, Places, Floats, Longs, Longs]
Flow: TypeAlias = tuple[Places, Floats, Longs, Longs]
Moves: TypeAlias = tuple[Floats, Places, Longs]
Members: TypeAlias = tuple[Longs, Longs, Longs]
Graph: TypeAlias = tuple[Problem, Flow, Moves, Members, float]
Tree: TypeAlias = tuple[Floats, Longs, Floats]

# Not a plain constant: functions would be compiled for that alone, and then for any number.
_NONE: int = np.int64(-1)  # type: ignore[assignment]
_ZERO: int = np.int64(0)  # type: ignore[assignment]
# Sums of costs and prices must not overflow.
LARGEST_COST = 1e250


@kernel
def survey(
    problem: Problem, prices: Floats, must: Longs, can: Longs, seen: Longs
) -> tuple[int, int, float, float]:
    """Look for faults, and for what is decided without a choice.

    Returns the number of a fault and where it is, or -1 twice; the greatest absolute cost; and the
    cost without any bounds. Fills in how many examples must have each class and how many can;
    `seen` is room to work in.
    """
    indptr, indices, costs, lower, upper = problem
    peak = total = 0.0
    for p in range(lower.size):
        must[p], can[p], seen[p] = 0, 0, -1
        if lower[p] > upper[p]:
            return 0, p, peak, total
        if not abs(prices[p]) < np.inf:
            return 1, p, peak, total
    for i in range(indptr.size - 1):
        if indptr[i] >= indptr[i + 1]:
            return 2, i, peak, total
    for i in range(indptr.size - 1):
        least = np.inf
        for e in range(indptr[i], indptr[i + 1]):
            p, cost = indices[e], costs[e]
            if p < 0 or p >= lower.size:
                return 3, e, peak, total
            if not abs(cost) < LARGEST_COST:
                return 4, e, peak, total
            if seen[p] == i:
                return 5, i, peak, total
            seen[p] = i
            can[p] += 1
            peak = abs(cost) if abs(cost) > peak else peak
            least = cost if cost < least else least
        total += least
        if indptr[i + 1] == indptr[i] + 1:
            must[indices[indptr[i]]] += 1
    return -1, -1, peak, total


@kernel
def choose(problem: Problem, prices: Floats, chosen: Places, load: Longs) -> float:
    """Choose the cheapest candidate of every example and return the dual value of the prices.

    A tie goes to the class that is furthest below the middle of its bounds, then to the first.
    """
    indptr, indices, costs, lower, upper = problem
    value = 0.0
    for p in range(load.size):
        load[p] = 0
        value -= prices[p] * (upper[p] if prices[p] > 0 else lower[p])
    for i in range(chosen.size):
        first, end = indptr[i], indptr[i + 1]
        best, least, is_tied = first, np.inf, False
        for e in range(first, end):
            cost = costs[e] + prices[indices[e]]
            is_tied = (is_tied & (cost >= least)) | (cost == least)
            best = e if cost < least else best
            least = cost if cost < least else least
        if is_tied:
            for e in range(best + 1, end):
                p, r = indices[best], indices[e]
                room = lower[p] + upper[p] - 2 * load[p]
                if costs[e] + prices[r] == least and lower[r] + upper[r] - 2 * load[r] > room:
                    best = e
        chosen[i] = best
        load[indices[best]] += 1
        value += least
    return value


@inner_kernel
def _drained(price: float, load: int, lower: int, upper: int, penalty: float) -> int:
    """How many examples the price asks of a class: all it may, all it must, or what it has.

    At a price as high as the penalty, it may as well have more, or less.
    """
    if price > 0:
        return load if price >= penalty and load > upper else upper
    if price < 0:
        return load if price <= -penalty and load < lower else lower
    if load < lower:
        return lower
    return upper if load > upper else load


@kernel
def balance(
    problem: Problem, prices: Floats, load: Longs, penalty: float, drain: Longs, excess: Longs
) -> int:
    """Fill in what the prices ask of each class, and its excess; return how many are misplaced."""
    _, _, _, lower, upper = problem
    hub = load.size
    excess[hub] = 0
    misplaced = 0
    for p in range(hub):
        drain[p] = _drained(prices[p], load[p], lower[p], upper[p], penalty)
        excess[p] = load[p] - drain[p]
        excess[hub] -= excess[p]
        misplaced += excess[p] if excess[p] > 0 else 0
    return misplaced + (excess[hub] if excess[hub] > 0 else 0)


@inner_kernel
def _best_price(thresholds: Floats, size: int, lower: int, upper: int) -> float:
    """Maximize the dual over the price of one class.

    An example stays with the class as long as the price is below its threshold. So the price is
    halfway between two order statistics, where there is not room for all that would stay, or not
    enough of them.
    """
    keen = willing = 0
    for k in range(size):
        keen += thresholds[k] > 0
        willing += thresholds[k] >= 0
    if keen <= upper and willing >= lower:
        return 0.0
    cut = size - (upper if keen > upper else lower)
    rank = cut - 1 if cut > 0 else 0
    parted = np.partition(thresholds[:size], rank)
    below, above = parted[rank], np.inf
    for k in range(rank + 1, size):
        above = parted[k] if parted[k] < above else above
    return below if cut == 0 or above == np.inf else below + (above - below) / 2


@kernel
def ascend(
    problem: Problem,
    columns: tuple[Longs, Places, Places],
    flow: tuple[Places, Floats, Longs],
    penalty: float,
    path_cost: int,
    room: tuple[Floats, Places, Places],
) -> int:
    """Set the best price of one class after the other; return the number of entries visited.

    If a class has too many examples, the price rises and they are asked to leave; if it has too
    few, the price falls and the others are asked to come. `columns` has the entries by class: where
    those of each class start, the examples they belong to, and the entries. `room` is room to work
    in, as large as the largest class. Classes are passed over where to repair them is cheaper, at
    `path_cost` entries an example.
    """
    indptr, indices, costs, lower, upper = problem
    starts, rows, entries = columns
    chosen, prices, load = flow
    thresholds, asked, others = room
    work = 0
    for p in range(load.size):
        drain = _drained(prices[p], load[p], lower[p], upper[p], penalty)
        if abs(load[p] - drain) * path_cost <= starts[p + 1] - starts[p]:
            continue
        work += starts[p + 1] - starts[p]
        rises = load[p] > drain
        size = _ZERO
        for k in range(starts[p], starts[p + 1]):
            i = rows[k]
            if (chosen[i] == entries[k]) != rises:
                continue
            least, other = np.inf, entries[k]
            for e in range(indptr[i], indptr[i + 1]):
                cost = costs[e] + prices[indices[e]] if e != entries[k] else np.inf
                other = e if cost < least else other
                least = cost if cost < least else least
            thresholds[size] = least - costs[entries[k]]
            asked[size], others[size] = k, other
            size += 1
        held = 0 if rises else load[p]
        price = _best_price(thresholds, size, lower[p] - held, upper[p] - held)
        price = -penalty if price < -penalty else price
        price = penalty if price > penalty else price
        prices[p] = price
        ties = (upper[p] if price > 0 else lower[p]) - held
        for j in range(size):
            ties -= thresholds[j] > price
        for j in range(size):
            takes = thresholds[j] > price
            if thresholds[j] == price and ties > 0:
                takes = True
                ties -= 1
            if takes != rises:
                i = rows[asked[j]]
                entry = others[j] if rises else entries[asked[j]]
                load[indices[chosen[i]]] -= 1
                load[indices[entry]] += 1
                chosen[i] = entry
    return work


@inner_kernel
def _to_hub(drain: int, lower: int, upper: int, penalty: float) -> float:
    """Cost of one more example drained from a class."""
    if drain < lower:
        return -penalty
    return 0.0 if drain < upper else penalty


@inner_kernel
def _from_hub(drain: int, lower: int, upper: int, penalty: float) -> float:
    """Cost of one example less drained from a class."""
    if drain > upper:
        return -penalty
    return 0.0 if drain > lower else penalty


@kernel
def link(problem: Problem, chosen: Places, members: Members, rows: Longs) -> None:
    """List the examples of each class; fill in which example each entry belongs to."""
    indptr, indices, _, _, _ = problem
    first, after, before = members
    for p in range(first.size):
        first[p] = _NONE
    for i in range(chosen.size - 1, -1, -1):
        p = indices[chosen[i]]
        before[i], after[i] = _NONE, first[p]
        if first[p] != _NONE:
            before[first[p]] = i
        first[p] = i
        for e in range(indptr[i], indptr[i + 1]):
            rows[e] = i


@inner_kernel
def _offer(problem: Problem, chosen: Places, moves: Moves, i: int) -> None:
    """Enter the moves of an example into the table where they are the cheapest."""
    indptr, indices, costs, _, _ = problem
    cost, entry, _ = moves
    own = chosen[i]
    p = indices[own]
    for e in range(indptr[i], indptr[i + 1]):
        r = indices[e]
        if costs[e] - costs[own] < cost[p, r]:
            cost[p, r] = costs[e] - costs[own]
            entry[p, r] = e


@inner_kernel
def _look_up(problem: Problem, chosen: Places, moves: Moves, members: Members, p: int) -> None:
    """Bring a row of the table of moves up to date."""
    cost, _, is_stale = moves
    first, after, _ = members
    if is_stale[p] == 0:
        return
    is_stale[p] = 0
    for r in range(is_stale.size):
        cost[p, r] = np.inf
    i = first[p]
    while i != _NONE:
        _offer(problem, chosen, moves, i)
        i = after[i]


@kernel
def search(graph: Graph, tree: Tree, is_settled: Longs, goals: Longs) -> int:
    """Search the vertices with too few examples that are nearest to those with too many.

    Returns how many `goals` there are. The prices of the vertices on the way rise by what they are
    nearer than the farthest goal. Afterwards the edges of all paths, which the tree holds, have
    reduced cost zero. The search ends with half as many goals as there are vertices to start from.
    Rounding may make a reduced cost negative; it counts as zero.
    """
    problem, (chosen, prices, drain, excess), moves, members, penalty = graph
    _, _, _, lower, upper = problem
    cost, _, _ = moves
    distance, parent, key = tree
    hub = lower.size
    n_starts = n_goals = 0
    nearest = _NONE
    for p in range(hub + 1):
        is_settled[p] = 0
        parent[p] = _NONE
        distance[p] = np.inf
        if excess[p] > 0:
            distance[p] = 0.0
            n_starts += 1
            nearest = p
    farthest = 0.0
    while nearest != _NONE and 2 * n_goals < n_starts:
        p, nearest, least = nearest, _NONE, np.inf
        is_settled[p] = 1
        if excess[p] < 0:
            goals[n_goals] = p
            n_goals += 1
            farthest = distance[p]
        if p < hub:
            _look_up(problem, chosen, moves, members, p)
        for r in range(hub + 1):
            if is_settled[r]:
                continue
            if p == hub:
                length = _from_hub(drain[r], lower[r], upper[r], penalty)
            elif r == hub:
                length = _to_hub(drain[p], lower[p], upper[p], penalty)
            else:
                length = cost[p, r]
            reduced = length + (prices[r] - prices[p])
            total = distance[p] + (reduced if reduced > 0.0 else 0.0)
            if total < distance[r]:
                distance[r], parent[r], key[r] = total, p, length
            if distance[r] < least:
                nearest, least = r, distance[r]
    for p in range(hub + 1):
        if is_settled[p] and distance[p] < farthest:
            prices[p] += farthest - distance[p]
    return n_goals


@inner_kernel
def _is_open(graph: Graph, tree: Tree, goal: int) -> bool:
    """Whether one more example can take the path to a goal at the cost that the search found."""
    problem, (chosen, _, drain, excess), moves, members, penalty = graph
    _, _, _, lower, upper = problem
    cost, _, _ = moves
    _, parent, key = tree
    hub = lower.size
    r, p = goal, parent[goal]
    while p != _NONE:
        if r == hub:
            length = _to_hub(drain[p], lower[p], upper[p], penalty)
        elif p == hub:
            length = _from_hub(drain[r], lower[r], upper[r], penalty)
        else:
            _look_up(problem, chosen, moves, members, p)
            length = cost[p, r]
        if length > key[r]:
            return False
        r, p = p, parent[p]
    return excess[goal] < 0 and excess[r] > 0


@inner_kernel
def _move(members: Members, i: int, p: int, r: int) -> None:
    """Move an example from the list of one class to that of another."""
    first, after, before = members
    left, right = before[i], after[i]
    if left == _NONE:
        first[p] = right
    else:
        after[left] = right
    if right != _NONE:
        before[right] = left
    before[i], after[i] = _NONE, first[r]
    if first[r] != _NONE:
        before[first[r]] = i
    first[r] = i


@kernel
def push(graph: Graph, rows: Longs, tree: Tree, goals: Longs, n_goals: int) -> int:
    """Send examples along the paths to the goals while they are open; return how many.

    `rows` has the example that each entry belongs to.
    """
    problem, (chosen, _, drain, excess), moves, members, _ = graph
    _, entry, is_stale = moves
    _, parent, _ = tree
    hub = drain.size
    n_sent = 0
    for g in range(n_goals):
        goal = goals[g]
        while _is_open(graph, tree, goal):
            r, p = goal, parent[goal]
            while p != _NONE:
                if r == hub:
                    drain[p] += 1
                elif p == hub:
                    drain[r] -= 1
                else:
                    i = rows[entry[p, r]]
                    chosen[i] = entry[p, r]
                    _move(members, i, p, r)
                    is_stale[p] = 1
                    _offer(problem, chosen, moves, i)
                r, p = p, parent[p]
            excess[r] -= 1
            excess[goal] += 1
            n_sent += 1
    return n_sent
