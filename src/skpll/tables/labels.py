"""Candidate labels from tables: a column of candidates, a table of votes, a person's decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from skpll._labels import as_objects, lookup_codes
from skpll.candidates import CandidateSets, as_candidates

from ._extra import arrow, short
from .columns import check_column, is_gap
from .reading import Array, Table, text_of

__all__ = ["Votes", "column_candidates", "identifiers", "read_votes", "with_decisions"]

_MAX_LABEL = 1000


def column_candidates(
    column: Array,
    *,
    sep: str = "|",
    name: str = "candidates",
    empty: Literal["error", "any"] = "error",
) -> CandidateSets:
    """Read a column of candidate labels.

    Parameters
    ----------
    column : Arrow array
        Text with `sep` between the labels, lists of labels, or plain labels.
    sep : str, default="|"
        What separates labels in text.
    name : str
        What the column is called in messages.
    empty : {"error", "any"}, default="error"
        Whether a row without candidates is an error, or may have any label.

    Returns
    -------
    CandidateSets
    """
    if not sep:
        raise ValueError("sep: an empty separator; give for instance '|'.")
    codes, entries = _distinct(column)
    if not len(codes):
        raise ValueError("the table has no rows.")
    sets = [_labels(entry, sep) for entry in entries]
    for label in chain.from_iterable(sets):
        if isinstance(label, str) and len(label) > _MAX_LABEL:
            raise ValueError(
                f"column {short(name)}: the label {short(label)} has {len(label)} characters; is "
                "it the right column, and the right separator?"
            )
    everything = tuple(dict.fromkeys(chain.from_iterable(sets)))
    if len(everything) < 2:
        found = f"{short(everything[0])} is the only label" if everything else "there is no label"
        raise ValueError(
            f"column {short(name)}: {found} in it, so there is nothing to choose. Is it the right "
            "column, and the right separator?"
        )
    bare = np.isin(codes, [code for code, labels in enumerate(sets) if not labels])
    if bare.any() and empty == "error":
        raise ValueError(
            f"column {short(name)}: row {np.argmax(bare) + 1} has no candidate; fill it in, leave "
            "the row out, or allow any label there (empty='any')."
        )
    try:
        return as_candidates([frozenset(labels or everything) for labels in sets])[codes]
    except ValueError as error:
        raise ValueError(f"column {short(name)}: {error}") from None


@dataclass(frozen=True)
class Votes:
    """Votes of annotators on the rows of a table.

    Parameters
    ----------
    candidates : CandidateSets
        The labels that each row got from anybody.
    rows : int array
        The row that each vote is about.
    annotators : list of str
        Who gave it.
    labels : list of str
        The label it gives.
    """

    candidates: CandidateSets
    rows: NDArray[np.int64]
    annotators: list[str]
    labels: list[str]

    def agreement(self, chosen: NDArray[Any]) -> dict[str, float]:
        """Share of the votes of each annotator that agree with the chosen class of their row."""
        names, who = np.unique(self.annotators, return_inverse=True)
        agreed = lookup_codes(self.labels, self.candidates.classes) == chosen[self.rows]
        shares = np.bincount(who, agreed) / np.bincount(who)
        return dict(zip(names.tolist(), shares.tolist(), strict=True))


def read_votes(votes: Table, columns: Sequence[str], items: list[str]) -> Votes:
    """Read a long table of votes: an item, an annotator and a label in each row.

    Parameters
    ----------
    votes : Table
        The votes.
    columns : three str
        The columns that hold item, annotator and label.
    items : list of str
        The items, one for each row of the table of features.

    Returns
    -------
    Votes
    """
    if len(columns) != 3:
        raise ValueError("columns: expected three names, those of item, annotator and label.")
    voted, annotators, labels = (_words(votes, name, "columns") for name in columns)
    for place, label in enumerate(labels, start=1):
        if is_gap(label):
            raise ValueError(f"votes: row {place} has no label; leave the row out.")
    row_of = _row_of(items)
    for place, item in enumerate(voted, start=1):
        if item not in row_of:
            raise ValueError(
                f"votes: row {place} is about {short(item)}, which is not in the table."
            )
    rows = np.fromiter((row_of[item] for item in voted), np.int64, len(voted))
    without = np.bincount(rows, minlength=len(items)) == 0
    if without.any():
        raise ValueError(
            f"votes: nobody voted on {short(items[int(np.argmax(without))])} (row "
            f"{np.argmax(without) + 1} of the table); leave the row out."
        )
    candidates = CandidateSets.from_votes(rows, labels, order=range(len(items)))
    return Votes(candidates, rows, annotators, labels)


def identifiers(table: Table, name: str) -> list[str]:
    """Read the column that names the rows, as text."""
    return _words(table, name, "id")


def with_decisions(
    candidates: CandidateSets, decisions: Table, items: list[str] | None
) -> CandidateSets:
    """Take in what a person has decided: the rows concerned have one candidate from now on.

    Parameters
    ----------
    candidates : CandidateSets
        What was known before.
    decisions : Table
        The columns ``label`` and ``id``, or ``label`` and ``row`` (the first row is 1).
    items : list of str or None
        The names of the rows, by which they are found; without them the numbers count.

    Returns
    -------
    CandidateSets
    """
    key = "row" if items is None else "id"
    keys, labels = (_words(decisions, name, "decisions") for name in (key, "label"))
    row_of = (
        {str(row + 1): row for row in range(len(candidates))} if items is None else _row_of(items)
    )
    known = {str(label): label for label in as_objects(candidates.classes)}
    decided: dict[int, Any] = {}
    for place, (which, label) in enumerate(zip(keys, labels, strict=True), start=1):
        if which not in row_of:
            raise ValueError(
                f"decisions: row {place}: the table has no row with the {key} {short(which)}."
            )
        if label not in known:
            raise ValueError(
                f"decisions: row {place}: {short(label)} is not one of the labels in the table."
            )
        decided[row_of[which]] = known[label]
    if not decided:
        return candidates
    # The decided labels come as further rows, which then take the place of those they decide.
    n, k = len(candidates), len(decided)
    codes = lookup_codes(list(decided.values()), candidates.classes)
    singles = CandidateSets(np.arange(k + 1), codes, candidates.classes)
    rows = np.arange(n)
    rows[list(decided)] = np.arange(n, n + k)
    return CandidateSets.concatenate([candidates, singles])[rows]


def _distinct(column: Array) -> tuple[NDArray[np.int64], list[Any]]:
    """Give a number to each different cell of a column, so that each is read only once."""
    pa = arrow()
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_nested(column.type):
        if pa.types.is_nested(getattr(column.type, "value_type", column.type)):
            raise ValueError(
                f"a cell of candidates can't be a {column.type}; use a list of labels."
            )
        cells = [None if cell is None else tuple(cell) for cell in column.to_pylist()]
        code_of = {cell: code for code, cell in enumerate(dict.fromkeys(cells))}
        return np.fromiter(map(code_of.__getitem__, cells), np.int64, len(cells)), list(code_of)
    coded = column
    if not pa.types.is_dictionary(column.type):
        coded = column.dictionary_encode(null_encoding="encode")
    elif column.null_count:
        coded = column.cast(column.type.value_type).dictionary_encode(null_encoding="encode")
    codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, coded.dictionary.to_pylist()


def _labels(entry: Any, sep: str) -> tuple[Any, ...]:
    """Read one cell: its labels, without those that are empty."""
    if entry is None or (isinstance(entry, float) and np.isnan(entry)):
        return ()
    if isinstance(entry, str):
        parts = (part.strip() for part in entry.split(sep))
        return tuple(part for part in parts if part)
    if isinstance(entry, tuple):
        return tuple(label for label in entry if label is not None)
    return (entry,)


def _words(table: Table, name: str, who: str) -> list[str]:
    """Read a column as text without blanks around it; what is missing is empty."""
    cells = text_of(table.column(check_column(table, name, who))).to_pylist()
    return ["" if cell is None else cell.strip() for cell in cells]


def _row_of(items: list[str]) -> dict[str, int]:
    row_of: dict[str, int] = {}
    for row, item in enumerate(items):
        if item in row_of:
            raise ValueError(
                f"id: rows {row_of[item] + 1} and {row + 1} are both called {short(item)}; "
                "the column has to name each row differently."
            )
        row_of[item] = row
    return row_of
