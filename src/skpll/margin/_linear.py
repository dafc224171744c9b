"""What classifiers with one linear score a class have in common."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpll.base import ScoringClassifier, WeightedPartialLabelClassifier
from skpll.solvers.conditioning import Conditioning, condition

__all__ = ["LinearScores"]


class LinearScores(WeightedPartialLabelClassifier, ScoringClassifier):
    """Scores ``X @ coef_.T + intercept_``; the largest wins."""

    accepts_sparse = True

    coef_: NDArray[np.float64]
    intercept_: NDArray[np.float64]

    def _condition(self, X: Any) -> Conditioning:
        """Find what the features need to be learned from; warn if that changes the penalty."""
        conditioning = condition(X)
        if conditioning.scale != 1.0:
            warnings.warn(
                "X: some values are too large for a linear model; to train it, all are divided by "
                f"{conditioning.scale:.0e}. Scale the features, for example with StandardScaler.",
                UserWarning,
                stacklevel=5,
            )
        return conditioning

    def _keep_scores(
        self,
        coef: NDArray[np.float64],
        intercept: NDArray[np.float64],
        conditioning: Conditioning = Conditioning(),  # noqa: B008  (immutable)
    ) -> None:
        """Keep the scores of the classes that took part; all others can never win."""
        coef, intercept = conditioning.undo(coef, intercept)
        self.coef_ = np.zeros((len(self.classes_), coef.shape[1]))
        self.intercept_ = np.full(len(self.classes_), -np.inf)
        self.coef_[self._seen], self.intercept_[self._seen] = coef, intercept

    def _class_scores(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(X @ self.coef_[self._seen].T) + self.intercept_[self._seen]
