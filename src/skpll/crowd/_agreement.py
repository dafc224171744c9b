r"""How well annotators agree beyond chance, and who agrees too well.

Krippendorff's alpha for nominal labels is :math:`1 - D_o / D_e`: the disagreement observed between
votes on the same item, over the one expected if all votes were mixed. With :math:`n_{ik}` votes for
class k on item i, :math:`m_i` votes on item i of which at least two are needed, and N votes in all,

.. math:: D_o = \frac1N \sum_i \frac{m_i^2 - \sum_k n_{ik}^2}{m_i - 1},
   \qquad D_e = \frac{N^2 - \sum_k n_k^2}{N (N - 1)}

The alpha of a class is that of "this class or another". Cohen's kappa of two annotators is
:math:`(p_o - p_e) / (1 - p_e)` over the items that both voted on.

Annotators may copy from each other. On the items that a and b both voted on, :math:`A_{ab}` is how
often they agree, and :math:`H_{ab}` how often they would by habit, from how often each gives each
label. Let :math:`C = A - H`, and :math:`C_{ao}`, :math:`C_{oo}` the means of it for a with the
other annotators of an item, and among these. Annotators who err independently of each other have

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
from skpll._progress import tracked

from ._votes import Floats, VoteTable

MIN_SHARED_ITEMS = 5
"""Pairs of annotators with fewer items in common have no kappa."""

MIN_ITEMS = 20
"""Pairs with fewer items in common, on which two others voted as well, are not judged."""

MIN_EXCESS = 0.05
"""The agreement of a pair is reported if it is above the expected one by this share of items."""

MIN_Z = 4.0
"""And by this number of standard errors."""

_BLOCK = 256  # annotators whose kappas are computed at once
_MAX_VOTES = 300  # on an item that is looked at
_MAX_PAIR_ITEMS = 2_000_000  # beyond, a random part of the items is looked at
_MIN_AGREEMENT = 0.02  # of the others, beyond habit


@dataclass(frozen=True)
class Agreement:
    """How well annotators agree.

    Parameters
    ----------
    alpha : float
        Krippendorff's alpha: 1 for perfect agreement, 0 for chance; NaN if no item has two votes,
        or all votes are for one class.
    kappa : float
        The mean of Cohen's kappa over pairs of annotators, weighted by the items they share; NaN
        if no pair shares enough items.
    n_pairs : int
        The number of such pairs.
    class_alpha : array of shape (n_classes,)
        Alpha of each class against all others.
    annotator_kappa : array of shape (n_annotators,)
        The mean kappa of each annotator with the others.
    cost : array of shape (n_annotators,)
        By how much alpha rises if the annotator's votes are left out: positive for annotators
        who disagree with the others.

    Examples
    --------
    >>> from skpll.crowd import VoteTable, agreement
    >>> votes = VoteTable.from_wide([["x", "x", "y"], ["y", "y", "y"], ["x", "y", "x"]])
    >>> found = agreement(votes, min_shared=1)
    >>> found.n_pairs, found.costliest.tolist()
    (3, [1, 2, 0])
    """

    alpha: float
    kappa: float
    n_pairs: int
    class_alpha: Floats
    annotator_kappa: Floats
    cost: Floats

    @property
    def costliest(self) -> NDArray[np.intp]:
        """The positions of the annotators, those first whose votes cost most agreement."""
        return np.argsort(-np.nan_to_num(self.cost, nan=-np.inf), kind="stable")


def agreement(votes: VoteTable, *, min_shared: int = MIN_SHARED_ITEMS) -> Agreement:
    """Measure how well annotators agree.

    Parameters
    ----------
    votes : VoteTable
        The votes.
    min_shared : int, default=5
        Two annotators need this number of items in common to be compared.

    Returns
    -------
    Agreement

    Examples
    --------
    >>> from skpll.crowd import VoteTable, agreement
    >>> votes = VoteTable.from_wide([["x", "x"], ["y", "y"], ["x", "y"], ["y", "y"]])
    >>> round(agreement(votes).alpha, 3)
    0.533
    """
    kappa, n_pairs, of_annotator = _mean_kappas(votes, min_shared)
    alpha = krippendorff_alpha(votes)
    return Agreement(
        alpha, kappa, n_pairs, _class_alphas(votes), of_annotator, _alphas_without(votes) - alpha
    )


def krippendorff_alpha(votes: VoteTable) -> float:
    """Return Krippendorff's alpha for nominal labels.

    Parameters
    ----------
    votes : VoteTable
        The votes.

    Returns
    -------
    alpha : float
        NaN if no item has two votes, or all votes are for one class.

    Examples
    --------
    >>> from skpll.crowd import VoteTable, krippendorff_alpha
    >>> votes = VoteTable.from_wide([["x", "x", "y"], ["y", "y", "y"], ["x", "y", "x"]])
    >>> round(krippendorff_alpha(votes), 3)
    0.2
    """
    paired = votes.counts[votes.counts.sum(axis=1) > 1]
    disagreement = _disagreement(paired.sum(axis=1), (paired**2).sum(axis=1)).sum()
    return float(_alpha(disagreement, paired.sum(axis=0)[None])[0])


def _disagreement(n_votes: Any, squares: Any) -> Floats:
    """Return the part of N Do that items with the given votes have; 0 for less than two votes."""
    found = (n_votes**2 - squares) / np.maximum(n_votes - 1, 1)
    return np.where(n_votes > 1, found, 0.0)


def _alpha(disagreement: Any, totals: Floats) -> Floats:
    """Return alpha from N Do and the votes for each class, one row of totals for each value."""
    n_votes = totals.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = (n_votes**2 - (totals**2).sum(axis=1)) / (n_votes - 1)
        return np.where(expected > 0, 1 - disagreement / expected, np.nan)


def _class_alphas(votes: VoteTable) -> Floats:
    paired = votes.counts[votes.counts.sum(axis=1) > 1]
    n_votes = paired.sum(axis=1, keepdims=True)
    squares = paired**2 + (n_votes - paired) ** 2
    totals = paired.sum(axis=0)
    both = np.column_stack((totals, totals.sum() - totals))
    return _alpha(_disagreement(n_votes, squares).sum(axis=0), both)


def _alphas_without(votes: VoteTable) -> Floats:
    """Return alpha without each annotator in turn, from the items that annotator voted on."""
    n_votes = votes.counts.sum(axis=1)
    squares = (votes.counts**2).sum(axis=1)
    paired = n_votes > 1
    m, own = n_votes[votes.item], votes.counts[votes.item, votes.label]
    with_vote = _disagreement(m, squares[votes.item])
    without = _disagreement(m - 1, squares[votes.item] - 2 * own + 1)
    changes = np.bincount(votes.annotator, without - with_vote, len(votes.annotators))
    total = _disagreement(n_votes, squares).sum()
    return _alpha(total + changes, votes.counts[paired].sum(axis=0) - _leaving(votes, m))


def _leaving(votes: VoteTable, n_votes: Floats) -> Floats:
    """Return how many paired votes for each class go with each annotator.

    The other vote on an item that had two is alone then, and goes as well.
    """
    q = len(votes.classes)
    shape = (len(votes.annotators), q)
    gone = np.zeros(shape)
    np.add.at(gone, (votes.annotator, votes.label), n_votes > 1)
    two = n_votes == 2
    partner = votes.counts[votes.item[two]]
    partner[np.arange(len(partner)), votes.label[two]] -= 1
    np.add.at(gone, votes.annotator[two], partner)
    return gone


def _mean_kappas(votes: VoteTable, min_shared: int) -> tuple[float, int, Floats]:
    """Return the mean kappa over pairs, the number of pairs, and each annotator's mean."""
    n_annotators = len(votes.annotators)
    pairs = votes.with_all_pairs().pairs
    by_class = [pairs.matrix[:, pairs.label == k].T.tocsr() for k in range(len(votes.classes))]
    every = sum(by_class[1:], start=by_class[0])
    sums, weights, n_pairs = np.zeros(n_annotators), np.zeros(n_annotators), 0
    starts = range(0, n_annotators, _BLOCK)
    for start in tracked(starts, "Agreement of annotators", len(starts)):
        block = slice(start, start + _BLOCK)
        shared = (every[block] @ every.T).toarray()
        agreed, chance = np.zeros_like(shared), np.zeros_like(shared)
        for rows in by_class:
            agreed += (rows[block] @ rows.T).toarray()
            chance += (rows[block] @ every.T).toarray() * (every[block] @ rows.T).toarray()
        with np.errstate(invalid="ignore", divide="ignore"):
            observed, expected = agreed / shared, chance / shared**2
            kappas = (observed - expected) / (1 - expected)
        usable = (shared >= min_shared) & (expected < 1 - 1e-12)  # not all of one class
        usable[np.arange(usable.shape[0]), start + np.arange(usable.shape[0])] = False
        weight = np.where(usable, shared, 0.0)
        sums[block] = (np.where(usable, kappas, 0.0) * weight).sum(axis=1)
        weights[block] = weight.sum(axis=1)
        n_pairs += int(usable.sum())
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.divide(sums.sum(), weights.sum())), n_pairs // 2, sums / weights


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
    agreed, habit, first, second, others = means
    beyond = np.maximum(first, 0) * np.maximum(second, 0) / np.maximum(others, _MIN_AGREEMENT)
    keys, expected = pairs[judged], np.clip(habit + beyond, 0, 1)
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


def _pair_items(votes: VoteTable) -> Iterator[tuple[NDArray[Any], ...]]:
    """Yield pairs on items: their key, whether they agree, and what is expected of them.

    That is the agreement by habit, and the agreement beyond habit of the first with others, of the
    second with others, and among others.
    """
    order = np.argsort(votes.item, kind="stable")
    numbers = np.bincount(votes.item, minlength=len(votes.items))
    starts = np.concatenate(([0], np.cumsum(numbers)[:-1]))
    given: Floats = votes.with_all_pairs().pairs.matrix.sum(axis=0)
    given = given.reshape(len(votes.annotators), -1)
    habits = given / np.maximum(given.sum(axis=1, keepdims=True), 1)  # how often each label
    looked_at = _looked_at(numbers)
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
