"""IPAL: confidences in candidates are passed on among neighbours, then neighbours reconstruct."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import ClassVar

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from skpll._examples import Examples, Features
from skpll._iteration import Iterative
from skpll._typing import Constraints, Floats
from skpll.base import MatrixLike, ScoringClassifier
from skpll.candidates import CandidateSets
from skpll.solvers.conditioning import Conditioning, condition
from skpll.solvers.label_smoothing import candidate_operator, neighbor_graph
from skpll.solvers.reconstruction import label_residuals, reconstruction_weights

from .graph import NeighborMethod


@dataclass(eq=False, repr=False)
class IPAL(Iterative, NeighborMethod, ScoringClassifier):
    r"""Instance-based partial-label learning by label propagation (IPAL).

    Use it on small and medium tables with no time to tune, for classes of any shape.

    Rows of `X` are brought to length one. Every training example is reconstructed from its
    :math:`k` nearest neighbours,

    .. math:: w_i = \arg\min_{w \ge 0} \Bigl\|x_i - \sum_{j \in N_k(i)} w_j x_j\Bigr\|^2,

    and takes over their confidences in its candidates in proportion to these weights: with
    :math:`W` the weights divided by their sums, and :math:`F^{(0)}_{il} = 1 / |S_i|` for
    :math:`l \in S_i`, or in proportion to the evidence where there is any,

    .. math:: F \leftarrow \alpha W F + (1 - \alpha) F^{(0)},

    cut back to the candidates and to row sums of one after each step. A final factor for each
    label, :math:`\sum_i F^{(0)}_{il} / \sum_i F_{il}`, keeps frequent labels from taking over; the
    label of a training example is the candidate with the largest confidence.

    A new example is reconstructed from its neighbours in the same way, and gets the label whose
    neighbours alone leave the smallest residual
    :math:`r_l = \|x - \sum_{j : y_j = l} w_j x_j\|`.

    Features should have comparable scales: ``make_pipeline(StandardScaler(), IPAL())``.

    <<Parameters: n_neighbors>>
    alpha : float, default=0.95
        Weight of the neighbours against the example's own candidates, from 0 to less than 1, as in
        :class:`sklearn.semi_supervised.LabelSpreading`; not a ridge.
    <<max_iter, tol, search, n_jobs, verbose>>

    <<Attributes: classes_, transduction_, label_distributions_, n_iter_, history_>>
    <<n_features_in_, feature_names_in_>>

    References
    ----------
    M.-L. Zhang, F. Yu: Solving the partial label learning problem: an instance-based approach.
    International Joint Conference on Artificial Intelligence, 2015.

    Examples
    --------
    >>> from skpll import IPAL
    >>> X = [[1.0, 0.0], [0.9, 0.1], [0.8, 0.1], [0.0, 1.0], [0.1, 0.9], [0.1, 0.8]]
    >>> S = [{"a"}, {"a", "b"}, {"a", "b"}, {"b"}, {"a", "b"}, {"b"}]
    >>> model = IPAL(n_neighbors=2).fit(X, S)
    >>> model.transduction_.tolist()
    ['a', 'a', 'a', 'b', 'b', 'b']
    >>> model.predict([[2.0, 0.1], [0.1, 3.0]]).tolist()
    ['a', 'b']
    """

    accepts_sparse = True

    _parameter_constraints: ClassVar[Constraints] = {
        "alpha": [Interval(Real, 0, 1, closed="left")],
        **NeighborMethod._parameter_constraints,
        **Iterative.parameter_constraints,
    }

    _: KW_ONLY
    alpha: float = 0.95
    max_iter: int = 100
    tol: float = 1e-4
    verbose: int = 0

    def _fit(self, examples: Examples) -> Floats:
        X, candidates = examples.X, examples.sets
        self._offset = condition(X).offset
        self._X = normalize(Conditioning(self._offset)(X))
        self._neighbors = self._search_among(self._X)
        _, neighbors = self._neighbors.nearest_others(self._X, self.n_neighbors)
        weights = reconstruction_weights(self._X, self._X, neighbors)
        if weights.size:  # a single example has no neighbours
            weights = normalize(weights, norm="l1")
        graph = neighbor_graph(neighbors, weights)
        self._latest = candidates.initial_confidences()
        rounds = self._propagate(graph, candidates)
        self.iterate(self.until_settled(rounds, must_settle=True), X=X)
        confidences = self._latest * _mass_ratio(candidates, self._latest)
        del self._latest
        self._labels = candidates.indices[candidates.row_argmax(confidences)]
        return confidences

    def _propagate(self, graph: sparse.csr_array, candidates: CandidateSets) -> Iterator[Floats]:
        """Pass confidences on among neighbours; yield them after each round."""
        links = candidate_operator(graph, candidates.indptr, candidates.indices)
        confidences = first = candidates.initial_confidences()
        while True:
            mixed = self.alpha * (links @ confidences) + (1 - self.alpha) * first
            confidences = candidates.row_normalized(mixed)
            yield confidences

    def decision_function(self, X: MatrixLike) -> Floats:
        """Score the classes by how well their neighbours alone reconstruct each example.

        <<Parameters: X>>

        Returns
        -------
        scores : array of shape (n, q), or (n,) for two classes
            The residuals, negated; a class in no candidate set scores below all others. For
            two classes (r₀ − r₁) / (r₀ + r₁), which is the difference of their confidences.
        """
        check_is_fitted(self)
        if len(self.classes_) > 2:
            return super().decision_function(X)
        return self.predict_proba(X) @ [-1.0, 1.0]

    def _probabilities(self, scores: Floats) -> Floats:
        return _confidences(-scores)

    def _class_scores(self, X: Features) -> Floats:
        X = normalize(Conditioning(self._offset)(X))
        _, neighbors = self._neighbors.nearest(X, self.n_neighbors)
        return -label_residuals(X, self._X, neighbors, self._labels, len(self._seen))


def _confidences(residuals: Floats) -> Floats:
    """Invert the residuals and bring rows to a sum of one; residuals of zero share everything."""
    least = residuals.min(axis=1, keepdims=True)
    inverse = np.divide(least, residuals, out=np.ones_like(residuals), where=residuals > 0)
    return inverse / inverse.sum(axis=1, keepdims=True)


def _mass_ratio(candidates: CandidateSets, confidences: Floats) -> Floats:
    """Compare, for each candidate, what its label was given at first with what it has now."""
    first = candidates.expected_counts()
    last = np.bincount(candidates.indices, confidences, len(first))
    return np.divide(first, last, out=np.zeros_like(first), where=last > 0)[candidates.indices]
