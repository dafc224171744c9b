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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skpll.candidates import CandidateSets

from .tasks import Division, Task

__all__ = ["TaskData", "divide", "prepare_data"]

_SUBSET_SEED = 0
_KEPT = 8  # data sets that a process holds ready

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


class _Wanted(NamedTuple):
    """What of a task says which data it needs."""

    table: Any
    dataset: str
    content: str | None
    rows: int | None
    p: float | None
    r: int | None
    corruption_seed: int | None
    kind: str
    noise: float


def prepare_data(task: Task, folder: str) -> TaskData:
    """Give the data of a task, as files mapped into memory.

    Parameters
    ----------
    task : Task
        The task.
    folder : str
        Where prepared data are shared; if it is not there, a folder of this process is used.

    Returns
    -------
    TaskData
    """
    place = folder if Path(folder).is_dir() else _own_folder()
    wanted = _Wanted(*(getattr(task, name) for name in _Wanted._fields))
    return _prepared(wanted, place)


@lru_cache(maxsize=_KEPT)
def _prepared(wanted: _Wanted, folder: str) -> TaskData:
    features = _shared(folder, wanted[1:4], lambda: _load(wanted))
    labels = _shared(folder, wanted[1:], lambda: _corrupt(wanted, features))
    S = CandidateSets(labels["indptr"], labels["indices"], features["classes"])
    return TaskData(_features(features), S, features["classes"][features["codes"]])


@lru_cache(maxsize=1)
def _own_folder() -> str:
    return tempfile.mkdtemp(prefix="skpll-data-")


def _shared(folder: str, wanted: tuple[Any, ...], make: Any) -> dict[str, NDArray[Any]]:
    """Map arrays into memory; make them and write them first if nobody has yet.

    They appear under their name all at once, so that two workers who do the same do no harm.
    """
    name = hashlib.sha256(json.dumps(wanted).encode()).hexdigest()[:16]
    place = Path(folder) / name
    if not place.is_dir():
        scratch = Path(tempfile.mkdtemp(prefix=".", dir=folder))
        for key, array in make().items():
            np.save(scratch / key, array, allow_pickle=False)
        try:
            scratch.rename(place)
        except OSError:  # somebody was faster
            shutil.rmtree(scratch)
    return {path.stem: np.load(path, mmap_mode="r") for path in sorted(place.glob("*.npy"))}


def _load(wanted: _Wanted) -> dict[str, NDArray[Any]]:
    """Load a data set, and take the rows that are wanted."""
    from skpll.datasets import load_dataset

    if wanted.table is not None:
        from .own_tables import read_own_table

        found: Any = read_own_table(wanted.table)
    else:
        found = load_dataset(wanted.dataset)
    X, S, y, classes = found.X, found.candidates, found.y, np.asarray(found.classes)
    if wanted.rows is not None:
        drawn = np.random.RandomState(_SUBSET_SEED).permutation(len(y))[: wanted.rows]
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


def _corrupt(wanted: _Wanted, features: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Make candidate sets from true labels, unless the data set has its own."""
    from skpll.datasets import make_partial_labels

    if wanted.p is None:
        return {"indptr": features["indptr"], "indices": features["indices"]}
    classes = np.asarray(features["classes"])
    S = make_partial_labels(
        classes[features["codes"]],
        p=wanted.p,
        r=wanted.r or 1,
        kind=wanted.kind,  # type: ignore[arg-type]
        X=_features(features) if wanted.kind == "feature" else None,
        noise=wanted.noise,
        classes=classes.tolist(),
        random_state=wanted.corruption_seed,
    )
    return {"indptr": S.indptr, "indices": S.indices}


def divide(n: int, division: Division) -> tuple[Rows, Rows]:
    """Give the training and the test rows.

    Parameters
    ----------
    n : int
        Number of rows.
    division : Division
        Which of them.

    Returns
    -------
    train, test : int arrays
    """
    from sklearn.model_selection import KFold, ShuffleSplit

    if division.kind == "kfold":
        folds: Any = KFold(division.folds, shuffle=True, random_state=division.seed)
    else:
        folds = ShuffleSplit(1, test_size=division.test_size, random_state=division.seed)
    return list(folds.split(np.zeros(n)))[division.split]
