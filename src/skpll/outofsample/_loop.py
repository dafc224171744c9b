"""One loop, whatever model is asked: confidences from models that have not seen the example.

repeat
ask for scores of the candidates of every example, from a model that was trained on the
confidences in the candidates of all other examples
confidence ∝ score^power · evidence · scaling of the class^strength, on the candidates
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpll._iteration import Record
from skpll._temperature import FLOOR
from skpll.solvers.scaling import log_scaling

from ._blocks import Block, Blocks, LocalBlocks, Parts

__all__ = ["Evidence", "Loop", "Prior", "class_prior", "group_prior"]

Floats = NDArray[np.float64]
Ask = Callable[[Parts], Parts]
"""From confidences in all candidates to the scores that models without the example give them."""

_TURNS = 10
"""Turns of the scaling in a round, which goes on where it was in the round before."""


@dataclass
class Prior:
    """How many examples are expected in each column, and how much that counts.

    Parameters
    ----------
    targets : array
        The expected weight of each column.
    strength : float
        From 0, which ignores the expectation, to 1, which meets it.
    columns : parts, optional
        The column of each candidate; its class by default.
    """

    targets: Floats
    strength: float
    columns: Parts | None = None
    _logs: Any = field(default=None, repr=False)

    def scale(self, blocks: Blocks, confidences: Parts) -> None:
        """Find the scaling of confidences that meets the expectation, going on where it was."""
        columns = () if self.columns is None else (self.columns,)
        self._logs = log_scaling(
            lambda logs: blocks.sum(_column_sums, confidences, *columns, factors=np.exp(logs)),
            self.targets,
            start=self._logs,
            max_iter=_TURNS,
        )

    @property
    def shift(self) -> Floats:
        """What the scaling adds to the logarithms of confidences, for each column."""
        return np.asarray(self.strength * self._logs)


def class_prior(blocks: Blocks, shares: Floats | None, strength: float) -> Prior:
    """Expect the given shares of the classes, or else those that the candidates suggest."""
    expected: Floats = blocks.sum(_expected_counts)
    if shares is not None:
        expected = blocks.sum(_total_weight) * shares / shares.sum()
    return Prior(expected, strength)


def group_prior(blocks: LocalBlocks, groups: NDArray[np.intp], strength: float) -> Prior:
    """Expect in every group what its candidates suggest: equal shares where sets are the same."""
    indices = np.concatenate([block.sets.indices for block in blocks.blocks])
    sizes = np.concatenate([block.sets.sizes for block in blocks.blocks])
    keys = np.repeat(groups.astype(np.int64), sizes) * blocks.shape[1] + indices
    _, columns = np.unique(keys, return_inverse=True)
    expected = blocks.joined(blocks.map(_even))
    targets = np.bincount(columns, expected).astype(np.float64)
    return Prior(targets, strength, blocks.split(columns))


class Evidence:
    """What is known of the candidates beside the features, as logarithms of likelihoods.

    Weights that are whole numbers are votes: every voter is right with one probability, which is
    estimated from the confidences, and wrong votes fall on all other classes alike. Other
    weights are likelihoods as they are.

    Parameters
    ----------
    blocks : Blocks
        The candidates and their weights.
    """

    share: float = 0.0
    """The share of the sets that miss the truth."""

    def __init__(self, blocks: Blocks) -> None:
        self.n_classes = blocks.shape[1]
        fractions, several = blocks.sum(_kinds_of_weights)
        self.votes = not fractions and bool(several)
        self.odds = 0.0

    def learn(self, blocks: Blocks, confidences: Parts) -> None:
        """Find out from the confidences how much the evidence is worth."""
        if self.votes:
            right, cast = blocks.sum(_right_votes, confidences)
            right = float(np.clip(right / cast, 0.01, 0.99))
            self.odds = max(float(np.log(right * max(self.n_classes - 1, 1) / (1 - right))), 0.0)

    def logits(self, block: Block) -> Any:
        """Give the logarithm of the likelihood of the evidence for each candidate of a block."""
        weights = _evidence(block)
        if weights is None:
            return 0.0
        return block.on_entries(weights * self.odds if self.votes else np.log(weights))


class Loop:
    """The confidences, and how they are updated.

    Parameters
    ----------
    blocks : Blocks
        The examples and their candidates.
    ask : callable
        Scores the candidates of every example, given the confidences in those of the others.
    priors : sequence of Prior
        Applied one after the other.
    power : float
        By how much scores are sharpened.
    start : parts, optional
        Confidences to begin with; by default those that follow from the evidence alone.
    evidence : Evidence, optional
        What is known of the candidates; by default their weights.
    """

    def __init__(
        self,
        blocks: Blocks,
        ask: Ask,
        *,
        priors: Sequence[Prior] = (),
        power: float = 1.5,
        start: Parts | None = None,
        evidence: Evidence | None = None,
    ) -> None:
        self.blocks = blocks
        self.ask = ask
        self.priors = [prior for prior in priors if prior.strength]
        self.power = power
        self.evidence = Evidence(blocks) if evidence is None else evidence
        self.confidences = blocks.map(initial_confidences) if start is None else start
        self.scores = self.confidences
        self.total = float(blocks.sum(_total_weight))

    def rounds(self, max_iter: int, tol: float) -> Iterator[Record]:
        """Update the confidences until they stand still; give a record of each round."""
        for _ in range(max_iter):
            self.scores = self.ask(self.confidences)
            updated = self.confidences_at(self.power)
            moved, peaks = self.blocks.sum(_moved, self.confidences, updated)
            self.confidences = updated
            change = float(moved / (2 * self.total))
            yield {"change": change, "confidence": float(peaks / self.total)}
            if change <= tol:
                return

    def confidences_at(self, power: float) -> Parts:
        """Give the confidences that follow from the last answers, sharpened by a power."""
        self.evidence.learn(self.blocks, self.confidences)
        for place, prior in enumerate(self.priors):
            prior.scale(self.blocks, self._confidences(power, self.priors[:place]))
        return self._confidences(power, self.priors)

    def _confidences(self, power: float, priors: Sequence[Prior]) -> Parts:
        """Give the confidences that follow from the last answers and scalings."""
        return self.blocks.map(
            _softmax,
            self.scores,
            *[prior.columns for prior in priors if prior.columns is not None],
            power=power,
            evidence=self.evidence,
            shifts=[(prior.shift, prior.columns is not None) for prior in priors],
        )


def initial_confidences(block: Block) -> Any:
    """Give the confidences that follow from the evidence alone."""
    given = block.sets if block.given is None else block.given
    return block.on_entries(given.initial_confidences())


def _softmax(
    block: Block,
    scores: Any,
    *columns: Any,
    power: float,
    evidence: Evidence,
    shifts: Sequence[tuple[Floats, bool]],
) -> Any:
    """Give the confidences in candidates with given scores, shifted in each prior's columns."""
    segments, others = block.segments, iter(columns)
    logits = power * segments.entries(segments.xp.log(scores.clip(min=FLOOR)))
    logits = logits + evidence.logits(block)
    for shift, has_columns in shifts:
        logits = logits + segments.entries(shift)[next(others) if has_columns else segments.indices]
    return segments.softmax(logits)


def _column_sums(block: Block, values: Any, columns: Any = None, *, factors: Floats) -> Any:
    segments = block.segments
    columns = segments.indices if columns is None else columns
    scaled = values * segments.entries(factors)[columns]
    scaled *= segments.spread(block.weights / segments.sums(scaled))
    return segments.column_sums(scaled, columns, len(factors))


def _moved(block: Block, before: Any, after: Any) -> tuple[Any, Any]:
    moved = block.importance * abs(after - before)
    return moved.sum(), (block.weights * block.segments.peaks(after)).sum()


def _total_weight(block: Block) -> Any:
    return block.weights.sum()


def _even(block: Block) -> Any:
    return block.segments.entries(block.sets.initial_confidences()) * block.importance


def _expected_counts(block: Block) -> Any:
    segments, expected = block.segments, initial_confidences(block) * block.importance
    return segments.column_sums(expected, segments.indices, block.sets.shape[1])


def _evidence(block: Block) -> Floats | None:
    return (block.sets if block.given is None else block.given).weights


def _kinds_of_weights(block: Block) -> tuple[Any, Any]:
    """Count the weights of candidates that are no whole numbers, and those above one."""
    weights = _evidence(block)
    if weights is None:
        return np.int64(0), np.int64(0)
    return (weights != np.round(weights)).sum(), (weights > 1).sum()


def _right_votes(block: Block, confidences: Any) -> tuple[Any, Any]:
    counted = block.importance * block.on_entries(_evidence(block))
    return (confidences * counted).sum(), counted.sum()
