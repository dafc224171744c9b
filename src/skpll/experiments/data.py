"""The data of tasks: prepared once, memory-mapped by everyone who needs them, divided into parts.

They are known by name, or a table of the user's own: a CSV or Parquet file.

Whoever first needs a data set writes it into a folder that all workers share; the others map the
same file into their memory. Where the folder can't be reached, as on another machine, a worker
prepares the data in a folder of its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from skpll.candidates import CandidateSets, as_candidates
from skpll.datasets import dataset_info

from ._reading import check_name, each, text
from .tasks import Division, Task

__all__ = ["OwnTable", "TaskData", "divide", "prepare_data", "read_own_table"]

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


_Wanted = namedtuple(
    "_Wanted", "table dataset content rows p r corruption_seed kind noise"
)  # what of a task says which data it needs


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
    import joblib

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

    found = read_own_table(wanted.table) if wanted.table else load_dataset(wanted.dataset)
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
        p=wanted.p,
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


# -- tables of the user's own -------------------------------------------------------------


@dataclass(frozen=True)
class OwnTable:
    """A file with a row for each example.

    Attributes
    ----------
    file : str
        The path; ``….parquet`` and ``….pq`` are Parquet, all others CSV.
    truth : str
        The column of true labels, for measuring only.
    candidates : str or None
        The column of candidate labels: text, or lists of labels in Parquet.
    separator : str
        What stands between labels in text.
    features : tuple of str
        The columns of features; empty for all that are left. Text is one-hot encoded.
    digest : str
        Hash of the content of the file and of which columns are what.
    """

    file: Annotated[str, text]
    truth: Annotated[str, text]
    candidates: Annotated[str | None, text] = None
    separator: Annotated[str, text] = "|"
    features: Annotated[tuple[str, ...], each(text)] = ()
    digest: str = ""

    def current_digest(self) -> str:
        """Hash the file as it is now."""
        columns = repr((self.truth, self.candidates, self.separator, self.features))
        content = Path(self.file).read_bytes()
        return hashlib.sha256(columns.encode() + content).hexdigest()[:32]


def read_own_table(table: OwnTable) -> Any:
    """Read a file.

    Parameters
    ----------
    table : OwnTable
        Where it is, and which columns are what.

    Returns
    -------
    SimpleNamespace
        ``X``, ``candidates`` (None if the file has none), ``y`` and ``classes``, as of
        `skpll.datasets.load_dataset`.

    Raises
    ------
    ValueError
        If it is not there, has changed since the experiment was planned, or lacks a column, a
        label or a number.
    """
    from skpll._extra import pandas

    pd, path = pandas(), Path(table.file)
    if not path.is_file():
        raise ValueError(f"file: {path} is not there.")
    if table.digest and table.current_digest() != table.digest:
        raise ValueError(f"file: {path} has changed since the run began; start it again.")
    labels = [name for name in (table.truth, table.candidates) if name is not None]
    if path.suffix.lower() in (".parquet", ".pq"):
        frame = pd.read_parquet(path)
    else:
        frame = pd.read_csv(path, dtype=dict.fromkeys(labels, str))
    features = list(table.features) or [name for name in frame.columns if name not in labels]
    for name in (*labels, *features):
        check_name(name, list(frame.columns), path.name, "column")
    if not features:
        raise ValueError(f"{path.name}: there is no column of features.")
    encoded = pd.get_dummies(frame[features], dtype=float)
    for column in (frame[name] for name in labels):
        _refuse_gaps(column, "label")
    for name in encoded.columns:
        _refuse_gaps(encoded[name], "number")
    X = np.ascontiguousarray(encoded.to_numpy(dtype=float))
    y = frame[table.truth].astype(str).to_numpy(dtype=str)
    if table.candidates is None:
        return SimpleNamespace(X=X, candidates=None, y=y, classes=np.unique(y))
    cells = [_labels(cell, table.separator) for cell in frame[table.candidates]]
    S = as_candidates(cells, classes=sorted({*y, *(label for cell in cells for label in cell)}))
    return SimpleNamespace(X=X, candidates=S, y=y, classes=np.asarray(S.classes))


def _labels(cell: Any, separator: str) -> set[str]:
    parts = cell.split(separator) if isinstance(cell, str) else np.atleast_1d(cell).tolist()
    return {str(part).strip() for part in parts} - {""}


def _refuse_gaps(column: Any, kind: str) -> None:
    gaps = column.isna().to_numpy()
    if gaps.any():
        raise ValueError(
            f"column {column.name!r}: row {gaps.argmax() + 1} has no {kind}; fill it in, or leave "
            "the row out."
        )
