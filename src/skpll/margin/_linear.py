"""What the methods that solve one problem over all weight vectors have in common."""

from __future__ import annotations

from abc import abstractmethod

from skpll._examples import Examples
from skpll._threads import threads_for
from skpll._typing import Floats
from skpll.base import LinearScores
from skpll.solvers.conditioning import MAX_OFFSET, MODERATE_OFFSET
from skpll.solvers.dual_newton import LinearSolution


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
