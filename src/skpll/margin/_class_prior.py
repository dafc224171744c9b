"""How many training examples each label may take."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpll._labels import as_objects

__all__ = ["class_bounds", "given_counts", "rounded_counts"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def rounded_counts(expected: Floats) -> Floats:
    """Round expected counts down, and give what is missing to the labels expected least."""
    counts = np.floor(expected + 1e-6)
    rarest = np.argsort(expected, kind="stable")
    counts[rarest[: int(np.rint(expected.sum() - counts.sum()))]] += 1
    return counts


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
