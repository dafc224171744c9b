r"""One label per item from votes: models of annotators, fitted by expectation maximization.

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

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpll._docs import documented
from skpll._progress import progress, tracked

from ._votes import Codes, Floats, VoteTable

Method = Literal["auto", "majority", "one-coin", "dawid-skene"]

METHODS: tuple[Method, ...] = ("auto", "majority", "one-coin", "dawid-skene")

Form: TypeAlias = Callable[[VoteTable, float], Callable[[Floats], Floats]]
"""From votes and a shrinkage to a function that turns `expected_counts` into C."""

SHRINKAGE = 10.0
"""Votes that the pooled behaviour counts for, in the estimates of each annotator."""

POOLED = 1e9
"""A shrinkage that leaves every annotator the pooled skill."""

MIN_ANNOTATORS = 3
"""Votes of fewer annotators can't tell which of them is right more often."""

N_FOLDS = 5
MAX_CROSS_VALIDATED_VOTES = 50_000
"""Beyond this number of votes one fold is held out instead of each in turn."""

MAX_ITER, TOL = 100, 1e-5

_COMPARED_MAX_ITER, _COMPARED_TOL = 30, 1e-3  # of models that are compared on held-out votes
_MIN_LIKELIHOOD = 1e-9  # of a held-out vote
_TIE = 1e-9
_EPS, _TINY = 1e-10, 1e-300
_SKILL_RANGE = (0.01, 0.99)


@dataclass(frozen=True)
class Aggregation:
    """Labels from votes, and what is known of the annotators.

    Parameters
    ----------
    votes : VoteTable
        The votes.
    method : str
        The method.
    posteriors : array of shape (n_items, n_classes)
        The probability of each class *if the model's assumptions hold*. They rarely do, since
        annotators err together on hard items: see `skpll.crowd.draw_audit` for a check.
    quality : array of shape (n_annotators,)
        The estimated probability that a vote of each annotator is right.
    models : mapping from str to AnnotatorModel
        The models that were fitted, by the name of their method.
    shrinkage : float
        The number of votes that the pooled behaviour counted for.
    held_out : mapping from str to float
        For "auto", the mean log-likelihood of held-out votes under each model.

    Examples
    --------
    >>> from skpll.crowd import aggregate
    >>> found = aggregate([1, 1, 1, 2, 2, 2], list("abcabc"), list("xxyyyy"))
    >>> found.items.tolist(), found.annotators.tolist()
    ([1, 2], ['a', 'b', 'c'])
    """

    votes: VoteTable
    method: str
    posteriors: Floats
    quality: Floats
    models: Mapping[str, AnnotatorModel]
    shrinkage: float = SHRINKAGE
    held_out: Mapping[str, float] = field(default_factory=dict)

    @property
    def items(self) -> NDArray[Any]:
        """The items, in the order of their first vote."""
        return self.votes.items

    @property
    def annotators(self) -> NDArray[Any]:
        """The annotators, in the order of their first vote."""
        return self.votes.annotators

    @property
    def classes(self) -> NDArray[Any]:
        """The sorted classes."""
        return self.votes.classes

    @property
    def notes(self) -> tuple[str, ...]:
        """What was changed or left out on reading the votes."""
        return self.votes.notes

    @cached_property
    def codes(self) -> NDArray[np.intp]:
        """The position of each item's label in `classes`."""
        return best_classes(self.votes, self.posteriors)

    @property
    def labels(self) -> NDArray[Any]:
        """The label of each item."""
        return self.classes[self.codes]

    @property
    def confidence(self) -> Floats:
        """The posterior of each item's label: what the model believes, not a checked accuracy."""
        return self.posteriors[np.arange(len(self.codes)), self.codes]

    @cached_property
    def runner_up_codes(self) -> NDArray[np.intp]:
        """The position of the second-best class of each item; −1 where no class has a chance."""
        others = self.posteriors.copy()
        others[np.arange(len(self.codes)), self.codes] = -1.0
        second = best_classes(self.votes, others)
        return np.where(others[np.arange(len(second)), second] > 0, second, -1)

    @property
    def runner_up(self) -> NDArray[Any]:
        """The second-best label of each item; None where no other class has a chance."""
        second = self.classes[np.maximum(self.runner_up_codes, 0)].astype(object)
        second[self.runner_up_codes < 0] = None
        return second

    @property
    def likelihoods(self) -> Floats:
        """How likely the votes are if an item has each class; the largest of an item is 1.

        They are the posteriors without the class shares, or without the prior of the votes: what
        the votes say, to be combined with what else is known of an item.
        """
        prior = np.exp(self.votes.log_prior(self.posteriors.mean(axis=0)))
        values = self.posteriors / np.maximum(prior, _TINY)
        return values / np.maximum(values.max(axis=1, keepdims=True), _TINY)

    @property
    def unanimous(self) -> NDArray[np.bool_]:
        """Whether all votes on an item agree."""
        return (self.votes.counts > 0).sum(axis=1) == 1

    @cached_property
    def confusions(self) -> Floats:
        """The confusions, of shape (n_annotators, n_classes, n_classes).

        Entry (a, j, k) is the estimated probability that annotator a says k about an item of class
        j, given the posteriors.
        """
        every, q = self.votes.with_all_pairs(), len(self.classes)
        confusions = full_confusions(every, max(self.shrinkage, 1e-6))
        values = confusions(expected_counts(every, self.posteriors))
        return values.reshape(len(self.annotators), q, q).transpose(0, 2, 1)

    @property
    def answers(self) -> dict[str, NDArray[Any]]:
        """The labels that each fitted model gives on its own."""
        return {
            name: self.classes[best_classes(self.votes, model.posteriors)]
            for name, model in self.models.items()
        }


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
    >>> votes = VoteTable.from_wide([["x", "x", "y"], ["y", "y", "y"], ["x", "y", "x"]])
    >>> fit_one_coin(votes).posteriors.shape
    (3, 2)
    """

    posteriors: Floats
    skill: Floats
    n_iter: int = 0


def aggregate(
    items: ArrayLike,
    annotators: ArrayLike,
    labels: ArrayLike,
    method: Method = "auto",
    *,
    missing: Iterable[Any] | None = None,
    shrinkage: float = SHRINKAGE,
) -> Aggregation:
    """Find one label per item from the votes of annotators.

    Parameters
    ----------
    items, annotators, labels : array-like of equal length
        One entry per vote: what it is about, whose it is and the label that it gives.
    method : {"auto", "majority", "one-coin", "dawid-skene"}, default="auto"
        "majority" counts votes; ties go to the class with more votes in all. "one-coin" estimates
        how often each annotator is right, "dawid-skene" what each annotator says about the items
        of each class. "auto" averages the posteriors of the three, with twice the weight for the
        one that makes held-out votes most likely; of one or two annotators it counts votes.
    missing : iterable of labels, optional
        Labels that mean "did not vote", besides None and NaN. By default −1, −9, −99 and −999, if
        all other labels are whole numbers from 0.
    shrinkage : float, default=10
        The number of votes that the pooled behaviour counts for in the estimates of an annotator;
        0 gives the models of the literature, which are poor for annotators with few votes.

    Returns
    -------
    Aggregation

    Examples
    --------
    >>> from skpll.crowd import aggregate
    >>> found = aggregate([1, 1, 1, 2, 2, 2], list("abcabc"), list("xxyyyy"))
    >>> found.labels.tolist()
    ['x', 'y']
    """
    return aggregate_votes(
        VoteTable.from_long(items, annotators, labels, missing=missing), method, shrinkage=shrinkage
    )


def aggregate_votes(
    votes: VoteTable, method: Method = "auto", *, shrinkage: float = SHRINKAGE
) -> Aggregation:
    """Find one label per item from a table of votes, see `aggregate`.

    Parameters
    ----------
    votes : VoteTable
        The votes; with a prior (`VoteTable.with_prior`), the majority is that of annotators who
        are all right equally often. Anonymous votes are counted, whatever the method.
    method : {"auto", "majority", "one-coin", "dawid-skene"}, default="auto"
        The method.
    shrinkage : float, default=10
        The number of votes that the pooled behaviour counts for.

    Returns
    -------
    Aggregation

    Examples
    --------
    >>> from skpll.crowd import VoteTable, aggregate_votes
    >>> votes = VoteTable.from_wide([["x", "x", "y"], ["y", "y", "y"], ["x", "y", "x"]])
    >>> aggregate_votes(votes, "majority").labels.tolist()
    ['x', 'y', 'x']
    """
    if method not in METHODS:
        raise ValueError(f"method: {method!r} is none of {', '.join(METHODS)}.")
    if not shrinkage >= 0:
        raise ValueError(f"shrinkage: {shrinkage} is not a number of votes; give 0 or more.")
    if len(votes.classes) < 2:
        raise ValueError(
            f"labels: all votes are for {votes.classes.tolist()[0]!r}, so there is nothing to "
            "decide; at least two classes are needed."
        )
    wanted: tuple[str, ...] = METHODS[1:] if method == "auto" else (method,)
    if votes.anonymous:
        wanted = ("majority",)
    counted = votes.prior is None  # without a prior the majority is counted, not estimated
    models = {
        name: fit_majority(votes) if name == "majority" and counted else _fitted(votes, *form)
        for name, form in _forms(shrinkage).items()
        if name in wanted
    }
    scores = _held_out_log_likelihoods(votes, shrinkage) if len(wanted) > 1 else {}
    weights = dict.fromkeys(wanted, 1.0)
    if scores and len(votes.annotators) < MIN_ANNOTATORS and counted:
        weights = {"majority": 1.0}
    elif scores:
        weights[max(scores, key=scores.__getitem__)] += 1.0
    total = sum(weights.values())
    posteriors = sum(share / total * models[name].posteriors for name, share in weights.items())
    quality = skills(votes, np.asarray(posteriors), shrinkage)
    return Aggregation(votes, method, np.asarray(posteriors), quality, models, shrinkage, scores)


def best_classes(votes: VoteTable, posteriors: Floats) -> NDArray[np.intp]:
    """Return the most probable class of each item; ties go to the class with more votes in all."""
    shares = votes.counts.sum(axis=0)
    return np.argmax(posteriors + _TIE * shares / max(shares.sum(), 1), axis=1)


@documented
def fit_majority(votes: VoteTable) -> AnnotatorModel:
    """Return the share of the votes for each class; of all votes where an item has none.

    Parameters
    ----------
    <<crowd.votes>>

    Returns
    -------
    AnnotatorModel

    Examples
    --------
    >>> from skpll.crowd import VoteTable, fit_majority
    >>> votes = VoteTable.from_wide([["x", "x", "y"], ["y", "y", "y"], ["x", "y", "x"]])
    >>> fit_majority(votes).posteriors[0].round(2).tolist()
    [0.67, 0.33]
    """
    shares = votes.shares
    without = shares.sum(axis=1) == 0
    if without.any():
        shares[without] = votes.counts.sum(axis=0) / max(len(votes), 1)
    return AnnotatorModel(shares, skills(votes, shares, 0.0))


@documented
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
    <<crowd.votes>>
    shrinkage : float, default=10
        The number of votes that the pooled skill counts for; 0 for maximum likelihood.
    <<crowd.em>>

    Returns
    -------
    AnnotatorModel

    Examples
    --------
    >>> from skpll.crowd import VoteTable, fit_one_coin
    >>> votes = VoteTable.from_wide([["x", "x", "y"], ["y", "y", "y"], ["x", "y", "x"]])
    >>> fit_one_coin(votes).posteriors.argmax(axis=1).tolist()
    [0, 1, 0]
    """
    return _fitted(votes, coin_confusions, shrinkage, max_iter, tol)


@documented
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
    <<crowd.votes>>
    shrinkage : float, default=10
        The number of votes that the pooled confusion counts for, in each row of an annotator's
        confusion matrix; 0 for maximum likelihood.
    <<crowd.em>>

    Returns
    -------
    AnnotatorModel

    Examples
    --------
    >>> from skpll.crowd import VoteTable, fit_dawid_skene
    >>> votes = VoteTable.from_wide([["x", "x", "y"], ["y", "y", "y"], ["x", "y", "x"]])
    >>> fit_dawid_skene(votes).posteriors.argmax(axis=1).tolist()
    [0, 1, 0]
    """
    return _fitted(votes, full_confusions, shrinkage, max_iter, tol)


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


def _forms(shrinkage: float) -> dict[str, tuple[Form, float]]:
    """Return the form of the confusions, and the shrinkage, of the EM model of each method."""
    return {
        "majority": (coin_confusions, POOLED),
        "one-coin": (coin_confusions, shrinkage),
        "dawid-skene": (full_confusions, shrinkage),
    }


def _held_out_log_likelihoods(votes: VoteTable, shrinkage: float) -> dict[str, float]:
    """Return the mean log-likelihood of held-out votes under each model.

    One vote in five is held out, in turn or, of many votes, once. The model of the majority gives
    all annotators the same skill.
    """
    fold, forms = _folds(votes), _forms(shrinkage)
    folds = range(N_FOLDS if len(votes) <= MAX_CROSS_VALIDATED_VOTES else 1)
    sums = dict.fromkeys(forms, 0.0)
    n_held_out = 0
    for k in tracked(folds, "Held-out votes", len(folds)):
        held_out = fold == k
        if not held_out.any() or held_out.all():
            continue
        kept, rest = votes.select(~held_out).with_all_pairs(), votes.select(held_out)
        n_held_out += len(rest)
        pair = rest.annotator.astype(np.int64) * len(rest.classes) + rest.label
        seen = kept.counts.sum(axis=1) > 0
        for name, (form, strength) in forms.items():
            model = _fitted(kept, form, strength, _COMPARED_MAX_ITER, _COMPARED_TOL)
            confusions = form(kept, strength)(expected_counts(kept, model.posteriors))
            shares = model.posteriors[seen].mean(axis=0)  # for items of which no vote was kept
            posteriors = np.where(seen[:, None], model.posteriors, shares)
            said = (posteriors[rest.item] * confusions[pair]).sum(axis=1)
            sums[name] += float(np.log(np.maximum(said, _MIN_LIKELIHOOD)).sum())
    return {name: total / max(n_held_out, 1) for name, total in sums.items()}


def _folds(votes: VoteTable) -> NDArray[np.int64]:
    """Return the fold of each vote, which does not depend on the order of the votes."""
    item, annotator = (
        np.argsort(np.argsort(names.astype(str)))[codes]
        for names, codes in ((votes.items, votes.item), (votes.annotators, votes.annotator))
    )
    fold = np.empty(len(votes), np.int64)
    drawn = np.random.default_rng(0).integers(N_FOLDS, size=len(votes))
    fold[np.lexsort((annotator, item))] = drawn
    return fold


def expected_counts(votes: VoteTable, posteriors: Floats) -> Floats:
    """Return how often each (annotator, label) pair is expected to meet each class: (pairs, q)."""
    return np.asarray(votes.pairs.matrix.T @ posteriors)


def skills(votes: VoteTable, posteriors: Floats, shrinkage: float) -> Floats:
    """Return the probability that a vote of each annotator is right, given posteriors."""
    return _skills(votes, votes.annotator, posteriors[votes.item, votes.label], shrinkage)


def _skills(votes: VoteTable, annotator: Codes, right: Floats, shrinkage: float) -> Floats:
    """Return the skill of each annotator from numbers of right votes, each of an annotator."""
    of_annotator = np.bincount(annotator, right, len(votes.annotators))
    n_votes = votes.votes_per_annotator
    mean = of_annotator.sum() / max(n_votes.sum(), 1)
    return (of_annotator + shrinkage * mean) / np.maximum(n_votes + shrinkage, _EPS)


def pooled_confusion(votes: VoteTable) -> Floats:
    """Return what all annotators together say about items of each class: a row per true class.

    The class of an item is taken from the shares of its votes, and from what else is known of it.
    Each row has half a vote more for its class and half a vote spread over all, so that no entry
    is zero.
    """
    q = len(votes.classes)
    return _rows_to_one(_first_posteriors(votes).T @ votes.counts + 0.5 / q + 0.5 * np.eye(q))


def coin_confusions(votes: VoteTable, shrinkage: float) -> Callable[[Floats], Floats]:
    """Return a function from `expected_counts` to C, if annotators have one skill each."""
    own = _own_classes(votes)
    n_others = max(len(votes.classes) - 1, 1)

    def confusions(counts: Floats) -> Floats:
        skill = _pair_skills(votes, counts[own], shrinkage)[votes.pairs.annotator, None]
        return np.clip(np.where(own, skill, (1 - skill) / n_others), _EPS, 1 - _EPS)

    return confusions


def full_confusions(votes: VoteTable, shrinkage: float) -> Callable[[Floats], Floats]:
    """Return a function from `expected_counts` to C, if it has no particular form."""
    pooled, own = pooled_confusion(votes), _own_classes(votes)

    def confusions(counts: Floats) -> Floats:
        if not shrinkage:
            raised = np.maximum(counts, _EPS)
            return raised / _by_annotator(votes, raised)[votes.pairs.annotator]
        base = _base(votes, pooled, _pair_skills(votes, counts[own], shrinkage), own)
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


def _fitted(
    votes: VoteTable,
    form: Form,
    shrinkage: float,
    max_iter: int = MAX_ITER,
    tol: float = TOL,
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


def _pair_skills(votes: VoteTable, right: Floats, shrinkage: float) -> Floats:
    """Return the skill of each annotator from the right votes in each of the pairs."""
    return np.clip(_skills(votes, votes.pairs.annotator, right, shrinkage), _EPS, 1 - _EPS)


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
