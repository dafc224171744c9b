"""Examples in many blocks on this computer: arrays on its threads, tensors on their device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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

from .tensors import TensorBlock

__all__ = ["LocalBlocks", "added", "in_blocks", "positions_in", "stacked"]

Parts = list[Values]
"""The values of each block."""


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
    """Add up arrays, or tuples of arrays, in double precision and in their order."""
    total: list[NDArray[np.float64]] | None = None
    several = False
    for result in results:
        several = isinstance(result, tuple)
        terms = [as_numpy(term) for term in (result if several else (result,))]
        if total is None:
            total = [term.astype(np.float64) for term in terms]
        else:
            for sum_, term in zip(total, terms, strict=True):
                sum_ += term
    assert total is not None
    return tuple(total) if several else total[0]
