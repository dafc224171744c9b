"""Time and memory of every method: fit and predict on the real data sets and on growing data.

Each case runs in a process of its own, with one thread, and is given up after a minute. Times are
processor seconds; memory is what the process needed beyond its state before the fit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np

from benchmarks.report import Record, main

TITLE = "Methods with their defaults: fit and predict"
LIMIT = 60


def case(data: str) -> tuple[Any, Any]:
    """Load a data set, or make one of the given size: 20 features, 10 classes.

    Letter has 4500 of its rows, which is what one of ten folds of 5000 learns from; seven in ten of
    them have two false candidates.
    """
    from sklearn.preprocessing import StandardScaler

    from skpll.datasets import load_dataset, make_partial_classification, make_partial_labels

    if data.isdigit():
        X, S, _ = make_partial_classification(int(data), 20, 10, p=0.8, r=2, random_state=0)
        return X, S
    X, S, y = load_dataset(data, return_X_S_y=True)
    if S is None:
        S = make_partial_labels(y, p=0.7, r=2, random_state=0)
        rows = np.random.RandomState(0).permutation(len(y))[:4500]
        X, S = X[rows], S[rows]
    return StandardScaler().fit_transform(X), S


PENALTIES = "plsvm, seven penalties"
"""The one case that is not a fit with defaults: all penalties that the literature chooses from."""


def measure(name: str, data: str) -> dict[str, float]:
    """Fit and predict, after a small fit that compiles; runs in a process of its own."""
    import resource
    import time
    import warnings

    from skpll import all_methods

    warnings.simplefilter("ignore")
    X, S = case(data)
    settings = [{"alpha": 10.0**k} for k in range(-3, 4)] if name == PENALTIES else [{}]
    model = all_methods()[name.split(",")[0]]()
    small = case("200")
    model.fit(*small).predict(small[0])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    for parameters in settings:
        model.set_params(**parameters).fit(X, S)
    fitted = time.process_time()
    model.predict(X)
    done = time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"fit": fitted - start, "predict": done - fitted, "memory": (peak - before) / 1024}


def run(quick: bool) -> list[Record]:
    from skpll import all_methods
    from skpll.datasets import find_dataset

    real = [
        name for name in ("lost", "msrcv2", "fgnet", "birdsong", "letter") if find_dataset(name)
    ]
    sizes = ["1000"] if quick else ["1000", "10000", "100000"]
    records: list[Record] = []
    for data in [*(real[:1] if quick else real), *sizes]:
        for method in [*all_methods(), PENALTIES]:
            code = (
                "import json; from benchmarks.methods import measure; "
                f"print(json.dumps(measure({method!r}, {data!r})))"
            )
            threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
            record: Record = {"data": data, "case": method}
            try:
                done = subprocess.run(
                    [sys.executable, "-c", code],
                    capture_output=True,
                    text=True,
                    check=True,
                    timeout=LIMIT + 30,
                    env={**os.environ, **threads},
                )
            except subprocess.TimeoutExpired:
                records.append(
                    {**record, "fit [s]": None, "predict [s]": None, "memory [MB]": None}
                )
                continue
            found = json.loads(done.stdout.splitlines()[-1])
            records.append(
                {
                    **record,
                    "fit [s]": found["fit"],
                    "predict [s]": found["predict"],
                    "memory [MB]": found["memory"],
                }
            )
    return records


if __name__ == "__main__":
    main("methods", TITLE, run)
