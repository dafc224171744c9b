"""The estimator side of the alternating optimization, shared by M3PL and SP-PLL."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from skpll._examples import Examples
from skpll._iteration import Iterative, Record
from skpll._labels import class_shares
from skpll._rows import row_softmax
from skpll.candidates import CandidateSets
from skpll.engine.kernels import KERNELS
from skpll.leave_one_out.plloo import PLLOO
from skpll.pacing import Pace, Stage
from skpll.solvers.conditioning import Conditioning
from skpll.solvers.margins import candidate_margins

from ._alternating import Alternation, Bounds, Settings
from ._class_prior import class_bounds, rounded_counts
from ._held_out import HeldOutLosses
from ._initial_labels import INITIAL_COSTS
from ._kernel_features import KernelFeatures
from ._linear import LinearScores
from ._start import Doubt, Start, leave_one_out_start, needs_all

__all__ = ["AlternatingMarginClassifier", "ClassPrior", "Init", "Kernel"]

Floats = NDArray[np.float64]
Kernel: TypeAlias = Literal["auto", "laplacian", "rbf", "linear"]
Init: TypeAlias = Literal["leave_one_out", "ridge", "uniform"]
ClassPrior: TypeAlias = (
    Literal["leave_one_out", "candidates", "rounded"] | Mapping[Hashable, float] | ArrayLike | None
)


_LANDMARKS_OF_START = 1000
"""PL-LOO compares examples with so many: first labels need no more."""

_SETTLED = 0.01
"""First labels of which a stage changes no more than this share need no more stages."""


@dataclass(eq=False, repr=False)
class AlternatingMarginClassifier(Iterative, LinearScores):
    """Base class of the methods that label and train in turn; they differ in their pace."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "kernel": [StrOptions({"auto", "linear", *KERNELS})],
        "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "n_landmarks": [Interval(Integral, 1, None, closed="left")],
        "C_start": [Interval(Real, 0, 1, closed="right")],
        "C_growth": [Interval(Real, 0, None, closed="neither")],
        "class_prior": [
            StrOptions({"leave_one_out", "candidates", "rounded"}),
            Mapping,
            "array-like",
            None,
        ],
        "prior_slack": [Interval(Real, 0, None, closed="left")],
        "prior_price": [Interval(Real, 0, None, closed="left"), None],
        "init": [StrOptions({"leave_one_out", *INITIAL_COSTS})],
        "fit_intercept": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_passes": [Interval(Integral, 1, None, closed="left")],
        "solver_tol": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    _alternation: ClassVar[type[Alternation]] = Alternation

    C: float = 10.0
    _: KW_ONLY
    kernel: Kernel = "auto"
    gamma: float | Literal["auto"] = "auto"
    n_landmarks: int = 500
    C_start: float = 0.1
    C_growth: float = 0.5
    class_prior: ClassPrior = "leave_one_out"
    prior_slack: float = 0.0
    prior_price: float | None = 0.2
    init: Init = "leave_one_out"
    fit_intercept: bool = True
    tol: float = 1e-4
    max_passes: int = 20
    solver_tol: float = 1e-3
    random_state: int | np.random.RandomState | None = 0
    verbose: int = 0

    @abstractmethod
    def _pace(self) -> Pace | None:
        """Say how the examples are admitted; None admits all at once."""

    def _fit(self, examples: Examples) -> Floats:
        X, candidates, sample_weight = examples.X, examples.sets, examples.weights
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        pace = self._pace()
        start = self._start(X, candidates, sample_weight, seed)
        difficulty: Any = pace and pace.difficulty
        if pace is not None and start is not None and difficulty == "leave_one_out":
            pace = replace(pace, difficulty=Doubt(start.confidences))
        self._kernel_features = self._choose_kernel(X, start, seed)
        Z = self._features(X).astype(np.float64, copy=False)
        conditioning = self._condition(Z)
        Z = conditioning(Z)
        stages = self._stages(pace)
        alternation = self._alternation(
            Z,
            candidates,
            sample_weight,
            self._bounds(candidates, start),
            self._initial_costs(Z, candidates, sample_weight, start),
            self._settings(),
            self._held_out(len(candidates), seed),
        )
        if alternation.breach and not _are_estimates(self.class_prior):
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
            X=X,
            describe=_state,
            keep=lambda: self._keep(alternation, conditioning),
            finish=lambda: alternation.finish(self.history_[-1]["C"]),
            unit="stage",
        )
        self._keep(alternation, conditioning)
        coef, intercept = alternation.model.coef, alternation.model.intercept
        margins = candidate_margins(Z, coef, intercept, candidates.indptr, candidates.indices)
        return row_softmax(candidates, margins)

    def _keep(self, alternation: Alternation, conditioning: Conditioning) -> None:
        """Keep the model as it is, and the labels it was trained with.

        Those heed the class prior, at the price of some that the model itself contradicts. They
        are kept apart from the labels decided for: they are wrong more often than not.
        """
        model = alternation.model
        self._keep_scores(model.coef, model.intercept, conditioning)
        self.training_labels_ = alternation.candidates.classes[alternation.labels]

    def _restore(self, taking_part: NDArray[np.bool_]) -> None:
        labels = self.transduction_.copy()
        labels[taking_part] = self.training_labels_
        self.training_labels_ = labels

    def _stages(self, pace: Pace | None) -> list[Stage]:
        path = [self.C_start * self.C]
        while path[-1] < self.C:
            path.append(min((1 + self.C_growth) * path[-1], self.C))
        path = path[1:] or path
        return [Stage(C, 1.0) for C in path] if pace is None else pace.stages(path)

    def _start(self, X: Any, candidates: CandidateSets, weights: Floats, seed: int) -> Start | None:
        """Ask PL-LOO, where anything is left to it."""
        if not self._asks_for_a_start():
            return None
        model = PLLOO(n_landmarks=_LANDMARKS_OF_START, verbose=self.verbose)
        if self.kernel != "linear":  # a linear model has no reason to start from one
            model.set_params(kernel=self.kernel, gamma=self.gamma)
        elif needs_all(candidates):  # but for the time that a kernel would take
            model.set_params(kernel="linear")
        return leave_one_out_start(model, X, candidates, weights, seed)

    def _asks_for_a_start(self) -> bool:
        return (
            self.init == "leave_one_out"
            or (isinstance(self.class_prior, str) and self.class_prior == "leave_one_out")
            or self.kernel == "auto"
            or (self.kernel != "linear" and self.gamma == "auto")
        )

    def _choose_kernel(self, X: Any, start: Start | None, seed: int) -> KernelFeatures | None:
        """Choose the kernel and its landmarks; None for a linear model."""
        kernel: str = self.kernel
        gamma = self.gamma
        if start is not None and kernel != "linear":
            kernel, gamma = start.kernel, start.gamma
        self.kernel_ = kernel
        if kernel == "linear":
            return None
        return KernelFeatures.of(X, kernel, float(gamma), self.n_landmarks, seed)

    def _features(self, X: Any) -> Any:
        """Give the features that the scores are linear in."""
        return X if self._kernel_features is None else self._kernel_features(X)

    def _class_scores(self, X: Any) -> Floats:
        return super()._class_scores(self._features(X))

    def _initial_costs(
        self, Z: Any, candidates: CandidateSets, weights: Floats, start: Start | None
    ) -> Floats:
        """Say what each candidate costs in the first assignment."""
        if self.init == "leave_one_out" and start is not None:
            return -start.confidences
        return INITIAL_COSTS[self.init](Z, candidates, weights)

    def _bounds(self, candidates: CandidateSets, start: Start | None) -> Bounds:
        """How many examples each label may take."""
        n, q = candidates.shape
        prior: Any = self.class_prior
        if prior is None:
            return np.zeros(q, dtype=np.int64), np.full(q, n)
        if not isinstance(prior, str):
            counts = n * class_shares(prior, self.classes_, self._seen)
        elif prior == "leave_one_out" and start is not None:
            counts = np.bincount(candidates.indices, start.confidences, q).astype(np.float64)
        else:
            counts = candidates.expected_counts()
            counts = rounded_counts(counts) if prior == "rounded" else counts
        return class_bounds(counts, n, self.prior_slack)

    def _held_out(self, n: int, seed: int) -> HeldOutLosses | None:
        """Say who measures difficulty, unless it is the model itself."""
        del n, seed
        return None

    def _settings(self) -> Settings:
        return Settings(
            tol=self.tol,
            max_passes=self.max_passes,
            solver_tol=self.solver_tol,
            fit_intercept=self.fit_intercept,
            weight_floor=0.0,
            prior_price=np.inf if self.prior_price is None else self.prior_price,
            settled=_SETTLED if self.init == "leave_one_out" else 0.0,
        )


def _are_estimates(prior: ClassPrior) -> bool:
    """Whether nobody would wonder that the counts can't be met exactly."""
    return isinstance(prior, str) and prior == "leave_one_out"


def _state(record: Record) -> str:
    return (
        f"C={record['C']:.3g}  admitted {record['admitted']:.0%}  "
        f"objective {record['objective']:.4g}"
    )
