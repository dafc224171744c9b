"""The estimator side of the alternating optimization, shared by M3PL and SP-PLL."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils._param_validation import Interval, StrOptions

from skpll._progress import progress
from skpll.base import InterruptedFitWarning, MatrixLike, row_argmax, softmax_on_candidates
from skpll.candidates import CandidateSets, CandidatesLike
from skpll.pacing import Pace, Stage
from skpll.solvers.margins import candidate_margins

from ._alternating import Alternation, Record, Settings
from ._class_prior import class_bounds, neighbor_counts
from ._initial_labels import INITIAL_COSTS
from ._linear import LinearScores, training_part

__all__ = ["AlternatingMarginClassifier"]

Floats = NDArray[np.float64]


class AlternatingMarginClassifier(CallbackSupportMixin, LinearScores):
    """Base class of the methods that label and train in turn; they differ in their pace."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "C_start": [Interval(Real, 0, 1, closed="right")],
        "C_growth": [Interval(Real, 0, None, closed="neither")],
        "class_prior": [StrOptions({"neighbors", "candidates", "rounded"}), "array-like", None],
        "prior_slack": [Interval(Real, 0, None, closed="left")],
        "prior_price": [Interval(Real, 0, None, closed="left"), None],
        "init": [StrOptions(set(INITIAL_COSTS))],
        "fit_intercept": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "solver_tol": [Interval(Real, 0, None, closed="neither")],
        "verbose": ["verbose"],
    }

    _alternation: ClassVar[type[Alternation]] = Alternation

    C: float
    C_start: float
    C_growth: float
    class_prior: str | ArrayLike | None
    prior_slack: float
    prior_price: float | None
    init: str
    fit_intercept: bool
    tol: float
    max_iter: int
    solver_tol: float
    verbose: int

    training_labels_: NDArray[Any]
    history_: list[Record]
    n_iter_: int

    @abstractmethod
    def _pace(self, X: Any) -> Pace | None:
        """Say how the examples are admitted; None admits all at once."""

    @with_callbacks
    def fit(self, X: MatrixLike, y: CandidatesLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from examples and their candidate labels.

        An interrupt (Ctrl-C) ends the fit early with a warning, and leaves the model as it is by
        then.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The features.
        y : candidate sets of n examples
            Any format of `skpll.as_candidates`.
        sample_weight : array-like of shape (n,), optional
            How much each example counts; all alike by default. Examples of weight zero take no
            part, and get the candidate that the final machine scores highest.

        Returns
        -------
        self
        """
        return super().fit(X, y, sample_weight)

    def _fit(  # type: ignore[override]
        self, X: Any, candidates: CandidateSets, sample_weight: Floats
    ) -> Floats:
        taking_part = sample_weight > 0
        live, training = training_part(candidates, taking_part)
        X_training = X if taking_part.all() else X[taking_part]
        pace = self._pace(X_training)
        stages = self._stages(pace)
        importance = sample_weight[taking_part]
        alternation = self._alternation(
            X_training,
            training,
            importance,
            class_bounds(training, self._prior(X_training, training, live), self.prior_slack),
            INITIAL_COSTS[self.init](X_training, training, importance),
            Settings(
                tol=self.tol,
                max_passes=self.max_iter,
                solver_tol=self.solver_tol,
                fit_intercept=self.fit_intercept,
                weight_floor=self._weight_floor(),
                prior_price=np.inf if self.prior_price is None else self.prior_price,
            ),
        )
        if alternation.breach and not self._asks_neighbors():
            warnings.warn(
                "class_prior: no labeling meets the numbers of examples it asks for; they were "
                f"relaxed by {alternation.breach} examples. Use prior_slack, or "
                'class_prior="candidates".',
                UserWarning,
                stacklevel=5,
            )
        self.history_ = []

        def keep() -> Floats:
            assert alternation.machine is not None
            self.n_iter_ = len(self.history_)
            self._keep_scores(alternation.machine.coef, alternation.machine.intercept, live)
            return self._decide(X, candidates, alternation, taking_part)

        self._run(alternation, stages, pace, X, keep)
        return keep()

    def _stages(self, pace: Pace | None) -> list[Stage]:
        path = [self.C_start * self.C]
        while path[-1] < self.C:
            path.append(min((1 + self.C_growth) * path[-1], self.C))
        path = path[1:] or path
        return [Stage(C, 1.0) for C in path] if pace is None else pace.stages(path)

    def _weight_floor(self) -> float:
        return 0.0

    def _asks_neighbors(self) -> bool:
        return isinstance(self.class_prior, str) and self.class_prior == "neighbors"

    def _prior(
        self, X: Any, candidates: CandidateSets, live: NDArray[np.intp]
    ) -> str | Floats | None:
        """Ask the neighbours, or restrict the user's shares to the classes that take part."""
        if self._asks_neighbors():
            return neighbor_counts(X, candidates)
        if self.class_prior is None or isinstance(self.class_prior, str):
            return self.class_prior
        shares = np.asarray(self.class_prior, dtype=np.float64)
        if shares.shape != self.classes_.shape:
            raise ValueError(
                f"class_prior: {shares.size} shares for {len(self.classes_)} classes; give one a "
                "class, in the order of the sorted labels."
            )
        return shares[live]

    def _run(
        self,
        alternation: Alternation,
        stages: Sequence[Stage],
        pace: Pace | None,
        X: Any,
        keep: Callable[[], Any],
    ) -> None:
        """Go through the stages with a progress bar, callbacks, and an ear for interrupts.

        At the end of a stage callbacks see the model as it is by then: `coef_`, `training_labels_`,
        `history_`, and `weights_` where there are weights.
        """
        watched = bool(getattr(self, "_skl_callbacks", None))
        context = self._init_callback_context(max_subtasks=len(stages))
        context.call_on_fit_task_begin(estimator=self, X=X)
        try:
            with progress(type(self).__name__, len(stages), bool(self.verbose)) as step:
                for record in alternation.run(stages, pace):
                    self.history_.append(record)
                    step(len(self.history_), _state(record))
                    if watched:
                        keep()
                    task = context.subcontext(task_name="stage")
                    task.call_on_fit_task_begin(estimator=self, X=X)
                    if task.call_on_fit_task_end(estimator=self, X=X):
                        break
                alternation.finish(self.history_[-1]["C"])
        except KeyboardInterrupt:
            if alternation.machine is None:
                raise
            warnings.warn(
                f"Interrupted after {len(self.history_)} of {len(stages)} stages: the model is "
                "usable, but not the one that the parameters describe.",
                InterruptedFitWarning,
                stacklevel=6,
            )
        context.call_on_fit_task_end(estimator=self, X=X)

    def _decide(
        self,
        X: Any,
        candidates: CandidateSets,
        alternation: Alternation,
        taking_part: NDArray[np.bool_],
    ) -> Floats:
        """Decide for the best candidates by the final machine; confidences come from its margins.

        The labels it was trained with heed the class prior, at the price of some that the machine
        itself contradicts. Those are kept apart: they are wrong more often than not.
        """
        margins = candidate_margins(
            X, self.coef_, self.intercept_, candidates.indptr, candidates.indices
        )
        labels = candidates.indices[row_argmax(candidates, margins)]
        trained = alternation.candidates.indices[alternation.assigned]
        self.transduction_ = self.classes_[labels]
        self.training_labels_ = self.transduction_.copy()
        self.training_labels_[taking_part] = alternation.candidates.classes[trained]
        return softmax_on_candidates(candidates, margins)


def _state(record: Record) -> str:
    return (
        f"C={record['C']:.3g}  admitted {record['admitted']:.0%}  "
        f"objective {record['objective']:.4g}"
    )
