"""Candidate sets in which each false label is a candidate with a probability of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int32]
Rows = NDArray[np.intp]
Chances = Callable[[Rows], NDArray[np.float64]]
"""From row numbers to the probability of each label to become a candidate."""


def constant(q: float, n_classes: int) -> Chances:
    """Return the same probability for all labels."""
    return lambda rows: np.full((len(rows), n_classes), q)


def by_confidence(
    confidences: Callable[[Rows], NDArray[np.float64]], codes: Codes, rate: float | None
) -> Chances:
    """Return the confidences in the false labels, relative to the largest of them.

    Parameters
    ----------
    confidences : callable
        From row numbers to a model's probabilities of all labels.
    codes : int array of shape (n,)
        The true labels.
    rate : float or None
        The mean over all labels to which each row is scaled, before probabilities above one are
        cut off; None leaves rows as they are.
    """

    def chances(rows: Rows) -> NDArray[np.float64]:
        found = confidences(rows)
        found[np.arange(len(rows)), codes[rows]] = 0.0
        found /= found.max(axis=1, keepdims=True)
        if rate is not None:
            found *= rate / found.mean(axis=1, keepdims=True)
        return np.minimum(found, 1.0)

    return chances


def draw(
    sources: Iterator[tuple[Rows, Chances]],
    codes: Codes,
    at_least_one: bool,
    random: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Draw the sets of all rows.

    Parameters
    ----------
    sources : iterator of (rows, callable)
        Blocks of rows, each with the probabilities of its labels.
    codes : int array of shape (n,)
        The true labels.
    at_least_one : bool
        Whether a row in which no false label was drawn gets a random one.
    random : Generator
        Where the draws come from.

    Returns
    -------
    indptr, indices : arrays
        The sets.
    """
    places, labels = [], []
    for rows, chances in sources:
        probabilities = chances(rows)
        drawn = random.random(probabilities.shape) < probabilities
        true = codes[rows]
        drawn[np.arange(len(rows)), true] = True
        if at_least_one:
            alone = np.flatnonzero(drawn.sum(axis=1) == 1)
            n_classes = drawn.shape[1]
            others = random.integers(1, n_classes, size=len(alone))
            drawn[alone, (true[alone] + others) % n_classes] = True
        row, label = np.nonzero(drawn)
        places.append(rows[row])
        labels.append(label)
    row, label = np.concatenate(places), np.concatenate(labels)
    order = np.argsort(row, kind="stable")
    sizes = np.bincount(row, minlength=len(codes))
    return np.concatenate(([0], np.cumsum(sizes))), label[order].astype(np.int32)
