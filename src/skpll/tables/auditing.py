"""Rows of a table that people decide, and what their decisions say of all labels.

`audit_rows` draws a random sample, from which an accuracy follows; `questions` chooses the rows
whose answer would help most, which are no random sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances

from skpll._errors import ArgumentError
from skpll.crowd import (
    AccuracyEstimate,
    ReviewPlan,
    draw_audit,
    estimate_accuracy,
    plan_review,
    recalibrated,
)
from skpll.crowd._audit import moved

from ._extra import note, pa, pd, refuse_rows, short
from .columns import check_columns
from .reading import POINT, Array, Table, free_names, label_column, numbers, text_of
from .votes import same_labels, words_of

if TYPE_CHECKING:
    from .learning import Learned

_MAX_POOL_ROWS = 3000  # of the most doubtful rows, which are compared with each other
SUSPECT = 0.5
"""A row is suspect if all of its candidates are wrong with at least this probability."""

Columns = tuple[str, str]
"""The columns of the labels and of the confidences."""


@dataclass(frozen=True)
class Audit:
    """What the decisions on a random sample say of all labels.

    Parameters
    ----------
    accuracy : AccuracyEstimate
        The accuracy of the labels.
    confidence : array of shape (n,)
        The confidence of each row.
    corrected : array of shape (n,)
        The probability that each label is right, by the decisions.
    """

    accuracy: AccuracyEstimate
    confidence: NDArray[np.float64]
    corrected: NDArray[np.float64]

    def plan(self, target: float, *, careful: bool = False) -> ReviewPlan:
        """Return how many rows to review for a target accuracy.

        Parameters
        ----------
        target : float
            The accuracy to reach.
        careful : bool, default=False
            Whether to assume the lower end of the accuracy's interval.

        Returns
        -------
        ReviewPlan
        """
        wanted = self.accuracy.low if careful else self.accuracy.accuracy
        return plan_review(self.confidence, moved(self.corrected, wanted), target)

    def columns(self, taken: Sequence[str]) -> dict[str, Array]:
        """Return the column of corrected confidences, under a name that is free."""
        return free_names({"checked_confidence": pa.array(self.corrected)}, taken)


def audit_rows(
    table: Table, columns: Columns, n_rows: int, *, seed: int = 0
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


def read_audit(table: Table, columns: Columns, decisions: Table) -> Audit:
    """Evaluate decisions on rows that `audit_rows` drew.

    Parameters
    ----------
    table : Table
        The table of labels.
    columns : two str
        Its columns of labels and confidences.
    decisions : Table
        The drawn rows with the column ``label`` filled in; empty where nothing was decided.

    Returns
    -------
    Audit
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
    return Audit(found, confidence, corrected)


def _confidences(table: Table, columns: Columns) -> NDArray[np.float64]:
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
