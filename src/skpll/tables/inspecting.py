"""What a table was taken for, before anything is learned from it."""

from __future__ import annotations

from dataclasses import dataclass

from skpll.engine.limits import LIMITS

from ._extra import Plain
from .columns import TEXT, VECTOR, Column
from .labels import Labels, find_separator
from .reading import Table, text_of

ALL_COMPARED = 5000
"""In tables with at most this number of rows, all rows are compared with each other."""

FEW_LANDMARKS = 500
"""The number of rows that those of longer tables without text and vectors are compared with."""

_LOOKED_AT = 2000


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
