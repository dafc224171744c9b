"""The outer loop of an iterative method: history, progress, callbacks and interrupts.

A method writes its loop as a generator that yields a record of each iteration;
`Iterative.iterate` runs it. scikit-learn has callbacks since version 1.9.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ._parameters import COUNT, NON_NEGATIVE
from ._progress import progress
from ._typing import Constraints, Floats

if TYPE_CHECKING:
    callback: Any = None
    CallbackSupport = object
else:
    try:
        from sklearn import callback
    except ImportError:  # scikit-learn before 1.9
        callback = None
    CallbackSupport = callback.CallbackSupportMixin if callback else object

_CALLBACK_FRAMES = 0 if callback is None else 1  # between a method and `Iterative.iterate`

Record = dict[str, Any]
"""What is kept of one iteration."""

Fit = TypeVar("Fit")


def with_callbacks(fit: Fit) -> Fit:
    """Let scikit-learn's callbacks know when a fit ends, where there are callbacks."""
    return fit if callback is None else callback.with_callbacks(fit)


class InterruptedFitWarning(ConvergenceWarning):
    """A fit was interrupted: the model is usable, but not the one that the parameters describe."""


class Iterative(CallbackSupport):
    """Mixin of the methods that learn in iterations.

    Attributes
    ----------
    history_ : list of dict
        A record of each iteration.
    n_iter_ : int
        Number of iterations.
    """

    parameter_constraints: ClassVar[Constraints] = {
        "max_iter": [COUNT],
        "tol": [NON_NEGATIVE],
        "verbose": ["verbose"],
    }

    history_: list[Record]
    n_iter_: int
    max_iter: int
    tol: float
    verbose: int
    _latest: Floats

    @with_callbacks
    def iterate(
        self,
        records: Iterable[Record],
        *,
        X: object,
        total: int | None = None,
        describe: Callable[[Record], str] | None = None,
        keep: Callable[[], object] | None = None,
        finish: Callable[[], object] | None = None,
        unit: str = "round",
    ) -> None:
        """Go through the iterations, and keep a record of each in `history_`.

        An interrupt (Ctrl-C) after the first iteration ends the loop with a warning.

        Parameters
        ----------
        records : iterable of dict
            Yields a record when an iteration is done.
        X : array or sparse matrix
            The features, which callbacks are handed.
        total : int, optional
            The largest number of iterations; by default the parameter `max_iter`.
        describe : callable, optional
            From a record to a few words for the progress bar; by default the first thing in it.
        keep : callable, optional
            Brings the fitted attributes up to date, so that callbacks see a model they can use.
        finish : callable, optional
            What is left to do after the last iteration, unless there was an interrupt.
        unit : str
            What an iteration is called.
        """
        self.history_, self.n_iter_ = [], 0
        total = self.max_iter if total is None else total
        describe = _first_entry if describe is None else describe
        context = None
        if hasattr(self, "_init_callback_context"):
            context = self._init_callback_context(max_subtasks=total)
            context.call_on_fit_task_begin(estimator=self, X=X)
        watched = bool(getattr(self, "_skl_callbacks", None))
        try:
            with progress(type(self).__name__, total, bool(self.verbose)) as step:
                for record in records:
                    self.history_.append(record)
                    self.n_iter_ = len(self.history_)
                    step(self.n_iter_, describe(record))
                    if context is None:
                        continue
                    if watched and keep is not None:
                        keep()
                    task = context.subcontext(task_name=unit)
                    task.call_on_fit_task_begin(estimator=self, X=X)
                    if task.call_on_fit_task_end(estimator=self, X=X):
                        break
                if finish is not None:
                    finish()
        except KeyboardInterrupt:
            if not self.history_:
                raise
            warnings.warn(
                f"Interrupted after {self.n_iter_} of {total} {unit}s: the model is "
                "usable, but not the one that the parameters describe.",
                InterruptedFitWarning,
                stacklevel=5 + _CALLBACK_FRAMES,
            )
        if context is not None:
            context.call_on_fit_task_end(estimator=self, X=X)

    def until_settled(
        self, rounds: Iterator[Floats], *, must_settle: bool = False
    ) -> Iterator[Record]:
        """Yield a record of each round, for `iterate`, until confidences change by at most `tol`.

        Parameters
        ----------
        rounds : iterator of arrays
            Yields the confidences after each round, without end. The latest ones are kept as
            `_latest`, where the method puts those that it starts from.
        must_settle : bool, default=False
            Whether to warn if they have not settled after `max_iter` rounds.
        """
        for confidences in islice(rounds, self.max_iter):
            change = float(np.abs(confidences - self._latest).max())
            self._latest = confidences
            yield {"change": change}
            if change <= self.tol:
                return
        if must_settle:
            self._warn_unconverged(f"confidences still changed by {change:.1e}")

    def _warn_unconverged(self, symptom: str, unit: str = "round") -> None:
        """Warn that `max_iter` iterations were too few; called by the generator of `iterate`."""
        warnings.warn(
            f"{type(self).__name__}: {symptom} after max_iter={self.max_iter} {unit}s; increase "
            "max_iter or tol.",
            ConvergenceWarning,
            stacklevel=7 + _CALLBACK_FRAMES,
        )


def _first_entry(record: Record) -> str:
    name, value = next(iter(record.items()))
    return f"{name.replace('_', ' ')} {value:.6g}"
