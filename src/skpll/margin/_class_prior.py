"""How many training examples each label may take."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning

from skpll._labels import as_objects
from skpll.candidates import CandidateSets
from skpll.neighbors.ipal import IPAL

__all__ = ["CLASS_PRIORS", "class_bounds", "given_counts"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_MOST_NEIGHBORS = 5000
_MEGABYTES = 64


def candidate_counts(X: Any, candidates: CandidateSets) -> Floats:
    """Count the examples of each label if the initial confidences are right."""
    del X
    return candidates.expected_counts()


def neighbor_counts(X: Any, candidates: CandidateSets) -> Floats:
    """Count halfway between the initial confidences and what the near neighbours tell.

    The neighbours speak through the confidences of IPAL. Of many examples a random part is asked,
    and what it says of each label relative to the initial confidences holds for all.
    """
    expected = candidates.expected_counts()
    if (candidates.sizes == 1).all():  # nothing to ask about
        return expected
    asked, sets = X, candidates
    if len(candidates) > _MOST_NEIGHBORS:
        part = np.random.default_rng(0).choice(len(candidates), _MOST_NEIGHBORS, replace=False)
        asked, sets = X[part], candidates[part]
    with config_context(working_memory=_MEGABYTES), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        confidences = IPAL().fit(asked, sets).label_distributions_
    before = sets.expected_counts()
    found: NDArray[np.float64] = np.asarray(confidences.sum(axis=0)).ravel()
    told = expected * np.divide(found, before, out=np.ones_like(before), where=before > 0)
    return (expected + told * (len(candidates) / told.sum())) / 2


def rounded_counts(X: Any, candidates: CandidateSets) -> Floats:
    """Round the expected counts down, and give what is missing to the labels expected least."""
    expected = candidate_counts(X, candidates)
    counts = np.floor(expected + 1e-6)
    rarest = np.argsort(expected, kind="stable")
    counts[rarest[: len(candidates) - int(counts.sum())]] += 1
    return counts


CLASS_PRIORS: dict[str, Callable[[Any, CandidateSets], Floats]] = {
    "neighbors": neighbor_counts,
    "candidates": candidate_counts,
    "rounded": rounded_counts,
}


def given_counts(
    prior: Mapping[Hashable, float] | ArrayLike,
    classes: NDArray[Any],
    seen: NDArray[np.intp],
    n: int,
) -> Floats:
    """Count the examples of each label from the shares that a user gives.

    Parameters
    ----------
    prior : mapping from label to share, or array-like of shape (number of classes,)
        The shares, which need not sum to one.
    classes : array
        All labels, sorted.
    seen : int array of shape (q,)
        Which of them are somebody's candidate.
    n : int
        The number of examples.

    Returns
    -------
    counts : array of shape (q,)
    """
    if isinstance(prior, Mapping):
        labels = as_objects(classes)
        odd = sorted(map(repr, set(prior) ^ set(labels)))
        if odd:
            raise ValueError(
                f"class_prior: {odd[0]} has no share, or is not one of the classes; give one share "
                "for each class."
            )
        prior = [prior[label] for label in labels]
    shares = np.asarray(prior, dtype=np.float64)
    if shares.shape != classes.shape:
        raise ValueError(
            f"class_prior: {shares.size} shares for {len(classes)} classes; give one a class, in "
            "the order of the sorted labels, or a mapping from label to share."
        )
    shares = shares[seen]
    if not (np.isfinite(shares).all() and (shares >= 0).all() and shares.sum() > 0):
        raise ValueError("class_prior: shares have to be non-negative, and not all zero.")
    return n * shares / shares.sum()


def class_bounds(counts: Floats, n: int, slack: float) -> tuple[Ints, Ints]:
    """Lower and upper bounds on the number of examples of each label.

    Parameters
    ----------
    counts : array of shape (q,)
        The expected counts; the bounds are the next whole numbers.
    n : int
        The number of examples.
    slack : float
        By which share of the expected count the bounds give.

    Returns
    -------
    lower, upper : int arrays of shape (q,)
    """
    # A hair's breadth, so that 3 as a sum of thirds does not become 3.0000000001.
    lower = np.floor((1 - slack) * counts + 1e-6)
    upper = np.ceil((1 + slack) * counts - 1e-6)
    return np.maximum(lower, 0).astype(np.int64), np.minimum(upper, n).astype(np.int64)
