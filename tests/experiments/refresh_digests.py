"""Digests of the results of all methods on a small problem, as kept in digests.json.

python -m tests.experiments.refresh_digests [--keep-versions]

writes the file anew. A method whose digest has changed must have a higher version than before, see
`skpll.experiments.tasks.RESULT_VERSIONS`, so that older results in stores are recognized;
`--keep-versions` lifts that, for methods that have no stored results yet.

A digest holds scores and confidences, not labels, and is compared within a tolerance: processors
and linear algebra libraries differ in the last bit of a sum. The splits of a tree depend on that
last bit, so no digest is taken of a forest. Where two labelings cost nearly the same, those of
SP-PLL and M3PL depend on it, too: a digest is kept only if much larger disturbances of the features
do not change it.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np

from skpll import as_candidates
from skpll.experiments.tasks import USES_TRUTH, known_methods, make_method, method_version

PLACE = Path(__file__).with_name("digests.json")
COMMAND = "python -m tests.experiments.refresh_digests"
TOLERANCE = 0.003
"""Largest relative difference, in the Frobenius norm, of two results that count as the same."""

DISTURBANCES = (1e-14, 1e-11, 1e-8)
"""Relative changes of the features that must not change a digest."""

_PARAMETERS = {
    "crossfitclassifier": {"estimator": "logistic_regression"},
    "stackedcandidates": {"estimators": ["plknn", "clpl"]},
}
"""Models that take the place of forests, and those of a mixture."""


def reference_data():
    """Make overlapping classes with false candidates, from nothing that may change."""
    random = np.random.RandomState(8)
    y = np.arange(90) % 4
    X = random.normal(size=(90, 5)) + 1.5 * np.eye(4, 5)[y]
    false = random.uniform(size=(60, 4)) < 0.35
    candidates = [
        {int(label), *np.flatnonzero(row)} for label, row in zip(y[:60], false, strict=True)
    ]
    return X[:60], as_candidates(candidates, classes=[0, 1, 2, 3]), X[60:]


def digest(name, *, disturbance=0.0, random_state=0):
    """Fit a method, and return its version, scores and confidences.

    The features are changed by about this share of them first, as rounding elsewhere could.
    """
    model = make_method(name, _PARAMETERS.get(name, {}))
    if model.get_params().get("random_state", 0) is None:
        model.set_params(random_state=0)
    X, S, X_new = reference_data()
    X = X * (1 + disturbance * np.random.RandomState(random_state).normal(size=X.shape))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, np.arange(60) % 4 if name in USES_TRUTH else S)
        score = getattr(model, "decision_function", None) or model.predict_proba
        scores = np.asarray(score(X_new))
    return {
        "version": method_version(name),
        "scores": _rounded(scores),
        "confidences": _rounded(model.label_distributions_.toarray()),
    }


def _rounded(matrix):
    """Round to four digits after the point of the largest entry; -0.0 becomes 0.0."""
    digits = 3 - int(np.floor(np.log10(np.abs(matrix).max())))
    return (np.round(matrix, digits) + 0.0).tolist()


def same(first, second):
    """Return True if two digests have the same scores and confidences within the tolerance."""
    return all(_close(first[key], second[key]) for key in ("scores", "confidences"))


def is_stable(name, kept):
    """Return True if small disturbances of the features do not change a digest."""
    return all(
        same(digest(name, disturbance=size, random_state=seed), kept)
        for seed in range(3)
        for size in DISTURBANCES
    )


def _close(first, second):
    first, second = np.asarray(first), np.asarray(second)
    if first.shape != second.shape:
        return False
    return bool(np.linalg.norm(first - second) <= TOLERANCE * np.linalg.norm(second))


def main(*options):
    """Write the file, unless a method whose results have changed has its version of before."""
    kept = json.loads(PLACE.read_text()) if PLACE.exists() else {}
    found = {name: digest(name) for name in known_methods() if name != "deep"}
    unstable = [name for name in found if not is_stable(name, found[name])]
    if unstable:
        sys.exit(f"a choice at a tie, take other data: {', '.join(unstable)}")
    changed = [name for name in found if name in kept and not same(found[name], kept[name])]
    forgotten = [name for name in changed if found[name]["version"] <= kept[name]["version"]]
    if forgotten and "--keep-versions" not in options:
        sys.exit(f"other results than before: {', '.join(forgotten)}; raise their RESULT_VERSIONS")
    lines = (f'"{name}": {json.dumps(entry)}' for name, entry in found.items())
    PLACE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
