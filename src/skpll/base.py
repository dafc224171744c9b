"""The base class of all methods: what every classifier of partial labels has in common."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import entr, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from .candidates import CandidateSets, CandidatesLike, scoring_candidates, training_candidates

__all__ = [
    "InterruptedFitWarning",
    "MatrixLike",
    "PartialLabelClassifier",
    "ScoringClassifier",
    "WeightedPartialLabelClassifier",
]

MatrixLike: TypeAlias = Any
"""Features in rows: nested lists, an array, a data frame or, where declared, a sparse matrix."""


class InterruptedFitWarning(ConvergenceWarning):
    """A fit was interrupted: the model is usable, but not the one that the parameters describe."""


class PartialLabelClassifier(ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """Base class of the classifiers that learn from candidate sets.

    A method writes `_fit`, which learns from validated input and returns how much it believes in
    each candidate of each training example, and `_class_scores`, which scores the classes of new
    examples; everything else is here. `y` may be any format of `skpll.as_candidates`; a plain
    vector of labels is ordinary supervised learning.

    Attributes
    ----------
    classes_ : array of shape (q,)
        The labels, sorted.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : array of str
        Their names, where `X` had any.
    transduction_ : array of shape (n,)
        The label decided for each training example, always one of its candidates.
    label_distributions_ : sparse array of shape (n, q)
        The confidence in each candidate of each training example; every row sums to one.
    """

    accepts_sparse: ClassVar[bool] = False
    """Whether `X` may be a sparse matrix."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {}

    classes_: NDArray[Any]
    n_features_in_: int
    transduction_: NDArray[Any]
    label_distributions_: sparse.csr_array

    @abstractmethod
    def _fit(self, X: Any, candidates: CandidateSets) -> NDArray[np.float64]:
        """Learn from validated features and candidate sets.

        Returns
        -------
        confidences : array of shape (number of candidates in all,)
            A non-negative belief in each candidate, in the order of ``candidates.indices``. Rows
            are brought to a sum of one; a row of zeros counts as "all alike". A method that
            decides the labels in another way than by the largest confidence sets
            `transduction_` itself.
        """

    @abstractmethod
    def _class_scores(self, X: Any) -> NDArray[Any]:
        """Score every class for every row of validated features: (n, q), the largest wins."""

    def fit(self, X: MatrixLike, y: CandidatesLike) -> Self:
        """Learn from examples and their candidate labels.

        Parameters
        ----------
        X : array-like of shape (n, d)
            The features.
        y : candidate sets of n examples
            Any format of `skpll.as_candidates`.

        Returns
        -------
        self
        """
        X, candidates = self._validate_training_data(X, y)
        return self._learn(X, candidates)

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """Predict the label of each example.

        Parameters
        ----------
        X : array-like of shape (n, d)
            The features.

        Returns
        -------
        labels : array of shape (n,)
        """
        X = self._validate_features(X)
        return self.classes_[np.argmax(self._class_scores(X), axis=1)]

    def score(
        self, X: MatrixLike, y: CandidatesLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Share of the predictions that lie in the given sets.

        This is plain accuracy when `y` holds plain labels, and the covering rate when it holds
        candidate sets, so that parameters can be chosen where nobody knows the truth.

        Parameters
        ----------
        X : array-like of shape (n, d)
            The features.
        y : labels or candidate sets of n examples
            Any format of `skpll.as_candidates`.
        sample_weight : array-like of shape (n,), optional
            How much each example counts.

        Returns
        -------
        share : float
        """
        given = scoring_candidates(y)
        check_consistent_length(X, given, sample_weight)
        weights = np.ones(len(given)) if sample_weight is None else np.asarray(sample_weight, float)
        return float(np.average(given.contains(self.predict(X)).astype(float), weights=weights))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.accepts_sparse
        return tags

    def _learn(self, X: Any, candidates: CandidateSets, **fit_params: Any) -> Self:
        self.classes_ = candidates.classes
        if hasattr(self, "transduction_"):
            del self.transduction_
        confidences = self._fit(X, candidates, **fit_params)
        self.label_distributions_ = normalized_rows(candidates, confidences)
        if not hasattr(self, "transduction_"):
            best = row_argmax(candidates, self.label_distributions_.data)
            self.transduction_ = self.classes_[candidates.indices[best]]
        return self

    def _validate_training_data(self, X: Any, y: Any) -> tuple[Any, CandidateSets]:
        self._validate_params()
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None; give the candidate labels of each example."
            )
        X = validate_data(self, X, **self._feature_checks())
        candidates = training_candidates(y)
        if len(candidates) != X.shape[0]:
            raise ValueError(
                f"y: candidate labels of {len(candidates)} examples for the {X.shape[0]} rows of "
                "X; give one set a row."
            )
        return X, candidates

    def _validate_features(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, reset=False, **self._feature_checks())

    def _feature_checks(self) -> dict[str, Any]:
        return {
            "accept_sparse": "csr" if self.accepts_sparse else False,
            "dtype": [np.float64, np.float32],
            "order": "C",
        }


class ScoringClassifier(PartialLabelClassifier):
    """Base class of the methods whose scores are shown as they are, as decisions."""

    def decision_function(self, X: MatrixLike) -> NDArray[np.float64]:
        """Score the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The features.

        Returns
        -------
        scores : array of shape (n, q), or (n,) for two classes
            For two classes the score of the second less that of the first.
        """
        scores = self._class_scores(self._validate_features(X))
        return scores if scores.shape[1] > 2 else scores[:, 1] - scores[:, 0]


class WeightedPartialLabelClassifier(PartialLabelClassifier):
    """Base class of the methods in which an example can count more than another.

    Their `_fit` takes a third argument `sample_weight`, an array of shape (n,).
    """

    @abstractmethod
    def _fit(  # type: ignore[override]
        self, X: Any, candidates: CandidateSets, sample_weight: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Learn from validated features, candidate sets and weights."""

    def fit(self, X: MatrixLike, y: CandidatesLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from examples and their candidate labels.

        Parameters
        ----------
        X : array-like of shape (n, d)
            The features.
        y : candidate sets of n examples
            Any format of `skpll.as_candidates`.
        sample_weight : array-like of shape (n,), optional
            How much each example counts; all alike by default.

        Returns
        -------
        self
        """
        X, candidates = self._validate_training_data(X, y)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        return self._learn(X, candidates, sample_weight=weights)


def normalized_rows(candidates: CandidateSets, values: NDArray[Any]) -> sparse.csr_array:
    """Bring non-negative values on the candidates to row sums of one; rows of zeros become even."""
    values = np.asarray(values, dtype=np.float64)
    sizes = candidates.sizes
    peaks = np.repeat(np.maximum.reduceat(values, candidates.indptr[:-1]), sizes)
    scaled = np.divide(values, peaks, out=np.ones_like(values), where=peaks > 0)
    sums = np.repeat(np.add.reduceat(scaled, candidates.indptr[:-1]), sizes)
    return sparse.csr_array(
        (scaled / sums, candidates.indices.copy(), candidates.indptr.copy()), shape=candidates.shape
    )


def softmax_on_candidates(
    candidates: CandidateSets, values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Exponentiate values on the candidates, so that the largest of each row becomes one."""
    peaks = np.repeat(np.maximum.reduceat(values, candidates.indptr[:-1]), candidates.sizes)
    below = np.subtract(values, peaks, out=np.zeros_like(values), where=np.isfinite(peaks))
    return np.exp(below)


def row_entropies(candidates: CandidateSets, shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Entropy of each row of shares on the candidates, which sum to one."""
    return np.asarray(np.add.reduceat(entr(shares), candidates.indptr[:-1]))


def row_argmax(candidates: CandidateSets, values: NDArray[Any]) -> NDArray[np.int64]:
    """Place of the largest value of each row in ``candidates.indices``; the first of equals."""
    peaks = np.repeat(np.maximum.reduceat(values, candidates.indptr[:-1]), candidates.sizes)
    at_peak = np.flatnonzero(values == peaks)
    return at_peak[np.searchsorted(at_peak, candidates.indptr[:-1])]


def on_candidates(candidates: CandidateSets, scores: Any) -> NDArray[np.float64]:
    """Read off an (n, q) matrix, dense or sparse, at the candidates, in their order."""
    rows = np.repeat(np.arange(len(candidates)), candidates.sizes)
    return np.asarray(scores[rows, candidates.indices], dtype=np.float64).ravel()


def class_probabilities(estimator: Any, X: Any) -> NDArray[np.float64]:
    """Give the probability of every class: the estimator's own, or a softmax of its decisions.

    Parameters
    ----------
    estimator : fitted classifier
        Has `predict_proba` or `decision_function`.
    X : array-like or sparse matrix of shape (n, d)
        The features.

    Returns
    -------
    probabilities : array of shape (n, q)
        Rows sum to one.
    """
    if hasattr(estimator, "predict_proba"):
        return np.asarray(estimator.predict_proba(X))
    scores = np.asarray(estimator.decision_function(X), dtype=np.float64)
    if scores.ndim == 1:  # two classes: the score of the second less that of the first
        scores = np.column_stack([np.zeros(len(scores)), scores])
    return np.asarray(softmax(scores, axis=1))
