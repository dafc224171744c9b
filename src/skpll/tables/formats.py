"""Tables in files: every format is a class that reads and writes it.

A CSV file is read as text and kept as text, so that it can be written out again unchanged. A
Parquet file is never held as a whole: its columns are read when they are asked for, in batches. The
suffix of a file says which format it has.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import json
import re
import shutil
import sys
import tempfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from copy import copy
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, cast
from uuid import uuid4

from skpll._errors import ArgumentError
from skpll._progress import tracked

from . import reading
from ._extra import note, openpyxl, pa, pads, pc, pq
from .reading import NUMBERS, Array, Batch, Table

if TYPE_CHECKING:
    from _csv import Reader


_ENCODINGS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_DELIMITERS = ",;\t"
_GROUP_BATCHES = 4  # batches of rows that make a row group of a Parquet file
_DIGITS = 4  # of decimal numbers that are added to a table
_LONGEST_IN_EXCEL = 32_767
_EXACT_IN_EXCEL = 10**15  # larger numbers are kept as text, since a spreadsheet would round them
_CODE = r"^[+-]?0\d"  # such as 007: a spreadsheet would cut it down to a number
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class TableFormat(ABC):
    """A format of files. A subclass is all it takes: its suffixes are known from then on.

    Parameters
    ----------
    delimiter : str, optional
        What separates the cells of a text file; found out by default.
    header : int, optional
        The number of the line or row that names the columns; what is above it is skipped. By
        default the first, or in a spreadsheet the first that is about as wide as the table.
    sep : str, default="|"
        What to put between the entries of a list in a text file.
    escape_formulas : bool, default=False
        Whether to put an apostrophe before text that a spreadsheet would run as a formula.
    compressed : bool, default=False
        Whether the file is packed with gzip.
    """

    suffixes: ClassVar[tuple[str, ...]] = ()
    """The ends of the names of such files, in lower case."""

    delimiter: str | None = None
    header: int | None = None
    sep: str = "|"
    escape_formulas: bool = False
    compressed: bool = False

    def __init_subclass__(cls) -> None:
        _FORMATS.update(dict.fromkeys(cls.suffixes, cls))

    @abstractmethod
    def read(self, path: Path) -> Table:
        """Open a file; a `ValueError` names the place that is wrong and says what to do."""

    @abstractmethod
    def write(self, path: Path, table: Table) -> None:
        """Write a table to a file, a batch of rows at a time."""


_FORMATS: dict[str, type[TableFormat]] = {}


def known_suffix(path: Path) -> str:
    """Return the suffix of a file to be written; refuse one that belongs to no format."""
    if is_stream(path):
        return ".csv"  # a pipe or the terminal
    suffix = _suffix(path)
    if suffix.removesuffix(".gz") not in _FORMATS:
        raise ValueError(
            f"{path}: no format of tables has the suffix {path.suffix!r}; there are "
            f"{', '.join(sorted(_FORMATS))}, and those of text with .gz."
        )
    return suffix


def read_table(path: Path, *, delimiter: str | None = None, header: int | None = None) -> Table:
    """Open a file; its suffix says which format it has.

    Parameters
    ----------
    path : Path
        Files called ``….parquet`` or ``….pq``, and folders of them, are Parquet, ``….xlsx`` is a
        spreadsheet, ``….jsonl`` has a JSON object in each line, ``….json`` a list of them or of
        tasks of Label Studio. All others are delimited text: UTF-8, UTF-16 with its mark, or, where
        it is none of these, Windows-1252, all of it or in some lines. With ``.gz`` at its end text
        is packed. ``-`` is standard input; it and pipes are text.
    delimiter : str, optional
        What separates the cells of a text file. By default the comma, the semicolon or the tab,
        whichever its header has most of.
    header : int, optional
        The number of the line of a text file, or of the row of a spreadsheet, that names the
        columns.

    Returns
    -------
    Table

    Raises
    ------
    ValueError
        Names the line that is wrong and says what to do.
    """
    if path.is_dir():
        return ParquetTable(path)
    if str(path) == "-" or not path.is_file():
        with _copied(path) as copy:
            return read_table(copy, delimiter=delimiter, header=header)
    try:
        return _format_of(_suffix(path), delimiter=delimiter, header=header).read(path)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: not a readable gzip file: {error}") from None


def write_table(
    path: Path,
    table: Table,
    added: Mapping[str, Array],
    *,
    sep: str = "|",
    escape_formulas: bool = False,
) -> None:
    """Write a table with some columns added, a batch of rows at a time.

    A file is whole, or not there. A text file has the delimiter that the table was read with, and
    decimal numbers that are added have four digits, except in Parquet files.

    Parameters
    ----------
    path : Path
        Where to; its suffix says how, see `known_suffix`.
    table : Table
        The columns to begin with.
    added : mapping from names to Arrow arrays
        The columns to add.
    sep : str, default="|"
        What to put between the entries of a list in a text file. A list with an entry that has it
        inside is written as JSON.
    escape_formulas : bool, default=False
        Whether to put an apostrophe before text that a spreadsheet would run as a formula.
    """
    suffix = known_suffix(path)
    delimiter = "\t" if suffix.startswith(".tsv") else table.delimiter
    known = _format_of(suffix, delimiter=delimiter, sep=sep, escape_formulas=escape_formulas)
    if not isinstance(known, Parquet):
        added = {
            name: pc.round(column, _DIGITS) if pa.types.is_floating(column.type) else column
            for name, column in added.items()
        }
    with written_whole(path) as temporary:
        known.write(temporary, table.extended(added))


def _suffix(path: Path) -> str:
    """Return the suffix of a file in lower case, with the one before .gz."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return "".join(suffixes[-2:] if suffixes[-1:] == [".gz"] else suffixes[-1:])


def _format_of(suffix: str, **options: Any) -> TableFormat:
    """Return the format of a suffix, with its options; text for an unknown one."""
    known = _FORMATS.get(suffix.removesuffix(".gz"), DelimitedText)
    return known(compressed=suffix.endswith(".gz"), **options)


@contextmanager
def _copied(path: Path) -> Iterator[Path]:
    """Copy what comes through a pipe to a file, which can be read more than once."""
    with tempfile.TemporaryDirectory() as folder:
        source: IO[bytes] = sys.stdin.buffer if str(path) == "-" else path.open("rb")
        start = source.read(1)
        copy = Path(folder) / ("standard input.jsonl" if start == b"{" else "standard input.csv")
        with source, copy.open("wb") as target:
            target.write(start)
            shutil.copyfileobj(source, target)
        yield copy


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Write a file under another name, and rename it when it is complete.

    Parameters
    ----------
    path : Path
        What the file is to be called.

    Yields
    ------
    temporary : Path
        Where to write. If anything goes wrong, an interrupt included, it is removed.
    """
    if is_stream(path):
        with tempfile.TemporaryDirectory() as folder, _named(path, "part of it may be there"):
            temporary = Path(folder) / "out"
            yield temporary
            sys.stdout.flush()
            screen = nullcontext(sys.stdout.buffer)
            with (
                temporary.open("rb") as source,
                screen if str(path) == "-" else path.open("wb") as target,
            ):
                shutil.copyfileobj(source, target)
                target.flush()
        return
    check_writable(path)
    temporary = path.with_name(f".{path.name[:40]}.{uuid4().hex}")
    try:
        with _named(path, "nothing of it was written, and what was there before is unchanged"):
            if path.exists():  # whoever could not read the old file can't read the new one
                temporary.touch(mode=0o600)
                shutil.copymode(path, temporary)
            yield temporary
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _named(path: Path, state: str) -> Iterator[None]:
    """Name the file that could not be written, for instance because the disk is full."""
    try:
        yield
    except OSError as error:
        raise OSError(f"{path}: can't be written ({error.strerror or error}); {state}.") from None


def check_writable(path: Path) -> None:
    """Raise an error if a file can't be written, before the work is done."""
    if is_stream(path):
        return
    if path.is_dir():
        raise ValueError(f"{path}: is a folder; name a file.")
    if not path.parent.is_dir():
        raise ValueError(f"{path}: there is no folder {path.parent}.")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise ValueError(
            f"{path}: nothing can be written to that folder ({error.strerror})."
        ) from None


def is_stream(path: Path) -> bool:
    """Return whether a path is standard output, a pipe or a device, which can't be renamed."""
    return str(path) == "-" or (path.exists() and not path.is_file() and not path.is_dir())


class Parquet(TableFormat):
    """Parquet files."""

    suffixes = (".parquet", ".pq")

    def read(self, path: Path) -> Table:
        """Open a file; nothing is read yet."""
        return ParquetTable(path)

    def write(self, path: Path, table: Table) -> None:
        """Write columns, a group of rows at a time."""
        if not table.n_rows:
            pq.write_table(pa.table({name: table.column(name) for name in table.names}), path)
            return
        writer, batches = None, _batches(table)
        try:
            while group := list(islice(batches, _GROUP_BATCHES)):
                if writer is None:
                    schema, types = group[0].schema, pa.types
                    numbers = (types.is_floating, types.is_integer)
                    texts = [x.name for x in schema if not any(test(x.type) for test in numbers)]
                    writer = pq.ParquetWriter(path, schema, use_dictionary=texts)
                writer.write_table(pa.concat_tables(group))
        finally:
            if writer is not None:
                writer.close()


def _batches(table: Table) -> Iterator[Batch]:
    """Yield all columns, a batch of rows at a time, and report the progress."""
    return tracked(table.batches(table.names), "Writing", table.n_rows, len)


def _cells(table: Table) -> Iterator[tuple[object, ...]]:
    """Yield the cells of one row after the other."""
    for batch in _batches(table):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _objects(table: Table) -> Iterator[dict[str, object]]:
    """Yield the cells of one row after the other, by the names of their columns."""
    return chain.from_iterable(batch.to_pylist() for batch in _batches(table))


class ParquetTable(Table):
    """A Parquet file, read when and as far as it is needed, or several that are one table.

    Parameters
    ----------
    *paths : Path
        The file or files, or a folder as Spark and others write it; those in it that are called
        ``name=value`` are a column.
    """

    def __init__(self, *paths: Path) -> None:
        self._path = paths[0]
        one_file = len(paths) == 1 and not self._path.is_dir()
        with self._telling(
            f"not a {'readable Parquet file' if one_file else 'folder of Parquet files'}"
        ):
            source = list(map(str, paths)) if len(paths) > 1 else self._path
            partitioning = None if one_file else "hive"
            a_little = pads.ParquetFragmentScanOptions(pre_buffer=False)
            known = pads.ParquetFileFormat(default_fragment_scan_options=a_little)
            data = pads.dataset(source, format=known, partitioning=partitioning)
            self._fragments, self._schema = list(data.get_fragments()), data.schema
            self.n_rows = data.count_rows()
        self.names = list(self._schema.names)
        if not self.names and not one_file:
            raise ValueError(f"{self._path}: the folder has no Parquet files.")
        self._columns = {}
        reading.check_names(self.names, self._path)
        for fragment in self._fragments if len(paths) > 1 else ():
            other = set(fragment.physical_schema.names) ^ set(self.names)
            if other:  # they would be gaps, or lost
                raise ValueError(
                    f"{fragment.path}: {', '.join(sorted(other))}: only in this file or in "
                    f"{self._path}; files of one table have the same columns."
                )

    def groups(self) -> list[ParquetTable]:
        """Return the groups of rows that the files consist of."""
        groups = []
        for fragment in self._fragments:
            for part in fragment.split_by_row_group():
                group = copy(self)
                group._fragments = [part]
                group.n_rows = sum(rows.num_rows for rows in part.row_groups)
                groups.append(group)
        return [group for group in groups if group.n_rows]

    def column(self, name: str) -> Array:
        """Return a whole column."""
        if name in self._columns:
            return super().column(name)
        chunks = chain.from_iterable(batch[name].chunks for batch in self.batches([name]))
        return pa.chunked_array(list(chunks), type=self._schema.field(name).type)

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """Yield some of the columns, a batch of rows at a time, in order."""
        stored = [name for name in names if name not in self._columns]
        if not stored:
            yield from super().batches(names)
            return
        options = {"schema": self._schema, "columns": stored, "use_threads": False}
        options |= {"batch_size": reading.BATCH_ROWS, "batch_readahead": 0, "fragment_readahead": 0}
        start = 0
        with self._telling("damaged Parquet file"):
            for fragment in self._fragments:
                for batch in fragment.to_batches(**options):
                    size = batch.num_rows
                    cells = {name: batch.column(name) for name in stored}
                    for name in self._columns.keys() & set(names):
                        cells[name] = self._columns[name].slice(start, size)
                    if size:
                        yield pa.table({name: cells[name] for name in names})
                    start += size
                    pa.default_memory_pool().release_unused()

    @contextmanager
    def _telling(self, what: str) -> Iterator[None]:
        """Name the file that can't be read."""
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{self._path}: {what}: {error}") from None


class JsonLines(TableFormat):
    """A JSON object in each line."""

    suffixes = (".jsonl", ".ndjson")

    def read(self, path: Path) -> Table:
        """Read all lines; an object may lack some of the columns."""
        rows = []
        with _opened(path, self.compressed, "rt", "utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                except ValueError as error:
                    raise ValueError(f"{path}: line {number} is not JSON: {error}.") from None
                if not isinstance(row, dict):
                    raise ValueError(f"{path}: line {number} is not a JSON object.")
                rows.append(row)
        if not rows:
            raise ValueError(f"{path}: the file is empty; each line has to be a JSON object.")
        return _object_table(rows)

    def write(self, path: Path, table: Table) -> None:
        """Write an object for each row."""
        with _opened(path, self.compressed, "wt", "utf-8") as file:
            for row in _objects(table):
                file.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")


class Json(TableFormat):
    """A list of JSON objects: rows, or tasks of Label Studio, which are written always."""

    suffixes = (".json",)

    def read(self, path: Path) -> Table:
        """Read all objects; tasks with their annotations and predictions."""
        from .label_studio import are_tasks, read_tasks

        try:
            with _opened(path, self.compressed, "rt", "utf-8-sig") as file:
                rows = json.load(file)
        except ValueError as error:
            raise ValueError(f"{path}: not JSON: {error}.") from None
        rows = [rows] if isinstance(rows, dict) else rows
        if not rows or not isinstance(rows, list) or not all(isinstance(x, dict) for x in rows):
            raise ValueError(f"{path}: expected a list of JSON objects, one for each row.")
        return read_tasks(rows, path) if are_tasks(rows) else _object_table(rows)

    def write(self, path: Path, table: Table) -> None:
        """Write a task for each row."""
        from .label_studio import as_task

        with _opened(path, self.compressed, "wt", "utf-8") as file:
            start = "[\n"
            for row in _objects(table):
                file.write(start + json.dumps(as_task(row), ensure_ascii=False, default=str))
                start = ",\n"
            file.write("\n]\n" if start != "[\n" else "[]\n")


def _object_table(rows: Sequence[Mapping[str, object]]) -> Table:
    """Make a table of JSON objects; one may lack some of the columns."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return Table(names, [reading.arrow_column([row.get(name) for row in rows]) for name in names])


class Spreadsheet(TableFormat):
    """The first sheet of an Excel file."""

    suffixes = (".xlsx",)

    def read(self, path: Path) -> Table:
        """Read the values of all cells; the first row that is no title names the columns."""
        try:
            book = openpyxl.load_workbook(path, read_only=True, data_only=True)
            rows = [list(row) for row in book.worksheets[0].iter_rows(values_only=True)]
            book.close()
        except Exception as error:  # the reader raises errors of many kinds
            raise ValueError(f"{path}: not a readable Excel file: {error}") from None
        rows = self._below_title(rows, path)
        if not rows:
            raise ValueError(f"{path}: the first sheet is empty; its first row names the columns.")
        header = ["" if cell is None else str(cell).strip() for cell in rows[0]]
        width = max((place for place, name in enumerate(header, start=1) if name), default=0)
        reading.check_names(header[:width], path)
        cells = [[*row[:width], *[None] * (width - len(row))] for row in rows[1:]]
        columns = zip(*cells, strict=True) if cells else [()] * width
        return Table(header[:width], [reading.arrow_column(list(column)) for column in columns])

    def _below_title(self, rows: list[list[object]], path: Path) -> list[list[object]]:
        """Return the rows that are not empty, from the header on."""
        filled = [sum(cell is not None for cell in row) for row in rows]
        wide = (place for place, cells in enumerate(filled) if 2 * cells > max(filled))
        start = next(wide, 0) if self.header is None else self.header - 1
        if self.header is None and any(filled[:start]):
            note(f"{path}: row {start + 1} is taken as the header; what is above it is skipped.")
        return [row for row, cells in zip(rows[start:], filled[start:], strict=True) if cells]

    def write(self, path: Path, table: Table) -> None:
        """Write one sheet; text is never a formula, and columns of numbers are numbers."""
        kinds = openpyxl.cell.cell
        book = openpyxl.Workbook(write_only=True)
        sheet = book.create_sheet("table")

        def cell_of(value: object) -> object:
            if isinstance(value, list):
                value = self.sep.join(map(str, value))
            if value is None or isinstance(value, bool | int | float):
                return value
            text = kinds.ILLEGAL_CHARACTERS_RE.sub("", str(value))[:_LONGEST_IN_EXCEL]
            cell = kinds.WriteOnlyCell(sheet, text)
            cell.data_type = "s"
            return cell

        found = {name: _as_numbers(table.column(name)) for name in table.names}
        table = table.extended({name: cells for name, cells in found.items() if cells is not None})
        for cells in chain([table.names], _cells(table)):
            sheet.append([cell_of(cell) for cell in cells])
        book.save(path)


def _as_numbers(column: Array) -> Array | None:
    """Return a column of text that is all numbers as numbers and gaps; None for other columns."""
    if not reading.is_text(column.type):
        return None
    written = reading.texts(column).drop_null()
    style, share = reading.best_style(written, NUMBERS)
    values = reading.numbers(column, style)
    coded = pc.any(pc.match_substring_regex(written, _CODE)).as_py()
    if share < 1.0 or coded or (abs(values) >= _EXACT_IN_EXCEL).any():
        return None
    return pa.array(values, from_pandas=True)


class DelimitedText(TableFormat):
    """CSV files and their like."""

    suffixes = (".csv", ".tsv", ".txt")

    def read(self, path: Path) -> Table:
        """Read all cells as text."""
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise ArgumentError("delimiter", f"expected one character, got {self.delimiter!r}.")
        skipped = (self.header or 1) - 1
        try:
            encoding = _encoding(path, self.compressed)
            with _opened(path, self.compressed, "rt", encoding) as lines, _long_cells():
                for _ in range(skipped):
                    lines.readline()
                start = lines.tell()
                first = re.sub('"[^"]*"', "", lines.readline(2**16))
                lines.seek(start)
                delimiter = self.delimiter or max(_DELIMITERS, key=first.count)
                rows = csv.reader(lines, delimiter=delimiter, strict=True)
                table = _collect(rows, path, skipped)
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: not readable as {encoding}: {error.reason}.") from None
        except csv.Error as error:
            raise ValueError(
                f"{path}: line {rows.line_num + skipped}: {error}; check the quotes near it."
            ) from None
        table.delimiter = delimiter
        return table

    def write(self, path: Path, table: Table) -> None:
        """Write text, one line a row."""
        with _opened(path, self.compressed, "wt", "utf-8") as file:
            writer = csv.writer(_Lines(file), delimiter=self.delimiter or ",")
            rows = chain([table.names], _cells(table))
            writer.writerows(map(self._as_text, row) for row in rows)

    def _as_text(self, cell: object) -> object:
        if isinstance(cell, list):
            entries = list(map(str, cell))
            unclear = any(self.sep in entry for entry in entries)
            cell = json.dumps(entries, ensure_ascii=False) if unclear else self.sep.join(entries)
        if self.escape_formulas and isinstance(cell, str) and _is_formula(cell):
            return f"'{cell}"
        return str(cell).lower() if isinstance(cell, bool) else cell


def _opened(path: Path, compressed: bool, mode: str, encoding: str | None) -> IO[Any]:
    """Open a file that may be packed; in text, what is not of the encoding is Windows-1252."""
    text = {} if encoding is None else {"encoding": encoding, "newline": "", "errors": _MIXED}
    if compressed:
        return cast("IO[Any]", gzip.open(path, mode, **text))  # type: ignore[call-overload]
    return path.open(mode, **text)  # type: ignore[call-overload]


def _as_windows(error: UnicodeError) -> tuple[str, int]:
    """Read bytes that are no UTF-8 as Windows-1252, or Latin-1 where that has no such letter."""
    if not isinstance(error, UnicodeDecodeError) or error.encoding != "utf-8":
        raise error
    found = error.object[error.start : error.end]
    try:
        return found.decode("cp1252"), error.end
    except UnicodeDecodeError:
        return found.decode("latin-1"), error.end


_MIXED = "skpll-windows-1252"
codecs.register_error(_MIXED, _as_windows)


def _collect(rows: Reader, path: Path, skipped: int) -> Table:
    """Gather the cells by columns, a batch of rows at a time."""
    names = [name.strip() for name in next(rows, [])]
    if not any(names):
        raise ValueError(f"{path}: the file is empty; its first line has to name the columns.")
    reading.check_names(names, path)
    chunks: list[list[Array]] = [[] for _ in names]
    whole = _whole_rows(rows, len(names), path, skipped)
    while batch := list(islice(whole, reading.BATCH_ROWS)):
        for parts, cells in zip(chunks, zip(*batch, strict=True), strict=True):
            parts.append(pa.array(cells, pa.large_string()))
    return Table(names, [pa.chunked_array(parts, pa.large_string()) for parts in chunks])


def _whole_rows(rows: Reader, width: int, path: Path, skipped: int) -> Iterator[list[str]]:
    """Pass over empty lines; refuse rows of another length than the header."""
    for row in rows:
        if len(row) == width:
            yield row
        elif row:
            cells = "1 cell" if len(row) == 1 else f"{len(row)} cells"
            raise ValueError(
                f"{path}: line {rows.line_num + skipped} has {cells}, but the header has {width}; "
                "put cells with a delimiter inside into quotes, or say which line is the header."
            )


def _encoding(path: Path, compressed: bool) -> str:
    """Detect the encoding of a file, by its first bytes and by trying."""
    strange, multibyte = [], 0
    with _opened(path, compressed, "rb", None) as file:
        start = file.read(2**16)
        for mark, name in _ENCODINGS.items():
            if start.startswith(mark):
                return name
        if b"\0" in start:
            raise ValueError(f"{path}: not a text file; expected a CSV, Parquet or Excel file.")
        file.seek(0)
        for number, line in enumerate(file, start=1):
            if line.isascii():
                continue
            try:
                line.decode("utf-8")
                multibyte += 1
            except UnicodeDecodeError:
                strange.append(number)
    if strange and multibyte:
        more = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
        note(
            f"{path}: two encodings in one file: line {strange[0]}{more} is not UTF-8 and read as "
            "Windows-1252, the rest as UTF-8."
        )
    elif strange:
        note(f"{path}: not UTF-8; read as Windows-1252.")
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

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, line: str) -> None:
        """Write one row as it comes from the writer."""
        self._file.write(line.removesuffix("\r\n") + "\n")


def _is_formula(cell: str) -> bool:
    """Return whether a spreadsheet would run a cell; a negative number is none."""
    if not cell.startswith(_FORMULA_STARTS):
        return False
    try:
        float(cell)
    except ValueError:
        return True
    return False
