"""Tables in files: every format is a class that reads and writes it.

A CSV file is read as text and kept as text, so that it can be written out again unchanged. A
Parquet file is never held as a whole: its columns are read when they are asked for, in batches.
"""

from __future__ import annotations

import csv
import json
import re
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, TextIO

from skpll._progress import progress

from . import reading
from ._extra import TableWarning, arrow, parquet
from .reading import Array, Table, TextTable, check_names

__all__ = ["ParquetTable", "TableFormat", "read_table", "write_table"]

_ENCODINGS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_DELIMITERS = ",;\t"
_GROUP_BATCHES = 4  # batches of rows that make a row group of a Parquet file
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class TableFormat(ABC):
    """A format of files. A subclass is all it takes: its suffixes are known from then on.

    Parameters
    ----------
    delimiter : str, optional
        What separates the cells of a text file; found out by default.
    sep : str, default="|"
        What to put between the entries of a list in a text file.
    escape_formulas : bool, default=False
        Whether to put an apostrophe before text that a spreadsheet would run as a formula.
    """

    suffixes: ClassVar[tuple[str, ...]] = ()
    """The ends of the names of such files, in lower case."""

    delimiter: str | None = None
    sep: str = "|"
    escape_formulas: bool = False

    def __init_subclass__(cls) -> None:
        _FORMATS.update(dict.fromkeys(cls.suffixes, cls))

    @abstractmethod
    def read(self, path: Path) -> Table:
        """Open a file; a `ValueError` names the place that is wrong and says what to do."""

    @abstractmethod
    def write(
        self, path: Path, batches: Iterator[Mapping[str, Array]], names: Sequence[str]
    ) -> None:
        """Write columns to a file, a batch of rows at a time."""


_FORMATS: dict[str, type[TableFormat]] = {}


def read_table(path: Path, *, delimiter: str | None = None) -> Table:
    """Open a file; its suffix says which format it has.

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
    known = _FORMATS.get(path.suffix.lower(), DelimitedText)
    return known(delimiter=delimiter).read(path)


def write_table(
    path: Path,
    table: Table,
    added: Mapping[str, Array],
    *,
    file_format: str = "",
    sep: str = "|",
    escape_formulas: bool = False,
) -> None:
    """Write a table with some columns added, a batch of rows at a time.

    Parameters
    ----------
    path : Path
        Where to.
    table : Table
        The columns to begin with.
    added : mapping from names to Arrow arrays
        The columns to add.
    file_format : str
        The suffix that says how: ``.parquet``, ``.pq``, ``.tsv``, or anything else for CSV.
    sep : str, default="|"
        What to put between the entries of a list in a text file. A list with an entry that has it
        inside is written as JSON.
    escape_formulas : bool, default=False
        Whether to put an apostrophe before text that a spreadsheet would run as a formula.
    """
    known = _FORMATS.get(file_format.lower(), DelimitedText)
    names = [*table.names, *added]
    known(sep=sep, escape_formulas=escape_formulas).write(path, _rows(table, added), names)


def _rows(table: Table, added: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
    start = 0
    with progress("Writing", table.n_rows, shown=False) as step:
        for batch in table.batches(table.names):
            size = len(next(iter(batch.values())))
            yield batch | {name: column.slice(start, size) for name, column in added.items()}
            start += size
            step(start, "")


class Parquet(TableFormat):
    """Parquet files."""

    suffixes = (".parquet", ".pq")

    def read(self, path: Path) -> Table:
        """Open a file; nothing is read yet."""
        return ParquetTable(path)

    def write(
        self, path: Path, batches: Iterator[Mapping[str, Array]], names: Sequence[str]
    ) -> None:
        """Write columns, a group of rows at a time."""
        pa = arrow()
        writer = None
        try:
            while group := list(islice(batches, _GROUP_BATCHES)):
                parts = [pa.table([batch[name] for name in names], list(names)) for batch in group]
                if writer is None:
                    schema = parts[0].schema
                    texts = [field.name for field in schema if not _is_number(field.type)]
                    writer = parquet().ParquetWriter(path, schema, use_dictionary=texts)
                writer.write_table(pa.concat_tables(parts))
        finally:
            if writer is not None:
                writer.close()


def _is_number(kind: Any) -> bool:
    types = arrow().types
    return bool(types.is_floating(kind) or types.is_integer(kind))


class ParquetTable(Table):
    """A Parquet file, read when and as far as it is needed.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._file = parquet().ParquetFile(path, pre_buffer=False, buffer_size=2**20)
            self.names = list(self._file.schema_arrow.names)
        except (arrow().ArrowException, OSError) as error:
            raise ValueError(f"{path}: not a readable Parquet file: {error}") from None
        check_names(self.names, path)
        self._path = path
        self.n_rows = self._file.metadata.num_rows

    def column(self, name: str) -> Array:
        """Give a whole column."""
        chunks = [batch[name] for batch in self.batches([name])]
        kind = self._file.schema_arrow.field(name).type
        return arrow().chunked_array(chunks, type=kind)

    def batches(self, names: Sequence[str]) -> Iterator[dict[str, Array]]:
        """Give some of the columns, a batch of rows at a time, in order."""
        try:
            for batch in self._file.iter_batches(
                reading.BATCH_ROWS, columns=list(names), use_threads=False
            ):
                yield {name: batch.column(name) for name in names}
                arrow().default_memory_pool().release_unused()
        except (arrow().ArrowException, OSError) as error:
            raise ValueError(f"{self._path}: damaged Parquet file: {error}") from None
        finally:
            arrow().default_memory_pool().release_unused()


class DelimitedText(TableFormat):
    """CSV files and their like."""

    suffixes: ClassVar[tuple[str, ...]] = (".csv", ".txt")
    usual_delimiter: ClassVar[str] = ","

    def read(self, path: Path) -> Table:
        """Read all cells as text."""
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise ValueError(f"delimiter: expected one character, got {self.delimiter!r}.")
        return _read_text(path, self.delimiter)

    def write(
        self, path: Path, batches: Iterator[Mapping[str, Array]], names: Sequence[str]
    ) -> None:
        """Write text, one line a row."""
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(_Lines(file), delimiter=self.delimiter or self.usual_delimiter)
            writer.writerow(map(self._as_text, names))
            for batch in batches:
                columns = [map(self._as_text, batch[name].to_pylist()) for name in names]
                writer.writerows(zip(*columns, strict=True))

    def _as_text(self, cell: Any) -> Any:
        if isinstance(cell, list):
            entries = list(map(str, cell))
            unclear = any(self.sep in entry for entry in entries)
            cell = json.dumps(entries, ensure_ascii=False) if unclear else self.sep.join(entries)
        if self.escape_formulas and isinstance(cell, str) and _is_formula(cell):
            return f"'{cell}"
        return str(cell).lower() if isinstance(cell, bool) else cell


class TabSeparatedText(DelimitedText):
    """Text with tabs between the cells."""

    suffixes = (".tsv",)
    usual_delimiter = "\t"


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
    check_names(names, path)
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
        if len(batch) == reading.BATCH_ROWS:
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


class _Lines:
    """Ends lines with a line feed, though the writer has to quote carriage returns too."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, line: str) -> None:
        """Write one row as it comes from the writer."""
        self._file.write(line.removesuffix("\r\n") + "\n")


def _is_formula(cell: str) -> bool:
    """Whether a spreadsheet would run a cell; a negative number is none."""
    if not cell.startswith(_FORMULA_STARTS):
        return False
    try:
        float(cell)
    except ValueError:
        return True
    return False
