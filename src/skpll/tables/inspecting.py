"""What a table was taken for, and columns that give the answer away, before anything is learned."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self, Unpack

import numpy as np
from numpy.typing import NDArray

from skpll._labels import as_objects
from skpll.engine.limits import LIMITS

from ._extra import Plain, note, pd, short
from .blocks import TEXT
from .columns import VECTOR, Column, ColumnOptions, excluding, look
from .labels import Labels, find_separator
from .reading import GAPS, Table, text_of
from .votes import plain_label, same_labels, words_of

ALL_COMPARED = 5000
"""In tables with at most this number of rows, all rows are compared with each other."""

FEW_LANDMARKS = 500
"""The number of rows that those of longer tables without text and vectors are compared with."""

_LOOKED_AT = 2000  # cells that say whether a column has candidates
_MIN_ROWS = 10  # with fewer rows to compare, nothing is noted
_MIN_LABELS = 0.9  # share of the cells of a copy that are labels
_MIN_EXCESS = 0.3  # of agreement with the votes over chance
_MIN_AGREEMENT = 0.6
_EQUAL = 0.98  # share of rows in which a copy of the truth equals it
_SEPARATORS = re.compile(r"[|;,/\t\n]+")


@dataclass(frozen=True)
class Inspection:
    """What a table was taken for.

    Parameters
    ----------
    rows : int
        The number of rows.
    columns : list of Column
        What each column was taken for, and why.
    labels : Labels or None
        What is known of the labels, where it was said which column has them.
    """

    rows: int
    columns: list[Column]
    labels: Labels | None

    @classmethod
    def of(cls, table: Table, labels: Labels | None, **options: Unpack[ColumnOptions]) -> Self:
        """Look at the columns of a table, and at what is known of the labels of its rows."""
        columns, _ = look(table, excluding(options, () if labels is None else labels.columns))
        if labels is not None:
            note_copied_votes(table, [column.name for column in columns if column.used], labels)
        return cls(table.n_rows, columns, labels)

    def summary(self) -> Plain:
        """Return the same in plain values."""
        used = [column for column in self.columns if column.used]
        width = sum(column.width for column in used)
        blocks = any(column.kind in (TEXT, VECTOR) for column in used)
        labels = None if self.labels is None else self.labels.summary()
        return {
            "rows": self.rows,
            "features": len(used),
            "columns": [
                {
                    "name": column.name,
                    "kind": column.kind,
                    "used": column.used,
                    "becomes": column.becomes(),
                    "why": column.reason,
                    "missing": round(column.missing, 4),
                    "values": column.summary(),
                }
                for column in self.columns
            ],
            "labels": labels,
            "seconds": None
            if labels is None
            else seconds_needed(
                self.rows, width, labels["labels"], LIMITS.landmarks if blocks else FEW_LANDMARKS
            ),
        }


def seconds_needed(n: int, d: int, q: int, n_landmarks: int = FEW_LANDMARKS) -> float:
    """Estimate how long PL-LOO takes for n rows, d features and q labels, in seconds of one core.

    `python -m benchmarks.tables` compares it with what it takes; it is good to a factor of two.
    """
    rows = min(n, 2000)
    choosing = 1.1e-6 * rows**2 + 2e-9 * rows * q * 800
    compared = n if n <= ALL_COMPARED else n_landmarks
    comparing = 8e-11 * n * compared**2
    return 2.5 + choosing + comparing + 1.2e-4 * n + 2e-6 * n * d + 1.5e-8 * n * q * 15


def candidate_columns(table: Table) -> list[str]:
    """Return the columns that seem to hold candidate labels."""
    found = []
    for name in table.names:
        cells = text_of(table.column(name).slice(0, _LOOKED_AT)).to_pylist()
        different = {cell for cell in cells if cell}
        sep = find_separator(sorted(different)) if len(different) <= len(cells) else ""
        if sep and sum(sep in cell for cell in different) >= len(different) / 10:
            parts = {part.strip() for cell in different for part in cell.split(sep)}
            if len(parts) <= max(20, len(cells) / 5):
                found.append(name)
    return found


def note_copied_votes(table: Table, names: Iterable[str], labels: Labels) -> None:
    """Note feature columns that have labels as their cells, and agree with the votes.

    Parameters
    ----------
    table : Table
        The table.
    names : iterable of str
        Its feature columns.
    labels : Labels
        What is known of the labels; without votes nothing is noted.
    """
    if labels.votes is None:
        return
    counts = labels.votes.found.votes.counts
    top = counts.max(axis=1)
    clear = (top > 0) & ((counts == top[:, None]).sum(axis=1) == 1)
    majority = np.where(clear, counts.argmax(axis=1), -1)
    code_of = {
        plain_label(label): code for code, label in enumerate(as_objects(labels.candidates.classes))
    }
    for name in names:
        share = _agreement(words_of(table.column(name), GAPS), code_of, majority)
        if share is not None:
            _note_leak(
                name,
                "has labels as its cells, and they agree with the votes in "
                f"{share:.0%} of the rows. If it holds the truth or a copy of the votes, it",
            )


def note_copied_truth(table: Table, names: Iterable[str], truth: str) -> None:
    """Note feature columns that equal the truth.

    Parameters
    ----------
    table : Table
        The table.
    names : iterable of str
        Its feature columns.
    truth : str
        The column of known labels.
    """
    known = words_of(table.column(truth), GAPS)
    for name in names:
        cells = words_of(table.column(name), GAPS)
        both = ~pd.isna(known) & ~pd.isna(cells)
        if both.sum() < _MIN_ROWS:
            continue
        share = float(same_labels(cells[both], known[both]).mean())
        if share >= _EQUAL:
            _note_leak(name, f"equals the truth in {share:.0%} of the rows, so it")


def _note_leak(name: str, what: str) -> None:
    note(f"column {short(name)} {what} is a leak: leave it out", {"exclude": name})


def _agreement(
    cells: NDArray[np.object_], code_of: dict[str, int], majority: NDArray[np.integer]
) -> float | None:
    """Return how often the labels in cells are those of the majority; None if they are no copy."""
    parts = [
        [code_of.get(plain_label(part.strip()), -1) for part in _SEPARATORS.split(cell)]
        if cell is not None
        else []
        for cell in cells
    ]
    filled = [found for found in parts if found]
    if len(filled) < _MIN_ROWS:
        return None
    named = np.array([bool(found) and min(found) >= 0 for found in parts])
    compared = np.flatnonzero(named & (majority >= 0))
    if named.sum() < _MIN_LABELS * len(filled) or len(compared) < _MIN_ROWS:
        return None
    share = float(np.mean([majority[row] in parts[row] for row in compared]))
    others = np.random.default_rng(0).permutation(compared)
    pairs = zip(compared, others, strict=True)
    chance = float(np.mean([majority[row] in parts[other] for row, other in pairs]))
    return share if share >= max(_MIN_AGREEMENT, chance + _MIN_EXCESS) else None
