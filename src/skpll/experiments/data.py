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
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from skpll.candidates import CandidateSets, as_candidates

from .tasks import Division, OwnTable, Task

if TYPE_CHECKING:
    from scipy import sparse


__all__ = ["TaskData", "divide", "prepare_data", "read_own_table"]

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

    table: OwnTable | None
    dataset: str
    content: str | None
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

    X, y, classes, labels = _shared(folder, wanted[1:4], lambda: _load(wanted))
    if wanted.p is not None:
        labels = _shared(folder, wanted[1:], lambda: _corrupt(wanted, X, y, classes))
    assert labels is not None
    if wanted.kind == "constant":
        classes = np.append(classes, _constant_label(classes))
    ordered = wanted.table is None and dataset_info(wanted.dataset).ordered
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

    if wanted.table is not None:
        X, y, classes, labels = read_own_table(wanted.table)
        S = None if labels is None else CandidateSets(*labels, classes)
    else:
        found = load_dataset(wanted.dataset)
        X, y, classes, S = found.X, found.y, np.asarray(found.classes), found.candidates
    if wanted.rows is not None:
        drawn = np.random.RandomState(_SUBSET_SEED).permutation(len(y))[: wanted.rows]
        rows = np.sort(drawn)
        X, y, S = X[rows], y[rows], None if S is None else S[rows]
    X = np.ascontiguousarray(X) if isinstance(X, np.ndarray) else X.tocsr()
    return Loaded(X, np.asarray(y), classes, None if S is None else (S.indptr, S.indices))


def _corrupt(wanted: _Wanted, X: Features, y: Labels, classes: Labels) -> Pattern:
    """Make candidate sets from true labels."""
    from skpll.datasets import make_partial_labels

    assert wanted.p is not None
    if wanted.kind == "dictionary":
        S = make_partial_labels(
            y,
            kind="dictionary",
            X=X,
            min_share=wanted.p,
            classes=classes.tolist(),
            random_state=wanted.corruption_seed,
        )
        return S.indptr, S.indices
    S = make_partial_labels(
        y,
        p=wanted.p,
        r=wanted.r or 1,
        kind="feature" if wanted.kind == "feature" else "uniform",
        epsilon=_COUPLING if wanted.kind == "pairs" else None,
        X=X if wanted.kind == "feature" else None,
        noise=wanted.noise,
        classes=classes.tolist(),
        random_state=wanted.corruption_seed,
    )
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

    if division.kind == "kfold":
        folds = KFold(division.folds, shuffle=True, random_state=division.seed)
    else:
        folds = ShuffleSplit(1, test_size=division.test_size, random_state=division.seed)
    return list(folds.split(np.zeros(n)))[division.split]


def read_own_table(table: OwnTable) -> Loaded:
    """Read a file of your own, with the reader of `skpll disambiguate`.

    Parameters
    ----------
    table : OwnTable
        The file and its columns.

    Returns
    -------
    Loaded

    Raises
    ------
    ValueError
        If the file does not exist, has changed since the experiment was planned, or lacks a column,
        a label or a number.
    """
    from skpll._extra import pandas
    from skpll.tables.columns import FeatureColumns, check_columns
    from skpll.tables.formats import read_table
    from skpll.tables.labels import column_candidates
    from skpll.tables.reading import text_of

    pd, path = pandas(), Path(table.file)
    if table.with_digest() != table:
        raise ValueError(f"file: {path} has changed since the run began; start the run again.")
    content = read_table(path)
    labels = [table.truth, *([table.candidates] if table.candidates else [])]
    check_columns(content, [*labels, *table.features], path.name)
    others = [name for name in content.names if name not in labels]
    features = FeatureColumns.learn(content, features=table.features or others)
    encoded = pd.get_dummies(pd.concat(features.frames(content)), dtype=float)
    truth = pd.Series(text_of(content.column(table.truth)).to_pylist(), name=table.truth)
    for column in [truth.replace("", None), *(encoded[name] for name in encoded)]:
        if column.isna().any():
            row = int(column.isna().to_numpy().argmax()) + 1
            raise ValueError(f"column {column.name!r}: row {row} is empty; fill it or remove it.")
    sets = []
    if table.candidates:
        cells = content.column(table.candidates)
        found, _ = column_candidates(cells, sep=table.separator, name=table.candidates)
        sets = [[str(label) for label in row] for row in found.to_lists()]
    y = truth.to_numpy(dtype=str)
    S = as_candidates(sets or y, classes=sorted({*y, *chain.from_iterable(sets)}))
    X = np.ascontiguousarray(encoded.to_numpy(dtype=float))
    return Loaded(X, y, np.asarray(S.classes), (S.indptr, S.indices) if sets else None)
