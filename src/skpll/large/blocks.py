"""Examples in many blocks on this computer: arrays on its threads, tensors on their device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
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

BY_ROW = ("X", "sets", "weights", "groups", "copies", "given")
"""What a block has of each of its rows."""

Parts = list[Values]
"""The values of each block."""


class TensorSets:
    """Candidate sets whose operations are done on the device of tensors; see `CandidateSets`."""

    def __init__(self, sets: CandidateSets, device: Any) -> None:
        torch = import_module("torch")
        self.sizes, self.starts, self.indices = (
            torch.tensor(values, dtype=torch.int64, device=device)
            for values in (sets.sizes, sets.indptr[:-1], sets.indices)
        )
        self.rows = torch.repeat_interleave(self.sizes)

    def spread(self, values: Values) -> Values:
        """Repeat the value of each example for all of its candidates."""
        return values[self.rows]

    def row_sums(self, values: Values) -> Values:
        """Sum the values of the candidates of each example."""
        return values.new_zeros(len(self.sizes)).index_add_(0, self.rows, values)

    def row_max(self, values: Values) -> Values:
        """Return the largest value among the candidates of each example."""
        zeros = values.new_zeros(len(self.sizes))
        return zeros.scatter_reduce_(0, self.rows, values, "amax", include_self=False)

    def row_softmax(self, values: Values) -> Values:
        """Compute the softmax of the values of each example."""
        scaled = (values - self.spread(self.row_max(values))).exp()
        return scaled / self.spread(self.row_sums(scaled))


@dataclass(frozen=True)
class TensorBlock(Block):
    """A block of examples whose features and weights are tensors; see `Block`."""

    @cached_property
    def candidates(self) -> TensorSets:
        """The candidate sets, for operations on values where the block is."""
        return TensorSets(self.sets, self.weights.device)

    @cached_property
    def _by_class(self) -> tuple[Values, Values]:
        """The order of the entries by class, and their classes and examples in this order."""
        classes, rows = self.candidates.indices, self.candidates.rows
        order = classes.argsort(stable=True)
        return order, import_module("torch").stack([classes[order], rows[order]])

    @cached_property
    def pairs(self) -> tuple[Values, Values]:
        """All pairs of different candidates of an example: an entry, and the class of the other."""
        torch, sets = import_module("torch"), self.candidates
        sizes, firsts = sets.spread(sets.sizes), sets.spread(sets.starts)
        entries = torch.repeat_interleave(sizes)
        before = (sizes.cumsum(0) - sizes)[entries]
        others = firsts[entries] + torch.arange(len(entries), device=entries.device) - before
        different = entries != others
        return entries[different], sets.indices[others[different]]

    def local(self, values: Values) -> Values:
        """Bring values to the device: integers, or double precision."""
        torch = import_module("torch")
        integers = getattr(values, "dtype", None) in (np.int32, np.int64)
        dtype = torch.int64 if integers else torch.float64
        return torch.as_tensor(values, dtype=dtype, device=self.weights.device)

    def products(self, values: Values) -> Values:
        """Multiply the transposed matrix of entries with the features: (q, m)."""
        torch, (order, places) = import_module("torch"), self._by_class
        matrix = torch.sparse_coo_tensor(
            places, values[order], self.shape[::-1], is_coalesced=True, check_invariants=False
        )
        return torch.sparse.mm(matrix, as_float64(self.Z))

    def at(self, Z: Matrix, coefficients: Values) -> Values:
        """Compute the entries of a product of features and coefficients, (n, m) times (m, q)."""
        columns = self.local(coefficients).T.contiguous()
        size = max(1, LIMITS.tensor_block_numbers // len(coefficients))
        sets = self.candidates
        pairs = zip(sets.rows.split(size), sets.indices.split(size), strict=True)
        parts = [(as_float64(Z[rows]) * columns[classes]).sum(1) for rows, classes in pairs]
        return import_module("torch").cat(parts)


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

    def _results(
        self, function: BlockFunction, parts: tuple[Parts, ...], constants: dict[str, Any]
    ) -> Iterable[Any]:
        items = zip(self.blocks, *parts, strict=True)
        first = self.blocks[0]
        if isinstance(first, TensorBlock):  # bring arrays to the device, once for all blocks
            constants = {
                name: first.local(value) if isinstance(value, np.ndarray) else value
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
        return LocalBlocks(self.map(Block.mapped, features=features, keep=keep))

    def sample(self, rows: NDArray[np.intp], *parts: Parts) -> tuple[Block, list[Values]]:
        """Return a block in memory of some rows, in ascending order, and their values."""
        wanted = positions_in(rows, self.starts)
        items = zip(self.blocks, wanted, *parts, strict=True)
        return stacked([block.sample(here, *values) for block, here, *values in items])

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
        return [block.local(part) for block, part in pairs]

    def _cut(self, values: NDArray[Any]) -> Parts:
        ends = np.cumsum([len(block.sets.indices) for block in self.blocks])
        return np.split(values, ends[:-1])


def _is_vector(values: object, length: int) -> bool:
    return isinstance(values, np.ndarray) and values.shape == (length,)


def in_blocks(examples: Examples, width: int) -> LocalBlocks:
    """Cut examples into blocks for a method that needs `width` numbers for each row."""
    X, n = examples.X, len(examples)
    kind, numbers = Block, LIMITS.block_numbers
    if is_tensor(X):
        kind, numbers = TensorBlock, LIMITS.tensor_block_numbers
        examples = replace(examples, weights=to_namespace(examples.weights, as_float64(X[:0])))
    size = max(4 * examples.sets.shape[1], numbers // width)
    rows = [slice(start, start + size) for start in range(0, n, size)]
    return LocalBlocks([kind.of(examples.take(part)) for part in rows])


def positions_in(rows: NDArray[np.intp], starts: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Turn sorted numbers of examples into positions within blocks that start at given ones."""
    ends = np.searchsorted(rows, starts)
    return [rows[a:b] - start for a, b, start in zip(ends[:-1], ends[1:], starts, strict=False)]


def stacked(taken: Sequence[tuple[Block, list[Values]]]) -> tuple[Block, list[Values]]:
    """Put blocks, and values of theirs, together in memory."""
    blocks = [block for block, _ in taken]
    whole = {name: _concatenated([getattr(block, name) for block in blocks]) for name in BY_ROW}
    parts = zip(*[values for _, values in taken], strict=True)
    return Block(**whole, features=blocks[0].features), [_concatenated(part) for part in parts]


def _concatenated(parts: Sequence[Any]) -> Any:
    if any(part is None for part in parts):
        return None
    if isinstance(parts[0], CandidateSets):
        return CandidateSets.concatenate(parts)
    arrays: list[Any] = [as_numpy(part) for part in parts]
    some_sparse = any(map(is_sparse, arrays))
    return sparse.vstack(arrays, format="csr") if some_sparse else np.concatenate(arrays)


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
