"""Other libraries on the same divisions: accuracy and processor seconds.

python -m benchmarks.peers [--quick]

The environment variable PEERS names a folder with clones of public repositories:

- ``scikit-weak`` (AndreaCampagner/scikit-weak): neighbors and randomized trees. Its package needs
  an old Keras, so the modules that do not are loaded on their own.
- ``robust-pll`` (mathefuchs/robust-pll): classic methods and deep ones. Its IPAL needs a license
  for a solver.
- ``PLENCH`` (wwangwitsel/PLENCH): deep methods, here with their default parameters for tables and
  `STEPS` updates.

The last two need torch and tqdm. What is not there is left out. For votes, crowd-kit and the
majority stand beside `skpll.crowd` on the real tables in ``$SKPLL_DATA/crowd``.

Each library gets features in the scale of its own scripts: from 0 to 1 for robust-pll, standard
scores for all others. Every method has the default parameters of its library, but ten neighbors for
those of scikit-weak, as the others have. All of them run on one processor core.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
import time
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import ShuffleSplit
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from threadpoolctl import threadpool_limits

import skpll
from benchmarks.crowd import REAL, real_table
from benchmarks.report import Record, main, show
from skpll.baselines import RandomCandidate, WeightedCopies
from skpll.candidates import CandidateSets
from skpll.crowd import VoteTable, aggregate_votes
from skpll.datasets import load_dataset
from skpll.registry import make_method

TITLE = "Other libraries on the same divisions: accuracy on new rows, processor seconds"
DATA = ("lost", "msrcv2", "birdsong")
DIVISIONS = 3
TRAIN_SHARE = 0.8
STEPS = 20_000
"""Updates of a network by PLENCH."""

OUR_NAME = f"skpll {skpll.__version__}"
OURS = ("plloo", "sppll", "plknn", "plecoc", "plsvm", "ipal", "em")
ROBUST_PLL = {
    "PL-KNN": "pl_knn_2005.PlKnn",
    "PL-SVM": "pl_svm_2008.PlSvm",
    "PL-ECOC": "pl_ecoc_2017.PlEcoc",
    "PRODEN": "proden_2020.Proden",
    "RC": "rc_2020.RC",
    "CC": "cc_2020.CC",
    "CAVL": "cavl_2021.Cavl",
    "POP": "pop_2023.Pop",
    "Robust PLL": "robust_pll.RobustPll",
}
PLENCH = ("PRODEN", "CC", "CAVL", "POP")


@dataclass(frozen=True)
class Division:
    """One division of a data set; classes are numbers."""

    name: str
    X: np.ndarray
    sets: CandidateSets
    new: np.ndarray
    truth: np.ndarray
    seed: int

    def scaled(self, scaler: MinMaxScaler | StandardScaler) -> tuple[np.ndarray, np.ndarray]:
        """Return both parts in the scale of the training rows."""
        return scaler.fit_transform(self.X), scaler.transform(self.new)

    def first(self, n: int) -> Division:
        """Return the division with the first training rows only."""
        return replace(self, X=self.X[:n], sets=self.sets[:n])

    @property
    def indicators(self) -> np.ndarray:
        """Return the candidate sets as a matrix of zeros and ones."""
        return np.asarray(self.sets, dtype=float)


Method = Callable[[Division], np.ndarray]
"""Train on a division and return the classes of its new rows, as places in `sets.classes`."""


def our_methods() -> dict[str, Method]:
    """Return our methods and the baselines."""
    forest = RandomForestClassifier(100, random_state=0)
    models = {name: make_method(name, {}) for name in OURS}
    models |= {
        "random candidate, forest": RandomCandidate(forest, random_state=0),
        "weighted copies, forest": WeightedCopies(forest),
    }

    def with_model(model: Any) -> Method:
        def run(division: Division) -> np.ndarray:
            X, new = division.scaled(StandardScaler())
            predicted = model.fit(X, division.sets).predict(new)
            return np.searchsorted(division.sets.classes, predicted)

        return run

    return {name: with_model(model) for name, model in models.items()}


def scikit_weak_methods(clone: Path) -> dict[str, Method]:
    """Return the neighbors and the trees of scikit-weak."""
    package = clone / "scikit_weak"
    neighbors = _load(package / "classification" / "_neighbors.py")
    ensemble = _load(package / "classification" / "_ensemble.py")
    labels = _load(package / "data_representation" / "_representations.py")
    models = {
        "neighbors": neighbors.WeaklySupervisedKNeighborsClassifier(k=10),
        "randomized trees": ensemble.RRLClassifier(random_state=0),
    }

    def with_model(model: Any) -> Method:
        def run(division: Division) -> np.ndarray:
            X, new = division.scaled(StandardScaler())
            q = division.sets.shape[1]
            weak = [
                labels.DiscreteSetLabel(np.flatnonzero(row).tolist(), q)
                for row in division.indicators
            ]
            return model.fit(X, weak).predict(new).astype(int)

        return run

    return {name: with_model(model) for name, model in models.items()}


def robust_pll_methods(clone: Path) -> dict[str, Method]:
    """Return classic methods and deep ones of robust-pll."""
    sys.path.insert(0, str(clone))
    if importlib.util.find_spec("torchvision") is None:  # only its loaders of pictures use it
        sys.modules["torchvision"] = types.ModuleType("torchvision")

    def with_class(path: str) -> Method:
        module, name = path.split(".")
        kind = getattr(importlib.import_module(f"partial_label_learning.methods.{module}"), name)

        def run(division: Division) -> np.ndarray:
            X, new = division.scaled(MinMaxScaler())
            model = kind(np.random.default_rng(division.seed))
            model.fit(X, division.indicators)
            return model.predict(new).pred

        return run

    return {name: with_class(path) for name, path in ROBUST_PLL.items()}


def plench_methods(clone: Path) -> dict[str, Method]:
    """Return deep methods of PLENCH, each with the last of its networks."""
    sys.path.insert(0, str(clone))
    algorithms = importlib.import_module("plench.core.algorithms")
    registry = importlib.import_module("plench.core.hparams_registry")
    torch = importlib.import_module("torch")

    def with_name(name: str) -> Method:
        def run(division: Division) -> np.ndarray:
            X, new = division.scaled(StandardScaler())
            torch.manual_seed(division.seed)
            options = {**registry.default_hparams(name, "Lost"), "max_steps": STEPS}
            sets = division.indicators
            model = algorithms.get_algorithm_class(name)(X.shape, sets, options)
            rows, labels = torch.from_numpy(X).float(), torch.from_numpy(sets)
            size, left = options["batch_size"], np.empty(0, dtype=int)
            rng = np.random.default_rng(division.seed)
            for _ in range(STEPS):
                if len(left) < size:
                    left = rng.permutation(len(X))
                batch, left = torch.from_numpy(left[:size]), left[size:]
                x = rows[batch]
                model.train()
                model.update([batch, x, x, x, labels[batch], batch, batch])
            model.eval()
            with torch.no_grad():
                return model.predict(torch.from_numpy(new).float()).argmax(dim=1).numpy()

        return run

    return {name: with_name(name) for name in PLENCH}


def _load(path: Path) -> Any:
    """Import one file without its package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LIBRARIES: dict[str, Callable[[Path], dict[str, Method]]] = {
    "scikit-weak": scikit_weak_methods,
    "robust-pll": robust_pll_methods,
    "PLENCH": plench_methods,
}


def all_methods() -> dict[tuple[str, str], Method]:
    """Return the methods of all libraries that are there, by library with version and by name."""
    found = {(OUR_NAME, name): run for name, run in our_methods().items()}
    folder = Path(os.environ.get("PEERS", "."))
    for library, methods in LIBRARIES.items():
        clone = folder / library
        if not clone.is_dir():
            print(f"{library}: no folder {clone}, left out")
            continue
        commit = subprocess.run(
            ["git", "-C", str(clone), "rev-parse", "--short", "HEAD"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        found |= {(f"{library} {commit}", name): run for name, run in methods(clone).items()}
    return found


def divisions(name: str, n: int) -> list[Division]:
    """Return random divisions of a data set."""
    X, sets, truth = load_dataset(name, return_X_S_y=True)
    codes = np.searchsorted(sets.classes, truth)
    splitter = ShuffleSplit(n, train_size=TRAIN_SHARE, random_state=0)
    return [
        Division(name, X[train], sets[train], X[test], codes[test], seed)
        for seed, (train, test) in enumerate(splitter.split(X))
    ]


def measure(division: Division, method: Method) -> tuple[float, float]:
    """Return the accuracy on new rows and the processor seconds of training and prediction."""
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = method(division)
    used = time.process_time() - started
    return float(np.mean(predicted == division.truth)), used


def _our_rule(cast: VoteTable, method: str) -> np.ndarray:
    return aggregate_votes(cast, method).codes


def _crowd_kit_rule(cast: VoteTable, method: str) -> np.ndarray:
    import pandas as pd

    aggregation = importlib.import_module("crowdkit.aggregation")
    frame = pd.DataFrame({"task": cast.item, "worker": cast.annotator, "label": cast.label})
    found = getattr(aggregation, method)().fit_predict(frame)
    return found.reindex(range(len(cast.items))).to_numpy()


def votes() -> list[Record]:
    """Return the accuracy and the processor seconds of labels from votes beside crowd-kit."""
    folder = Path(os.environ.get("SKPLL_DATA", ".")) / "crowd"
    if importlib.util.find_spec("crowdkit") is None or not folder.is_dir():
        return []
    theirs = ("MajorityVote", "DawidSkene", "OneCoinDawidSkene", "GLAD")
    records: list[Record] = []
    for name in REAL:
        cast, truth = real_table(folder, name)
        known = truth != -1
        aggregate_votes(cast)  # compile first
        rules = {
            (OUR_NAME, method): partial(_our_rule, cast, method) for method in ("majority", "auto")
        }
        rules |= {
            (f"crowd-kit {version('crowd-kit')}", method): partial(_crowd_kit_rule, cast, method)
            for method in theirs
        }
        for (library, method), rule in rules.items():
            started = time.process_time()
            codes = rule()
            used = time.process_time() - started
            record = {"data": name, "library": library, "method": method}
            records.append({**record, "accuracy": np.mean((codes == truth)[known]), "s": used})
    return records


def run(quick: bool) -> list[Record]:
    """Run all methods on each division in turn, so that a busy machine slows all of them."""
    by_votes = votes()
    if by_votes:
        show("Votes: accuracy of labels, processor seconds", by_votes)
    methods = all_methods()
    if importlib.util.find_spec("torch") is not None:
        importlib.import_module("torch").set_num_threads(1)
    records = []
    with threadpool_limits(1):
        for name in DATA[:1] if quick else DATA:
            drawn = divisions(name, 1 if quick else DIVISIONS)
            found: dict[tuple[str, str], list[tuple[float, float]]] = {key: [] for key in methods}
            for method in our_methods().values():  # compile first
                measure(drawn[0].first(200), method)
            for division in drawn:
                for key, method in methods.items():
                    found[key].append(measure(division, method))
                    print(name, division.seed, *key, *found[key][-1], flush=True)
            for (library, method), pairs in found.items():
                accuracy, used = np.array(pairs).T
                spread = accuracy.std(ddof=1) if len(accuracy) > 1 else None
                record = {"data": name, "library": library, "method": method}
                record |= {"accuracy": accuracy.mean(), "±": spread, "s": np.median(used)}
                records.append(record)
    return records + by_votes


if __name__ == "__main__":
    main("peers", TITLE, run)
