"""Features for the ridge: raw ones, those of a kernel on all examples, or on landmarks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.metrics.pairwise import euclidean_distances

from ._segments import double, is_tensor, like

__all__ = ["KERNELS", "KernelMap", "median_distance"]

Floats = NDArray[Any]

KERNELS = ("laplacian", "rbf")

_SAMPLE = 1000
"""The typical distance is measured among so many examples."""

_NOTHING = 1e-12
"""Smaller squares of distances are rounding; their root would tell equal rows apart."""


def median_distance(X: Any, random_state: np.random.RandomState) -> float:
    """Median distance of two different examples; one where all are the same."""
    n = X.shape[0]
    part = X if n <= _SAMPLE else X[random_state.choice(n, _SAMPLE, replace=False)]
    squared = euclidean_distances(part, squared=True)
    apart = squared[np.triu_indices(len(squared), 1)]
    apart = apart[apart > 1e-12 * max(float(apart.max(initial=0.0)), 1e-300)]
    return float(np.sqrt(np.median(apart))) if len(apart) else 1.0


@dataclass(frozen=True)
class KernelMap:
    """A kernel, and the rows it is measured against.

    The kernels are ``exp(-gamma d)`` ("laplacian": of the plain distance d) and ``exp(-gamma d²)``
    ("rbf"), with distances in units of `unit`; "linear" is the inner product.

    Parameters
    ----------
    kernel : {"laplacian", "rbf", "linear"}
        The kernel.
    gamma : float
        How fast it falls with the distance.
    unit : float
        The unit of distances.
    rows : array or sparse matrix of shape (m, d)
        The landmarks, or all examples.
    """

    kernel: str
    gamma: float
    unit: float
    rows: Any

    def against(self, X: Any) -> Floats:
        """Give the kernel between rows of features and the map's own: (n, m)."""
        if is_tensor(X):
            return self._against_tensor(X)
        if self.kernel == "linear":
            products = X @ self.rows.T
            return np.asarray(products.toarray() if hasattr(products, "toarray") else products)
        return self.of_distances(euclidean_distances(X, self.rows, squared=True))

    def _against_tensor(self, X: Any) -> Any:
        rows = like(self.rows, X)
        if self.kernel == "linear":
            return X @ rows.T
        given, X, rows = X, double(X), double(rows)  # near rows: differences of large numbers
        squared = (X * X).sum(1)[:, None] + (rows * rows).sum(1) - 2 * (X @ rows.T)
        squared = like(squared.clip(min=0), given)
        if self.kernel == "laplacian":
            return (squared.sqrt() * (-self.gamma / self.unit)).exp()
        return (squared * (-self.gamma / self.unit**2)).exp()

    def of_distances(self, squared: Floats) -> Floats:
        """Give the kernel of squared distances, which are overwritten."""
        if self.kernel == "laplacian":
            squared[squared < _NOTHING * self.unit**2] = 0.0
            np.sqrt(squared, out=squared)
            squared *= -self.gamma / self.unit
        else:
            squared *= -self.gamma / self.unit**2
        return np.exp(squared, out=squared)

    def whitening(self) -> Floats:
        """Give the matrix that makes features, whose products are the kernel, of kernel values."""
        squares, vectors = linalg.eigh(self.against(self.rows), check_finite=False, driver="evd")
        kept = squares > 1e-8 * squares[-1]
        return np.asarray(vectors[:, kept] / np.sqrt(squares[kept]))
