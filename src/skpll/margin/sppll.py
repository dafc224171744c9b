"""SP-PLL: self-paced maximum-margin partial-label learning."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from skpll._typing import Constraints
from skpll.base import for_all_examples
from skpll.pacing import Pace, Paced, with_pace_parameters
from skpll.solvers.conditioning import Conditioning

from ._alternating import Alternation
from .m3pl import AS_PUBLISHED, AlternatingMarginClassifier

__all__ = ["SPPLL"]


@with_pace_parameters
@dataclass(eq=False, repr=False)
class SPPLL(Paced, AlternatingMarginClassifier):
    r"""Self-paced maximum-margin partial-label learning (SP-PLL).

    Use it for a maximum-margin model that learns easy rows first, and for the curriculum itself.

    `M3PL` with a weight :math:`v_i \in [0, 1]` for each training example, which is small while the
    example is hard for the model, and grows as the model matures:

    .. math:: &\min_{W, b, y, v} \tfrac12 \|W\|^2 + f(v, \lambda) \\
              &\quad + C \sum_i v_i \max\bigl(0, 1 - [s_{y_i}(x_i)
              - \max_{p \ne y_i} s_p(x_i)]\bigr) \\
              &\text{s.t.}\quad y_i \in S_i,\ l_p \le \#\{i : y_i = p\} \le u_p.

    Model, labels and weights are updated in turn while C and the pace λ grow. The algorithm as
    it is printed can't be run; the documentation ("Reading the paper") says what the readings are,
    each of which is a parameter here, and `as_printed` chooses those that are nearest to the print.
    The defaults are a pace of our own: the first labels, the difficulty of an example and the sizes
    of the classes are what `PLLOO` predicts for examples that it has not seen, so that the model
    does not confirm its own mistakes; scores are linear in the features of its kernel.

    Features are not scaled; use ``make_pipeline(StandardScaler(), SPPLL())``.

    <<Parameters: margin.model>>
    pace : Pace or None, default=None
        How examples are admitted: what makes them hard, how their weights follow from that, and how
        the pace grows; see `skpll.pacing.Pace`. None is ``Pace()``.
    <<margin.labels>>

    <<Attributes: margin.found>>
    weights_ : array of shape (n,)
        The final weight v of each training example.
    <<labeled_iter_>>
    <<margin.stages>>

    References
    ----------
    G. Lyu, S. Feng, Y. Wang, C. Lang: A self-paced regularization framework for partial-label
    learning. IEEE Transactions on Cybernetics, 2020; arXiv 1804.07759.

    <<example>>
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **AlternatingMarginClassifier._parameter_constraints,
        "pace": [Pace, None],
    }

    _: KW_ONLY
    pace: Pace | None = None

    @classmethod
    def as_printed(cls, C: float = 1.0, **parameters: Any) -> Self:
        """Return the classifier that is nearest to the printed algorithm.

        Scores are linear in the features, losses absolute, weights linear; λ is set once and
        grows by one step with each C; the first labels are arbitrary, and each label takes a whole
        number of examples.

        Parameters
        ----------
        C : float, default=1.0
            The final regularization constant.
        **parameters : object
            Other parameters, which override these; those of the pace as ``pace__start``.
        """
        pace = Pace("loss", schedule="carry", end=10.0, weight_floor=1e-3)
        return cls(C, **{**AS_PUBLISHED, "pace": pace, **parameters})

    def _pacing(self) -> Pace:
        return self._current_pace()

    def _keep(self, alternation: Alternation, conditioning: Conditioning) -> None:
        super()._keep(alternation, conditioning)
        self.weights_ = alternation.weights.copy()
        self.labeled_iter_ = alternation.admitted_at.copy()

    def _restore(self, taking_part: NDArray[np.bool_]) -> None:
        super()._restore(taking_part)
        self.weights_ = for_all_examples(self.weights_, taking_part, 0.0)
        self.labeled_iter_ = for_all_examples(self.labeled_iter_, taking_part, -1)
