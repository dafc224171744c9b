"""How many training examples each label may take."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning

from skpll.candidates import CandidateSets
from skpll.neighbors.ipal import IPAL

__all__ = ["class_bounds", "expected_counts", "neighbor_counts"]

Ints = NDArray[np.int64]

_MOST_NEIGHBORS = 5000
_MEGABYTES = 64


def expected_counts(candidates: CandidateSets) -> NDArray[np.float64]:
    """Count how many examples each label has if all candidates of an example are equally likely."""
    shares = np.repeat(1 / candidates.sizes, candidates.sizes)
    counts = np.bincount(candidates.indices, shares, minlength=candidates.shape[1])
    return counts.astype(np.float64)


def neighbor_counts(X: Any, candidates: CandidateSets) -> NDArray[np.float64]:
    """Count halfway between equally likely candidates and what the near neighbours tell of them.

    The neighbours speak through the confidences of IPAL. Of many examples a random part is asked,
    and what it says of each label relative to equally likely candidates holds for all.
    """
    expected = expected_counts(candidates)
    if (candidates.sizes == 1).all():  # nothing to ask about
        return expected
    asked, sets = X, candidates
    if len(candidates) > _MOST_NEIGHBORS:
        part = np.random.default_rng(0).choice(len(candidates), _MOST_NEIGHBORS, replace=False)
        asked, sets = X[part], candidates[part]
    with config_context(working_memory=_MEGABYTES), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        confidences = IPAL().fit(asked, sets).label_distributions_
    even = expected_counts(sets)
    found: NDArray[np.float64] = np.asarray(confidences.sum(axis=0)).ravel()
    told = expected * np.divide(found, even, out=np.ones_like(even), where=even > 0)
    return (expected + told * (len(candidates) / told.sum())) / 2


def class_bounds(
    candidates: CandidateSets, prior: str | ArrayLike | None, slack: float
) -> tuple[Ints, Ints]:
    """Lower and upper bounds on the number of examples of each label.

    Parameters
    ----------
    candidates : CandidateSets
        The candidate sets.
    prior : {"candidates", "rounded"}, array of shape (q,), or None
        The expected counts, up to the next whole numbers; the same rounded to whole numbers that
        sum to n, as M3PL does; a share of the examples for each label; or no bounds.
    slack : float
        By which share of the expected count the bounds give.

    Returns
    -------
    lower, upper : int arrays of shape (q,)
    """
    n, q = candidates.shape
    if prior is None:
        return np.zeros(q, dtype=np.int64), np.full(q, n, dtype=np.int64)
    if isinstance(prior, str):
        expected = expected_counts(candidates)
        if prior == "rounded":
            expected = _rounded(expected, n).astype(np.float64)
    else:
        expected = _given(prior, n, q)
    # A hair's breadth, so that 3 as a sum of thirds does not become 3.0000000001.
    lower = np.floor((1 - slack) * expected + 1e-6)
    upper = np.ceil((1 + slack) * expected - 1e-6)
    return np.maximum(lower, 0).astype(np.int64), np.minimum(upper, n).astype(np.int64)


def _rounded(expected: NDArray[np.float64], n: int) -> Ints:
    """Round down, and give what is missing to the labels that are expected least.

    Labels that nobody has as a candidate are left out: they could never take an example.
    """
    counts = np.floor(expected + 1e-6).astype(np.int64)
    possible = np.flatnonzero(expected > 0)
    rarest = possible[np.argsort(expected[possible], kind="stable")]
    counts[rarest[: n - counts.sum()]] += 1
    return counts


def _given(prior: ArrayLike, n: int, q: int) -> NDArray[np.float64]:
    shares = np.asarray(prior, dtype=np.float64)
    if shares.shape != (q,):
        raise ValueError(
            f"class_prior: {shares.size} shares for {q} classes; give one a class, in the order of "
            "the sorted labels."
        )
    if not (np.isfinite(shares).all() and (shares >= 0).all() and shares.sum() > 0):
        raise ValueError("class_prior: shares have to be non-negative, and not all zero.")
    return n * shares / shares.sum()
