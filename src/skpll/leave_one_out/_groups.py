"""Whether candidate sets come in groups: all regions of a picture, say, share the labels of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skpll.candidates import CandidateSets
from skpll.engine.blocks import Block
from skpll.engine.limits import LIMITS

from ._set_model import SetModel, has_set_model

__all__ = ["come_in_groups", "same_sets"]

MIN_ROWS = 50
"""With fewer ambiguous examples, sets are taken to be drawn for each example."""

MIN_RATIO = 2.5
"""Sets come in groups if draws for each example would give this number of times as many sets."""


def same_sets(candidates: CandidateSets) -> NDArray[np.intp]:
    """Return the same number for examples with the same candidate set."""
    numbers: dict[bytes, int] = {}
    ends = zip(candidates.indptr[:-1], candidates.indptr[1:], strict=True)
    return np.array(
        [numbers.setdefault(candidates.indices[a:b].tobytes(), len(numbers)) for a, b in ends],
        dtype=np.intp,
    )


def come_in_groups(sets: CandidateSets, random_state: np.random.RandomState) -> bool:
    """Return True if there are far fewer different sets than independent draws would give.

    The draws keep the size of each set, and how often labels are candidates together: a label is
    drawn from the set, and false candidates by their rates for that class.
    """
    sets = sets[sets.sizes > 1]
    if len(sets) > LIMITS.choice_rows:
        sets = sets[np.sort(random_state.choice(len(sets), LIMITS.choice_rows, replace=False))]
    block = Block(np.empty((len(sets), 0)), sets, np.ones(len(sets)))
    if len(sets) < MIN_ROWS or not has_set_model(block):
        return False
    drawn = _drawn_independently(block, random_state)
    return _number_of_rows(drawn) >= MIN_RATIO * _number_of_rows(np.asarray(sets) > 0)


def _drawn_independently(block: Block, random_state: np.random.RandomState) -> NDArray[np.bool_]:
    """Draw sets of the same sizes, each for itself."""
    sets, (n, q) = block.sets, block.shape
    rates = SetModel.of(block, sets.initial_confidences()).rates
    labels = sets.indices[
        sets.indptr[:-1] + (random_state.uniform(size=n) * sets.sizes).astype(int)
    ]
    order = np.log(rates) - np.log1p(-rates)
    scores = order[labels] + random_state.gumbel(size=(n, q))
    scores[np.arange(n), labels] = np.inf
    ranks = np.argsort(np.argsort(-scores, axis=1), axis=1)
    return np.asarray(ranks < sets.sizes[:, np.newaxis])


def _number_of_rows(pattern: NDArray[np.bool_]) -> int:
    """Count the different rows of a pattern."""
    return len(np.unique(np.packbits(pattern, axis=1), axis=0))
