"""Votes without features: a table of votes in, a table of labels out."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpll._errors import ArgumentError
from skpll.crowd import Aggregation, VoteTable, agreement, alike_pairs, estimate_accuracy

from ._extra import listed, note, pa, short
from .cells import GAPS, gap_words, numbers, texts
from .columns import check_columns
from .reading import Array, Table, TextTable, text_of
from .resolution import label_column

LABEL_LIKE_GAPS = ("none", "unknown", "missing")
"""Words that may be classes or gaps; among votes they are classes by default."""

_SHOWN = 10  # items in the list of differences
_MIN_SPLIT = 20  # items with different votes, to tell a truth that was made from the votes
_GAPS = tuple(word for word in GAPS if word not in LABEL_LIKE_GAPS)


@dataclass(frozen=True)
class Truth:
    """The known labels of some items.

    Parameters
    ----------
    labels : object array of shape (n_items,)
        The labels, as text; None where nothing is known.
    """

    labels: NDArray[Any]

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which items have a known label."""
        return ~is_empty(self.labels)

    def score(self, labels: NDArray[Any]) -> dict[str, float]:
        """Return how often the labels of the known items are right.

        Parameters
        ----------
        labels : array of shape (n_items,)
            The labels to score.

        Returns
        -------
        dict
            ``known`` (the number of items), ``accuracy``, and the limits ``low`` and ``high`` of
            its 95 % interval for items like these.
        """
        found = estimate_accuracy(same_labels(labels[self.known], self.labels[self.known]))
        return {
            "known": found.n_decided,
            "accuracy": found.accuracy,
            "low": found.low,
            "high": found.high,
        }


def read_long_votes(
    table: Table,
    columns: Sequence[str],
    gaps: Iterable[str] | None = None,
    *,
    argument: str = "columns",
) -> VoteTable:
    """Read votes from a table with one vote per row.

    Parameters
    ----------
    table : Table
        The table.
    columns : three str
        The columns of item, annotator and label.
    gaps : iterable of str, optional
        Labels that mean "did not vote", besides empty cells. By default the usual ones, "none" and
        the like excepted, and −1 and the like (see `skpll.crowd.VoteTable.from_long`).
    argument : str, default="columns"
        What `columns` is called in messages.

    Returns
    -------
    VoteTable
        Items, annotators and labels are text.
    """
    if len(columns) != 3:
        raise ArgumentError(
            argument,
            f"{listed(columns)}; expected three names, those of item, annotator and label.",
        )
    check_columns(table, columns, argument)
    items, annotators = (words_of(table.column(name), ("",)) for name in columns[:2])
    labels = _label_words([table.column(columns[2])], gaps)
    for name, cells in zip(columns[:2], (items, annotators), strict=True):
        empty = np.flatnonzero(is_empty(cells) & ~is_empty(labels))
        if len(empty):
            raise ArgumentError(
                argument,
                f"row {empty[0] + 1} has a label, but nothing in column {short(name)}; "
                "fill it in, or leave the row out.",
            )
    voted = ~is_empty(labels)
    return _noted(items[voted], annotators[voted], labels[voted], gaps)


def read_wide_votes(
    table: Table, annotators: Sequence[str], id: str | None, gaps: Iterable[str] | None = None
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
    gaps : iterable of str, optional
        As for `read_long_votes`.

    Returns
    -------
    VoteTable
    """
    check_columns(table, annotators, "annotators")
    items = item_names(table, id)
    cells = _label_words([table.column(name) for name in annotators], gaps)
    who = np.repeat(np.array(annotators, dtype=object), table.n_rows)
    voted = ~is_empty(cells)
    by_item = np.argsort(np.tile(np.arange(table.n_rows), len(annotators))[voted], kind="stable")
    rows = np.tile(items, len(annotators))[voted][by_item]
    return _noted(rows, who[voted][by_item], cells[voted][by_item], gaps)


def read_counts(table: Table, columns: Sequence[str], id: str | None) -> VoteTable:
    """Read numbers of votes from a table with one column per class.

    Parameters
    ----------
    table : Table
        The table.
    columns : sequence of str
        The columns, which are called as the classes are.
    id : str, optional
        The column that names the items; row numbers from 1 by default.

    Returns
    -------
    VoteTable
        Anonymous votes.
    """
    cells = _class_columns(table, columns, "counts")
    items = item_names(table, id)
    wrong = np.argwhere((cells < 0) | (cells != np.round(cells)))
    if len(wrong):
        row, column = wrong[0]
        raise ArgumentError(
            "counts",
            f"row {row + 1} has {cells[row, column]:g} in column {short(columns[column])}; numbers "
            "of votes are whole numbers from 0. Are they probabilities?",
        )
    return VoteTable.from_counts(cells, items=items, classes=list(columns))


def read_probabilities(table: Table, columns: Sequence[str]) -> NDArray[np.float64]:
    """Read the probability of each class from a table with one column per class.

    Parameters
    ----------
    table : Table
        The table.
    columns : sequence of str
        The columns, which are called as the classes are.

    Returns
    -------
    probabilities : array of shape (n_rows, number of columns)
        The sum of each row is one.
    """
    cells = _class_columns(table, columns, "probabilities")
    sums = cells.sum(axis=1)
    wrong = np.flatnonzero((cells < 0).any(axis=1) | ~(sums > 0))
    if len(wrong):
        raise ArgumentError(
            "probabilities",
            f"row {wrong[0] + 1} has a negative number, or nothing but zeros; give the probability "
            "of each class.",
        )
    if (np.abs(sums - 1) > 0.02).any():
        row = int(np.argmax(np.abs(sums - 1) > 0.02))
        note(
            f"probabilities: the sum of row {row + 1} is {sums[row]:.4g}, not 1; all rows are "
            "divided by their sums."
        )
    return np.asarray(cells / sums[:, None])


def given_probabilities(table: Table, columns: Sequence[str], id: str | None) -> VoteTable:
    """Read the probability of each class as what is known of items without votes.

    Parameters
    ----------
    table : Table
        The table.
    columns : sequence of str
        The columns, which are called as the classes are.
    id : str, optional
        The column that names the items; row numbers from 1 by default.

    Returns
    -------
    VoteTable
        Without votes; its prior has the probabilities.
    """
    shares = read_probabilities(table, columns)
    order = np.argsort(np.array(columns, dtype=str))
    nothing = np.zeros(0, np.int32)
    classes = np.array(columns, dtype=str)[order]
    votes = VoteTable(
        item_names(table, id), np.zeros(1, np.int64), classes, nothing, nothing, nothing
    )
    return replace(votes, prior=shares[:, order], anonymous=True)


def item_names(table: Table, id: str | None) -> NDArray[Any]:
    """Return the names of the rows of a table; their numbers from 1 if no column has names.

    Parameters
    ----------
    table : Table
        The table.
    id : str or None
        The column of names, which have to differ.

    Returns
    -------
    names : object array of str
    """
    if id is None:
        return np.array([str(row + 1) for row in range(table.n_rows)], dtype=object)
    check_columns(table, [id], "id")
    items = words_of(table.column(id), ("",))
    _refuse_repeated(items, id)
    return items


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
    truth = Truth(np.array([known.get(str(name)) for name in items], dtype=object))
    if not truth.known.any():
        raise ValueError(f"truth: column {short(column)} has no label for any of the items.")
    return truth


def row_truth(table: Table, column: str) -> Truth:
    """Read the known labels of the rows of a table.

    Parameters
    ----------
    table : Table
        The table.
    column : str
        The column of the known labels; empty where nothing is known.

    Returns
    -------
    Truth
    """
    check_columns(table, [column], "truth")
    truth = Truth(words_of(table.column(column)))
    if not truth.known.any():
        raise ArgumentError("truth", f"column {short(column)} is empty; it needs known labels.")
    return truth


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
    added: Mapping[str, Array] = {
        "label": label_column(found.classes, found.codes),
        "confidence": pa.array(found.confidence),
        "runner_up": label_column(found.classes, found.runner_up_codes),
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
    return {
        **_counts(found),
        "rules": _rules(found, others, truth),
        "differ": _differences(others, found),
        **describe_agreement(found),
    }


def describe_agreement(found: Aggregation) -> dict[str, Any]:
    """Say in plain values how well annotators agree, those first who cost most agreement.

    Parameters
    ----------
    found : Aggregation
        The labels.

    Returns
    -------
    dict
        ``alpha``, ``kappa``, ``pairs`` (of annotators that were compared), ``class_alpha`` (by
        class), ``annotators`` (a dict each: annotator, votes, estimated_right, kappa, cost) and
        ``alike`` (pairs who agree more than their agreement with others explains). What can't be
        told is None.
    """
    votes, measured = found.votes, agreement(found.votes)
    order = measured.costliest[: 0 if votes.anonymous else None]
    return {
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
            for a in order
        ],
        "alike": [
            {
                "annotator": str(pair.first),
                "other": str(pair.second),
                "items": pair.n_items,
                "agreement": pair.agreement,
                "expected": pair.expected,
            }
            for pair in alike_pairs(votes)
        ],
    }


def note_truth_from_votes(others: Aggregation, truth: Truth) -> None:
    """Note known labels that are the majority of the votes: they check nothing.

    Parameters
    ----------
    others : Aggregation
        The labels by ``method="auto"``.
    truth : Truth
        Known labels.
    """
    split = truth.known & ~others.unanimous
    if split.sum() < _MIN_SPLIT:
        return
    answers = others.answers["majority"]
    if same_labels(answers[split], truth.labels[split]).all():
        note(
            f"the truth is the majority of the votes in all {int(split.sum())} items whose votes "
            "differ; if it was made from the votes, the accuracies say nothing."
        )


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
            rule |= truth.score(labels)
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
    gaps: Iterable[str] | None,
) -> VoteTable:
    """Make a table of votes; what it has to say becomes notes."""
    votes = VoteTable.from_long(items, annotators, labels, missing=None if gaps is None else ())
    for text in votes.notes:
        note(text)
    if gaps is None:
        words = {*LABEL_LIKE_GAPS, "-1"}
        for label in votes.classes:
            if str(label).lower() in words:
                note(
                    f"{str(label)!r} counts as a class; if it means that no vote was given, say so",
                    {"gaps": str(label)},
                )
    return votes


def _label_words(columns: Iterable[Array], gaps: Iterable[str] | None) -> NDArray[Any]:
    """Return the labels in columns, one column after the other, and note what was left out.

    They are text with single blanks; None where there is no vote.
    """
    words = frozenset(_GAPS) if gaps is None else gap_words(gaps)
    cells = [cell for column in columns for cell in text_of(column).to_pylist()]
    counts = Counter(cells)
    found = {cell: clean(cell or "") for cell in counts}
    dropped: Counter[str] = Counter()
    for cell, word in found.items():
        if word and word.lower() in words:
            dropped[word] += counts[cell]
    note_gaps(dropped, "votes")
    kept = {cell: None if word.lower() in words else word for cell, word in found.items()}
    return np.array([kept[cell] for cell in cells], dtype=object)


def clean(label: Any) -> Any:
    """Return a label without blanks around it, and with one where there are several inside.

    Parameters
    ----------
    label : object
        The label; what is no text stays as it is.

    Returns
    -------
    label : object
    """
    if not isinstance(label, str):
        return label
    return " ".join(unicodedata.normalize("NFC", label).split())


def note_gaps(dropped: Mapping[str, int], where: str) -> None:
    """Note the words that were taken as empty cells.

    Parameters
    ----------
    dropped : mapping from str to int
        How often each word was found.
    where : str
        Where.
    """
    if dropped:
        times = {count: "once" if count == 1 else f"{count} times" for count in dropped.values()}
        words = ", ".join(f"{short(word)} ({times[count]})" for word, count in dropped.items())
        note(f"{where}: taken as empty, not as labels: {words}.")


def _class_columns(table: Table, columns: Sequence[str], argument: str) -> NDArray[np.float64]:
    """Read columns of numbers, one for each class; empty cells are 0."""
    check_columns(table, columns, argument)
    if len(set(columns)) < 2:
        raise ArgumentError(argument, f"{listed(columns)}; name the column of each class.")
    cells = np.column_stack([numbers(table.column(name)) for name in columns])
    empty = np.column_stack([is_empty(words_of(table.column(name), GAPS)) for name in columns])
    wrong = np.argwhere(np.isnan(cells) & ~empty)
    if len(wrong):
        row, column = wrong[0]
        raise ArgumentError(
            argument, f"row {row + 1} has no number in column {short(columns[column])}."
        )
    return np.nan_to_num(cells, nan=0.0)


def _refuse_repeated(items: NDArray[Any], id: str) -> None:
    first: dict[Any, int] = {}
    for row, item in enumerate(items):
        if item is None:
            raise ArgumentError(
                "id", f"row {row + 1} has nothing in column {short(id)}; fill it in."
            )
        if first.setdefault(item, row) != row:
            raise ArgumentError(
                "id",
                f"rows {first[item] + 1} and {row + 1} are both called {short(item)}; the column "
                "has to name each row differently.",
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
    return np.array(texts(column, gaps).to_pylist(), dtype=object)


def same_labels(labels: NDArray[Any], others: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where two columns have the same label; spreadsheets write 3 as 3.0 at times."""
    pairs = zip(labels, others, strict=True)
    return np.fromiter((plain_label(a) == plain_label(b) for a, b in pairs), bool, len(labels))


def plain_label(label: Any) -> str:
    """Return a label as text; a whole number loses what follows its point."""
    text = str(label)
    head, point, tail = text.partition(".")
    whole = point and head.lstrip("+-").isdigit() and not tail.strip("0")
    return head if whole else text


def is_empty(words: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which entries of an object array are None."""
    return np.fromiter((word is None for word in words), bool, len(words))
