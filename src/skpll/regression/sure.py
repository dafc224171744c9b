"""SURE: a regression that rewards confidence in one candidate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from skpll._examples import Examples
from skpll._parameters import NON_NEGATIVE
from skpll._typing import Constraints, Floats
from skpll.base import WeightedPartialLabelClassifier
from skpll.solvers.label_smoothing import project_rows

from ._rounds import KernelRegression, KernelRounds


@dataclass(eq=False, repr=False)
class SURE(KernelRounds, WeightedPartialLabelClassifier):
    r"""Self-guided retraining (SURE).

    Use it for a strong and fast kernel method on up to some thousands of examples.

    Confidences :math:`P` and a ridge regression :math:`f` on them, in the space of a kernel, are
    learned together; every example is rewarded for being sure of one of its candidates:

    .. math:: &\min_{f, b, P} \sum_i c_i \Bigl[\|P_i - f(x_i) - b\|^2
              - \lambda \max_{l \in S_i} P_{il}\Bigr] \\
              &\quad + \alpha \|f\|^2 \\
              &\text{s.t.}\quad P_{il} \ge 0,\ \sum_{l \in S_i} P_{il} = 1.

    In turn the regression is fitted to the confidences, and these are fitted to its outputs
    :math:`Q`: the largest of them is to be the confidence in the candidate that has the largest
    output. The solution has a closed form, the projection onto the simplex of the outputs, of which
    the largest is raised by :math:`\lambda / 2`; a projection keeps the order. Where candidates
    carry evidence, rounds start from it.

    <<cost_of_kernels>>

    Parameters
    ----------
    reward : float, default=0.3
        The reward λ of confidence.
    <<alpha, kernel, gamma, max_iter, tol, verbose>>

    <<Attributes: classes_, transduction_, label_distributions_, n_iter_, history_>>
    <<n_features_in_, feature_names_in_>>

    References
    ----------
    L. Feng, B. An: Partial label learning with self-guided retraining. AAAI Conference on
    Artificial Intelligence, 2019.

    <<example>>
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "reward": [NON_NEGATIVE],
        **KernelRounds._parameter_constraints,
    }

    reward: float = 0.3

    def _rounds(
        self, examples: Examples, regression: Callable[[float], KernelRegression]
    ) -> Iterator[Floats]:
        candidates, model = examples.sets, regression(self.alpha)
        confidences = candidates.initial_confidences() * candidates.spread(candidates.sizes)
        while True:
            raised = model.outputs(confidences)
            raised[candidates.row_argmax(raised)] += self.reward / 2
            confidences = project_rows(candidates.indptr, raised)
            yield confidences
