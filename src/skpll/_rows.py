"""Operations on one value for each candidate, row by row.

A method keeps one number for each candidate of each example, in the order of
``candidates.indices``; the numbers of an example are a *row* of such values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

if TYPE_CHECKING:
    from .candidates import CandidateSets

Floats = NDArray[np.float64]


def row_sums(candidates: CandidateSets, values: NDArray[Any]) -> NDArray[Any]:
    """Sum of each row."""
    return np.asarray(np.add.reduceat(values, candidates.indptr[:-1]))


def row_peaks(candidates: CandidateSets, values: NDArray[Any]) -> NDArray[Any]:
    """Largest value of each row."""
    return np.asarray(np.maximum.reduceat(values, candidates.indptr[:-1]))


def row_argmax(candidates: CandidateSets, values: NDArray[Any]) -> NDArray[np.int64]:
    """Place of the largest value of each row among all candidates; the first of equals."""
    peaks = row_peaks(candidates, values)
    at_peak = np.flatnonzero(values == np.repeat(peaks, candidates.sizes))
    return at_peak[np.searchsorted(at_peak, candidates.indptr[:-1])]


def row_normalized(candidates: CandidateSets, values: NDArray[Any]) -> Floats:
    """Bring non-negative rows to a sum of one; rows of zeros become even."""
    values = np.asarray(values, dtype=np.float64)
    peaks = row_peaks(candidates, values)
    scaled = np.repeat(peaks, candidates.sizes)
    np.divide(values, scaled, out=scaled, where=scaled > 0)
    if not (peaks > 0).all():
        scaled[np.repeat(~(peaks > 0), candidates.sizes)] = 1.0
    scaled /= np.repeat(row_sums(candidates, scaled), candidates.sizes)
    return scaled


def row_softmax(candidates: CandidateSets, values: Floats) -> Floats:
    """Exponentiate rows and bring them to a sum of one; rows of minus infinity become even."""
    peaks = np.repeat(row_peaks(candidates, values), candidates.sizes)
    below = np.subtract(values, peaks, out=np.zeros_like(values), where=np.isfinite(peaks))
    return row_normalized(candidates, np.exp(below))


def row_entropies(candidates: CandidateSets, confidences: Floats) -> Floats:
    """Entropy of each row of confidences, which sum to one."""
    return row_sums(candidates, entr(confidences))


def on_candidates(candidates: CandidateSets, scores: Any) -> Floats:
    """Read off an (n, q) matrix, dense or sparse, at the candidates, in their order."""
    rows = np.repeat(np.arange(len(candidates)), candidates.sizes)
    return np.asarray(scores[rows, candidates.indices], dtype=np.float64).ravel()
