"""Label assignment against OR-Tools (min-cost flow).

Both get the same problems; times are processor milliseconds, the best of a few runs. What is timed:
for skpll the whole call; for OR-Tools ``solve()`` alone, with costs rounded to integers and the
network built before. It is left out where a run is expected to take over a minute.

"Warm" solves follow a first one: all costs change by about one percent, and skpll carries its
prices over. OR-Tools starts anew, as it has no means to do otherwise.

python -m benchmarks.assignment [--quick]
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

from benchmarks.report import Record, main
from skpll.solvers.assignment import assign_labels

TITLE = "Label assignment: skpll against OR-Tools"

SCALE = 10**6  # of the costs in integers; the optimum is off by at most n / SCALE
LIMIT = 60.0  # seconds; no run that is expected to take longer is started
MEAN_CANDIDATES = 3


class Problem(NamedTuple):
    indptr: np.ndarray
    indices: np.ndarray
    costs: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


def candidate_sets(rng: np.random.Generator, n: int, q: int) -> tuple[np.ndarray, ...]:
    """Draw a true label and a Poisson number of others for each example."""
    truth = rng.integers(q, size=n)
    extra = rng.poisson(MEAN_CANDIDATES - 1, size=n)
    rows = np.concatenate([np.arange(n), np.repeat(np.arange(n), extra)])
    labels = np.concatenate([truth, rng.integers(q, size=extra.sum())])
    rows, labels = np.divmod(np.unique(rows * q + labels), q)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
    return truth, indptr, labels.astype(np.int32)


def hinge_costs(
    rng: np.random.Generator, truth: np.ndarray, indptr: np.ndarray, indices: np.ndarray, q: int
) -> np.ndarray:
    """Hinge losses of all candidates under a linear model that knows something of the truth."""
    dim, chunk = 20, 20_000
    weights = rng.normal(size=(q, dim)) / np.sqrt(dim)
    costs = np.empty(indices.size)
    for a in range(0, truth.size, chunk):
        b = min(a + chunk, truth.size)
        features = rng.normal(size=(b - a, dim)) + 1.5 * weights[truth[a:b]]
        scores = features @ weights.T
        second, best = np.partition(scores, q - 2, axis=1)[:, -2:].T
        rows = np.repeat(np.arange(b - a), np.diff(indptr[a : b + 1]))
        entries = slice(indptr[a], indptr[b])
        own = scores[rows, indices[entries]]
        rival = np.where(own == best[rows], second[rows], best[rows])
        costs[entries] = np.maximum(0.0, 1.0 - (own - rival))
    return costs


def make_problem(n: int, q: int, costs: str, bounds: str) -> Problem:
    rng = np.random.default_rng([n, q])
    truth, indptr, indices = candidate_sets(rng, n, q)
    share = np.repeat(1 / np.diff(indptr), np.diff(indptr))
    values = share if costs == "equal" else hinge_costs(rng, truth, indptr, indices, q)
    expected = np.bincount(indices, weights=share, minlength=q)
    slack = 0.25 if bounds == "slack" else 0.0
    lower = np.floor((1 - slack) * expected + 1e-9).astype(np.int64)
    upper = np.ceil((1 + slack) * expected - 1e-9).astype(np.int64)
    if bounds == "exact":
        labels = assign_labels(indptr, indices, share, lower, upper).labels
        lower = upper = np.bincount(labels, minlength=q)
    return Problem(indptr, indices, values, lower, upper)


def perturbed(problem: Problem, seed: int) -> Problem:
    noise = np.random.default_rng(seed).normal(size=problem.costs.size)
    return problem._replace(costs=problem.costs * (1 + 0.01 * noise))


def flow(problem: Problem) -> Callable[[], float]:
    """Build the network, and return what solves it."""
    n, q = problem.indptr.size - 1, problem.lower.size
    rows = np.repeat(np.arange(n), np.diff(problem.indptr))
    costs = np.rint(problem.costs * SCALE).astype(np.int64)
    network = SimpleMinCostFlow()
    network.add_arcs_with_capacity_and_unit_cost(
        rows, n + problem.indices, np.ones_like(costs), costs
    )
    network.add_arcs_with_capacity_and_unit_cost(
        n + np.arange(q), np.full(q, n + q), problem.upper - problem.lower, np.zeros(q, np.int64)
    )
    supply = np.concatenate([np.ones(n, np.int64), -problem.lower, [problem.lower.sum() - n]])
    network.set_nodes_supplies(np.arange(n + q + 1), supply)

    def solve() -> float:
        if network.solve() != network.OPTIMAL:
            raise RuntimeError("OR-Tools found no optimum")
        return network.optimal_cost() / SCALE

    return solve


def best_time(solve: Callable[[], Any], budget: float = 0.5) -> tuple[float, Any]:
    """Shortest processor time of as many runs as fit the budget, at least one.

    All solvers get the same time, so that a short disturbance does not hit the fastest alone.
    """
    times: list[float] = []
    begin = time.process_time()
    while not times or time.process_time() - begin < budget:
        start = time.process_time()
        result = solve()
        times.append(time.process_time() - start)
    return min(times), result


def compare(problem: Problem, case: Record, last: dict[str, Any], **options: Any) -> Any:
    """Add the times of both to a record, and return our result."""
    ours, found = best_time(lambda: assign_labels(*problem, **options))
    case["skpll [ms]"] = 1e3 * ours
    kind = f"{case['q']} {case['costs']} {case['bounds']}"
    n_last, seconds = last.get(kind, (case["n"], 0.0))
    if seconds * (case["n"] / n_last) ** 1.3 <= LIMIT:  # times grow somewhat faster than n
        theirs, cost = best_time(flow(problem))
        last[kind] = case["n"], theirs
        if abs(cost - found.cost) > case["n"] / SCALE + 1e-6 * abs(found.cost):
            raise RuntimeError(f"OR-Tools found {cost}, skpll {found.cost} ({case})")
        case |= {"OR-Tools [ms]": 1e3 * theirs, "ratio": theirs / ours}
    return found


def run(quick: bool) -> list[Record]:
    """Measure all cases, each cold and, with costs of a model, warm."""
    assign_labels([0, 2, 3], [0, 1, 1], [1.0, 0.0, 0.0], 0, 1)  # compile
    assign_labels([0, 2, 3], [0, 1, 1], [1.0, 0.0, 0.0], 0, [0, 1])
    shapes = [
        (n, q)
        for n in ((10**3, 10**4) if quick else (10**3, 10**4, 10**5, 10**6))
        for q in ((10, 100) if quick else (10, 100, 500))
    ]
    records: list[Record] = []
    last: dict[str, Any] = {}
    for n, q in shapes:
        for costs in ("hinge", "equal"):
            for bounds in ("exact", "ceil", "slack"):
                case = {"n": n, "q": q, "costs": costs, "bounds": bounds}
                problem = make_problem(n, q, costs, bounds)
                records.append({**case, "start": "cold"})
                prices = compare(problem, records[-1], last).prices
                if costs == "hinge":
                    records.append({**case, "start": "warm"})
                    compare(perturbed(problem, 0), records[-1], last, prices=prices)
    return records


if __name__ == "__main__":
    main("assignment", TITLE, run)
