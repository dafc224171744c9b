"""The data of tasks: prepared once, memory-mapped by all processes, divided into parts.

The first process that needs a data set writes it into a folder that all workers share; the others
map the same file into their memory.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from skpll.candidates import CandidateSets

from .tasks import Division, Task

if TYPE_CHECKING:
    from scipy import sparse


__all__ = ["TaskData", "divide", "prepare_data"]

_SUBSET_SEED = 0
_COUPLING = 0.7  # probability of the coupled label among the false candidates of kind "pairs"
_CACHED_DATA_SETS = 8  # per process

Features: TypeAlias = "NDArray[np.float64] | sparse.csr_array"
Labels: TypeAlias = NDArray[Any]
Pattern: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int32]]
Made = TypeVar("Made")


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

    X: Features
    S: CandidateSets
    y: Labels
    ordered: bool = False

    def part(self, rows: NDArray[np.intp]) -> TaskData:
        """Return some of the rows."""
        return replace(self, X=self.X[rows], S=self.S[rows], y=self.y[rows])


class Loaded(NamedTuple):
    """A data set as it is shared: `labels` is the pattern of the candidate sets, or None."""

    X: Features
    y: Labels
    classes: Labels
    labels: Pattern | None


class _Wanted(NamedTuple):
    """The attributes of a task that define its data."""

    dataset: str
    rows: int | None
    p: float | None
    r: int | None
    corruption_seed: int | None
    kind: str
    noise: float


def prepare_data(task: Task, folder: str) -> TaskData:
    """Return the data of a task, as files mapped into memory.

    Parameters
    ----------
    task : Task
        The task.
    folder : str
        Where prepared data are shared.

    Returns
    -------
    TaskData
    """
    return _prepared(_Wanted(*(getattr(task, name) for name in _Wanted._fields)), folder)


@lru_cache(maxsize=_CACHED_DATA_SETS)
def _prepared(wanted: _Wanted, folder: str) -> TaskData:
    from skpll.datasets import dataset_info

    X, y, classes, labels = _shared(folder, wanted[:2], lambda: _load(wanted))
    if wanted.p is not None:
        labels = _shared(folder, wanted, lambda: _corrupt(wanted, X, y, classes))
    assert labels is not None
    if wanted.kind == "constant":
        classes = np.append(classes, _constant_label(classes))
    ordered = dataset_info(wanted.dataset).ordered
    return TaskData(X, CandidateSets(*labels, classes), y, ordered)


def _shared(folder: str, wanted: tuple[object, ...], make: Callable[[], Made]) -> Made:
    """Map an object into memory; make it and write it first if its file does not exist.

    The file appears under its name at once, so two processes may do the same without harm.
    """
    import joblib

    name = hashlib.sha256(json.dumps(wanted).encode()).hexdigest()[:16]
    place = Path(folder) / name
    if not place.exists():
        handle, scratch = tempfile.mkstemp(dir=folder)
        os.close(handle)
        joblib.dump(make(), scratch)
        Path(scratch).replace(place)
    return joblib.load(place, mmap_mode="r")


def _load(wanted: _Wanted) -> Loaded:
    """Load a data set, and take the rows that are wanted."""
    from skpll.datasets import load_dataset

    found = load_dataset(wanted.dataset)
    X, y, S = found.X, found.y, found.candidates
    if wanted.rows is not None:
        drawn = np.random.RandomState(_SUBSET_SEED).permutation(len(y))[: wanted.rows]
        rows = np.sort(drawn)
        X, y, S = X[rows], y[rows], None if S is None else S[rows]
    X = np.ascontiguousarray(X) if isinstance(X, np.ndarray) else X.tocsr()
    pattern = None if S is None else (S.indptr, S.indices)
    return Loaded(X, np.asarray(y), np.asarray(found.classes), pattern)


def _corrupt(wanted: _Wanted, X: Features, y: Labels, classes: Labels) -> Pattern:
    """Make candidate sets from true labels."""
    from skpll.datasets import make_partial_labels

    asked: dict[str, Any] = {"noise": wanted.noise, "random_state": wanted.corruption_seed}
    if wanted.kind == "dictionary":
        asked |= {"kind": wanted.kind, "X": X, "min_share": wanted.p}
    elif wanted.kind == "flip":
        asked |= {"kind": wanted.kind, "q": wanted.p}
    else:
        asked |= {"p": wanted.p, "r": wanted.r}
    if wanted.kind == "feature":
        asked |= {"kind": wanted.kind, "X": X}
    elif wanted.kind == "pairs":
        asked["epsilon"] = _COUPLING
    S = make_partial_labels(y, classes=classes.tolist(), **asked)
    if wanted.kind == "constant":  # the added label is the last one, and the last of each set
        n, q = S.shape
        return S.indptr + np.arange(n + 1), np.insert(S.indices, S.indptr[1:], q)
    return S.indptr, S.indices


def _constant_label(classes: Labels) -> Any:
    """Return a label that comes after all others."""
    return classes[-1] + 1 if classes.dtype.kind in "iuf" else f"{classes[-1]} (none)"


def divide(n: int, division: Division) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the training and the test rows.

    Parameters
    ----------
    n : int
        Number of rows.
    division : Division
        The division.

    Returns
    -------
    train, test : int arrays
    """
    from sklearn.model_selection import KFold, ShuffleSplit

    if division.kind == "last":
        train, test = np.split(np.arange(n), [n - round(n * (division.test_size or 0))])
        return train, test
    if division.kind == "kfold":
        folds = KFold(division.folds, shuffle=True, random_state=division.seed)
    else:
        folds = ShuffleSplit(1, test_size=division.test_size, random_state=division.seed)
    return list(folds.split(np.zeros(n)))[division.split]
