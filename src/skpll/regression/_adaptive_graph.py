"""A graph of neighbours whose weights follow the features and the confidences."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from skpll._examples import Features
from skpll._typing import Array, Floats
from skpll.candidates import CandidateSets
from skpll.solvers.label_smoothing import neighbor_graph, smooth_labels
from skpll.solvers.reconstruction import difference_grams, simplex_least_squares

FIRST_GAP, ROUND_GAP = 1e-6, 1e-8
"""Relative duality gaps to which confidences are solved for, at first and in a round."""


class AdaptiveGraph:
    r"""The weights with which neighbours reconstruct an example, its features and confidences.

    .. math:: W_i = \arg\min_w \gamma \Bigl\|x_i - \sum_j w_j x_j\Bigr\|^2
              + \mu \Bigl\|F_i - \sum_j w_j F_j\Bigr\|^2
              \quad\text{s.t.}\quad w \ge 0,\ \sum_j w_j = 1

    over the nearest neighbours of example i.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        The features, of length one.
    candidates : CandidateSets
        The candidates of the examples.
    neighbors : int array of shape (n, k)
        The nearest other examples of each.
    feature_weight, smoothness : float
        The weights γ and μ.
    """

    def __init__(
        self,
        X: Features,
        candidates: CandidateSets,
        neighbors: Array,
        feature_weight: float,
        smoothness: float,
    ) -> None:
        self.candidates, self.neighbors, self.smoothness = candidates, neighbors, smoothness
        self._grams = difference_grams(X, neighbors)
        self._feature_weight = feature_weight

    def first_confidences(self) -> Floats:
        """Confidences that are as smooth as can be on the graph of the features alone.

        Where candidates carry evidence, they are to stay near it as well.
        """
        candidates = self.candidates
        return smooth_labels(
            self._graph(self._grams),
            candidates.indptr,
            candidates.indices,
            None if candidates.weights is None else candidates.initial_confidences(),
            tol=FIRST_GAP,
        ).values

    def smoothed(self, confidences: Floats, targets: Floats, pull: float = 1.0) -> Floats:
        r"""Fit the weights to the confidences, then the confidences to targets and weights.

        The latter minimize :math:`c \|F - T\|^2 + \mu \|(I - W) F\|^2`.

        Parameters
        ----------
        confidences : array
            One for each candidate.
        targets : array
            What each should be, T.
        pull : float
            The weight c of the targets.

        Returns
        -------
        confidences : array
        """
        F = self.candidates.to_matrix(confidences).toarray()
        grams = self.smoothness * difference_grams(F, self.neighbors)
        return smooth_labels(
            self._graph(self._feature_weight * self._grams + grams),
            self.candidates.indptr,
            self.candidates.indices,
            targets,
            pull=pull / self.smoothness,
            start=confidences,
            tol=ROUND_GAP,
        ).values

    def _graph(self, grams: Floats) -> sparse.csr_array:
        k = self.neighbors.shape[1]
        weights = simplex_least_squares(grams) if k else np.zeros(self.neighbors.shape)
        return neighbor_graph(self.neighbors, weights)
