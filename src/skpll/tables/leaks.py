"""Feature columns that say what is to be found out: the truth, or a copy of the votes."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from skpll._labels import as_objects

from ._extra import note, short
from .cells import GAPS
from .labels import Labels
from .reading import Table
from .votes import is_empty, plain_label, same_labels, words_of

_MIN_ROWS = 10  # with fewer rows to compare, nothing is noted
_MIN_LABELS = 0.9  # share of the cells of a copy that are labels
_MIN_EXCESS = 0.3  # of agreement with the votes over chance
_MIN_AGREEMENT = 0.6
_EQUAL = 0.98  # share of rows in which a copy of the truth equals it
_SEPARATORS = re.compile(r"[|;,/\t\n]+")


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
            note(
                f"column {short(name)} has labels as its cells, and they agree with the votes in "
                f"{share:.0%} of the rows. If it holds the truth or a copy of the votes, it is a "
                "leak: leave it out",
                {"exclude": name},
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
        both = ~is_empty(known) & ~is_empty(cells)
        if both.sum() < _MIN_ROWS:
            continue
        share = float(same_labels(cells[both], known[both]).mean())
        if share >= _EQUAL:
            note(
                f"column {short(name)} equals the truth in {share:.0%} of the rows, so it is a "
                "leak: leave it out",
                {"exclude": name},
            )


def _agreement(
    cells: NDArray[np.object_], code_of: dict[str, int], majority: NDArray[np.integer]
) -> float | None:
    """Return how often the labels in cells are those of the majority; None if they are no copy."""
    parts = [
        [] if cell is None else [code_of.get(plain_label(part.strip()), -1) for part in found]
        for cell in cells
        for found in (() if cell is None else _SEPARATORS.split(cell),)
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
