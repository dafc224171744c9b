r"""Annotators who agree with each other more than their agreement with others explains.

On the items that annotators a and b both voted on, :math:`A_{ab}` is how often they agree, and
:math:`H_{ab}` how often they would by habit, from how often each gives each label. Let
:math:`C = A - H`, and :math:`C_{ao}`, :math:`C_{oo}` the means of it for a with the other
annotators of an item, and among these. Annotators who err independently of each other have

.. math:: C_{ab} = C_{ao} C_{bo} / C_{oo}

All are taken from the same items, so that easy items don't count as copying; nor do annotators who
always say the same. Pairs that agree far more often may have copied from each other or from the
same source, or one person has voted under two names. No rule that trusts agreement sees through
that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpll._labels import as_objects

from ._votes import Floats, VoteTable

MIN_ITEMS = 20
"""Pairs with fewer items in common, on which two others voted as well, are not judged."""

MIN_EXCESS = 0.05
"""The agreement of a pair is reported if it is above the expected one by this share of items."""

MIN_Z = 4.0
"""And by this number of standard errors."""

_MAX_VOTES = 300  # on an item that is looked at
_MAX_PAIR_ITEMS = 2_000_000  # beyond, a random part of the items is looked at
_MIN_AGREEMENT = 0.02  # of the others, beyond habit


@dataclass(frozen=True)
class AlikePair:
    """Two annotators who agree more often than their agreement with others explains.

    Parameters
    ----------
    first, second : object
        Their names.
    n_items : int
        The number of items that were compared.
    agreement : float
        The share of them on which they agree.
    expected : float
        The share that is expected of annotators who err independently of each other.

    Examples
    --------
    >>> from skpll.crowd import AlikePair
    >>> pair = AlikePair("Ann", "Bob", n_items=40, agreement=1.0, expected=0.7)
    >>> f"{pair.agreement - pair.expected:.1f}"
    '0.3'
    """

    first: Any
    second: Any
    n_items: int
    agreement: float
    expected: float


def alike_pairs(votes: VoteTable) -> list[AlikePair]:
    """Return pairs of annotators who may have copied from each other.

    Parameters
    ----------
    votes : VoteTable
        The votes. Only items with 4 to 300 votes are compared.

    Returns
    -------
    pairs : list of AlikePair
        Those first whose agreement is furthest above the expected one.

    Examples
    --------
    >>> import numpy as np
    >>> from skpll.crowd import VoteTable, alike_pairs
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(3, size=(100, 1))
    >>> rows = np.where(rng.random((100, 6)) < 0.7, truth, rng.integers(3, size=(100, 6)))
    >>> rows[:, 5] = rows[:, 4]
    >>> [(pair.first, pair.second) for pair in alike_pairs(VoteTable.from_wide(rows))]
    [(4, 5)]
    """
    if votes.anonymous or not len(votes):
        return []
    parts = [np.concatenate(part) for part in zip(*_pair_items(votes), strict=True)]
    if not parts:
        return []
    pairs, place, n_items = np.unique(parts[0], return_inverse=True, return_counts=True)
    judged = n_items >= MIN_ITEMS
    n = n_items[judged].astype(np.float64)
    means = [np.bincount(place, part, len(pairs))[judged] / n for part in parts[1:]]
    keys, agreed = pairs[judged], means[0]
    expected = _expected(*means[1:])
    error = np.sqrt(2 * np.maximum(expected * (1 - expected), 1 / n) / n)
    excess = agreed - expected
    far = np.flatnonzero((excess > MIN_EXCESS) & (excess > MIN_Z * error))
    names, n_annotators = as_objects(votes.annotators), len(votes.annotators)
    return [
        AlikePair(
            names[keys[p] // n_annotators],
            names[keys[p] % n_annotators],
            int(n[p]),
            float(agreed[p]),
            float(expected[p]),
        )
        for p in far[np.argsort(-excess[far], kind="stable")]
    ]


def _expected(habit: Floats, first: Floats, second: Floats, others: Floats) -> Floats:
    """Return the agreement of pairs that follows from that with and among others."""
    product = np.maximum(first, 0) * np.maximum(second, 0)
    return np.clip(habit + product / np.maximum(others, _MIN_AGREEMENT), 0, 1)


def _habits(votes: VoteTable) -> Floats:
    """Return how often each annotator gives each label."""
    n_annotators, q = len(votes.annotators), len(votes.classes)
    cells = votes.annotator.astype(np.int64) * q + votes.label
    counts = np.bincount(cells, minlength=n_annotators * q).reshape(n_annotators, q)
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))


def _pair_items(
    votes: VoteTable,
) -> Iterator[tuple[NDArray[np.int64], Floats, *tuple[Floats, ...]]]:
    """Yield pairs on items: their key, whether they agree, and what is expected of them.

    That is the agreement by habit, and the agreement beyond habit of the first with others, of the
    second with others, and among others.
    """
    order = np.argsort(votes.item, kind="stable")
    numbers = np.bincount(votes.item, minlength=len(votes.items))
    starts = np.concatenate(([0], np.cumsum(numbers)[:-1]))
    habits, looked_at = _habits(votes), _looked_at(numbers)
    for m in np.unique(numbers[looked_at]):
        items = looked_at[numbers[looked_at] == m]
        cast = order[starts[items][:, None] + np.arange(m)]
        cast = np.take_along_axis(cast, np.argsort(votes.annotator[cast], axis=1), axis=1)
        who, said = votes.annotator[cast].astype(np.int64), votes.label[cast]
        habit = np.einsum("niq,njq->nij", habits[who], habits[who])
        beyond = (said[:, :, None] == said[:, None, :]) - habit
        beyond[:, np.arange(m), np.arange(m)] = 0
        sums, total = beyond.sum(axis=2), beyond.sum(axis=(1, 2))
        for i, j in combinations(range(m), 2):
            own = beyond[:, i, j]
            others = total - 2 * (sums[:, i] + sums[:, j] - own)
            yield (
                who[:, i] * len(votes.annotators) + who[:, j],
                own + habit[:, i, j],
                habit[:, i, j],
                (sums[:, i] - own) / (m - 2),
                (sums[:, j] - own) / (m - 2),
                others / ((m - 2) * (m - 3)),
            )


def _looked_at(numbers: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return the items with at least four votes, or a random part of them if they are many."""
    items = np.flatnonzero((numbers >= 4) & (numbers <= _MAX_VOTES))
    work = numbers[items] * (numbers[items] - 1) / 2
    if work.sum() > _MAX_PAIR_ITEMS:
        mixed = np.random.default_rng(0).permutation(len(items))
        items = np.sort(items[mixed[np.cumsum(work[mixed]) <= _MAX_PAIR_ITEMS]])
    return items
