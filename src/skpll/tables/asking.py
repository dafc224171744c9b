"""Which rows to ask people about: those whose answer would help most."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances

from ._extra import arrow
from .learning import Learned
from .reading import Array, Table, TextTable, text_of
from .resolution import label_column

_MAX_POOL_ROWS = 3000  # of the most doubtful rows, which are compared with each other
SUSPECT = 0.5
"""A row is suspect if all of its candidates are wrong with at least this probability."""


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
    if learned.resolution.decided is not None:
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
    pa = arrow()
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
    cells = {
        name: text_of(table.column(name)).take(pa.array(rows))
        for name in table.names
        if name not in {*asked, *learned.labels.columns}
    }
    return TextTable(list(asked), list(asked.values())), cells
