"""The estimator side of the linear problems that `skpll.solvers.dual_newton` solves."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpll.base import softmax_on_candidates
from skpll.candidates import CandidateSets
from skpll.solvers.dual_newton import LinearSolution
from skpll.solvers.margins import candidate_scores

from ._linear import LinearScores, training_part

__all__ = ["LinearSolutionClassifier"]

Floats = NDArray[np.float64]


class LinearSolutionClassifier(LinearScores):
    """Base class of the methods that solve one problem over all weight vectors.

    Examples without weight and labels that are then nobody's candidate take no part; such labels
    never win.
    """

    @abstractmethod
    def _solve(self, X: Any, candidates: CandidateSets, weights: Floats) -> LinearSolution:
        """Solve the problem of the method; all weights are positive."""

    def _fit(  # type: ignore[override]
        self, X: Any, candidates: CandidateSets, sample_weight: Floats
    ) -> Floats:
        taking_part = sample_weight > 0
        live, training = training_part(candidates, taking_part)
        solution = self._solve(
            X if taking_part.all() else X[taking_part], training, sample_weight[taking_part]
        )
        self._keep_scores(solution.coef, solution.intercept, live)
        scores = candidate_scores(
            X, self.coef_, self.intercept_, candidates.indptr, candidates.indices
        )
        return softmax_on_candidates(candidates, scores)
