"""PL-CL: PL-AGGD with a second model, of the labels that an example does not have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from skpll._examples import Examples
from skpll._parameters import POSITIVE
from skpll._typing import Constraints, Floats

from ._rounds import KernelRegression
from .plaggd import PLAGGD


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
    alpha : float, default=0.03
        The ridge.
    <<kernel, gamma>>
    max_iter : int, default=8
        Maximum number of rounds.
    <<tol, search, n_jobs, verbose>>

    <<Attributes: classes_, transduction_, label_distributions_, n_iter_, history_>>
    <<n_features_in_, feature_names_in_>>

    References
    ----------
    Y. Jia, C. Si, M.-L. Zhang: Complementary classifier induced partial label learning. ACM SIGKDD
    International Conference on Knowledge Discovery and Data Mining, 2023.

    Examples
    --------
    >>> from skpll import PLCL
    >>> X = [[1.0, 0.0], [0.9, 0.1], [0.8, 0.1], [0.0, 1.0], [0.1, 0.9], [0.1, 0.8]]
    >>> S = [{"a"}, {"a", "b"}, {"a", "b"}, {"b"}, {"a", "b"}, {"b"}]
    >>> model = PLCL(n_neighbors=2).fit(X, S)
    >>> model.transduction_.tolist()
    ['a', 'a', 'a', 'b', 'b', 'b']
    >>> model.predict([[0.9, 0.2], [0.2, 0.9]]).tolist()
    ['a', 'b']
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
