"""Probabilities that mean something, for any method, without a true label."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval

from skpll._examples import Examples, Features
from skpll._temperature import fit_temperature, log_scores, probabilities
from skpll._typing import Estimator
from skpll.base import PartialLabelClassifier
from skpll.candidates import CandidateSets
from skpll.engine.held_out import Model, check_takes_candidates, held_out_answers

__all__ = ["CalibratedCandidatesCV"]

Floats = NDArray[np.float64]


@dataclass(eq=False, repr=False)
class CalibratedCandidatesCV(PartialLabelClassifier):
    r"""Calibrate the probabilities of a method by the candidate sets.

    The method is trained on some folds and asked for probabilities :math:`P_{ij}` of the others.
    The temperature T under which :math:`P_{ij}^{1/T}`, normalized, makes the candidate sets most
    likely,

    .. math:: \max_T \sum_i \log \frac{\sum_{j \in S_i} P_{ij}^{1/T}}{\sum_j P_{ij}^{1/T}},

    sharpens or flattens the probabilities of the method trained on everything.

    Parameters
    ----------
    estimator : classifier of partial labels, or a pipeline that ends in one
        It has `predict_proba`.
    cv : int, default=5
        Number of folds.
    random_state : int, RandomState or None, default=0
        Draws the folds.

    Attributes
    ----------
    classes_ : array of shape (q,)
        The labels, sorted.
    estimator_ : classifier
        The method, trained on all examples.
    temperature_ : float
        Above one where the method was too sure, below one where it was too cautious.
    transduction_ : array of shape (n,)
        The candidate of each training example with the largest confidence.
    label_distributions_ : sparse array of shape (n, q)
        Calibrated probabilities of the candidates, from a model that was not trained on the
        example.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : array of str
        Their names, where `X` had any.

    Examples
    --------
    >>> from skpll import PLKNN, CalibratedCandidatesCV
    >>> X = [[0.0], [0.1], [0.2], [0.3], [1.0], [1.1], [1.2], [1.3]]
    >>> S = [{"a"}, {"a", "b"}, {"a"}, {"a"}, {"b"}, {"a", "b"}, {"b"}, {"b"}]
    >>> model = CalibratedCandidatesCV(PLKNN(n_neighbors=3), cv=4).fit(X, S)
    >>> model.predict([[0.05], [1.05]]).tolist()
    ['a', 'b']
    """

    calibrated = True

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict_proba"])],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
    }

    estimator: Estimator
    cv: int = 5
    _: KW_ONLY
    random_state: int | np.random.RandomState | None = 0

    def _fit(self, examples: Examples) -> Floats:
        X, candidates = examples.X, examples.sets
        check_takes_candidates(self.estimator)
        logits = log_scores(self._cross_fitted(X, candidates))
        self.temperature_ = fit_temperature(candidates, logits, np.ones(len(candidates)))
        self.estimator_ = clone(self.estimator).fit(X, candidates)
        return candidates.entries(probabilities(logits, self.temperature_))

    def _cross_fitted(self, X: Features, candidates: CandidateSets) -> Floats:
        n_folds = min(self.cv, len(candidates))
        if n_folds < 2:
            return np.ones(candidates.shape)
        folds = KFold(n_folds, shuffle=True, random_state=self.random_state)
        parts = folds.split(np.zeros(len(candidates)))
        return held_out_answers(self.estimator, X, candidates, parts)

    def _class_scores(self, X: Features) -> Floats:
        model: Model = self.estimator_
        return np.asarray(model.predict_proba(X))

    def _probabilities(self, scores: Floats) -> Floats:
        return probabilities(log_scores(scores), self.temperature_)

    def _feature_checks(self) -> dict[str, Any]:
        return {**super()._feature_checks(), "accept_sparse": "csr"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags
