r"""How well annotators agree beyond chance.

Krippendorff's alpha for nominal labels is :math:`1 - D_o / D_e`: the disagreement observed between
votes on the same item, over the one expected if all votes were mixed. With :math:`n_{ik}` votes for
class k on item i, :math:`m_i` votes on item i of which at least two are needed, and N votes in all,

.. math:: D_o = \frac1N \sum_i \frac{m_i^2 - \sum_k n_{ik}^2}{m_i - 1},
   \qquad D_e = \frac{N^2 - \sum_k n_k^2}{N (N - 1)}

The alpha of a class is that of "this class or another". Cohen's kappa of two annotators is
:math:`(p_o - p_e) / (1 - p_e)` over the items that both voted on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skpll._progress import tracked

from ._votes import Floats, VoteTable

MIN_SHARED_ITEMS = 5
"""Pairs of annotators with fewer items in common have no kappa."""

_BLOCK = 256


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
    >>> rows = [["x", "x", "y"], ["y", "y", "y"], ["x", "y", "x"], ["y", "y", "x"]]
    >>> votes = VoteTable.from_wide(rows)
    >>> found = agreement(votes, min_shared=1)
    >>> found.n_pairs, found.costliest.tolist()
    (3, [2, 1, 0])
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
    >>> rows = [["x", "x", "y"], ["y", "y", "y"], ["x", "y", "x"], ["y", "y", "x"]]
    >>> votes = VoteTable.from_wide(rows)
    >>> round(krippendorff_alpha(votes), 3)
    0.057
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
    by_class = [
        _incidence(votes.annotator[votes.label == k], votes.item[votes.label == k], votes)
        for k in range(len(votes.classes))
    ]
    every = _incidence(votes.annotator, votes.item, votes)
    sums, weights, n_pairs = np.zeros(n_annotators), np.zeros(n_annotators), 0
    starts = range(0, n_annotators, _BLOCK)
    for start in tracked(starts, "Agreement of annotators", len(starts)):
        block = slice(start, start + _BLOCK)
        shared = (every[block] @ every.T).toarray()
        agreed, chance = np.zeros_like(shared), np.zeros_like(shared)
        for rows in by_class:
            agreed += (rows[block] @ rows.T).toarray()
            chance += (rows[block] @ every.T).toarray() * (every[block] @ rows.T).toarray()
        kappas, usable = _kappas(shared, agreed, chance, min_shared)
        usable[np.arange(usable.shape[0]), start + np.arange(usable.shape[0])] = False
        weight = np.where(usable, shared, 0.0)
        sums[block] = (np.where(usable, kappas, 0.0) * weight).sum(axis=1)
        weights[block] = weight.sum(axis=1)
        n_pairs += int(usable.sum())
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.divide(sums.sum(), weights.sum())), n_pairs // 2, sums / weights


def _kappas(
    shared: Floats, agreed: Floats, chance: Floats, min_shared: int
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return kappas, and where there is one: on enough items that are not all of one class."""
    with np.errstate(invalid="ignore", divide="ignore"):
        observed, expected = agreed / shared, chance / shared**2
        kappas = (observed - expected) / (1 - expected)
    return kappas, (shared >= min_shared) & (expected < 1 - 1e-12)


def _incidence(
    annotator: NDArray[Any], item: NDArray[Any], votes: VoteTable
) -> sparse.csr_array[np.float64]:
    shape = (len(votes.annotators), len(votes.items))
    return sparse.csr_array(sparse.coo_array((np.ones(len(item)), (annotator, item)), shape=shape))
