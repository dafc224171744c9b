"""What the methods that are made of two-class models have in common."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.base import BaseEstimator
from sklearn.svm import SVC
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from skpll.base import ScoringClassifier

from ._models import KERNELS


@dataclass(eq=False, repr=False, kw_only=True)
class BinaryDecomposition(ScoringClassifier):
    """Base class of the methods that ask many two-class models and add up their answers."""

    accepts_sparse = True

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "kernel": [StrOptions(set(KERNELS))],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="left")],
        "estimator": [HasMethods(["fit", "decision_function"]), None],
        "n_jobs": [Integral, None],
    }

    C: float = 10.0
    kernel: str = "rbf"
    gamma: str | float = "scale"
    estimator: BaseEstimator | None = None
    n_jobs: int | None = None

    def _model(self, X: Any) -> BaseEstimator:
        """Give the two-class classifier that is copied for every problem on the features `X`."""
        if self.estimator is not None:
            return self.estimator
        return SVC(C=self.C, kernel=self.kernel, gamma=_kernel_width(X, self.gamma))


def _kernel_width(X: Any, gamma: str | float) -> str | float:
    """Work out the width that goes with the scale of all examples, not those of one problem."""
    if gamma != "scale":
        return gamma
    variance = X.multiply(X).mean() - X.mean() ** 2 if hasattr(X, "multiply") else X.var()
    return 1 / (X.shape[1] * variance) if variance > 0 else 1.0
