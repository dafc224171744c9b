"""What a page shows of a row: its text in full, its pictures, and the columns asked for."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from ._extra import Plain, note, short
from .blocks import are_pictures, is_prose
from .columns import check_columns
from .reading import Table, text_of

TEXT, PICTURE, CELL, HIDDEN = "text", "picture", "cell", ""
"""How a column is shown: as a paragraph, a picture, a small cell, or on request only."""

_TYPES = {".jpg": "jpeg", ".svg": "svg+xml"}
_URL = re.compile(r"(https?://[\w.-]+(?::\d+)?)/\S+", re.ASCII)
_LOOKED_AT = 1000  # cells that say what a column is
_MAX_CELLS_SHOWN = 6  # where a row has at most this number of other cells, all are shown
_MAX_TEXT = 20_000
_MAX_CELL = 1000
_MAX_PICTURE_BYTES = 200_000
_MAX_ALL_PICTURES_BYTES = 20_000_000


@dataclass(frozen=True)
class Display:
    """What to show of each row, and where its pictures are.

    Parameters
    ----------
    show : sequence of str, optional
        The columns that every card has. By default those with text or pictures, and all others if
        they are few.
    folder : Path
        The folder from which the paths of pictures start.
    title : str
        What the page is about.
    """

    show: Sequence[str] | None = None
    folder: Path = field(default_factory=Path)
    title: str = "Table"

    def content(self, table: Table, names: Sequence[str], rows: NDArray[np.int64]) -> Content:
        """Return what a page knows of some rows.

        Parameters
        ----------
        table : Table
            The table.
        names : sequence of str
            The columns that may be shown, if the user has not chosen others.
        rows : int array
            The rows, in the order of the page.

        Returns
        -------
        Content
        """
        chosen = list(self.show or ())
        check_columns(table, chosen, "show")
        every = [*chosen, *(name for name in names if name not in chosen)]
        cells = _texts(table, every, rows)
        kinds = {name: kind_of(cells[name]) for name in every}
        others = [name for name in every if not kinds[name]]
        if self.show is not None:
            kinds = {name: (kinds[name] or CELL) if name in chosen else HIDDEN for name in every}
        elif len(others) <= _MAX_CELLS_SHOWN:
            kinds |= dict.fromkeys(others, CELL)
        shown = [[_cut(text, kinds[name]) for text in cells[name]] for name in every]
        by_row = [list(row) for row in zip(*shown, strict=True)] or [[] for _ in rows]
        return Content(kinds, by_row, self.folder)


@dataclass(frozen=True)
class Content:
    """What a page knows of some rows.

    Parameters
    ----------
    kinds : dict of str
        How each column is shown.
    cells : list of list of str
        The cells of each row, in the order of the columns.
    folder : Path
        The folder from which the paths of pictures start.
    """

    kinds: dict[str, str]
    cells: list[list[str]]
    folder: Path

    @property
    def columns(self) -> list[Plain]:
        """The columns, for the page."""
        return [{"name": name, "kind": kind} for name, kind in self.kinds.items()]

    def pictures(self, page: Path) -> dict[str, str]:
        """Return the addresses of the pictures: data for small files, else seen from the page."""
        left = _MAX_ALL_PICTURES_BYTES
        found: dict[str, str] = {}
        lost = []
        for cell in self._picture_cells():
            file = self.folder / cell
            if _URL.match(cell) or cell.startswith("data:"):
                found[cell] = cell
            elif not os.path.isfile(file):  # noqa: PTH113 (pathlib raises for very long names)
                lost.append(cell)
            elif (size := file.stat().st_size) <= min(_MAX_PICTURE_BYTES, left):
                left -= size
                found[cell] = _data_of(file)
            else:
                found[cell] = _seen_from(page, file)
        if lost:
            note(f"pictures that are not there: {len(lost)}, the first is {short(lost[0])}.")
        return found

    def _picture_cells(self) -> Iterable[str]:
        places = [place for place, kind in enumerate(self.kinds.values()) if kind == PICTURE]
        return dict.fromkeys(
            row[place] for row in self.cells for place in places if are_pictures([row[place]])
        )


def image_sources(addresses: Iterable[str]) -> str:
    """Return what a page's policy allows as a picture: data, files beside it, and named hosts."""
    sources = {"data:"}
    for address in addresses:
        if url := _URL.match(address):
            sources.add(url[1])
        elif not address.startswith("data:"):
            sources |= {"'self'", "file:"}
    return " ".join(sorted(sources))


def kind_of(cells: Sequence[str]) -> str:
    """Return whether the cells of a column are pictures, text, or neither."""
    filled = [cell for cell in cells[:_LOOKED_AT] if cell]
    if are_pictures(filled):
        return PICTURE
    return TEXT if is_prose(filled) else HIDDEN


def _texts(table: Table, names: Sequence[str], rows: NDArray[np.int64]) -> dict[str, list[str]]:
    """Read the cells of some rows as text."""
    order = np.argsort(rows)
    columns = table.take(names, rows[order])
    back = np.argsort(order)
    return {
        name: [text or "" for text in text_of(columns[name]).take(back).to_pylist()]
        for name in names
    }


def _data_of(file: Path) -> str:
    suffix = file.suffix.lower()
    kind = _TYPES.get(suffix, suffix[1:])
    return f"data:image/{kind};base64,{base64.b64encode(file.read_bytes()).decode()}"


def _seen_from(page: Path, file: Path) -> str:
    """Return the address of a file as a page in another folder has to write it."""
    try:
        return quote(Path(os.path.relpath(file, page.parent)).as_posix())
    except ValueError:  # on another drive
        return file.resolve().as_uri()


def _cut(text: str, kind: str) -> str:
    most = _MAX_CELL if kind == HIDDEN else _MAX_TEXT
    if len(text) <= most or kind == PICTURE:
        return text
    return f"{text[:most]}… ({len(text) - most} more characters)"
