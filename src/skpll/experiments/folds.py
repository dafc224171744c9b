"""The data of tasks: prepared once, memory-mapped by everyone who needs them, divided into parts.

Whoever first needs a data set writes it into a folder that all workers share; the others map the
same files into their memory. Where the folder can't be reached, as on another machine, a worker
prepares the data in a folder of its own.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skpll.candidates import CandidateSets

__all__ = ["TaskData", "divide", "prepare_data"]

_SUBSET_SEED = 0
_DEFINING = ("dataset", "rows", "p", "r", "corruption_seed")
_FEATURES = ("dataset", "rows")

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class TaskData:
    """Features, candidate sets and true labels.

    Attributes
    ----------
    X : array or CSR array of shape (n, d)
        The features.
    S : CandidateSets
        What a method may learn from.
    y : array of shape (n,)
        The truth, for measuring only.
    """

    X: Any
    S: CandidateSets
    y: NDArray[Any]


def prepare_data(definition: dict[str, Any], folder: str) -> TaskData:
    """Give the data of a task, as files mapped into memory.

    Parameters
    ----------
    definition : dict
        The definition of a task.
    folder : str
        Where prepared data are shared; if it is not there, a folder of this process is used.

    Returns
    -------
    TaskData
    """
    wanted = json.dumps({key: definition[key] for key in _DEFINING})
    return _prepared(wanted, folder if Path(folder).is_dir() else _own_folder())


@lru_cache(maxsize=8)
def _prepared(wanted: str, folder: str) -> TaskData:
    definition = json.loads(wanted)
    features = _shared(folder, {key: definition[key] for key in _FEATURES}, _load)
    labels = _shared(folder, definition, lambda _: _corrupt(definition, features))
    S = CandidateSets(labels["indptr"], labels["indices"], features["classes"])
    return TaskData(_features(features), S, features["classes"][features["codes"]])


@lru_cache(maxsize=1)
def _own_folder() -> str:
    return tempfile.mkdtemp(prefix="skpll-data-")


def _shared(folder: str, definition: dict[str, Any], make: Any) -> dict[str, NDArray[Any]]:
    """Map arrays into memory; make them and write them first if nobody has yet.

    They appear under their name all at once, so that two workers who do the same do no harm.
    """
    name = hashlib.sha256(json.dumps(definition).encode()).hexdigest()[:16]
    place = Path(folder) / name
    if not place.is_dir():
        scratch = Path(tempfile.mkdtemp(prefix=".", dir=folder))
        for key, array in make(definition).items():
            np.save(scratch / key, array, allow_pickle=False)
        try:
            scratch.rename(place)
        except OSError:  # somebody was faster
            shutil.rmtree(scratch)
    return {path.stem: np.load(path, mmap_mode="r") for path in sorted(place.glob("*.npy"))}


def _load(definition: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """Load a data set, and take the rows that are wanted."""
    from skpll.datasets import load_dataset

    found: Any = load_dataset(definition["dataset"])
    X, S, y, classes = found.X, found.candidates, found.y, np.asarray(found.classes)
    if definition["rows"] is not None:
        drawn = np.random.RandomState(_SUBSET_SEED).permutation(len(y))[: definition["rows"]]
        rows = np.sort(drawn)
        X, y, S = X[rows], y[rows], None if S is None else S[rows]
    arrays = {"classes": classes, "codes": np.searchsorted(classes, y)}
    if S is not None:
        arrays |= {"indptr": S.indptr, "indices": S.indices}
    if not hasattr(X, "tocsr"):
        return arrays | {"X": np.ascontiguousarray(X)}
    X = X.tocsr()
    parts = {"X_data": X.data, "X_indices": X.indices, "X_indptr": X.indptr}
    return arrays | parts | {"X_shape": np.array(X.shape)}


def _features(arrays: dict[str, NDArray[Any]]) -> Any:
    if "X" in arrays:
        return arrays["X"]
    parts = (arrays["X_data"], arrays["X_indices"], arrays["X_indptr"])
    return sparse.csr_array(parts, shape=tuple(arrays["X_shape"]))


def _corrupt(
    definition: dict[str, Any], features: dict[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """Make candidate sets from true labels, unless the data set has its own."""
    from skpll.datasets import make_partial_labels

    if definition["p"] is None:
        return {"indptr": features["indptr"], "indices": features["indices"]}
    classes = np.asarray(features["classes"])
    S = make_partial_labels(
        classes[features["codes"]],
        p=definition["p"],
        r=definition["r"],
        classes=classes.tolist(),
        random_state=definition["corruption_seed"],
    )
    return {"indptr": S.indptr, "indices": S.indices}


def divide(n: int, split: dict[str, Any]) -> tuple[Rows, Rows]:
    """Give the training and the test rows.

    Parameters
    ----------
    n : int
        Number of rows.
    split : dict
        The division, from `Protocol.division`.

    Returns
    -------
    train, test : int arrays
    """
    from sklearn.model_selection import KFold, ShuffleSplit

    if split["kind"] == "kfold":
        folds: Any = KFold(split["folds"], shuffle=True, random_state=split["seed"])
    else:
        folds = ShuffleSplit(1, test_size=split["test_size"], random_state=split["seed"])
    return list(folds.split(np.zeros(n)))[split["split"]]
