"""PL-AGGD: the graph of neighbours, the confidences and a regression learn from each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import ClassVar

from sklearn.preprocessing import normalize
from sklearn.utils._param_validation import Interval

from skpll._examples import Examples
from skpll._typing import Constraints, Floats
from skpll.neighbors.graph import NeighborMethod

from ._adaptive_graph import AdaptiveGraph
from ._rounds import KernelRegression, KernelRounds


@dataclass(eq=False, repr=False)
class PLAGGD(NeighborMethod, KernelRounds):
    r"""Partial-label learning by adaptive graph guided disambiguation (PL-AGGD).

    Use it like PL-LEAF, on up to some thousands of examples, where it should be more accurate.

    Confidences :math:`F`, a ridge regression :math:`f` on them in the space of a kernel, and
    weights :math:`W` with which the nearest neighbours reconstruct an example are learned together:

    .. math:: \min_{f, b, F, W} \sum_i \|F_i - f(x_i) - b\|^2 + \alpha \|f\|^2
              + \mu \|(I - W) F\|^2 + \gamma \|(I - W) X\|^2,

    where rows of :math:`W` and of :math:`F` are not negative and sum to one, :math:`W_{ij}` is zero
    unless j is one of the :math:`k` nearest neighbours of i, and :math:`F_{il}` unless l is one of
    the candidates of i. Rows of `X` are brought to length one in the last term and in the search
    for neighbours, but not for the kernel. The graph is no longer that of the features alone:
    neighbours that contradict the confidences lose weight.

    The confidences start as PL-LEAF's do; where candidates carry evidence, that is where they stay
    near it. Then weights, confidences and regression are solved for in turn.

    <<cost_of_kernels>>

    <<Parameters: n_neighbors, smoothness, feature_weight>>
    alpha : float, default=0.05
        The ridge.
    <<kernel, gamma>>
    max_iter : int, default=20
        Maximum number of rounds.
    <<tol, search, n_jobs, verbose>>

    <<Attributes: classes_, transduction_, label_distributions_, n_iter_, history_>>
    <<n_features_in_, feature_names_in_>>

    References
    ----------
    D.-B. Wang, L. Li, M.-L. Zhang: Adaptive graph guided disambiguation for partial label learning.
    ACM SIGKDD International Conference on Knowledge Discovery and Data Mining, 2019.

    Examples
    --------
    >>> from skpll import PLAGGD
    >>> X = [[1.0, 0.0], [0.9, 0.1], [0.8, 0.1], [0.0, 1.0], [0.1, 0.9], [0.1, 0.8]]
    >>> S = [{"a"}, {"a", "b"}, {"a", "b"}, {"b"}, {"a", "b"}, {"b"}]
    >>> model = PLAGGD(n_neighbors=2).fit(X, S)
    >>> model.transduction_.tolist()
    ['a', 'a', 'a', 'b', 'b', 'b']
    >>> model.predict([[0.9, 0.2], [0.2, 0.9]]).tolist()
    ['a', 'b']
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "smoothness": [Interval(Real, 0, None, closed="neither")],
        "feature_weight": [Interval(Real, 0, None, closed="neither")],
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
        return AdaptiveGraph(X, examples.sets, neighbors, self.feature_weight, self.smoothness)
