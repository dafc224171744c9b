"""PL-LOO on Dask collections: blocks are their partitions, and stay with the workers.

Blocks are tasks of a graph, not data that was sent around: if a worker is lost, its blocks and what
was computed from them are computed again. To the client come sums, a sample of the rows for the
choice of parameters, and the landmarks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array

from skpll._errors import ArgumentError
from skpll._labels import as_objects
from skpll.candidates import CandidateSets, as_candidates
from skpll.engine.arrays import Matrix
from skpll.engine.blocks import Block, BlockFunction, Values
from skpll.engine.limits import LIMITS

from .blocks import added, positions_in, stacked

__all__ = ["Cluster", "DaskBlocks", "is_dask", "on_partitions"]

Collection: TypeAlias = Any
"""A Dask array or data frame."""

Delayed: TypeAlias = Any
"""A task of a Dask graph."""

TERMS_PER_TASK = 8
"""Results that are added up in one task."""


def _dask() -> Any:
    return import_module("dask")


def _dask_array() -> Any:
    return import_module("dask.array")


def is_dask(X: object) -> bool:
    """Return True for a Dask array or data frame."""
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")


@dataclass(frozen=True)
class DaskBlocks:
    """A store of blocks that are tasks of a Dask graph.

    Parameters
    ----------
    rows : list of Delayed
        The features of each block. They are read by each task that needs them, and not kept.
    light : list of Delayed
        The blocks without features, which the workers keep.
    starts : int array
        Where each block starts and the last one ends.
    width : tuple of int
        The number of classes and of raw features.
    features : callable or None
        What the features of a block are mapped with, when they are read.
    """

    rows: list[Delayed]
    light: list[Delayed]
    starts: NDArray[np.intp]
    width: tuple[int, int]
    features: Callable[[Matrix], Matrix] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """The number of examples and of classes."""
        return int(self.starts[-1]), self.width[0]

    @property
    def n_features(self) -> int:
        """The number of raw features."""
        return self.width[1]

    def map(
        self, function: BlockFunction, *parts: list[Delayed], **constants: Any
    ) -> list[Delayed]:
        """Apply a function to every block and its parts; the workers keep the results."""
        return list(_dask().persist(*self._tasks(_concatenated, function, parts, constants)))

    def sum(self, function: BlockFunction, *parts: list[Delayed], **constants: Any) -> Any:
        """Add up the results of a function, where the blocks are as far as possible."""
        terms = self._tasks(added, function, parts, constants)
        add = _dask().delayed(added, pure=False)
        while True:
            starts = range(0, len(terms), TERMS_PER_TASK)
            terms = [add(terms[start : start + TERMS_PER_TASK]) for start in starts]
            if len(terms) == 1:
                return terms[0].compute()

    def _tasks(
        self,
        combine: Callable[[Iterator[Any]], Any],
        function: BlockFunction,
        parts: tuple[list[Delayed], ...],
        constants: dict[str, Any],
    ) -> list[Delayed]:
        shared = {name: _dask().delayed(value, traverse=False) for name, value in constants.items()}
        if not hasattr(function, "reads_features"):
            task = _dask().delayed(function, pure=False)
            return [task(*item, **shared) for item in zip(self.light, *parts, strict=True)]
        task = _dask().delayed(_on_pieces, pure=False)
        how = _dask().delayed(_Reading(combine, function, self.features), traverse=False)
        items = zip(self.light, self.rows, *parts, strict=True)
        return [task(how, *item, **shared) for item in items]

    def changed(self, function: Callable[[Block], Block]) -> DaskBlocks:
        """Return the store of the blocks that a function, which reads no features, returns."""
        return replace(self, light=self.map(function))

    def mapped(self, features: Callable[[Matrix], Matrix], keep: bool) -> DaskBlocks:
        """Return the store with mapped features, which are computed when needed."""
        del keep
        return replace(self, features=features)

    def sample(self, rows: NDArray[np.intp], *parts: list[Delayed]) -> tuple[Block, list[Values]]:
        """Return a block on the client of some rows, in ascending order, and their values."""
        task = _dask().delayed(_taken, pure=False)
        features = _dask().delayed(self.features, traverse=False)
        items = zip(self.light, self.rows, positions_in(rows, self.starts), *parts, strict=True)
        return stacked(_dask().compute(*[task(features, *item) for item in items]))

    def joined(self, part: list[Delayed]) -> Collection:
        """Return one value for each example as a Dask array."""
        return _joined(part, np.diff(self.starts), np.float64)

    def split(self, values: NDArray[Any]) -> list[Delayed]:
        """Refuse: no array with a value for each candidate is on the client."""
        raise NotImplementedError


@dataclass(frozen=True)
class _Reading:
    """How a function is applied to the pieces of a block with features.

    No tuple, because Dask takes a tuple that starts with a callable for a task.
    """

    combine: Callable[[Iterator[Any]], Any]
    function: BlockFunction
    features: Callable[[Matrix], Matrix] | None


def _on_pieces(how: _Reading, block: Block, rows: Matrix, *parts: Values, **constants: Any) -> Any:
    """Read the features of a block, and apply a function to a piece of it at a time."""
    X = _checked_rows(rows, len(block.sets))
    block = replace(block, X=X, features=how.features)
    return how.combine(
        how.function(piece, *values, **constants) for piece, values in _pieces(block, parts)
    )


def _checked_rows(rows: Matrix, n: int) -> NDArray[Any]:
    X = check_array(rows, dtype=[np.float64, np.float32], order="C")
    if len(X) != n:
        raise ArgumentError(
            "y",
            f"candidate labels of {n} examples for {len(X)} rows of X in a partition; give both "
            "the same partitions.",
        )
    return X


def _pieces(block: Block, parts: tuple[Values, ...]) -> Iterator[tuple[Block, Sequence[Values]]]:
    """Cut a block into pieces that take little memory, and its parts with it."""
    n, size = len(block), max(1, LIMITS.block_numbers // block.n_features)
    if n <= size or block.given is not None:
        yield block, parts
        return
    for start in range(0, n, size):
        rows = slice(start, start + size)
        entries = slice(*block.sets.indptr[[start, min(start + size, n)]])
        values = [part[rows if len(part) == n else entries] for part in parts]
        yield block.take(rows), values


def _taken(
    features: Callable[[Matrix], Matrix] | None,
    block: Block,
    rows: Matrix,
    wanted: NDArray[np.intp],
    *parts: Values,
) -> tuple[Block, list[Values]]:
    """Return the rows of a block that are wanted, with features."""
    X = _checked_rows(rows, len(block.sets))
    return replace(block, X=X, features=features).sample(wanted, *parts)


def _concatenated(results: Iterator[Any]) -> Any:
    pieces = list(results)
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def on_partitions(
    predict: Callable[[Matrix], Values], X: Collection, dtype: Any, *width: int
) -> Collection:
    """Apply a method of a fitted model to the partitions of a Dask array or data frame.

    Parameters
    ----------
    predict : callable
        From rows to predictions.
    X : Dask array or data frame
        The rows.
    dtype : dtype
        The type of the predictions.
    *width : int
        Number of columns of the predictions, if they have any.

    Returns
    -------
    predictions : Dask array
    """
    sizes = X.chunks[0] if hasattr(X, "chunks") else [np.nan] * X.npartitions
    task = _dask().delayed(predict, pure=False)
    return _joined([task(part) for part in _partitions(X)], sizes, dtype, *width)


class Cluster:
    """The examples of Dask collections.

    Parameters
    ----------
    X : Dask array or data frame
        The features.
    y : Dask collection or candidate sets
        The candidates: a collection with the partitions of X, or any format of
        `skpll.as_candidates` in memory.
    sample_weight : Dask collection, array or None
        The weights, in the same way.

    Attributes
    ----------
    classes : array
        All classes.
    seen : int array
        Those that are candidates of an example.
    starts : int array
        Where each partition starts and the last one ends.
    mean_weight : float
        The mean weight of an example.
    """

    def __init__(self, X: Collection, y: Collection, sample_weight: Collection) -> None:
        self.collections: tuple[Collection, ...] = X, y, sample_weight
        others = [y] if sample_weight is None else [y, sample_weight]
        sizes = None if all(map(is_dask, others)) else _sizes(X)
        self._rows, self._sets, *weights = _aligned(X, others, sizes)
        self._weights = weights[0] if weights else [None] * len(self._sets)
        summaries = _dask().compute(*[_dask().delayed(_summary)(part) for part in self._sets])
        self.starts = np.concatenate([[0], np.cumsum([size for size, _, _ in summaries])])
        self.classes = as_candidates([labels for _, labels, _ in summaries]).classes
        seen = as_candidates([labels for _, _, labels in summaries]).classes
        self.seen = np.flatnonzero(np.isin(self.classes, seen))
        self.mean_weight = 1.0

    def __len__(self) -> int:
        return int(self.starts[-1])

    def in_memory(self) -> list[Any]:
        """Bring features, candidates and weights to the client."""
        return [each.compute() if is_dask(each) else each for each in self.collections]

    def store(self, n_features: int) -> DaskBlocks:
        """Return the examples in blocks; their mean weight is one."""
        if self.collections[2] is not None:
            sums = _dask().compute(*[_dask().delayed(np.sum)(part) for part in self._weights])
            self.mean_weight = float(sum(sums) / len(self))
        mean = self.mean_weight
        names = _dask().delayed((self.classes, self.seen), traverse=False)
        pairs = zip(self._sets, self._weights, strict=True)
        light = _dask().persist(
            *[_dask().delayed(_light)(part, names, weight, mean) for part, weight in pairs]
        )
        return DaskBlocks(self._rows, list(light), self.starts, (len(self.seen), n_features))

    def results(
        self, store: DaskBlocks, confidences: list[Delayed]
    ) -> tuple[Collection, Collection]:
        """Return the labels and the confidences of all examples as Dask arrays."""
        names, sizes = (self.classes, self.seen), np.diff(self.starts)
        labels = _joined(store.map(_labels, confidences, names=names), sizes, self.classes.dtype)
        rows = store.map(_confidence_rows, confidences, names=names)
        empty, q = sparse.csr_array((0, 0)), len(self.classes)
        return labels, _joined(rows, sizes, np.float64, q, meta=empty)


def _sizes(X: Collection) -> list[int]:
    """Count the rows of the partitions of X."""
    if hasattr(X, "chunks") and not np.isnan(X.chunks[0]).any():
        return list(X.chunks[0])
    return list(_dask().compute(*[_dask().delayed(len)(part) for part in _partitions(X)]))


def _aligned(X: Collection, others: Sequence[Any], sizes: list[int] | None) -> list[list[Delayed]]:
    """Return the partitions of features, candidates and weights."""
    if all(hasattr(each, "map_partitions") for each in (X, *others)):
        # Columns that are read apart from each other may be cut into other partitions.
        names = [f"{place} beside the features" for place in range(len(others))]
        columns = list(X.columns)
        wholes = _partitions(X.assign(**dict(zip(names, others, strict=True))))
        pick = _dask().delayed(_column)
        return [[pick(whole, key) for whole in wholes] for key in (columns, *names)]
    parts = [_partitions(X)]
    for place, each in enumerate(others):
        if is_dask(each):
            parts.append(_partitions(each))
        else:
            assert sizes is not None
            whole = np.asarray(each, dtype=np.float64) if place else as_candidates(each)
            parts.append(_split(whole, sizes, "sample_weight" if place else "y"))
    if len({len(part) for part in parts}) > 1:
        raise ArgumentError(
            "y", f"{len(parts[1])} partitions for the {len(parts[0])} of X; give both the same."
        )
    return parts


def _split(whole: CandidateSets | NDArray[Any], sizes: list[int], argument: str) -> list[Delayed]:
    """Cut what is in memory by the partitions of X."""
    ends = np.cumsum([0, *sizes])
    if len(whole) != ends[-1]:
        raise ArgumentError(
            argument, f"{len(whole)} examples for the {ends[-1]} rows of X; give one for each row."
        )
    parts = [whole[start:end] for start, end in pairwise(ends)]
    return [_dask().delayed(part, traverse=False) for part in parts]


def _column(frame: Any, key: Any) -> Any:
    return frame[key]


def _partitions(collection: Collection) -> list[Delayed]:
    """Return the partitions of an array or data frame, all columns of a row in one."""
    if hasattr(collection, "rechunk") and collection.ndim == 2:
        collection = collection.rechunk({1: -1})
    return list(np.ravel(np.asarray(collection.to_delayed(), dtype=object)))


def _joined(
    parts: list[Delayed], sizes: Iterable[float], dtype: Any, *width: int, meta: Any = None
) -> Collection:
    """Return a Dask array of the rows of all blocks."""
    return _dask_array().concatenate(
        [
            _dask_array().from_delayed(part, (size, *width), dtype=dtype, meta=meta)
            for part, size in zip(parts, sizes, strict=True)
        ]
    )


def _summary(part: Any) -> tuple[int, list[Any], list[Any]]:
    """Count the examples of a partition, and list all classes and those that are candidates."""
    sets = as_candidates(part)
    used = sets.classes[np.unique(sets.indices)]
    return len(sets), as_objects(sets.classes), as_objects(used)


def _light(part: Any, names: tuple[NDArray[Any], NDArray[Any]], weights: Any, mean: float) -> Block:
    """Make a block without features from the candidates of a partition."""
    classes, seen = names
    sets = as_candidates(part, classes=classes)
    places = np.full(len(classes), -1, dtype=np.int32)
    places[seen] = np.arange(len(seen), dtype=np.int32)
    sets = CandidateSets._trusted(sets.indptr, places[sets.indices], classes[seen], sets.weights)
    counts = np.ones(len(sets)) if weights is None else np.asarray(weights, dtype=np.float64)
    if len(counts) != len(sets) or not (np.isfinite(counts) & (counts > 0)).all():
        raise ArgumentError("sample_weight", "give each example on a cluster one positive weight.")
    return Block(None, sets, counts / mean)


def _labels(
    block: Block, confidences: Values, *, names: tuple[NDArray[Any], NDArray[np.intp]]
) -> NDArray[Any]:
    classes, seen = names
    sets = block.sets_given
    labels: NDArray[Any] = classes[seen[sets.indices[sets.row_argmax(confidences)]]]
    return labels


def _confidence_rows(
    block: Block, confidences: Values, *, names: tuple[NDArray[Any], NDArray[np.intp]]
) -> sparse.csr_array:
    classes, seen = names
    sets = block.sets_given
    values = sets.row_normalized(confidences)
    shape = (len(sets), len(classes))
    return sparse.csr_array((values, seen[sets.indices], sets.indptr), shape=shape)
