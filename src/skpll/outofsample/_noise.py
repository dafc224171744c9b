"""Sets that may miss the truth: every class is a candidate then, the outsiders at a price."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpll.candidates import CandidateSets

from ._blocks import Block, Blocks, Parts
from ._loop import Evidence
from ._segments import as_numpy

__all__ = ["OpenSets", "missing", "on_given", "opened"]

Floats = NDArray[np.float64]

_LEAST, _MOST = 1e-3, 0.5


class OpenSets(Evidence):
    r"""Candidate sets of which a share :math:`\eta` misses the truth.

    A set of s of the q classes is drawn with its truth inside, or, with probability η, without it,
    and otherwise by chance. So the truth is a class outside, rather than one inside, with odds of
    :math:`\frac{\eta}{1 - \eta} \cdot \frac{s}{q - s}` before the features are looked at.

    Parameters
    ----------
    blocks : Blocks
        Examples with all classes as candidates: `opened`.
    noise : float or None
        The share η; None estimates it from the confidences.

    Attributes
    ----------
    share : float
        The share η.
    """

    def __init__(self, blocks: Blocks, noise: float | None) -> None:
        super().__init__(blocks)
        self.estimated = noise is None
        self.share = 0.2 if noise is None else float(noise)

    def learn(self, blocks: Blocks, confidences: Parts) -> None:
        """Find out from the confidences how much the evidence is worth, and the share."""
        super().learn(blocks, confidences)
        if self.estimated:
            outside, total = blocks.sum(_weight_outside, confidences)
            self.share = float(np.clip(outside / total, _LEAST, _MOST))

    def logits(self, block: Block) -> Any:
        """Give the logarithm of the likelihood of the evidence for each class."""
        assert block.given is not None
        assert block.inside is not None
        sizes, q = block.given.sizes, block.given.shape[1]
        log_odds = np.log(sizes) - np.log(np.maximum(q - sizes, 0.5))
        odds = np.log(self.share) - np.log1p(-self.share) + log_odds
        outside = np.where(block.inside, 0.0, np.repeat(odds, q))
        return block.segments.entries(outside) + super().logits(block)


def opened(block: Block) -> Block:
    """Make all classes candidates of the examples of a block."""
    n, q = block.sets.shape
    indices = np.broadcast_to(np.arange(q, dtype=np.int32), (n, q)).ravel()
    everything = CandidateSets._trusted(np.arange(n + 1) * q, indices, block.sets.classes)
    return replace(block, sets=everything, given=block.sets)


def missing(block: Block, confidences: Any) -> Any:
    """Give the confidence that each set misses the truth."""
    assert block.inside is not None
    outside = block.segments.entries(~block.inside)
    return block.segments.sums(confidences * outside)


def on_given(block: Block, confidences: Any) -> Any:
    """Give the confidences in the candidates that were given."""
    return as_numpy(confidences)[block.inside]


def _weight_outside(block: Block, confidences: Any) -> tuple[Any, Any]:
    return (block.weights * missing(block, confidences)).sum(), block.weights.sum()
