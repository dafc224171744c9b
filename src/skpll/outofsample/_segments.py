"""Sums over the candidates of some examples, for NumPy arrays and for PyTorch tensors.

One value for each candidate, in the order of ``sets.indices``, is a vector of *entries*. What a
loop does with them is the same in every array library but for a few sums over segments, which are
here. PyTorch is imported only where tensors are given.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from skpll._rows import row_peaks, row_softmax, row_sums
from skpll.candidates import CandidateSets
from skpll.engine.arrays import as_float64 as double
from skpll.engine.arrays import as_numpy, is_tensor
from skpll.engine.arrays import to_namespace as like

__all__ = ["Segments", "as_numpy", "double", "is_tensor", "like", "segments"]

_FEW_COLUMNS = 16
"""With fewer columns than this times the entries of a row, whole rows are computed: one product of
matrices is faster then than many products of vectors."""

_BLOCK = 2**17
"""Numbers in a temporary result: few enough for the caches of a processor."""

_TENSOR_BLOCK = 2**26


class Segments(Protocol):
    """Where the candidates of some examples are."""

    xp: Any
    """The module of the array library."""

    indices: Any
    """The class of each entry."""

    def entries(self, values: Any) -> Any:
        """Bring values to where the entries are: whole numbers, or double precision."""
        ...

    def spread(self, values: Any) -> Any:
        """Repeat the value of each row at its entries."""
        ...

    def sums(self, values: Any) -> Any:
        """Sum of each row."""
        ...

    def peaks(self, values: Any) -> Any:
        """Largest value of each row."""
        ...

    def softmax(self, values: Any) -> Any:
        """Exponentiate entries and bring rows to a sum of one."""
        ...

    def column_sums(self, values: Any, columns: Any, n_columns: int) -> Any:
        """Sum of the entries of each column."""
        ...

    def products(self, Z: Any, values: Any) -> Any:
        """Multiply the transpose of the matrix of entries with features, in double precision."""
        ...

    def at(self, Z: Any, coefficients: Any) -> Any:
        """Give the entries of a product of features and coefficients, in double precision.

        Scores near zero are what their logarithms are most sensitive to.
        """
        ...


def segments(sets: CandidateSets, X: Any) -> Segments:
    """Give the segments of candidate sets, where the features are."""
    made: Any = TensorSegments(sets, X) if is_tensor(X) else ArraySegments(sets)
    return made


class ArraySegments:
    """Segments in NumPy."""

    xp = np

    def __init__(self, sets: CandidateSets) -> None:
        self.sets, self.indices = sets, sets.indices

    def entries(self, values: Any) -> Any:
        return np.asarray(values)

    def spread(self, values: Any) -> Any:
        return np.repeat(values, self.sets.sizes)

    def sums(self, values: Any) -> Any:
        return row_sums(self.sets, values)

    def peaks(self, values: Any) -> Any:
        return row_peaks(self.sets, values)

    def softmax(self, values: Any) -> Any:
        return row_softmax(self.sets, values)

    def column_sums(self, values: Any, columns: Any, n_columns: int) -> Any:
        return np.bincount(columns, values, n_columns)

    def products(self, Z: Any, values: Any) -> Any:
        products = self._matrix(values).T @ double(Z)
        return products.toarray() if hasattr(products, "toarray") else products

    def dense(self, values: Any) -> Any:
        """Give the entries as a matrix."""
        return self._matrix(values).toarray()

    def at(self, Z: Any, coefficients: Any) -> Any:
        (n, q), indptr = self.sets.shape, self.sets.indptr
        most = max(1, -(-len(self.indices) // max(n, 1)))
        whole = q <= _FEW_COLUMNS * most or sparse.issparse(Z)
        columns = None if whole else np.ascontiguousarray(coefficients.T)
        values = np.empty(len(self.indices), dtype=coefficients.dtype)
        size = max(1, _BLOCK // (q if whole else most * len(coefficients)))
        size = max(size, 256) if whole else size
        for start in range(0, n, size):
            stop = min(start + size, n)
            ends = slice(indptr[start], indptr[stop])
            rows = np.repeat(np.arange(stop - start), self.sets.sizes[start:stop])
            part = Z[start:stop].astype(coefficients.dtype, copy=False)
            if columns is None:
                values[ends] = (part @ coefficients)[rows, self.indices[ends]]
            else:
                picked = columns[self.indices[ends]]
                values[ends] = np.einsum("ij,ij->i", part[rows], picked)
        return values

    def _matrix(self, values: Any) -> sparse.csr_array:
        return sparse.csr_array((values, self.indices, self.sets.indptr), shape=self.sets.shape)


class TensorSegments:
    """Segments in PyTorch, on any device."""

    def __init__(self, sets: CandidateSets, X: Any) -> None:
        torch = import_module("torch")
        self.xp, self.device, self.shape = torch, X.device, sets.shape
        self.indices = torch.tensor(sets.indices, dtype=torch.int64, device=X.device)
        self.rows = torch.repeat_interleave(
            torch.as_tensor(sets.sizes, dtype=torch.int64, device=X.device)
        )
        self.by_class = torch.argsort(self.indices, stable=True)
        self.places = torch.stack([self.indices[self.by_class], self.rows[self.by_class]])
        self.dtype = torch.float64

    def entries(self, values: Any) -> Any:
        whole = getattr(values, "dtype", self.dtype) in (np.int32, np.int64)
        dtype = self.xp.int64 if whole else self.dtype
        return self.xp.as_tensor(values, dtype=dtype, device=self.device)

    def spread(self, values: Any) -> Any:
        return values[self.rows]

    def sums(self, values: Any) -> Any:
        zeros = self.xp.zeros(self.shape[0], dtype=values.dtype, device=self.device)
        return zeros.index_add_(0, self.rows, values)

    def peaks(self, values: Any) -> Any:
        zeros = self.xp.zeros(self.shape[0], dtype=values.dtype, device=self.device)
        return zeros.scatter_reduce_(0, self.rows, values, "amax", include_self=False)

    def softmax(self, values: Any) -> Any:
        scaled = self.xp.exp(values - self.spread(self.peaks(values)))
        return scaled / self.spread(self.sums(scaled))

    def column_sums(self, values: Any, columns: Any, n_columns: int) -> Any:
        zeros = self.xp.zeros(n_columns, dtype=values.dtype, device=self.device)
        return zeros.index_add_(0, columns, values)

    def products(self, Z: Any, values: Any) -> Any:
        matrix = self.xp.sparse_coo_tensor(
            self.places,
            values[self.by_class],
            self.shape[::-1],
            is_coalesced=True,
            check_invariants=False,
        )
        return self.xp.sparse.mm(matrix, double(Z))

    def at(self, Z: Any, coefficients: Any) -> Any:
        columns = self.entries(coefficients).T.contiguous()
        size = max(1, _TENSOR_BLOCK // len(coefficients))
        parts = [
            (double(Z[rows]) * columns[classes]).sum(1)
            for rows, classes in zip(self.rows.split(size), self.indices.split(size), strict=True)
        ]
        return self.xp.cat(parts)
