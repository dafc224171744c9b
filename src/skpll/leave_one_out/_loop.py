"""The rounds of PL-LOO and of cross-fitting, whatever model answers for the examples.

Repeat until the confidences stand still:

1. ask for the scores of the candidates of every example, by a model that was trained on the
   confidences in the candidates of all other examples;
2. confidence ∝ score^power · evidence · likelihood of the set^set_model · scaling of the
   class^strength, on the candidates.

Where sets may miss the truth, all classes are candidates, those outside the set at lower odds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from skpll._iteration import Record
from skpll._temperature import log_scores
from skpll.candidates import CandidateSets
from skpll.crowd._models import vote_log_odds
from skpll.engine.arrays import as_numpy
from skpll.engine.blocks import Block, Part, Store, Values, column_sums
from skpll.solvers.scaling import log_scaling

from ._set_model import SetModel

__all__ = [
    "Evidence",
    "Loop",
    "Prior",
    "Settings",
    "initial_confidences",
    "missing",
    "moved",
    "on_given",
    "open_if",
    "opened",
]

Floats = NDArray[np.float64]
Ask = Callable[[Part], Part]
"""From confidences in all candidates to the scores that models without the example give them."""

SCALING_TURNS = 10
"""Turns of the scaling in a round, which starts from the scaling of the round before."""

MIN_SHARE, MAX_SHARE, FIRST_SHARE = 1e-3, 0.5, 0.2
"""Bounds of an estimated share of sets that miss the truth, and what it starts from."""


@dataclass(frozen=True)
class Settings:
    """How confidences follow from scores, and when that ends.

    Parameters
    ----------
    max_iter : int
        Largest number of rounds.
    tol : float
        Stop when confidences change by less than this.
    power : float
        The exponent of the scores in a round.
    prior_strength : float
        The exponent of the scaling of the classes.
    shares : array of shape (q,) or None
        The expected shares of the classes; None takes what the candidates suggest.
    group_strength : float
        The exponent of the scaling within groups; 0 where there are none.
    set_model : float
        The exponent of the likelihood of the candidate sets.
    noise : float or "auto"
        The share of the sets that miss the truth.
    start : {"convex", "evidence"}
        Where the rounds of PL-LOO start.
    in_sample : bool
        Whether PL-LOO asks a regression about examples that it was trained on.
    """

    max_iter: int = 15
    tol: float = 1e-3
    power: float = 1.5
    prior_strength: float = 0.0
    shares: Floats | None = None
    group_strength: float = 0.0
    set_model: float = 0.0
    noise: float | Literal["auto"] = 0.0
    start: str = "evidence"
    in_sample: bool = False


class Loop:
    """The confidences, and how they are updated.

    Parameters
    ----------
    store : Store
        The examples and their candidates.
    ask : callable
        Scores the candidates of every example, given the confidences in those of the others.
    settings : Settings
        How confidences follow from the scores.
    start : part, optional
        Confidences to begin with; by default those that follow from the evidence alone.
    """

    def __init__(
        self, store: Store, ask: Ask, settings: Settings, start: Part | None = None
    ) -> None:
        self.store, self.ask, self.settings = store, ask, settings
        self.evidence, self.priors = Evidence(store, settings.noise), []
        first = store.map(initial_confidences)
        if settings.prior_strength:
            expected, total = store.sum(_expected_counts, first)
            if settings.shares is not None:
                expected = total * settings.shares / settings.shares.sum()
            self.priors.append(Prior(expected, settings.prior_strength))
        if settings.group_strength:
            self.priors.append(Prior.within_groups(store, settings.group_strength))
        self.scores = self.confidences = first if start is None else start

    def rounds(self) -> Iterator[Record]:
        """Update the confidences until they stand still; yield a record of each round."""
        for _ in range(self.settings.max_iter):
            self.scores = self.ask(self.confidences)
            before, self.confidences = self.confidences, self.confidences_at(self.settings.power)
            distance, total, peaks = self.store.sum(_moved_and_peaks, before, self.confidences)
            change = float(distance / (2 * total))
            yield {"change": change, "confidence": float(peaks / total)}
            if change <= self.settings.tol:
                return

    def confidences_at(self, power: float) -> Part:
        r"""Compute the confidences that follow from the last scores, to the given power.

        .. math:: Q_{ij} \propto \max(F^\circ_{ij}, \varepsilon)^p \; e_{ij} \;
                  P(S_i \mid j)^\omega \; u_j^\tau
        """
        store, parts, set_model = self.store, [self.scores], self.settings.set_model
        self.evidence.update(store, self.confidences)
        if set_model:
            sets = SetModel.of(store, self.confidences)
            parts.append(sets.log_likelihoods(store, self.confidences))
        confidences = store.map(
            _updated, *parts, power=power, evidence=self.evidence, set_model=set_model
        )
        for prior in self.priors:
            confidences = prior.applied(store, confidences)
        return confidences


def _updated(
    block: Block,
    scores: Values,
    of_sets: Values = 0.0,
    *,
    power: float,
    evidence: Evidence,
    set_model: float,
) -> Values:
    """Compute score^power · evidence · likelihood of the set^set_model, normalized."""
    logits = power * log_scores(scores) + evidence.logits(block) + set_model * of_sets
    return block.candidates.row_softmax(logits)


def initial_confidences(block: Block) -> Values:
    """Compute the confidences that follow from the evidence alone."""
    return block.on_entries(block.sets_given.initial_confidences())


def _expected_counts(block: Block, confidences: Values) -> tuple[Values, Values]:
    sets = block.candidates
    counts = column_sums(confidences * sets.spread(block.weights), sets.indices, block.shape[1])
    return counts, block.weights.sum()


def moved(block: Block, before: Values, after: Values) -> tuple[Values, Values]:
    """Sum how far confidences have moved, and the weights."""
    distances = block.candidates.spread(block.weights) * abs(after - before)
    return distances.sum(), block.weights.sum()


def _moved_and_peaks(block: Block, before: Values, after: Values) -> tuple[Values, ...]:
    return *moved(block, before, after), (block.weights * block.candidates.row_max(after)).sum()


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
    logs : array, optional
        The logarithms of the factors of the columns, to begin with.
    """

    targets: Floats
    strength: float
    columns: Part | None = None
    logs: Floats | None = None

    @classmethod
    def within_groups(cls, store: Store, strength: float) -> Prior:
        """Expect in every group what its candidates suggest: equal shares of those of one set."""
        keys = store.joined(store.map(_group_keys))
        columns = np.unique(keys, return_inverse=True)[1]
        targets = np.bincount(columns, store.joined(store.map(_shares_of_sets)))
        return cls(targets.astype(np.float64), strength, store.split(columns))

    def applied(self, store: Store, confidences: Part) -> Part:
        """Scale confidences by a power of the factors that would meet the expectation."""
        columns = () if self.columns is None else (self.columns,)

        def sums(logs: Floats) -> Floats:
            found: Floats = store.sum(_scaled_sums, confidences, *columns, factors=np.exp(logs))
            return found

        self.logs = log_scaling(sums, self.targets, start=self.logs, max_iter=SCALING_TURNS)
        return store.map(_scaled, confidences, *columns, factors=np.exp(self.strength * self.logs))


def _scaled(
    block: Block,
    confidences: Values,
    columns: Values | None = None,
    *,
    factors: Values,
    totals: Values = 1.0,
) -> Values:
    """Multiply confidences by the factors of their columns, and normalize them to given totals."""
    sets = block.candidates
    scaled = confidences * factors[sets.indices if columns is None else columns]
    scaled *= sets.spread(totals / sets.row_sums(scaled))
    return scaled


def _scaled_sums(
    block: Block, confidences: Values, columns: Values | None = None, *, factors: Values
) -> Values:
    scaled = _scaled(block, confidences, columns, factors=factors, totals=block.weights)
    columns = block.candidates.indices if columns is None else columns
    return column_sums(scaled, columns, len(factors))


def _group_keys(block: Block) -> NDArray[np.int64]:
    assert block.groups is not None
    groups = block.groups.astype(np.int64) * block.shape[1]
    return block.sets.spread(groups) + block.sets.indices


def _shares_of_sets(block: Block) -> Floats:
    return block.sets.initial_confidences() * block.sets.spread(as_numpy(block.weights))


class Evidence:
    r"""What is known of the candidates beside the features, as logarithms of likelihoods.

    Weights that are whole numbers are votes of unknown annotators: each is right with one
    probability, which is estimated from the confidences, and wrong votes fall on all other classes
    alike. Other weights are likelihoods as they are, such as those of votes of known annotators
    (`CandidateSets.from_votes`).

    If a share :math:`\eta` of the sets misses the truth, all classes are candidates (`opened`). A
    set of s of the q classes is drawn with its truth inside, or, with probability η, without it,
    and otherwise by chance. So the truth is a class outside, rather than one inside, with odds of
    :math:`\frac{\eta}{1 - \eta} \cdot \frac{s}{q - s}` before the features are looked at.

    Parameters
    ----------
    store : Store
        The candidates and their weights.
    noise : float or "auto"
        The share η; ``"auto"`` estimates it from the confidences.

    Attributes
    ----------
    share : float
        The share η.
    """

    def __init__(self, store: Store, noise: float | Literal["auto"] = 0.0) -> None:
        self.n_classes = store.shape[1]
        fractions, several = store.sum(_kinds_of_weights)
        self.votes = not fractions and bool(several)
        self.odds, self.estimated = 0.0, noise == "auto"
        self.share = FIRST_SHARE if noise == "auto" else float(noise)

    def update(self, store: Store, confidences: Part) -> None:
        """Estimate from the confidences how reliable the evidence is, and the share."""
        if self.votes:
            right, cast = store.sum(_right_votes, confidences)
            self.odds = vote_log_odds(float(right), float(cast), self.n_classes)
        if self.estimated:
            outside, total = store.sum(_weight_outside, confidences)
            self.share = float(np.clip(outside / total, MIN_SHARE, MAX_SHARE))

    def logits(self, block: Block) -> Values:
        """Compute the logarithm of the likelihood of the evidence for each entry of a block."""
        given = block.sets_given
        logits: Values = 0.0
        if given.weights is not None:
            logits = given.weights * self.odds if self.votes else np.log(given.weights)
            logits = block.on_entries(logits)
        if block.inside is None:
            return logits
        sizes, q = given.sizes, self.n_classes
        log_odds = np.log(sizes) - np.log(np.maximum(q - sizes, 0.5))
        odds = np.log(self.share) - np.log1p(-self.share) + log_odds
        return block.local(np.where(block.inside, 0.0, np.repeat(odds, q))) + logits


def _kinds_of_weights(block: Block) -> tuple[Values, Values]:
    """Count the weights of candidates that are no whole numbers, and those above one."""
    weights = block.sets_given.weights
    if weights is None:
        return np.int64(0), np.int64(0)
    return (weights != np.round(weights)).sum(), (weights > 1).sum()


def _right_votes(block: Block, confidences: Values) -> tuple[Values, Values]:
    votes = block.sets_given.weights
    counted = block.candidates.spread(block.weights) * block.on_entries(votes)
    return (confidences * counted).sum(), counted.sum()


def _weight_outside(block: Block, confidences: Values) -> tuple[Values, Values]:
    return (block.weights * missing(block, confidences)).sum(), block.weights.sum()


def opened(block: Block) -> Block:
    """Make all classes candidates of the examples of a block."""
    n, q = block.sets.shape
    indices = np.broadcast_to(np.arange(q, dtype=np.int32), (n, q)).ravel()
    everything = CandidateSets._trusted(np.arange(n + 1) * q, indices, block.sets.classes)
    return replace(block, sets=everything, given=block.sets)


def open_if(noise: object, store: Store) -> Store:
    """Make all classes candidates if sets may miss the truth."""
    return store.changed(opened) if noise else store


def missing(block: Block, confidences: Values) -> Values:
    """Compute the confidence that each set misses the truth; zero for sets that never do."""
    if block.inside is None:
        return np.zeros(len(block.sets))
    return block.candidates.row_sums(confidences * block.local(~block.inside))


def on_given(block: Block, confidences: Values) -> Values:
    """Return the confidences in the candidates that were given."""
    return as_numpy(confidences)[block.inside]
