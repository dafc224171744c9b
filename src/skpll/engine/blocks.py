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

from skpll._examples import Examples
from skpll.candidates import CandidateSets

from .arrays import Matrix, as_float64, as_numpy, is_sparse, is_tensor

__all__ = ["Block", "Part", "Store", "Values", "column_sums", "reads_features"]

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


def reads_features(function: BlockFunction) -> BlockFunction:
    """Mark a function of a block that reads its features, which may have to be loaded."""
    function.reads_features = True  # type: ignore[attr-defined]
    return function


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

    def sample(self, rows: NDArray[np.intp], *parts: Part) -> tuple[Block, list[Values]]:
        """Return a block in memory of some rows, in ascending order, and their values."""
        ...

    def joined(self, part: Part) -> Any:
        """Return a part as one array of all examples."""
        ...

    def split(self, values: NDArray[Any]) -> Part:
        """Return an array with a value for each candidate as a part."""
        ...


@dataclass(frozen=True)
class Block(Examples):
    """Examples in memory, and what is computed of values of their candidates.

    Parameters
    ----------
    features : callable or None
        From `X` to the features of a regression, where these are not kept.
    given : CandidateSets or None
        The candidates that were given, where `sets` holds more.
    """

    features: Callable[[Matrix], Matrix] | None = None
    given: CandidateSets | None = None

    @classmethod
    def of(cls, examples: Examples) -> Block:
        """Return examples as one block."""
        of_rows = examples.weights, examples.groups, examples.copies
        return cls(examples.X, examples.sets, *of_rows)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of examples and of classes."""
        return self.sets.shape

    @property
    def n_features(self) -> int:
        """The number of raw features."""
        return int(self.X.shape[1])

    def map(self, function: BlockFunction, *parts: Values, **constants: Any) -> Any:
        """Apply a function to the block."""
        return function(self, *parts, **constants)

    sum = changed = map

    def mapped(self, features: Callable[[Matrix], Matrix], keep: bool) -> Block:
        """Return the block with mapped features."""
        return replace(self, X=features(self.X)) if keep else replace(self, features=features)

    def sample(self, rows: NDArray[np.intp], *parts: Values) -> tuple[Block, list[Values]]:
        """Return the block of some rows, and their values."""
        entries = self.sets.spread(np.isin(np.arange(len(self)), rows))
        values = [part[rows if len(part) == len(self) else entries] for part in parts]
        return self.take(rows), values

    def joined(self, part: Values) -> Values:
        """Return the part itself."""
        return part

    split = joined

    @property
    def Z(self) -> Matrix:
        """The features that a regression is made on."""
        return self.X if self.features is None else self.features(self.X)

    @property
    def sets_given(self) -> CandidateSets:
        """The candidates that were given, and their weights."""
        return self.sets if self.given is None else self.given

    @property
    def candidates(self) -> Any:
        """The candidate sets, for operations on values where the block is."""
        return self.sets

    def local(self, values: Values) -> Values:
        """Bring values to where the block is: integers, or double precision."""
        return values

    @cached_property
    def inside(self) -> NDArray[np.bool_] | None:
        """Which of the candidates were given, where others have been added."""
        return None if self.given is None else np.asarray(self.given).ravel() > 0

    def on_entries(self, values: Values) -> Values:
        """Return the values of the candidates that were given at all entries; zero elsewhere."""
        if self.inside is not None:
            everywhere = np.zeros(len(self.inside))
            everywhere[self.inside] = values
            values = everywhere
        return self.local(values)

    @cached_property
    def pairs(self) -> tuple[Values, Values]:
        """All pairs of different candidates of an example: an entry, and the class of the other."""
        sizes = self.sets.spread(self.sets.sizes)
        firsts = np.repeat(self.sets.spread(self.sets.indptr[:-1]), sizes)
        entries = np.repeat(np.arange(len(sizes)), sizes)
        others = firsts + np.arange(len(entries)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        different = entries != others
        return entries[different], self.sets.indices[others[different]].astype(np.int64)

    def products(self, values: Values) -> Values:
        """Multiply the transposed matrix of entries with the features: (q, m)."""
        products = self.sets.to_matrix(values).T @ as_float64(self.Z)
        return products.toarray() if is_sparse(products) else products

    def at(self, Z: Matrix, coefficients: Values) -> Values:
        """Compute the entries of a product of features and coefficients, (n, m) times (m, q)."""
        (n, q), indptr, indices = self.sets.shape, self.sets.indptr, self.sets.indices
        if is_tensor(Z):
            return as_numpy((Z @ coefficients)[self.sets.rows, indices.astype(np.int64)])
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


def column_sums(values: Values, columns: Values, n_columns: int) -> Values:
    """Sum the values of each column."""
    if is_tensor(values):
        return values.new_zeros(n_columns).index_add_(0, columns, values)
    return np.bincount(columns, values, n_columns)
