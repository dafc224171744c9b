"""One loop, whatever model is asked: confidences from models that have not seen the example.

repeat
ask for scores of the candidates of every example, from a model that was trained on the
confidences in the candidates of all other examples
confidence ∝ score^power · evidence · scaling of the class^strength, on the candidates
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from skpll._iteration import Record
from skpll._rows import row_softmax
from skpll.candidates import CandidateSets
from skpll.solvers.scaling import log_scaling

__all__ = ["Evidence", "Loop", "Prior", "class_prior", "group_prior"]

Floats = NDArray[np.float64]
Ask = Callable[[Floats], Floats]
"""From confidences in all candidates to the scores that models without the example give them."""

_TURNS = 10
"""Turns of the scaling in a round, which goes on where it was in the round before."""

FLOOR = 1e-4
"""Scores are taken to be at least this."""


@dataclass
class Prior:
    """How many examples are expected in each column, and how much that counts.

    Parameters
    ----------
    columns : int array
        The column of each candidate: its class, or its class in its group.
    targets : array
        The expected weight of each column.
    strength : float
        From 0, which ignores the expectation, to 1, which meets it.
    """

    columns: NDArray[np.intp]
    targets: Floats
    strength: float
    _logs: Floats | None = field(default=None, repr=False)

    def adjust(self, candidates: CandidateSets, weights: Floats, logits: Floats) -> Floats:
        """Scale the confidences whose logarithms are given towards the expectation."""
        if not self.strength:
            return logits
        self._logs = log_scaling(
            candidates.indptr,
            self.columns,
            row_softmax(candidates, logits),
            self.targets,
            weights,
            start=self._logs,
            max_iter=_TURNS,
        )
        return logits + self.strength * self._logs[self.columns]


def class_prior(
    candidates: CandidateSets, weights: Floats, shares: Floats | None, strength: float
) -> Prior:
    """Expect the given shares of the classes, or else those that the candidates suggest."""
    if shares is None:
        targets = candidates.expected_counts(weights)
    else:
        targets = weights.sum() * shares / shares.sum()
    return Prior(candidates.indices.astype(np.intp), targets, strength)


def group_prior(
    candidates: CandidateSets, weights: Floats, groups: NDArray[np.intp], strength: float
) -> Prior:
    """Expect in every group what its candidates suggest: equal shares where sets are the same."""
    keys = np.repeat(groups.astype(np.int64), candidates.sizes) * candidates.shape[1]
    _, columns = np.unique(keys + candidates.indices, return_inverse=True)
    expected = candidates.initial_confidences() * np.repeat(weights, candidates.sizes)
    return Prior(columns, np.bincount(columns, expected).astype(np.float64), strength)


class Evidence:
    """What is known of the candidates beside the features, as logarithms of likelihoods.

    Weights that are whole numbers are votes: every voter is right with one probability, which is
    estimated from the confidences, and wrong votes fall on all other classes alike. Other
    weights are likelihoods as they are.

    Parameters
    ----------
    candidates : CandidateSets
        The candidates and their weights.
    """

    share: float = 0.0
    """The share of the sets that miss the truth."""

    def __init__(self, candidates: CandidateSets) -> None:
        weights = candidates.weights
        self.n_classes = candidates.shape[1]
        self.votes: Floats | None = None
        self._logits: Floats | float = 0.0
        if weights is None:
            return
        if (weights == np.round(weights)).all() and weights.max() > 1:
            self.votes = weights
        else:
            self._logits = np.log(weights)

    def logits(self, confidences: Floats, importance: Floats) -> Floats | float:
        """Give the logarithm of the likelihood of the evidence for each candidate."""
        if self.votes is None:
            return self._logits
        counted = importance * self.votes
        right = float(np.clip((confidences * counted).sum() / counted.sum(), 0.01, 0.99))
        return self.votes * max(np.log(right * (self.n_classes - 1) / (1 - right)), 0.0)


class Loop:
    """The confidences, and how they are updated.

    Parameters
    ----------
    candidates : CandidateSets
        The candidate sets.
    weights : array of shape (n,)
        How much each example counts.
    ask : callable
        Scores the candidates of every example, given the confidences in those of the others.
    priors : sequence of Prior
        Applied one after the other.
    power : float
        By how much scores are sharpened.
    start : array, optional
        Confidences to begin with; by default those that follow from the evidence alone.
    evidence : Evidence, optional
        What is known of the candidates; by default their weights.
    """

    def __init__(
        self,
        candidates: CandidateSets,
        weights: Floats,
        ask: Ask,
        *,
        priors: Sequence[Prior] = (),
        power: float = 1.5,
        start: Floats | None = None,
        evidence: Evidence | None = None,
    ) -> None:
        self.candidates = candidates
        self.weights = weights
        self.ask = ask
        self.priors = [prior for prior in priors if prior.strength]
        self.power = power
        self.evidence = Evidence(candidates) if evidence is None else evidence
        self.confidences = candidates.initial_confidences() if start is None else start
        self.scores = self.confidences
        self._importance = np.repeat(weights, candidates.sizes)

    def rounds(self, max_iter: int, tol: float) -> Iterator[Record]:
        """Update the confidences until they stand still; give a record of each round."""
        for _ in range(max_iter):
            self.scores = self.ask(self.confidences)
            updated = self.confidences_at(self.power)
            moved = self._importance * np.abs(updated - self.confidences)
            change = float(moved.sum() / (2 * self.weights.sum()))
            self.confidences = updated
            yield {"change": change, "confidence": self._mean_confidence()}
            if change <= tol:
                return

    def confidences_at(self, power: float) -> Floats:
        """Give the confidences that follow from the last answers, sharpened by a power."""
        logits = power * np.log(np.maximum(self.scores, FLOOR))
        logits = logits + self.evidence.logits(self.confidences, self._importance)
        for prior in self.priors:
            logits = prior.adjust(self.candidates, self.weights, logits)
        return row_softmax(self.candidates, logits)

    def _mean_confidence(self) -> float:
        peaks = np.maximum.reduceat(self.confidences, self.candidates.indptr[:-1])
        return float(np.average(peaks, weights=self.weights))
