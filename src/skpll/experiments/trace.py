"""A record of each stage of a fit, held against the truth that the method does not know."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["TruthMonitor"]

_LEFT_OUT = ("trace",)  # the objective after every single update


class TruthMonitor:
    """Callback that counts right and wrong labels at the end of each stage of SP-PLL and M3PL.

    Set it with ``estimator.set_callbacks(monitor)`` before `fit`. It only looks: the fit is the
    same with and without it.

    Parameters
    ----------
    y : array of shape (n,)
        The true labels of the training examples.

    Attributes
    ----------
    records : list of dict
        For each stage the estimator's own record (``history_``), with ``admitted_right`` and
        ``admitted_wrong``, the numbers of examples admitted with the right and with a wrong label,
        and ``labels_right``, the share of all examples whose label is right.
    """

    def __init__(self, y: NDArray[Any]) -> None:
        self.y = y
        self.records: list[dict[str, Any]] = []

    def setup(self, estimator: Any, context: Any) -> None:
        """Forget an earlier fit."""
        del estimator, context
        self.records = []

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Do nothing when a stage begins."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        """Count at the end of a stage; never stop the fit."""
        if context.task_name == "stage":
            right = estimator.training_labels_ == self.y
            admitted = getattr(estimator, "weights_", np.ones(len(right))) > 0
            own = estimator.history_[-1]
            self.records.append(
                {key: value for key, value in own.items() if key not in _LEFT_OUT}
                | {
                    "admitted_right": int(np.sum(admitted & right)),
                    "admitted_wrong": int(np.sum(admitted & ~right)),
                    "labels_right": float(np.mean(right)),
                }
            )
        return False

    def teardown(self, estimator: Any, context: Any) -> None:
        """Do nothing at the end of the fit."""
