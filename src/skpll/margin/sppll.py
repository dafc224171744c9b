"""SP-PLL: self-paced maximum-margin partial-label learning."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

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

from ._alternating import Alternation, Settings
from ._estimator import AlternatingMarginClassifier, ClassPrior, Init
from ._neighbor_disagreement import NeighborDisagreement

__all__ = ["SPPLL"]


class SPPLL(AlternatingMarginClassifier):
    r"""Self-paced maximum-margin partial-label learning (SP-PLL).

    Use it for a linear model that learns easy rows first, and for the curriculum itself.

    `M3PL` with a weight :math:`v_i \in [0, 1]` for each training example, which is small while the
    example is hard for the model, and grows as the model matures:

    .. math:: \min_{W, b, y, v} \tfrac12 \|W\|^2 + C \sum_i v_i \max\bigl(0, 1 - [s_{y_i}(x_i)
              - \max_{p \ne y_i} s_p(x_i)]\bigr) + f(v, \lambda)
              \quad\text{s.t.}\quad y_i \in S_i,\ l_p \le \#\{i : y_i = p\} \le u_p.

    Model, labels and weights are updated in turn while C and the pace λ grow. The algorithm as
    it is printed can't be run; the documentation ("Reading the paper") says what the readings are,
    each of which is a parameter here, and `as_printed` chooses those that are nearest to the print.

    Features are not scaled; use ``make_pipeline(StandardScaler(), SPPLL())``. Kernels come the same
    way: ``make_pipeline(StandardScaler(), Nystroem(), SPPLL())``.

    Parameters
    ----------
    C : float, default=1.0
        The final regularization constant, C_max in the paper.
    C_start : float, default=1e-5
        Where C begins, as a share of `C`.
    C_growth : float, default=0.5
        Each C is larger than the one before by this share, Δ in the paper.
    difficulty : {"gap", "loss", "entropy", "neighbors"} or callable, default="gap"
        What makes an example hard: the loss of its label less that of the next-best candidate; the
        loss of its label alone, as in the paper; candidates with much the same loss (the entropy of
        a softmax); neighbours with another label; or a function as described in `skpll.pacing`.
    weights : {"hard", "linear", "logarithmic", "mixture"}, default="hard"
        How the weight falls with the difficulty: from one to zero at the pace, or gradually.
        ``"linear"`` is the paper's.
    scale : {"class_share", "share", "minmax", "absolute", "objective"}, default="class_share"
        What the pace means: the share of the examples admitted among those of each assigned label,
        or among all; a place between the easiest and the hardest; a loss (the paper's Eq. 5); or
        a loss times C (the paper's OP(6)).
    pace_start : float, default=0.6
        The pace λ to begin with.
    pace_growth : float, default=1.05
        By which factor the pace grows, μ in the paper. Not used by the schedule ``"spread"``.
    pace_end : float, default=0.9
        Where the pace stops growing. With the default, the tenth of each label's examples that fit
        it least are never trained on; they get a label all the same.
    schedule : {"spread", "carry", "once", "restart"}, default="spread"
        How the pace goes with C: evenly over the path of C, one step with each step of C, all of it
        at the first C, or anew for each C.
    weight_floor : float, default=0.03
        Examples that are not admitted cost at least this share of their loss when labels are
        assigned, so that they keep a sensible label until they come back.
    class_prior : {"neighbors", "candidates", "rounded"}, dict, array or None, default="neighbors"
        How many training examples each label takes. ``"candidates"``: what is expected if each
        candidate of an example were equally likely, rounded down and up, which can always be
        met; ``"neighbors"``: halfway between that and what the confidences of `IPAL` add up to;
        ``"rounded"``: one whole number for each label, as in the paper; a mapping from label
        to share, or q numbers: a share of the examples for each label; None: any number.
    prior_slack : float, default=0.0
        By which share of the expected number the bounds give.
    prior_price : float or None, default=0.2
        The loss at which an example may break the class prior: it takes a label that the model
        finds worse for the sake of the prior only if it is worse by no more than about this. None:
        the prior is binding, as in the paper.
    init : {"ridge", "neighbors", "uniform"}, default="ridge"
        Where the first labels come from: a ridge regression of the candidates on the features, the
        candidates of the nearest neighbours, or nowhere, as in the paper (all candidates alike).
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
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    classes_ : array of shape (q,)
        The labels, sorted.
    coef_ : array of shape (q, d)
        A weight vector for each class.
    intercept_ : array of shape (q,)
        The intercepts; minus infinity for a class that is nobody's candidate.
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
        Number of stages.
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
        "difficulty": [StrOptions({*DIFFICULTIES, "neighbors"}), callable],
        "weights": [StrOptions(set(REGULARIZERS))],
        "scale": [StrOptions(set(SCALES))],
        "pace_start": [Interval(Real, 0, None, closed="neither")],
        "pace_growth": [Interval(Real, 1, None, closed="left")],
        "pace_end": [Interval(Real, 0, None, closed="neither")],
        "schedule": [StrOptions(set(SCHEDULES))],
        "weight_floor": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        C_start: float = 1e-5,
        C_growth: float = 0.5,
        difficulty: DifficultyName | Literal["neighbors"] | Difficulty = "gap",
        weights: RegularizerName = "hard",
        scale: ScaleName = "class_share",
        pace_start: float = 0.6,
        pace_growth: float = 1.05,
        pace_end: float = 0.9,
        schedule: ScheduleName = "spread",
        weight_floor: float = 0.03,
        class_prior: ClassPrior = "neighbors",
        prior_slack: float = 0.0,
        prior_price: float | None = 0.2,
        init: Init = "ridge",
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_passes: int = 20,
        solver_tol: float = 1e-3,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.C_start = C_start
        self.C_growth = C_growth
        self.difficulty = difficulty
        self.weights = weights
        self.scale = scale
        self.pace_start = pace_start
        self.pace_growth = pace_growth
        self.pace_end = pace_end
        self.schedule = schedule
        self.weight_floor = weight_floor
        self.class_prior = class_prior
        self.prior_slack = prior_slack
        self.prior_price = prior_price
        self.init = init
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_passes = max_passes
        self.solver_tol = solver_tol
        self.verbose = verbose

    @classmethod
    def as_printed(cls, C: float = 1.0, **parameters: Any) -> Self:
        """Make the classifier that is nearest to the printed algorithm.

        Losses are absolute, weights linear, the pace starts anew for each C and grows to 1, the
        first labels are arbitrary, and each label takes a whole number of examples.

        Parameters
        ----------
        C : float, default=1.0
            The final regularization constant.
        **parameters : object
            Other parameters, which override these.
        """
        printed: dict[str, Any] = {
            "difficulty": "loss",
            "weights": "linear",
            "scale": "absolute",
            "schedule": "restart",
            "pace_end": 1.0,
            "weight_floor": 1e-3,
            "class_prior": "rounded",
            "prior_price": None,
            "init": "uniform",
        }
        return cls(C, **{**printed, **parameters})

    def _pace(self, X: Any) -> Pace:
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
        return Pace(
            difficulty=NeighborDisagreement(X)
            if self.difficulty == "neighbors"
            else self.difficulty,
            weights=self.weights,
            scale=self.scale,
            start=self.pace_start,
            growth=self.pace_growth,
            end=self.pace_end,
            schedule=self.schedule,
        )

    def _settings(self) -> Settings:
        return replace(super()._settings(), weight_floor=self.weight_floor)

    def _keep(self, alternation: Alternation) -> None:
        super()._keep(alternation)
        self.weights_ = alternation.weights.copy()
        self.labeled_iter_ = alternation.admitted_at.copy()

    def _restore(self, taking_part: NDArray[np.bool_]) -> None:
        super()._restore(taking_part)
        weights, iterations = np.zeros(len(taking_part)), np.full(len(taking_part), -1)
        weights[taking_part], iterations[taking_part] = self.weights_, self.labeled_iter_
        self.weights_, self.labeled_iter_ = weights, iterations
