"""Votes without features: a table of votes in, a table of labels out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpll._errors import ArgumentError
from skpll.crowd import Aggregation, VoteTable, agreement, estimate_accuracy

from ._extra import arrow, listed, note, short
from .cells import GAPS, texts
from .columns import check_columns
from .reading import Array, Table, TextTable
from .resolution import label_column

LABEL_LIKE_GAPS = ("none", "unknown", "missing")
"""Words that may be classes or gaps; among votes they are classes by default."""

_SHOWN = 10  # items in the list of differences
_GAPS = tuple(word for word in GAPS if word not in LABEL_LIKE_GAPS)


@dataclass(frozen=True)
class Truth:
    """The known labels of some items.

    Parameters
    ----------
    known : bool array of shape (n_items,)
        Which items have one.
    labels : object array of shape (n_items,)
        The labels, as text; None where nothing is known.
    """

    known: NDArray[np.bool_]
    labels: NDArray[Any]

    def right(self, labels: NDArray[Any]) -> NDArray[np.bool_]:
        """Return whether the labels of the known items are right."""
        return same_labels(labels[self.known], self.labels[self.known])


def read_long_votes(
    table: Table, columns: Sequence[str], missing: Iterable[str] | None = None
) -> VoteTable:
    """Read votes from a table with one vote per row.

    Parameters
    ----------
    table : Table
        The table.
    columns : three str
        The columns of item, annotator and label.
    missing : iterable of str, optional
        Labels that mean "did not vote", besides empty cells and their usual spellings; by default
        −1 and the like, see `skpll.crowd.VoteTable.from_long`.

    Returns
    -------
    VoteTable
        Items, annotators and labels are text.
    """
    if len(columns) != 3:
        raise ArgumentError(
            "columns", f"{listed(columns)}; give three names, of item, annotator and label."
        )
    check_columns(table, columns, "columns")
    items, annotators, labels = (words_of(table.column(name)) for name in columns)
    for name, cells in zip(columns[:2], (items, annotators), strict=True):
        empty = np.flatnonzero(is_empty(cells) & ~is_empty(labels))
        if len(empty):
            raise ValueError(
                f"columns: row {empty[0] + 1} has a label, but nothing in column {short(name)}; "
                "fill it in, or leave the row out."
            )
    voted = ~is_empty(labels)
    return _noted(items[voted], annotators[voted], labels[voted], missing)


def read_wide_votes(
    table: Table, annotators: Sequence[str], id: str | None, missing: Iterable[str] | None = None
) -> VoteTable:
    """Read votes from a table with one column per annotator.

    Parameters
    ----------
    table : Table
        The table.
    annotators : sequence of str
        The columns of the annotators.
    id : str, optional
        The column that names the items; row numbers from 1 by default.
    missing : iterable of str, optional
        As for `read_long_votes`.

    Returns
    -------
    VoteTable
    """
    check_columns(table, annotators, "annotators")
    if id is None:
        items = np.array([str(row + 1) for row in range(table.n_rows)], dtype=object)
    else:
        check_columns(table, [id], "id")
        items = words_of(table.column(id))
        _refuse_repeated(items, id)
    cells = np.concatenate([words_of(table.column(name)) for name in annotators])
    who = np.repeat(np.array(annotators, dtype=object), table.n_rows)
    voted = ~is_empty(cells)
    by_item = np.argsort(np.tile(np.arange(table.n_rows), len(annotators))[voted], kind="stable")
    rows = np.tile(items, len(annotators))[voted][by_item]
    votes = _noted(rows, who[voted][by_item], cells[voted][by_item], missing)
    without = table.n_rows - len(votes.items)
    if without:
        note(f"{without} of {table.n_rows} rows have no vote, so they get no label.")
    return votes


def read_truth(table: Table, item: str, column: str, items: NDArray[Any]) -> Truth:
    """Read known labels of items.

    Parameters
    ----------
    table : Table
        A table with a column of items, which may come again.
    item : str
        That column.
    column : str
        The column of the known labels; empty where nothing is known.
    items : array
        The items that are asked about.

    Returns
    -------
    Truth
    """
    check_columns(table, [item, column], "truth")
    known: dict[Any, Any] = {}
    for row, (name, label) in enumerate(
        zip(words_of(table.column(item)), words_of(table.column(column)), strict=True)
    ):
        if label is None:
            continue
        if known.setdefault(name, label) != label:
            raise ValueError(
                f"truth: item {short(name)} is {short(known[name])} and, in row {row + 1}, "
                f"{short(label)}; give one label per item."
            )
    labels = np.array([known.get(str(name)) for name in items] + [None], dtype=object)[:-1]
    found = ~is_empty(labels)
    if not found.any():
        raise ValueError(f"truth: column {short(column)} has no label for any of the items.")
    return Truth(np.asarray(found), labels)


def doubtful_classes(votes: VoteTable) -> list[str]:
    """Return the classes that may be codes for a missing vote, such as "none" or −1.

    Parameters
    ----------
    votes : VoteTable
        The votes.

    Returns
    -------
    classes : list of str
    """
    codes = {*LABEL_LIKE_GAPS, "-1"}
    return [str(label) for label in votes.classes if str(label).lower() in codes]


def label_table(found: Aggregation) -> tuple[Table, dict[str, Array]]:
    """Return the table of labels to write: item, label, confidence, runner_up.

    Parameters
    ----------
    found : Aggregation
        The labels.

    Returns
    -------
    table : Table
        The items.
    added : dict of Arrow arrays
        The other columns.
    """
    pa = arrow()
    second = found.runner_up_codes
    added: Mapping[str, Array] = {
        "label": label_column(found.classes, found.codes),
        "confidence": pa.array(found.confidence),
        "runner_up": label_column(found.classes, np.maximum(second, 0), second < 0),
    }
    return TextTable(["item"], [pa.array(found.items.tolist())]), dict(added)


def describe(found: Aggregation, others: Aggregation, truth: Truth | None) -> dict[str, Any]:
    """Say in plain values what the rules say, where they differ and how annotators agree.

    Parameters
    ----------
    found : Aggregation
        The labels.
    others : Aggregation
        The same votes by ``method="auto"``, which has all rules.
    truth : Truth, optional
        Known labels.

    Returns
    -------
    dict
    """
    votes, measured = found.votes, agreement(found.votes)
    return {
        **_counts(found),
        "rules": _rules(found, others, truth),
        "differ": _differences(others, found),
        "alpha": _number(measured.alpha),
        "kappa": _number(measured.kappa),
        "pairs": measured.n_pairs,
        "class_alpha": {
            str(name): _number(value)
            for name, value in zip(found.classes, measured.class_alpha, strict=True)
        },
        "annotators": [
            {
                "annotator": str(found.annotators[a]),
                "votes": int(votes.votes_per_annotator[a]),
                "estimated_right": float(found.quality[a]),
                "kappa": _number(measured.annotator_kappa[a]),
                "cost": _number(measured.cost[a]),
            }
            for a in measured.costliest
        ],
    }


def _counts(found: Aggregation) -> dict[str, Any]:
    n, n_annotators, q = found.votes.shape
    return {
        "method": found.method,
        "items": n,
        "votes": len(found.votes),
        "n_annotators": n_annotators,
        "classes": q,
        "unanimous": int(found.unanimous.sum()),
        "believed": float(found.confidence.mean()),
    }


def _rules(found: Aggregation, others: Aggregation, truth: Truth | None) -> list[dict[str, Any]]:
    """Return what each rule says, and how often it is right if the truth is known."""
    answers = dict(others.answers)
    if found.method == "auto":
        answers["auto"] = found.labels
    rules: list[dict[str, Any]] = []
    for name, labels in answers.items():
        rule: dict[str, Any] = {
            "rule": name,
            "unlike_majority": int((labels != answers["majority"]).sum()),
            "held_out": others.held_out.get(name),
        }
        if truth is not None:
            scored = estimate_accuracy(truth.right(labels))
            rule |= {"accuracy": scored.accuracy, "low": scored.low, "high": scored.high}
            rule["known"] = scored.n_decided
        rules.append(rule)
    return rules


def _differences(others: Aggregation, found: Aggregation) -> dict[str, Any]:
    """Return the items on which the rules differ, those first with the least confidence."""
    answers = others.answers
    stacked = np.stack([labels.astype(str) for labels in answers.values()])
    rows = np.flatnonzero((stacked != stacked[0]).any(axis=0))
    rows = rows[np.argsort(found.confidence[rows], kind="stable")]
    counts = found.votes.counts
    shown = [
        {
            "item": str(found.items[row]),
            "votes": ", ".join(
                f"{found.classes[k]} {int(counts[row, k])}"
                for k in np.argsort(-counts[row], kind="stable")
                if counts[row, k]
            ),
            **{name: str(labels[row]) for name, labels in answers.items()},
            "label": str(found.labels[row]),
        }
        for row in rows[:_SHOWN]
    ]
    return {"items": len(rows), "first": shown}


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _noted(
    items: NDArray[Any],
    annotators: NDArray[Any],
    labels: NDArray[Any],
    missing: Iterable[str] | None,
) -> VoteTable:
    """Make a table of votes; what it has to say becomes notes."""
    votes = VoteTable.from_long(items, annotators, labels, missing=missing)
    for text in votes.notes:
        note(text)
    return votes


def _refuse_repeated(items: NDArray[Any], id: str) -> None:
    first: dict[Any, int] = {}
    for row, item in enumerate(items):
        if item is None:
            raise ValueError(f"id: row {row + 1} has nothing in column {short(id)}; fill it in.")
        if first.setdefault(item, row) != row:
            raise ValueError(
                f"id: rows {first[item] + 1} and {row + 1} are both called {short(item)}; names of "
                "items have to differ."
            )


def words_of(column: Array, gaps: Iterable[str] = _GAPS) -> NDArray[Any]:
    """Return cells as text, None where they are empty.

    Parameters
    ----------
    column : Arrow array
        The cells.
    gaps : iterable of str, optional
        Words that stand for an empty cell, in lower case.

    Returns
    -------
    words : object array
    """
    return np.array([*texts(column, gaps).to_pylist(), None], dtype=object)[:-1]


def same_labels(labels: NDArray[Any], others: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where two columns have the same label; spreadsheets write 3 as 3.0 at times."""
    pairs = zip(labels, others, strict=True)
    return np.fromiter((_plain_label(a) == _plain_label(b) for a, b in pairs), bool, len(labels))


def _plain_label(label: Any) -> str:
    """Return a label as text; a whole number loses what follows its point."""
    text = str(label)
    head, point, tail = text.partition(".")
    whole = point and head.lstrip("+-").isdigit() and not tail.strip("0")
    return head if whole else text


def is_empty(words: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which entries of an object array are None."""
    return np.fromiter((word is None for word in words), bool, len(words))
