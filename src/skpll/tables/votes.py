"""Votes in tables: how they are read, what they say of the rows, alone or beside a model.

How far each annotator can be trusted is estimated by `skpll.crowd`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpll._errors import ArgumentError
from skpll._labels import as_objects
from skpll.candidates import CandidateSets
from skpll.crowd import (
    Aggregation,
    VoteTable,
    aggregate_votes,
    agreement,
    alike_pairs,
    estimate_accuracy,
)

from . import reading
from ._extra import listed, note, pa, pd, refuse_rows, short
from .columns import check_columns
from .reading import GAPS, Array, Table

Floats = NDArray[np.float64]

LABEL_LIKE_GAPS = ("none", "unknown", "missing")
"""Words that may be classes or gaps; among votes they are classes by default."""

_SHOWN = 10  # items in the list of differences
_MIN_SPLIT = 20  # items with different votes, to tell a truth that was made from the votes
_GAPS = tuple(word for word in GAPS if word not in LABEL_LIKE_GAPS)

_MIN_Z = 2.0
"""A model counts if it makes the votes on rows that it has not seen more likely than the shares of
the classes do, by this number of standard errors.
"""

_TINY, _TIE = 1e-300, 1e-9


def read_votes(
    table: Table,
    *,
    columns: Sequence[str] = (),
    annotators: Sequence[str] = (),
    counts: Sequence[str] = (),
    probabilities: Sequence[str] = (),
    id: str | None = None,
    gaps: Iterable[str] | None = None,
    argument: str = "columns",
) -> VoteTable:
    """Read votes from a table with one vote per row, or one row per item.

    Parameters
    ----------
    table : Table
        The table.
    columns : three str
        The columns of item, annotator and label, in a table with one vote per row.
    annotators, counts, probabilities : sequence of str
        Or the columns with the labels of one annotator each, with the number of votes for one
        class each, or with its probability; the classes are called as the columns are.
    id : str, optional
        The column that names the items; row numbers from 1 by default.
    gaps : iterable of str, optional
        Labels that mean "did not vote", besides empty cells. By default the usual ones, "none" and
        the like excepted, and −1 and the like (see `skpll.crowd.VoteTable.from_long`).
    argument : str, default="columns"
        What `columns` is called in messages.

    Returns
    -------
    VoteTable
        Items, annotators and labels are text. Votes of counts are anonymous; of probabilities there
        are no votes, but a prior.
    """
    missing = None if gaps is None else ()  # gaps that are named are left out here
    if counts:
        return _read_counts(table, counts, id)
    if probabilities:
        return _read_probabilities(table, probabilities, id)
    if annotators:
        check_columns(table, annotators, "annotators")
        items = item_names(table, id)
        labels = _label_words([table.column(name) for name in annotators], gaps)
        cells = labels.reshape(len(annotators), -1).T
        people = np.array(annotators, dtype=object)
        votes = VoteTable.from_wide(cells, items=items, annotators=people, missing=missing)
        return _noted(votes, gaps)
    if len(columns) != 3:
        raise ArgumentError(
            argument,
            f"{listed(columns)}; expected three names, those of item, annotator and label.",
        )
    check_columns(table, columns, argument)
    items, who = (words_of(table.column(name), ("",)) for name in columns[:2])
    labels = _label_words([table.column(columns[2])], gaps)
    for name, cells in zip(columns[:2], (items, who), strict=True):
        refuse_rows(
            pd.isna(cells) & ~pd.isna(labels),
            argument,
            f"has a label, but nothing in column {short(name)}; fill it in, or leave the row out.",
        )
    return _noted(VoteTable.from_long(items, who, labels, missing=missing), gaps)


def _noted(votes: VoteTable, gaps: Iterable[str] | None) -> VoteTable:
    """Return votes as they are; note what was left out, and what may have to be."""
    for text in votes.notes:
        note(text)
    if gaps is None:
        for label in votes.classes:
            if str(label).lower() in (*LABEL_LIKE_GAPS, "-1"):
                note(
                    f"{str(label)!r} counts as a class; if it means that no vote was given, say so",
                    {"gaps": str(label)},
                )
    return votes


def _read_counts(table: Table, columns: Sequence[str], id: str | None) -> VoteTable:
    """Read numbers of votes from a table with one column per class."""
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


def _read_probabilities(table: Table, columns: Sequence[str], id: str | None) -> VoteTable:
    """Read the probability of each class as what is known of items without votes."""
    shares = class_probabilities(table, columns)
    classes, order = np.unique(np.array(columns, dtype=str), return_index=True)
    none, items = np.zeros(0, np.int32), item_names(table, id)
    votes = VoteTable(items, np.zeros(1, np.int64), classes, none, none, none, anonymous=True)
    return votes.with_prior(shares[:, order])


def class_probabilities(table: Table, columns: Sequence[str]) -> Floats:
    """Read the probability of each class, from the columns called so: (rows, classes)."""
    cells = _class_columns(table, columns, "probabilities")
    sums = cells.sum(axis=1)
    refuse_rows(
        (cells < 0).any(axis=1) | ~(sums > 0),
        "probabilities",
        "has a negative number, or nothing but zeros; give the probability of each class.",
    )
    off = np.abs(sums - 1) > 0.02
    if off.any():
        row = int(np.argmax(off))
        note(
            f"probabilities: the sum of row {row + 1} is {sums[row]:.4g}, not 1; all rows are "
            "divided by their sums."
        )
    return np.asarray(cells / sums[:, None])


def _class_columns(table: Table, columns: Sequence[str], argument: str) -> NDArray[np.float64]:
    """Read columns of numbers, one for each class; empty cells are 0."""
    check_columns(table, columns, argument)
    if len(set(columns)) < 2:
        raise ArgumentError(argument, f"{listed(columns)}; name the column of each class.")
    cells = np.column_stack([reading.numbers(table.column(name)) for name in columns])
    for name, values in zip(columns, cells.T, strict=True):
        given = ~pd.isna(words_of(table.column(name), GAPS))
        refuse_rows(np.isnan(values) & given, argument, f"has no number in column {short(name)}.")
    return np.nan_to_num(cells, nan=0.0)


def _label_words(columns: Iterable[Array], gaps: Iterable[str] | None) -> NDArray[Any]:
    """Return the labels in columns, one column after the other, and note what was left out.

    They are text with single blanks; None where there is no vote.
    """
    words = frozenset(_GAPS) if gaps is None else reading.gap_words(gaps)
    cells = [cell for column in columns for cell in reading.text_of(column).to_pylist()]
    counts = Counter(cells)
    found = {cell: clean(cell or "") for cell in counts}
    dropped: Counter[str] = Counter()
    for cell, word in found.items():
        if word and word.lower() in words:
            dropped[word] += counts[cell]
    note_gaps(dropped, "votes")
    kept = {cell: None if word.lower() in words else word for cell, word in found.items()}
    return np.array([kept[cell] for cell in cells], dtype=object)


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
    refuse_rows(pd.isna(items), "id", f"has nothing in column {short(id)}; fill it in.")
    first: dict[Any, int] = {}
    for row, item in enumerate(items):
        if first.setdefault(item, row) != row:
            raise ArgumentError(
                "id",
                f"rows {first[item] + 1} and {row + 1} are both called {short(item)}; the column "
                "has to name each row differently.",
            )
    return items


def read_truth(
    table: Table, column: str, item: str | None = None, items: NDArray[Any] | None = None
) -> NDArray[Any]:
    """Read known labels.

    Parameters
    ----------
    table : Table
        The table.
    column : str
        The column of the known labels; empty where nothing is known.
    item : str, optional
        The column of what they are about, which may come again; the number of the row by default.
    items : array, optional
        The items that are asked about; all rows by default.

    Returns
    -------
    labels : object array of shape (n_items,)
        The labels, as text; None where nothing is known.
    """
    check_columns(table, [name for name in (item, column) if name is not None], "truth")
    names = item_names(table, None) if item is None else words_of(table.column(item))
    known: dict[Any, Any] = {}
    for row, (name, label) in enumerate(zip(names, words_of(table.column(column)), strict=True)):
        if label is not None and known.setdefault(name, label) != label:
            raise ArgumentError(
                "truth",
                f"item {short(name)} is {short(known[name])} and, in row {row + 1}, "
                f"{short(label)}; give one label per item.",
            )
    asked = names if items is None else items
    truth = np.array([known.get(str(name)) for name in asked], dtype=object)
    if pd.isna(truth).all():
        where = "row" if items is None else "of the items"
        raise ArgumentError("truth", f"column {short(column)} has no label for any {where}.")
    return truth


def score(labels: NDArray[Any], truth: NDArray[Any]) -> dict[str, float]:
    """Return how often labels are right where the truth is known, with a 95 % interval."""
    known = ~pd.isna(truth)
    found = estimate_accuracy(same_labels(labels[known], truth[known]))
    return {
        "known": found.n_decided,
        "accuracy": found.accuracy,
        "low": found.low,
        "high": found.high,
    }


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
    return Table(["item"], [pa.array(found.items.tolist())]), {
        "label": reading.label_column(found.classes, found.codes),
        "confidence": pa.array(found.confidence),
        "runner_up": reading.label_column(found.classes, found.runner_up_codes),
    }


def describe(found: Aggregation, others: Aggregation, truth: NDArray[Any] | None) -> dict[str, Any]:
    """Say in plain values what the rules say, where they differ and how annotators agree.

    Parameters
    ----------
    found : Aggregation
        The labels.
    others : Aggregation
        The same votes by ``method="auto"``, which has all rules.
    truth : array, optional
        Known labels, see `read_truth`; each rule is scored by them.

    Returns
    -------
    dict
    """
    n, n_annotators, q = found.votes.shape
    answers = dict(others.answers)
    if found.method == "auto":
        answers["auto"] = found.labels
    return {
        "method": found.method,
        "items": n,
        "votes": len(found.votes),
        "n_annotators": n_annotators,
        "classes": q,
        "unanimous": int(found.unanimous.sum()),
        "believed": float(found.confidence.mean()),
        "rules": [
            {
                "rule": name,
                "unlike_majority": int((labels != answers["majority"]).sum()),
                "held_out": others.held_out.get(name),
                **({} if truth is None else score(labels, truth)),
            }
            for name, labels in answers.items()
        ],
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
        measured is None.
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


def note_truth_from_votes(others: Aggregation, truth: NDArray[Any]) -> None:
    """Note known labels that are the majority of the votes: they check nothing.

    Parameters
    ----------
    others : Aggregation
        The labels by ``method="auto"``.
    truth : array
        Known labels, see `read_truth`.
    """
    split = ~pd.isna(truth) & ~others.unanimous
    if split.sum() < _MIN_SPLIT:
        return
    answers = others.answers["majority"]
    if same_labels(answers[split], truth[split]).all():
        note(
            f"the truth is the majority of the votes in all {int(split.sum())} items whose votes "
            "differ; if it was made from the votes, the accuracies say nothing."
        )


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
    return np.array(reading.texts(column, gaps).to_pylist(), dtype=object)


def same_labels(labels: NDArray[Any], others: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where two columns have the same label; spreadsheets write 3 as 3.0 at times."""
    pairs = zip(labels, others, strict=True)
    return np.fromiter((plain_label(a) == plain_label(b) for a, b in pairs), bool, len(labels))


def plain_label(label: Any) -> str:
    """Return a label as text; a whole number loses what follows its point."""
    return re.sub(r"^([+-]*\d+)\.0*$", r"\1", str(label))


@dataclass(frozen=True)
class Annotator:
    """How an annotator did.

    Parameters
    ----------
    name : str
        The name.
    votes : int
        The number of votes.
    agrees : float
        The share of them that are the label in the end.
    right : float
        How probable it is that a vote is right, as estimated.
    """

    name: str
    votes: int
    agrees: float
    right: float


@dataclass(frozen=True)
class Votes:
    """Votes on the rows of a table.

    Parameters
    ----------
    found : Aggregation
        What the votes say, with one item for each row of the table.
    candidates : CandidateSets
        The labels that each row got; their weights are the likelihoods of the votes.
    decided : int array of shape (n,)
        The class that is known for certain; −1 where none is.
    """

    found: Aggregation
    candidates: CandidateSets
    decided: NDArray[np.int64]

    @classmethod
    def collect(
        cls,
        votes: VoteTable,
        rows: NDArray[np.integer],
        decided: NDArray[np.int64],
        *,
        empty: str = "error",
    ) -> Votes:
        """Collect what votes say of the rows of a table.

        Parameters
        ----------
        votes : VoteTable
            The votes.
        rows : int array of shape (n_items,)
            The row of the table that each item is.
        decided : int array of shape (n,)
            The class of each row of the table that is known for certain; −1 where none is.
        empty : {"error", "any"}, default="error"
            Whether a row without a vote is an error, or may have any label.

        Returns
        -------
        Votes
        """
        classes = votes.classes
        if len(classes) < 2:
            found = as_objects(classes)[0]
            message = f"only {found!r} was voted for, so there is nothing to choose."
            raise ArgumentError("votes", message)
        n_rows, known = len(decided), decided >= 0
        item = rows[votes.item].astype(np.int32)
        heard = np.bincount(item, minlength=n_rows) + known
        without = np.flatnonzero(heard == 0)
        if len(without) and empty == "error":
            more = f" (and {len(without) - 1} more)" if len(without) > 1 else ""
            raise ArgumentError(
                "votes",
                f"row {without[0] + 1} of the table{more} has no vote; leave it out, or allow any "
                "label there",
                {"empty": "any"},
            )
        order = np.argsort(item, kind="stable")
        by_row = replace(
            votes,
            items=np.arange(n_rows),
            item=item[order],
            annotator=votes.annotator[order],
            label=votes.label[order],
        )
        prior = _known_prior(np.full((n_rows, len(classes)), np.nan), decided)
        aggregated = aggregate_votes(by_row.with_prior(prior if known.any() else None))
        return cls(aggregated, CandidateSets.from_aggregation(aggregated), decided)

    def judged(self, opinion: Floats, held_out: Floats | None) -> Votes:
        """Estimate again how far annotators can be trusted, beside what a model says.

        Where models that have not seen a row make its votes no more likely than the shares of the
        classes do, what the votes say alone stays as it is.

        Parameters
        ----------
        opinion : array
            How probable a model that has not seen the votes of a row finds each of its candidates.
        held_out : array of shape (n, q) or None
            How probable models that have not seen the row find each class; NaN in rows that no
            model was asked about. With None the opinion counts.

        Returns
        -------
        Votes
        """
        sets = self.candidates
        if held_out is not None and not self._more_likely_with(held_out):
            return self
        q = sets.shape[1]
        prior = np.full(sets.shape, 1 / q)
        prior[sets.rows, sets.indices] = opinion * sets.spread(sets.sizes) / q
        prior = _known_prior(prior, self.decided)
        return replace(self, found=aggregate_votes(self.found.votes.with_prior(prior)))

    def _more_likely_with(self, shares: Floats) -> bool:
        """Return whether probabilities of the classes make the votes more likely than shares do."""
        asked = (self.decided < 0) & ~np.isnan(shares[:, 0])
        likelihoods = self.found.likelihoods[asked]
        alone = likelihoods @ self.found.posteriors.mean(axis=0)
        both = (likelihoods * shares[asked]).sum(axis=1)
        gain = np.log(np.maximum(both, _TINY) / alone)
        return bool(gain.sum() > _MIN_Z * gain.std() * np.sqrt(len(gain)))

    def confidences(self) -> Floats:
        """Return the confidence in each candidate; the rest up to one is that in other labels."""
        return self.candidates.entries(self.found.posteriors)

    def chosen(self) -> NDArray[np.int64]:
        """Return the place of each row's label, by the votes, among all candidates.

        Ties go to the class with more votes in all, as in `skpll.crowd.aggregate`.
        """
        counts = self.found.votes.counts.sum(axis=0)
        first = _TIE * counts / max(counts.sum(), 1)
        return self.candidates.row_argmax(self.confidences() + first[self.candidates.indices])

    def with_names(self, ids: Sequence[str] | None) -> Aggregation:
        """Return what the votes say, with the names of the rows, or their numbers from 1."""
        found = self.found
        names = np.arange(1, len(found.items) + 1) if ids is None else np.array(ids, dtype=object)
        return replace(found, votes=replace(found.votes, items=names))

    def report(self, labels: NDArray[np.integer]) -> list[Annotator]:
        """Return how each annotator did, by name, given the final class of each row."""
        votes = self.found.votes
        if votes.anonymous:
            return []
        counts = votes.votes_per_annotator
        agreed = votes.label == labels[votes.item]
        shares = np.bincount(votes.annotator, agreed, len(counts)) / counts
        return [
            Annotator(str(name), int(counts[a]), float(shares[a]), float(self.found.quality[a]))
            for a, name in sorted(enumerate(votes.annotators), key=lambda pair: str(pair[1]))
        ]

    def by_row(self, row: int) -> dict[int, list[str]]:
        """Return who voted for which class in a row."""
        votes = self.found.votes
        voters: dict[int, list[str]] = {}
        first, last = np.searchsorted(votes.item, [row, row + 1])
        if votes.anonymous:
            labels, counts = np.unique(votes.label[first:last], return_counts=True)
            pairs = zip(labels.tolist(), counts.tolist(), strict=True)
            return {code: [f"{n} vote{'s' * (n > 1)}"] for code, n in pairs}
        for vote in range(first, last):
            name = str(votes.annotators[votes.annotator[vote]])
            voters.setdefault(int(votes.label[vote]), []).append(name)
        return voters


def _known_prior(prior: Floats, decided: NDArray[np.int64]) -> Floats:
    """Return the prior with certainty in the rows that are decided."""
    known = decided >= 0
    prior[known] = np.eye(prior.shape[1])[decided[known]]
    return prior
