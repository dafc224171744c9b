"""How much the accuracy of the solver decides: SP-PLL and M3PL on glass at several `solver_tol`.

Ten folds at p = 0.6 and r = 1, 2, 3 false candidates; C is chosen by the covering rate in three
inner folds. Counted is in how many of the 60 cases the accuracy, or the C that is chosen, differs
from what the strictest tolerance gives, and by how much the means differ. Times are processor
seconds of a single thread, as multiples of those of the loosest tolerance.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks.report import Record, main
from skpll import M3PL, SPPLL
from skpll.datasets import load_dataset, make_partial_labels

TITLE = "What solver_tol decides on glass"

TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-6)
PATH = (0.01, 0.1, 1.0, 10.0, 100.0)


def splits(n: int, folds: int, seed: int) -> Any:
    return KFold(folds, shuffle=True, random_state=seed).split(np.zeros(n))


def chosen(model: Any, X: Any, S: Any) -> float:
    """The C with the best covering rate."""
    rates = np.zeros(len(PATH))
    for train, test in splits(len(X), 3, 1):
        for k, C in enumerate(PATH):
            rates[k] += clone(model).set_params(C=C).fit(X[train], S[train]).score(X[test], S[test])
    return PATH[int(np.argmax(rates))]


@threadpool_limits.wrap(1)
def run(quick: bool) -> list[Record]:
    X, _, y = load_dataset("glass", return_X_S_y=True)
    X = StandardScaler().fit_transform(X)
    tolerances = TOLERANCES[::2] if quick else TOLERANCES
    found: dict[float, list[tuple[float, float]]] = {tol: [] for tol in tolerances}
    seconds = dict.fromkeys(tolerances, 0.0)
    for r in (1,) if quick else (1, 2, 3):
        S = make_partial_labels(y, p=0.6, r=r, random_state=r)
        for train, test in splits(len(X), 10, 0):
            for method in (SPPLL, M3PL):
                for tol in tolerances:
                    model, start = method(solver_tol=tol), time.process_time()
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        model.set_params(C=chosen(model, X[train], S[train]))
                        model.fit(X[train], S[train])
                    seconds[tol] += time.process_time() - start
                    found[tol].append((model.score(X[test], y[test]), model.C))
    strict = np.array(found[tolerances[-1]])
    return [
        {
            "solver_tol": tol,
            "accuracy": float(np.mean(cases, axis=0)[0]),
            "other accuracies": int((np.array(cases)[:, 0] != strict[:, 0]).sum()),
            "other C": int((np.array(cases)[:, 1] != strict[:, 1]).sum()),
            "cases": len(cases),
            "time": seconds[tol] / seconds[tolerances[0]],
        }
        for tol, cases in found.items()
    ]


if __name__ == "__main__":
    main("tolerance", TITLE, run)
