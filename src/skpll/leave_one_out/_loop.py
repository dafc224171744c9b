"""The rounds of PL-LOO and of cross-fitting, whatever model answers for the examples.

Repeat until the confidences stand still:

1. ask for the scores of the candidates of every example, by a model that was trained on the
   confidences in the candidates of all other examples;
2. confidence ∝ score^power · evidence · likelihood of the set^set_model · scaling of the
   class^strength, on the candidates.

Where sets may miss the truth, all classes are candidates, those outside the set at lower odds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from skpll._iteration import Record
from skpll._temperature import FLOOR
from skpll.candidates import CandidateSets
from skpll.crowd._models import vote_log_odds
from skpll.engine.arrays import as_numpy
from skpll.engine.blocks import Block, Part, Store, Values
from skpll.solvers.scaling import log_scaling

from ._set_model import SetModel

__all__ = [
    "Evidence",
    "Loop",
    "OpenSets",
    "Prior",
    "class_prior",
    "group_prior",
    "missing",
    "moved",
    "on_given",
    "opened",
    "total_weight",
]

Floats = NDArray[np.float64]
Ask = Callable[[Part], Part]
"""From confidences in all candidates to the scores that models without the example give them."""

SCALING_TURNS = 10
"""Turns of the scaling in a round, which starts from the scaling of the round before."""

MIN_SHARE, MAX_SHARE, FIRST_SHARE = 1e-3, 0.5, 0.2
"""Bounds of an estimated share of sets that miss the truth, and what it starts from."""


class Loop:
    """The confidences, and how they are updated.

    Parameters
    ----------
    store : Store
        The examples and their candidates.
    ask : callable
        Scores the candidates of every example, given the confidences in those of the others.
    priors : sequence of Prior
        Applied one after the other.
    power : float
        The exponent of the scores.
    start : part, optional
        Confidences to begin with; by default those that follow from the evidence alone.
    evidence : Evidence, optional
        What is known of the candidates; by default their weights.
    set_model : float
        The exponent of the likelihood of the candidate sets.
    """

    def __init__(
        self,
        store: Store,
        ask: Ask,
        *,
        priors: Sequence[Prior] = (),
        power: float = 1.5,
        start: Part | None = None,
        evidence: Evidence | None = None,
        set_model: float = 0.0,
    ) -> None:
        self.store, self.ask, self.power = store, ask, power
        self.set_model = set_model
        self.priors = [prior for prior in priors if prior.strength]
        self.evidence = Evidence(store) if evidence is None else evidence
        self.confidences = store.map(initial_confidences) if start is None else start
        self.scores = self.confidences
        self.total = float(store.sum(total_weight))

    def rounds(self, max_iter: int, tol: float) -> Iterator[Record]:
        """Update the confidences until they stand still; yield a record of each round."""
        for _ in range(max_iter):
            self.scores = self.ask(self.confidences)
            updated = self.confidences_at(self.power)
            distance, peaks = self.store.sum(_moved_and_peaks, self.confidences, updated)
            self.confidences = updated
            change = float(distance / (2 * self.total))
            yield {"change": change, "confidence": float(peaks / self.total)}
            if change <= tol:
                return

    def confidences_at(self, power: float) -> Part:
        """Compute the confidences that follow from the last scores, to the given power."""
        self.evidence.update(self.store, self.confidences)
        parts = [self.scores]
        if self.set_model:
            sets = SetModel.of(self.store, self.confidences)
            parts.append(sets.log_likelihoods(self.store, self.confidences))
        logits = self.store.map(
            _logits, *parts, power=power, evidence=self.evidence, set_model=self.set_model
        )
        confidences = self.store.map(_softmax, logits)
        for prior in self.priors:
            prior.scale(self.store, confidences)
            columns = () if prior.columns is None else (prior.columns,)
            logs = prior.strength * prior.logs
            logits = self.store.map(_shifted, logits, *columns, logs=logs)
            confidences = self.store.map(_softmax, logits)
        return confidences


def _logits(
    block: Block,
    scores: Values,
    of_sets: Values = 0.0,
    *,
    power: float,
    evidence: Evidence,
    set_model: float,
) -> Values:
    """Compute the logarithms of the confidences, up to a constant for each example."""
    logits = power * block.log(scores.clip(min=FLOOR)) + evidence.logits(block)
    return logits + set_model * of_sets if set_model else logits


def _shifted(
    block: Block, logits: Values, columns: Values | None = None, *, logs: Floats
) -> Values:
    return logits + block.entries(logs)[block.indices if columns is None else columns]


def _softmax(block: Block, logits: Values) -> Values:
    return block.softmax(logits)


def moved(block: Block, before: Values, after: Values) -> Values:
    """Sum how far confidences have moved."""
    return (block.spread(block.weights) * abs(after - before)).sum()


def _moved_and_peaks(block: Block, before: Values, after: Values) -> tuple[Values, Values]:
    return moved(block, before, after), (block.weights * block.peaks(after)).sum()


def total_weight(block: Block) -> Values:
    return block.weights.sum()


@dataclass
class Prior:
    """How many examples are expected in each column, and how much that counts.

    Parameters
    ----------
    targets : array
        The expected weight of each column.
    strength : float
        From 0, which ignores the expectation, to 1, which meets it.
    columns : part, optional
        The column of each candidate; its class by default.
    """

    targets: Floats
    strength: float
    columns: Part | None = None
    logs: Floats = field(init=False, repr=False)
    """The logarithms of the factors of the columns."""

    def __post_init__(self) -> None:
        self.logs = np.zeros(len(self.targets))

    def scale(self, store: Store, confidences: Part) -> None:
        """Find the scaling of confidences that meets the expectation, from the last one on."""
        columns = () if self.columns is None else (self.columns,)

        def column_sums(logs: Floats) -> Floats:
            sums: Floats = store.sum(_column_sums, confidences, *columns, factors=np.exp(logs))
            return sums

        self.logs = log_scaling(column_sums, self.targets, start=self.logs, max_iter=SCALING_TURNS)


def class_prior(store: Store, shares: Floats | None, strength: float) -> Prior:
    """Expect the given shares of the classes, or else those that the candidates suggest."""
    expected: Floats = store.sum(_expected_counts)
    if shares is not None:
        expected = store.sum(total_weight) * shares / shares.sum()
    return Prior(expected, strength)


def group_prior(store: Store, groups: NDArray[np.intp], strength: float) -> Prior:
    """Expect in every group what its candidates suggest: equal shares where sets are the same."""
    indices, sizes = store.joined(store.map(_indices)), store.joined(store.map(_sizes))
    keys = np.repeat(groups.astype(np.int64), sizes) * store.shape[1] + indices
    _, columns = np.unique(keys, return_inverse=True)
    expected = store.joined(store.map(_uniform))
    targets = np.bincount(columns, expected).astype(np.float64)
    return Prior(targets, strength, store.split(columns))


def initial_confidences(block: Block) -> Values:
    """Compute the confidences that follow from the evidence alone."""
    given = block.sets if block.given is None else block.given
    return block.on_entries(given.initial_confidences())


def _expected_counts(block: Block) -> Values:
    expected = initial_confidences(block) * block.spread(block.weights)
    return block.column_sums(expected, block.indices, block.sets.shape[1])


def _column_sums(
    block: Block, values: Values, columns: Values | None = None, *, factors: Floats
) -> Values:
    columns = block.indices if columns is None else columns
    scaled = values * block.entries(factors)[columns]
    scaled *= block.spread(block.weights / block.sums(scaled))
    return block.column_sums(scaled, columns, len(factors))


def _indices(block: Block) -> Values:
    return block.sets.indices


def _sizes(block: Block) -> Values:
    return block.sets.sizes


def _uniform(block: Block) -> Values:
    return block.entries(block.sets.initial_confidences()) * block.spread(block.weights)


class Evidence:
    """What is known of the candidates beside the features, as logarithms of likelihoods.

    Weights that are whole numbers are votes of unknown annotators: each is right with one
    probability, which is estimated from the confidences, and wrong votes fall on all other classes
    alike. Other weights are likelihoods as they are, such as those of votes of known annotators
    (`CandidateSets.from_votes`).

    Parameters
    ----------
    store : Store
        The candidates and their weights.
    """

    share: float = 0.0
    """The share of the sets that miss the truth."""

    def __init__(self, store: Store) -> None:
        self.n_classes = store.shape[1]
        fractions, several = store.sum(_kinds_of_weights)
        self.votes = not fractions and bool(several)
        self.odds = 0.0

    def update(self, store: Store, confidences: Part) -> None:
        """Estimate from the confidences how reliable the evidence is."""
        if self.votes:
            right, cast = store.sum(_right_votes, confidences)
            self.odds = vote_log_odds(float(right), float(cast), self.n_classes)

    def logits(self, block: Block) -> Values:
        """Compute the logarithm of the likelihood of the evidence for each entry of a block."""
        weights = _weights_of_candidates(block)
        if weights is None:
            return 0.0
        return block.on_entries(weights * self.odds if self.votes else np.log(weights))


def _weights_of_candidates(block: Block) -> Floats | None:
    return (block.sets if block.given is None else block.given).weights


def _kinds_of_weights(block: Block) -> tuple[Values, Values]:
    """Count the weights of candidates that are no whole numbers, and those above one."""
    weights = _weights_of_candidates(block)
    if weights is None:
        return np.int64(0), np.int64(0)
    return (weights != np.round(weights)).sum(), (weights > 1).sum()


def _right_votes(block: Block, confidences: Values) -> tuple[Values, Values]:
    counted = block.spread(block.weights) * block.on_entries(_weights_of_candidates(block))
    return (confidences * counted).sum(), counted.sum()


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
