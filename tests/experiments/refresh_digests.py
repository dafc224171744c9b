"""What a small fit of each method gives, as kept in digests.json.

python -m tests.experiments.refresh_digests [--keep-versions]

writes the file anew. A method whose digest has changed must have a higher `_results_version` than
before, so that results in stores are told from those of today; `--keep-versions` lifts that, for
methods none of whose results anybody has yet.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np

from skpll import as_candidates
from skpll.experiments.tasks import known_methods, make_method, method_version, uses_truth

PLACE = Path(__file__).with_name("digests.json")
COMMAND = "python -m tests.experiments.refresh_digests"


def reference_data():
    """Make overlapping classes with false candidates, from nothing that may change."""
    random = np.random.RandomState(7)
    y = np.arange(90) % 4
    X = random.normal(size=(90, 5)) + 1.5 * np.eye(4, 5)[y]
    false = random.uniform(size=(60, 4)) < 0.35
    candidates = [
        {int(label), *np.flatnonzero(row)} for label, row in zip(y[:60], false, strict=True)
    ]
    return X[:60], as_candidates(candidates, classes=[0, 1, 2, 3]), X[60:]


def digest(name):
    """Fit a method, and say what came of it so that other machines get the same."""
    model = make_method(name, {})
    if model.get_params().get("random_state", 0) is None:
        model.set_params(random_state=0)
    X, S, X_new = reference_data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, np.arange(60) % 4 if uses_truth(name) else S)
        score = getattr(model, "decision_function", None) or model.predict_proba
        scores = np.asarray(score(X_new))
    return {
        "version": method_version(name),
        "transduction": "".join(map(str, model.transduction_)),
        "predictions": "".join(map(str, model.predict(X_new))),
        "scores": [float(f"{value:.3g}") for value in np.abs(scores).mean(axis=0)],
    }


def same(first, second):
    """Whether two digests tell of the same results."""
    labels = all(first[key] == second[key] for key in ("transduction", "predictions"))
    return labels and np.allclose(first["scores"], second["scores"], rtol=0.01, atol=1e-4)


def main(*options):
    """Write the file, unless a method forgot its version."""
    kept = json.loads(PLACE.read_text()) if PLACE.exists() else {}
    found = {name: digest(name) for name in known_methods()}
    changed = [name for name in found if name in kept and not same(found[name], kept[name])]
    forgotten = [name for name in changed if found[name]["version"] <= kept[name]["version"]]
    if forgotten and "--keep-versions" not in options:
        sys.exit(f"other results than before: {', '.join(forgotten)}; raise their _results_version")
    PLACE.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
