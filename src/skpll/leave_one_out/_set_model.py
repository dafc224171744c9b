r"""A model of candidate sets: how often each label is a false candidate of each class.

.. math:: A_{jk} = \frac{\sum_i c_i Q_{ij} [k \in S_i] + s\,a_k}{\sum_i c_i Q_{ij} + s}

is the share of the examples of class j that have candidate k, where :math:`a_k` is how often k is a
false candidate at all, and s is 4. If the candidates of a class are independent of each other,

.. math:: \log P(S_i \mid j) = \sum_{k \neq j} \log (1 - A_{jk})
          + \sum_{k \in S_i, k \neq j} [\log A_{jk} - \log (1 - A_{jk})],

with what example i itself adds to A left out of the second sum. A label that is seldom a false
candidate is probably right where it is a candidate; one that is in every set explains nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from skpll._temperature import log_scores
from skpll.engine.blocks import Block, Part, Store, Values, column_sums
from skpll.engine.limits import LIMITS

__all__ = ["SetModel", "has_set_model"]

Floats = NDArray[np.float64]

SMOOTHING = 4.0
"""The number of examples that the overall rate of a false candidate counts as."""

MIN_RATE = 1e-4
"""Rates are kept away from zero and one by this."""


@dataclass(frozen=True)
class SetModel:
    """How often labels are candidates of the examples of each class.

    Parameters
    ----------
    counts : array of shape (q,)
        The weight of the examples of each class.
    together : array of shape (q, q)
        The weight of the examples of class j that have candidate k.
    overall : array of shape (q,)
        The share of the examples that have each label as a false candidate.
    """

    counts: Floats
    together: Floats
    overall: Floats

    @classmethod
    def of(cls, store: Store, confidences: Part) -> Self:
        """Estimate the rates from the confidences in the candidates of examples."""
        counts, together, false, total = store.sum(_counts, confidences)
        return cls(counts, together.reshape(len(counts), -1), false / total)

    @property
    def rates(self) -> Floats:
        """The shares A, kept away from zero and one: (q, q)."""
        rates = (self.together + SMOOTHING * self.overall) / (self.counts[:, None] + SMOOTHING)
        return np.asarray(rates.clip(MIN_RATE, 1 - MIN_RATE))

    def log_likelihoods(self, store: Store, confidences: Part) -> Part:
        r"""Compute :math:`\log P(S_i \mid j)` for each candidate.

        Parameters
        ----------
        store : Store
            The examples.
        confidences : part
            What each of them has added to the rates; zeros for other examples.
        """
        absent = np.log1p(-self.rates)
        np.fill_diagonal(absent, 0.0)
        return store.map(
            _log_likelihoods,
            confidences,
            counts=self.counts + SMOOTHING,
            together=(self.together + SMOOTHING * self.overall).ravel(),
            absent=absent.ravel(),
            all_absent=absent.sum(axis=1),
        )


def has_set_model(store: Store) -> bool:
    """Return True if a model of the sets takes little time and memory."""
    if store.shape[1] > LIMITS.set_model_classes:
        return False
    return bool(store.sum(_number_of_pairs) <= LIMITS.set_model_pairs * store.shape[0])


def _number_of_pairs(block: Block) -> Values:
    return (block.sets.sizes.astype(np.float64) ** 2).sum()


def _counts(block: Block, confidences: Values) -> tuple[Values, Values, Values, Values]:
    q, (entries, others), sets = block.shape[1], block.pairs, block.candidates
    weights = sets.spread(block.weights)
    weighted = weights * confidences
    return (
        column_sums(weighted, sets.indices, q),
        column_sums(weighted[entries], sets.indices[entries] * q + others, q * q),
        column_sums(weights - weighted, sets.indices, q),
        block.weights.sum(),
    )


def _log_likelihoods(
    block: Block,
    confidences: Values,
    *,
    counts: Values,
    together: Values,
    absent: Values,
    all_absent: Values,
) -> Values:
    (entries, others), sets = block.pairs, block.candidates
    classes = sets.indices[entries]
    places, own = classes * block.shape[1] + others, sets.spread(block.weights) * confidences
    rates = (together[places] - own[entries]) / (counts[classes] - own[entries])
    terms = log_scores(rates.clip(max=1 - MIN_RATE), MIN_RATE) - absent[places]
    return column_sums(terms, entries, len(sets.indices)) + all_absent[sets.indices]
