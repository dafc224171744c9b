"""Types that several modules share."""

from __future__ import annotations

from typing import Any, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Constraints", "Estimator", "Floats", "Ints", "Label"]

Array: TypeAlias = NDArray[Any]
"""An array of any kind, such as labels."""

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.integer]

Label: TypeAlias = Any
"""A label: anything that can be hashed, and sorted with the others."""

Constraints: TypeAlias = dict[str, list[object]]
"""The values that each parameter of an estimator may have, in scikit-learn's notation."""


class Estimator(Protocol):
    """An estimator of scikit-learn, a pipeline or a method of this package."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""

    def set_params(self, **params: Any) -> Self:
        """Change some of the parameters."""
