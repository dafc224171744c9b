"""Types that several modules share."""

from __future__ import annotations

from typing import Any, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Array",
    "CandidatesLike",
    "Classifier",
    "Constraints",
    "Estimator",
    "Floats",
    "Ints",
    "Label",
    "MatrixLike",
]

Array: TypeAlias = NDArray[Any]
"""An array of any kind, such as labels."""

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.integer]

Label: TypeAlias = Any
"""A label: anything that can be hashed, and sorted with the others."""

CandidatesLike: TypeAlias = Any
"""Candidate sets in a format of `skpll.as_candidates`."""

MatrixLike: TypeAlias = Any
"""Rows of numbers: nested lists, an array, a data frame or, where declared, a sparse matrix."""

Constraints: TypeAlias = dict[str, list[object]]
"""The values that each parameter of an estimator may have, in scikit-learn's notation."""


class Estimator(Protocol):
    """An estimator of scikit-learn, a pipeline or a method of this package."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""

    def set_params(self, **params: Any) -> Self:
        """Change some of the parameters."""


class Classifier(Estimator, Protocol):
    """A classifier of scikit-learn that predicts probabilities."""

    classes_: Array

    def fit(self, X: MatrixLike, y: Array) -> Self:
        """Learn from examples and their labels."""

    def predict_proba(self, X: MatrixLike) -> Floats:
        """Return the probability of each class."""
