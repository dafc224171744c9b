"""Rows that people decide: on the review page, as answers to questions, or in an audit.

The review page is one HTML file. `questions` are about the rows whose answer would help most, which
are no random sample; `audit_rows` draws one, from which `read_audit` estimates an accuracy.
"""

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
from sklearn.metrics.pairwise import euclidean_distances

from skpll._errors import ArgumentError
from skpll._extra import content_digest
from skpll._labels import as_objects
from skpll.crowd import (
    draw_audit,
    estimate_accuracy,
    plan_review,
    recalibrated,
)
from skpll.crowd._audit import moved

from ._extra import Plain, jinja2, note, pa, pd, refuse_rows, short
from .blocks import PICTURE, are_pictures, kind_of
from .columns import check_columns
from .explaining import Explanations
from .formats import written_whole
from .learning import Learned, Resolution
from .reading import POINT, RESULT_PREFIX, Array, Table, label_column, numbers, text_of
from .votes import same_labels, words_of

_MAX_POOL_ROWS = 3000  # of the most doubtful rows, which are compared with each other
SUSPECT = 0.5
"""A row is suspect if all of its candidates are wrong with at least this probability."""

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
    own, ids = set(learned.labels.columns), learned.labels.ids
    if ids is not None and kind_of(ids) == PICTURE:  # names of rows are shown if they are pictures
        own.remove(learned.labels.columns[0])
    names = [name for name in table.names if name not in own]
    most = min(_MAX_ROWS, max(_MAX_CELLS // max(len(names), 1), 25))
    # Low confidence is a doubt; so is a model that sees none of the candidates as the truth.
    missing = learned.missing()
    suspect = missing > SUSPECT
    need = np.maximum(1 - resolution.confidence, np.where(suspect, missing, 0.0))
    need = np.where(resolution.decided, -1.0, need)
    rows = np.argsort(-need, kind="stable")[:most]
    others = np.array(sorted(_neighbors(explanations, rows)), dtype=np.int64)
    kinds, cells = display.cells(table, names, np.concatenate((rows, others)))
    classes = [str(label) for label in as_objects(resolution.candidates.classes)]
    order = sorted(range(len(classes)), key=lambda code: _natural(classes[code]))
    near = zip(others.tolist(), cells[len(rows) :], strict=True)
    data = {
        "file": "decisions.csv",
        "total": table.n_rows,
        "origin": learned.origin(),
        "summary": resolution.summary(),
        "contradictions": int(suspect.sum()),
        "classes": classes,
        "order": order,
        "map": _confusion_map(resolution, order),
        "matter": {} if explanations is None else explanations.overall(),
        "annotators": [asdict(annotator) for annotator in learned.annotators()],
        "rows": _row_entries(learned, missing, rows, cells[: len(rows)], explanations),
        "near": {row + 1: {"x": x, **({} if ids is None else {"i": ids[row]})} for row, x in near},
    }
    _write_page(path, display, kinds, cells, data)


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
        The rows that `skpll.tables.review.audit_rows` drew.
    display : Display, optional
        What to show of each row.
    """
    display = display or Display()
    drawn = asked.column("row").to_pylist()
    order = sorted(range(len(drawn)), key=drawn.__getitem__)
    rows = np.array([drawn[place] - 1 for place in order])
    bare = {name: name.replace(RESULT_PREFIX, "") for name in table.names if name not in columns}
    names = [  # without what skpll says of a label, which would lead the person
        name
        for name, plain in bare.items()
        if plain not in _RESULTS and not plain.startswith("probability_")
    ]
    kinds, cells = display.cells(table, names, rows)
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
                "r": drawn[place],
                "c": [classes.index(name) for name in choices],
                "e": [column[place] or "" for column in more],
                "x": row,
            }
            for place, choices, row in zip(order, offered, cells, strict=True)
        ],
    }
    _write_page(path, display, kinds, cells, data)


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


def _neighbors(explanations: Explanations | None, rows: NDArray[np.int64]) -> set[int]:
    """Return the rows that speak for labels of rows on the page, but are not on it."""
    if explanations is None:
        return set()
    found = (near for row in rows for near in explanations.neighbors[row].values())
    return set(chain.from_iterable(found)) - set(rows.tolist())


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
    missing: NDArray[np.float64],
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
    outside = np.where(np.asarray(resolution.candidates) > 0, 0.0, learned.held_out())
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
        if missing[row] > SUSPECT:
            entry["m"] = int(outside[row].argmax())
            entry["q"] = round(float(outside[row].max()), 4)
            entry["o"] = round(float(missing[row]), 4)
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


def _write_page(
    path: Path, display: Display, kinds: dict[str, str], cells: list[list[str]], data: Plain
) -> None:
    """Fill the template. No text of the table can end the script it is in, or be run as one."""
    parts = files("skpll.tables") / "review_page"
    page, script, style = (
        (parts / name).read_text(encoding="utf-8")
        for name in ("page.html", "script.js", "style.css")
    )
    places = [place for place, kind in enumerate(kinds.values()) if kind == PICTURE]
    pictures = _pictures(path, display.folder, (row[place] for row in cells for place in places))
    columns = [{"name": name, "kind": kind} for name, kind in kinds.items()]
    environment = jinja2.Environment(autoescape=True)
    environment.policies["json.dumps_kwargs"] = _COMPACT
    text = environment.from_string(page).render(
        title=display.title,
        data={"title": display.title, "columns": columns, **data},
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

    def cells(
        self, table: Table, names: Sequence[str], rows: NDArray[np.int64]
    ) -> tuple[dict[str, str], list[list[str]]]:
        """Return what a page shows of some rows.

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
        kinds : dict of str
            How each column is shown.
        cells : list of list of str
            The cells of each row, in the order of the columns.
        """
        chosen = list(dict.fromkeys(self.show or ()))
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
        return kinds, [list(row) for row in zip(*shown, strict=True)] or [[] for _ in rows]


def _pictures(page: Path, folder: Path, cells: Iterable[str]) -> dict[str, str]:
    """Return the addresses of the pictures: data for small files, else seen from the page."""
    left = _MAX_ALL_PICTURES_BYTES
    found: dict[str, str] = {}
    lost = []
    for cell in dict.fromkeys(cells):
        file = folder / cell
        if not are_pictures([cell]):
            continue
        if _URL.match(cell) or cell.startswith("data:"):
            found[cell] = cell
        elif not os.path.isfile(file):  # noqa: PTH113 (pathlib raises for very long names)
            lost.append(cell)
        elif (size := file.stat().st_size) <= min(_MAX_PICTURE_BYTES, left):
            left -= size
            suffix, content = file.suffix.lower(), base64.b64encode(file.read_bytes()).decode()
            found[cell] = f"data:image/{_TYPES.get(suffix, suffix[1:])};base64,{content}"
        else:
            found[cell] = _seen_from(page, file)
    if lost:
        note(f"pictures that are not there: {len(lost)}, the first is {short(lost[0])}.")
    return found


def image_sources(addresses: Iterable[str]) -> str:
    """Return what a page's policy allows as a picture: data, files beside it, and named hosts."""
    sources = {"data:"}
    for address in addresses:
        if url := _URL.match(address):
            sources.add(url[1])
        elif not address.startswith("data:"):
            sources |= {"'self'", "file:"}
    return " ".join(sorted(sources))


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


def audit_rows(
    table: Table, columns: tuple[str, str], n_rows: int, *, seed: int = 0
) -> tuple[Table, dict[str, Array]]:
    """Draw rows to decide.

    Parameters
    ----------
    table : Table
        The table of labels.
    columns : two str
        Its columns of labels and confidences.
    n_rows : int
        The number of rows to draw.
    seed : int, default=0
        The seed of the draw.

    Returns
    -------
    table : Table
        ``row`` (from 1), an empty ``label`` to be filled in, ``guess``, ``confidence``,
        ``stratum`` and ``weight``, the number of rows that each drawn row stands for.
    cells : dict of Arrow arrays
        The other columns of the table, to decide by.
    """
    confidence = _confidences(table, columns)
    sample = draw_audit(confidence, n_rows, seed=seed)
    asked = {
        "row": pa.array(sample.rows + 1),
        "label": pa.nulls(len(sample.rows), pa.string()),
        "guess": text_of(table.column(columns[0])).take(pa.array(sample.rows)),
        "confidence": pa.array(confidence[sample.rows].round(4)),
        "stratum": pa.array(sample.stratum),
        "weight": pa.array(sample.weight),
    }
    return _asked(table, asked, sample.rows, columns)


def rows_to_ask(learned: Learned, n: int) -> NDArray[np.int64]:
    """Choose the rows whose answer would help most.

    An answer settles the row, and informs about similar rows. So the next row is one that is
    doubtful and has many doubtful rows near it, whose doubt is then reduced.

    Parameters
    ----------
    learned : Learned
        What was learned from the table.
    n : int
        The number of rows.

    Returns
    -------
    rows : int array
        The most helpful first.
    """
    doubt = np.maximum(1 - learned.resolution.confidence, learned.missing())
    doubt = np.where(learned.resolution.decided, 0.0, doubt)
    pool = np.argsort(-doubt, kind="stable")[: max(_MAX_POOL_ROWS, n)]
    pool = pool[doubt[pool] > 0]
    if not len(pool):
        return pool
    left = doubt[pool].copy()
    distances = euclidean_distances(learned.X[pool])
    unit = np.median(distances) or 1.0
    similarity = np.exp(-((3 * distances / unit) ** 2))
    chosen: list[int] = []
    while len(chosen) < min(n, len(pool)):
        gain = left * (similarity @ left)
        gain[chosen] = -1.0
        best = int(np.argmax(gain))
        chosen.append(best)
        left *= 1 - similarity[best]
    return pool[chosen]


def questions(table: Table, learned: Learned, n: int) -> tuple[Table, dict[str, Array]]:
    """Make a table of questions to hand to people: the label is to be filled in.

    Parameters
    ----------
    table : Table
        The table that was learned from.
    learned : Learned
        What was learned.
    n : int
        The number of questions.

    Returns
    -------
    table : Table
        ``row``, ``id``, an empty ``label``, ``candidates``, ``guess`` and its ``confidence``,
        ``suspect`` (whether none of the candidates seems to be right).
    cells : dict of Arrow arrays
        The other columns of the table, to answer by.
    """
    rows = rows_to_ask(learned, n)
    resolution, ids = learned.resolution, learned.labels.ids
    sets = resolution.candidates
    asked = {
        "row": pa.array(rows + 1),
        "id": pa.array([None if ids is None else ids[row] for row in rows], pa.string()),
        "label": pa.nulls(len(rows), pa.string()),
        "candidates": pa.array([[str(x) for x in labels] for labels in sets[rows].to_lists()]),
        "guess": label_column(sets.classes, resolution.labels[rows]),
        "confidence": pa.array(resolution.confidence[rows].round(3)),
        "suspect": pa.array(learned.missing()[rows] > SUSPECT),
    }
    return _asked(table, asked, rows, learned.labels.columns)


def _asked(
    table: Table, asked: dict[str, Array], rows: NDArray[np.integer], left_out: Sequence[str]
) -> tuple[Table, dict[str, Array]]:
    """Return a table of what is asked, and the other columns of these rows, to answer by."""
    rest = [name for name in table.names if name not in {*asked, *left_out}]
    drawn = table.take(rest, rows)
    cells = {name: text_of(drawn[name]) for name in rest}
    found = Table(list(asked), list(asked.values()))
    found.delimiter = table.delimiter
    return found, cells


def read_audit(
    table: Table, columns: tuple[str, str], decisions: Table, target: float
) -> tuple[Plain, NDArray[np.float64]]:
    """Evaluate decisions on rows that `audit_rows` drew.

    Parameters
    ----------
    table : Table
        The table of labels.
    columns : two str
        Its columns of labels and confidences.
    decisions : Table
        The drawn rows with the column ``label`` filled in; empty where nothing was decided.
    target : float
        The accuracy that a review should lead to.

    Returns
    -------
    summary : dict
        The accuracy with its interval, and how many rows to review for the target accuracy: by the
        estimate, and if the accuracy is at the lower end of its interval.
    corrected : array of shape (n,)
        The probability that each label is right, by the decisions.
    """
    lacking = [
        name for name in ("row", "label", "stratum", "weight") if name not in decisions.names
    ]
    if lacking:
        raise ArgumentError(
            "decisions",
            f"there is no column {short(lacking[0])}. Only rows drawn by skpll audit "
            "are a random sample: decisions on rows that were chosen because they are "
            "uncertain say nothing of the others.",
        )
    confidence = _confidences(table, columns)
    rows = _drawn_rows(decisions, table.n_rows)
    said = words_of(decisions.column("label"), ("",))
    guess = words_of(table.column(columns[0]), ("",))[rows]
    if "guess" in decisions.names:
        other = ~same_labels(words_of(decisions.column("guess"), ("",)), guess)
        problem = "has another guess than the table's label; is it another table?"
        refuse_rows(other, "decisions", problem)
    decided = ~pd.isna(said)
    if not decided.any():
        raise ArgumentError("decisions", "the column 'label' is empty; fill in the right labels.")
    if not decided.all():
        note(
            f"{int((~decided).sum())} of {len(decided)} drawn rows are not decided. The interval "
            "holds if these are no harder than the others."
        )
    right = same_labels(said[decided], guess[decided])
    stratum, weight = (numbers(decisions.column(name)) for name in ("stratum", "weight"))
    _, place = np.unique(stratum, return_inverse=True)
    sizes = np.bincount(place, weight)
    if abs(sizes.sum() - table.n_rows) > 0.5 + 1e-3 * table.n_rows:
        raise ArgumentError(
            "decisions",
            f"the drawn rows stand for {sizes.sum():.0f} rows, but the table has "
            f"{table.n_rows}; give the table and all rows that were drawn from it.",
        )
    found = estimate_accuracy(right, place[decided], sizes)
    checked = confidence[rows[decided]]
    corrected = recalibrated(confidence, checked, right, weight[decided])
    plan, careful = (
        plan_review(confidence, moved(corrected, accuracy), target)
        for accuracy in (found.accuracy, found.low)
    )
    return {
        "rows": len(confidence),
        "decided": found.n_decided,
        "accuracy": found.accuracy,
        "low": found.low,
        "high": found.high,
        "believed": float(confidence.mean()),
        "target": target,
        "review": {"rows": plan.n_rows, "below": _finite(plan.below), "accuracy": plan.accuracy},
        "review_careful": {"rows": careful.n_rows, "below": _finite(careful.below)},
    }, corrected


def _finite(limit: float) -> float | None:
    """Return a limit, or None if every confidence is below it; JSON has no infinity."""
    return limit if np.isfinite(limit) else None


def _confidences(table: Table, columns: tuple[str, str]) -> NDArray[np.float64]:
    check_columns(table, columns[:1], "label")
    check_columns(table, columns[1:], "confidence")
    values = numbers(table.column(columns[1]))
    wrong = ~((values >= 0) & (values <= 1 + 1e-9))
    problem = f"of column {short(columns[1])} has no number between 0 and 1."
    refuse_rows(wrong, "confidence", problem)
    return values


def _drawn_rows(decisions: Table, n_rows: int) -> NDArray[np.int64]:
    rows = numbers(decisions.column("row"), POINT)
    wrong = ~((rows >= 1) & (rows <= n_rows))
    refuse_rows(wrong, "decisions", f"is about no row of the table, which has {n_rows}.")
    found = rows.astype(np.int64) - 1
    if len(np.unique(found)) < len(found):
        raise ArgumentError("decisions", "a row of the table is there twice; keep one of them.")
    return found
