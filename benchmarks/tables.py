"""What `skpll disambiguate` takes from a cold start to a written table, in processor seconds.

python -m benchmarks.tables [--quick]

Each case is a process of its own: imports, reading, learning and writing count. Beside it stands
what `skpll inspect` says it will take.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.report import Record, main
from skpll.tables.learning import seconds_needed

TITLE = "skpll disambiguate, from a cold start, in processor seconds"

CASES = ((300, 5, 3), (3_000, 20, 10), (20_000, 20, 10), (200_000, 20, 10))


def write_table(path: Path, n: int, d: int, q: int) -> np.ndarray:
    """Write clouds of points with candidates, four in five of them ambiguous; give the truth."""
    random = np.random.default_rng(0)
    truth = random.integers(q, size=n)
    X = random.normal(scale=0.7, size=(q, d))[truth] + random.normal(size=(n, d))
    false = (truth + random.integers(1, q, size=n)) % q
    frame = pd.DataFrame(X.round(4), columns=[f"x{place}" for place in range(d)])
    single = random.random(n) < 0.2
    frame["names"] = [
        f"class {a}" if alone else f"class {a}|class {b}"
        for a, b, alone in zip(truth, false, single, strict=True)
    ]
    frame.to_csv(path, index=False)
    return truth


def run(quick: bool) -> list[Record]:
    """Time one process for each size."""
    records = []
    for n, d, q in CASES[:2] if quick else CASES:
        with tempfile.TemporaryDirectory() as folder:
            table, out = Path(folder) / "table.csv", Path(folder) / "out.csv"
            truth = write_table(table, n, d, q)
            words = ["disambiguate", table, "--candidates", "names", "--out", out, "--quiet"]
            before = _spent()
            subprocess.run([sys.executable, "-m", "skpll", *map(str, words)], check=True)
            spent = _spent() - before
            labels = pd.read_csv(out)["label"]
            right = (labels == [f"class {code}" for code in truth]).mean()
        records.append(
            {
                "case": f"{n} × {d}, {q} labels",
                "processor seconds": spent,
                "expected": seconds_needed(n, d, q),
                "labels right": float(right),
            }
        )
    return records


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main("tables", TITLE, run)
