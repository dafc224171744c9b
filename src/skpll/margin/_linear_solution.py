"""The estimator side of the linear problems that `skpll.solvers.dual_newton` solves."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpll._examples import Examples
from skpll._rows import on_candidates, row_softmax
from skpll._threads import threads_for
from skpll.candidates import CandidateSets
from skpll.solvers.dual_newton import LinearSolution

from ._linear import LinearScores

__all__ = ["LinearSolutionClassifier"]

Floats = NDArray[np.float64]


class LinearSolutionClassifier(LinearScores):
    """Base class of the methods that solve one problem over all weight vectors."""

    @abstractmethod
    def _solve(self, X: Any, candidates: CandidateSets, weights: Floats) -> LinearSolution:
        """Solve the problem of the method; all weights are positive."""

    def _fit(self, examples: Examples) -> Floats:
        X, candidates, sample_weight = examples.X, examples.sets, examples.weights
        conditioning = self._condition(X)
        with threads_for(X.shape[0] * X.shape[1] * candidates.shape[1]):
            solution = self._solve(conditioning(X), candidates, sample_weight)
        self._keep_scores(solution.coef, solution.intercept, conditioning)
        return row_softmax(candidates, on_candidates(candidates, solution.scores))
