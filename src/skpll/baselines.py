"""Baselines: the simplest ways to learn from candidate sets.

A method that loses to them is of no use, so every table of results should show them. They take
any scikit-learn classifier; the default is logistic regression.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils._param_validation import HasMethods

from ._errors import ArgumentError
from ._examples import Examples, Features
from ._parameters import COUNT
from ._typing import Array, Classifier, Constraints, Estimator, Floats
from .base import PartialLabelClassifier
from .candidates import CandidateSets
from .engine.held_out import fit_weighted
from .neighbors.graph import check_n_neighbors

__all__ = [
    "KnownTruth",
    "NeighborMajority",
    "RandomCandidate",
    "WeightedCopies",
    "all_baselines",
]


def __dir__() -> list[str]:
    return __all__


@dataclass(eq=False, repr=False)
class _OrdinaryClassifier(PartialLabelClassifier):
    """Base class of what trains an ordinary classifier once."""

    accepts_sparse = True

    _parameter_constraints: ClassVar[Constraints] = {
        "estimator": [HasMethods(["fit", "predict_proba"]), None],
    }

    estimator: Estimator | None = None

    @abstractmethod
    def _train(self, model: Classifier, X: Features, candidates: CandidateSets) -> Classifier:
        """Train the classifier on labels 0, 1, …."""

    def _fit(self, examples: Examples) -> Floats:
        X, candidates = examples.X, examples.sets
        default = LogisticRegression(max_iter=1000)
        model = default if self.estimator is None else clone(self.estimator)
        self.estimator_ = self._train(model, X, candidates)
        return candidates.entries(self._class_scores(X))

    def _class_scores(self, X: Features) -> Floats:
        model = self.estimator_
        scores = np.zeros((X.shape[0], len(self._seen)))
        scores[:, model.classes_] = model.predict_proba(X)
        return scores

    def _probabilities(self, scores: Floats) -> Floats:
        return scores

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags


@dataclass(eq=False, repr=False)
class RandomCandidate(_OrdinaryClassifier):
    """Take a random candidate of each example for its label.

    Parameters
    ----------
    estimator : classifier with `predict_proba`, optional
        What is trained then; by default logistic regression.
    random_state : int, RandomState or None, default=0
        Draws the candidates, by their weights where there are any.

    <<Attributes: classes_, estimator_>>

    <<baselines.example>>
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **_OrdinaryClassifier._parameter_constraints,
        "random_state": ["random_state"],
    }

    _: KW_ONLY
    random_state: int | np.random.RandomState | None = 0

    def _train(self, model: Classifier, X: Features, candidates: CandidateSets) -> Classifier:
        draws = check_random_state(self.random_state).uniform(size=len(candidates))
        reached = np.cumsum(candidates.initial_confidences())
        targets = np.arange(len(candidates)) + draws * (1 - 1e-9)
        places = np.minimum(np.searchsorted(reached, targets), candidates.indptr[1:] - 1)
        labels = candidates.indices[np.maximum(places, candidates.indptr[:-1])]
        return _fit_or_constant(model, X, labels)


class WeightedCopies(_OrdinaryClassifier):
    """Copy the row for each of its candidates, with weights that sum to one.

    Parameters
    ----------
    estimator : classifier with `predict_proba`, optional
        What is trained then; by default logistic regression. Its `fit` takes `sample_weight`.

    <<Attributes: classes_, estimator_>>

    <<baselines.example>>
    """

    def _train(self, model: Classifier, X: Features, candidates: CandidateSets) -> Classifier:
        weights = candidates.initial_confidences()
        return fit_weighted(model, X[candidates.rows], candidates.indices, weights)


class KnownTruth(_OrdinaryClassifier):
    """Train on the true labels: about the best that the classifier can do.

    It takes plain labels only. Experiments hand it the truth in place of the candidates.

    Parameters
    ----------
    estimator : classifier with `predict_proba`, optional
        What is trained; by default logistic regression.

    <<Attributes: classes_, estimator_>>

    Examples
    --------
    >>> from skpll.baselines import KnownTruth
    >>> KnownTruth().fit([[0.0], [0.1], [1.0], [1.1]], list("aabb")).predict([[0.9]]).tolist()
    ['b']
    """

    def _train(self, model: Classifier, X: Features, candidates: CandidateSets) -> Classifier:
        if (candidates.sizes > 1).any():
            row = int(np.argmax(candidates.sizes > 1))
            raise ArgumentError(
                "y",
                f"row {row} has several candidates; this baseline learns from true labels only.",
            )
        return _fit_or_constant(model, X, candidates.indices)


@dataclass(eq=False, repr=False)
class NeighborMajority(PartialLabelClassifier):
    """Let the nearest neighbours vote, each for all of its candidates, with one vote in all.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number of neighbours that vote; the default is lowered to the number of training examples.

    <<Attributes: classes_>>

    Examples
    --------
    >>> from skpll.baselines import NeighborMajority
    >>> X = [[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]]
    >>> S = [{"a"}, {"a"}, {"a", "b"}, {"b"}, {"b"}, {"a", "b"}]
    >>> NeighborMajority(n_neighbors=3).fit(X, S).predict([[0.05], [1.05]]).tolist()
    ['a', 'b']
    """

    accepts_sparse = True

    _parameter_constraints: ClassVar[Constraints] = {
        "n_neighbors": [COUNT],
    }

    n_neighbors: int = 10

    def _fit(self, examples: Examples) -> Floats:
        X, candidates = examples.X, examples.sets
        check_n_neighbors(self, len(candidates))
        self._votes = candidates.to_matrix(candidates.initial_confidences())
        self._neighbors = NearestNeighbors(n_neighbors=min(self.n_neighbors, len(candidates)))
        self._neighbors.fit(X)
        return candidates.entries(self._class_scores(X))

    def _class_scores(self, X: Features) -> Floats:
        votes = self._neighbors.kneighbors_graph(X) @ self._votes
        return np.asarray(votes.toarray()) / self._neighbors.n_neighbors

    def _probabilities(self, scores: Floats) -> Floats:
        return scores


def _fit_or_constant(model: Classifier, X: Features, labels: Array) -> Classifier:
    """Train on labels; where chance has drawn one class only there is nothing to train."""
    single = bool((labels == labels[0]).all())
    fitted: Classifier = (DummyClassifier() if single else model).fit(X, labels)
    return fitted


def all_baselines() -> dict[str, type[PartialLabelClassifier]]:
    """Return every baseline by its name in lower case.

    Examples
    --------
    >>> from skpll.baselines import all_baselines
    >>> sorted(all_baselines())
    ['knowntruth', 'neighbormajority', 'randomcandidate', 'weightedcopies']
    """
    found = (RandomCandidate, WeightedCopies, NeighborMajority, KnownTruth)
    return {kind.__name__.lower(): kind for kind in found}
