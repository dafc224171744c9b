"""Label assignment against OR-Tools (min-cost flow), HiGHS and POT (exact transport).

Every solver gets the same problems; times are processor seconds, the best of a few runs. What is
timed: for skpll the whole call; for OR-Tools ``solve()`` alone, with costs rounded to integers and
the network built before; for HiGHS the call of ``scipy.optimize.linprog``; for POT ``ot.emd2`` on
the dense cost matrix, built before. A solver is left out where a run is expected to take over a
minute, HiGHS beyond n = 10⁴, and POT, which is dense and knows no bounds, but for exact counts and
n <= 10⁴, n q <= 10⁶.

"Warm" solves follow a first one: all costs change by about one percent, and skpll carries its
prices over. The others start anew, as they have no means to do otherwise.

Run ``python -m benchmarks.assignment [--quick] [--json PATH]``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from skpll.solvers.assignment import assign_labels

SCALE = 10**6  # of the costs in integers; the optimum is off by at most n / SCALE
LIMIT = 60.0  # seconds; no run that is expected to take longer is started
MEAN_CANDIDATES = 3
N_WARM = 3


class Problem(NamedTuple):
    indptr: np.ndarray
    indices: np.ndarray
    costs: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


# --- problems ------------------------------------------------------------------------------------


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


# --- solvers: each prepares a problem and returns what is to be timed -----------------------------


def with_ortools(problem: Problem) -> Callable[[], float]:
    from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

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


def with_highs(problem: Problem) -> Callable[[], float]:
    n, q, m = problem.indptr.size - 1, problem.lower.size, problem.indices.size
    one = sparse.csr_array((np.ones(m), np.arange(m), problem.indptr), shape=(n, m))
    load = sparse.csr_array((np.ones(m), (problem.indices, np.arange(m))), shape=(q, m))
    rows = sparse.vstack([load, -load]).tocsr()
    limits = np.concatenate([problem.upper, -problem.lower])

    def solve() -> float:
        result = linprog(
            problem.costs, A_ub=rows, b_ub=limits, A_eq=one, b_eq=np.ones(n), method="highs"
        )
        if result.status != 0:
            raise RuntimeError(f"HiGHS: {result.message}")
        return float(result.fun)

    return solve


def with_pot(problem: Problem) -> Callable[[], float]:
    import ot

    n, q = problem.indptr.size - 1, problem.lower.size
    rows = np.repeat(np.arange(n), np.diff(problem.indptr))
    matrix = np.full((n, q), 1e4)
    matrix[rows, problem.indices] = problem.costs
    size = problem.lower.astype(float)
    return lambda: float(ot.emd2(np.ones(n), size, matrix, numItermax=10**8))


def rivals_for(n: int, q: int, bounds: str) -> dict[str, Callable[[Problem], Callable[[], float]]]:
    rivals = {"ortools": with_ortools}
    if n <= 10**4:
        rivals["highs"] = with_highs
    if bounds == "exact" and n <= 10**4 and n * q <= 10**6:
        rivals["pot"] = with_pot
    return rivals


# --- measurement ---------------------------------------------------------------------------------


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


class Bench:
    """Collects records; leaves a solver out once its expected time is over the limit."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.last: dict[tuple[str, ...], tuple[int, float]] = {}

    def measure(self, problem: Problem, n: int, q: int, costs: str, bounds: str) -> None:
        case = {"n": n, "q": q, "costs": costs, "bounds": bounds}
        seconds, cold = best_time(lambda: assign_labels(*problem))
        self.add(case, "cold", problem, seconds, cold.cost)
        if costs == "equal":
            return
        prices = cold.prices
        for k in range(N_WARM):
            changed, start = perturbed(problem, k), prices
            seconds, warm = best_time(lambda c=changed, p=start: assign_labels(*c, prices=p))
            if k == N_WARM - 1:
                self.add(case, "warm", changed, seconds, warm.cost)
            prices = warm.prices

    def expected(self, key: tuple[str, ...], n: int) -> float:
        """Guess from the last run of the kind, times growing somewhat faster than n."""
        n_last, seconds = self.last.get(key, (n, 0.0))
        return seconds * (n / n_last) ** 1.3

    def add(
        self, case: dict[str, Any], start: str, problem: Problem, seconds: float, cost: float
    ) -> None:
        record = {"benchmark": "assignment", **case, "start": start, "skpll": seconds}
        n = case["n"]
        for name, prepare in rivals_for(n, case["q"], case["bounds"]).items():
            key = (name, case["costs"], case["bounds"])
            if self.expected(key, n) > LIMIT:
                record[name] = None
                continue
            other, value = best_time(prepare(problem))
            self.last[key] = (n, other)
            if abs(value - cost) > n / SCALE + 1e-6 * abs(cost):
                raise RuntimeError(f"{name} found {value}, skpll {cost} ({case})")
            record[name] = other
        self.records.append(record)
        print(row(record), flush=True)


def row(record: dict[str, Any]) -> str:
    def show(name: str) -> str:
        if name not in record:
            return f"{'':>18}"
        seconds = record[name]
        if seconds is None:
            return f"{'left out':>18}"
        return f"{1e3 * seconds:10.2f} {seconds / record['skpll']:6.1f}×"

    return (
        f"{record['n']:>8} {record['q']:>4} {record['costs']:>6} {record['bounds']:>6} "
        f"{record['start']:>5} {1e3 * record['skpll']:10.2f}"
        f"{show('ortools')}{show('highs')}{show('pot')}"
    )


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Measure all cases, print a table (milliseconds, times that of skpll), return the records."""
    assign_labels([0, 2, 3], [0, 1, 1], [1.0, 0.0, 0.0], 0, 1)  # compile
    assign_labels([0, 2, 3], [0, 1, 1], [1.0, 0.0, 0.0], 0, [0, 1])
    print(
        f"{'n':>8} {'q':>4} {'costs':>6} {'bounds':>6} {'start':>5} {'skpll/ms':>10}"
        f"{'OR-Tools/ms':>18}{'HiGHS/ms':>18}{'POT/ms':>18}"
    )
    bench = Bench()
    for n in (10**3, 10**4) if quick else (10**3, 10**4, 10**5, 10**6):
        for q in (10, 100) if quick else (10, 100, 500):
            for costs in ("hinge", "equal"):
                for bounds in ("exact", "ceil", "slack"):
                    problem = make_problem(n, q, costs, bounds)
                    bench.measure(problem, n, q, costs, bounds)
    summarize(bench.records)
    return bench.records


def summarize(records: list[dict[str, Any]]) -> None:
    for start in ("cold", "warm"):
        ratios = [
            record["ortools"] / record["skpll"]
            for record in records
            if record["start"] == start and record["ortools"] is not None
        ]
        print(
            f"{start}: {min(ratios):.1f} to {max(ratios):.0f} times faster than OR-Tools, "
            f"median {np.median(ratios):.0f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="only the small problems")
    parser.add_argument("--json", type=Path, help="write the records to this file")
    arguments = parser.parse_args()
    records = run(arguments.quick)
    if arguments.json:
        arguments.json.write_text(json.dumps(records, indent=2))


if __name__ == "__main__":
    main()
