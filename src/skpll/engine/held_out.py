"""Models that are asked about examples which they were not trained on.

`held_out_answers` asks any method of partial labels. `HeldOutFolds` asks any classifier in rounds,
each time trained on other confidences in the candidates; the closed form of a ridge regression is
in `skpll.engine.ridge`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from skpll._errors import ArgumentError, DiagnosisWarning
from skpll._examples import Examples, Features
from skpll.candidates import CandidateSets

__all__ = [
    "HeldOutFolds",
    "Model",
    "Trained",
    "check_takes_candidates",
    "fit_quietly",
    "fit_weighted",
    "held_out_answers",
]

Floats = NDArray[np.float64]

Model: TypeAlias = Any
"""An estimator of scikit-learn, or one with its methods: scikit-learn has no types."""

Fold: TypeAlias = tuple[NDArray[Any], NDArray[Any]]
"""The examples to train on and those to ask about."""

MIN_CONFIDENCE = 1e-3
"""Candidates with a smaller confidence than this get no copy of the row."""


def check_takes_candidates(method: BaseEstimator) -> None:
    """Refuse a classifier of scikit-learn, and say what makes one learn from candidate sets."""
    last: Model = method[-1] if isinstance(method, Pipeline) else method
    name = type(last).__name__
    ours = hasattr(last, "estimator")  # a search, say, around a method that takes candidate sets
    if type(last).__module__.startswith("sklearn.") and is_classifier(last) and not ours:
        raise ArgumentError(
            "estimator",
            f"{name} learns from labels, not from candidate sets; CrossFitClassifier({name}()) "
            "learns from them with its help.",
        )


def held_out_answers(
    method: BaseEstimator,
    X: Features,
    candidates: CandidateSets,
    parts: Iterable[Fold],
    sample_weight: Floats | None = None,
) -> Floats:
    """Return the probabilities of the classes by clones that were trained without the example.

    Parameters
    ----------
    method : classifier of partial labels, or a pipeline that ends in one
        It has `predict_proba`, and is cloned.
    X : array, sparse matrix or data frame of n rows
        The features.
    candidates : CandidateSets
        The candidate sets.
    parts : iterable of pairs of int arrays
        The examples to train on and those to ask about.
    sample_weight : array of shape (n,), optional
        How much each example counts, for a method that takes weights.

    Returns
    -------
    probabilities : array of shape (n, q)
        NaN for an example that no model was asked about.
    """
    answers = np.full(candidates.shape, np.nan)
    for train, test in parts:
        weights = None if sample_weight is None else sample_weight[train]
        model = fit_quietly(method, _safe_indexing(X, train), candidates[train], weights)
        answers[test] = model.predict_proba(_safe_indexing(X, test))
    return answers


def fit_quietly(
    method: BaseEstimator, X: Features, candidates: CandidateSets, weights: Floats | None = None
) -> Model:
    """Return a fitted clone of a method; what can't be learned is for the caller to say."""
    model: Model = clone(method)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiagnosisWarning)
        given = {} if weights is None else {"sample_weight": weights}
        return model.fit(X, candidates, **given)


@dataclass(frozen=True)
class Trained:
    """A trained model, and the classes that its outputs belong to.

    Parameters
    ----------
    model : classifier or regressor
        The model; a classifier has learned the labels 0, 1, ….
    classes : int array or None
        The classes of these labels; None for a regressor with an output for each class.
    """

    model: Model
    classes: NDArray[np.integer[Any]] | None

    def answers(self, X: Features, n_classes: int) -> Floats:
        """Return the probabilities of all classes; zero for one that the model does not know."""
        if self.classes is None:
            return np.asarray(self.model.predict(X)).reshape(-1, n_classes)
        answers = np.zeros((X.shape[0], n_classes))
        answers[:, self.classes] = self.model.predict_proba(X)
        return answers


class HeldOutFolds:
    """A classifier that is asked about the folds it has not been trained on.

    Parameters
    ----------
    estimator : classifier
        Cloned for each fold.
    folds : list of pairs of int arrays
        The examples to train on and those to ask about.
    examples : Examples
        The training data.
    """

    def __init__(
        self,
        estimator: Model,
        folds: list[Fold],
        examples: Examples,
    ) -> None:
        self.estimator, self.folds, self.X = estimator, folds, examples.X
        self.sets = examples.sets
        self.weights = np.repeat(examples.weights, self.sets.sizes)
        self.rows = np.repeat(np.arange(len(examples)), self.sets.sizes)

    def ask(self, confidences: Floats) -> Floats:
        """Return the probabilities of all classes, by models trained on the other folds."""
        answers, self.last = np.zeros(self.sets.shape), confidences
        for train, test in self.folds:
            inside = np.zeros(len(self.sets), dtype=bool)
            inside[train] = True
            model = self._trained(confidences, inside[self.rows])
            answers[test] = model.answers(_safe_indexing(self.X, test), answers.shape[1])
        return answers

    def final(self) -> Trained:
        """Train on all examples, with the confidences of the last question."""
        return self._trained(self.last, np.ones(len(self.rows), dtype=bool))

    def _trained(self, confidences: Floats, entries: NDArray[np.bool_]) -> Trained:
        """Train on a copy of the row for each candidate whose confidence is not negligible."""
        kept = entries & (confidences > MIN_CONFIDENCE)
        weights = (confidences * self.weights)[kept]
        classes, labels = np.unique(self.sets.indices[kept], return_inverse=True)
        model: Model = DummyClassifier() if len(classes) == 1 else clone(self.estimator)
        rows = _safe_indexing(self.X, self.rows[kept])
        return Trained(fit_weighted(model, rows, labels, weights), classes)


def fit_weighted(estimator: Model, X: Features, labels: NDArray[Any], weights: Floats) -> Model:
    """Train a classifier, or a pipeline that ends in one, on weighted rows."""
    last, name = estimator, "sample_weight"
    if isinstance(estimator, Pipeline):
        step, last = estimator.steps[-1]
        name = f"{step}__sample_weight"
    if not has_fit_parameter(last, "sample_weight"):
        raise ArgumentError(
            "estimator",
            f"the fit of {type(last).__name__} takes no sample_weight, which soft labels need; "
            "choose a classifier that does.",
        )
    return estimator.fit(X, labels, **{name: weights})
