"""Writing files so that nobody ever sees half of one: beside first, then renamed."""

from __future__ import annotations

import csv
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from skpll._progress import progress

from ._extra import arrow, parquet
from .reading import Array, Table

__all__ = ["check_writable", "write_table", "written_whole"]

_GROUP_BATCHES = 4  # batches of rows that make a row group of a Parquet file
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Write a file under another name, and rename it when it is complete.

    Parameters
    ----------
    path : Path
        What the file is to be called.

    Yields
    ------
    beside : Path
        Where to write. If anything goes wrong, an interrupt included, it is removed.
    """
    check_writable(path)
    handle, name = tempfile.mkstemp(prefix=f".{path.name[:40]}.", dir=path.parent)
    os.close(handle)
    beside = Path(name)
    try:
        yield beside
        beside.chmod(0o666 & ~_umask())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """See early that a file can be written, before the work is done in vain."""
    if path.is_dir():
        raise ValueError(f"{path}: is a folder; name a file.")
    if not path.parent.is_dir():
        raise ValueError(f"{path}: there is no folder {path.parent}.")


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
    batches, names = _rows(table, added), [*table.names, *added]
    if file_format.lower() in (".parquet", ".pq"):
        _write_parquet(path, batches, names)
        return
    delimiter = "\t" if file_format.lower() == ".tsv" else ","
    _write_text(path, batches, names, delimiter=delimiter, sep=sep, escape_formulas=escape_formulas)


def _rows(table: Table, added: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
    start = 0
    with progress("Writing", table.n_rows, shown=False) as step:
        for batch in table.batches(table.names):
            size = len(next(iter(batch.values())))
            yield batch | {name: column.slice(start, size) for name, column in added.items()}
            start += size
            step(start, "")


def _write_parquet(path: Path, batches: Iterator[dict[str, Array]], names: Sequence[str]) -> None:
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


def _write_text(
    path: Path,
    batches: Iterator[dict[str, Array]],
    names: Sequence[str],
    *,
    delimiter: str,
    sep: str,
    escape_formulas: bool,
) -> None:
    def as_text(cell: Any) -> Any:
        if isinstance(cell, list):
            entries = list(map(str, cell))
            unclear = any(sep in entry for entry in entries)
            cell = json.dumps(entries, ensure_ascii=False) if unclear else sep.join(entries)
        if escape_formulas and isinstance(cell, str) and _is_formula(cell):
            return f"'{cell}"
        return str(cell).lower() if isinstance(cell, bool) else cell

    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(_Lines(file), delimiter=delimiter)
        writer.writerow(map(as_text, names))
        for batch in batches:
            columns = [map(as_text, batch[name].to_pylist()) for name in names]
            writer.writerows(zip(*columns, strict=True))


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


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
