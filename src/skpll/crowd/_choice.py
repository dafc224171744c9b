"""Which model of annotators makes votes most likely that it has not seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skpll._progress import tracked

from ._models import (
    POOLED,
    AnnotatorModel,
    coin_confusions,
    expected_counts,
    fit_dawid_skene,
    fit_one_coin,
    full_confusions,
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
            sums[name] += float(np.log(np.maximum(said, _EPS)).sum())
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
