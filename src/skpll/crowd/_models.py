r"""Models of annotators, fitted by expectation maximization.

The label of item i is :math:`y_i`, with class shares :math:`\pi`. Annotator a says k about an item
of class j with probability :math:`C_{ajk}`, independently of other annotators:

.. math:: P(y_i = j \mid votes) \propto \pi_j \prod_{(a, k) \in V_i} C_{ajk}

- *Majority*: the share of the votes.
- *One coin*: :math:`C_{ajj} = p_a`, all other entries :math:`(1 - p_a) / (q - 1)`.
- *Dawid–Skene*: C has no particular form.

Annotators with few votes are not known well. With :math:`n_a` votes of which :math:`r_a` are
expected to be right, :math:`p_a = (r_a + s \bar p) / (n_a + s)`, where :math:`\bar p` is the pooled
share of right votes. In Dawid–Skene's model,

.. math:: C_{ajk} = (N_{ajk} + s B_{ajk}) / (N_{aj} + s)

with the expected numbers N of votes and B the pooled confusion at the skill of the annotator:
:math:`\mathrm{logit} B_{ajj} = \mathrm{logit} \bar C_{jj} + \mathrm{logit} p_a - \mathrm{logit}
\bar p`, and the rest spread over the other classes as in :math:`\bar C`. The pooled confusion
:math:`\bar C` is taken from the shares of the votes and stays what it is: re-estimated, it lets the
meaning of the classes drift.

Where something is known of an item beside the votes (`VoteTable.prior`), that takes the place of
:math:`\pi`: what a model says that has not seen the votes, or a label that a person has decided.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skpll._progress import progress

from ._votes import Codes, Floats, VoteTable

SHRINKAGE = 10.0
"""Votes that the pooled behaviour counts for, in the estimates of each annotator."""

POOLED = 1e9
"""A shrinkage that leaves every annotator the pooled skill."""

MAX_ITER, TOL = 100, 1e-5

_EPS = 1e-10
_SKILL_RANGE = (0.01, 0.99)


@dataclass(frozen=True)
class AnnotatorModel:
    """What a model says of the items and of the annotators.

    Parameters
    ----------
    posteriors : array of shape (n_items, n_classes)
        The probability of each class, given the votes and the model's assumptions.
    skill : array of shape (n_annotators,)
        The probability that a vote of each annotator is right.
    n_iter : int
        The number of EM iterations.

    Examples
    --------
    >>> from skpll.crowd import VoteTable, fit_one_coin
    >>> rows = [["x", "x", "y"], ["y", "y", "y"], ["x", "y", "x"], ["y", "y", "x"]]
    >>> votes = VoteTable.from_wide(rows)
    >>> fit_one_coin(votes).posteriors.shape
    (4, 2)
    """

    posteriors: Floats
    skill: Floats
    n_iter: int = 0


def fit_majority(votes: VoteTable) -> AnnotatorModel:
    """Return the share of the votes for each class; of all votes where an item has none.

    Parameters
    ----------
    votes : VoteTable
        The votes.

    Returns
    -------
    AnnotatorModel

    Examples
    --------
    >>> from skpll.crowd import VoteTable, fit_majority
    >>> rows = [["x", "x", "y"], ["y", "y", "y"], ["x", "y", "x"], ["y", "y", "x"]]
    >>> votes = VoteTable.from_wide(rows)
    >>> fit_majority(votes).posteriors[0].round(2).tolist()
    [0.67, 0.33]
    """
    shares = votes.shares
    without = shares.sum(axis=1) == 0
    if without.any():
        shares[without] = votes.counts.sum(axis=0) / max(len(votes), 1)
    return AnnotatorModel(shares, skills(votes, shares, 0.0))


def fit_one_coin(
    votes: VoteTable,
    *,
    shrinkage: float = SHRINKAGE,
    max_iter: int = MAX_ITER,
    tol: float = TOL,
) -> AnnotatorModel:
    """Fit one probability of being right for each annotator.

    Parameters
    ----------
    votes : VoteTable
        The votes.
    shrinkage : float, default=10
        The number of votes that the pooled skill counts for; 0 for maximum likelihood.
    max_iter : int, default=100
        The maximum number of EM iterations.
    tol : float, default=1e-5
        EM stops when the mean change of a posterior is not above `tol`; −1 for never.

    Returns
    -------
    AnnotatorModel

    Examples
    --------
    >>> from skpll.crowd import VoteTable, fit_one_coin
    >>> rows = [["x", "x", "y"], ["y", "y", "y"], ["x", "y", "x"], ["y", "y", "x"]]
    >>> votes = VoteTable.from_wide(rows)
    >>> fit_one_coin(votes).posteriors.argmax(axis=1).tolist()
    [1, 1, 1, 1]
    """
    return _expectation_maximization(votes, coin_confusions, shrinkage, max_iter, tol)


def vote_log_odds(right: float, cast: float, n_classes: int) -> float:
    """Return by how much a vote raises the log-odds of its label, if all annotators are alike.

    Parameters
    ----------
    right, cast : float
        The number of votes that are right, as expected, and of all.
    n_classes : int
        The number of classes; a wrong vote falls on any of the others.

    Returns
    -------
    log_odds : float
        0 for votes that are right less often than by chance.
    """
    skill = float(np.clip(right / cast, *_SKILL_RANGE))
    return max(float(np.log(skill * max(n_classes - 1, 1) / (1 - skill))), 0.0)


def fit_dawid_skene(
    votes: VoteTable,
    *,
    shrinkage: float = SHRINKAGE,
    max_iter: int = MAX_ITER,
    tol: float = TOL,
) -> AnnotatorModel:
    """Fit a confusion matrix for each annotator.

    Parameters
    ----------
    votes : VoteTable
        The votes.
    shrinkage : float, default=10
        The number of votes that the pooled confusion counts for, in each row of an annotator's
        confusion matrix; 0 for maximum likelihood.
    max_iter : int, default=100
        The maximum number of EM iterations.
    tol : float, default=1e-5
        EM stops when the mean change of a posterior is not above `tol`; −1 for never.

    Returns
    -------
    AnnotatorModel

    Examples
    --------
    >>> from skpll.crowd import VoteTable, fit_dawid_skene
    >>> rows = [["x", "x", "y"], ["y", "y", "y"], ["x", "y", "x"], ["y", "y", "x"]]
    >>> votes = VoteTable.from_wide(rows)
    >>> fit_dawid_skene(votes).posteriors.argmax(axis=1).tolist()
    [0, 1, 0, 1]
    """
    return _expectation_maximization(votes, full_confusions, shrinkage, max_iter, tol)


def expected_counts(votes: VoteTable, posteriors: Floats) -> Floats:
    """Return how often each (annotator, label) pair is expected to meet each true class.

    Parameters
    ----------
    votes : VoteTable
        The votes.
    posteriors : array of shape (n_items, n_classes)
        The probability of each class.

    Returns
    -------
    counts : array of shape (n_pairs, n_classes)
    """
    return np.asarray(votes.pairs.matrix.T @ posteriors)


def skills(votes: VoteTable, posteriors: Floats, shrinkage: float) -> Floats:
    """Return the probability that a vote of each annotator is right, given posteriors.

    Parameters
    ----------
    votes : VoteTable
        The votes.
    posteriors : array of shape (n_items, n_classes)
        The probability of each class.
    shrinkage : float
        The number of votes that the pooled skill counts for.

    Returns
    -------
    skill : array of shape (n_annotators,)
    """
    values = posteriors[votes.item, votes.label]
    right = _sums(votes.annotator, values, len(votes.annotators))
    return _shrunk(right, votes.votes_per_annotator, shrinkage)


def pooled_confusion(votes: VoteTable) -> Floats:
    """Return what all annotators together say about items of each class.

    The class of an item is taken from the shares of its votes, and from what else is known of it.

    Parameters
    ----------
    votes : VoteTable
        The votes.

    Returns
    -------
    confusion : array of shape (n_classes, n_classes)
        One row per true class. Each row has half a vote more for its class and half a vote spread
        over all, so that no entry is zero.
    """
    q = len(votes.classes)
    return _rows_to_one(_first_posteriors(votes).T @ votes.counts + 0.5 / q + 0.5 * np.eye(q))


def coin_confusions(votes: VoteTable, shrinkage: float) -> Callable[[Floats], Floats]:
    """Return a function from `expected_counts` to C, if annotators have one skill each.

    Parameters
    ----------
    votes : VoteTable
        The votes.
    shrinkage : float
        The number of votes that the pooled skill counts for.

    Returns
    -------
    confusions : callable
        Its result has the shape (n_pairs, n_classes).
    """
    own = _own_classes(votes)
    n_others = max(len(votes.classes) - 1, 1)

    def confusions(counts: Floats) -> Floats:
        skill = _shrunk_skills(votes, counts[own], shrinkage)[votes.pairs.annotator, None]
        return np.clip(np.where(own, skill, (1 - skill) / n_others), _EPS, 1 - _EPS)

    return confusions


def full_confusions(votes: VoteTable, shrinkage: float) -> Callable[[Floats], Floats]:
    """Return a function from `expected_counts` to C, if it has no particular form.

    Parameters
    ----------
    votes : VoteTable
        The votes.
    shrinkage : float
        The number of votes that the pooled confusion counts for.

    Returns
    -------
    confusions : callable
        Its result has the shape (n_pairs, n_classes).
    """
    pooled, own = pooled_confusion(votes), _own_classes(votes)

    def confusions(counts: Floats) -> Floats:
        if not shrinkage:
            raised = np.maximum(counts, _EPS)
            return raised / _by_annotator(votes, raised)[votes.pairs.annotator]
        base = _base(votes, pooled, _shrunk_skills(votes, counts[own], shrinkage), own)
        totals = _by_annotator(votes, counts)[votes.pairs.annotator]
        return (counts + shrinkage * base) / (totals + shrinkage)

    return confusions


def _own_classes(votes: VoteTable) -> NDArray[np.bool_]:
    """Return which class each (annotator, label) pair names: (n_pairs, n_classes)."""
    return votes.pairs.label[:, None] == np.arange(len(votes.classes))


def _base(votes: VoteTable, pooled: Floats, skill: Floats, own: NDArray[np.bool_]) -> Floats:
    """Return the pooled confusion at the skill of each annotator, for each pair."""
    mean = np.average(skill, weights=np.maximum(votes.votes_per_annotator, _EPS), keepdims=True)
    diagonal = np.diag(pooled)
    others = _rows_to_one(pooled * (1 - np.eye(len(pooled))) + _EPS * (1 - np.eye(len(pooled))))
    offsets = _logit(skill) - _logit(mean)
    right = 1 / (1 + np.exp(-(_logit(diagonal) + offsets[:, None])))
    right = np.clip(right, *_SKILL_RANGE)[votes.pairs.annotator]
    return np.where(own, right, (1 - right) * others.T[votes.pairs.label])


def _expectation_maximization(
    votes: VoteTable,
    form: Callable[[VoteTable, float], Callable[[Floats], Floats]],
    shrinkage: float,
    max_iter: int,
    tol: float,
) -> AnnotatorModel:
    """Alternate between confusions of a form and posteriors, from the shares of the votes on."""
    posteriors, confusions = _first_posteriors(votes), form(votes, shrinkage)
    done = 0
    with progress("Annotators", max_iter, shown=False) as step:
        while done < max_iter:
            logits = votes.pairs.matrix @ np.log(confusions(expected_counts(votes, posteriors)))
            logits += votes.log_prior(posteriors.mean(axis=0))
            logits -= logits.max(axis=1, keepdims=True)
            np.exp(logits, out=logits)
            logits /= logits.sum(axis=1, keepdims=True)
            posteriors -= logits
            moved = float(np.abs(posteriors, out=posteriors).sum(axis=1).mean())
            posteriors = logits
            done += 1
            step(done, "")
            if moved <= tol:
                break
    return AnnotatorModel(posteriors, skills(votes, posteriors, shrinkage), done)


def _first_posteriors(votes: VoteTable) -> Floats:
    """Return the shares of the votes; times the prior, with one vote more, if there is one."""
    if votes.prior is None:
        return votes.shares.copy()
    q = len(votes.classes)
    counts = votes.counts + 1 / q
    shares = votes.counts.sum(axis=0) / max(len(votes), 1)
    return _rows_to_one(counts * np.exp(votes.log_prior(shares)))


def _shrunk_skills(votes: VoteTable, right_of_pair: Floats, shrinkage: float) -> Floats:
    right = _sums(votes.pairs.annotator, right_of_pair, len(votes.annotators))
    return np.clip(_shrunk(right, votes.votes_per_annotator, shrinkage), _EPS, 1 - _EPS)


def _sums(codes: Codes, values: Floats, size: int) -> Floats:
    return np.asarray(np.bincount(codes, values, size), dtype=np.float64)


def _shrunk(right: Floats, n_votes: NDArray[np.int64], shrinkage: float) -> Floats:
    mean = right.sum() / max(n_votes.sum(), 1)
    return (right + shrinkage * mean) / np.maximum(n_votes + shrinkage, _EPS)


def _by_annotator(votes: VoteTable, values: Floats) -> Floats:
    """Sum values over the pairs of each annotator, which lie side by side."""
    starts = np.searchsorted(votes.pairs.annotator, np.arange(len(votes.annotators)))
    sums = np.add.reduceat(np.vstack((values, np.zeros(values.shape[1]))), starts, axis=0)
    return np.asarray(sums)


def _rows_to_one(values: Floats) -> Floats:
    return values / np.maximum(values.sum(axis=1, keepdims=True), _EPS)


def _logit(share: Floats) -> Floats:
    share = np.clip(share, *_SKILL_RANGE)
    return np.log(share / (1 - share))
