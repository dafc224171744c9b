"""EM: logistic regression on the candidates, weighted by their probabilities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from skpll._examples import Examples, Features
from skpll._iteration import Iterative, Record
from skpll._parameters import POSITIVE
from skpll._threads import threads_for
from skpll._typing import Constraints, Floats
from skpll.base import LinearScores
from skpll.candidates import CandidateSets
from skpll.solvers.conditioning import Conditioning, condition
from skpll.solvers.softmax_regression import SoftmaxProblem

MAX_STEPS = 20
"""Maximum number of steps towards the best model in a round."""


@dataclass(eq=False, repr=False)
class EM(Iterative, LinearScores):
    r"""Expectation maximization with logistic regression (EM).

    Use it for a linear model with probabilities, and as the plainest method to compare with.

    The probability of a label is that of multinomial logistic regression,
    :math:`p(x) = \operatorname{softmax}(W x + b)`, and the candidate sets are to be likely:

    .. math:: \min_{W, b} \tfrac12 \|W\|^2 - C \sum_i c_i \log \sum_{l \in S_i} e_{il}\, p_l(x_i),

    with sample weights :math:`c_i`, and the evidence :math:`e_{il}` for the candidates where there
    is any. In turn, each example is shared among its candidates in proportion to
    :math:`e_{il}\, p_l(x_i)`, and logistic regression is fitted to the examples so shared. The
    likelihood never falls; it has local maxima, and confidences start equal.

    Features should have comparable scales: ``make_pipeline(StandardScaler(), EM())``.

    Parameters
    ----------
    C : float, default=0.1
        The weight of the likelihood against the regularization.
    <<max_iter>>
    tol : float, default=1e-4
        Rounds end when the objective falls by less than this share of it.
    <<verbose>>

    <<Attributes: classes_>>
    coef_ : array of shape (q, d)
        The coefficients W; zero for labels in no candidate set.
    intercept_ : array of shape (q,)
        The intercepts b; minus infinity for labels in no candidate set.
    transduction_ : array of shape (n,)
        The candidate of each training example with the largest probability.
    label_distributions_ : sparse array of shape (n, q)
        The probabilities of the candidates of each training example, given that it is one of them.
    <<n_iter_>>
    history_ : list of dict
        A record of each round: the ``objective``, which never rises.
    <<n_features_in_, feature_names_in_>>

    References
    ----------
    R. Jin, Z. Ghahramani: Learning with multiple labels. Advances in Neural Information Processing
    Systems, 2002.

    <<example>>
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "C": [POSITIVE],
        **Iterative.parameter_constraints,
    }

    C: float = 0.1
    _: KW_ONLY
    max_iter: int = 100
    tol: float = 1e-4
    verbose: int = 0

    def _fit(self, examples: Examples) -> Floats:
        X, candidates, sample_weight = examples.X, examples.sets, examples.weights
        X = X.astype(np.float64, copy=False)
        moved = Conditioning(condition(X).offset)
        X = moved(X)
        self._latest = candidates.initial_confidences()
        with threads_for(float(X.shape[0]) * X.shape[1] * candidates.shape[1]):
            self.iterate(self._rounds(X, candidates, self.C * sample_weight), X=X)
        confidences, model = self._latest, self._model
        del self._latest, self._model
        self._keep_scores(model.coef, model.intercept, moved)
        return confidences

    def _rounds(self, X: Features, candidates: CandidateSets, weights: Floats) -> Iterator[Record]:
        """Fit the model to the confidences, and share the examples by the model, in turn."""
        evidence = 0.0 if candidates.weights is None else np.log(candidates.initial_confidences())
        problem = SoftmaxProblem(X, weights)
        model, objective = None, np.inf
        for _ in range(self.max_iter):
            targets = candidates.to_matrix(self._latest)
            model = self._model = problem.fit(targets, start=model, max_iter=MAX_STEPS)
            joint = candidates.entries(model.log_probabilities) + evidence
            self._latest, likelihoods = _shares(candidates, joint)
            before = objective
            objective = float(np.sum(model.coef**2) / 2 - weights @ likelihoods)
            yield {"objective": objective}
            if before - objective <= self.tol * abs(objective):
                return
        self._warn_unconverged("the objective still falls")


def _shares(candidates: CandidateSets, joint: Floats) -> tuple[Floats, Floats]:
    """Turn log-probabilities of candidates into those given the set, and the set's own."""
    peaks = candidates.row_max(joint)
    parts = np.exp(joint - candidates.spread(peaks))
    totals = candidates.row_sums(parts)
    return parts / candidates.spread(totals), peaks + np.log(totals)
