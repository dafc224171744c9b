"""Tables in files and frames: one small interface to their columns, whatever they come from.

A CSV file is read as text and kept as text, so that it can be written out again unchanged. A
Parquet file is never held as a whole: its columns are read when they are asked for, in batches.
"""

from __future__ import annotations

import csv
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from ._extra import TableWarning, arrow, parquet, short

__all__ = [
    "FrameTable",
    "ParquetTable",
    "Table",
    "TextTable",
    "arrow_column",
    "plain",
    "read_table",
    "text_of",
]

Array: TypeAlias = Any
"""An Arrow array, chunked or not."""

BATCH_ROWS = 2**14
_ENCODINGS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_DELIMITERS = ",;\t"


class Table(Protocol):
    """What the rest of the package needs to know of a table."""

    names: list[str]
    n_rows: int

    def column(self, name: str) -> Array:
        """Give a whole column."""

    def batches(self, names: Sequence[str]) -> Iterator[dict[str, Array]]:
        """Give some of the columns, a batch of rows at a time, in order."""


class TextTable:
    """A table in memory whose cells are text, as in a CSV file.

    Parameters
    ----------
    names : list of str
        The names of the columns.
    columns : list of Arrow arrays
        The cells.
    """

    def __init__(self, names: list[str], columns: list[Array]) -> None:
        self.names = names
        self.n_rows: int = len(columns[0]) if columns else 0
        self._columns = dict(zip(names, columns, strict=True))

    def column(self, name: str) -> Array:
        """Give a whole column."""
        return self._columns[name]

    def batches(self, names: Sequence[str]) -> Iterator[dict[str, Array]]:
        """Give some of the columns, a batch of rows at a time, in order."""
        for start in range(0, self.n_rows, BATCH_ROWS):
            yield {name: self.column(name).slice(start, BATCH_ROWS) for name in names}


class ParquetTable:
    """A Parquet file, read when and as far as it is needed.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._file = parquet().ParquetFile(path, pre_buffer=False, buffer_size=2**20)
            self.names: list[str] = list(self._file.schema_arrow.names)
        except (arrow().ArrowException, OSError) as error:
            raise ValueError(f"{path}: not a readable Parquet file: {error}") from None
        _check_names(self.names, path)
        self._path = path
        self.n_rows: int = self._file.metadata.num_rows

    def column(self, name: str) -> Array:
        """Give a whole column."""
        chunks = [batch[name] for batch in self.batches([name])]
        kind = self._file.schema_arrow.field(name).type
        return arrow().chunked_array(chunks, type=kind)

    def batches(self, names: Sequence[str]) -> Iterator[dict[str, Array]]:
        """Give some of the columns, a batch of rows at a time, in order."""
        try:
            for batch in self._file.iter_batches(
                BATCH_ROWS, columns=list(names), use_threads=False
            ):
                yield {name: batch.column(name) for name in names}
                arrow().default_memory_pool().release_unused()
        except (arrow().ArrowException, OSError) as error:
            raise ValueError(f"{self._path}: damaged Parquet file: {error}") from None
        finally:
            arrow().default_memory_pool().release_unused()


class FrameTable:
    """A pandas or polars frame.

    Parameters
    ----------
    frame : pandas.DataFrame or polars.DataFrame
        The table.
    """

    def __init__(self, frame: Any) -> None:
        self.frame = frame
        self.names = [str(name) for name in frame.columns]
        self.n_rows: int = len(frame)
        _check_names(self.names, "frame")
        self._originals = dict(zip(self.names, frame.columns, strict=True))

    def column(self, name: str) -> Array:
        """Give a whole column."""
        return arrow_column(self.frame[self._originals[name]])

    def batches(self, names: Sequence[str]) -> Iterator[dict[str, Array]]:
        """Give some of the columns, a batch of rows at a time, in order."""
        by_place = getattr(self.frame, "iloc", self.frame)
        for start in range(0, self.n_rows, BATCH_ROWS):
            rows = by_place[start : start + BATCH_ROWS]
            yield {name: arrow_column(rows[self._originals[name]]) for name in names}


def read_table(path: Path, *, delimiter: str | None = None) -> Table:
    """Open a CSV or Parquet file.

    Parameters
    ----------
    path : Path
        Files called ``….parquet`` or ``….pq`` are Parquet, all others are delimited text: UTF-8,
        UTF-16 with its mark, or, where it is none of these, Latin-1.
    delimiter : str, optional
        What separates the cells of a text file. By default the comma, the semicolon or the tab,
        whichever its first line has most of.

    Returns
    -------
    Table

    Raises
    ------
    ValueError
        Names the line that is wrong and says what to do.
    """
    if path.suffix.lower() in (".parquet", ".pq"):
        return ParquetTable(path)
    if delimiter is not None and len(delimiter) != 1:
        raise ValueError(f"--delimiter: expected one character, got {delimiter!r}.")
    return _read_text(path, delimiter)


def text_of(array: Array) -> Array:
    """Turn a column into text; what is missing stays missing."""
    pa = arrow()
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
    encoded = arrow().types.is_dictionary(array.type)
    return array.cast(array.type.value_type) if encoded else array


def _read_text(path: Path, delimiter: str | None) -> TextTable:
    encoding = _encoding(path)
    try:
        with path.open(encoding=encoding, newline="") as lines, _long_cells():
            first = lines.readline(2**16)
            lines.seek(0)
            rows = csv.reader(lines, delimiter=delimiter or _delimiter(first), strict=True)
            return _collect(rows, path)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not readable as {encoding}: {error.reason}.") from None
    except csv.Error as error:
        raise ValueError(
            f"{path}: line {rows.line_num}: {error}; check the quotes near it."
        ) from None


def _delimiter(first: str) -> str:
    """Find what separates the cells of the first line; what is in quotes doesn't count."""
    return max(_DELIMITERS, key=re.sub('"[^"]*"', "", first).count)


def _collect(rows: Any, path: Path) -> TextTable:
    """Gather the cells by columns, a batch of rows at a time; all rows have to be equally long."""
    pa = arrow()
    names = [name.strip() for name in next(rows, [])]
    if not any(names):
        raise ValueError(f"{path}: the file is empty; its first line has to name the columns.")
    _check_names(names, path)
    width = len(names)
    chunks: list[list[Array]] = [[] for _ in names]
    batch: list[list[str]] = []

    def keep() -> None:
        for place, cells in enumerate(zip(*batch, strict=True)):
            chunks[place].append(pa.array(cells, pa.large_string()))
        batch.clear()

    for row in rows:
        if not row:
            continue
        if len(row) != width:
            raise ValueError(
                f"{path}: line {rows.line_num} has {len(row)} cells, but the header has {width}; "
                "put cells with a delimiter inside into quotes."
            )
        batch.append(row)
        if len(batch) == BATCH_ROWS:
            keep()
    if batch:
        keep()
    return TextTable(names, [pa.chunked_array(parts, pa.large_string()) for parts in chunks])


def _encoding(path: Path) -> str:
    """Tell how a file is encoded, by its first bytes and by trying."""
    with path.open("rb") as file:
        start = file.read(2**16)
    for mark, name in _ENCODINGS.items():
        if start.startswith(mark):
            return name
    if b"\0" in start:
        raise ValueError(f"{path}: not a text file; give a CSV or a Parquet file.")
    try:
        with path.open(encoding="utf-8", newline="") as file:
            while file.read(2**20):
                pass
    except UnicodeDecodeError:
        warnings.warn(f"{path}: not UTF-8; read as Latin-1.", TableWarning, stacklevel=2)
        return "latin-1"
    return "utf-8"


@contextmanager
def _long_cells() -> Iterator[None]:
    """Let cells be as long as they like."""
    before = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _check_names(names: list[str], where: Any) -> None:
    places: dict[str, int] = {}
    for place, name in enumerate(names, start=1):
        if name in places:
            raise ValueError(
                f"{where}: columns {places[name]} and {place} are both called {short(name)}; "
                "rename one of them."
            )
        places[name] = place


def arrow_column(series: Any) -> Array:
    """Turn a column of a frame into an Arrow array; mixed cells become text."""
    pa = arrow()
    if hasattr(series, "to_arrow"):
        return series.to_arrow()
    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        missing = series.isna()
        return pa.array([None if gap else str(x) for x, gap in zip(series, missing, strict=True)])
