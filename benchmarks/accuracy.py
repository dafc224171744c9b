"""Accuracy on the real data sets, under a protocol that never looks at the true training labels.

The outer protocol is ten shuffled folds, or ten random halves; the features are scaled inside each
training part; the parameter of the method is chosen from its grid by inner folds on candidate sets
alone (the covering rate). Needs the data files: set SKPLL_DATA or run ``skpll data fetch``.

    python -m benchmarks.accuracy plknn lost msrcv2 --protocol half --jobs 2
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from skpll import all_methods
from skpll.datasets import load_dataset

REAL = ("lost", "msrcv2", "birdsong", "fgnet")

# The grids that the papers give; a method without one has no parameter to choose.
GRIDS: dict[str, dict[str, list[Any]]] = {
    "sppll": {"C": [0.01, 0.1, 1, 10, 100]},
    "m3pl": {"C": [0.01, 0.1, 1, 10, 100]},
    "plsvm": {"lam": [0.001, 0.01, 0.1, 1, 10, 100, 1000]},
    "clpl": {"C": [0.001, 0.01, 0.1, 1, 10]},
    "lsbcmm": {"n_components": [1.0, 2.0, 5.0]},
}

# Table 3 of the SP-PLL paper, in the order of REAL.
PAPER = {
    "sppll": (0.749, 0.581, 0.710, 0.078),
    "m3pl": (0.732, 0.546, 0.709, 0.037),
    "plsvm": (0.639, 0.417, 0.671, 0.058),
    "clpl": (0.670, 0.375, 0.624, 0.047),
    "plknn": (0.332, 0.417, 0.637, 0.037),
    "lsbcmm": (0.591, 0.431, 0.692, 0.056),
    "plleaf": (0.664, 0.459, 0.706, 0.072),
    "ipal": (0.726, 0.523, 0.708, 0.057),
    "plecoc": (0.703, 0.505, 0.740, 0.040),
}


def splits(protocol: str, n: int, seed: int) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Give the training and test rows of the outer protocol."""
    if protocol == "tenfold":
        return KFold(10, shuffle=True, random_state=seed).split(np.zeros(n))
    return ShuffleSplit(10, test_size=0.5, random_state=seed).split(np.zeros(n))


def run_fold(
    method: str,
    parameters: dict[str, Any],
    grid: dict[str, list[Any]],
    scaling: str,
    data: tuple[Any, Any, Any],
    rows: tuple[NDArray[Any], NDArray[Any]],
    inner_folds: int = 5,
) -> dict[str, Any]:
    """Choose the parameter on the training part, fit, and measure on the test part."""
    X, S, y = data
    train, test = rows
    scaler = {"zscore": StandardScaler, "minmax": MinMaxScaler}[scaling]()
    model = make_pipeline(scaler, all_methods()[method](**parameters))
    prefixed = {f"{method}__{name}": values for name, values in grid.items()}
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if prefixed:
            inner = KFold(inner_folds, shuffle=True, random_state=0)
            model = GridSearchCV(model, prefixed, cv=inner, error_score="raise")
        model.fit(X[train], S[train])
        chosen = getattr(model, "best_params_", {})
        final = model.best_estimator_ if prefixed else model
        return {
            "accuracy": float(np.mean(final.predict(X[test]) == y[test])),
            "transductive": float(np.mean(final[-1].transduction_ == y[train])),
            "chosen": {name.split("__")[1]: value for name, value in chosen.items()},
            "seconds": time.perf_counter() - start,
        }


def summary(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Put the folds together."""
    accuracies = [result["accuracy"] for result in results]
    return {
        "accuracy": float(np.mean(accuracies)),
        "std": float(np.std(accuracies, ddof=1)) if len(accuracies) > 1 else 0.0,
        "transductive": float(np.mean([result["transductive"] for result in results])),
        "chosen": [result["chosen"] for result in results],
        "seconds": float(np.sum([result["seconds"] for result in results])),
        "folds": len(results),
    }


def measure(
    method: str,
    dataset: str,
    *,
    protocol: str = "tenfold",
    scaling: str = "zscore",
    parameters: dict[str, Any] | None = None,
    grid: dict[str, list[Any]] | None = None,
    seed: int = 0,
    folds: int = 10,
    jobs: int = 1,
) -> dict[str, Any]:
    """Measure one method on one data set; returns a record with mean and standard deviation."""
    data = load_dataset(dataset, return_X_S_y=True)
    grid = GRIDS.get(method, {}) if grid is None else grid
    rows = list(splits(protocol, len(data[2]), seed))[:folds]
    results = Parallel(n_jobs=jobs)(
        delayed(run_fold)(method, parameters or {}, grid, scaling, data, pair) for pair in rows
    )
    printed = PAPER.get(method)
    return {
        "method": method,
        "dataset": dataset,
        "protocol": protocol,
        "scaling": scaling,
        "parameters": parameters or {},
        **summary(results),
        "paper": printed[REAL.index(dataset)] if printed and dataset in REAL else None,
        "seed": seed,
    }


def main() -> None:
    """Measure what the command line asks for, and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("method", choices=sorted(all_methods()))
    parser.add_argument("datasets", nargs="*", default=list(REAL))
    parser.add_argument("--protocol", choices=["tenfold", "half"], default="tenfold")
    parser.add_argument("--scaling", choices=["zscore", "minmax"], default="zscore")
    parser.add_argument("--set", type=json.loads, default={}, help="parameters, as JSON")
    parser.add_argument("--grid", type=json.loads, help="grid to choose from, as JSON")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", type=Path, help="append the records to this file")
    options = parser.parse_args()
    for dataset in options.datasets:
        record = measure(
            options.method,
            dataset,
            protocol=options.protocol,
            scaling=options.scaling,
            parameters=options.set,
            grid=options.grid,
            seed=options.seed,
            folds=options.folds,
            jobs=options.jobs,
        )
        printed = "" if record["paper"] is None else f"  paper {record['paper']:.3f}"
        print(
            f"{record['method']:8} {dataset:9} {options.protocol:8} {options.scaling:7} "
            f"{record['accuracy']:.3f} ± {record['std']:.3f}{printed}  "
            f"transductive {record['transductive']:.3f}  {record['seconds']:.0f} s",
            flush=True,
        )
        if options.json:
            with options.json.open("a") as file:
                file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
