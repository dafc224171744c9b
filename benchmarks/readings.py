"""What each reading of the SP-PLL paper gives on the real data sets.

Every reading differs from the default of `SPPLL` in the parameters named here. Ten shuffled folds,
z-scored inside the fold; C is chosen from 0.01, 0.1, 1 by three inner folds on candidate sets.

    python -m benchmarks.readings lost msrcv2 --jobs 2 --json readings.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from benchmarks.accuracy import REAL, run_fold, splits, summary
from skpll.datasets import load_dataset

GRID = {"C": [0.01, 0.1, 1.0]}
LOSS = {"difficulty": "loss", "weights": "linear"}
PRINTED = {**LOSS, "scale": "absolute", "init": "uniform", "class_prior": "rounded"}

READINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "M3PL": ("m3pl", {}),
    "M3PL, arbitrary first labels": ("m3pl", {"init": "uniform"}),
    "M3PL, first labels from neighbours": ("m3pl", {"init": "neighbors"}),
    "M3PL, rounded counts": ("m3pl", {"class_prior": "rounded"}),
    "M3PL, 25 % slack": ("m3pl", {"prior_slack": 0.25}),
    "M3PL, no prior": ("m3pl", {"class_prior": None}),
    "as printed, pace anew for each C": ("sppll", {**PRINTED, "schedule": "restart"}),
    "as printed, all paces at the first C": ("sppll", {**PRINTED, "schedule": "once"}),
    "as printed, one step a C": ("sppll", {**PRINTED, "schedule": "carry", "pace_end": 3.0}),
    "as printed, OP(6) with its C": ("sppll", {**PRINTED, "scale": "objective"}),
    "loss, linear, min-max": ("sppll", {**LOSS, "scale": "minmax"}),
    "loss, hard, share (default)": ("sppll", {}),
    "loss, linear, share": ("sppll", {"weights": "linear"}),
    "loss, mixture, share": ("sppll", {"weights": "mixture"}),
    "gap, hard, share": ("sppll", {"difficulty": "gap"}),
    "gap, linear, share": ("sppll", {"difficulty": "gap", "weights": "linear"}),
    "gap, logarithmic, share": ("sppll", {"difficulty": "gap", "weights": "logarithmic"}),
    "gap, mixture, share": ("sppll", {"difficulty": "gap", "weights": "mixture"}),
    "default, one step a C": ("sppll", {"schedule": "carry"}),
    "default, pace anew for each C": ("sppll", {"schedule": "restart"}),
    "default, arbitrary first labels": ("sppll", {"init": "uniform"}),
    "default, first labels from neighbours": ("sppll", {"init": "neighbors"}),
    "default, pace ends at 0.9": ("sppll", {"pace_end": 0.9}),
    "default, 25 % slack": ("sppll", {"prior_slack": 0.25}),
    "default, no prior": ("sppll", {"class_prior": None}),
}


def main() -> None:
    """Measure all readings, and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="*", default=list(REAL))
    parser.add_argument("--only", nargs="*", default=list(READINGS), help="names of readings")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", type=Path, help="append the records to this file")
    options = parser.parse_args()
    for dataset in options.datasets:
        data = load_dataset(dataset, return_X_S_y=True)
        rows = list(splits("tenfold", len(data[2]), options.seed))[: options.folds]
        tasks = [(name, pair) for name in options.only for pair in rows]
        results = Parallel(n_jobs=options.jobs, batch_size=1)(
            delayed(run_fold)(*READINGS[name], GRID, "zscore", data, pair, 3)
            for name, pair in tasks
        )
        for place, name in enumerate(options.only):
            part = results[place * len(rows) : (place + 1) * len(rows)]
            record = {"reading": name, "dataset": dataset, **summary(part), "seed": options.seed}
            print(
                f"{dataset:9} {name:38} {record['accuracy']:.3f} ± {record['std']:.3f}  "
                f"transductive {record['transductive']:.3f}  {record['seconds']:.0f} s",
                flush=True,
            )
            if options.json:
                with options.json.open("a") as file:
                    file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
