"""One label per item from the votes of annotators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpll._progress import tracked

from ._models import (
    POOLED,
    SHRINKAGE,
    AnnotatorModel,
    coin_confusions,
    expected_counts,
    fit_dawid_skene,
    fit_majority,
    fit_one_coin,
    full_confusions,
    skills,
)
from ._votes import Floats, VoteTable

Method = Literal["auto", "majority", "one-coin", "dawid-skene"]

METHODS: tuple[Method, ...] = ("auto", "majority", "one-coin", "dawid-skene")

MIN_ANNOTATORS = 3
"""Votes of fewer annotators can't tell which of them is right more often."""

N_FOLDS = 5
MAX_CROSS_VALIDATED_VOTES = 50_000
"""Beyond this number of votes one fold is held out instead of each in turn."""

_MAX_ITER, _TOL = 30, 1e-3  # of models that are compared
_MIN_LIKELIHOOD = 1e-9  # of a held-out vote
_TIE = 1e-9
_TINY = 1e-300


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
    >>> rows = [["x", "x", "y"], ["y", "y", "y"], ["x", "y", "x"], ["y", "y", "x"]]
    >>> votes = VoteTable.from_wide(rows)
    >>> aggregate_votes(votes, "majority").labels.tolist()
    ['x', 'y', 'x', 'y']
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
    models = {name: _fit(votes, name, shrinkage) for name in wanted}
    scores = held_out_log_likelihoods(votes, shrinkage) if len(wanted) > 1 else {}
    weights = dict.fromkeys(wanted, 1.0)
    if len(wanted) > 1 and len(votes.annotators) < MIN_ANNOTATORS and votes.prior is None:
        weights = dict.fromkeys(wanted, 0.0) | {"majority": 1.0}
    elif scores:
        weights[max(scores, key=scores.__getitem__)] += 1.0
    posteriors = sum(
        weights[name] / sum(weights.values()) * model.posteriors for name, model in models.items()
    )
    quality = skills(votes, np.asarray(posteriors), shrinkage)
    return Aggregation(votes, method, np.asarray(posteriors), quality, models, shrinkage, scores)


def best_classes(votes: VoteTable, posteriors: Floats) -> NDArray[np.intp]:
    """Return the most probable class of each item; ties go to the class with more votes in all.

    Parameters
    ----------
    votes : VoteTable
        The votes.
    posteriors : array of shape (n_items, n_classes)
        The probability of each class.

    Returns
    -------
    codes : int array of shape (n_items,)
    """
    shares = votes.counts.sum(axis=0)
    return np.argmax(posteriors + _TIE * shares / max(shares.sum(), 1), axis=1)


def _fit(votes: VoteTable, name: str, shrinkage: float) -> AnnotatorModel:
    if name == "majority":
        counted = votes.prior is None
        return fit_majority(votes) if counted else fit_one_coin(votes, shrinkage=POOLED)
    fit = fit_one_coin if name == "one-coin" else fit_dawid_skene
    return fit(votes, shrinkage=shrinkage)


def held_out_log_likelihoods(votes: VoteTable, shrinkage: float) -> dict[str, float]:
    """Return the mean log-likelihood of held-out votes under each model.

    Parameters
    ----------
    votes : VoteTable
        The votes; one in five is held out, in turn or, of many votes, once.
    shrinkage : float
        See `fit_one_coin`. The model of the majority gives all annotators the same skill.

    Returns
    -------
    scores : dict from method to float
    """
    fold = _folds(votes)
    folds = range(N_FOLDS if len(votes) <= MAX_CROSS_VALIDATED_VOTES else 1)
    models = {
        "majority": (fit_one_coin, coin_confusions, POOLED),
        "one-coin": (fit_one_coin, coin_confusions, shrinkage),
        "dawid-skene": (fit_dawid_skene, full_confusions, shrinkage),
    }
    sums = dict.fromkeys(models, 0.0)
    n_held_out = 0
    for k in tracked(folds, "Held-out votes", len(folds)):
        held_out = fold == k
        if not held_out.any() or held_out.all():
            continue
        kept, rest = votes.select(~held_out).with_all_pairs(), votes.select(held_out)
        n_held_out += len(rest)
        pair = rest.annotator.astype(np.int64) * len(rest.classes) + rest.label
        for name, (fit, form, strength) in models.items():
            model = fit(kept, shrinkage=strength, max_iter=_MAX_ITER, tol=_TOL)
            confusions = form(kept, strength)(expected_counts(kept, model.posteriors))
            said = (_posteriors(kept, model, rest) * confusions[pair]).sum(axis=1)
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


def _posteriors(kept: VoteTable, model: AnnotatorModel, rest: VoteTable) -> Floats:
    """Return the posteriors of the items of other votes; class shares where none was kept."""
    seen = kept.counts.sum(axis=1) > 0
    shares = model.posteriors[seen].mean(axis=0)
    return np.where(seen[:, None], model.posteriors, shares)[rest.item]
