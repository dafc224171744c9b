"""Sets that may miss the truth: every class is a candidate then, the outsiders at a price."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skpll.candidates import CandidateSets

from ._loop import Evidence

__all__ = ["OpenSets"]

Floats = NDArray[np.float64]

_LEAST, _MOST = 1e-3, 0.5


class OpenSets(Evidence):
    r"""Candidate sets of which a share :math:`\eta` misses the truth.

    A set of s of the q classes is drawn with its truth inside, or, with probability η, without it,
    and otherwise by chance. So the truth is a class outside, rather than one inside, with odds of
    :math:`\frac{\eta}{1 - \eta} \cdot \frac{s}{q - s}` before the features are looked at.

    Parameters
    ----------
    candidates : CandidateSets
        The sets as they are given.
    noise : float or None
        The share η; None estimates it from the confidences.

    Attributes
    ----------
    everything : CandidateSets
        Sets of all classes.
    inside : bool array
        Which entries of `everything` are candidates.
    share : float
        The share η.
    """

    def __init__(self, candidates: CandidateSets, noise: float | None) -> None:
        super().__init__(candidates)
        n, q = candidates.shape
        self.given = candidates
        self.inside = np.asarray(candidates).ravel() > 0
        indices = np.broadcast_to(np.arange(q, dtype=np.int32), (n, q)).ravel()
        self.everything = CandidateSets._trusted(np.arange(n + 1) * q, indices, candidates.classes)
        sizes = candidates.sizes
        self._log_odds = np.log(sizes) - np.log(np.maximum(q - sizes, 0.5))
        self._estimated = noise is None
        self.share = 0.2 if noise is None else float(noise)

    def start(self) -> Floats:
        """Confidences to begin with: those inside."""
        confidences = np.zeros(len(self.inside))
        confidences[self.inside] = self.given.initial_confidences()
        return confidences

    def missing(self, confidences: Floats) -> Floats:
        """Give the confidence that each set misses the truth."""
        outside = np.where(self.inside, 0.0, confidences).reshape(self.given.shape)
        return np.asarray(outside.sum(axis=1))

    def logits(self, confidences: Floats, importance: Floats) -> Floats:
        """Give the logarithm of the likelihood of the evidence for each class."""
        q = self.given.shape[1]
        if self._estimated:
            outside = np.average(self.missing(confidences), weights=importance.reshape(-1, q)[:, 0])
            self.share = float(np.clip(outside, _LEAST, _MOST))
        odds = np.log(self.share) - np.log1p(-self.share) + self._log_odds
        values = np.repeat(odds, q)
        inner = super().logits(confidences[self.inside], importance[self.inside])
        values[self.inside] = inner
        return values
