"""PL-AGGD: the graph of neighbours, the confidences and a regression learn from each other.

PL-CL adds a second regression, of the labels that an example does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from skpll._examples import Examples
from skpll._parameters import POSITIVE
from skpll._typing import Array, Constraints, Floats
from skpll.candidates import CandidateSets
from skpll.neighbors.graph import NeighborMethod
from skpll.solvers.label_smoothing import neighbor_graph, smooth_labels
from skpll.solvers.reconstruction import difference_grams, simplex_least_squares

from ._rounds import KernelRegression, KernelRounds

FIRST_GAP, ROUND_GAP = 1e-6, 1e-8
"""Relative duality gaps to which confidences are solved for, at first and in a round."""


@dataclass(eq=False, repr=False)
class PLAGGD(NeighborMethod, KernelRounds):
    r"""Partial-label learning by adaptive graph guided disambiguation (PL-AGGD).

    Use it like PL-LEAF, on up to some thousands of examples, where it should be more accurate.

    Confidences :math:`F`, a ridge regression :math:`f` on them in the space of a kernel, and
    weights :math:`W` with which the nearest neighbours reconstruct an example are learned together:

    .. math:: &\min_{f, b, F, W} \sum_i \|F_i - f(x_i) - b\|^2 + \alpha \|f\|^2 \\
              &\quad + \mu \|(I - W) F\|^2 + \gamma \|(I - W) X\|^2,

    where rows of :math:`W` and of :math:`F` are not negative and sum to one, :math:`W_{ij}` is zero
    unless j is one of the :math:`k` nearest neighbours of i, and :math:`F_{il}` unless l is one of
    the candidates of i. Rows of `X` are brought to length one in the last term and in the search
    for neighbours, but not for the kernel. The graph is no longer that of the features alone:
    neighbours that contradict the confidences lose weight.

    The confidences start as PL-LEAF's do; where candidates carry evidence, that is where they stay
    near it. Then weights, confidences and regression are solved for in turn.

    <<cost_of_kernels>>

    <<Parameters: n_neighbors, smoothness, feature_weight>>
    <<alpha, kernel, gamma, max_iter, tol, search, n_jobs, verbose>>

    <<Attributes: classes_, transduction_, label_distributions_, n_iter_, history_>>
    <<n_features_in_, feature_names_in_>>

    References
    ----------
    D.-B. Wang, L. Li, M.-L. Zhang: Adaptive graph guided disambiguation for partial label learning.
    ACM SIGKDD International Conference on Knowledge Discovery and Data Mining, 2019.

    <<example>>
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "smoothness": [POSITIVE],
        "feature_weight": [POSITIVE],
        **KernelRounds._parameter_constraints,
        **NeighborMethod._parameter_constraints,
    }

    _: KW_ONLY
    smoothness: float = 1.0
    feature_weight: float = 1.0
    max_iter: int = 20

    def _rounds(
        self, examples: Examples, regression: Callable[[float], KernelRegression]
    ) -> Iterator[Floats]:
        graph = self._graph(examples)
        model = regression(self.alpha)
        confidences = graph.first_confidences()
        while True:
            confidences = graph.smoothed(confidences, model.outputs(confidences))
            yield confidences

    def _graph(self, examples: Examples) -> AdaptiveGraph:
        X = normalize(examples.X)
        _, neighbors = self._find_neighbors(X)
        grams = difference_grams(X, neighbors)
        return AdaptiveGraph(examples.sets, neighbors, grams, self.feature_weight, self.smoothness)


@dataclass(eq=False, repr=False)
class PLCL(PLAGGD):
    r"""Partial-label learning with a complementary classifier (PL-CL).

    Use it like PL-AGGD, at twice the price, where false candidates are many.

    That a label is *not* one of the candidates is certain, while which of the candidates is the
    true one is not. So beside the confidences :math:`P` of PL-AGGD there are others, :math:`Q`, in
    the labels that an example does not have, with a ridge regression :math:`g` of their own, and
    the two are to contradict each other:

    .. math:: \min \sum_i \|P_i - f(x_i) - b\|^2 + \beta_1 \sum_i \|Q_i - g(x_i) - a\|^2
              + \beta_2 \sum_i \|\mathbf 1 - P_i - Q_i\|^2
              + \mu \|(I - W) P\|^2 + \gamma \|(I - W) X\|^2
              + \alpha \bigl(\|f\|^2 + \|g\|^2\bigr),

    over all that occurs, where P and the weights W of neighbours are as in PL-AGGD, and
    :math:`Q_{il} = 1` for labels that are no candidates, :math:`0 \le Q_{il} \le 1` for
    candidates. The labels predicted are those with the largest :math:`f_l + b_l`.

    A ridge regression with an intercept gives :math:`1 - g` for targets :math:`1 - Q`, which are
    zero outside the candidates: this is what is computed, so that :math:`1 - Q` is a second set of
    confidences, which need not sum to one. It starts at one for all candidates. Where candidates
    carry evidence, the first confidences stay near it.

    <<cost_of_kernels>>

    <<Parameters: n_neighbors, smoothness, feature_weight>>
    complement_weight : float, default=0.5
        The weight β₁ of the errors of the second regression.
    agreement : float, default=0.5
        The weight β₂ with which the two kinds of confidences are to agree.
    <<alpha, kernel, gamma, max_iter, tol, search, n_jobs, verbose>>

    <<Attributes: classes_, transduction_, label_distributions_, n_iter_, history_>>
    <<n_features_in_, feature_names_in_>>

    References
    ----------
    Y. Jia, C. Si, M.-L. Zhang: Complementary classifier induced partial label learning. ACM SIGKDD
    International Conference on Knowledge Discovery and Data Mining, 2023.

    <<example>>
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **PLAGGD._parameter_constraints,
        "complement_weight": [POSITIVE],
        "agreement": [POSITIVE],
    }

    _: KW_ONLY
    complement_weight: float = 0.5
    agreement: float = 0.5
    alpha: float = 0.03
    max_iter: int = 8

    def _rounds(
        self, examples: Examples, regression: Callable[[float], KernelRegression]
    ) -> Iterator[Floats]:
        graph = self._graph(examples)
        model, other = regression(self.alpha), regression(self.alpha / self.complement_weight)
        total = self.complement_weight + self.agreement
        confidences, open_ones = graph.first_confidences(), np.ones(len(examples.sets.indices))
        while True:
            outputs = self.complement_weight * other.outputs(open_ones)
            open_ones = np.clip((outputs + self.agreement * confidences) / total, 0.0, 1.0)
            targets = model.outputs(confidences) + self.agreement * open_ones
            pull = 1 + self.agreement
            confidences = graph.smoothed(confidences, targets / pull, pull)
            yield confidences


@dataclass(frozen=True)
class AdaptiveGraph:
    r"""The weights with which neighbours reconstruct an example, its features and confidences.

    .. math:: W_i = \arg\min_w \gamma \Bigl\|x_i - \sum_j w_j x_j\Bigr\|^2
              + \mu \Bigl\|F_i - \sum_j w_j F_j\Bigr\|^2
              \quad\text{s.t.}\quad w \ge 0,\ \sum_j w_j = 1

    over the nearest neighbours of example i.

    Parameters
    ----------
    candidates : CandidateSets
        The candidates of the examples.
    neighbors : int array of shape (n, k)
        The nearest other examples of each.
    feature_grams : array of shape (n, k, k)
        The `difference_grams` of the features, which are of length one.
    feature_weight, smoothness : float
        The weights γ and μ.
    """

    candidates: CandidateSets
    neighbors: Array
    feature_grams: Floats
    feature_weight: float
    smoothness: float

    def first_confidences(self) -> Floats:
        """Confidences that are as smooth as can be on the graph of the features alone.

        Where candidates carry evidence, they are to stay near it as well.
        """
        candidates = self.candidates
        return smooth_labels(
            self._graph(self.feature_grams),
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
            self._graph(self.feature_weight * self.feature_grams + grams),
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
