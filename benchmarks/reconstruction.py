"""Reconstruction weights for all examples at once, against one solver call for each example.

IPAL is fitted with the batched kernel and with solvers that are called row by row: a general
method for constrained problems (SLSQP), a dense quadratic-programming solver (quadprog, where it is
installed) and non-negative least squares (scipy). All but the weights is the same code, most of all
the search for neighbours; the time of the weights alone is given as well. BirdSong is used where
its file is at hand (set SKPLL_DATA), otherwise made-up data of the same shape. A last record is a
fit of 100 000 examples.

    python -m benchmarks.reconstruction [--quick]
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, nnls
from sklearn.preprocessing import StandardScaler

from skpll import CandidateSets
from skpll.datasets import load_dataset, make_partial_classification
from skpll.neighbors import ipal
from skpll.neighbors.ipal import IPAL
from skpll.solvers.reconstruction import reconstruction_weights

Floats = NDArray[np.float64]


def by_slsqp(A: Floats, x: Floats) -> Floats:
    """Solve one problem by sequential quadratic programming, with its gradient."""
    G, b = A @ A.T, A @ x
    k = len(b)
    return minimize(
        lambda w: w @ G @ w / 2 - b @ w,
        np.full(k, 1 / k),
        jac=lambda w: G @ w - b,
        bounds=[(0, None)] * k,
        method="SLSQP",
        options={"ftol": 1e-12},
    ).x


def by_nnls(A: Floats, x: Floats) -> Floats:
    """Solve one problem by scipy's active-set method."""
    return nnls(A.T, x)[0]


def quadprog_solver() -> Callable[[Floats, Floats], Floats] | None:
    """Return a solver by quadprog for positive definite matrices; None if it is missing."""
    try:
        from quadprog import solve_qp
    except ImportError:
        return None

    def by_quadprog(A: Floats, x: Floats) -> Floats:
        one = np.eye(len(A))
        return np.maximum(solve_qp(A @ A.T + 1e-10 * one, A @ x, one, np.zeros(len(A)))[0], 0)

    return by_quadprog


def row_by_row(solve: Callable[[Floats, Floats], Floats]) -> Callable[..., Floats]:
    """Make a stand-in for the batched kernel that calls a solver for each example."""

    def weights(queries: Floats, X: Floats, neighbors: NDArray[np.int64]) -> Floats:
        return np.array([solve(X[row], x) for x, row in zip(queries, neighbors, strict=True)])

    return weights


def timed_fit(
    X: Floats,
    S: CandidateSets,
    weights: Callable[..., Floats] = reconstruction_weights,
    repeats: int = 1,
) -> tuple[dict[str, float], IPAL]:
    """Fit; give the times of the fastest of some repeats."""
    inside = 0.0

    def timed(*arguments: Any) -> Floats:
        nonlocal inside
        start = time.perf_counter()
        result = weights(*arguments)
        inside = time.perf_counter() - start
        return result

    times = []
    with patch.object(ipal, "reconstruction_weights", timed):
        for _ in range(repeats):
            start, cpu = time.perf_counter(), time.process_time()
            model = IPAL().fit(X, S)
            seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
            times.append({"seconds": seconds, "cpu_seconds": cpu, "weights_seconds": inside})
    return min(times, key=lambda time: time["seconds"]), model


def birdsong(quick: bool) -> tuple[str, Floats, CandidateSets]:
    """Load BirdSong, or make data of its shape."""
    try:
        X, S, _ = load_dataset("birdsong", return_X_S_y=True)
        name = "birdsong"
    except (OSError, ImportError, ValueError):
        X, S, _ = make_partial_classification(4998, 38, 13, p=1.0, r=1, random_state=0)
        name = "made like birdsong"
    rows = slice(0, 500 if quick else None)
    return name, StandardScaler().fit_transform(X)[rows], S[rows]


def compare(quick: bool) -> list[dict[str, Any]]:
    """Fit with the batched kernel and with every row-by-row solver."""
    name, X, S = birdsong(quick)
    IPAL().fit(X[:50], S[:50])  # compiles the kernels
    repeats = 1 if quick else 3
    ours, model = timed_fit(X, S, repeats=repeats)
    solvers = {"SLSQP": by_slsqp, "quadprog": quadprog_solver(), "scipy nnls": by_nnls}
    records = [_record(name, X, S, "batched", ours)]
    for solver, solve in solvers.items():
        if solve is None:
            continue
        times, other = timed_fit(X, S, row_by_row(solve), repeats)
        records.append(
            _record(name, X, S, f"{solver} per row", times)
            | {
                "speedup": times["seconds"] / ours["seconds"],
                "cpu_speedup": times["cpu_seconds"] / ours["cpu_seconds"],
                "weights_speedup": times["weights_seconds"] / ours["weights_seconds"],
                "same_labels": float(np.mean(other.transduction_ == model.transduction_)),
            }
        )
    return records


def large(quick: bool) -> dict[str, Any]:
    """Fit many examples."""
    n = 5_000 if quick else 100_000
    X, S, y = make_partial_classification(n, 50, 100, p=1.0, r=2, random_state=0)
    times, model = timed_fit(X, S)
    unit = 1 if sys.platform == "darwin" else 1024
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30
    return _record("made up", X, S, "batched", times) | {
        "peak_memory_gib": memory,
        "transductive_accuracy": float(np.mean(model.transduction_ == y)),
    }


def _record(
    name: str, X: Floats, S: CandidateSets, solver: str, times: dict[str, float]
) -> dict[str, Any]:
    return {
        "data": name,
        "examples": len(X),
        "features": X.shape[1],
        "classes": S.shape[1],
        "solver": solver,
        **times,
    }


def run(quick: bool) -> list[dict[str, Any]]:
    """Measure, print a table, and give the records."""
    records = [*compare(quick), large(quick)]
    columns = ("seconds", "cpu_seconds", "weights_seconds")
    gains = ("speedup", "cpu_speedup", "weights_speedup")
    print(f"{'IPAL fit':18} {'n × d × q':>17} {'weights by':18}", end="")
    print(*(f"{title:>10}" for title in ("fit s", "CPU s", "weights s", "×", "× CPU", "× weights")))
    for record in records:
        shape = f"{record['examples']} × {record['features']} × {record['classes']}"
        print(f"{record['data']:18} {shape:>17} {record['solver']:18}", end="")
        print(*(f"{record[column]:10.3f}" for column in columns), end=" ")
        print(*(f"{record[gain]:10.1f}" for gain in gains if gain in record))
    return records


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    run(parser.parse_args().quick)
