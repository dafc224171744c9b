"""What is measured of a task: a table from the name of a metric to a function.

A metric is one function of an `Outcome` and one line in `METRICS`. Stores keep whatever the table
gives, and frames of results have a column for each name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, recall_score

from skpll import metrics

from .data import TaskData

__all__ = ["METRICS", "Outcome", "measured"]


@dataclass(frozen=True)
class Outcome:
    """What came of a task.

    Attributes
    ----------
    model : fitted pipeline
        Its last step is the method.
    trained : TaskData
        The training part, with the truth.
    tested : TaskData
        The test part.
    """

    model: Any
    trained: TaskData
    tested: TaskData

    @cached_property
    def predicted(self) -> NDArray[Any]:
        """The labels predicted for the test part."""
        return np.asarray(self.model.predict(self.tested.X))

    @property
    def told(self) -> bool:
        """Whether the method was told the truth of the training part."""
        return bool(getattr(self.model[-1], "uses_truth", False))


def accuracy(outcome: Outcome) -> float:
    """Share of the predictions that are right."""
    return float(accuracy_score(outcome.tested.y, outcome.predicted))


def within_three(outcome: Outcome) -> float | None:
    """Share of the predictions that are at most three off, where labels are numbers (ages)."""
    if not outcome.tested.ordered:
        return None
    return float(np.mean(np.abs(outcome.tested.y - outcome.predicted) <= 3))


def balanced_accuracy(outcome: Outcome) -> float:
    """Share of the predictions that are right, averaged over the classes."""
    y = outcome.tested.y
    options = {"average": "macro", "labels": np.unique(y), "zero_division": 0}
    return float(recall_score(y, outcome.predicted, **options))


def transductive_accuracy(outcome: Outcome) -> float | None:
    """Share of the training examples whose label was found."""
    if outcome.told:
        return None
    return metrics.transductive_accuracy(outcome.trained.y, outcome.model)


def covering_rate(outcome: Outcome) -> float:
    """Share of the predictions that are candidates."""
    return metrics.covering_rate(outcome.tested.S, outcome.predicted)


def approximated_accuracy(outcome: Outcome) -> float:
    """Accuracy if the model's own probabilities were right."""
    scorer = metrics.approximated_accuracy_scorer
    return scorer(outcome.model, outcome.tested.X, outcome.tested.S)


def mean_confidence(outcome: Outcome) -> float:
    """Mean probability of what is predicted; as large as the accuracy if it can be trusted."""
    return float(outcome.model.predict_proba(outcome.tested.X).max(axis=1).mean())


def calibration_error(outcome: Outcome) -> float | None:
    """How far the confidences in the labels of ambiguous training examples are off."""
    ambiguous = outcome.trained.S.sizes > 1
    if outcome.told or not ambiguous.any():
        return None
    method = outcome.model[-1]
    confidences = method.label_distributions_[np.flatnonzero(ambiguous)].toarray()
    right = method.classes_[confidences.argmax(axis=1)] == outcome.trained.y[ambiguous]
    return metrics.expected_calibration_error(confidences.max(axis=1), right)


METRICS: dict[str, Callable[[Outcome], float | None]] = {
    "accuracy": accuracy,
    "within_three": within_three,
    "balanced_accuracy": balanced_accuracy,
    "transductive_accuracy": transductive_accuracy,
    "covering_rate": covering_rate,
    "approximated_accuracy": approximated_accuracy,
    "mean_confidence": mean_confidence,
    "calibration_error": calibration_error,
}
"""The metrics, by name; None is for what has no meaning for a task, and is left out."""


def measured(outcome: Outcome) -> dict[str, float]:
    """Measure all there is to be measured.

    Parameters
    ----------
    outcome : Outcome
        A fitted model and its data.

    Returns
    -------
    dict from str to float
    """
    found = {name: metric(outcome) for name, metric in METRICS.items()}
    return {name: value for name, value in found.items() if value is not None}
