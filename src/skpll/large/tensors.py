"""Blocks whose features are PyTorch tensors, on any device."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from skpll.engine.arrays import Matrix, as_float64
from skpll.engine.blocks import Block, Values
from skpll.engine.limits import LIMITS

__all__ = ["TensorBlock"]


@dataclass(frozen=True)
class TensorBlock(Block):
    """A block of examples whose features and weights are tensors; see `Block`."""

    @cached_property
    def _torch(self) -> Any:
        return import_module("torch")

    @cached_property
    def indices(self) -> Values:
        """The class of each entry."""
        return self._integers(self.sets.indices)

    @cached_property
    def _rows(self) -> Values:
        return self._torch.repeat_interleave(self._integers(self.sets.sizes))

    @cached_property
    def _by_class(self) -> tuple[Values, Values]:
        """The order of the entries by class, and their classes and examples in this order."""
        order = self._torch.argsort(self.indices, stable=True)
        return order, self._torch.stack([self.indices[order], self._rows[order]])

    def _integers(self, values: Values) -> Values:
        torch = self._torch
        return torch.tensor(values, dtype=torch.int64, device=self.weights.device)

    def entries(self, values: Values) -> Values:
        """Bring values to the device: integers, or double precision."""
        torch = self._torch
        integers = getattr(values, "dtype", None) in (np.int32, np.int64)
        dtype = torch.int64 if integers else torch.float64
        return torch.as_tensor(values, dtype=dtype, device=self.weights.device)

    def log(self, values: Values) -> Values:
        """Compute the logarithm of positive values in double precision."""
        return as_float64(values.log())

    def spread(self, values: Values) -> Values:
        """Repeat the value of each example at its entries."""
        return values[self._rows]

    def _zeros(self, length: int, values: Values) -> Values:
        return self._torch.zeros(length, dtype=values.dtype, device=self.weights.device)

    def sums(self, values: Values) -> Values:
        """Sum the values of each example."""
        return self._zeros(len(self.sets), values).index_add_(0, self._rows, values)

    def peaks(self, values: Values) -> Values:
        """Return the largest value of each example."""
        zeros = self._zeros(len(self.sets), values)
        return zeros.scatter_reduce_(0, self._rows, values, "amax", include_self=False)

    def softmax(self, values: Values) -> Values:
        """Exponentiate the values and normalize those of each example to a sum of one."""
        scaled = self._torch.exp(values - self.spread(self.peaks(values)))
        return scaled / self.spread(self.sums(scaled))

    def column_sums(self, values: Values, columns: Values, n_columns: int) -> Values:
        """Sum the values of each column."""
        return self._zeros(n_columns, values).index_add_(0, columns, values)

    def products(self, values: Values) -> Values:
        """Multiply the transposed matrix of entries with the features: (q, m)."""
        order, places = self._by_class
        matrix = self._torch.sparse_coo_tensor(
            places,
            values[order],
            self.sets.shape[::-1],
            is_coalesced=True,
            check_invariants=False,
        )
        return self._torch.sparse.mm(matrix, as_float64(self.Z))

    def at(self, Z: Matrix, coefficients: Values) -> Values:
        """Compute the entries of a product of features and coefficients, (n, m) times (m, q)."""
        columns = self.entries(coefficients).T.contiguous()
        size = max(1, LIMITS.tensor_block_numbers // len(coefficients))
        pairs = zip(self._rows.split(size), self.indices.split(size), strict=True)
        parts = [(as_float64(Z[rows]) * columns[classes]).sum(1) for rows, classes in pairs]
        return self._torch.cat(parts)
