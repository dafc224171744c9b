"""The data of tasks: prepared once, memory-mapped by everyone who needs them, divided into parts.

Whoever first needs a data set writes it into a folder that all workers share; the others map the
same file into their memory. Where the folder can't be reached, as on another machine, a worker
prepares the data in a folder of its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
from numpy.typing import NDArray

from skpll.candidates import CandidateSets
from skpll.datasets import dataset_info

from .own_tables import read_own_table
from .tasks import Division, Task

__all__ = ["TaskData", "divide", "prepare_data"]

_SUBSET_SEED = 0
_COUPLED = 0.7  # how often the label coupled to the true one is among the false candidates
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
    ordered : bool
        Whether labels are numbers that may be nearly right.
    """

    X: Any
    S: CandidateSets
    y: NDArray[Any]
    ordered: bool = False


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
    X, y, classes, labels = _shared(folder, wanted[1:4], lambda: _load(wanted))
    if wanted.p is not None:
        labels = _shared(folder, wanted[1:], lambda: _corrupt(wanted, X, y, classes))
    indptr, indices = labels
    ordered = wanted.table is None and dataset_info(wanted.dataset).ordered
    return TaskData(X, CandidateSets(indptr, indices, classes), y, ordered)


@lru_cache(maxsize=1)
def _own_folder() -> str:
    return tempfile.mkdtemp(prefix="skpll-data-")


def _shared(folder: str, wanted: tuple[Any, ...], make: Callable[[], Any]) -> Any:
    """Map what is wanted into memory; make it and write it first if nobody has yet.

    It appears under its name all at once, so that two workers who do the same do no harm.
    """
    name = hashlib.sha256(json.dumps(wanted).encode()).hexdigest()[:16]
    place = Path(folder) / name
    if not place.exists():
        handle, scratch = tempfile.mkstemp(dir=folder)
        os.close(handle)
        joblib.dump(make(), scratch)
        Path(scratch).replace(place)
    return joblib.load(place, mmap_mode="r")


def _load(wanted: _Wanted) -> tuple[Any, ...]:
    """Load a data set, and take the rows that are wanted."""
    from skpll.datasets import load_dataset

    if wanted.table is None:
        found: Any = load_dataset(wanted.dataset)
    else:
        found = read_own_table(wanted.table)
    X, S, y, classes = found.X, found.candidates, found.y, np.asarray(found.classes)
    if wanted.rows is not None:
        drawn = np.random.RandomState(_SUBSET_SEED).permutation(len(y))[: wanted.rows]
        rows = np.sort(drawn)
        X, y, S = X[rows], y[rows], None if S is None else S[rows]
    X = X.tocsr() if hasattr(X, "tocsr") else np.ascontiguousarray(X)
    return X, np.asarray(y), classes, None if S is None else (S.indptr, S.indices)


def _corrupt(wanted: _Wanted, X: Any, y: Any, classes: Any) -> tuple[Any, Any]:
    """Make candidate sets from true labels."""
    from skpll.datasets import make_partial_labels

    S = make_partial_labels(
        y,
        p=wanted.p,  # type: ignore[arg-type]
        r=wanted.r or 1,
        kind="feature" if wanted.kind == "feature" else "uniform",
        epsilon=_COUPLED if wanted.kind == "pairs" else None,
        X=X if wanted.kind == "feature" else None,
        noise=wanted.noise,
        classes=classes.tolist(),
        random_state=wanted.corruption_seed,
    )
    return S.indptr, S.indices


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
