"""M3PL: maximum-margin partial-label learning, and what SP-PLL shares with it."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from skpll._examples import Examples, Features
from skpll._iteration import Iterative, Record
from skpll._labels import class_shares
from skpll._parameters import COUNT, NON_NEGATIVE, POSITIVE
from skpll._typing import Constraints, Floats
from skpll.base import LinearScores
from skpll.candidates import CandidateSets
from skpll.engine.kernels import KERNELS, FeatureMap
from skpll.leave_one_out.plloo import PLLOO
from skpll.pacing import LEAVE_ONE_OUT, Pace, Stage, growing_steps
from skpll.solvers.conditioning import Conditioning

from ._alternating import Alternation, HeldOutLosses, Settings
from ._start import (
    INITIAL_COSTS,
    Bounds,
    Start,
    class_bounds,
    kernel_features,
    leave_one_out_start,
    needs_all_examples,
    rounded_counts,
)

__all__ = ["M3PL"]

ClassPrior: TypeAlias = (
    Literal["leave_one_out", "candidates", "rounded"] | Mapping[Hashable, float] | ArrayLike | None
)


AS_PUBLISHED: dict[str, object] = {
    "kernel": "linear",
    "C_start": 1e-5,
    "C_growth": 0.5,
    "class_prior": "rounded",
    "prior_slack": 0.0,
    "prior_price": None,
    "init": "uniform",
}
"""Parameters of the published algorithm: linear scores, arbitrary first labels, a C that grows from
a hundred-thousandth of its final value, and a whole number of examples for each label."""

START_LANDMARKS = 1000
"""Number of landmarks of PL-LOO; first labels need no more."""

SETTLED_SHARE = 0.01
"""If a stage changes a smaller share of PL-LOO's labels, a large problem needs no more stages."""


@dataclass(eq=False, repr=False)
class AlternatingMarginClassifier(Iterative, LinearScores):
    """Base class of the methods that label and train in turn; they differ in their pace."""

    _parameter_constraints: ClassVar[Constraints] = {
        "C": [POSITIVE],
        "kernel": [StrOptions({"auto", "linear", *KERNELS})],
        "gamma": [POSITIVE, StrOptions({"auto"})],
        "n_landmarks": [COUNT],
        "C_start": [Interval(Real, 0, 1, closed="right")],
        "C_growth": [POSITIVE],
        "class_prior": [
            StrOptions({"leave_one_out", "candidates", "rounded"}),
            Mapping,
            "array-like",
            None,
        ],
        "prior_slack": [NON_NEGATIVE],
        "prior_price": [NON_NEGATIVE, None],
        "init": [StrOptions({"leave_one_out", *INITIAL_COSTS})],
        "tol": [NON_NEGATIVE],
        "max_passes": [COUNT],
        "solver_tol": [POSITIVE],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    _alternation: ClassVar[type[Alternation]] = Alternation

    C: float = 10.0
    _: KW_ONLY
    kernel: Literal["auto", "laplacian", "rbf", "linear"] = "auto"
    gamma: float | Literal["auto"] = "auto"
    n_landmarks: int = 500
    C_start: float = 0.1
    C_growth: float = 0.5
    class_prior: ClassPrior = "leave_one_out"
    prior_slack: float = 0.0
    prior_price: float | None = 0.2
    init: Literal["leave_one_out", "ridge", "uniform"] = "leave_one_out"
    tol: float = 1e-4
    max_passes: int = 20
    solver_tol: float = 1e-3
    random_state: int | np.random.RandomState | None = 0
    verbose: int = 0

    def _pacing(self) -> Pace | None:
        """Return how the examples are admitted; None admits all at once."""
        return None

    def _fit(self, examples: Examples) -> Floats:
        sets = examples.sets
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        pace = self._pacing()
        stages = self._stages(pace)
        start = self._start(examples, pace, seed)
        if pace is not None and start is not None and pace.difficulty == LEAVE_ONE_OUT:
            pace = replace(pace, difficulty=start.doubt)
        self._kernel_features = self._choose_kernel(examples.X, start, seed)
        Z = self._features(examples.X).astype(np.float64, copy=False)
        conditioning = self._condition(Z)
        problem = Examples(conditioning(Z), sets, examples.weights)
        if start is not None and self.init == LEAVE_ONE_OUT:
            costs = -start.confidences
        else:
            costs = INITIAL_COSTS[self.init](problem)
        alternation = self._alternation(
            problem,
            self._bounds(sets, start),
            costs,
            Settings(
                tol=self.tol,
                max_passes=self.max_passes,
                solver_tol=self.solver_tol,
                weight_floor=0.0 if pace is None else pace.weight_floor,
                prior_price=np.inf if self.prior_price is None else self.prior_price,
                settled=SETTLED_SHARE if self.init == LEAVE_ONE_OUT else 0.0,
            ),
            None if pace is None or pace.cv is None else HeldOutLosses(pace.cv, len(sets), seed),
        )
        if alternation.breach and not self._takes_prior_from_start():
            warnings.warn(
                "class_prior: no labeling meets the numbers of examples it asks for; they were "
                f"relaxed by {alternation.breach} examples. Use prior_slack, or "
                'class_prior="candidates".',
                UserWarning,
                stacklevel=4,
            )
        self.iterate(
            alternation.run(stages, pace),
            total=len(stages),
            X=examples.X,
            describe=_state,
            keep=lambda: self._keep(alternation, conditioning),
            finish=lambda: alternation.finish(self.history_[-1]["C"]),
            unit="stage",
        )
        self._keep(alternation, conditioning)
        return sets.row_softmax(alternation.margins)

    def _keep(self, alternation: Alternation, conditioning: Conditioning) -> None:
        """Keep the model as it is, and the labels it was trained with.

        These follow the class prior even where the model contradicts it; such labels are wrong
        more often than not, so that they are kept apart from `transduction_`.
        """
        model = alternation.model
        self._keep_scores(model.coef, model.intercept, conditioning)
        self.training_labels_ = alternation.candidates.classes[alternation.labels]

    def _restore(self, taking_part: NDArray[np.bool_]) -> None:
        labels, self.training_labels_ = self.training_labels_, self.transduction_.copy()
        self.training_labels_[taking_part] = labels

    def _stages(self, pace: Pace | None) -> list[Stage]:
        path = growing_steps(self.C_start * self.C, 1 + self.C_growth, self.C)
        path = path[1:] or path
        return [Stage(C, 1.0) for C in path] if pace is None else pace.stages(path)

    def _start(self, examples: Examples, pace: Pace | None, seed: int) -> Start | None:
        """Fit PL-LOO, if any parameter asks for its answers."""
        if not (
            self.init == LEAVE_ONE_OUT
            or self._takes_prior_from_start()
            or self.kernel == "auto"
            or (self.kernel != "linear" and self.gamma == "auto")
            or (pace is not None and pace.difficulty == LEAVE_ONE_OUT)
        ):
            return None
        model = PLLOO(n_landmarks=START_LANDMARKS, verbose=self.verbose)
        if self.kernel != "linear":  # a linear model may start from the labels of a kernel
            model.set_params(kernel=self.kernel, gamma=self.gamma)
        elif needs_all_examples(examples.sets):  # a kernel would take too long
            model.set_params(kernel="linear")
        return leave_one_out_start(model, examples, seed)

    def _takes_prior_from_start(self) -> bool:
        return isinstance(self.class_prior, str) and self.class_prior == LEAVE_ONE_OUT

    def _choose_kernel(self, X: Features, start: Start | None, seed: int) -> FeatureMap | None:
        """Return the features of the kernel; None for a linear model."""
        self.kernel_: str = self.kernel
        gamma = self.gamma
        if start is not None and self.kernel != "linear":
            self.kernel_, gamma = start.kernel, start.gamma
        if self.kernel_ == "linear":
            return None
        return kernel_features(X, self.kernel_, float(gamma), self.n_landmarks, seed)

    def _features(self, X: Features) -> Features:
        """Return the features that the scores are linear in."""
        return X if self._kernel_features is None else self._kernel_features(X)

    def _class_scores(self, X: Features) -> Floats:
        return super()._class_scores(self._features(X))

    def _bounds(self, sets: CandidateSets, start: Start | None) -> Bounds:
        """Return the least and greatest number of examples of each label."""
        n, q = sets.shape
        prior = self.class_prior
        if prior is None:
            return np.zeros(q, dtype=np.int64), np.full(q, n)
        if not isinstance(prior, str):
            counts = n * class_shares(prior, self.classes_, self._seen)
        elif prior == LEAVE_ONE_OUT and start is not None:
            counts = np.bincount(sets.indices, start.confidences, q).astype(np.float64)
        else:
            counts = sets.expected_counts()
            counts = rounded_counts(counts) if prior == "rounded" else counts
        return class_bounds(counts, n, self.prior_slack)


class M3PL(AlternatingMarginClassifier):
    r"""Maximum-margin partial-label learning (M3PL).

    Use it for a maximum-margin model that decides each training label, with known class sizes.

    Finds a label for each training example and a multi-class support vector machine that keeps
    these labels apart from all others with a large margin:

    .. math:: &\min_{W, b, y} \tfrac12 \|W\|^2 \\
              &\quad + C \sum_i \max\bigl(0, 1 - [s_{y_i}(x_i)
              - \max_{p \ne y_i} s_p(x_i)]\bigr) \\
              &\text{s.t.}\quad y_i \in S_i,\ l_p \le \#\{i : y_i = p\} \le u_p.

    Model and labels are updated in turn while the regularization constant grows from `C_start`
    times `C` up to `C`: early on, when the model is hardly trained, labels change easily. The
    defaults start from the labels of `PLLOO`, on the features of its kernel; `as_published` is the
    method of the paper.

    Features are not scaled; use ``make_pipeline(StandardScaler(), M3PL())``.

    <<Parameters: margin.model>>
    <<margin.labels>>

    <<Attributes: margin.found>>
    <<margin.stages>>

    References
    ----------
    F. Yu, M.-L. Zhang: Maximum margin partial label learning. Machine Learning 106, 2017.

    <<example>>
    """

    @classmethod
    def as_published(cls, C: float = 1.0, **parameters: Any) -> Self:
        """Return the classifier that is nearest to the published algorithm.

        Scores are linear in the features, the first labels are arbitrary, C grows from a
        hundred-thousandth of its final value, and each label takes a whole number of examples.

        Parameters
        ----------
        C : float, default=1.0
            The final regularization constant.
        **parameters : object
            Other parameters, which override these.
        """
        return cls(C, **{**AS_PUBLISHED, **parameters})


def _state(record: Record) -> str:
    return (
        f"C={record['C']:.3g}  admitted {record['admitted']:.0%}  "
        f"objective {record['objective']:.4g}"
    )
