"""The review page: one HTML file in which a person sees rows and decides them."""

from __future__ import annotations

import base64
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from itertools import chain
from pathlib import Path
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

from skpll._extra import content_digest
from skpll._labels import as_objects

from ._extra import Plain, jinja2, note, short
from .auditing import SUSPECT
from .blocks import PICTURE, are_pictures, kind_of
from .columns import check_columns
from .explaining import Explanations
from .formats import written_whole
from .learning import Learned, Resolution
from .reading import RESULT_PREFIX, Table, text_of

CELL, HIDDEN = "cell", ""
"""How a column is shown that is no text and no picture: as a small cell, or on request only."""

_TYPES = {".jpg": "jpeg", ".svg": "svg+xml"}
_URL = re.compile(r"(https?://[\w.-]+(?::\d+)?)/\S+", re.ASCII)
_MAX_CELLS_SHOWN = 6  # where a row has at most this number of other cells, all are shown
_MAX_TEXT = 20_000
_MAX_CELL = 1000
_MAX_PICTURE_BYTES = 200_000
_MAX_ALL_PICTURES_BYTES = 20_000_000
_MAX_ROWS = 20_000  # on the page, the least certain first; fewer if they have very many cells
_MAX_CELLS = 1_000_000
_MAX_CLASSES = 15
_MAX_OFFERED = 12  # labels to choose from in an audit
_RESULTS = {
    *("runner_up", "unanimous", "decided", "like_label", "like_runner_up"),
    *("columns_that_matter", "words_that_matter", "checked_confidence"),
}
_COMPACT = {"ensure_ascii": False, "separators": (",", ":"), "allow_nan": False}
_CLOSE = 0.5  # two candidates are close if one has at least this share of the other's confidence


def write_review(
    path: Path,
    table: Table,
    learned: Learned,
    *,
    display: Display | None = None,
    explanations: Explanations | None = None,
) -> None:
    """Write the review page of a table; the file is whole or not there.

    Parameters
    ----------
    path : Path
        The file.
    table : Table
        The table.
    learned : Learned
        What was learned from it.
    display : Display, optional
        What to show of each row.
    explanations : Explanations, optional
        Why the rows have their labels.
    """
    display = display or Display()
    resolution = learned.resolution
    doubts = _doubts(learned)
    names = _cell_names(table, learned)
    most = min(_MAX_ROWS, max(_MAX_CELLS // max(len(names), 1), 25))
    rows = np.argsort(-doubts.need, kind="stable")[:most]
    others = np.array(sorted(_neighbors(explanations, rows)), dtype=np.int64)
    content = display.content(table, names, np.concatenate((rows, others)))
    classes = [str(label) for label in as_objects(resolution.candidates.classes)]
    order = sorted(range(len(classes)), key=lambda code: _natural(classes[code]))
    ids = learned.labels.ids
    near = zip(others.tolist(), content.cells[len(rows) :], strict=True)
    data = {
        "file": "decisions.csv",
        "total": table.n_rows,
        "origin": learned.origin(),
        "summary": resolution.summary(),
        "contradictions": int((doubts.model_label >= 0).sum()),
        "classes": classes,
        "order": order,
        "map": _confusion_map(resolution, order),
        "matter": {} if explanations is None else explanations.overall(),
        "annotators": [asdict(annotator) for annotator in learned.annotators()],
        "rows": _row_entries(learned, doubts, rows, content.cells[: len(rows)], explanations),
        "near": {row + 1: {"x": x, **({} if ids is None else {"i": ids[row]})} for row, x in near},
    }
    _write_page(path, display.title, content, data)


def write_check(
    path: Path,
    table: Table,
    columns: tuple[str, str],
    asked: Table,
    *,
    display: Display | None = None,
) -> None:
    """Write the page on which a person decides the rows of an audit.

    It has the rows in the order of the table, and nothing of what the model says of them.

    Parameters
    ----------
    path : Path
        The file.
    table : Table
        The table of labels.
    columns : two str
        Its columns of labels and confidences.
    asked : Table
        The rows that `skpll.tables.auditing.audit_rows` drew.
    display : Display, optional
        What to show of each row.
    """
    display = display or Display()
    numbers = asked.column("row").to_pylist()
    order = sorted(range(len(numbers)), key=numbers.__getitem__)
    rows = np.array([numbers[place] - 1 for place in order])
    names = [name for name in table.names if name not in columns and not _is_result(name)]
    content = display.content(table, names, rows)
    counts = Counter(cell for cell in text_of(table.column(columns[0])).to_pylist() if cell)
    classes = sorted(counts, key=_natural)
    extra = [name for name in asked.names if name not in ("row", "label")]
    more = [text_of(asked.column(name)).to_pylist() for name in extra]
    offered = _offered(table, columns[0], rows, counts)
    data = {
        "audit": True,
        "file": path.with_suffix(".csv").name,
        "total": table.n_rows,
        "classes": classes,
        "order": list(range(len(classes))),
        "extra": extra,
        "rows": [
            {
                "r": numbers[place],
                "c": [classes.index(name) for name in choices],
                "e": [column[place] or "" for column in more],
                "x": cells,
            }
            for place, choices, cells in zip(order, offered, content.cells, strict=True)
        ],
    }
    _write_page(path, display.title, content, data)


def _is_result(name: str) -> bool:
    """Return whether a column is what skpll says of a label, which would lead the person."""
    bare = name.replace(RESULT_PREFIX, "")
    return bare in _RESULTS or bare.startswith("probability_")


def _offered(
    table: Table, column: str, rows: NDArray[np.int64], counts: Counter[str]
) -> Iterator[list[str]]:
    """Yield the labels to choose from in each row, in an order that says nothing of the guess.

    All, if they are few; else the label and the runner-up among the most frequent ones.
    """
    frequent = [name for name, _ in counts.most_common(_MAX_OFFERED)]
    second = f"{column.removesuffix('label')}runner_up"
    own = [text_of(table.column(name)) for name in (column, second) if name in table.names]
    for row in rows.tolist():
        guesses = [str(name) for cells in own if (name := cells[row].as_py()) in counts]
        several = dict.fromkeys([*guesses, *frequent])
        yield sorted(list(several)[:_MAX_OFFERED], key=_natural)


def _cell_names(table: Table, learned: Learned) -> list[str]:
    """Return the columns that are no labels; names of rows only if they are pictures."""
    known = learned.labels
    own = set(known.columns)
    if known.ids is not None and kind_of(known.ids) == PICTURE:
        own.remove(known.columns[0])
    return [name for name in table.names if name not in own]


def _neighbors(explanations: Explanations | None, rows: NDArray[np.int64]) -> set[int]:
    """Return the rows that speak for labels of rows on the page, but are not on it."""
    if explanations is None:
        return set()
    found = (near for row in rows for near in explanations.neighbors[row].values())
    return set(chain.from_iterable(found)) - set(rows.tolist())


@dataclass(frozen=True)
class _Doubts:
    """How uncertain each row is, and the model's label where all candidates seem wrong."""

    need: NDArray[np.float64]
    missing: NDArray[np.float64]
    model_label: NDArray[np.int64]
    model_share: NDArray[np.float64]


def _doubts(learned: Learned) -> _Doubts:
    """Low confidence is a doubt; so is a model that sees none of the candidates as the truth."""
    resolution, missing, shares = learned.resolution, learned.missing(), learned.held_out()
    candidates = resolution.candidates
    outside = np.where(np.asarray(candidates) > 0, 0.0, shares)
    suspect = missing > SUSPECT
    need = np.maximum(1 - resolution.confidence, np.where(suspect, missing, 0.0))
    need = np.where(resolution.decided, -1.0, need)
    label = np.where(suspect, outside.argmax(axis=1), -1)
    return _Doubts(need, missing, label, outside.max(axis=1))


def _natural(name: str) -> list[tuple[int, float, str]]:
    """Sort numbers inside of names by their value."""
    parts = re.split(r"(\d+(?:\.\d+)?)", name)
    return [
        (0, float(part), "") if place % 2 else (1, 0.0, part)
        for place, part in enumerate(parts)
        if part
    ]


def _confusion_map(resolution: Resolution, order: Sequence[int]) -> Plain:
    """Count for each pair of labels the rows in which they come close to each other."""
    close = np.flatnonzero(_is_close(resolution))
    first = resolution.labels[close]
    second = resolution.candidates.indices[resolution.runner_up[close]]
    pairs = np.concatenate((first, second)), np.concatenate((second, first))
    involved = np.bincount(pairs[0], minlength=len(order))
    most = set(np.argsort(-involved, kind="stable")[: min(_MAX_CLASSES, (involved > 0).sum())])
    shown = [code for code in order if code in most]
    counts = confusion_matrix(*pairs, labels=shown).tolist() if shown else []
    return {"classes": shown, "counts": counts}


def _is_close(resolution: Resolution) -> NDArray[np.bool_]:
    runner_up = resolution.runner_up
    return (runner_up >= 0) & (resolution.confidences[runner_up] >= _CLOSE * resolution.confidence)


def _row_entries(
    learned: Learned,
    doubts: _Doubts,
    rows: NDArray[np.int64],
    cells: list[list[str]],
    explanations: Explanations | None,
) -> list[Plain]:
    """Return what the page knows of each row, under one-letter names to keep it small.

    ``r`` number of the row, ``c`` candidates and ``p`` the confidences in them, ``y`` the chosen
    label, ``k`` the runner-up if it is close, ``i`` the name of the row, ``m`` the label that the
    model sees instead of the candidates, ``q`` how probable it finds it and ``o`` how probable
    it is that all candidates are wrong, ``v`` who voted for which candidate, ``d`` whether the row
    was decided before, ``x`` the cells; ``n`` the numbers of the rows that speak for each candidate
    and ``w`` and ``s`` the columns and words that matter.
    """
    resolution, votes, ids = learned.resolution, learned.labels.votes, learned.labels.ids
    starts, indices = resolution.candidates.indptr, resolution.candidates.indices
    labels, close, runner_up = resolution.labels, _is_close(resolution), resolution.runner_up
    entries = []
    for row, texts in zip(rows.tolist(), cells, strict=True):
        span = slice(starts[row], starts[row + 1])
        entry: Plain = {
            "r": row + 1,
            "c": indices[span].tolist(),
            "p": resolution.confidences[span].round(4).tolist(),
            "y": int(labels[row]),
            "x": texts,
        }
        if close[row]:
            entry["k"] = int(indices[runner_up[row]])
        if doubts.model_label[row] >= 0:
            entry["m"] = int(doubts.model_label[row])
            entry["q"] = round(float(doubts.model_share[row]), 4)
            entry["o"] = round(float(doubts.missing[row]), 4)
        if votes is not None:
            entry["v"] = votes.by_row(row)
        if resolution.decided[row]:
            entry["d"] = 1
        if ids is not None:
            entry["i"] = ids[row]
        if explanations is not None:
            near = explanations.neighbors[row].items()
            entry["n"] = {code: [other + 1 for other in others] for code, others in near}
            entry["w"] = explanations.matter(row)
            entry["s"] = explanations.words[row] if explanations.words else []
        entries.append(entry)
    return entries


def _write_page(path: Path, title: str, content: Content, data: Plain) -> None:
    """Fill the template. No text of the table can end the script it is in, or be run as one."""
    parts = files("skpll.tables") / "review_page"
    page, script, style = (
        (parts / name).read_text(encoding="utf-8")
        for name in ("page.html", "script.js", "style.css")
    )
    pictures = content.pictures(path)
    columns = [{"name": name, "kind": kind} for name, kind in content.kinds.items()]
    environment = jinja2.Environment(autoescape=True)
    environment.policies["json.dumps_kwargs"] = _COMPACT
    text = environment.from_string(page).render(
        title=title,
        data={"title": title, "columns": columns, **data},
        pictures=pictures,
        images=image_sources(pictures.values()),
        script=script,
        script_digest=content_digest(script),
        style=style,
        style_digest=content_digest(style),
    )
    with written_whole(path) as temporary:
        temporary.write_text(str(text), encoding="utf-8")


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
        cells = {
            name: [text or "" for text in text_of(column).to_pylist()]
            for name, column in zip(every, table.take(every, rows).columns, strict=True)
        }
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

    def pictures(self, page: Path) -> dict[str, str]:
        """Return the addresses of the pictures: data for small files, else seen from the page."""
        left = _MAX_ALL_PICTURES_BYTES
        found: dict[str, str] = {}
        lost = []
        places = [place for place, kind in enumerate(self.kinds.values()) if kind == PICTURE]
        shown = dict.fromkeys(row[place] for row in self.cells for place in places)
        for cell in filter(_is_picture, shown):
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


def _is_picture(cell: str) -> bool:
    return are_pictures([cell])


def image_sources(addresses: Iterable[str]) -> str:
    """Return what a page's policy allows as a picture: data, files beside it, and named hosts."""
    sources = {"data:"}
    for address in addresses:
        if url := _URL.match(address):
            sources.add(url[1])
        elif not address.startswith("data:"):
            sources |= {"'self'", "file:"}
    return " ".join(sorted(sources))


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
