"""The estimator side of the alternating optimization, shared by M3PL and SP-PLL."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from skpll._iteration import Iterative, with_callbacks
from skpll._rows import row_softmax
from skpll.base import MatrixLike
from skpll.candidates import CandidateSets, CandidatesLike
from skpll.pacing import Pace, Stage
from skpll.solvers.margins import candidate_margins

from ._alternating import Alternation, Record, Settings
from ._class_prior import class_bounds, neighbor_counts
from ._initial_labels import INITIAL_COSTS
from ._linear import LinearScores

__all__ = ["AlternatingMarginClassifier"]

Floats = NDArray[np.float64]


class AlternatingMarginClassifier(Iterative, LinearScores):
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

    @abstractmethod
    def _pace(self, X: Any) -> Pace | None:
        """Say how the examples are admitted; None admits all at once."""

    @with_callbacks
    def fit(self, X: MatrixLike, y: CandidatesLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from examples and their candidate labels.

        An interrupt (Ctrl-C) ends the fit early with a warning, and leaves the model as it is by
        then. Callbacks see the model at the end of each stage: `coef_`, `training_labels_`,
        `history_`, and `weights_` where there are weights.

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
        pace = self._pace(X)
        stages = self._stages(pace)
        alternation = self._alternation(
            X,
            candidates,
            sample_weight,
            class_bounds(candidates, self._prior(X, candidates), self.prior_slack),
            INITIAL_COSTS[self.init](X, candidates, sample_weight),
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
        self.iterate(
            alternation.run(stages, pace),
            total=len(stages),
            X=X,
            describe=_state,
            keep=lambda: self._keep(alternation),
            finish=lambda: alternation.finish(self.history_[-1]["C"]),
            unit="stage",
        )
        self._keep(alternation)
        assert alternation.machine is not None
        coef, intercept = alternation.machine.coef, alternation.machine.intercept
        margins = candidate_margins(X, coef, intercept, candidates.indptr, candidates.indices)
        return row_softmax(candidates, margins)

    def _keep(self, alternation: Alternation) -> None:
        """Keep the model as it is, and the labels it was trained with.

        Those heed the class prior, at the price of some that the model itself contradicts. They
        are kept apart from the labels decided for: they are wrong more often than not.
        """
        assert alternation.machine is not None
        self._keep_scores(alternation.machine.coef, alternation.machine.intercept)
        trained = alternation.candidates.indices[alternation.assigned]
        self.training_labels_ = alternation.candidates.classes[trained]

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

    def _weight_floor(self) -> float:
        return 0.0

    def _asks_neighbors(self) -> bool:
        return isinstance(self.class_prior, str) and self.class_prior == "neighbors"

    def _prior(self, X: Any, candidates: CandidateSets) -> str | Floats | None:
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
        return shares[self._seen]


def _state(record: Record) -> str:
    return (
        f"C={record['C']:.3g}  admitted {record['admitted']:.0%}  "
        f"objective {record['objective']:.4g}"
    )
