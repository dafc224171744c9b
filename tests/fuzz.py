"""Fit every method to made-up hard problems, and report what is neither a model nor a clear error.

python -m tests.fuzz [--problems 2000] [--seed 0] [--methods plloo em]

A problem is drawn from its number: few or many rows, features far from zero, huge, tiny, constant
or repeated, sparse or of single precision, with missing values or weights of zero; labels of any
type, many classes, singletons or every class for every example. A method may fit it, and then all
it says must be finite and fit the candidates; or refuse it, by a ValueError that skpll or
scikit-learn's validation raised on purpose (a TypeError, where it takes no sparse features). Any
other exception is a defect: the command prints it with the number of the problem, and ends with
status 1.
"""

import argparse
import sys
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier

from skpll import CrossFitClassifier, all_methods, as_candidates
from skpll.base import WeightedPartialLabelClassifier

SMALLER = {CrossFitClassifier: {"estimator": RandomForestClassifier(5, random_state=0), "cv": 3}}
"""Parameters that make a method cheaper without another way through its code."""


@dataclass(frozen=True)
class Problem:
    """Features, candidate sets and weights, and what was done to them."""

    X: object
    sets: object
    weights: np.ndarray | None
    traits: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """What came of a fit: ``"fitted"``, ``"refused"``, or a defect and its traceback."""

    kind: str
    detail: str = ""
    warned: int = 0


# -- problems ------------------------------------------------------------------------------


def _offset(X, rng):
    return X + 10.0 ** rng.integers(2, 9)


def _huge(X, rng):
    return X * 10.0 ** rng.integers(6, 150)


def _tiny(X, rng):
    return X * 10.0 ** -rng.integers(6, 150)


def _uneven(X, rng):
    return X * 10.0 ** rng.integers(-8, 9, X.shape[1])


def _constant_columns(X, rng):
    return np.where(rng.random(X.shape[1]) < 0.6, rng.normal(), X)


def _repeated_rows(X, rng):
    return X[rng.integers(0, max(1, len(X) // 4), len(X))]


def _all_alike(X, rng):
    return np.ones_like(X)


def _whole_numbers(X, rng):
    return np.round(X)


def _missing(X, rng):
    X = X.copy()
    X[rng.integers(len(X)), rng.integers(X.shape[1])] = rng.choice([np.nan, np.inf])
    return X


def _single_precision(X, rng):
    with np.errstate(over="ignore"):
        return X.astype(np.float32)


def _sparse(X, rng):
    kind = [sparse.csr_array, sparse.csc_matrix, sparse.coo_array][rng.integers(3)]
    return kind(np.where(np.abs(X) > 0.5 * np.abs(X).max(), X, 0))


SHAPES = (_offset, _huge, _tiny, _uneven, _constant_columns, _repeated_rows, _all_alike)
SHAPES += (_whole_numbers, _missing)
TYPES = (_single_precision, _sparse)


def _labels(rng, q):
    """Return q labels of some type; only two of them can be truth values."""
    kinds = [np.arange(q), np.arange(q) * 7 - 3, np.array([f"class {k}" for k in range(q)])]
    kinds += [np.arange(q) + 0.0] + [np.array([False, True])] * (q == 2)
    return kinds[rng.integers(len(kinds))]


def _false_candidates(rng, n, q):
    """Return which classes each example has beside the right one, and what that is called."""
    share = rng.choice([0.0, 0.2, 0.5, 0.9, 1.0], p=[0.1, 0.35, 0.3, 0.15, 0.1])
    return rng.random((n, q)) < share, f"share {share}"


def make_problem(number):
    """Draw a problem; the same number gives the same problem."""
    rng = np.random.default_rng(number)
    n = int(rng.choice([1, 2, 3, 5, 8, 13, 30, 60]))
    q = int(rng.choice([2, 3, 4, 7, 25]))
    d = int(rng.choice([1, 2, 3, 6, 40]))
    y = rng.integers(q, size=n)
    X = rng.normal(size=(n, d)) + 3 * rng.normal(size=(q, d))[y]
    changes = list(rng.choice(len(SHAPES), size=rng.integers(3), replace=False))
    kept = [SHAPES[k] for k in changes]
    kept += [TYPES[k] for k in range(len(TYPES)) if rng.random() < 0.2]
    for change in kept:
        X = change(X, rng)
    false, share = _false_candidates(rng, n, q)
    false[np.arange(n), y] = True
    labels = _labels(rng, q)
    sets = as_candidates([labels[row].tolist() for row in false], classes=labels)
    weights = None
    if rng.random() < 0.3:
        weights = rng.choice([0.0, 1e-9, 0.5, 1.0, 1e6], size=n)
    names = tuple(change.__name__.strip("_") for change in kept)
    return Problem(X, sets, weights, (f"{n}x{d}, {q} classes", share, str(labels.dtype), *names))


# -- fits ----------------------------------------------------------------------------------


def attempt(method, problem):
    """Fit a method to a problem, and return what came of it."""
    weighted = issubclass(method, WeightedPartialLabelClassifier) and problem.weights is not None
    words = {"sample_weight": problem.weights} if weighted else {}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            model = method(**SMALLER.get(method, {}))
            model.fit(problem.X, problem.sets, **words)
            _check(model, problem)
        except Exception as error:
            warned = sum(issubclass(entry.category, RuntimeWarning) for entry in told)
            if is_clear(error):
                return Outcome("refused", str(error), warned)
            return Outcome(type(error).__name__, traceback.format_exc(), warned)
    return Outcome("fitted", "", sum(issubclass(w.category, RuntimeWarning) for w in told))


def _check(model, problem):
    """Raise an AssertionError if the model says anything that cannot be."""
    S = problem.sets
    assert S.contains(model.transduction_).all(), "a label outside of the candidates"
    confidences = model.label_distributions_
    assert np.isfinite(confidences.data).all(), "a confidence that is not finite"
    np.testing.assert_allclose(confidences.sum(axis=1), 1)
    assert set(model.predict(problem.X).tolist()) <= set(S.classes.tolist())
    probabilities = model.predict_proba(problem.X)
    assert np.isfinite(probabilities).all(), "a probability that is not finite"
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)


def is_clear(error):
    """Return True if skpll or scikit-learn's validation raised the error on purpose."""
    if isinstance(error, TypeError):
        return "parse" in str(error)
    if not isinstance(error, ValueError) or isinstance(error, np.linalg.LinAlgError):
        return False
    place = Path(traceback.extract_tb(error.__traceback__)[-1].filename).as_posix()
    return "/skpll/" in place or "/sklearn/utils/" in place


def run(numbers, methods):
    """Yield the number, the method's name and the outcome of each fit, one method a problem."""
    names = list(methods)
    for number in numbers:
        name = names[number % len(names)]
        yield number, name, attempt(methods[name], make_problem(number))


def main():
    """Run the problems, and report."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--problems", type=int, default=2000, help="number of problems")
    parser.add_argument("--seed", type=int, default=0, help="number of the first problem")
    parser.add_argument("--methods", nargs="*", choices=all_methods(), help="default: all")
    options = parser.parse_args()
    methods = all_methods()
    chosen = {name: methods[name] for name in options.methods or methods}
    counts, defects, warned = Counter(), Counter(), Counter()
    for number, name, outcome in run(range(options.seed, options.seed + options.problems), chosen):
        counts["defect" if outcome.kind not in ("fitted", "refused") else outcome.kind] += 1
        warned[name] += outcome.warned
        if outcome.kind in ("fitted", "refused"):
            continue
        defects[name, outcome.kind] += 1
        print(f"-- problem {number}, {name}: {', '.join(make_problem(number).traits)}")
        print(outcome.detail, flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    print("RuntimeWarnings:", {name: count for name, count in warned.items() if count} or "none")
    for (name, kind), count in sorted(defects.items()):
        print(f"{name}: {count} × {kind}")
    return int(bool(defects))


if __name__ == "__main__":
    sys.exit(main())
