"""Examples that a method goes over in rounds, as one block in memory or as many blocks elsewhere.

A method describes what it computes as functions of a block. `map` applies such a function and keeps
one result per block (a *part*, such as a number for each candidate); `sum` adds the results up. In
memory there is one block, and a part is an array. The stores of `skpll.large` hold many blocks: in
memory, on another device, or on the workers of a cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from skpll.candidates import CandidateSets

from .arrays import Matrix, as_float64, is_sparse

__all__ = ["Block", "Part", "Store", "Values"]

Values: TypeAlias = Any
"""An array or tensor with a number for each candidate, each example or each column."""

Part: TypeAlias = Any
"""The values of all examples of a store, in the store's own form: it is passed around unopened."""

BlockFunction: TypeAlias = Callable[..., Any]
"""A function of a block, of its parts, and of constants that are the same for all blocks."""

COLUMNS_PER_ENTRY = 16
"""Up to this number of columns for each entry of a row, whole rows of a product are computed."""

TEMPORARY_NUMBERS = 2**17
"""Numbers in a temporary result: small enough for the caches of a processor."""


class Store(Protocol):
    """Examples in memory, in blocks, or on a cluster."""

    @property
    def shape(self) -> tuple[int, int]:
        """The number of examples and of classes."""
        ...

    @property
    def n_features(self) -> int:
        """The number of raw features."""
        ...

    @property
    def with_features(self) -> Store:
        """The same examples for functions that read the features, which may have to be loaded."""
        ...

    def map(self, function: BlockFunction, *parts: Part, **constants: Any) -> Part:
        """Apply a function to every block and its parts; results stay where the block is."""
        ...

    def sum(self, function: BlockFunction, *parts: Part, **constants: Any) -> Any:
        """Add up the results of a function: arrays, or tuples of arrays."""
        ...

    def changed(self, function: Callable[[Block], Block]) -> Store:
        """Return the store of the blocks that a function, which reads no features, returns."""
        ...

    def mapped(self, features: Callable[[Matrix], Matrix], keep: bool) -> Store:
        """Return the store with mapped features, which are kept or computed when needed."""
        ...

    def take(self, rows: NDArray[np.intp], *parts: Part) -> tuple[Block, list[Values]]:
        """Return a block in memory of some rows, in ascending order, and their values."""
        ...

    def joined(self, part: Part) -> Any:
        """Return a part as one array of all examples."""
        ...

    def split(self, values: NDArray[Any]) -> Part:
        """Return an array with a value for each candidate as a part."""
        ...


@dataclass(frozen=True)
class Block:
    """Examples in memory, with the operations on one value for each of their candidates.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        The features.
    sets : CandidateSets
        The candidates of each example.
    weights : array of shape (n,)
        The weight of each example.
    features : callable or None
        From `X` to the features of a regression, where these are not kept.
    given : CandidateSets or None
        The candidates that were given, where `sets` holds more.
    copies : int array of shape (n,) or None
        The same number for near copies of an example.
    """

    X: Matrix
    sets: CandidateSets
    weights: Values
    features: Callable[[Matrix], Matrix] | None = None
    given: CandidateSets | None = None
    copies: NDArray[np.intp] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """The number of examples and of classes."""
        return self.sets.shape

    @property
    def n_features(self) -> int:
        """The number of raw features."""
        return int(self.X.shape[1])

    @property
    def with_features(self) -> Block:
        """The block itself: its features are in memory."""
        return self

    def map(self, function: BlockFunction, *parts: Values, **constants: Any) -> Any:
        """Apply a function to the block."""
        return function(self, *parts, **constants)

    sum = map

    def changed(self, function: Callable[[Block], Block]) -> Block:
        """Return the block that a function returns."""
        return function(self)

    def mapped(self, features: Callable[[Matrix], Matrix], keep: bool) -> Block:
        """Return the block with mapped features."""
        return replace(self, X=features(self.X)) if keep else replace(self, features=features)

    def take(self, rows: NDArray[np.intp], *parts: Values) -> tuple[Block, list[Values]]:
        """Return the block of some rows, and their values."""
        chosen = replace(
            self,
            X=self.X[rows],
            sets=self.sets[rows],
            weights=self.weights[rows],
            given=None if self.given is None else self.given[rows],
            copies=None if self.copies is None else self.copies[rows],
        )
        mask = np.zeros(len(self.sets), dtype=bool)
        mask[rows] = True
        entries = np.repeat(mask, self.sets.sizes)
        return chosen, [part[rows if len(part) == len(mask) else entries] for part in parts]

    def joined(self, part: Values) -> Values:
        """Return the part itself."""
        return part

    def split(self, values: NDArray[Any]) -> Values:
        """Return the values themselves."""
        return values

    @property
    def Z(self) -> Matrix:
        """The features that a regression is made on."""
        return self.X if self.features is None else self.features(self.X)

    @property
    def indices(self) -> Values:
        """The class of each entry."""
        return self.sets.indices

    @cached_property
    def inside(self) -> NDArray[np.bool_] | None:
        """Which of the candidates were given, where others have been added."""
        return None if self.given is None else np.asarray(self.given).ravel() > 0

    @cached_property
    def pairs(self) -> tuple[Values, Values]:
        """All pairs of different candidates of an example: an entry, and the class of the other."""
        sizes = np.repeat(self.sets.sizes, self.sets.sizes)
        firsts = np.repeat(np.repeat(self.sets.indptr[:-1], self.sets.sizes), sizes)
        entries = np.repeat(np.arange(len(sizes)), sizes)
        others = firsts + np.arange(len(entries)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        different = entries != others
        classes = self.sets.indices[others[different]].astype(np.int64)
        return self.entries(entries[different]), self.entries(classes)

    def on_entries(self, values: Values) -> Values:
        """Return the values of the candidates that were given at all entries; zero elsewhere."""
        if self.inside is not None:
            everywhere = np.zeros(len(self.inside))
            everywhere[self.inside] = values
            values = everywhere
        return self.entries(values)

    def entries(self, values: Values) -> Values:
        """Bring values to where the block is: integers, or double precision."""
        return np.asarray(values)

    def log(self, values: Values) -> Values:
        """Compute the logarithm of positive values in double precision."""
        return np.log(values, dtype=np.float64)

    def spread(self, values: Values) -> Values:
        """Repeat the value of each example at its entries."""
        return np.repeat(values, self.sets.sizes)

    def sums(self, values: Values) -> Values:
        """Sum the values of each example."""
        return self.sets.row_sums(values)

    def peaks(self, values: Values) -> Values:
        """Return the largest value of each example."""
        return self.sets.row_max(values)

    def softmax(self, values: Values) -> Values:
        """Exponentiate the values and normalize those of each example to a sum of one."""
        return self.sets.row_softmax(values)

    def column_sums(self, values: Values, columns: Values, n_columns: int) -> Values:
        """Sum the values of each column."""
        return np.bincount(columns, values, n_columns)

    def products(self, values: Values) -> Values:
        """Multiply the transposed matrix of entries with the features: (q, m)."""
        products = self.sets.to_matrix(values).T @ as_float64(self.Z)
        return products.toarray() if is_sparse(products) else products

    def at(self, Z: Matrix, coefficients: Values) -> Values:
        """Compute the entries of a product of features and coefficients, (n, m) times (m, q)."""
        (n, q), indptr, indices = self.sets.shape, self.sets.indptr, self.sets.indices
        mean_size = max(1, -(-len(indices) // max(n, 1)))
        whole = q <= COLUMNS_PER_ENTRY * mean_size or is_sparse(Z)
        columns = None if whole else np.ascontiguousarray(coefficients.T)
        values = np.empty(len(indices), dtype=coefficients.dtype)
        size = max(1, TEMPORARY_NUMBERS // (q if whole else mean_size * len(coefficients)))
        size = max(size, 256) if whole else size
        for start in range(0, n, size):
            stop = min(start + size, n)
            ends = slice(indptr[start], indptr[stop])
            rows = np.repeat(np.arange(stop - start), self.sets.sizes[start:stop])
            part = Z[start:stop].astype(coefficients.dtype, copy=False)
            if columns is None:
                values[ends] = (part @ coefficients)[rows, indices[ends]]
            else:
                values[ends] = np.einsum("ij,ij->i", part[rows], columns[indices[ends]])
        return values
