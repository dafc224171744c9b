"""What classifiers with one linear score a class have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpll.base import ScoringClassifier, WeightedPartialLabelClassifier

__all__ = ["LinearScores"]


class LinearScores(WeightedPartialLabelClassifier, ScoringClassifier):
    """Scores ``X @ coef_.T + intercept_``; the largest wins."""

    accepts_sparse = True

    coef_: NDArray[np.float64]
    intercept_: NDArray[np.float64]

    def _keep_scores(self, coef: NDArray[np.float64], intercept: NDArray[np.float64]) -> None:
        """Keep the scores of the classes that took part; all others can never win."""
        self.coef_ = np.zeros((len(self.classes_), coef.shape[1]))
        self.intercept_ = np.full(len(self.classes_), -np.inf)
        self.coef_[self._seen], self.intercept_[self._seen] = coef, intercept

    def _class_scores(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(X @ self.coef_[self._seen].T) + self.intercept_[self._seen]
