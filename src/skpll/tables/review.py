"""The review page: one HTML file in which a person sees the doubtful rows and decides them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpll._labels import as_objects
from skpll._progress import progress

from ._extra import jinja2
from .labels import identifiers
from .learning import Learned
from .reading import Table, text_of
from .resolution import Resolution

__all__ = ["write_review"]

MAX_ROWS = 20_000
_MAX_COLUMNS = 12
_MAX_CELL = 200
_MAX_CLASSES = 15
_COMPACT = {"ensure_ascii": False, "separators": (",", ":"), "allow_nan": False}
_CLOSE = 0.5  # two candidates are close if one has at least this share of the other's confidence


def write_review(
    path: Path,
    table: Table,
    learned: Learned,
    *,
    id_column: str | None = None,
    hidden: Sequence[str] = (),
    title: str = "Table",
    max_rows: int = MAX_ROWS,
) -> None:
    """Write the review page of a table.

    Parameters
    ----------
    path : Path
        The file.
    table : Table
        The table.
    learned : Learned
        What was learned from it.
    id_column : str, optional
        The column that names the rows.
    hidden : sequence of str
        Columns whose cells are not shown.
    title : str
        What the page is about.
    max_rows : int, default=20000
        The page shows so many rows at most, those most in need of a human eye.
    """
    resolution = learned.resolution
    doubts = _doubts(table, learned)
    rows = np.argsort(-doubts.need, kind="stable")[:max_rows]
    names = [name for name in table.names if name not in {id_column, *hidden}][:_MAX_COLUMNS]
    ids = None if id_column is None else identifiers(table, id_column)
    path.write_text(
        _page(
            title,
            {
                "title": title,
                "method": learned.model.name,
                "summary": resolution.summary(),
                "contradictions": int((doubts.model_label >= 0).sum()),
                "classes": [str(label) for label in as_objects(resolution.candidates.classes)],
                "map": _confusion_map(resolution),
                "columns": names,
                "rows": _row_entries(resolution, doubts, rows, _cells(table, names, rows), ids),
            },
        ),
        encoding="utf-8",
    )


@dataclass(frozen=True)
class _Doubts:
    """How much each row needs a human eye, and what the model says against the only candidate."""

    need: NDArray[np.float64]
    model_label: NDArray[np.int64]
    model_share: NDArray[np.float64]


def _doubts(table: Table, learned: Learned) -> _Doubts:
    """Low confidence is a doubt; so is a model that sees another label than the only candidate."""
    resolution = learned.resolution
    need = 1 - resolution.confidence
    label = np.full(len(need), -1)
    share = np.zeros(len(need))
    single, labels = resolution.certain, resolution.labels
    columns, start = learned.model.columns, 0
    with progress("Checking certain rows", len(need), shown=False) as step:
        for frame in columns.frames(table):
            certain = np.flatnonzero(single[start : start + len(frame)])
            rows = start + certain
            start += len(frame)
            step(start, "")
            if not len(rows):
                continue
            features = columns.encoder.transform(frame.iloc[certain])
            shares = learned.model.method.predict_proba(features)
            given = labels[rows]
            against = shares.argmax(axis=1) != given
            label[rows[against]] = shares.argmax(axis=1)[against]
            share[rows[against]] = shares.max(axis=1)[against]
            need[rows] = np.where(against, 1 - shares[np.arange(len(rows)), given], 0.0)
    return _Doubts(need, label, share)


def _confusion_map(resolution: Resolution) -> dict[str, Any]:
    """Count for each pair of labels the rows in which they come close to each other."""
    close = np.flatnonzero(_is_close(resolution))
    q = resolution.candidates.shape[1]
    first = resolution.labels[close].astype(np.int64)
    second = resolution.candidates.indices[resolution.runner_up[close]]
    involved = np.bincount(np.concatenate((first, second)), minlength=q)
    shown = np.sort(np.argsort(-involved, kind="stable")[: min(_MAX_CLASSES, (involved > 0).sum())])
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
    resolution: Resolution,
    doubts: _Doubts,
    rows: NDArray[np.int64],
    cells: list[list[str]],
    ids: list[str] | None,
) -> list[dict[str, Any]]:
    """Give what the page knows of each row, under one-letter names to keep it small.

    ``r`` number of the row, ``c`` candidates and ``p`` the confidences in them, ``y`` the chosen
    label, ``k`` the runner-up if it is close, ``i`` the name of the row, ``m`` the label that the
    model sees instead of the only candidate and ``q`` how probable it finds it, ``x`` the cells.
    """
    starts, indices = resolution.candidates.indptr, resolution.candidates.indices
    labels, close, runner_up = resolution.labels, _is_close(resolution), resolution.runner_up
    entries = []
    for row, texts in zip(rows.tolist(), cells, strict=True):
        span = slice(starts[row], starts[row + 1])
        entry: dict[str, Any] = {
            "r": row + 1,
            "c": indices[span].tolist(),
            "p": resolution.confidences[span].round(4).tolist(),
            "y": int(labels[row]),
            "x": texts,
        }
        if close[row]:
            entry["k"] = int(indices[runner_up[row]])
        if ids is not None:
            entry["i"] = ids[row]
        if doubts.model_label[row] >= 0:
            entry["m"] = int(doubts.model_label[row])
            entry["q"] = round(float(doubts.model_share[row]), 4)
        entries.append(entry)
    return entries


def _cells(table: Table, names: Sequence[str], rows: NDArray[np.int64]) -> list[list[str]]:
    """Read the cells of some rows as text, long ones cut."""
    cells: list[list[str]] = [[] for _ in rows]
    order = np.argsort(rows)
    ascending = rows[order]
    start = 0
    for batch in table.batches(names) if names else ():
        size = len(next(iter(batch.values())))
        first, last = np.searchsorted(ascending, [start, start + size])
        places = order[first:last]
        for name in names:
            texts = text_of(batch[name].take(ascending[first:last] - start)).to_pylist()
            for place, text in zip(places, texts, strict=True):
                cells[place].append("" if text is None else text[:_MAX_CELL])
        start += size
    return cells


def _page(title: str, data: dict[str, Any]) -> str:
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
            title=title,
            data=data,
            script=script,
            script_digest=_digest(script),
            style=style,
            style_digest=_digest(style),
        )
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
