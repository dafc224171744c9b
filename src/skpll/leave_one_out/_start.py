r"""Where the rounds start: the confidences that a regression can fit best.

The error of a ridge regression, as a function of the confidences Q that it is trained on, is
convex:

.. math:: \min_{Q} \min_{W, b} \sum_i c_i \|Q_i - W z_i - b\|^2 + \alpha \|W\|^2, \qquad
          Q_i \geq 0, \; \sum_{j \in S_i} Q_{ij} = 1,

with the means of Q as intercepts b. Its minimum is found by accelerated projected gradient descent:
replace the confidences by the fitted scores, projected on the candidates' simplex. A false
candidate is not drawn to 1/|S| then, as it is by a regression on candidates that are all alike.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skpll.engine.blocks import Block, Part, Store, Values, column_sums

from ._loop import Ask, moved

__all__ = ["convex_start", "in_every_set", "project"]

MAX_TURNS = 30
"""Largest number of turns; the rounds that follow need no exact minimum."""

TOLERANCE = 1e-3
"""The descent ends when less than this share of the confidence moves in a turn."""

EVERY = 0.95
"""A label in more than this share of the sets is left out."""

MAX_SINGLETONS = 0.01
"""Unless it is the only candidate of more than this share of the examples."""

PENALTY = 10.0
"""Fitted scores of labels that are left out are lowered by this."""


def convex_start(store: Store, descended: Ask) -> Part:
    """Find the confidences under which the error of the regression is smallest.

    A label that is in every set would take all confidence: the regression fits a constant without
    an error. Such labels are left out.

    Parameters
    ----------
    store : Store
        The examples.
    descended : callable
        A step of gradient descent: from confidences to fitted scores.

    Returns
    -------
    confidences : part
    """
    penalties = np.where(in_every_set(store), PENALTY, 0.0)
    confidences = extrapolated = store.map(project, penalties=penalties)
    step = 1.0
    for _ in range(MAX_TURNS):
        new = store.map(project, descended(extrapolated), penalties=penalties)
        distance, total = store.sum(moved, confidences, new)
        next_step = (1 + np.sqrt(1 + 4 * step * step)) / 2
        extrapolated = store.map(_beyond, confidences, new, by=(step - 1) / next_step)
        confidences, step = new, next_step
        if distance <= 2 * TOLERANCE * total:
            break
    return confidences


def in_every_set(store: Store) -> NDArray[np.bool_]:
    """Return which labels are in nearly every set, and hardly ever alone.

    With two classes there is none: the other one would be certain.
    """
    with_label, alone, total = store.sum(_occurrences)
    frequent = (with_label > EVERY * total) & (alone <= MAX_SINGLETONS * total)
    return np.asarray(frequent & (store.shape[1] > 2))


def project(block: Block, values: Values = 0.0, *, penalties: Values) -> Values:
    """Project values, less the penalties of their classes, on the simplex of each example.

    The result is ``max(values - threshold, 0)`` with a sum of one, the nearest one in the Euclidean
    sense. The threshold is that of all entries first, then of those above it, until none is left
    out any more.
    """
    sets = block.candidates
    values = values - penalties[sets.indices]
    kept = values == values  # all of them
    while True:
        threshold = sets.spread((sets.row_sums(values * kept) - 1) / sets.row_sums(kept * 1.0))
        above = kept & (values > threshold)
        if bool((above == kept).all()):
            return (values - threshold).clip(min=0.0) * kept
        kept = above


def _beyond(block: Block, before: Values, after: Values, *, by: float) -> Values:
    del block
    return after + by * (after - before)


def _occurrences(block: Block) -> tuple[Values, Values, Values]:
    q, sets = block.shape[1], block.candidates
    weights = sets.spread(block.weights)
    alone = weights * sets.spread(sets.sizes == 1)
    return (
        column_sums(weights, sets.indices, q),
        column_sums(alone, sets.indices, q),
        block.weights.sum(),
    )
