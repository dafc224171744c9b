"""A table of votes: who said what about which item, as three arrays of integer codes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from skpll._labels import LabelError, as_objects, encode_labels, is_missing

Codes = NDArray[np.int32]
Floats = NDArray[np.float64]

USUAL_MISSING_CODES = (-1, -9, -99, -999)
"""Numbers that often stand for "did not vote" in tables whose classes are 0, 1, 2, …"""

_MIN_SHARE = 1e-10


class Pairs(NamedTuple):
    """Pairs of an annotator and a label, sorted."""

    annotator: Codes
    label: Codes
    matrix: sparse.csr_array[np.float64]
    """Of zeros and ones: which item (row) got which pair (column)."""


@dataclass(frozen=True)
class VoteTable:
    """Votes of annotators on items, at most one of an annotator on an item.

    Use `from_long` for one vote per row, `from_wide` for one column per annotator.

    Parameters
    ----------
    items, annotators, classes : array
        The distinct items and annotators, in the order of their first vote, and the sorted classes.
    item, annotator, label : int array of shape (number of votes,)
        The position of each vote's item, annotator and label in these arrays.
    notes : tuple of str
        What was changed or left out on reading.
    every_pair : bool, default=False
        Whether `pairs` has a column for each annotator and each class, also where the
        annotator has never given that label.
    prior : array of shape (n_items, n_classes), optional
        The probability of each class of an item before its votes, for instance by a model that has
        not seen them; 0 and 1 where the label is known, NaN in rows of which nothing is known.
    anonymous : bool, default=False
        Whether it is not known whose the votes are; then there is one annotator for all.

    Examples
    --------
    >>> from skpll.crowd import VoteTable
    >>> votes = VoteTable.from_long([1, 1, 2], ["anna", "bert", "anna"], ["x", "y", "y"])
    >>> votes.classes.tolist(), votes.counts.tolist()
    (['x', 'y'], [[1.0, 1.0], [0.0, 1.0]])
    """

    items: NDArray[Any]
    annotators: NDArray[Any]
    classes: NDArray[Any]
    item: Codes
    annotator: Codes
    label: Codes
    notes: tuple[str, ...] = ()
    every_pair: bool = False
    prior: Floats | None = None
    anonymous: bool = False

    @classmethod
    def from_long(
        cls,
        items: ArrayLike,
        annotators: ArrayLike,
        labels: ArrayLike,
        *,
        missing: Iterable[Any] | None = None,
    ) -> VoteTable:
        """Read votes that are given one by one.

        Parameters
        ----------
        items, annotators, labels : array-like of equal length
            What each vote is about, whose it is and the label that it gives. Votes whose label is
            None or NaN are left out.
        missing : iterable of labels, optional
            Further labels that mean "did not vote". By default −1, −9, −99 and −999 do, if all
            other labels are whole numbers from 0 (see `usual_missing`).

        Returns
        -------
        VoteTable
            Of several votes of an annotator on an item only the last one counts; a note says so.
        """
        given = [_column(values) for values in (items, annotators, labels)]
        if len({len(values) for values in given}) > 1:
            sizes = ", ".join(str(len(values)) for values in given)
            raise ValueError(
                f"labels: items, annotators and labels have {sizes} entries; give one of each for "
                "every vote."
            )
        kept, notes = _voted(given[2], missing)
        given = [values[kept] for values in given]
        if not len(given[2]):
            raise ValueError("labels: there are no votes.")
        (item, item_names), (annotator, names) = map(_first_seen, given[:2])
        try:
            label, classes = encode_labels(given[2], None)
        except LabelError as error:
            vote = int(np.flatnonzero(kept)[error.position])
            raise ValueError(f"labels: vote {vote}: {error}") from None
        last = _last_votes(item, annotator, len(names))
        notes += _repeated(item, annotator, label, last)
        return cls(item_names, names, classes, item[last], annotator[last], label[last], notes)

    @classmethod
    def from_wide(
        cls,
        votes: ArrayLike,
        *,
        items: ArrayLike | None = None,
        annotators: ArrayLike | None = None,
        missing: Iterable[Any] | None = None,
    ) -> VoteTable:
        """Read a matrix with a row per item and a column per annotator.

        Parameters
        ----------
        votes : array-like of shape (n_items, n_annotators)
            The labels; None, NaN and the codes of `missing` where an annotator did not vote.
        items, annotators : array-like, optional
            Names of rows and columns; by default their numbers.
        missing : iterable of labels, optional
            As for `from_long`.

        Returns
        -------
        VoteTable
        """
        cells = np.asarray(votes)
        if cells.ndim != 2:
            raise ValueError(f"votes: expected a matrix, got {cells.ndim} dimension(s).")
        rows = np.arange(len(cells)) if items is None else _column(items)
        columns = np.arange(cells.shape[1]) if annotators is None else _column(annotators)
        return cls.from_long(
            np.repeat(rows, len(columns)),
            np.tile(columns, len(rows)),
            cells.ravel(),
            missing=missing,
        )

    @classmethod
    def from_counts(
        cls,
        counts: ArrayLike,
        *,
        items: ArrayLike | None = None,
        classes: ArrayLike | None = None,
    ) -> VoteTable:
        """Read the number of votes for each class, where it is not known whose they are.

        Parameters
        ----------
        counts : array-like of shape (n_items, n_classes)
            The numbers of votes; NaN counts as 0.
        items, classes : array-like, optional
            Names of rows and columns; by default their numbers.

        Returns
        -------
        VoteTable
            With all items, also those without votes.

        Examples
        --------
        >>> from skpll.crowd import VoteTable, aggregate_votes
        >>> votes = VoteTable.from_counts([[3, 0], [1, 2]], classes=["no", "yes"])
        >>> aggregate_votes(votes).labels.tolist()
        ['no', 'yes']
        """
        cells = np.nan_to_num(np.asarray(counts, dtype=np.float64), nan=0.0)
        if cells.ndim != 2:
            raise ValueError(f"counts: expected a matrix, got {cells.ndim} dimension(s).")
        wrong = np.argwhere((cells < 0) | (cells != np.round(cells)) | ~np.isfinite(cells))
        if len(wrong):
            row, column = wrong[0]
            raise ValueError(
                f"counts: row {row} has {cells[row, column]:g}; numbers of votes are whole numbers "
                "from 0."
            )
        if not cells.any():
            raise ValueError("counts: there are no votes.")
        n, q = cells.shape
        names = np.arange(q) if classes is None else _column(classes)
        label, sorted_names = encode_labels(names, None)
        if len(sorted_names) < q:
            raise ValueError("classes: two columns have the same name; name each class once.")
        row, column = np.nonzero(cells)
        times = cells[row, column].astype(np.int64)
        return cls(
            np.arange(n) if items is None else _column(items),
            np.zeros(1, np.int64),
            sorted_names,
            np.repeat(row, times).astype(np.int32),
            np.zeros(int(times.sum()), np.int32),
            np.repeat(label[column], times).astype(np.int32),
            anonymous=True,
        )

    def __len__(self) -> int:
        """Return the number of votes."""
        return len(self.label)

    @property
    def shape(self) -> tuple[int, int, int]:
        """The number of items, annotators and classes."""
        return len(self.items), len(self.annotators), len(self.classes)

    @cached_property
    def counts(self) -> Floats:
        """The number of votes for each class, of shape (n_items, n_classes)."""
        n, _, q = self.shape
        cells = self.item.astype(np.int64) * q + self.label
        return np.bincount(cells, minlength=n * q).reshape(n, q).astype(np.float64)

    @property
    def shares(self) -> Floats:
        """The share of the votes for each class, of shape (n_items, n_classes)."""
        return self.counts / self.counts.sum(axis=1, keepdims=True).clip(1)

    @cached_property
    def votes_per_annotator(self) -> NDArray[np.int64]:
        """The number of votes of each annotator."""
        return np.bincount(self.annotator, minlength=len(self.annotators)).astype(np.int64)

    @cached_property
    def pairs(self) -> Pairs:
        """The (annotator, label) pairs that occur, and which item has which."""
        n, n_annotators, q = self.shape
        pair = self.annotator.astype(np.int64) * q + self.label
        if self.every_pair or n_annotators * q <= len(self):
            seen, column = np.arange(n_annotators * q), pair
        else:
            seen, column = np.unique(pair, return_inverse=True)
        cells = (np.ones(len(pair)), (self.item, column.astype(np.int32)))
        matrix = sparse.csr_array(sparse.coo_array(cells, shape=(n, len(seen))))
        return Pairs((seen // q).astype(np.int32), (seen % q).astype(np.int32), matrix)

    def with_all_pairs(self) -> VoteTable:
        """Return the same votes with a column of `pairs` for every annotator and class."""
        return replace(self, every_pair=True)

    def with_prior(self, prior: Floats | None) -> VoteTable:
        """Return the same votes with what is known of the items beside them.

        Parameters
        ----------
        prior : array of shape (n_items, n_classes) or None
            See `VoteTable`.

        Returns
        -------
        VoteTable
        """
        if prior is not None and prior.shape != self.counts.shape:
            raise ValueError(
                f"prior: its shape is {prior.shape}; a probability for each of "
                f"{self.counts.shape} items and classes is needed."
            )
        return replace(self, prior=prior)

    def log_prior(self, shares: Floats) -> Floats:
        """Return the logarithms of the prior; of the class shares where there is none.

        Parameters
        ----------
        shares : array of shape (n_classes,)
            The shares of the classes.

        Returns
        -------
        logs : array of shape (n_classes,) or (n_items, n_classes)
        """
        logs = np.log(np.maximum(shares, _MIN_SHARE))
        if self.prior is None:
            return logs
        with np.errstate(divide="ignore"):
            return np.where(np.isnan(self.prior), logs, np.log(self.prior))

    def select(self, votes: NDArray[np.bool_]) -> VoteTable:
        """Return the table of some of the votes, with the same items, annotators and classes.

        Parameters
        ----------
        votes : bool array of shape (number of votes,)
            Which votes to keep.

        Returns
        -------
        VoteTable
        """
        item, annotator, label = self.item[votes], self.annotator[votes], self.label[votes]
        return replace(self, item=item, annotator=annotator, label=label, notes=())

    def without_empty_items(self) -> VoteTable:
        """Return the same votes without the items and annotators that have none."""
        seen, item = np.unique(self.item, return_inverse=True)
        known, annotator = np.unique(self.annotator, return_inverse=True)
        return replace(
            self,
            items=self.items[seen],
            item=item.astype(np.int32),
            annotators=self.annotators[known],
            annotator=annotator.astype(np.int32),
            prior=None if self.prior is None else self.prior[seen],
        )


def usual_missing(counts: Mapping[Any, int]) -> list[Any]:
    """Return the labels that stand for "did not vote".

    A label −1, −9, −99 or −999 does if all other labels are whole numbers from 0 and there are at
    least two of them. Labels −1, 0 and 1 may well be three classes: among them −1 is missing only
    if it is more than half of the votes.

    Parameters
    ----------
    counts : mapping from label to int
        How often each label occurs; labels are numbers, or text that spells them.

    Returns
    -------
    codes : list
        The labels that are codes, as they were given.
    """
    numbers: dict[int, Any] = {}
    for label in counts:
        number = _whole_number(label)
        if number is None:
            return []
        numbers[number] = label
    codes = [number for number in USUAL_MISSING_CODES if number in numbers]
    others = [number for number in numbers if number not in codes]
    if len(others) < 2 or min(others) < 0:
        return []
    if sorted(numbers) == [-1, 0, 1] and 2 * counts[numbers[-1]] <= sum(counts.values()):
        return []
    return [numbers[code] for code in codes]


def _whole_number(label: Any) -> int | None:
    """Return the whole number that a label is or spells; None if there is none."""
    try:
        number = float(label)
    except (TypeError, ValueError):
        return None
    return int(number) if number.is_integer() and not isinstance(label, bool | np.bool_) else None


def _column(values: ArrayLike) -> NDArray[Any]:
    """Return values as a one-dimensional array that keeps each of them as it is."""
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    if isinstance(values, np.ndarray) and values.ndim == 1:
        return values
    return _flat(list(values))  # type: ignore[arg-type]


def _flat(values: list[Any]) -> NDArray[Any]:
    kinds = {type(value) for value in values}
    if len(kinds) == 1 and kinds <= {int, float, str, np.int64, np.int32, np.float64, np.str_}:
        return np.asarray(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _voted(
    labels: NDArray[Any], missing: Iterable[Any] | None
) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """Return which votes have a label, and notes on those that have none."""
    if labels.dtype.kind == "O":
        kept = np.fromiter((not is_missing(label) for label in labels), bool, len(labels))
    else:
        kept = labels == labels  # all but NaN
    notes: tuple[str, ...] = ()
    counts = Counter(as_objects(labels[kept]))
    codes = usual_missing(counts) if missing is None else [x for x in missing if x in counts]
    coded = np.zeros(len(labels), bool)
    for code in codes:
        coded |= labels == code
        note = f"{_votes_are(counts[code])} {code!r}, which counts as missing"
        notes += (f"{note} (a usual code)." if missing is None else f"{note}.",)
    return kept & ~coded, notes


def _first_seen(values: NDArray[Any]) -> tuple[Codes, NDArray[Any]]:
    """Return the position of each value among the distinct ones, in order of appearance."""
    if values.dtype.kind == "O":
        number: dict[Any, int] = {}
        codes = [number.setdefault(value, len(number)) for value in values]
        return np.asarray(codes, np.int32), _flat(list(number))
    distinct, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return np.argsort(order).astype(np.int32)[inverse], distinct[order]


def _last_votes(item: Codes, annotator: Codes, n_annotators: int) -> NDArray[np.intp]:
    """Return the positions of the last vote of each annotator on each item, in order."""
    key = item.astype(np.int64) * n_annotators + annotator
    _, first = np.unique(key[::-1], return_index=True)
    if len(first) == len(key):
        return np.arange(len(key))
    return np.sort(len(key) - 1 - first)


def _repeated(
    item: Codes, annotator: Codes, label: Codes, last: NDArray[np.intp]
) -> tuple[str, ...]:
    """Return a note on votes that are repeated, if there are any."""
    n_repeated = len(item) - len(last)
    if not n_repeated:
        return ()
    pairs = np.unique(np.column_stack((item, annotator, label)), axis=0)
    n_changed = len(pairs) - len(last)
    changed = f" ({n_changed} of them gave another label)" if n_changed else ""
    return (
        f"{_votes_are(n_repeated)} of an annotator who voted on the same item again{changed}; "
        "only the last one counts.",
    )


def _votes_are(n: int) -> str:
    return "1 vote is" if n == 1 else f"{n} votes are"
