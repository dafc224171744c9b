"""SP-PLL: self-paced maximum-margin partial-label learning."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from skpll.base import for_all_examples
from skpll.pacing import (
    DIFFICULTIES,
    GROWING,
    REGULARIZERS,
    SCALES,
    SCHEDULES,
    Difficulty,
    DifficultyName,
    Pace,
    RegularizerName,
    ScaleName,
    ScheduleName,
)
from skpll.solvers.conditioning import Conditioning

from ._alternating import Alternation, Settings
from ._estimator import AlternatingMarginClassifier
from ._held_out import HeldOutLosses

__all__ = ["SPPLL"]


@dataclass(eq=False, repr=False)
class SPPLL(AlternatingMarginClassifier):
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
        Examples are compared with so many of them, drawn at random.
    C_start : float, default=0.1
        Where C begins, as a share of `C`.
    C_growth : float, default=0.5
        Each C is larger than the one before by this share, Δ in the paper.
    difficulty : {"leave_one_out", "gap", "loss", "entropy"} or callable
        What makes an example hard: how little `PLLOO` trusts in its label (the default); the loss
        of its label less that of the next-best candidate; the loss of its label alone, as in the
        paper; candidates with much the same loss (the entropy of a softmax); or a function as
        described in `skpll.pacing`.
    weights : {"hard", "linear", "logarithmic", "mixture"}, default="linear"
        How the weight falls with the difficulty: from one to zero at the pace, or gradually.
        ``"linear"`` is the paper's.
    scale : {"class_share", "share", "minmax", "absolute", "objective"}, default="absolute"
        What the pace means: the share of the examples admitted among those of each assigned label,
        or among all; a place between the easiest and the hardest; a difficulty (the paper's Eq. 5);
        or a difficulty times C (the paper's OP(6)).
    pace_start : float, default=0.6
        The pace λ to begin with.
    pace_growth : float, default=1.05
        By which factor the pace grows, μ in the paper. Not used by the schedule ``"spread"``.
    pace_end : float, default=1.0
        Where the pace stops growing.
    schedule : {"spread", "carry", "once", "restart"}, default="spread"
        How the pace goes with C: evenly over the path of C, one step with each step of C, all of it
        at the first C, or anew for each C.
    pace_cv : int or None, default=None
        Measure difficulties by models that have not seen the example, from so many folds; at that
        many times the cost. None: by the model itself. The difficulty ``"leave_one_out"`` has no
        need of it.
    weight_floor : float, default=0.03
        Examples that are not admitted cost at least this share of their loss when labels are
        assigned, so that they keep a sensible label until they come back.
    class_prior : {"leave_one_out", "candidates", "rounded"}, dict, array or None
        How many training examples each label takes. ``"leave_one_out"`` (the default): what the
        confidences of `PLLOO` add up to; ``"candidates"``: what is expected if each candidate
        of an example were equally likely, rounded down and up, which can always be met;
        ``"rounded"``: one whole number for each label, as in the paper; a mapping from label
        to share, or q numbers: a share of the examples for each label; None: any number.
    prior_slack : float, default=0.0
        By which share of the expected number the bounds give.
    prior_price : float or None, default=0.2
        The loss at which an example may break the class prior: it takes a label that the model
        finds worse for the sake of the prior only if it is worse by no more than about this. None:
        the prior is binding, as in the paper.
    init : {"leave_one_out", "ridge", "uniform"}, default="leave_one_out"
        Where the first labels come from: from `PLLOO`, a ridge regression of the candidates on the
        features, or nowhere, as in the paper (all candidates alike).
    fit_intercept : bool, default=True
        Whether the model has intercepts. They are regularized like the other weights.
    tol : float, default=1e-4
        A stage ends when a pass over model and labels lowers the objective by less than this
        share of it; δ in the paper, where it is not a share.
    max_passes : int, default=20
        At most so many passes over model and labels in a stage.
    solver_tol : float, default=1e-3
        Relative duality gap to which the model is trained in every pass; the final model is
        trained to a tenth of it, and to the precision of the arithmetic where that is cheap.
        From 2²² scores on (examples times classes) it is 0.1 in every pass, and this at the end.
    random_state : int, RandomState or None, default=0
        Draws the landmarks, and goes to `PLLOO`.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    classes_ : array of shape (q,)
        The labels, sorted.
    coef_ : array of shape (q, d), or (q, m) with a kernel
        A weight vector for each class, in the space of the features or of the kernel's.
    intercept_ : array of shape (q,)
        The intercepts; minus infinity for a class that is nobody's candidate.
    kernel_ : str
        The kernel in use.
    transduction_ : array of shape (n,)
        The label decided for each training example: the candidate that the final model scores
        highest.
    training_labels_ : array of shape (n,)
        The label that the final model was trained with. These heed the class prior, and differ
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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **AlternatingMarginClassifier._parameter_constraints,
        "difficulty": [StrOptions({*DIFFICULTIES, "leave_one_out"}), callable],
        "weights": [StrOptions(set(REGULARIZERS))],
        "scale": [StrOptions(set(SCALES))],
        "pace_start": [Interval(Real, 0, None, closed="neither")],
        "pace_growth": [Interval(Real, 1, None, closed="left")],
        "pace_end": [Interval(Real, 0, None, closed="neither")],
        "schedule": [StrOptions(set(SCHEDULES))],
        "pace_cv": [Interval(Integral, 2, None, closed="left"), None],
        "weight_floor": [Interval(Real, 0, 1, closed="both")],
    }

    _: KW_ONLY
    difficulty: DifficultyName | Literal["leave_one_out"] | Difficulty = "leave_one_out"
    weights: RegularizerName = "linear"
    scale: ScaleName = "absolute"
    pace_start: float = 0.6
    pace_growth: float = 1.05
    pace_end: float = 1.0
    schedule: ScheduleName = "spread"
    pace_cv: int | None = None
    weight_floor: float = 0.03

    @classmethod
    def as_printed(cls, C: float = 1.0, **parameters: Any) -> Self:
        """Make the classifier that is nearest to the printed algorithm.

        Scores are linear in the features, losses absolute, weights linear; λ is set once and
        grows by one step with each C; the first labels are arbitrary, and each label takes a whole
        number of examples.

        Parameters
        ----------
        C : float, default=1.0
            The final regularization constant.
        **parameters : object
            Other parameters, which override these.
        """
        printed: dict[str, Any] = {
            "kernel": "linear",
            "C_start": 1e-5,
            "C_growth": 0.5,
            "difficulty": "loss",
            "weights": "linear",
            "scale": "absolute",
            "schedule": "carry",
            "pace_start": 0.6,
            "pace_growth": 1.05,
            "pace_end": 10.0,
            "weight_floor": 1e-3,
            "class_prior": "rounded",
            "prior_slack": 0.0,
            "prior_price": None,
            "init": "uniform",
        }
        return cls(C, **{**printed, **parameters})

    def _asks_for_a_start(self) -> bool:
        return self.difficulty == "leave_one_out" or super()._asks_for_a_start()

    def _pace(self) -> Pace:
        if self.pace_start > self.pace_end:
            raise ValueError(
                f"pace_start, pace_end: the pace can't grow from {self.pace_start} to "
                f"{self.pace_end}; choose a pace_start that is not above pace_end."
            )
        if self.pace_growth <= 1 and self.schedule in GROWING:
            raise ValueError(
                f"pace_growth: a pace that grows by {self.pace_growth} never ends; use 1.05, say, "
                'or schedule="spread".'
            )
        difficulty: Any = self.difficulty  # "leave_one_out" waits for PL-LOO's answers
        return Pace(
            difficulty=difficulty,
            weights=self.weights,
            scale=self.scale,
            start=self.pace_start,
            growth=self.pace_growth,
            end=self.pace_end,
            schedule=self.schedule,
        )

    def _held_out(self, n: int, seed: int) -> HeldOutLosses | None:
        return None if self.pace_cv is None else HeldOutLosses(self.pace_cv, n, seed)

    def _settings(self) -> Settings:
        return replace(super()._settings(), weight_floor=self.weight_floor)

    def _keep(self, alternation: Alternation, conditioning: Conditioning) -> None:
        super()._keep(alternation, conditioning)
        self.weights_ = alternation.weights.copy()
        self.labeled_iter_ = alternation.admitted_at.copy()

    def _restore(self, taking_part: NDArray[np.bool_]) -> None:
        super()._restore(taking_part)
        self.weights_ = for_all_examples(self.weights_, taking_part, 0.0)
        self.labeled_iter_ = for_all_examples(self.labeled_iter_, taking_part, -1)
