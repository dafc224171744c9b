"""PL-KNN: the nearest neighbours vote for each of their candidates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import gen_batches
from sklearn.utils._param_validation import StrOptions

from skpll._errors import ArgumentError
from skpll._examples import Examples, Features
from skpll._progress import tracked
from skpll._typing import Array, Constraints, Floats
from skpll.base import MatrixLike

from .graph import NeighborMethod

MAX_BLOCK_ROWS = 2**14
"""Rows whose votes are counted at a time."""

MAX_BLOCK_NUMBERS = 2**24
"""Numbers in the votes of a block of rows."""

Weights = Callable[[Floats], Floats]


@dataclass(eq=False, repr=False)
class PLKNN(NeighborMethod):
    r"""Nearest-neighbour voting on candidate sets (PL-KNN).

    Use it for a first answer at once, on many rows, for classes of any shape.

    The :math:`k` nearest training examples of :math:`x` vote for every label among their
    candidates, the near ones more than the far ones:

    .. math:: &\hat y = \arg\max_p \sum_{j \in N_k(x)} \omega_j \, [p \in S_j], \\
              &\omega_j = 1 - \frac{d(x, x_j)}{\sum_{i \in N_k(x)} d(x, x_i)}.

    A training example is disambiguated by the votes of its neighbours (itself left out) on its
    own candidates. Ties go to the first label. Where candidates carry evidence, a neighbour divides
    its :math:`|S_j|` votes in proportion to it, and the votes for a candidate of a training example
    are multiplied by its own evidence.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number of neighbours that vote. Among fewer examples the default means all of
        them; another number is an error then.
    weights : {"distance", "inverse", "uniform"} or callable, default="distance"
        The weight of a vote: the formula above, the inverse distance as in scikit-learn's
        classifier, one, or a function from a matrix of distances to a matrix of weights. Where all
        neighbours of an example get weight zero, they count equally.
    metric : str or callable, default="euclidean"
        A metric of :class:`sklearn.neighbors.NearestNeighbors`.
    metric_params : dict, optional
        Further arguments of the metric.
    <<search, n_jobs>>

    <<Attributes: classes_, transduction_>>
    label_distributions_ : sparse array of shape (n, q)
        The share of the votes that each candidate of each training example got.
    <<n_features_in_, feature_names_in_>>

    References
    ----------
    E. Hüllermeier, J. Beringer: Learning from ambiguously labeled examples. Intelligent Data
    Analysis 10(5), 2006.

    <<example>>
    """

    accepts_sparse = True

    _parameter_constraints: ClassVar[Constraints] = {
        "weights": [StrOptions({"distance", "inverse", "uniform"}), callable],
        "metric": NearestNeighbors._parameter_constraints["metric"],
        "metric_params": [dict, None],
        **NeighborMethod._parameter_constraints,
    }

    _: KW_ONLY
    weights: str | Weights = "distance"
    metric: str | Callable[..., float] = "euclidean"
    metric_params: dict[str, object] | None = None

    def _fit(self, examples: Examples) -> Floats:
        X, candidates = examples.X, examples.sets
        self._neighbors = self._search_among(
            X, metric=self.metric, metric_params=self.metric_params
        )
        self._candidates = candidates.to_matrix().astype(np.float64)
        confidences = candidates.initial_confidences()
        if candidates.weights is not None:
            self._candidates.data = confidences * candidates.spread(candidates.sizes)
        if len(candidates) == 1:
            return confidences
        rows, blocks = range(len(candidates)), self._blocks(len(candidates))
        votes = [
            candidates[block].entries(self._votes(X[block], rows[block]))
            for block in tracked(blocks, "PL-KNN", len(blocks))
        ]
        return np.concatenate(votes) * (1 if candidates.weights is None else confidences)

    def predict(self, X: MatrixLike) -> Array:
        """Predict the label with the most votes.

        <<Parameters: X>>

        Returns
        -------
        labels : array of shape (n,)
        """
        X = self._validate_features(X)
        best = [self._class_scores(X[block]).argmax(axis=1) for block in self._blocks(X.shape[0])]
        return self.classes_[self._seen[np.concatenate(best)]]

    def _probabilities(self, scores: Floats) -> Floats:
        return np.asarray(scores / scores.sum(axis=1, keepdims=True))

    def _class_scores(self, X: Features) -> Floats:
        return self._votes(X).toarray()

    def _votes(self, X: Features, training_rows: range | None = None) -> sparse.csr_array:
        """Add up the weighted votes for each class; training rows don't vote for themselves."""
        search, k = self._neighbors, self.n_neighbors
        if training_rows is None:
            distances, neighbors = search.nearest(X, k)
        else:
            distances, neighbors = search.nearest_others(X, k, training_rows)
        weights = _vote_weights(distances, self.weights)
        entries = weights.ravel(), neighbors.ravel(), np.arange(len(weights) + 1) * weights.shape[1]
        shape = len(weights), self._candidates.shape[0]
        return sparse.csr_array(entries, shape=shape) @ self._candidates

    def _blocks(self, n: int) -> list[slice]:
        """Split rows into blocks, so that the votes take bounded memory."""
        q = self._candidates.shape[1]
        size = min(MAX_BLOCK_ROWS, max(1, MAX_BLOCK_NUMBERS // (q + self.n_neighbors)))
        return list(gen_batches(n, size)) if n else []


def _vote_weights(distances: Array, weights: str | Weights) -> Floats:
    """Weigh votes by distance; rows that would not count at all count equally."""
    distances = np.asarray(distances, dtype=np.float64)
    if weights == "uniform":
        return np.ones_like(distances)
    if weights == "inverse":
        nearest = distances == 0
        inverse = 1 / np.where(nearest, 1, distances)
        return np.where(nearest.any(axis=1, keepdims=True), nearest, inverse)
    if callable(weights):
        values = np.asarray(weights(distances), dtype=np.float64)
        if values.shape != distances.shape or not (values >= 0).all():
            raise ArgumentError(
                "weights",
                "the function has to return a non-negative weight for every distance, as "
                f"a matrix of shape {distances.shape}.",
            )
    else:
        total = distances.sum(axis=1, keepdims=True)
        values = 1 - np.divide(distances, total, out=np.zeros_like(distances), where=total > 0)
    return np.where(values.sum(axis=1, keepdims=True) > 0, values, 1.0)
