"""Sets that may miss the truth: all classes become candidates, those outside at lower odds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skpll.candidates import CandidateSets
from skpll.engine.arrays import as_numpy
from skpll.engine.blocks import Block, Part, Store, Values

from ._loop import Evidence

__all__ = ["OpenSets", "missing", "on_given", "opened"]

MIN_SHARE, MAX_SHARE, FIRST_SHARE = 1e-3, 0.5, 0.2
"""Bounds of an estimated share of sets that miss the truth, and what it starts from."""


class OpenSets(Evidence):
    r"""Candidate sets of which a share :math:`\eta` misses the truth.

    A set of s of the q classes is drawn with its truth inside, or, with probability η, without it,
    and otherwise by chance. So the truth is a class outside, rather than one inside, with odds of
    :math:`\frac{\eta}{1 - \eta} \cdot \frac{s}{q - s}` before the features are looked at.

    Parameters
    ----------
    store : Store
        Examples with all classes as candidates: `opened`.
    noise : float or None
        The share η; None estimates it from the confidences.

    Attributes
    ----------
    share : float
        The share η.
    """

    def __init__(self, store: Store, noise: float | None) -> None:
        super().__init__(store)
        self.estimated = noise is None
        self.share = FIRST_SHARE if noise is None else float(noise)

    def update(self, store: Store, confidences: Part) -> None:
        """Estimate from the confidences how reliable the evidence is, and the share."""
        super().update(store, confidences)
        if self.estimated:
            outside, total = store.sum(_weight_outside, confidences)
            self.share = float(np.clip(outside / total, MIN_SHARE, MAX_SHARE))

    def logits(self, block: Block) -> Values:
        """Compute the logarithm of the likelihood of the evidence for each class."""
        assert block.given is not None
        assert block.inside is not None
        sizes, q = block.given.sizes, block.given.shape[1]
        log_odds = np.log(sizes) - np.log(np.maximum(q - sizes, 0.5))
        odds = np.log(self.share) - np.log1p(-self.share) + log_odds
        outside = np.where(block.inside, 0.0, np.repeat(odds, q))
        return block.entries(outside) + super().logits(block)


def opened(block: Block) -> Block:
    """Make all classes candidates of the examples of a block."""
    n, q = block.sets.shape
    indices = np.broadcast_to(np.arange(q, dtype=np.int32), (n, q)).ravel()
    everything = CandidateSets._trusted(np.arange(n + 1) * q, indices, block.sets.classes)
    return replace(block, sets=everything, given=block.sets)


def missing(block: Block, confidences: Values) -> Values:
    """Compute the confidence that each set misses the truth; zero for sets that never do."""
    if block.inside is None:
        return np.zeros(len(block.sets))
    return block.sums(confidences * block.entries(~block.inside))


def on_given(block: Block, confidences: Values) -> Values:
    """Return the confidences in the candidates that were given."""
    return as_numpy(confidences)[block.inside]


def _weight_outside(block: Block, confidences: Values) -> tuple[Values, Values]:
    return (block.weights * missing(block, confidences)).sum(), block.weights.sum()
