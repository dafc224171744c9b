"""The row operations of `CandidateSets` as functions."""

from __future__ import annotations

from .candidates import CandidateSets

row_sums = CandidateSets.row_sums
row_peaks = CandidateSets.row_max
row_argmax = CandidateSets.row_argmax
row_normalized = CandidateSets.row_normalized
row_softmax = CandidateSets.row_softmax
row_entropies = CandidateSets.row_entropies
on_candidates = CandidateSets.entries
