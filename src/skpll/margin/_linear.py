"""What classifiers with one linear score a class have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpll.base import ScoringClassifier, WeightedPartialLabelClassifier
from skpll.candidates import CandidateSets

__all__ = ["LinearScores", "training_part"]


class LinearScores(WeightedPartialLabelClassifier, ScoringClassifier):
    """Scores ``X @ coef_.T + intercept_``; the largest wins."""

    accepts_sparse = True

    coef_: NDArray[np.float64]
    intercept_: NDArray[np.float64]

    def _keep_scores(
        self, coef: NDArray[np.float64], intercept: NDArray[np.float64], live: NDArray[np.intp]
    ) -> None:
        """Keep the scores of the classes that took part; all others can never win."""
        self.coef_ = np.zeros((len(self.classes_), coef.shape[1]))
        self.intercept_ = np.full(len(self.classes_), -np.inf)
        self.coef_[live], self.intercept_[live] = coef, intercept

    def _class_scores(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(X @ self.coef_.T) + self.intercept_


def training_part(
    candidates: CandidateSets, taking_part: NDArray[np.bool_]
) -> tuple[NDArray[np.intp], CandidateSets]:
    """Leave out rows without weight, and classes that are then nobody's candidate."""
    kept = candidates if taking_part.all() else candidates[taking_part]
    counts = np.bincount(kept.indices, minlength=kept.shape[1])
    live = np.flatnonzero(counts)
    if len(live) == kept.shape[1]:
        return live, kept
    position = np.cumsum(counts > 0) - 1
    return live, CandidateSets._trusted(kept.indptr, position[kept.indices], kept.classes[live])
