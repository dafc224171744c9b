"""Tables in memory: one small interface to their columns, whatever they come from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpll._errors import ArgumentError

from ._extra import pa, short

Array: TypeAlias = Any
"""An Arrow array, chunked or not."""

Frame: TypeAlias = Any
"""A pandas or polars frame, of which only what both have is used."""

BATCH_ROWS = 2**14

EMBEDDINGS = "embeddings"
"""The name of the hidden column of vectors."""


class Table(ABC):
    """What the rest of the package needs to know of a table.

    Attributes
    ----------
    names : list of str
        The names of the columns.
    n_rows : int
        The number of rows.
    hidden : tuple of str
        Names of further columns, which can be features but are not written out again.
    delimiter : str or None
        What separates the cells in the text file that it was read from.
    tasks : Tasks or None
        What tasks of Label Studio have beside their columns.
    """

    names: list[str]
    n_rows: int
    hidden: tuple[str, ...] = ()
    delimiter: str | None = None
    tasks: Tasks | None = None

    @abstractmethod
    def column(self, name: str) -> Array:
        """Return a whole column."""

    def batches(self, names: Sequence[str]) -> Iterator[dict[str, Array]]:
        """Return some of the columns, a batch of rows at a time, in order."""
        columns = {name: self.column(name) for name in names}
        for start in range(0, self.n_rows, BATCH_ROWS):
            yield {name: cells.slice(start, BATCH_ROWS) for name, cells in columns.items()}

    def take(self, names: Sequence[str], rows: NDArray[np.int64]) -> dict[str, Array]:
        """Return some rows, named in ascending order, without holding all of them."""
        chunks: dict[str, list[Array]] = {name: [] for name in names}
        start = 0
        for batch in self.batches(names) if names else ():
            size = n_rows_of(batch)
            first, last = np.searchsorted(rows, [start, start + size])
            for name, column in batch.items():
                part = column.take(pa.array(rows[first:last] - start))
                chunks[name] += part.chunks if isinstance(part, pa.ChunkedArray) else [part]
            start += size
        return {name: pa.chunked_array(parts) for name, parts in chunks.items() if parts}


@dataclass(frozen=True)
class Tasks:
    """What tasks of Label Studio have beside their columns.

    Parameters
    ----------
    control : two str
        The names of the tag that people choose in, and of the tag that shows what they judge.
    votes : Table, optional
        The votes of the annotators: ``item``, ``annotator``, ``label``.
    """

    control: tuple[str, str]
    votes: Table | None = None


class TextTable(Table):
    """A table whose cells are text, as in a CSV file.

    Parameters
    ----------
    names : list of str
        The names of the columns.
    columns : list of Arrow arrays
        The cells.
    """

    def __init__(self, names: list[str], columns: list[Array]) -> None:
        self.names = names
        self.n_rows = len(columns[0]) if columns else 0
        self._columns = dict(zip(names, columns, strict=True))

    def column(self, name: str) -> Array:
        """Return a whole column."""
        return self._columns[name]


class FrameTable(Table):
    """A pandas or polars frame.

    Parameters
    ----------
    frame : pandas.DataFrame or polars.DataFrame
        The table.
    """

    def __init__(self, frame: Frame) -> None:
        self.names = [str(name) for name in frame.columns]
        self.n_rows = len(frame)
        check_names(self.names, "frame")
        self._frame = frame
        self._originals = dict(zip(self.names, frame.columns, strict=True))

    def column(self, name: str) -> Array:
        """Return a whole column."""
        return arrow_column(self._frame[self._originals[name]])


class ExtendedTable(Table):
    """A table with further columns, which are in memory.

    Parameters
    ----------
    table : Table
        The table.
    more : mapping from names to Arrow arrays
        The further columns.
    hidden : bool, default=False
        Whether they are hidden.
    """

    def __init__(self, table: Table, more: Mapping[str, Array], *, hidden: bool = False) -> None:
        self.names = table.names if hidden else [*table.names, *more]
        self.hidden = (*table.hidden, *more) if hidden else table.hidden
        self.n_rows, self.delimiter, self.tasks = table.n_rows, table.delimiter, table.tasks
        self._table, self._more = table, more

    def column(self, name: str) -> Array:
        """Return a whole column."""
        return self._more[name] if name in self._more else self._table.column(name)

    def batches(self, names: Sequence[str]) -> Iterator[dict[str, Array]]:
        """Return some of the columns, a batch of rows at a time, in order."""
        given = [name for name in names if name not in self._more]
        more = {name: cells for name, cells in self._more.items() if name in names}
        if not given:
            yield from super().batches(names)
            return
        start = 0
        for batch in self._table.batches(given):
            size = n_rows_of(batch)
            yield batch | {name: cells.slice(start, size) for name, cells in more.items()}
            start += size


def embedded(table: Table, vectors: ArrayLike | Path | None) -> Table:
    """Return a table with a vector for each row, given or in a ``.npy`` file; None: as it is."""
    if vectors is None:
        return table
    if isinstance(vectors, Path):
        try:
            vectors = np.load(vectors, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise ArgumentError(
                EMBEDDINGS, f"{vectors}: not a readable .npy file: {error}."
            ) from None
    found = np.asarray(vectors)
    if found.ndim != 2 or found.dtype.kind not in "fiu" or not found.shape[1]:
        problem = f"expected a matrix of numbers, got {found.dtype} of shape {found.shape}."
    elif len(found) != table.n_rows:
        problem = f"there are {len(found)} rows for the {table.n_rows} of the table."
    elif not (finite := np.isfinite(found).all(axis=1)).all():
        problem = f"row {int(np.argmin(finite)) + 1} has an entry that is not finite."
    elif EMBEDDINGS in table.names:
        problem = "the table has a column of that name; rename it."
    else:
        flat = pa.array(np.ascontiguousarray(found, np.float32).ravel())
        column = pa.FixedSizeListArray.from_arrays(flat, found.shape[1])
        return ExtendedTable(table, {EMBEDDINGS: column}, hidden=True)
    raise ArgumentError(EMBEDDINGS, problem)


def n_rows_of(batch: Mapping[str, Array]) -> int:
    """Count the rows of some columns."""
    return len(next(iter(batch.values())))


def check_names(names: list[str], where: object) -> None:
    """Refuse a table with two columns of one name."""
    places: dict[str, int] = {}
    for place, name in enumerate(names, start=1):
        if name in places:
            raise ValueError(
                f"{where}: columns {places[name]} and {place} are both called {short(name)}; "
                "rename one of them."
            )
        places[name] = place


def text_of(array: Array) -> Array:
    """Turn a column into text; what is missing stays missing."""
    array = plain(array)
    if not pa.types.is_nested(array.type):
        try:
            return array.cast(pa.string())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            pass
    return pa.array(
        [None if cell is None else str(cell) for cell in array.to_pylist()], pa.string()
    )


def plain(array: Array) -> Array:
    """Write out a column that holds numbers of entries in a dictionary."""
    encoded = pa.types.is_dictionary(array.type)
    return array.cast(array.type.value_type) if encoded else array


def typed_column(cells: list[object]) -> Array:
    """Return a column of cells; where they are of several types, it is text."""
    try:
        return pa.array(cells)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return pa.array([None if cell is None else str(cell) for cell in cells], pa.string())


def arrow_column(series: Frame) -> Array:
    """Turn a column of a frame into an Arrow array; mixed cells become text."""
    cells = series.to_list() if str(series.dtype).lower() == "object" else []
    if any(isinstance(cell, Set) for cell in cells):
        return pa.array([sorted(c, key=str) if isinstance(c, Set) else c for c in cells])
    if hasattr(series, "to_arrow"):
        return series.to_arrow()
    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        missing = series.isna()
        return pa.array([None if gap else str(x) for x, gap in zip(series, missing, strict=True)])
