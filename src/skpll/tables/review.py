"""The review page: one HTML file in which a person sees the doubtful rows and decides them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from skpll._extra import content_digest
from skpll._labels import as_objects

from ._extra import Plain, jinja2
from .asking import SUSPECT
from .explaining import Explanations
from .learning import Learned
from .reading import Table, text_of
from .resolution import Resolution
from .writing import written_whole

MAX_ROWS = 20_000
_MAX_CELLS = 1_000_000
_MAX_CELL = 1000
_MAX_CLASSES = 15
_COMPACT = {"ensure_ascii": False, "separators": (",", ":"), "allow_nan": False}
_CLOSE = 0.5  # two candidates are close if one has at least this share of the other's confidence


def write_review(
    path: Path,
    table: Table,
    learned: Learned,
    *,
    title: str = "Table",
    max_rows: int = MAX_ROWS,
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
    title : str
        What the page is about.
    max_rows : int, default=20000
        The maximum number of rows on the page, least certain first; fewer if they have very many
        cells.
    explanations : Explanations, optional
        Why the rows have their labels.
    """
    resolution = learned.resolution
    doubts = _doubts(learned)
    names = [name for name in table.names if name not in learned.labels.columns]
    most = min(max_rows, max(_MAX_CELLS // max(len(names), 1), 25))
    rows = np.argsort(-doubts.need, kind="stable")[:most]
    classes = [str(label) for label in as_objects(resolution.candidates.classes)]
    order = sorted(range(len(classes)), key=lambda code: _natural(classes[code]))
    entries = _row_entries(learned, doubts, rows, _cells(table, names, rows), explanations)
    data = {
        "title": title,
        "method": learned.model.name,
        "summary": resolution.summary(),
        "contradictions": int((doubts.model_label >= 0).sum()),
        "classes": classes,
        "order": order,
        "map": _confusion_map(resolution, order),
        "columns": names,
        "matter": {} if explanations is None else explanations.overall(),
        "annotators": [asdict(annotator) for annotator in learned.annotators()],
        "rows": entries,
    }
    with written_whole(path) as temporary:
        temporary.write_text(_page(data), encoding="utf-8")


@dataclass(frozen=True)
class _Doubts:
    """How uncertain each row is, and the model's label where all candidates seem wrong."""

    need: NDArray[np.float64]
    model_label: NDArray[np.int64]
    model_share: NDArray[np.float64]


def _doubts(learned: Learned) -> _Doubts:
    """Low confidence is a doubt; so is a model that sees none of the candidates as the truth."""
    resolution, missing, shares = learned.resolution, learned.missing(), learned.held_out()
    candidates = resolution.candidates
    outside = np.where(np.asarray(candidates) > 0, 0.0, shares)
    suspect = missing > SUSPECT
    need = np.maximum(1 - resolution.confidence, np.where(suspect, missing, 0.0))
    if resolution.decided is not None:
        need = np.where(resolution.decided, -1.0, need)
    label = np.where(suspect, outside.argmax(axis=1), -1)
    return _Doubts(need, label, outside.max(axis=1))


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
    q = resolution.candidates.shape[1]
    first = resolution.labels[close].astype(np.int64)
    second = resolution.candidates.indices[resolution.runner_up[close]]
    involved = np.bincount(np.concatenate((first, second)), minlength=q)
    most = set(np.argsort(-involved, kind="stable")[: min(_MAX_CLASSES, (involved > 0).sum())])
    shown = np.array([code for code in order if code in most], dtype=np.int64)
    place = np.full(q, -1)
    place[shown] = np.arange(len(shown))
    counts = np.zeros((len(shown), len(shown)), dtype=np.int64)
    both = (place[first] >= 0) & (place[second] >= 0)
    np.add.at(counts, (place[first[both]], place[second[both]]), 1)
    return {"classes": shown.tolist(), "counts": (counts + counts.T).tolist()}


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
    model sees instead of the candidates and ``q`` how probable it finds it, ``v`` who voted for
    which candidate, ``d`` whether the row was decided before, ``x`` the cells; ``n`` the rows that
    speak for each candidate and ``w`` the columns that matter.
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
        if votes is not None:
            entry["v"] = votes.by_row(row)
        if resolution.decided is not None and resolution.decided[row]:
            entry["d"] = 1
        if ids is not None:
            entry["i"] = ids[row]
        if explanations is not None:
            near = explanations.neighbors[row].items()
            entry["n"] = {code: list(map(explanations.called, others)) for code, others in near}
            entry["w"] = explanations.matter(row)
        entries.append(entry)
    return entries


def _cells(table: Table, names: Sequence[str], rows: NDArray[np.int64]) -> list[list[str]]:
    """Read the cells of some rows as text, long ones cut."""
    order = np.argsort(rows)
    columns = table.take(names, rows[order])
    texts = [text_of(columns[name]).take(np.argsort(order)).to_pylist() for name in names]
    found = [[_cut(text or "") for text in cells] for cells in zip(*texts, strict=True)]
    return found or [[] for _ in rows]


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_CELL else f"{text[:_MAX_CELL]}…"


def _page(data: Plain) -> str:
    """Fill the template. No text of the table can end the script it is in, or be run as one."""
    parts = files("skpll.tables") / "review_page"
    page, script, style = (
        (parts / name).read_text(encoding="utf-8")
        for name in ("page.html", "script.js", "style.css")
    )
    environment = jinja2().Environment(autoescape=True)
    environment.policies["json.dumps_kwargs"] = _COMPACT
    return str(
        environment.from_string(page).render(
            title=data["title"],
            data=data,
            script=script,
            script_digest=content_digest(script),
            style=style,
            style_digest=content_digest(style),
        )
    )
