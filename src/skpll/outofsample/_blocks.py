"""Examples in blocks: all that a loop asks of them are sums, and values that stay with their rows.

A *part* is a list with one entry for each block, such as the confidences in its candidates. Who
works with parts does not look into them, so that blocks may be in memory, on a graphics processor
or on the workers of a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from itertools import chain, islice
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skpll._threads import threaded
from skpll.candidates import CandidateSets
from skpll.engine.arrays import is_sparse

from ._segments import Segments, as_numpy, double, is_tensor, like, segments

__all__ = [
    "Block",
    "Blocks",
    "LocalBlocks",
    "Parts",
    "added",
    "in_blocks",
    "places_in",
    "rows_of",
    "rows_of_pieces",
    "sum_of_pieces",
    "with_features",
]

Function = TypeVar("Function", bound=Callable[..., Any])
Parts = list[Any]

needs_features: set[Callable[..., Any]] = set()
"""The functions of blocks that look at features: the others can do without loading them."""


def on_features(function: Function) -> Function:
    """Declare that a function of a block looks at its features."""
    needs_features.add(function)
    return function


_NUMBERS = 2**22
"""Numbers in a block of features, or in a piece of a larger one: few enough for the caches of a
processor to be of use."""

_TENSOR_NUMBERS = 2**26
"""The same for tensors: enough to keep a graphics processor busy."""


@dataclass(frozen=True)
class Block:
    """Some of the examples.

    Parameters
    ----------
    X : array, tensor or CSR matrix of shape (n, d)
        Their features.
    sets : CandidateSets
        Their candidates.
    weights : array or tensor of shape (n,)
        How much each counts.
    features : callable or None
        From `X` to the features that a regression is made on.
    given : CandidateSets or None
        The candidates that were given, where `sets` holds more.
    in_pieces : bool
        Whether it may be so large that there is no room for a copy of it.
    """

    X: Any
    sets: CandidateSets
    weights: Any
    features: Callable[[Any], Any] | None = None
    given: CandidateSets | None = None
    in_pieces: bool = False

    @cached_property
    def segments(self) -> Segments:
        """Where the candidates are."""
        return segments(self.sets, self.X)

    @property
    def Z(self) -> Any:
        """The features that a regression is made on."""
        return self.X if self.features is None else self.features(self.X)

    @cached_property
    def inside(self) -> NDArray[np.bool_] | None:
        """Which of the candidates were given, where others have been added."""
        return None if self.given is None else np.asarray(self.given).ravel() > 0

    def on_entries(self, values: Any, outside: float = 0.0) -> Any:
        """Bring one value for each candidate that was given to all entries."""
        if self.inside is not None:
            everywhere = np.full(len(self.inside), outside)
            everywhere[self.inside] = values
            values = everywhere
        return self.segments.entries(values)

    @property
    def importance(self) -> Any:
        """How much the example of each candidate counts."""
        return self.segments.spread(self.weights)

    def pieces(self, *parts: Any) -> Iterator[tuple[Any, ...]]:
        """Cut a block into pieces that take little memory, and its parts with it."""
        n, size = len(self.sets), max(1, _NUMBERS // self.X.shape[1])
        if not self.in_pieces or n <= size or self.given is not None:
            yield self, *parts
            return
        for start in range(0, n, size):
            rows = slice(start, start + size)
            entries = slice(*self.sets.indptr[[start, min(start + size, n)]])
            piece = replace(self, X=self.X[rows], sets=self.sets[rows], weights=self.weights[rows])
            yield piece, *(part[rows if len(part) == n else entries] for part in parts)


def sum_of_pieces(function: Function) -> Function:
    """Let a function that sums over a block see a piece of it at a time."""

    @wraps(function)
    def over_pieces(block: Block, *parts: Any, **constants: Any) -> Any:
        results = (function(*piece, **constants) for piece in block.pieces(*parts))
        first = next(results)
        rest = list(islice(results, 1))
        return added(chain([first], rest, results)) if rest else first

    return over_pieces  # type: ignore[return-value]


def rows_of_pieces(function: Function) -> Function:
    """Let a function that gives a vector of rows or entries see a piece of a block at a time."""

    @wraps(function)
    def over_pieces(block: Block, *parts: Any, **constants: Any) -> Any:
        results = [function(*piece, **constants) for piece in block.pieces(*parts)]
        return results[0] if len(results) == 1 else np.concatenate(results)

    return over_pieces  # type: ignore[return-value]


class Blocks(Protocol):
    """Examples in blocks, wherever they are."""

    shape: tuple[int, int]
    """Number of examples and of classes."""

    n_features: int
    """Number of raw features."""

    def map(self, function: Callable[..., Any], *parts: Parts, **constants: Any) -> Parts:
        """Apply a function to every block and its parts; results stay where the block is."""
        ...

    def sum(self, function: Callable[..., Any], *parts: Parts, **constants: Any) -> Any:
        """Add up what a function, as above, gives: an array, or several in a tuple."""
        ...

    def changed(self, function: Callable[..., Block], **constants: Any) -> Blocks:
        """Give the blocks that a function makes of these."""
        ...

    def collect(self, parts: Parts) -> list[Any]:
        """Bring parts to who asks, as NumPy arrays."""
        ...

    def places(self, rows: NDArray[np.intp]) -> Parts:
        """Turn sorted numbers of examples into numbers within each block."""
        ...


class LocalBlocks:
    """Blocks on this computer.

    Parameters
    ----------
    blocks : sequence of Block
        The blocks.
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = list(blocks)
        sizes = [len(block.sets) for block in self.blocks]
        self.starts = np.concatenate([[0], np.cumsum(sizes)])
        self.shape = (int(self.starts[-1]), self.blocks[0].sets.shape[1])
        self.n_features = self.blocks[0].X.shape[1]

    def _results(
        self, function: Callable[..., Any], parts: tuple[Parts, ...], constants: dict[str, Any]
    ) -> Iterable[Any]:
        items = zip(self.blocks, *parts, strict=True)
        if is_tensor(self.blocks[0].X):
            there = self.blocks[0].segments.entries  # brings arrays to the device, once for all
            constants = {
                name: there(value) if isinstance(value, np.ndarray) else value
                for name, value in constants.items()
            }
        if len(self.blocks) == 1 or is_tensor(self.blocks[0].X):
            return (function(*item, **constants) for item in items)
        return threaded(lambda item: function(*item, **constants), items)

    def map(self, function: Callable[..., Any], *parts: Parts, **constants: Any) -> Parts:
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

    def sum(self, function: Callable[..., Any], *parts: Parts, **constants: Any) -> Any:
        """Add up what a function gives."""
        return added(self._results(function, parts, constants))

    def changed(self, function: Callable[..., Block], **constants: Any) -> LocalBlocks:
        """Give the blocks that a function makes of these."""
        return LocalBlocks(self.map(function, **constants))

    def collect(self, parts: Parts) -> list[Any]:
        """Bring parts to who asks."""
        return [as_numpy(part) for part in parts]

    def places(self, rows: NDArray[np.intp]) -> Parts:
        """Turn sorted numbers of examples into numbers within each block."""
        return places_in(rows, self.starts)

    def split(self, values: NDArray[Any]) -> Parts:
        """Turn one value for each candidate into parts."""
        pairs = zip(self.blocks, self._cut(values), strict=True)
        return [block.segments.entries(part) for block, part in pairs]

    def _cut(self, values: NDArray[Any]) -> Parts:
        ends = np.cumsum([len(block.sets.indices) for block in self.blocks])
        return np.split(values, ends[:-1])

    def joined(self, parts: Parts) -> NDArray[np.float64]:
        """Turn parts into one value for each candidate."""
        if len(parts) == 1:
            return as_numpy(parts[0])
        whole = getattr(parts[0], "base", None)
        if _is_vector(whole, sum(map(len, parts))) and all(part.base is whole for part in parts):
            return np.asarray(whole)
        return np.concatenate([as_numpy(part) for part in parts])


def _is_vector(values: Any, length: int) -> bool:
    return isinstance(values, np.ndarray) and values.shape == (length,)


def in_blocks(X: Any, sets: CandidateSets, weights: Any, width: int | None = None) -> LocalBlocks:
    """Cut examples into blocks, or make one of them.

    Parameters
    ----------
    X : array, tensor or CSR matrix of shape (n, d)
        Their features.
    sets : CandidateSets
        Their candidates.
    weights : array or tensor of shape (n,)
        How much each counts.
    width : int, optional
        The number of features that a block is to hold for each row; one block without.
    """
    n = len(sets)
    numbers = _NUMBERS
    if is_tensor(X):
        weights, numbers = like(weights, double(X[:0])), _TENSOR_NUMBERS
    size = n if width is None else max(4 * sets.shape[1], numbers // width)
    return LocalBlocks(
        [
            Block(
                X[start : start + size], sets[start : start + size], weights[start : start + size]
            )
            for start in range(0, n, size)
        ]
        if size < n
        else [Block(X, sets, weights)]
    )


def rows_of(blocks: Blocks, rows: NDArray[np.intp]) -> Any:
    """Bring the features of some examples, whose numbers are sorted."""
    picked = blocks.collect(blocks.map(_picked, blocks.places(rows)))
    if is_sparse(picked[0]):
        return sparse.vstack(picked, format="csr")
    return picked[0] if len(picked) == 1 else np.concatenate(picked)


@on_features
def _picked(block: Block, rows: NDArray[np.intp]) -> Any:
    return block.X[rows]


def places_in(rows: NDArray[np.intp], starts: NDArray[np.intp]) -> Parts:
    """Turn sorted numbers of examples into numbers within blocks that start at given ones."""
    ends = np.searchsorted(rows, starts)
    return [rows[a:b] - start for a, b, start in zip(ends[:-1], ends[1:], starts, strict=False)]


def added(results: Iterable[Any]) -> Any:
    """Add up arrays, or tuples of arrays, in double precision and in their order."""
    total: Any = None
    for result in results:
        several = isinstance(result, tuple)
        terms = [as_numpy(term) for term in (result if several else (result,))]
        if total is None:
            total = [term.astype(np.float64) for term in terms]
        else:
            for sum_, term in zip(total, terms, strict=True):
                sum_ += term
    return tuple(total) if several else total[0]


@on_features
def with_features(block: Block, *, features: Callable[[Any], Any], keep: bool) -> Block:
    """Map the features of a block: now, or whenever they are looked at."""
    if keep:
        mapped = [features(piece.X) for (piece,) in block.pieces()]
        return replace(block, X=mapped[0] if len(mapped) == 1 else np.concatenate(mapped))
    return replace(block, features=features)
