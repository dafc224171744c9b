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
   :math:`p` goes to :math:`r`; a heap for each pair of labels, threaded through the entries of the
   candidate pattern, keeps it at hand.

Every path of the repair puts at least one more example right and never undoes another, so that the
solver ends after a bounded number of steps whatever rounding does to the prices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

__all__ = ["Assignment", "assign_labels"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Records = NDArray[np.void]

EMPTY = -1
NO_LIMIT = 2**62

# A node of a pairing heap: ``before`` is its left sibling, or the parent of a first child.
NODE = np.dtype(
    [("key", np.float64), ("child", np.int32), ("after", np.int32), ("before", np.int32)],
    align=True,
)

# An edge of the label graph: the root of its heap, and the next edges with the same end.
EDGE = np.dtype(
    [
        ("origin", np.int32),
        ("target", np.int32),
        ("root", np.int32),
        ("next_out", np.int32),
        ("next_in", np.int32),
    ]
)

# A vertex of the label graph, with what the search for a shortest path notes down about it. The
# hub is the last one. All labels drain into it: ``drain`` is the number of examples that the price
# asks of a label, ``excess`` what the label holds beyond that (the hub: what it is given beyond
# the number of examples). Without any excess the choice is optimal.
VERTEX = np.dtype(
    [
        ("price", np.float64),
        ("base", np.float64),
        ("distance", np.float64),
        ("step_key", np.float64),
        ("lower", np.int64),
        ("upper", np.int64),
        ("drain", np.int64),
        ("excess", np.int64),
        ("parent", np.int64),
        ("place", np.int64),
        ("first_out", np.int32),
        ("first_in", np.int32),
    ]
)

FORWARD, BACKWARD = 1, -1
N_EDGES, SIZE, GOAL = 0, 1, 2


@dataclass(frozen=True)
class Assignment:
    """Labels of least cost within bounds on the size of every class.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        The class index chosen for each example, always one of its candidates.
    cost : float
        The sum of the costs of the chosen candidates.
    prices : ndarray of shape (q,)
        Optimal dual variables. Every chosen label minimizes ``cost + price`` among the candidates
        of its example. A positive price repels and occurs only where a class is at its upper bound,
        a negative price attracts and occurs only where a class is at its lower bound (a bound that
        had to give counts as met). They make a good start for a similar problem.
    relaxed : int
        The sum over all classes of what is missing to the lower or in excess of the upper bound;
        the least possible, and 0 whenever the bounds can be met.
    """

    labels: Ints
    cost: float
    prices: Floats
    relaxed: int


class Problem(NamedTuple):
    """The candidates in CSR form, and the bounds on the size of every class."""

    indptr: Ints
    indices: NDArray[np.int32]
    costs: Floats
    lower: Ints
    upper: Ints


class Graph(NamedTuple):
    """The graph of the labels and the hub, with a pairing heap for every edge between labels.

    Entry ``e`` of the candidate pattern, candidate ``r`` of an example now in ``p``, is a node of
    the heap of the edge from ``p`` to ``r``; its key is what the move would cost. The edges are
    found by way of a hash table; those that leave a label, and those that come in, are linked in
    lists. ``frontier`` and ``reached`` belong to the search, ``tally`` holds the number of edges,
    the size of the frontier, and the nearest vertex where a path may end, or -1. ``drift`` is the
    most that any price has risen, and the most that one has fallen.
    """

    nodes: Records
    edges: Records
    table: NDArray[np.int32]
    vertices: Records
    frontier: Ints
    reached: Ints
    tally: Ints
    drift: Floats


@njit(cache=True, nogil=True)
def _select(values: Floats, rank: int) -> float:
    """Return the value of the given rank; smaller ones come to lie before it, greater behind."""
    left, right = 0, values.size - 1
    while left < right:
        pivot = values[(left + right) // 2]
        i, j = left, right
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if rank <= j:
            right = j
        elif rank >= i:
            left = i
        else:
            break
    return values[rank]


# --- the label graph -----------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _link(nodes: Records, a: int, b: int) -> int:
    """Join two trees; of equal keys the earlier entry comes first."""
    if nodes[b].key < nodes[a].key or (nodes[b].key == nodes[a].key and b < a):
        a, b = b, a
    first = nodes[a].child
    nodes[b].after = first
    nodes[b].before = a
    if first != EMPTY:
        nodes[first].before = b
    nodes[a].child = b
    return a


@njit(cache=True, nogil=True)
def _join_siblings(nodes: Records, first: int) -> int:
    """Join a list of siblings into one tree: in pairs from the left, then all from the right."""
    pairs = EMPTY
    while first != EMPTY:
        second = int(nodes[first].after)
        if second == EMPTY:
            rest, tree = EMPTY, first
        else:
            rest = int(nodes[second].after)
            tree = _link(nodes, first, second)
        nodes[tree].after = pairs
        pairs = tree
        first = rest
    if pairs == EMPTY:
        return EMPTY
    tree, rest = pairs, int(nodes[pairs].after)
    while rest != EMPTY:
        following = int(nodes[rest].after)
        tree = _link(nodes, tree, rest)
        rest = following
    nodes[tree].after = EMPTY
    nodes[tree].before = EMPTY
    return tree


@njit(cache=True, nogil=True)
def _insert(nodes: Records, edges: Records, edge: int, entry: int, key: float) -> None:
    root = edges[edge].root
    nodes[entry].key = key
    nodes[entry].child = EMPTY
    nodes[entry].after = EMPTY
    nodes[entry].before = EMPTY
    edges[edge].root = entry if root == EMPTY else _link(nodes, int(root), entry)


@njit(cache=True, nogil=True)
def _remove(nodes: Records, edges: Records, edge: int, entry: int) -> None:
    root = int(edges[edge].root)
    orphans = _join_siblings(nodes, int(nodes[entry].child))
    if root == entry:
        edges[edge].root = orphans
        return
    left, right = nodes[entry].before, nodes[entry].after
    if nodes[left].child == entry:
        nodes[left].child = right
    else:
        nodes[left].after = right
    if right != EMPTY:
        nodes[right].before = left
    if orphans != EMPTY:
        edges[edge].root = _link(nodes, root, orphans)


@njit(cache=True, nogil=True)
def _edge_between(
    edges: Records, table: NDArray[np.int32], vertices: Records, tally: Ints, p: int, r: int
) -> int:
    """Find the edge from ``p`` to ``r`` in the hash table, or add it."""
    mask = table.size - 1
    place = (((p * vertices.size + r) * 0x9E3779B1) >> 8) & mask
    while table[place] != EMPTY:
        edge = int(table[place])
        if edges[edge].origin == p and edges[edge].target == r:
            return edge
        place = (place + 1) & mask
    edge = tally[N_EDGES]
    tally[N_EDGES] += 1
    table[place] = edge
    edges[edge].origin = p
    edges[edge].target = r
    edges[edge].root = EMPTY
    edges[edge].next_out = vertices[p].first_out
    edges[edge].next_in = vertices[r].first_in
    vertices[p].first_out = edge
    vertices[r].first_in = edge
    return edge


@njit(cache=True, nogil=True)
def _enter(graph: Graph, problem: Problem, i: int, entry: int) -> None:
    """Make the other candidates of example ``i``, now at ``entry``, edges of the label graph."""
    nodes, edges, table, vertices, _, _, tally, _ = graph
    indices, costs = problem.indices, problem.costs
    p = int(indices[entry])
    for e in range(problem.indptr[i], problem.indptr[i + 1]):
        if e != entry:
            edge = _edge_between(edges, table, vertices, tally, p, int(indices[e]))
            _insert(nodes, edges, edge, e, costs[e] - costs[entry])


@njit(cache=True, nogil=True)
def _leave(graph: Graph, problem: Problem, i: int, entry: int) -> None:
    """Undo `_enter`."""
    nodes, edges, table, vertices, _, _, tally, _ = graph
    indices = problem.indices
    p = int(indices[entry])
    for e in range(problem.indptr[i], problem.indptr[i + 1]):
        if e != entry:
            edge = _edge_between(edges, table, vertices, tally, p, int(indices[e]))
            _remove(nodes, edges, edge, e)


@njit(cache=True, nogil=True)
def _build_graph(
    problem: Problem, chosen: NDArray[np.int32], vertices: Records, drift: Floats
) -> Graph:
    """Build the label graph; its hash table starts at most half full."""
    n_entries, n_vertices = problem.indices.size, vertices.size
    size = 16
    while size < min(4 * n_entries, 2 * n_vertices * n_vertices):
        size *= 2
    graph = Graph(
        np.empty(n_entries, NODE),
        np.empty(size, EDGE),
        np.full(size, EMPTY, np.int32),
        vertices,
        np.empty(n_vertices, np.int64),
        np.empty(n_vertices, np.int64),
        np.zeros(3, np.int64),
        drift,
    )
    for p in range(n_vertices):
        vertices[p].first_out = EMPTY
        vertices[p].first_in = EMPTY
    for i in range(chosen.size):
        _enter(graph, problem, i, int(chosen[i]))
    return graph


@njit(cache=True, nogil=True)
def _is_crowded(graph: Graph) -> bool:
    """Whether the hash table should be built anew before more edges come."""
    return 2 * graph.tally[N_EDGES] > graph.table.size


# --- choose --------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _choose(problem: Problem, prices: Floats, chosen: NDArray[np.int32], load: Ints) -> float:
    """Give every example its cheapest candidate and return the dual value of the prices.

    A tie goes to the class that is furthest below the middle of its bounds, then to the first.
    """
    indptr, indices, costs = problem.indptr, problem.indices, problem.costs
    load[:] = 0
    value = 0.0
    for i in range(chosen.size):
        best = indptr[i]
        p = indices[best]
        least = costs[best] + prices[p]
        for e in range(best + 1, indptr[i + 1]):
            r = indices[e]
            cost = costs[e] + prices[r]
            if cost < least or (
                cost == least and _room(problem, load, r) > _room(problem, load, p)
            ):
                best, p, least = e, r, cost
        chosen[i] = best
        load[p] += 1
        value += least
    for p in range(load.size):
        value -= max(problem.lower[p] * prices[p], problem.upper[p] * prices[p])
    return value


@njit(cache=True, nogil=True)
def _room(problem: Problem, load: Ints, p: int) -> int:
    return problem.lower[p] + problem.upper[p] - 2 * load[p]


@njit(cache=True, nogil=True)
def _drained(problem: Problem, prices: Floats, load: Ints, p: int) -> int:
    """How many examples the price asks of class ``p``: all it may, all it must, or what it has."""
    if prices[p] > 0:
        return problem.upper[p]
    if prices[p] < 0:
        return problem.lower[p]
    return min(max(load[p], problem.lower[p]), problem.upper[p])


@njit(cache=True, nogil=True)
def _misplaced(problem: Problem, prices: Floats, load: Ints) -> int:
    """How many examples the repair would have to move."""
    total, hub = 0, -load.sum()
    for p in range(load.size):
        drained = _drained(problem, prices, load, p)
        total += max(0, load[p] - drained)
        hub += drained
    return total + max(0, hub)


# --- ascend --------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _columns(problem: Problem) -> tuple[Ints, NDArray[np.int32], NDArray[np.int32]]:
    """For every class where its entries start, the examples they belong to, and the entries."""
    q = problem.lower.size
    starts = np.zeros(q + 1, np.int64)
    for p in problem.indices:
        starts[p + 1] += 1
    for p in range(q):
        starts[p + 1] += starts[p]
    free = starts.copy()
    rows = np.empty(problem.indices.size, np.int32)
    entries = np.empty(problem.indices.size, np.int32)
    for i in range(problem.indptr.size - 1):
        for e in range(problem.indptr[i], problem.indptr[i + 1]):
            k = free[problem.indices[e]]
            free[problem.indices[e]] += 1
            rows[k] = i
            entries[k] = e
    return starts, rows, entries


@njit(cache=True, nogil=True)
def _price_for(thresholds: Floats, size: int) -> float:
    """Return the price at which ``size`` examples stay: halfway between two order statistics."""
    cut = thresholds.size - size
    if cut == 0:
        return _select(thresholds, cut)
    below = _select(thresholds, cut - 1)
    above = np.inf
    for threshold in thresholds[cut:]:
        above = min(above, threshold)
    return below if above == np.inf else below + (above - below) / 2


@njit(cache=True, nogil=True)
def _best_price(thresholds: Floats, lower: int, upper: int) -> float:
    """Maximize the dual over the price of one class.

    An example stays with the class as long as the price is below its threshold. The order of the
    thresholds is not preserved.
    """
    keen = willing = 0
    for threshold in thresholds:
        keen += threshold > 0
        willing += threshold >= 0
    if keen > upper:
        return _price_for(thresholds, upper)
    if willing < lower:
        return _price_for(thresholds, lower)
    return 0.0


@njit(cache=True, nogil=True)
def _reprice(
    problem: Problem,
    prices: Floats,
    chosen: NDArray[np.int32],
    load: Ints,
    p: int,
    rows: NDArray[np.int32],
    entries: NDArray[np.int32],
) -> None:
    """Give class ``p`` its best price, and its examples the candidates that are cheapest then."""
    indptr, indices, costs = problem.indptr, problem.indices, problem.costs
    thresholds = np.empty(rows.size, np.float64)
    rivals = np.empty(rows.size, np.int32)
    for k in range(rows.size):
        least, rival = np.inf, entries[k]
        for e in range(indptr[rows[k]], indptr[rows[k] + 1]):
            if e != entries[k]:
                cost = costs[e] + prices[indices[e]]
                if cost < least:
                    least, rival = cost, e
        thresholds[k] = least - costs[entries[k]]
        rivals[k] = rival
    price = _best_price(thresholds.copy(), problem.lower[p], problem.upper[p])
    prices[p] = price
    wanted = problem.upper[p] if price > 0 else problem.lower[p]
    ties = wanted
    for threshold in thresholds:
        ties -= threshold > price
    for k in range(rows.size):
        stays = thresholds[k] > price
        if thresholds[k] == price and ties > 0:
            stays = True
            ties -= 1
        entry = entries[k] if stays else rivals[k]
        if entry != chosen[rows[k]]:
            load[indices[chosen[rows[k]]]] -= 1
            load[indices[entry]] += 1
            chosen[rows[k]] = entry


@njit(cache=True, nogil=True)
def _ascend(problem: Problem, prices: Floats, chosen: NDArray[np.int32], load: Ints) -> None:
    """Improve the prices one at a time for as long as that is cheaper than to repair.

    Costs are counted in entries looked at; those of a path are a rough estimate.
    """
    q = load.size
    path_cost = 100 + q
    misplaced = _misplaced(problem, prices, load)
    if 16 * misplaced * path_cost < problem.indices.size:
        return
    starts, rows, entries = _columns(problem)
    progress = True
    while progress:
        work = 0
        for p in range(q):
            a, b = starts[p], starts[p + 1]
            wrong = abs(load[p] - _drained(problem, prices, load, p))
            if wrong * path_cost > b - a:
                _reprice(problem, prices, chosen, load, p, rows[a:b], entries[a:b])
                work += b - a
        before, misplaced = misplaced, _misplaced(problem, prices, load)
        progress = (before - misplaced) * path_cost > work


# --- repair --------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _gap(problem: Problem, prices: Floats, i: int, entry: int) -> float:
    """How much more than for its choice example ``i`` would pay for the next best candidate."""
    indices, costs = problem.indices, problem.costs
    least = np.inf
    for e in range(problem.indptr[i], problem.indptr[i + 1]):
        if e != entry:
            least = min(least, costs[e] + prices[indices[e]])
    return least - (costs[entry] + prices[indices[entry]])


@njit(cache=True, nogil=True)
def _quantile_of_gaps(
    problem: Problem, prices: Floats, chosen: NDArray[np.int32], count: int
) -> float:
    """Estimate from a sample what gap about ``count`` examples do not exceed."""
    step = 1 + chosen.size // 500
    gaps = np.empty(1 + (chosen.size - 1) // step, np.float64)
    for k in range(gaps.size):
        gaps[k] = _gap(problem, prices, k * step, int(chosen[k * step]))
    rank = count // step
    return _select(gaps, rank) if rank < gaps.size else np.inf


@njit(cache=True, nogil=True)
def _undecided(
    problem: Problem, prices: Floats, chosen: NDArray[np.int32], reach: float
) -> NDArray[np.int32]:
    """Return the examples with a gap of at most ``reach``, without those that have no choice.

    They are ordered by label, so that what a search looks at together lies together in memory.
    """
    indices = problem.indices
    found = np.empty(chosen.size, np.int32)
    ends = np.zeros(prices.size, np.int64)
    count = 0
    for i in range(chosen.size):
        gap = _gap(problem, prices, i, int(chosen[i]))
        if gap <= reach and gap < np.inf:
            found[count] = i
            count += 1
            ends[indices[chosen[i]]] += 1
    for p in range(1, ends.size):
        ends[p] += ends[p - 1]
    ordered = np.empty(count, np.int32)
    for k in range(count - 1, -1, -1):
        p = indices[chosen[found[k]]]
        ends[p] -= 1
        ordered[ends[p]] = found[k]
    return ordered


@njit(cache=True, nogil=True)
def _restrict(
    problem: Problem, chosen: NDArray[np.int32], examples: NDArray[np.int32]
) -> tuple[Problem, NDArray[np.int32]]:
    """Set up the problem of some of the examples, and their choice."""
    indptr = np.zeros(examples.size + 1, np.int64)
    for k in range(examples.size):
        i = examples[k]
        indptr[k + 1] = indptr[k] + problem.indptr[i + 1] - problem.indptr[i]
    indices = np.empty(indptr[-1], np.int32)
    costs = np.empty(indptr[-1], np.float64)
    choice = np.empty(examples.size, np.int32)
    for k in range(examples.size):
        shift = problem.indptr[examples[k]] - indptr[k]
        choice[k] = chosen[examples[k]] - shift
        for e in range(indptr[k], indptr[k + 1]):
            indices[e] = problem.indices[e + shift]
            costs[e] = problem.costs[e + shift]
    return Problem(indptr, indices, costs, problem.lower, problem.upper), choice


@njit(cache=True, nogil=True)
def _to_hub(vertices: Records, p: int, penalty: float) -> tuple[float, int]:
    """Cost of one more example drained from class ``p``, and how many more cost the same."""
    drain, lower, upper = vertices[p].drain, vertices[p].lower, vertices[p].upper
    if drain < lower:
        return -penalty, lower - drain
    if drain < upper:
        return 0.0, upper - drain
    return penalty, NO_LIMIT


@njit(cache=True, nogil=True)
def _from_hub(vertices: Records, p: int, penalty: float) -> tuple[float, int]:
    """Cost of one example less drained from class ``p``, and how many less cost the same."""
    drain, lower, upper = vertices[p].drain, vertices[p].lower, vertices[p].upper
    if drain > upper:
        return -penalty, drain - upper
    if drain > lower:
        return 0.0, drain - lower
    return penalty, NO_LIMIT


@njit(cache=True, nogil=True)
def _lift(vertices: Records, frontier: Ints, vertex: int, k: int) -> None:
    """Put a vertex at place ``k`` of the binary heap, or higher if it is nearer than those."""
    distance = vertices[vertex].distance
    while k > 0:
        above = frontier[(k - 1) // 2]
        if vertices[above].distance <= distance:
            break
        frontier[k] = above
        vertices[above].place = k
        k = (k - 1) // 2
    frontier[k] = vertex
    vertices[vertex].place = k


@njit(cache=True, nogil=True)
def _pop_nearest(vertices: Records, frontier: Ints, tally: Ints) -> int:
    """Take the nearest vertex out of the frontier."""
    tally[SIZE] -= 1
    k, size = 0, tally[SIZE]
    nearest, last = frontier[0], frontier[size]
    distance = vertices[last].distance
    while 2 * k + 1 < size:
        below = 2 * k + 1
        if (
            below + 1 < size
            and vertices[frontier[below + 1]].distance < vertices[frontier[below]].distance
        ):
            below += 1
        if distance <= vertices[frontier[below]].distance:
            break
        frontier[k] = frontier[below]
        vertices[frontier[k]].place = k
        k = below
    frontier[k] = last
    vertices[last].place = k
    return nearest


@njit(cache=True, nogil=True)
def _relax(
    vertices: Records,
    frontier: Ints,
    tally: Ints,
    direction: int,
    origin: int,
    target: int,
    length: float,
) -> None:
    """Note the way to ``target`` by ``origin`` if it is the shortest and the goal is not nearer."""
    reduced = length + direction * (vertices[target].price - vertices[origin].price)
    reach = vertices[origin].distance + max(0.0, reduced)
    goal = tally[GOAL]
    if reach >= vertices[target].distance or (goal >= 0 and reach >= vertices[goal].distance):
        return
    place = vertices[target].place
    if vertices[target].distance == np.inf:
        place = tally[SIZE]
        tally[SIZE] += 1
    vertices[target].distance = reach
    vertices[target].parent = origin
    _lift(vertices, frontier, target, place)
    if direction * vertices[target].excess < 0:
        tally[GOAL] = target


@njit(cache=True, nogil=True)
def _scan_out(graph: Graph, penalty: float, vertex: int) -> None:
    """Relax the edges that leave a vertex."""
    nodes, edges, _, vertices, frontier, _, tally, _ = graph
    hub = vertices.size - 1
    if vertex == hub:
        for p in range(hub):
            length = _from_hub(vertices, p, penalty)[0]
            _relax(vertices, frontier, tally, FORWARD, hub, p, length)
        return
    length = _to_hub(vertices, vertex, penalty)[0]
    _relax(vertices, frontier, tally, FORWARD, vertex, hub, length)
    edge = vertices[vertex].first_out
    while edge != EMPTY:
        root, p = edges[edge].root, int(edges[edge].target)
        if root != EMPTY:
            _relax(vertices, frontier, tally, FORWARD, vertex, p, nodes[root].key)
        edge = edges[edge].next_out


@njit(cache=True, nogil=True)
def _scan_in(graph: Graph, penalty: float, vertex: int) -> None:
    """Relax the edges that end in a vertex."""
    nodes, edges, _, vertices, frontier, _, tally, _ = graph
    hub = vertices.size - 1
    if vertex == hub:
        for p in range(hub):
            length = _to_hub(vertices, p, penalty)[0]
            _relax(vertices, frontier, tally, BACKWARD, hub, p, length)
        return
    length = _from_hub(vertices, vertex, penalty)[0]
    _relax(vertices, frontier, tally, BACKWARD, vertex, hub, length)
    edge = vertices[vertex].first_in
    while edge != EMPTY:
        root, p = edges[edge].root, int(edges[edge].origin)
        if root != EMPTY:
            _relax(vertices, frontier, tally, BACKWARD, vertex, p, nodes[root].key)
        edge = edges[edge].next_in


@njit(cache=True, nogil=True)
def _find_path(graph: Graph, penalty: float, reach: float, direction: int, start: int) -> int:
    """Search the nearest vertex where a path from, or backward to, ``start`` may end.

    The prices of the vertices on the way change by what they are nearer than that goal: from a
    label with too many examples they rise, towards one with too few they fall. Afterwards the
    edges of the path, which the parents hold, have reduced cost zero. Returns -1 if there is no
    path, or only such that prices drift apart by more than ``reach``.
    """
    vertices, frontier, reached, tally = graph.vertices, graph.frontier, graph.reached, graph.tally
    for p in range(vertices.size):
        vertices[p].distance = np.inf
    vertices[start].distance = 0.0
    frontier[0] = start
    tally[SIZE] = 1
    tally[GOAL] = -1
    n_reached = 0
    while tally[SIZE] > 0:
        vertex = _pop_nearest(vertices, frontier, tally)
        if vertex == tally[GOAL] or vertices[vertex].distance > reach:
            break
        reached[n_reached] = vertex
        n_reached += 1
        if direction == FORWARD:
            _scan_out(graph, penalty, vertex)
        else:
            _scan_in(graph, penalty, vertex)
    goal = tally[GOAL]
    if goal < 0:
        return -1
    risen, fallen = graph.drift
    for p in reached[:n_reached]:
        change = direction * (vertices[goal].distance - vertices[p].distance)
        risen = max(risen, vertices[p].price + change - vertices[p].base)
        fallen = max(fallen, vertices[p].base - change - vertices[p].price)
    if risen + fallen > reach:
        return -1
    graph.drift[0], graph.drift[1] = risen, fallen
    for p in reached[:n_reached]:
        vertices[p].price += direction * (vertices[goal].distance - vertices[p].distance)
    return goal


@njit(cache=True, nogil=True)
def _step(vertices: Records, direction: int, vertex: int) -> tuple[int, int]:
    """Return the edge of the path by which the search came to a vertex."""
    if direction == FORWARD:
        return vertices[vertex].parent, vertex
    return vertex, vertices[vertex].parent


@njit(cache=True, nogil=True)
def _cheapest_entry(graph: Graph, p: int, r: int) -> int:
    """Return the entry by which it costs least to move an example from ``p`` to ``r``."""
    edge = _edge_between(graph.edges, graph.table, graph.vertices, graph.tally, p, r)
    return int(graph.edges[edge].root)


@njit(cache=True, nogil=True)
def _path_width(graph: Graph, penalty: float, direction: int, start: int, goal: int) -> int:
    """How many examples the ends and the hub let pass; the costs of the moves are remembered."""
    vertices = graph.vertices
    hub = vertices.size - 1
    width = min(abs(vertices[start].excess), abs(vertices[goal].excess))
    vertex = goal
    while vertex != start:
        p, r = _step(vertices, direction, vertex)
        if r == hub:
            width = min(width, _to_hub(vertices, p, penalty)[1])
        elif p == hub:
            width = min(width, _from_hub(vertices, r, penalty)[1])
        else:
            vertices[vertex].step_key = graph.nodes[_cheapest_entry(graph, p, r)].key
        vertex = vertices[vertex].parent
    return width


@njit(cache=True, nogil=True)
def _still_open(graph: Graph, direction: int, start: int, goal: int) -> bool:
    """Whether there are examples to be moved along the path at the costs remembered."""
    vertices = graph.vertices
    hub = vertices.size - 1
    vertex = goal
    while vertex != start:
        p, r = _step(vertices, direction, vertex)
        if p != hub and r != hub:
            entry = _cheapest_entry(graph, p, r)
            if entry == EMPTY or graph.nodes[entry].key > vertices[vertex].step_key:
                return False
        vertex = vertices[vertex].parent
    return True


@njit(cache=True, nogil=True)
def _example_of(indptr: Ints, entry: int) -> int:
    """Find the example that an entry belongs to, by bisection."""
    left, right = 0, indptr.size - 1
    while right - left > 1:
        middle = (left + right) // 2
        if indptr[middle] <= entry:
            left = middle
        else:
            right = middle
    return left


@njit(cache=True, nogil=True)
def _push(
    graph: Graph,
    problem: Problem,
    chosen: NDArray[np.int32],
    direction: int,
    start: int,
    goal: int,
) -> None:
    """Send one example along the path."""
    vertices = graph.vertices
    hub = vertices.size - 1
    vertex = goal
    while vertex != start:
        p, r = _step(vertices, direction, vertex)
        if r == hub:
            vertices[p].drain += 1
        elif p == hub:
            vertices[r].drain -= 1
        else:
            entry = _cheapest_entry(graph, p, r)
            i = _example_of(problem.indptr, entry)
            _leave(graph, problem, i, int(chosen[i]))
            chosen[i] = entry
            _enter(graph, problem, i, entry)
        vertex = vertices[vertex].parent
    vertices[start].excess -= direction
    vertices[goal].excess += direction


@njit(cache=True, nogil=True)
def _balance(
    graph: Graph,
    problem: Problem,
    chosen: NDArray[np.int32],
    penalty: float,
    reach: float,
    direction: int,
    start: int,
) -> bool:
    """Take from or give to one label as much as the nearest goal, the path and the table allow."""
    goal = _find_path(graph, penalty, reach, direction, start)
    if goal < 0:
        return False
    width = _path_width(graph, penalty, direction, start, goal)
    _push(graph, problem, chosen, direction, start, goal)
    for _ in range(1, width):
        if _is_crowded(graph) or not _still_open(graph, direction, start, goal):
            break
        _push(graph, problem, chosen, direction, start, goal)
    return True


@njit(cache=True, nogil=True)
def _repair_among(
    problem: Problem,
    vertices: Records,
    chosen: NDArray[np.int32],
    examples: NDArray[np.int32],
    penalty: float,
    reach: float,
) -> bool:
    """Move some of the examples along shortest paths until no label has too many or too few.

    Returns False where prices would have to drift apart by more than ``reach``, or no path exists.
    """
    for p in range(vertices.size):
        vertices[p].base = vertices[p].price
    part, choice = _restrict(problem, chosen, examples)
    drift = np.zeros(2, np.float64)
    graph = _build_graph(part, choice, vertices, drift)
    found = True
    for direction in (FORWARD, BACKWARD):
        for p in range(vertices.size - 1):
            while found and direction * vertices[p].excess > 0:
                if _is_crowded(graph):
                    graph = _build_graph(part, choice, vertices, drift)
                found = _balance(graph, part, choice, penalty, reach, direction, p)
    for k in range(examples.size):
        chosen[examples[k]] = problem.indptr[examples[k]] + choice[k] - part.indptr[k]
    return found


@njit(cache=True, nogil=True)
def _build_vertices(problem: Problem, prices: Floats, load: Ints) -> Records:
    q = prices.size
    vertices = np.empty(q + 1, VERTEX)
    vertices[q].price = 0.0
    vertices[q].excess = 0
    for p in range(q):
        vertices[p].price = prices[p]
        vertices[p].lower = problem.lower[p]
        vertices[p].upper = problem.upper[p]
        vertices[p].drain = _drained(problem, prices, load, p)
        vertices[p].excess = load[p] - vertices[p].drain
        vertices[q].excess -= vertices[p].excess
    return vertices


@njit(cache=True, nogil=True)
def _repair(
    problem: Problem, prices: Floats, chosen: NDArray[np.int32], load: Ints, penalty: float
) -> bool:
    """Make the choice optimal by moving examples along shortest paths; the prices follow.

    Bounds may be broken at the price of ``penalty`` an example. Returns False if the bounds cannot
    be met, which happens with an infinite penalty only.

    An example whose second choice costs more than its first by ``reach`` takes no part in a
    shortest path before two prices have drifted apart by as much. So it is left out until then.
    """
    misplaced = _misplaced(problem, prices, load)
    if misplaced == 0:
        return True
    vertices = _build_vertices(problem, prices, load)
    count = 32 * misplaced + 4 * prices.size
    done, reach = False, 0.0
    while not done and reach < np.inf:
        reach = _quantile_of_gaps(problem, prices, chosen, count)
        examples = _undecided(problem, prices, chosen, reach)
        done = _repair_among(problem, vertices, chosen, examples, penalty, reach)
        for p in range(prices.size):
            prices[p] = vertices[p].price - vertices[prices.size].price
        count *= 4
    return done


# --- the whole -----------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _within_reach(problem: Problem, prices: Floats) -> tuple[Problem, Floats]:
    """Widen the bounds that no labeling can meet; drop the prices that no bound can ever justify.

    A class gets no more examples than have it as a candidate, and no fewer than have no other. So
    a positive price makes sense where more than the upper bound could take the class, a negative
    one where fewer than the lower bound have to.
    """
    q = problem.lower.size
    must, can = np.zeros(q, np.int64), np.zeros(q, np.int64)
    for i in range(problem.indptr.size - 1):
        first, last = problem.indptr[i], problem.indptr[i + 1] - 1
        if first == last:
            must[problem.indices[first]] += 1
        for e in range(first, last + 1):
            can[problem.indices[e]] += 1
    lower, upper = np.minimum(problem.lower, can), np.maximum(problem.upper, must)
    start = np.zeros(q, np.float64)
    for p in range(q):
        if (prices[p] > 0 and upper[p] < can[p]) or (prices[p] < 0 and lower[p] > must[p]):
            start[p] = prices[p]
    return Problem(problem.indptr, problem.indices, problem.costs, lower, upper), start


@njit(cache=True, nogil=True)
def _solve(
    indptr: Ints,
    indices: NDArray[np.int32],
    costs: Floats,
    lower: Ints,
    upper: Ints,
    prices: Floats,
) -> tuple[bool, NDArray[np.int32], Floats]:
    """Solve a problem from given prices; returns whether it is feasible, the choice, the prices.

    Prices with a dual value below that of zero prices are not used.
    """
    problem, prices = _within_reach(Problem(indptr, indices, costs, lower, upper), prices)
    q = lower.size
    chosen = np.empty(indptr.size - 1, np.int32)
    load = np.empty(q, np.int64)
    zero = np.zeros(q, np.float64)
    value = _choose(problem, zero, chosen, load)
    if not _choose(problem, prices, chosen, load) >= value:
        prices = zero
        _choose(problem, prices, chosen, load)
    _ascend(problem, prices, chosen, load)
    feasible = _repair(problem, prices, chosen, load, np.inf)
    return feasible, chosen, prices


@njit(cache=True, nogil=True)
def _least_violation(indptr: Ints, indices: NDArray[np.int32], lower: Ints, upper: Ints) -> Floats:
    """Prices in {-1, 0, 1} of the problem to break the bounds by as little as possible.

    A class has the price 1 if it is full in every such labeling, -1 if it is never above its lower
    bound, and no example can be better off than with a candidate of the least price.
    """
    problem = Problem(indptr, indices, np.zeros(indices.size), lower, upper)
    chosen = np.empty(indptr.size - 1, np.int32)
    load = np.empty(lower.size, np.int64)
    prices = np.zeros(lower.size, np.float64)
    _choose(problem, prices, chosen, load)
    _repair(problem, prices, chosen, load, 1.0)
    return prices


def _solve_relaxed(problem: Problem, prices: Floats) -> tuple[NDArray[np.int32], Floats]:
    """Solve an infeasible problem: break the bounds by as little as possible, then at least cost.

    The labelings that break the bounds least are those that agree with the prices of
    `_least_violation`: examples stay with their candidates of the least such price, classes with
    price 1 have their upper bound as the lower one, those with -1 their lower one as the upper.
    """
    n = problem.indptr.size - 1
    level = _least_violation(problem.indptr, problem.indices, problem.lower, problem.upper)
    starts, sizes = problem.indptr[:-1], np.diff(problem.indptr)
    surplus = level[problem.indices]
    surplus -= np.repeat(np.minimum.reduceat(surplus, starts), sizes)
    keep = surplus == 0
    kept = Problem(
        np.concatenate([[0], np.cumsum(np.add.reduceat(keep, starts, dtype=np.int64))]),
        problem.indices[keep],
        problem.costs[keep],
        np.select([level > 0, level < 0], [problem.upper, 0], problem.lower),
        np.select([level > 0, level < 0], [n, problem.lower], problem.upper),
    )
    _, chosen, prices = _solve(*kept, prices)
    chosen = np.flatnonzero(keep).astype(np.int32)[chosen]
    saving = problem.costs + prices[problem.indices]
    saving = np.repeat(saving[chosen], sizes) - saving
    height = np.concatenate([[0.0], saving[~keep] / surplus[~keep], -(prices * level)]).max()
    return chosen, prices + height * level


@njit(cache=True, nogil=True)
def _settle(labels: Ints, prices: Floats, lower: Ints, upper: Ints) -> int:
    """Remove the prices that are mere rounding errors, and count by how much the bounds gave.

    Where all classes are full the prices are determined up to a constant: the least becomes zero.
    """
    load = np.zeros(prices.size, np.int64)
    for p in labels:
        load[p] += 1
    least = np.inf
    for p in range(prices.size):
        least = min(least, prices[p] if load[p] >= upper[p] else -np.inf)
    if least > -np.inf:
        prices -= least
    relaxed = 0
    for p in range(prices.size):
        if load[p] < upper[p]:
            prices[p] = min(prices[p], 0.0)
        if load[p] > lower[p]:
            prices[p] = max(prices[p], 0.0)
        relaxed += max(lower[p] - load[p], load[p] - upper[p], 0)
    return relaxed


# --- the interface -------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _find_fault(problem: Problem, prices: Floats) -> tuple[int, int]:
    """Return which of `FAULTS` the input has, and where; or -1 twice."""
    indptr, indices, costs, lower, upper = problem
    q = lower.size
    for p in range(q):
        if lower[p] > upper[p]:
            return 0, p
        if not np.isfinite(prices[p]):
            return 1, p
    for i in range(indptr.size - 1):
        if indptr[i] >= indptr[i + 1]:
            return 2, i
    seen = np.full(q, -1, np.int64)
    for i in range(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            if indices[e] < 0 or indices[e] >= q:
                return 3, e
            if not np.isfinite(costs[e]):
                return 4, e
            if seen[indices[e]] == i:
                return 5, i
            seen[indices[e]] = i
    return -1, -1


FAULTS = (
    "lower is greater than upper for class {0}; lower the one or raise the other.",
    "prices must be finite; prices[{0}] is not.",
    "indptr gives example {0} no candidate; every example needs at least one.",
    "indices[{0}] is no class index; there are bounds for {1} classes.",
    "costs must be finite; costs[{0}] is not.",
    "indices names a candidate of example {0} twice; name it once.",
)


def _own(values: ArrayLike, dtype: type) -> NDArray:
    """Bring an array to the one form that the kernels are compiled for."""
    return np.require(values, dtype, ("C", "A", "W"))


def _check_pattern(indptr: ArrayLike, indices: ArrayLike) -> tuple[Ints, NDArray[np.int32]]:
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
        labels = np.where(labels < 2**31, labels, -1)
    return _own(starts, np.int64), _own(labels, np.int32)


def _check_shape(name: str, values: ArrayLike, size: int) -> Floats:
    array = _own(values, np.float64)
    if array.shape != (size,):
        raise ValueError(f"{name} must have shape ({size},); got {array.shape}.")
    return array


def _check_bound(name: str, bound: ArrayLike) -> Ints:
    array = np.asarray(bound)
    if array.ndim > 1 or array.dtype.kind not in "iuf":
        raise ValueError(f"{name} must be None, an integer, or an array with one integer a class.")
    good = array >= 0
    if array.dtype.kind == "f":
        good &= (array == np.trunc(array)) & np.isfinite(array)
    if not good.all():
        p = np.flatnonzero(~good)[0]
        raise ValueError(
            f"{name} must consist of non-negative integers; found {array.flat[p]} at position {p}. "
            "Use None for no bound."
        )
    return _own(array, np.int64)


def _check_bounds(
    lower: ArrayLike | None, upper: ArrayLike | None, indices: NDArray[np.int32], n: int
) -> tuple[Ints, Ints]:
    """Bring the bounds to one integer a class."""
    low = _check_bound("lower", 0 if lower is None else lower)
    high = _check_bound("upper", np.maximum(low, n) if upper is None else upper)
    if low.ndim == high.ndim == 0:
        q = int(indices.max(initial=-1)) + 1
        return np.full(q, low), np.full(q, high)
    if low.ndim == 0:
        return np.full(high.size, low), high
    if high.ndim == 0:
        return low, np.full(low.size, high)
    if low.size != high.size:
        raise ValueError(f"lower and upper differ in length: {low.size} and {high.size}.")
    return low, high


def assign_labels(
    indptr: ArrayLike,
    indices: ArrayLike,
    costs: ArrayLike,
    lower: ArrayLike | None,
    upper: ArrayLike | None,
    *,
    prices: ArrayLike | None = None,
) -> Assignment:
    """Give every example one of its candidates at least total cost within bounds on class sizes.

    The result is exact up to the rounding of sums of costs. Where the bounds cannot be met they
    give by the least possible number of examples in total, and the cost is the least among all
    labelings that break them by no more.

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

    Returns
    -------
    Assignment
        The labels, their cost, the label prices that prove it least, and by how much the bounds
        had to give.

    Notes
    -----
    The same input always gives the same labels. Where several labelings have the same cost, the
    one that is found depends on the starting prices; examples with candidates of equal cost fill
    the classes evenly. Memory is O(nnz + q).

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
    fault, where = _find_fault(Problem(starts, labels, weights, low, high), start)
    if fault >= 0:
        raise ValueError(FAULTS[fault].format(where, low.size))
    if n == 0:
        return Assignment(np.empty(0, np.int64), 0.0, np.zeros(low.size), int(low.sum()))

    # Powers of two keep the digits; sums of costs must not overflow.
    peak = max(weights.max(), -weights.min())
    exponent = max(0, math.frexp(peak)[1] - 900)
    problem = Problem(
        starts,
        labels,
        np.ldexp(weights, -exponent) if exponent else weights,
        np.minimum(low, n),
        np.minimum(high, n),
    )
    if prices is not None and np.abs(start).max() / (4 * low.size) > peak:
        start = np.zeros(low.size)  # no optimal prices need be that large
    start = np.ldexp(start, -exponent) if exponent else start
    feasible, chosen, final = _solve(*problem, start)
    if not feasible:
        chosen, final = _solve_relaxed(problem, start)
    result = labels[chosen].astype(np.int64)
    relaxed = _settle(result, final, low, high)
    cost = float(weights[chosen].sum())
    return Assignment(result, cost, np.ldexp(final, exponent) if exponent else final, relaxed)
