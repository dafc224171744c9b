r"""Ridge regression that answers for every training example without having seen it.

For targets T, weights c and a ridge :math:`\alpha` there are two ways to the same answers.

*By features* Z, with :math:`G = Z^\top C Z + \alpha I` and :math:`C = \operatorname{diag}(c)`: the
coefficients are :math:`W = G^{-1} Z^\top C T`, the leverage of example i is
:math:`h_i = c_i z_i^\top G^{-1} z_i`, and what the regression would say of example i had it been
trained without it is

.. math:: F^\circ_{ij} = \frac{z_i^\top w_j - h_i T_{ij}}{1 - h_i}.

*By a kernel* K of all examples, with :math:`B = (K + \alpha C^{-1})^{-1}`: the dual coefficients
are :math:`A = B T`, and

.. math:: F^\circ_{ij} = T_{ij} - A_{ij} / B_{ii}.

The targets are sparse: confidences on candidates, less one constant for each column, the offset,
which is added again in the end. Only entries that are stored are predicted, so that a round of
disambiguation costs as much as there are candidates. Nothing here is compiled.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

__all__ = ["DualRidge", "OutOfSampleRidge", "PrimalRidge"]

Floats = NDArray[Any]

_LEVERAGE = 1 - 1e-6
"""Leverages are kept below this: nobody else can speak for such an example."""

_BLOCK = 2**24
"""Numbers in a block of temporary results."""

_FEW_COLUMNS = 16
"""With fewer columns than this times the entries of a row, whole rows are computed: one product of
matrices is faster then than many products of vectors."""


class OutOfSampleRidge(Protocol):
    """What both ways have in common."""

    def predict(self, targets: sparse.csr_array, offset: Floats) -> Floats:
        """Leave-one-out predictions at the stored entries of the targets, in their order."""
        ...

    def predict_everywhere(self, targets: sparse.csr_array, offset: Floats) -> Floats:
        """Leave-one-out predictions of all columns: (n, q)."""
        ...

    def coefficients(self, targets: sparse.csr_array, offset: Floats) -> Floats:
        """Coefficients of the features, or of the kernel against all examples."""
        ...


class PrimalRidge:
    """Ridge regression on features, dense or sparse, with fewer columns than rows.

    Parameters
    ----------
    Z : array or CSR matrix of shape (n, m)
        The features.
    gram : array of shape (m, m)
        The products of its columns, weighted by the examples: `weighted_gram`.
    weights : array of shape (n,)
        How much each example counts; positive.
    alpha : float
        The ridge.
    """

    def __init__(self, Z: Any, gram: Floats, weights: Floats, alpha: float) -> None:
        self.Z = Z
        self.weights = weights.astype(Z.dtype)
        ridge = gram.copy()
        ridge[np.diag_indices_from(ridge)] += alpha
        self._factor = linalg.cholesky(ridge, lower=True, overwrite_a=True, check_finite=False)
        self.leverages = np.minimum(self.weights * self._squared_lengths(), _LEVERAGE)

    def _squared_lengths(self) -> Floats:
        """Give the products of each row with itself under the inverse of the ridge's matrix."""
        n, m = self.Z.shape
        lengths, size = np.empty(n, dtype=self.Z.dtype), max(1, _BLOCK // m)
        for start in range(0, n, size):
            rows = self.Z[start : start + size]
            rows = rows.toarray() if hasattr(rows, "toarray") else rows
            solved = linalg.solve_triangular(self._factor, rows.T, lower=True, check_finite=False)
            lengths[start : start + size] = np.einsum("ij,ij->j", solved, solved)
        return lengths

    def coefficients(self, targets: sparse.csr_array, offset: Floats) -> Floats:
        """Coefficients of the features: (m, q)."""
        weighted = _with_data(targets, targets.data * _repeated(self.weights, targets))
        products = weighted.T @ self.Z
        products = products.toarray() if hasattr(products, "toarray") else products
        products = products - np.outer(offset, self.weights @ self.Z)
        solved = linalg.cho_solve((self._factor, True), products.T, check_finite=False)
        return np.asarray(solved)

    def predict(self, targets: sparse.csr_array, offset: Floats) -> Floats:
        """Leave-one-out predictions at the stored entries of the targets, in their order."""
        coef = self.coefficients(targets, offset)
        fitted = _products_at(self.Z, coef, targets)
        h = _repeated(self.leverages, targets)
        own = targets.data - offset[targets.indices]
        return np.asarray((fitted - h * own) / (1 - h) + offset[targets.indices])

    def predict_everywhere(self, targets: sparse.csr_array, offset: Floats) -> Floats:
        """Leave-one-out predictions of all columns: (n, q)."""
        h = self.leverages[:, np.newaxis]
        fitted = self.Z @ self.coefficients(targets, offset)
        return np.asarray((fitted - h * (targets.toarray() - offset)) / (1 - h) + offset)


def weighted_gram(Z: Any, weights: Floats) -> Floats:
    """Give the products of the columns of features, weighted by the examples."""
    roots = np.sqrt(weights).astype(Z.dtype)[:, np.newaxis]
    if not hasattr(Z, "multiply"):
        Z = Z * roots
        return np.asarray(Z.T @ Z)
    Z = Z.multiply(roots).tocsr()
    return np.asarray((Z.T @ Z).toarray())


class DualRidge:
    """Ridge regression on a kernel of all examples.

    Parameters
    ----------
    K : array of shape (n, n)
        The kernel.
    weights : array of shape (n,)
        How much each example counts; positive.
    alpha : float
        The ridge.
    """

    def __init__(self, K: Floats, weights: Floats, alpha: float) -> None:
        matrix = K.copy()
        matrix[np.diag_indices_from(matrix)] += (alpha / weights).astype(K.dtype)
        factor = linalg.cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
        invert: Any = linalg.get_lapack_funcs("potri", (factor,))
        inverse, info = invert(factor, lower=True, overwrite_c=True)
        if info:
            raise np.linalg.LinAlgError("the kernel is not positive definite; raise alpha")
        lower = np.tril(inverse, -1)
        self.diagonal = np.diag(inverse).copy()
        self.inverse = lower + lower.T
        self.inverse[np.diag_indices_from(self.inverse)] = self.diagonal
        self._against_offset = self.inverse.sum(axis=1)

    def coefficients(self, targets: sparse.csr_array, offset: Floats) -> Floats:
        """Coefficients of the kernel against all examples: (n, q)."""
        products = self.inverse @ targets.toarray().astype(self.inverse.dtype)
        return np.asarray(products - np.outer(self._against_offset, offset))

    def predict(self, targets: sparse.csr_array, offset: Floats) -> Floats:
        """Leave-one-out predictions at the stored entries of the targets, in their order."""
        dense = targets.toarray().astype(self.inverse.dtype)
        dual = _products_at(self.inverse, dense, targets)
        dual = dual - _repeated(self._against_offset, targets) * offset[targets.indices]
        return np.asarray(targets.data - dual / _repeated(self.diagonal, targets))

    def predict_everywhere(self, targets: sparse.csr_array, offset: Floats) -> Floats:
        """Leave-one-out predictions of all columns: (n, q)."""
        dual = self.coefficients(targets, offset)
        return np.asarray(targets.toarray() - dual / self.diagonal[:, np.newaxis])


def _products_at(left: Any, right: Floats, pattern: sparse.csr_array) -> Floats:
    """Give the entries of a product of matrices that the pattern asks for."""
    n, q = pattern.shape
    counts = np.diff(pattern.indptr)
    most = max(1, int(np.ceil(counts.mean())))
    whole = q <= _FEW_COLUMNS * most or sparse.issparse(left)
    columns = None if whole else np.ascontiguousarray(right.T)
    values = np.empty(len(pattern.indices), dtype=right.dtype)
    size = max(1, _BLOCK // (q if whole else most * right.shape[0]))
    for start in range(0, n, size):
        stop = min(start + size, n)
        ends = slice(pattern.indptr[start], pattern.indptr[stop])
        rows = np.repeat(np.arange(stop - start), counts[start:stop])
        if columns is None:
            values[ends] = (left[start:stop] @ right)[rows, pattern.indices[ends]]
        else:
            picked = columns[pattern.indices[ends]]
            values[ends] = np.einsum("ij,ij->i", left[start:stop][rows], picked)
    return values


def _repeated(values: Floats, pattern: sparse.csr_array) -> Floats:
    """Repeat a value for each row at all of its entries."""
    return np.repeat(values, np.diff(pattern.indptr))


def _with_data(pattern: sparse.csr_array, data: Floats) -> sparse.csr_array:
    return sparse.csr_array((data, pattern.indices, pattern.indptr), shape=pattern.shape)
