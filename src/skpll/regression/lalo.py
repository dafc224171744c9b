"""LALO: confidences that follow a regression and are similar among neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse

from skpll._examples import Examples, Features
from skpll._parameters import NON_NEGATIVE
from skpll._typing import Constraints, Floats
from skpll.neighbors.graph import NeighborMethod
from skpll.solvers.label_smoothing import neighbor_graph, propagate_labels

from ._rounds import KernelRegression, KernelRounds

ROUND_GAP = 1e-10
"""Relative duality gap to which the confidences of a round are solved for."""


@dataclass(eq=False, repr=False)
class LALO(NeighborMethod, KernelRounds):
    r"""Leveraging latent label distributions (LALO).

    Use it for a kernel method on up to some thousands of examples where neighbours share labels.

    Confidences :math:`P` and a ridge regression :math:`f` on them, in the space of a kernel, are
    learned together, and similar examples are to have similar confidences:

    .. math:: &\min_{f, b, P} \sum_i \|P_i - f(x_i) - b\|^2 + \alpha \|f\|^2 \\
              &\quad + \mu \operatorname{tr} P^\top (I - D^{-1/2} A D^{-1/2}) P \\
              &\text{s.t.}\quad P_{il} \ge 0,\ \sum_{l \in S_i} P_{il} = 1.

    The similarity of an example and each of its :math:`k` nearest neighbours is
    :math:`\exp(-d^2 / \sigma^2)`, where :math:`\sigma` is the mean distance to the k-th neighbour;
    :math:`A` is the sum of both directions, and :math:`D` holds its row sums. Confidences start
    equal, or from the evidence where candidates carry any; the regression and the confidences are
    solved for in turn.

    <<cost_of_kernels>>

    Parameters
    ----------
    n_neighbors : int, default=10
        Number of neighbours of an example. Among fewer examples the default means all of
        them; another number is an error then.
    smoothness : float, default=0.005
        The weight μ of the differences between similar examples.
    <<alpha, kernel, gamma, max_iter, tol, search, n_jobs, verbose>>

    <<Attributes: classes_, transduction_, label_distributions_, n_iter_, history_>>
    <<n_features_in_, feature_names_in_>>

    References
    ----------
    L. Feng, B. An: Leveraging latent label distributions for partial label learning. International
    Joint Conference on Artificial Intelligence, 2018.

    <<example>>
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "smoothness": [NON_NEGATIVE],
        **KernelRounds._parameter_constraints,
        **NeighborMethod._parameter_constraints,
    }

    _: KW_ONLY
    smoothness: float = 0.005

    def _rounds(
        self, examples: Examples, regression: Callable[[float], KernelRegression]
    ) -> Iterator[Floats]:
        candidates, similarities = examples.sets, self._similarities(examples.X)
        model = regression(self.alpha)
        confidences = candidates.initial_confidences()
        while True:
            confidences = propagate_labels(
                similarities,
                candidates.indptr,
                candidates.indices,
                model.outputs(confidences),
                strength=self.smoothness,
                start=confidences,
                tol=ROUND_GAP,
            ).values
            yield confidences

    def _similarities(self, X: Features) -> sparse.csr_array:
        distances, neighbors = self._find_neighbors(X)
        farthest = distances[:, -1:].mean() if distances.size else 0.0
        scaled = distances / farthest if farthest > 0 else np.zeros_like(distances)
        graph = neighbor_graph(neighbors, np.exp(-(scaled**2)))
        return sparse.csr_array(graph + graph.T)
