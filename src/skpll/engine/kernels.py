r"""Kernels, and features whose inner products approximate them.

There is one meaning of `gamma`: how fast a kernel falls with the distance d, where distances are
measured in a unit. The unit is the median distance between two examples (`median_distance`), so
that the same `gamma` means the same on all data:

- ``"laplacian"``: :math:`\exp(-\gamma \, d / u)`,
- ``"rbf"``: :math:`\exp(-\gamma \, d^2 / u^2)`,
- ``"linear"``: the inner product; `gamma` and the unit have no effect.

Rows are centred before distances are computed from squares, so that features may be far from zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import gen_batches

from .arrays import Matrix, as_dense, as_float64, is_sparse, is_tensor, to_namespace

__all__ = ["KERNELS", "FeatureMap", "KernelMap", "median_distance", "squared_distances"]

Floats = NDArray[Any]

KERNELS = ("laplacian", "rbf")
"""The kernels that fall with the distance."""

MAX_MEDIAN_ROWS = 1000
"""The median distance is computed between at most this number of rows."""

MIN_SQUARED_DISTANCE = 1e-12
"""Smaller squared distances, in squared units, are rounding errors between equal rows."""

MAX_BLOCK_NUMBERS = 2**24
"""Numbers in a block of the kernel that is computed at a time."""

MAX_DENSE_NUMBERS = 2**22
"""Sparse rows with at most this number of entries, zeros included, are compared as dense ones."""

MIN_EIGENVALUE = 1e-8
"""Nyström features belong to eigenvalues above this share of the largest one."""


def squared_distances(X: Matrix, rows: Matrix) -> Matrix:
    """Compute the squared Euclidean distances between two sets of rows: (n, m).

    Rows are centred by the mean of `rows` first, unless they are sparse and too large to be made
    dense.
    """
    if is_tensor(X):
        return _squared_distances_of_tensors(X, to_namespace(rows, X))
    if is_sparse(rows):
        if max(X.shape[0], rows.shape[0]) * rows.shape[1] > MAX_DENSE_NUMBERS:
            return euclidean_distances(X, rows, squared=True)
        same, rows = X is rows, as_dense(rows)
        X = rows if same else X
    center = rows.mean(axis=0, dtype=np.float64).astype(rows.dtype)
    centered = rows - center
    others = centered if X is rows else as_dense(X) - center
    return euclidean_distances(others, centered, squared=True)


def _squared_distances_of_tensors(X: Matrix, rows: Matrix) -> Matrix:
    given, X, rows = X, as_float64(X), as_float64(rows)
    center = rows.mean(0)
    X, rows = X - center, rows - center
    squared = (X * X).sum(1)[:, None] + (rows * rows).sum(1) - 2 * (X @ rows.T)
    return to_namespace(squared.clip(min=0), given)


def median_distance(X: Matrix, random_state: np.random.RandomState) -> float:
    """Return the median distance between two different rows, or 1.0 if all rows are equal."""
    n = X.shape[0]
    part = X if n <= MAX_MEDIAN_ROWS else X[random_state.choice(n, MAX_MEDIAN_ROWS, replace=False)]
    squared = squared_distances(part, part)
    apart = squared[np.triu_indices(len(squared), 1)]
    largest = max(float(apart.max(initial=0.0)), 1e-300)
    apart = apart[apart > MIN_SQUARED_DISTANCE * largest]
    return float(np.sqrt(np.median(apart))) if len(apart) else 1.0


@dataclass(frozen=True)
class KernelMap:
    """The kernel between any rows and given ones.

    Parameters
    ----------
    kernel : {"laplacian", "rbf", "linear"}
        The kernel.
    gamma : float
        How fast it falls with the distance, in units of `unit`.
    unit : float
        The unit of distances, such as `median_distance`.
    rows : array or sparse matrix of shape (m, d)
        The landmarks, or all examples; None as long as there are none.
    """

    kernel: str
    gamma: float
    unit: float
    rows: Matrix = None

    def against(self, X: Matrix) -> Matrix:
        """Compute the kernel between rows of features and the map's own: (n, m)."""
        if self.kernel == "linear":
            products = X @ (to_namespace(self.rows, X).T if is_tensor(X) else self.rows.T)
            return as_dense(products)
        return self.of_distances(squared_distances(X, self.rows))

    def outputs(self, X: Matrix, coef: Floats, intercept: Floats) -> Floats:
        """Compute the outputs of a model with one coefficient for each of the map's rows: (n, q).

        The kernel is computed for blocks of rows of `X`, so that it takes bounded memory.
        """
        found = np.empty((X.shape[0], coef.shape[1]))
        for block in gen_batches(X.shape[0], max(1, MAX_BLOCK_NUMBERS // len(coef))):
            found[block] = self.against(X[block]) @ coef + intercept
        return found

    def of_distances(self, squared: Matrix) -> Matrix:
        """Compute the kernel from squared distances, which are overwritten."""
        if self.kernel == "laplacian":
            squared[squared < MIN_SQUARED_DISTANCE * self.unit**2] = 0.0
            squared **= 0.5
            squared *= -self.gamma / self.unit
        else:
            squared *= -self.gamma / self.unit**2
        return squared.exp_() if is_tensor(squared) else np.exp(squared, out=squared)

    def whitening(self) -> Floats:
        """Return the matrix that turns kernel values into features whose products they are."""
        exact = replace(self, rows=as_float64(self.rows))  # small eigenvalues amplify rounding
        values, vectors = linalg.eigh(exact.against(exact.rows), check_finite=False, driver="evd")
        kept = values > MIN_EIGENVALUE * values[-1]
        return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


@dataclass(frozen=True)
class FeatureMap:
    """From raw features to those that a linear model is made on.

    Parameters
    ----------
    kernel : KernelMap or None
        The kernel and its rows; None takes the raw features.
    center : array of shape (d,) or float
        Subtracted from raw features first, for a linear kernel.
    scale : float
        By which they are divided then.
    whitening : array of shape (number of landmarks, m) or None
        From kernel values to features whose products approximate the kernel (Nyström).
    """

    kernel: KernelMap | None
    center: Floats | float = 0.0
    scale: float = 1.0
    whitening: Floats | None = None

    def __call__(self, X: Matrix) -> Matrix:
        """Map rows of features; the result has the precision of `X`."""
        if self.whitening is not None:  # in double precision: small eigenvalues amplify rounding
            values = replace(self, whitening=None)(as_float64(X))
            return to_namespace(values @ to_namespace(self.whitening, values), X)
        if self.kernel is not None and self.kernel.kernel != "linear":
            return self.kernel.against(X)
        X = as_dense(X) if np.any(self.center) else X  # learned from rows that were dense
        X = (X if is_sparse(X) else X - to_namespace(self.center, X)) / self.scale
        return X if self.kernel is None else self.kernel.against(X)
