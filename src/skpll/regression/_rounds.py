"""What the methods on kernel ridge regression share: the regression, and the rounds around it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from skpll._examples import Examples, Features
from skpll._iteration import Iterative
from skpll._parameters import POSITIVE
from skpll._threads import threads_for
from skpll._typing import Constraints, Floats
from skpll.base import ScoringClassifier
from skpll.candidates import CandidateSets
from skpll.engine.kernels import KERNELS, MIN_SQUARED_DISTANCE, KernelMap, squared_distances
from skpll.engine.ridge import DualRidge


class KernelRegression:
    r"""Ridge regression of confidences in the space of a kernel, with an intercept.

    .. math:: \min_{f, b} \sum_i c_i \|F_i - f(x_i) - b\|^2 + \alpha \|f\|^2

    With :math:`B = (K + \alpha C^{-1})^{-1}` the intercept is :math:`b = s^\top F / s^\top
    \mathbf 1` for :math:`s = B \mathbf 1`, and the coefficients are
    :math:`B (F - \mathbf 1 b^\top)`. B is computed once, and serves all confidences F.

    Parameters
    ----------
    K : array of shape (n, n)
        The kernel of all examples.
    weights : array of shape (n,)
        The weights c of the examples; positive.
    candidates : CandidateSets
        Where F is not zero.
    alpha : float
        The ridge.
    """

    def __init__(self, K: Floats, weights: Floats, candidates: CandidateSets, alpha: float) -> None:
        self._dual = DualRidge.of(K, weights, alpha)
        self._ridge = candidates.spread(alpha / weights)
        self._candidates = candidates

    def outputs(self, confidences: Floats) -> Floats:
        """Fit the confidences, and return the outputs for the candidates, in their order."""
        coef, _ = self.solution(confidences)
        return confidences - self._ridge * self._candidates.entries(coef)

    def solution(self, confidences: Floats) -> tuple[Floats, Floats]:
        """Fit the confidences, and return the coefficients (n, q) and intercepts (q,)."""
        targets = self._candidates.to_matrix(confidences).toarray()
        intercept = self._dual.intercepts(targets)
        return self._dual.coefficients(targets, intercept), intercept


@dataclass(eq=False, repr=False, kw_only=True)
class KernelRounds(Iterative, ScoringClassifier):
    """Base class: a regression learns the confidences, a rule makes new ones of its outputs.

    A method writes `_rounds`, which yields the confidences after each round.
    """

    accepts_sparse = True

    _parameter_constraints: ClassVar[Constraints] = {
        "alpha": [POSITIVE],
        "kernel": [StrOptions(set(KERNELS))],
        "gamma": [POSITIVE],
        **Iterative.parameter_constraints,
    }

    alpha: float = 0.05
    kernel: str = "rbf"
    gamma: float = 0.5
    max_iter: int = 50
    tol: float = 1e-4
    verbose: int = 0

    @abstractmethod
    def _rounds(
        self, examples: Examples, regression: Callable[[float], KernelRegression]
    ) -> Iterator[Floats]:
        """Yield the confidences after each round, without end; `regression` takes a ridge."""

    def _fit(self, examples: Examples) -> Floats:
        """Go through the rounds, and keep the regression on the last confidences."""
        X, candidates, weights = examples.X, examples.sets, examples.weights
        X = X.astype(np.float64, copy=False)
        examples = replace(examples, X=X)
        self._map = KernelMap(self.kernel, self.gamma, _mean_distance(X, weights), X)
        with threads_for(float(X.shape[0]) ** 2 * candidates.shape[1]):
            K = self._map.against(X)
            regression = cache(partial(KernelRegression, K, weights, candidates))
            self._latest = candidates.initial_confidences()
            self.iterate(self.until_settled(self._rounds(examples, regression)), X=X)
            confidences = self._latest
            del self._latest
            self._coef, self._intercept = regression(self.alpha).solution(confidences)
        return confidences

    def _class_scores(self, X: Features) -> Floats:
        X = X.astype(np.float64, copy=False)
        return self._map.outputs(X, self._coef, self._intercept)


def _mean_distance(X: Features, weights: Floats) -> float:
    """Return the mean distance of two different examples; one if all are equal."""
    squared = squared_distances(X, X)
    squared[squared <= MIN_SQUARED_DISTANCE * squared.max()] = 0.0
    pairs = float(weights @ (squared > 0) @ weights)
    return float(weights @ np.sqrt(squared) @ weights) / pairs if pairs > 0 else 1.0
