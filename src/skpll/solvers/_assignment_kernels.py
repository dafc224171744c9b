"""Compiled parts of the assignment solver: survey, choose, ascend, repair.

They are in one file because the compiler's cache on disk notices changes only in the file of the
function that is called. For the same reason they take plain tuples: the cache refers to classes by
name, and could not be read any more where a class has a new name.

==========  ========================================================================================
`problem`   (indptr, indices, costs, lower, upper): the candidates in CSR form, and the bounds on
            the size of every class
`chosen`    for every example the entry of the candidate that it has
`load`      for every class the number of its examples
`graph`     (vertices, edges, table, nodes, n_edges): the graph of the labels. Entry ``e`` of the
            pattern, candidate ``r`` of an example now in ``p``, is a node of a pairing heap that
            belongs to the edge from ``p`` to ``r``; its key is what the move would cost. A hash
            table finds the edges; those that leave a label are linked in a list.
==========  ========================================================================================
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numba import njit
from numba.core.options import DefaultOptions
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Places: TypeAlias = NDArray[np.int32]
Longs: TypeAlias = NDArray[np.int64]
Records: TypeAlias = NDArray[np.void]
Problem: TypeAlias = tuple[Longs, Places, Floats, Longs, Longs]
Graph: TypeAlias = tuple[Records, Records, Places, Records, Longs]

# Functions called from Python, and those that are only called by other compiled ones.
_OUTER: dict[str, Any] = {"cache": True, "nogil": True}
_INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
# Those of the latter that allocate nothing can do without counting references to their arrays,
# which takes longer than what the smallest of them do.
_LEAF: dict[str, Any] = {**_INNER, "_nrt": False} if hasattr(DefaultOptions, "_nrt") else _INNER

_NONE = -1

# A node of a pairing heap: `before` is its left sibling, or the parent of a first child.
_NODE = np.dtype(
    [("key", np.float64), ("child", np.int32), ("after", np.int32), ("before", np.int32)],
    align=True,
)

# An edge of the label graph: the root of its heap, and the next edge with the same origin.
_EDGE = np.dtype(
    [("origin", np.int32), ("target", np.int32), ("root", np.int32), ("after", np.int32)]
)

# A vertex that a search has reached, and its distance.
_REACHED = np.dtype([("distance", np.float64), ("vertex", np.int32)], align=True)

# A vertex of the label graph: a class, or the hub, which is the last one. All classes drain into
# it: `drain` is the number of examples that the price asks of a class, `excess` what the class
# holds beyond that (the hub: what it is given beyond the number of examples). Without any excess
# the choice is optimal.
#
# `base` is the price before the first search, `first` the first edge that leaves the vertex. The
# rest is what a search notes down: the `distance` from the nearest vertex with an excess, the
# `parent` on the way there, the edge `via` which it leads over (none from or to the hub) and its
# length `key`, and the `place` in the frontier.
_VERTEX = np.dtype(
    [
        ("price", np.float64),
        ("distance", np.float64),
        ("base", np.float64),
        ("key", np.float64),
        ("lower", np.int64),
        ("upper", np.int64),
        ("drain", np.int64),
        ("excess", np.int64),
        ("parent", np.int32),
        ("via", np.int32),
        ("place", np.int32),
        ("first", np.int32),
    ]
)


# --------------------------------------------------------------------------------------------------
# Survey
# --------------------------------------------------------------------------------------------------


@njit(**_OUTER)
def survey(
    indptr: Longs, indices: Places, costs: Floats, lower: Longs, upper: Longs, prices: Floats
) -> tuple[int, int, float, float, Longs, Longs]:
    """Look for faults, and at all that can be told without a choice.

    Returns the number of a fault and where it is, or -1 twice; the greatest absolute cost; the cost
    without any bounds; and for each class how many examples must have it and how many can.
    """
    q = lower.size
    must, can = np.zeros(q, np.int64), np.zeros(q, np.int64)
    peak = total = 0.0
    for p in range(q):
        if lower[p] > upper[p]:
            return 0, p, peak, total, must, can
        if not np.isfinite(prices[p]):
            return 1, p, peak, total, must, can
    for i in range(indptr.size - 1):
        if indptr[i] >= indptr[i + 1]:
            return 2, i, peak, total, must, can
    seen = np.full(q, -1, np.int64)
    for i in range(indptr.size - 1):
        first, end = indptr[i], indptr[i + 1]
        least = np.inf
        for e in range(first, end):
            p, cost = indices[e], costs[e]
            if p < 0 or p >= q:
                return 3, e, peak, total, must, can
            if not np.isfinite(cost):
                return 4, e, peak, total, must, can
            if seen[p] == i:
                return 5, i, peak, total, must, can
            seen[p] = i
            can[p] += 1
            peak = max(peak, abs(cost))
            least = min(least, cost)
        total += least
        if end == first + 1:
            must[indices[first]] += 1
    return -1, -1, peak, total, must, can


# --------------------------------------------------------------------------------------------------
# Choose
# --------------------------------------------------------------------------------------------------


@njit(**_LEAF)
def _choose(problem: Problem, prices: Floats, chosen: Places, load: Longs) -> float:
    """Give every example its cheapest candidate and return the dual value of the prices.

    A tie goes to the class that is furthest below the middle of its bounds, then to the first.
    """
    indptr, indices, costs, lower, upper = problem
    load[:] = 0
    value = 0.0
    for i in range(chosen.size):
        first, end = indptr[i], indptr[i + 1]
        best, least, is_tied = first, np.inf, False
        for e in range(first, end):
            cost = costs[e] + prices[indices[e]]
            is_tied = (is_tied & (cost >= least)) | (cost == least)
            best = e if cost < least else best
            least = min(cost, least)
        if is_tied:
            for e in range(best + 1, end):
                p, r = indices[best], indices[e]
                room = lower[p] + upper[p] - 2 * load[p]
                if costs[e] + prices[r] == least and lower[r] + upper[r] - 2 * load[r] > room:
                    best = e
        chosen[i] = best
        load[indices[best]] += 1
        value += least
    for p in range(load.size):
        value -= max(lower[p] * prices[p], upper[p] * prices[p])
    return value


@njit(**_LEAF)
def _drained(problem: Problem, prices: Floats, load: Longs, penalty: float, p: int) -> int:
    """How many examples the price asks of class ``p``: all it may, all it must, or what it has.

    At a price as high as the penalty, it may as well have more, or less.
    """
    lower, upper = problem[3][p], problem[4][p]
    if prices[p] > 0:
        return max(load[p], upper) if prices[p] >= penalty else upper
    if prices[p] < 0:
        return min(load[p], lower) if prices[p] <= -penalty else lower
    return min(max(load[p], lower), upper)


@njit(**_LEAF)
def _misplaced(problem: Problem, prices: Floats, load: Longs, penalty: float) -> int:
    """How many examples the repair would have to move."""
    total, hub = 0, -load.sum()
    for p in range(load.size):
        drained = _drained(problem, prices, load, penalty, p)
        total += max(0, load[p] - drained)
        hub += drained
    return total + max(0, hub)


# --------------------------------------------------------------------------------------------------
# Ascend
# --------------------------------------------------------------------------------------------------


@njit(**_LEAF)
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


@njit(**_INNER)
def _columns(problem: Problem) -> tuple[Longs, Places, Places]:
    """For every class where its entries start, the examples they belong to, and the entries."""
    indptr, indices, _, lower, _ = problem
    starts = np.zeros(lower.size + 1, np.int64)
    for p in indices:
        starts[p + 1] += 1
    for p in range(lower.size):
        starts[p + 1] += starts[p]
    free = starts.copy()
    rows = np.empty(indices.size, np.int32)
    entries = np.empty(indices.size, np.int32)
    for i in range(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            k = free[indices[e]]
            free[indices[e]] += 1
            rows[k] = i
            entries[k] = e
    return starts, rows, entries


@njit(**_LEAF)
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


@njit(**_LEAF)
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


@njit(**_LEAF)
def _cheapest_other(problem: Problem, prices: Floats, i: int, entry: int) -> tuple[float, int]:
    """Return what the cheapest candidate of example ``i`` besides one would cost, and its entry."""
    indptr, indices, costs, _, _ = problem
    least, best = np.inf, entry
    for e in range(indptr[i], indptr[i + 1]):
        cost = np.inf if e == entry else costs[e] + prices[indices[e]]
        best = e if cost < least else best
        least = min(cost, least)
    return least, best


@njit(**_LEAF)
def _reprice(
    problem: Problem,
    prices: Floats,
    chosen: Places,
    load: Longs,
    penalty: float,
    p: int,
    rows: Places,
    entries: Places,
    thresholds: Floats,
    order: Floats,
    asked: Places,
) -> None:
    """Give class ``p`` its best price, and its examples the candidates that are cheapest then.

    If it has too many examples, the price rises and they are asked to leave; if it has too few, the
    price falls and the others are asked to come. The last three arrays are room to work in.
    """
    indices, costs, lower, upper = problem[1:]
    rises = load[p] > _drained(problem, prices, load, penalty, p)
    size = 0
    for k in range(rows.size):
        if (chosen[rows[k]] == entries[k]) == rises:
            least = _cheapest_other(problem, prices, rows[k], entries[k])[0]
            thresholds[size] = order[size] = least - costs[entries[k]]
            asked[size] = k
            size += 1
    held = 0 if rises else load[p]
    price = _best_price(order[:size], lower[p] - held, upper[p] - held)
    price = prices[p] = min(max(price, -penalty), penalty)
    ties = (upper[p] if price > 0 else lower[p]) - held
    for threshold in thresholds[:size]:
        ties -= threshold > price
    for j in range(size):
        takes = thresholds[j] > price
        if thresholds[j] == price and ties > 0:
            takes = True
            ties -= 1
        if takes != rises:
            i, entry = rows[asked[j]], entries[asked[j]]
            if rises:
                entry = _cheapest_other(problem, prices, i, entry)[1]
            load[indices[chosen[i]]] -= 1
            load[indices[entry]] += 1
            chosen[i] = entry


@njit(**_INNER)
def _ascend(problem: Problem, prices: Floats, chosen: Places, load: Longs, penalty: float) -> None:
    """Improve the prices one at a time for as long as that is cheaper than to repair.

    Costs are counted in entries looked at; those of a path are a rough estimate.
    """
    indices, q = problem[1], load.size
    misplaced = _misplaced(problem, prices, load, penalty)
    path_cost = 50 + q
    if 16 * misplaced * path_cost < indices.size:
        return
    starts, rows, entries = _columns(problem)
    longest = np.diff(starts).max()
    thresholds, order = np.empty(longest, np.float64), np.empty(longest, np.float64)
    asked = np.empty(longest, np.int32)
    progress = True
    while progress:
        work = 0
        for p in range(q):
            a, b = starts[p], starts[p + 1]
            wrong = abs(load[p] - _drained(problem, prices, load, penalty, p))
            if wrong * path_cost > b - a:
                _reprice(
                    problem,
                    prices,
                    chosen,
                    load,
                    penalty,
                    p,
                    rows[a:b],
                    entries[a:b],
                    thresholds,
                    order,
                    asked,
                )
                work += b - a
        before, misplaced = misplaced, _misplaced(problem, prices, load, penalty)
        progress = (before - misplaced) * path_cost > work


# --------------------------------------------------------------------------------------------------
# Repair: which examples take part
# --------------------------------------------------------------------------------------------------


@njit(**_LEAF)
def _gap(problem: Problem, prices: Floats, i: int, entry: int) -> float:
    """How much more than for its choice example ``i`` would pay for the next best candidate."""
    own = problem[2][entry] + prices[problem[1][entry]]
    return _cheapest_other(problem, prices, i, entry)[0] - own


@njit(**_INNER)
def _quantile_of_gaps(problem: Problem, prices: Floats, chosen: Places, count: int) -> float:
    """Estimate from a sample what gap about ``count`` examples do not exceed."""
    step = 1 + chosen.size // 500
    gaps = np.empty(1 + (chosen.size - 1) // step, np.float64)
    rank = count // step
    if rank >= gaps.size:
        return np.inf
    for k in range(gaps.size):
        gaps[k] = _gap(problem, prices, k * step, chosen[k * step])
    return _select(gaps, rank)


@njit(**_INNER)
def _undecided(problem: Problem, prices: Floats, chosen: Places, reach: float) -> Places:
    """Return the examples with a gap of at most ``reach``, without those that have no choice.

    They are ordered by label, so that what a search looks at together lies together in memory.
    """
    indices = problem[1]
    found = np.empty(chosen.size, np.int32)
    ends = np.zeros(prices.size, np.int64)
    count = 0
    for i in range(chosen.size):
        gap = _gap(problem, prices, i, chosen[i])
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


@njit(**_INNER)
def _restrict(problem: Problem, chosen: Places, examples: Places) -> tuple[Problem, Places]:
    """Set up the problem of some of the examples, and their choice."""
    all_indptr, all_indices, all_costs, lower, upper = problem
    indptr = np.zeros(examples.size + 1, np.int64)
    for k in range(examples.size):
        i = examples[k]
        indptr[k + 1] = indptr[k] + all_indptr[i + 1] - all_indptr[i]
    indices = np.empty(indptr[-1], np.int32)
    costs = np.empty(indptr[-1], np.float64)
    choice = np.empty(examples.size, np.int32)
    for k in range(examples.size):
        shift = all_indptr[examples[k]] - indptr[k]
        choice[k] = chosen[examples[k]] - shift
        for e in range(indptr[k], indptr[k + 1]):
            indices[e] = all_indices[e + shift]
            costs[e] = all_costs[e + shift]
    return (indptr, indices, costs, lower, upper), choice


# --------------------------------------------------------------------------------------------------
# Repair: the graph of the labels
# --------------------------------------------------------------------------------------------------


@njit(**_LEAF)
def _link(nodes: Records, a: int, b: int) -> int:
    """Join two trees; of equal keys the earlier entry comes first."""
    if nodes[b].key < nodes[a].key or (nodes[b].key == nodes[a].key and b < a):
        a, b = b, a
    first = nodes[a].child
    nodes[b].after = first
    nodes[b].before = a
    if first != _NONE:
        nodes[first].before = b
    nodes[a].child = b
    return a


@njit(**_LEAF)
def _join_siblings(nodes: Records, first: int) -> int:
    """Join a list of siblings into one tree: in pairs from the left, then all from the right."""
    pairs = _NONE
    while first != _NONE:
        second = int(nodes[first].after)
        if second == _NONE:
            rest, tree = _NONE, first
        else:
            rest = int(nodes[second].after)
            tree = _link(nodes, first, second)
        nodes[tree].after = pairs
        pairs = tree
        first = rest
    if pairs == _NONE:
        return _NONE
    tree, rest = pairs, int(nodes[pairs].after)
    while rest != _NONE:
        following = int(nodes[rest].after)
        tree = _link(nodes, tree, rest)
        rest = following
    nodes[tree].after = _NONE
    nodes[tree].before = _NONE
    return tree


@njit(**_LEAF)
def _insert(nodes: Records, edges: Records, edge: int, entry: int, key: float) -> None:
    root = int(edges[edge].root)
    nodes[entry].key = key
    nodes[entry].child = _NONE
    nodes[entry].after = _NONE
    nodes[entry].before = _NONE
    edges[edge].root = entry if root == _NONE else _link(nodes, root, entry)


@njit(**_LEAF)
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
    if right != _NONE:
        nodes[right].before = left
    if orphans != _NONE:
        edges[edge].root = _link(nodes, root, orphans)


@njit(**_LEAF)
def _edge_between(graph: Graph, p: int, r: int) -> int:
    """Find the edge from ``p`` to ``r`` in the hash table, or add it."""
    vertices, edges, table, _, n_edges = graph
    mask = table.size - 1
    place = (((p * vertices.size + r) * 0x9E3779B1) >> 8) & mask
    while table[place] != _NONE:
        edge = int(table[place])
        if edges[edge].origin == p and edges[edge].target == r:
            return edge
        place = (place + 1) & mask
    edge = n_edges[0]
    n_edges[0] += 1
    table[place] = edge
    edges[edge].origin = p
    edges[edge].target = r
    edges[edge].root = _NONE
    edges[edge].after = vertices[p].first
    vertices[p].first = edge
    return edge


@njit(**_LEAF)
def _enter(graph: Graph, part: Problem, i: int, entry: int) -> None:
    """Make the other candidates of example ``i``, now at ``entry``, edges of the label graph."""
    indptr, indices, costs, _, _ = part
    for e in range(indptr[i], indptr[i + 1]):
        if e != entry:
            edge = _edge_between(graph, indices[entry], indices[e])
            _insert(graph[3], graph[1], edge, e, costs[e] - costs[entry])


@njit(**_LEAF)
def _leave(graph: Graph, part: Problem, i: int, entry: int) -> None:
    """Undo `_enter`."""
    indptr, indices, _, _, _ = part
    for e in range(indptr[i], indptr[i + 1]):
        if e != entry:
            _remove(graph[3], graph[1], _edge_between(graph, indices[entry], indices[e]), e)


@njit(**_INNER)
def _build_graph(part: Problem, choice: Places, vertices: Records) -> Graph:
    """Build the label graph; its hash table starts at most half full."""
    n_entries, n_vertices = part[1].size, vertices.size
    size = 16
    while size < min(4 * n_entries, 2 * n_vertices * n_vertices):
        size *= 2
    graph = (
        vertices,
        np.empty(size, _EDGE),
        np.full(size, _NONE, np.int32),
        np.empty(n_entries, _NODE),
        np.zeros(1, np.int64),
    )
    for p in range(n_vertices):
        vertices[p].first = _NONE
    for i in range(choice.size):
        _enter(graph, part, i, choice[i])
    return graph


@njit(**_LEAF)
def _is_crowded(graph: Graph) -> bool:
    """Whether the hash table should be built anew before more edges come."""
    return 2 * graph[4][0] > graph[2].size


@njit(**_LEAF)
def _to_hub(vertices: Records, p: int, penalty: float) -> float:
    """Cost of one more example drained from class ``p``."""
    if vertices[p].drain < vertices[p].lower:
        return -penalty
    return 0.0 if vertices[p].drain < vertices[p].upper else penalty


@njit(**_LEAF)
def _from_hub(vertices: Records, p: int, penalty: float) -> float:
    """Cost of one example less drained from class ``p``."""
    if vertices[p].drain > vertices[p].upper:
        return -penalty
    return 0.0 if vertices[p].drain > vertices[p].lower else penalty


# --------------------------------------------------------------------------------------------------
# Repair: shortest paths
# --------------------------------------------------------------------------------------------------


@njit(**_LEAF)
def _place(vertices: Records, frontier: Records, k: int, vertex: int, distance: float) -> None:
    """Put a vertex at place ``k`` of the binary heap."""
    frontier[k].distance = distance
    frontier[k].vertex = vertex
    vertices[vertex].place = k


@njit(**_LEAF)
def _lift(vertices: Records, frontier: Records, vertex: int, k: int) -> None:
    """Put a vertex at place ``k`` of the binary heap, or higher if it is nearer than those."""
    distance = vertices[vertex].distance
    while k > 0 and frontier[(k - 1) >> 1].distance > distance:
        above = (k - 1) >> 1
        _place(vertices, frontier, k, frontier[above].vertex, frontier[above].distance)
        k = above
    _place(vertices, frontier, k, vertex, distance)


@njit(**_LEAF)
def _pop_nearest(vertices: Records, frontier: Records, size: int) -> int:
    """Take the nearest vertex out of the frontier, which has then ``size`` vertices left."""
    k = 0
    nearest = frontier[0].vertex
    last, distance = frontier[size].vertex, frontier[size].distance
    while 2 * k + 1 < size:
        below = 2 * k + 1
        if below + 1 < size:
            below += frontier[below + 1].distance < frontier[below].distance
        if distance <= frontier[below].distance:
            break
        _place(vertices, frontier, k, frontier[below].vertex, frontier[below].distance)
        k = below
    _place(vertices, frontier, k, last, distance)
    return nearest


@njit(**_LEAF)
def _relax(
    vertices: Records,
    frontier: Records,
    size: int,
    limit: float,
    origin: int,
    target: int,
    key: float,
    via: int,
) -> int:
    """Note the way to ``target`` by ``origin`` if it is the shortest; return the frontier's size.

    Rounding may make a reduced cost negative; it counts as zero.
    """
    reduced = key + (vertices[target].price - vertices[origin].price)
    reach = vertices[origin].distance + max(0.0, reduced)
    if not reach < vertices[target].distance or reach > limit:
        return size
    place = vertices[target].place
    if vertices[target].distance == np.inf:
        place = size
        size += 1
    vertices[target].distance = reach
    vertices[target].parent = origin
    vertices[target].key = key
    vertices[target].via = via
    _lift(vertices, frontier, target, place)
    return size


@njit(**_LEAF)
def _scan(graph: Graph, frontier: Records, size: int, limit: float, penalty: float, p: int) -> int:
    """Relax the edges that leave a vertex; return the size of the frontier."""
    vertices, edges, _, nodes, _ = graph
    hub = vertices.size - 1
    if p == hub:
        for r in range(hub):
            key = _from_hub(vertices, r, penalty)
            size = _relax(vertices, frontier, size, limit, hub, r, key, _NONE)
        return size
    size = _relax(vertices, frontier, size, limit, p, hub, _to_hub(vertices, p, penalty), _NONE)
    edge = vertices[p].first
    while edge != _NONE:
        root = edges[edge].root
        if root != _NONE:
            r, key = edges[edge].target, nodes[root].key
            size = _relax(vertices, frontier, size, limit, p, r, key, edge)
        edge = edges[edge].after
    return size


@njit(**_LEAF)
def _search(
    graph: Graph, frontier: Records, settled: Places, goals: Places, penalty: float, reach: float
) -> int:
    """Search the vertices with too few examples that are nearest to those with too many.

    Returns how many `goals` there are. The prices of the vertices on the way rise by what they are
    nearer than the farthest goal. Afterwards the edges of all paths, which the parents hold, have
    reduced cost zero. The search ends with half as many goals as there are vertices to start from,
    or where prices would drift apart by more than ``reach``.
    """
    vertices = graph[0]
    size = n_settled = n_goals = 0
    for p in range(vertices.size):
        vertices[p].distance = np.inf
        if vertices[p].excess > 0:
            vertices[p].distance = 0.0
            vertices[p].parent = _NONE
            vertices[p].place = size
            frontier[size].vertex = p
            frontier[size].distance = 0.0
            size += 1
    wanted = (size + 1) // 2
    limit = reach
    while size > 0 and n_goals < wanted:
        size -= 1
        p = _pop_nearest(vertices, frontier, size)
        distance = vertices[p].distance
        if distance > limit:
            break
        limit = min(limit, reach - (vertices[p].price - vertices[p].base) + distance)
        settled[n_settled] = p
        n_settled += 1
        if vertices[p].excess < 0:
            goals[n_goals] = p
            n_goals += 1
        size = _scan(graph, frontier, size, limit, penalty, p)
    if n_goals > 0:
        farthest = vertices[goals[n_goals - 1]].distance
        for k in range(n_settled):
            p = settled[k]
            vertices[p].price += max(0.0, farthest - vertices[p].distance)
    return n_goals


@njit(**_LEAF)
def _example_of(indptr: Longs, entry: int) -> int:
    """Find the example that an entry belongs to, by bisection."""
    left, right = 0, indptr.size - 1
    while right - left > 1:
        middle = (left + right) // 2
        if indptr[middle] <= entry:
            left = middle
        else:
            right = middle
    return left


@njit(**_LEAF)
def _is_open(graph: Graph, penalty: float, goal: int) -> bool:
    """Whether one more example can take the path to ``goal`` at the cost that was found."""
    vertices, edges, _, nodes, _ = graph
    hub = vertices.size - 1
    r, p = goal, vertices[goal].parent
    while p != _NONE:
        if r == hub:
            length = _to_hub(vertices, p, penalty)
        elif p == hub:
            length = _from_hub(vertices, r, penalty)
        else:
            root = edges[vertices[r].via].root
            length = np.inf if root == _NONE else nodes[root].key
        if length > vertices[r].key:
            return False
        r, p = p, vertices[p].parent
    return vertices[goal].excess < 0 and vertices[r].excess > 0


@njit(**_LEAF)
def _push(graph: Graph, part: Problem, choice: Places, goal: int) -> None:
    """Send one example along the path to ``goal``."""
    vertices, edges = graph[0], graph[1]
    hub = vertices.size - 1
    r, p = goal, vertices[goal].parent
    while p != _NONE:
        if r == hub:
            vertices[p].drain += 1
        elif p == hub:
            vertices[r].drain -= 1
        else:
            entry = edges[vertices[r].via].root
            k = _example_of(part[0], entry)
            _leave(graph, part, k, choice[k])
            choice[k] = entry
            _enter(graph, part, k, entry)
        r, p = p, vertices[p].parent
    vertices[goal].excess += 1
    vertices[r].excess -= 1


@njit(**_INNER)
def _repair_among(
    problem: Problem,
    vertices: Records,
    chosen: Places,
    examples: Places,
    penalty: float,
    reach: float,
) -> int:
    """Move some of the examples along shortest paths until no label has too many or too few.

    Returns how many are still in the wrong place, since prices would have to drift apart by more
    than ``reach``, or no path exists.
    """
    part, choice = _restrict(problem, chosen, examples)
    graph = _build_graph(part, choice, vertices)
    frontier = np.empty(vertices.size, _REACHED)
    settled = np.empty(vertices.size, np.int32)
    goals = np.empty(vertices.size, np.int32)
    misplaced = 0
    for p in range(vertices.size):
        vertices[p].base = vertices[p].price
        misplaced += max(0, vertices[p].excess)
    while misplaced > 0:
        if _is_crowded(graph):
            graph = _build_graph(part, choice, vertices)
        n_goals = _search(graph, frontier, settled, goals, penalty, reach)
        if n_goals == 0:
            break
        for goal in goals[:n_goals]:
            while not _is_crowded(graph) and _is_open(graph, penalty, goal):
                _push(graph, part, choice, goal)
                misplaced -= 1
    for k in range(examples.size):
        chosen[examples[k]] = problem[0][examples[k]] + choice[k] - part[0][k]
    return misplaced


@njit(**_INNER)
def _build_vertices(problem: Problem, prices: Floats, load: Longs, penalty: float) -> Records:
    q = prices.size
    vertices = np.empty(q + 1, _VERTEX)
    vertices[q].price = 0.0
    vertices[q].excess = 0
    for p in range(q):
        vertices[p].price = prices[p]
        vertices[p].lower = problem[3][p]
        vertices[p].upper = problem[4][p]
        vertices[p].drain = _drained(problem, prices, load, penalty, p)
        vertices[p].excess = load[p] - vertices[p].drain
        vertices[q].excess -= vertices[p].excess
    return vertices


@njit(**_INNER)
def _repair(problem: Problem, prices: Floats, chosen: Places, load: Longs, penalty: float) -> bool:
    """Make the choice optimal by moving examples along shortest paths; the prices follow.

    Bounds may be broken at the price of ``penalty`` an example. Returns False if the bounds cannot
    be met, which happens with an infinite penalty only.

    An example whose second choice costs more than its first by ``reach`` takes no part in a
    shortest path before two prices have drifted apart by as much. So it is left out until then.
    """
    misplaced = _misplaced(problem, prices, load, penalty)
    vertices = _build_vertices(problem, prices, load, penalty)
    count = 32 * misplaced + prices.size
    reach = 0.0
    while misplaced > 0 and reach < np.inf:
        reach = _quantile_of_gaps(problem, prices, chosen, count)
        examples = _undecided(problem, prices, chosen, reach)
        misplaced = _repair_among(problem, vertices, chosen, examples, penalty, reach)
        for p in range(prices.size):
            prices[p] = vertices[p].price - vertices[prices.size].price
        count *= 4
    return misplaced == 0


# --------------------------------------------------------------------------------------------------
# The whole
# --------------------------------------------------------------------------------------------------


@njit(**_OUTER)
def solve(
    indptr: Longs,
    indices: Places,
    costs: Floats,
    lower: Longs,
    upper: Longs,
    prices: Floats,
    penalty: float,
    peak: float,
    free_cost: float,
    must: Longs,
    can: Longs,
) -> tuple[bool, Places, Floats]:
    """Solve a problem from given prices; returns whether it is feasible, the choice, the prices.

    Bounds may be broken at the price of ``penalty`` an example. The last four arguments are what
    `survey` found. A class gets no more examples than can have it, and no fewer than must. Bounds
    beyond that are widened. So a positive price makes sense where more than the upper bound could
    take the class, a negative one where fewer than the lower bound have to, and none need be very
    large; others are dropped. Prices with a dual value below that of zero prices, which is
    ``free_cost``, are not used.
    """
    n, q = indptr.size - 1, lower.size
    lower, upper = np.minimum(lower, can), np.maximum(np.minimum(upper, n), must)
    problem = indptr, indices, costs, lower, upper
    start = np.zeros(q, np.float64)
    if np.abs(prices).max() / (4 * q) <= peak:
        for p in range(q):
            if (prices[p] > 0 and upper[p] < can[p]) or (prices[p] < 0 and lower[p] > must[p]):
                start[p] = min(max(prices[p], -penalty), penalty)
    chosen = np.empty(n, np.int32)
    load = np.empty(q, np.int64)
    if not _choose(problem, start, chosen, load) >= free_cost and start.any():
        start[:] = 0.0
        _choose(problem, start, chosen, load)
    _ascend(problem, start, chosen, load, penalty)
    feasible = _repair(problem, start, chosen, load, penalty)
    return feasible, chosen, start


@njit(**_OUTER)
def least_violation(indptr: Longs, indices: Places, lower: Longs, upper: Longs) -> Floats:
    """Prices in {-1, 0, 1} of the problem to break the bounds by as little as possible.

    A class has the price 1 if it is full in every such labeling, -1 if it is never above its lower
    bound, and no example can be better off than with a candidate of the least price.
    """
    problem = indptr, indices, np.zeros(indices.size, np.float64), lower, upper
    chosen = np.empty(indptr.size - 1, np.int32)
    load = np.empty(lower.size, np.int64)
    prices = np.zeros(lower.size, np.float64)
    _choose(problem, prices, chosen, load)
    _repair(problem, prices, chosen, load, 1.0)
    return prices


@njit(**_OUTER)
def settle(
    indices: Places, chosen: Places, prices: Floats, lower: Longs, upper: Longs, penalty: float
) -> tuple[Longs, int]:
    """Return the labels, and by how much the bounds gave; remove prices of mere rounding errors.

    Where all classes are full, and the penalty is infinite, the prices are determined up to a
    constant: the least becomes zero.
    """
    labels = np.empty(chosen.size, np.int64)
    load = np.zeros(prices.size, np.int64)
    for i in range(chosen.size):
        labels[i] = indices[chosen[i]]
        load[labels[i]] += 1
    least = np.inf
    for p in range(prices.size):
        least = min(least, prices[p] if load[p] >= upper[p] else -np.inf)
    if least > -np.inf and penalty == np.inf:
        prices -= least
    relaxed = 0
    for p in range(prices.size):
        if load[p] < upper[p]:
            prices[p] = min(prices[p], 0.0)
        if load[p] > lower[p]:
            prices[p] = max(prices[p], 0.0)
        relaxed += max(lower[p] - load[p], load[p] - upper[p], 0)
    return labels, relaxed
