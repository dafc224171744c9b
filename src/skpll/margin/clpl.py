"""CLPL: a convex loss on the mean score of the candidates and the scores of all other labels.

PL-SVM shares its base class.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import StrOptions

from skpll._examples import Examples
from skpll._iteration import Iterative
from skpll._parameters import POSITIVE
from skpll._progress import progress
from skpll._threads import threads_for
from skpll._typing import Constraints, Floats
from skpll.base import LinearScores
from skpll.candidates import CandidateSets
from skpll.solvers.conditioning import MAX_OFFSET, MODERATE_OFFSET
from skpll.solvers.dual_newton import ConvexPartialLoss, LinearSolution, minimize_linear

__all__ = ["CLPL"]

MAX_UNBALANCED_LABELS = 100
"""With more labels, candidates count as much as all other labels together."""


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


@dataclass(eq=False, repr=False)
class CLPL(LinearSolutionClassifier):
    r"""Convex learning from partial labels (CLPL).

    Use it for a linear model from one convex problem: no local optima, fast on many rows.

    Every class has a linear score :math:`s_p(x) = w_p^\top x + b_p`. The mean score of the
    candidates should be above 1, the score of every other label below −1:

    .. math:: &\min_W \; \tfrac12 \|W\|^2 + C \sum_i c_i \Bigl[
              a_i\, \psi\Bigl(\frac{1}{|S_i|} \sum_{p \in S_i} s_p(x_i)\Bigr) \\
              &\qquad + \sum_{p \notin S_i} \psi\bigl(-s_p(x_i)\bigr) \Bigr],

    with :math:`\psi(z) = \max(0, 1 - z)^2` or :math:`\max(0, 1 - z)`, sample weights :math:`c_i`
    and, as published, :math:`a_i = 1`. The problem is convex: there is one optimum, and a duality
    gap says how far away it is. The prediction is the label with the largest score.

    One term for the candidates stands against as many as there are other labels, and the score of
    the true label has to make up for those of the other candidates: it would have to reach
    :math:`2 |S| - 1` where these are at −1. With many labels the many terms win, scores hardly rise
    above −1 anywhere, and their order is noise. Beyond 100 labels the candidates of an example
    therefore count as much as all its other labels together.

    Evidence (weights of the candidates) is ignored.

    Parameters
    ----------
    C : float, default=0.1
        The weight of the loss against the regularization.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        The function ψ. The hinge takes several times longer.
    candidate_weight : float, "balanced" or "auto", default="auto"
        The weight :math:`a_i` of the candidates: a number, 1 in the literature; the number of
        labels that are no candidates of the example; or the latter beyond 100 labels and 1 below.
    <<fit_intercept>>
    tol : float, default=1e-8
        Stop when the duality gap is at most `tol` times the objective.
    max_iter : int, default=1000
        Largest number of steps of the solver.
    <<verbose>>

    <<Attributes: linear.found>>
    objective_ : float
        The value of the objective.
    gap_ : float
        The duality gap, by how much `objective_` can at most exceed the optimum.
    n_iter_ : int
        Number of steps of the solver.
    history_ : list of dict
        The ``objective`` and the ``gap`` before each step and at the end.
    <<n_features_in_, feature_names_in_>>

    Notes
    -----
    The solver (`skpll.solvers.dual_newton`) works with the n × q matrices of scores and dual
    variables, about five of them: 400 MB for 100 000 examples of 100 classes.

    The intercepts are regularized like the weights. If there are intercepts, dense columns whose
    distance from zero is more than ten times their range are moved to zero for training.

    References
    ----------
    T. Cour, B. Sapp, B. Taskar: Learning from partial labels. Journal of Machine Learning Research
    12, 2011.

    Examples
    --------
    >>> from skpll import CLPL
    >>> X = [[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]]
    >>> S = [{"a"}, {"a", "b"}, {"a", "b"}, {"b"}, {"a", "b"}, {"b"}]
    >>> model = CLPL(C=10).fit(X, S)
    >>> model.predict([[0.05], [1.05]]).tolist()
    ['a', 'b']
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "C": [POSITIVE],
        "loss": [StrOptions({"squared_hinge", "hinge"})],
        "candidate_weight": [POSITIVE, StrOptions({"balanced", "auto"})],
        "fit_intercept": ["boolean"],
        **Iterative.parameter_constraints,
    }

    C: float = 0.1
    _: KW_ONLY
    loss: str = "squared_hinge"
    candidate_weight: float | str = "auto"
    fit_intercept: bool = True
    tol: float = 1e-8
    max_iter: int = 1000
    verbose: int = 0

    def _solve(self, examples: Examples) -> LinearSolution:
        sets, weights = examples.sets, self.C * examples.weights
        own_weights = weights * self._candidate_weight(sets)
        n_classes, squared = sets.shape[1], self.loss == "squared_hinge"
        self.history_: list[dict[str, float]] = []
        with progress("CLPL", self.max_iter, bool(self.verbose)) as step:

            def report(n_iter: int, objective: float, gap: float) -> None:
                self.history_.append({"objective": objective, "gap": gap})
                step(n_iter, f"objective {objective:.6g}  gap {gap:.2g}")

            solution = minimize_linear(
                examples.X,
                ConvexPartialLoss(
                    sets.indptr, sets.indices, own_weights, weights, n_classes, squared
                ),
                n_classes,
                fit_intercept=self.fit_intercept,
                tol=self.tol,
                max_iter=self.max_iter,
                report=report,
            )
        if not solution.converged:
            warnings.warn(
                f"The duality gap is still {solution.gap / solution.objective:.2g} of the "
                "objective. Increase max_iter or tol, or scale the features.",
                ConvergenceWarning,
                stacklevel=5,
            )
        self.objective_, self.gap_ = solution.objective, solution.gap
        self.n_iter_ = solution.n_iter
        return solution

    def _candidate_weight(self, candidates: CandidateSets) -> float | Floats:
        if not isinstance(self.candidate_weight, str):
            return float(self.candidate_weight)
        if self.candidate_weight == "auto" and candidates.shape[1] <= MAX_UNBALANCED_LABELS:
            return 1.0
        return np.maximum(candidates.shape[1] - candidates.sizes, 1.0)
