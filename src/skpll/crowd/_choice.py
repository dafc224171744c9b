"""Which model of annotators makes votes most likely that it has not seen."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from skpll._progress import tracked

from ._models import (
    POOLED,
    AnnotatorModel,
    expected_counts,
    fit_dawid_skene,
    fit_one_coin,
    pair_confusions,
    pooled_confusion,
)
from ._votes import Floats, VoteTable

N_FOLDS = 5
MAX_CROSS_VALIDATED_VOTES = 50_000
"""Beyond this number of votes one fold is held out instead of each in turn."""

_MAX_ITER, _TOL = 30, 1e-3
_EPS = 1e-9


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
    sums = dict.fromkeys(("majority", "one-coin", "dawid-skene"), 0.0)
    n_held_out = 0
    for k in tracked(folds, "Held-out votes", len(folds)):
        held_out = fold == k
        if not held_out.any() or held_out.all():
            continue
        kept, rest = votes.select(~held_out).with_all_pairs(), votes.select(held_out)
        n_held_out += len(rest)
        for name, predict in _models(kept, shrinkage).items():
            sums[name] += float(np.log(np.maximum(predict(rest), _EPS)).sum())
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


def _models(kept: VoteTable, shrinkage: float) -> dict[str, Callable[[VoteTable], Floats]]:
    """Return functions from other votes to their probability, for each model of the kept votes."""
    pooled = fit_one_coin(kept, shrinkage=POOLED, max_iter=_MAX_ITER, tol=_TOL)
    coin = fit_one_coin(kept, shrinkage=shrinkage, max_iter=_MAX_ITER, tol=_TOL)
    full = fit_dawid_skene(kept, shrinkage=shrinkage, max_iter=_MAX_ITER, tol=_TOL)
    counts = expected_counts(kept, full.posteriors)
    base = pooled_confusion(kept) if shrinkage else None
    confusions = pair_confusions(kept, counts, base, shrinkage)

    def by_confusions(rest: VoteTable) -> Floats:
        said = confusions[rest.annotator.astype(np.int64) * len(rest.classes) + rest.label]
        return (_posteriors(kept, full, rest) * said).sum(axis=1)

    return {
        "majority": lambda rest: _by_coin(kept, pooled, rest),
        "one-coin": lambda rest: _by_coin(kept, coin, rest),
        "dawid-skene": by_confusions,
    }


def _by_coin(kept: VoteTable, model: AnnotatorModel, rest: VoteTable) -> Floats:
    """Return the probability of votes under a model with one coin per annotator."""
    named = _posteriors(kept, model, rest)[np.arange(len(rest)), rest.label]
    skill = model.skill[rest.annotator]
    return named * skill + (1 - named) * (1 - skill) / (len(rest.classes) - 1)


def _posteriors(kept: VoteTable, model: AnnotatorModel, rest: VoteTable) -> Floats:
    """Return the posteriors of the items of other votes; class shares where none was kept."""
    seen = kept.counts.sum(axis=1) > 0
    shares = model.posteriors[seen].mean(axis=0)
    return np.where(seen[:, None], model.posteriors, shares)[rest.item]
