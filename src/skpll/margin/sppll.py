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
from ._estimator import AS_PUBLISHED, AlternatingMarginClassifier

__all__ = ["SPPLL"]


@with_pace_parameters
@dataclass(eq=False, repr=False)
class SPPLL(Paced, AlternatingMarginClassifier):
    r"""Self-paced maximum-margin partial-label learning (SP-PLL).

    Use it for a maximum-margin model that learns easy rows first, and for the curriculum itself.

    `M3PL` with a weight :math:`v_i \in [0, 1]` for each training example, which is small while the
    example is hard for the model, and grows as the model matures:

    .. math:: \min_{W, b, y, v} \tfrac12 \|W\|^2 + C \sum_i v_i \max\bigl(0, 1 - [s_{y_i}(x_i)
              - \max_{p \ne y_i} s_p(x_i)]\bigr) + f(v, \lambda)
              \quad\text{s.t.}\quad y_i \in S_i,\ l_p \le \#\{i : y_i = p\} \le u_p.

    Model, labels and weights are updated in turn while C and the pace λ grow. The algorithm as
    it is printed can't be run; the documentation ("Reading the paper") says what the readings are,
    each of which is a parameter here, and `as_printed` chooses those that are nearest to the print.
    The defaults are a pace of our own: the first labels, the difficulty of an example and the sizes
    of the classes are what `PLLOO` says of examples that it has not seen, so that the model can't
    talk itself into its own mistakes; scores are linear in the features of its kernel.

    Features are not scaled; use ``make_pipeline(StandardScaler(), SPPLL())``.

    Parameters
    ----------
    C : float, default=10.0
        The final regularization constant, C_max in the paper.
    kernel : {"auto", "laplacian", "rbf", "linear"}, default="auto"
        What scores are linear in: the features of a kernel, ``exp(-gamma d)`` ("laplacian") or
        ``exp(-gamma d²)`` ("rbf") of the distance d, or the features themselves. ``"auto"`` is
        the kernel that `PLLOO` chooses; for sparse features, ``"linear"``.
    gamma : float or "auto", default="auto"
        How fast the kernel falls with the distance, which is measured in units of the median
        distance between two examples. ``"auto"`` leaves it to `PLLOO`.
    n_landmarks : int, default=500
        Number of random examples that all others are compared with (Nyström).
    C_start : float, default=0.1
        Where C begins, as a share of `C`.
    C_growth : float, default=0.5
        Each C is larger than the one before by this share, Δ in the paper.
    pace : Pace or None, default=None
        How examples are admitted: what makes them hard, how their weights follow from that, and how
        the pace grows; see `skpll.pacing.Pace`. None is ``Pace()``.
    class_prior : {"leave_one_out", "candidates", "rounded"}, dict, array or None
        How many training examples each label takes. ``"leave_one_out"`` (the default): what the
        confidences of `PLLOO` add up to; ``"candidates"``: what is expected if each candidate
        of an example were equally likely, rounded down and up, which can always be met;
        ``"rounded"``: one whole number for each label, as in the paper; a mapping from label
        to share, or q numbers: a share of the examples for each label; None: any number.
    prior_slack : float, default=0.0
        The share of the expected number by which the bounds are wider.
    prior_price : float or None, default=0.2
        The loss at which an example may break the class prior: it takes a label that the model
        finds worse for the sake of the prior only if it is worse by no more than about this. None:
        the prior is binding, as in the paper.
    init : {"leave_one_out", "ridge", "uniform"}, default="leave_one_out"
        Where the first labels come from: from `PLLOO`, a ridge regression of the candidates on the
        features, or nowhere, as in the paper (all candidates alike).
    tol : float, default=1e-4
        A stage ends when a pass over model and labels lowers the objective by less than this
        share of it; δ in the paper, where it is not a share.
    max_passes : int, default=20
        Largest number of passes over model and labels in a stage.
    solver_tol : float, default=1e-3
        Relative duality gap to which the model is trained in every pass; the final model is
        trained to a tenth of it, and to the precision of the arithmetic where that is cheap.
        From 2²² scores on (examples times classes) it is 0.1 in every pass, and this at the end.
    random_state : int, RandomState or None, default=0
        Seed of the landmarks and of `PLLOO`.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    classes_ : array of shape (q,)
        The labels, sorted.
    coef_ : array of shape (q, d), or (q, m) with a kernel
        A weight vector for each class, in the space of the features or of the kernel's.
    intercept_ : array of shape (q,)
        The intercepts; minus infinity for a class that is no candidate of any example.
    kernel_ : str
        The kernel in use.
    transduction_ : array of shape (n,)
        The label decided for each training example: the candidate that the final model scores
        highest.
    training_labels_ : array of shape (n,)
        The label that the final model was trained with. These follow the class prior, and differ
        from `transduction_` where that asks for a label which the model contradicts.
    label_distributions_ : sparse array of shape (n, q)
        The confidence in each candidate: a softmax of their margins.
    weights_ : array of shape (n,)
        The final weight v of each training example.
    labeled_iter_ : array of shape (n,)
        The stage in which each training example was first admitted; −1 if it never was.
    n_iter_ : int
        Number of stages. From 2²² scores on, stages between are left out once one has changed less
        than a hundredth of the labels, where the first ones are PL-LOO's.
    history_ : list of dict
        A record of each stage: ``C``, ``pace``, ``objective``, ``admitted`` (share of the examples
        with a weight), ``mean_weight``, ``label_changes``, ``passes``, ``trace`` (the objective
        after every update) and ``seconds``.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : array of str
        Their names, where `X` had any.

    References
    ----------
    G. Lyu, S. Feng, Y. Wang, C. Lang: A self-paced regularization framework for partial-label
    learning. IEEE Transactions on Cybernetics, 2020; arXiv 1804.07759.

    Examples
    --------
    >>> from skpll import SPPLL
    >>> from skpll.datasets import load_dataset, make_partial_labels
    >>> X, _, y = load_dataset("iris", return_X_S_y=True)
    >>> S = make_partial_labels(y, p=0.8, r=1, random_state=0)
    >>> bool(SPPLL(C=10).fit(X, S).score(X, y) > 0.9)
    True
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
        pace: dict[str, Any] = {
            "pace__difficulty": "loss",
            "pace__weights": "linear",
            "pace__scale": "absolute",
            "pace__schedule": "carry",
            "pace__start": 0.6,
            "pace__growth": 1.05,
            "pace__end": 10.0,
            "pace__weight_floor": 1e-3,
        }
        return cls(C, **{**AS_PUBLISHED, **pace, **parameters})

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
