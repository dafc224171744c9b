"""Readings of the printed SP-PLL: which of them pace at all, and their accuracy.

python -m benchmarks.pacing [--quick]

Ten shuffled folds of a real data set, z-scored inside the fold, all linear. A stage excludes an
example whose weight is zero in it. "Weight, middle" is the mean weight in the middle stage.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.report import Record, main
from skpll import M3PL, SPPLL
from skpll.datasets import load_dataset

TITLE = "Readings of the printed SP-PLL: examples excluded, weights and accuracy"
AT = {"lost": (0.01,), "msrcv2": (0.1, 1.0)}
"""Values of C: the paper's for Lost, and those that inner folds choose most often for MSRCv2."""

ONE = {"pace__end": 2.0}
READINGS: dict[str, dict[str, Any]] = {
    "as printed: one step of the pace with each C": {},
    "v before the pace grows": {"pace__start": 0.6 / 1.05},
    "first pace 1.05": {"pace__start": 1.05},
    "first C a tenth of the last": {"C_start": 0.1},
    "first C a tenth, first pace 1.05": {"C_start": 0.1, "pace__start": 1.05},
    "line 7: all paces at the first C, to 2": {"pace__schedule": "once", **ONE},
    "line 7: all paces anew for each C, to 2": {"pace__schedule": "restart", **ONE},
    "pace to 1, spread over C": {"pace__schedule": "spread", "pace__end": 1.0},
    "OP(6) with its C": {"pace__scale": "objective"},
    "pace is a share of the examples": {
        "pace__scale": "share",
        "pace__schedule": "spread",
        "pace__end": 1.0,
    },
    "share, all or nothing": {
        "pace__scale": "share",
        "pace__weights": "hard",
        "pace__schedule": "spread",
        "pace__end": 1.0,
    },
}


def run(quick: bool) -> list[Record]:
    """Fit every reading in ten folds (two if `quick`)."""
    records: list[Record] = []
    for name, values in AT.items():
        X, S, y = load_dataset(name, return_X_S_y=True)
        folds = list(KFold(10, shuffle=True, random_state=0).split(X))[: 2 if quick else 10]
        for C in values:
            methods: dict[str, Any] = {"M3PL as published, no pace": M3PL.as_published(C)}
            methods |= {title: SPPLL.as_printed(C, **kw) for title, kw in READINGS.items()}
            for title, method in methods.items():
                started, found = time.process_time(), []
                for train, test in folds:
                    model = make_pipeline(StandardScaler(), method).fit(X[train], S[train])
                    history = model[-1].history_
                    found.append(
                        (
                            np.mean([stage["admitted"] < 1 for stage in history]),
                            1 - min(stage["admitted"] for stage in history),
                            history[len(history) // 2]["mean_weight"],
                            model.score(X[test], y[test]),
                        )
                    )
                stages, excluded, weight, accuracy = np.mean(found, axis=0).tolist()
                records.append(
                    {
                        "data": name,
                        "C": C,
                        "reading": title,
                        "stages that exclude": stages,
                        "most excluded": excluded,
                        "weight, middle": weight,
                        "accuracy": accuracy,
                        "seconds": time.process_time() - started,
                    }
                )
    return records


if __name__ == "__main__":
    main("pacing", TITLE, run)
