"""Data sets of the user's own: CSV or Parquet files with features, candidates and the truth."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skpll.candidates import CandidateSets, as_candidates

from ._reading import check_name, each, text

__all__ = ["OwnData", "OwnTable", "read_own_table"]


class OwnData(NamedTuple):
    """What a file holds: features, candidate sets (None if it has none), truth, all labels."""

    X: NDArray[np.float64]
    candidates: CandidateSets | None
    y: NDArray[Any]
    classes: NDArray[Any]


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


def read_own_table(table: OwnTable) -> OwnData:
    """Read a file.

    Parameters
    ----------
    table : OwnTable
        Where it is, and which columns are what.

    Returns
    -------
    OwnData

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
    labels = [table.truth] if table.candidates is None else [table.truth, table.candidates]
    if path.suffix.lower() in (".parquet", ".pq"):
        frame = pd.read_parquet(path)
    else:
        frame = pd.read_csv(path, dtype=dict.fromkeys(labels, str))
    names = list(frame.columns)
    for name in (*labels, *table.features):
        check_name(name, names, f"{path.name}", "column")
    for name in labels:
        _refuse_gaps(frame[name], "label")
    y = frame[table.truth].astype(str).to_numpy(dtype=str)
    candidates = None
    if table.candidates is not None:
        column = frame[table.candidates]
        cells = [_labels(cell, table.separator) for cell in column]
        candidates = as_candidates(
            cells, classes=sorted({*y, *(x for cell in cells for x in cell)})
        )
    classes = np.unique(y) if candidates is None else np.asarray(candidates.classes)
    features = table.features or [name for name in names if name not in labels]
    return OwnData(_matrix(frame, features, path), candidates, y, classes)


def _labels(cell: Any, separator: str) -> set[str]:
    parts = cell.split(separator) if isinstance(cell, str) else np.atleast_1d(cell).tolist()
    return {str(part).strip() for part in parts} - {""}


def _matrix(frame: Any, features: Sequence[str], path: Path) -> NDArray[np.float64]:
    from skpll._extra import pandas

    if not features:
        raise ValueError(f"{path.name}: there is no column of features.")
    encoded = pandas().get_dummies(frame[list(features)], dtype=float)
    for name in encoded.columns:
        _refuse_gaps(encoded[name], "number")
    return np.ascontiguousarray(encoded.to_numpy(dtype=float))


def _refuse_gaps(column: Any, kind: str) -> None:
    gaps = column.isna().to_numpy()
    if gaps.any():
        raise ValueError(
            f"column {column.name!r}: row {gaps.argmax() + 1} has no {kind}; fill it in, or leave "
            "the row out."
        )
