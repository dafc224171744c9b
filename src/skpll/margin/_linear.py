"""What classifiers with one linear score for each class have in common."""

from __future__ import annotations

import warnings
from abc import abstractmethod

import numpy as np

from skpll._examples import Examples, Features
from skpll._threads import threads_for
from skpll._typing import Floats
from skpll.base import ScoringClassifier, WeightedPartialLabelClassifier
from skpll.solvers.conditioning import MAX_OFFSET, MODERATE_OFFSET, Conditioning, condition
from skpll.solvers.dual_newton import LinearSolution

__all__ = ["LinearScores", "LinearSolutionClassifier"]


class LinearScores(WeightedPartialLabelClassifier, ScoringClassifier):
    """Scores ``X @ coef_.T + intercept_``; the class with the largest score is predicted."""

    accepts_sparse = True

    coef_: Floats
    intercept_: Floats

    def _condition(self, X: Features, max_offset: float = MAX_OFFSET) -> Conditioning:
        """Find what the features need to be learned from; warn if that changes the penalty."""
        conditioning = condition(X, max_offset=max_offset)
        if conditioning.scale != 1.0:
            warnings.warn(
                "X: some values are too large for a linear model; to train it, all are divided by "
                f"{conditioning.scale:.0e}. Scale the features, for example with StandardScaler.",
                UserWarning,
                stacklevel=5,
            )
        return conditioning

    def _keep_scores(self, coef: Floats, intercept: Floats, conditioning: Conditioning) -> None:
        """Keep the scores of the classes that have candidates; no other class can win."""
        coef, intercept = conditioning.undo(coef, intercept)
        self.coef_ = np.zeros((len(self.classes_), coef.shape[1]))
        self.intercept_ = np.full(len(self.classes_), -np.inf)
        self.coef_[self._seen], self.intercept_[self._seen] = coef, intercept

    def _class_scores(self, X: Features) -> Floats:
        return np.asarray(X @ self.coef_[self._seen].T) + self.intercept_[self._seen]


class LinearSolutionClassifier(LinearScores):
    """Base class of the methods that solve one problem over all weight vectors.

    The intercept is penalized. Features with an offset would make up for that, at next to no
    penalty, and give another model; such columns are moved to zero first.
    """

    fit_intercept: bool

    @abstractmethod
    def _solve(self, examples: Examples) -> LinearSolution:
        """Solve the problem of the method; all weights are positive."""

    def _fit(self, examples: Examples) -> Floats:
        max_offset = MODERATE_OFFSET if self.fit_intercept else MAX_OFFSET
        conditioning = self._condition(examples.X, max_offset)
        conditioned = Examples(conditioning(examples.X), examples.sets, examples.weights)
        with threads_for(examples.X.shape[1] * examples.sets.shape[0] * examples.sets.shape[1]):
            solution = self._solve(conditioned)
        self._keep_scores(solution.coef, solution.intercept, conditioning)
        return examples.sets.row_softmax(examples.sets.entries(solution.scores))
