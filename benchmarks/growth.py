"""How the time and memory of an SP-PLL fit grow with the number of examples.

Each size runs in a process of its own, whose peak memory is read at its end. The features take
n · d numbers; what the fit needs beyond them is reported as a multiple of that. Times are processor
seconds of a single thread.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from typing import Any

from benchmarks.report import Record, main

TITLE = "Growth of an SP-PLL fit: d = 100, q = 50, three candidates on average"


def measure(n: int, density: float | None) -> dict[str, Any]:
    """Fit once and report seconds and memory; runs in a process of its own."""
    import resource
    import time

    from threadpoolctl import threadpool_limits

    from skpll import SPPLL
    from skpll.datasets import make_partial_classification

    def made(size: int) -> Any:
        return make_partial_classification(
            size, 100, 50, p=1.0, r=2, density=density, class_sep=2.0, random_state=0
        )

    X, S, _ = made(500)
    SPPLL().fit(X, S)  # compile
    X, S, y = made(n)
    features = X.nbytes if density is None else X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    start = time.process_time()
    with threadpool_limits(1):
        model = SPPLL(C=0.01).fit(X, S)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "seconds": seconds,
        "features_MB": features / 2**20,
        "peak_MB": peak / 2**20,
        "before_MB": before / 2**20,
        "accuracy": float((model.predict(X[:10000]) == y[:10000]).mean()),
        "passes": sum(record["passes"] for record in model.history_),
    }


def run(quick: bool) -> list[Record]:
    records: list[Record] = []
    for density in (None, 0.1):
        previous: tuple[int, float] | None = None
        for n in (10_000, 30_000) if quick else (10_000, 100_000, 1_000_000):
            code = (
                "import json; from benchmarks.growth import measure; "
                f"print(json.dumps(measure({n}, {density})))"
            )
            done = subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True
            )
            found = json.loads(done.stdout.splitlines()[-1])
            exponent = None
            if previous is not None:
                work = n * math.log(n) / (previous[0] * math.log(previous[0]))
                exponent = found["seconds"] / previous[1] / work
            previous = (n, found["seconds"])
            records.append(
                {
                    "data": "dense" if density is None else f"sparse, {density:.0%}",
                    "n": n,
                    "fit [s]": found["seconds"],
                    "against n log n": exponent,
                    "features [MB]": found["features_MB"],
                    "peak [MB]": found["peak_MB"],
                    "peak / features": found["peak_MB"] / found["features_MB"],
                    "passes": found["passes"],
                    "accuracy": found["accuracy"],
                }
            )
    return records


if __name__ == "__main__":
    main("growth", TITLE, run)
