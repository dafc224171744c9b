"""Examples in many blocks on this computer: arrays on its threads, tensors on their device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skpll._examples import Examples
from skpll._threads import threaded
from skpll.candidates import CandidateSets
from skpll.engine.arrays import Matrix, as_float64, as_numpy, is_sparse, is_tensor, to_namespace
from skpll.engine.blocks import Block, BlockFunction, Values
from skpll.engine.limits import LIMITS

__all__ = ["LocalBlocks", "TensorBlock", "added", "in_blocks", "positions_in", "stacked"]

Parts = list[Values]
"""The values of each block."""


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

    @cached_property
    def pairs(self) -> tuple[Values, Values]:
        """All pairs of different candidates of an example: an entry, and the class of the other."""
        torch, rows = self._torch, self._rows
        sizes = self._integers(self.sets.sizes)[rows]
        firsts = self._integers(self.sets.indptr[:-1])[rows]
        entries = torch.repeat_interleave(sizes)
        before = (sizes.cumsum(0) - sizes)[entries]
        others = firsts[entries] + torch.arange(len(entries), device=rows.device) - before
        different = entries != others
        return entries[different], self.indices[others[different]]

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


class LocalBlocks:
    """A store of blocks on this computer.

    Parameters
    ----------
    blocks : sequence of Block
        The blocks.
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = list(blocks)
        self.starts = np.concatenate([[0], np.cumsum([len(block.sets) for block in self.blocks])])
        self.shape = (int(self.starts[-1]), self.blocks[0].shape[1])
        self.n_features = self.blocks[0].n_features

    @property
    def with_features(self) -> LocalBlocks:
        """The store itself: its features are at hand."""
        return self

    def _results(
        self, function: BlockFunction, parts: tuple[Parts, ...], constants: dict[str, Any]
    ) -> Iterable[Any]:
        items = zip(self.blocks, *parts, strict=True)
        first = self.blocks[0]
        if isinstance(first, TensorBlock):  # bring arrays to the device, once for all blocks
            constants = {
                name: first.entries(value) if isinstance(value, np.ndarray) else value
                for name, value in constants.items()
            }
        if len(self.blocks) == 1 or isinstance(first, TensorBlock):
            return (function(*item, **constants) for item in items)
        return threaded(lambda item: function(*item, **constants), items)

    def map(self, function: BlockFunction, *parts: Parts, **constants: Any) -> Parts:
        """Apply a function to every block and its parts."""
        results = iter(self._results(function, parts, constants))
        first = next(results)
        if len(self.blocks) == 1 or not _is_vector(first, len(self.blocks[0].sets.indices)):
            return [first, *results]
        # In one piece: memory that threads have asked for in pieces is not given back.
        whole = np.empty(sum(len(block.sets.indices) for block in self.blocks), first.dtype)
        kept = self._cut(whole)
        for part, result in zip(kept, chain([first], results), strict=True):
            part[:] = result
        return kept

    def sum(self, function: BlockFunction, *parts: Parts, **constants: Any) -> Any:
        """Add up the results of a function."""
        return added(self._results(function, parts, constants))

    def changed(self, function: Callable[[Block], Block]) -> LocalBlocks:
        """Return the store of the blocks that a function returns."""
        return LocalBlocks([function(block) for block in self.blocks])

    def mapped(self, features: Callable[[Matrix], Matrix], keep: bool) -> LocalBlocks:
        """Return the store with mapped features."""
        return LocalBlocks(self.map(_mapped, features=features, keep=keep))

    def take(self, rows: NDArray[np.intp], *parts: Parts) -> tuple[Block, list[Values]]:
        """Return a block in memory of some rows, in ascending order, and their values."""
        wanted = positions_in(rows, self.starts)
        items = zip(self.blocks, wanted, *parts, strict=True)
        return stacked([block.take(here, *values) for block, here, *values in items])

    def joined(self, part: Parts) -> NDArray[Any]:
        """Return a part as one array of all examples."""
        if len(part) == 1:
            return as_numpy(part[0])
        whole = getattr(part[0], "base", None)
        if _is_vector(whole, sum(map(len, part))) and all(each.base is whole for each in part):
            return np.asarray(whole)
        return np.concatenate([as_numpy(each) for each in part])

    def split(self, values: NDArray[Any]) -> Parts:
        """Return an array with a value for each candidate as a part."""
        pairs = zip(self.blocks, self._cut(values), strict=True)
        return [block.entries(part) for block, part in pairs]

    def _cut(self, values: NDArray[Any]) -> Parts:
        ends = np.cumsum([len(block.sets.indices) for block in self.blocks])
        return np.split(values, ends[:-1])


def _mapped(block: Block, *, features: Callable[[Matrix], Matrix], keep: bool) -> Block:
    return block.mapped(features, keep)


def _is_vector(values: object, length: int) -> bool:
    return isinstance(values, np.ndarray) and values.shape == (length,)


def in_blocks(examples: Examples, width: int) -> LocalBlocks:
    """Cut examples into blocks for a method that needs `width` numbers for each row."""
    X, sets, weights, n = examples.X, examples.sets, examples.weights, len(examples)
    kind, numbers = Block, LIMITS.block_numbers
    if is_tensor(X):
        kind, numbers = TensorBlock, LIMITS.tensor_block_numbers
        weights = to_namespace(weights, as_float64(X[:0]))
    size = max(4 * sets.shape[1], numbers // width)
    if size >= n:
        return LocalBlocks([kind(X, sets, weights)])
    rows = [slice(start, start + size) for start in range(0, n, size)]
    return LocalBlocks([kind(X[part], sets[part], weights[part]) for part in rows])


def positions_in(rows: NDArray[np.intp], starts: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Turn sorted numbers of examples into positions within blocks that start at given ones."""
    ends = np.searchsorted(rows, starts)
    return [rows[a:b] - start for a, b, start in zip(ends[:-1], ends[1:], starts, strict=False)]


def stacked(taken: Sequence[tuple[Block, list[Values]]]) -> tuple[Block, list[Values]]:
    """Put blocks, and values of theirs, together in memory."""
    blocks = [block for block, _ in taken]
    X: list[Any] = [as_numpy(block.X) for block in blocks]
    given = [block.given for block in blocks if block.given is not None]
    whole = Block(
        sparse.vstack(X, format="csr") if is_sparse(X[0]) else np.concatenate(X),
        CandidateSets.concatenate([block.sets for block in blocks]),
        np.concatenate([as_numpy(block.weights) for block in blocks]),
        blocks[0].features,
        CandidateSets.concatenate(given) if given else None,
    )
    parts = zip(*[values for _, values in taken], strict=True)
    return whole, [np.concatenate([as_numpy(each) for each in part]) for part in parts]


def added(results: Iterable[Any]) -> Any:
    """Add up arrays, or tuples of arrays, in double precision and in their order.

    Tensors are added up on their device, and only the sums are brought to the CPU.
    """
    total: list[Any] = []
    several = False
    for result in results:
        several = isinstance(result, tuple)
        terms = result if several else (result,)
        terms = [as_float64(term if is_tensor(term) else as_numpy(term)) for term in terms]
        total = [a + b for a, b in zip(total, terms, strict=True)] if total else terms
    sums = [as_numpy(each) for each in total]
    return tuple(sums) if several else sums[0]
