"""PL-LOO on Dask collections: blocks are their partitions, and stay with the workers.

Blocks are tasks of a graph, not data that was sent around: if a worker is lost, its blocks and what
had become of them are computed again. To the client come sums, a sample of the rows for the choice
of parameters, and the landmarks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import validate_data

from skpll._labels import as_objects
from skpll._rows import row_argmax, row_normalized
from skpll.candidates import CandidateSets, as_candidates

from ._blocks import Block, Parts, added, needs_features, places_in, rows_of
from ._fitting import MOST_ROWS
from ._noise import missing, on_given
from ._ridge import Examples, is_large

__all__ = ["DaskBlocks", "fit_on_cluster", "is_dask", "predict_on_cluster"]

_AT_ONCE = 8
"""Results that are added up in one task."""


def _dask() -> Any:
    return import_module("dask")


def _dask_array() -> Any:
    return import_module("dask.array")


def is_dask(X: Any) -> bool:
    """Whether something is a Dask array or data frame."""
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")


class DaskBlocks:
    """Blocks that are tasks of a Dask graph.

    Parameters
    ----------
    features : sequence of Delayed
        The features of each block. They are read whenever they are needed, by the task that needs
        them: nobody keeps them.
    light : sequence of Delayed
        The blocks without features, which the workers keep.
    starts : int array
        Where each block starts and the last one ends.
    n_classes : int
        Number of classes.
    n_features : int
        Number of raw features.
    changes : sequence of pairs
        What is done to a block with features first: functions and their arguments.
    """

    def __init__(
        self,
        features: Sequence[Any],
        light: Sequence[Any],
        starts: NDArray[np.intp],
        n_classes: int,
        n_features: int,
        changes: Sequence[tuple[Callable[..., Block], dict[str, Any]]] = (),
    ) -> None:
        self.features, self.light, self.starts = list(features), list(light), starts
        self.shape, self.n_features = (int(starts[-1]), n_classes), n_features
        self.changes = list(changes)

    def _tasks(
        self, function: Callable[..., Any], parts: tuple[Parts, ...], constants: dict[str, Any]
    ) -> list[Any]:
        shared = {name: _dask().delayed(value, traverse=False) for name, value in constants.items()}
        if function not in needs_features:
            task = _dask().delayed(function, pure=False)
            return [task(*item, **shared) for item in zip(self.light, *parts, strict=True)]
        task = _dask().delayed(_with_rows, pure=False)
        changes = _dask().delayed(self.changes, traverse=False)
        items = zip(self.light, self.features, *parts, strict=True)
        return [task(function, changes, *item, **shared) for item in items]

    def map(self, function: Callable[..., Any], *parts: Parts, **constants: Any) -> Parts:
        """Apply a function to every block and its parts; the workers keep the results."""
        return list(_dask().persist(*self._tasks(function, parts, constants)))

    def sum(self, function: Callable[..., Any], *parts: Parts, **constants: Any) -> Any:
        """Add up what a function gives, where the blocks are as far as possible."""
        terms = self._tasks(function, parts, constants)
        add = _dask().delayed(added, pure=False)
        while True:
            terms = [add(terms[i : i + _AT_ONCE]) for i in range(0, len(terms), _AT_ONCE)]
            if len(terms) == 1:
                return terms[0].compute()

    def changed(self, function: Callable[..., Block], **constants: Any) -> DaskBlocks:
        """Give the blocks that a function makes of these."""
        light, changes = self.light, self.changes
        if function in needs_features:
            changes = [*changes, (function, constants)]
        else:
            light = self.map(function, **constants)
        return DaskBlocks(
            self.features, light, self.starts, self.shape[1], self.n_features, changes
        )

    def collect(self, parts: Parts) -> list[Any]:
        """Bring parts to the client."""
        return list(_dask().compute(*parts))

    def places(self, rows: NDArray[np.intp]) -> Parts:
        """Turn sorted numbers of examples into numbers within each block."""
        return places_in(rows, self.starts)


def fit_on_cluster(model: Any, X: Any, y: Any, sample_weight: Any, groups: Any) -> Any:
    """Fit PL-LOO to the rows of a Dask array or data frame, where they are.

    Few rows are brought to the client and fitted there, since parameters, duplicates and exact
    kernels need all of them in one place.
    """
    model._validate_params()
    if groups is not None or model.group_by is not None:
        raise ValueError("groups: examples on a cluster have none; leave groups and group_by out.")
    if not is_dask(y) or not (sample_weight is None or is_dask(sample_weight)):
        raise TypeError(
            "y: X is a Dask collection; give candidates, and weights, as Dask collections with the "
            "same partitions."
        )
    features, sets, weights = _aligned(X, y, sample_weight)
    summaries = _dask().compute(*[_dask().delayed(_summary)(part) for part in sets])
    starts = np.concatenate([[0], np.cumsum([size for size, _, _ in summaries])])
    if not is_large(int(starts[-1]), model.n_landmarks):
        here = [None if each is None else each.compute() for each in (X, y, sample_weight)]
        return model.fit(*here)
    classes = as_candidates([labels for _, labels, _ in summaries]).classes
    seen = as_candidates([labels for _, _, labels in summaries]).classes
    empty = X._meta if hasattr(X, "columns") else np.empty((0, X.shape[1]))
    validate_data(model, empty, skip_check_array=True)
    model.classes_, model._seen = classes, np.flatnonzero(np.isin(classes, seen))

    mean = 1.0
    if sample_weight is not None:
        mean = (
            sum(_dask().compute(*[_dask().delayed(np.sum)(part) for part in weights])) / starts[-1]
        )
    names = _dask().delayed((classes, model._seen), traverse=False)
    light = _dask().persist(
        *[
            _dask().delayed(_light)(part, names, weight, mean)
            for part, weight in zip(sets, weights, strict=True)
        ]
    )
    blocks = DaskBlocks(features, light, starts, len(model._seen), model.n_features_in_)

    random_state = check_random_state(model.random_state)
    rows = np.sort(random_state.choice(int(starts[-1]), MOST_ROWS, replace=False))
    picked = blocks.collect(blocks.map(_picked_sets, blocks.places(rows)))
    sample = Examples(
        rows_of(blocks, rows),
        CandidateSets.concatenate([part for part, _ in picked]),
        np.concatenate([part for _, part in picked]),
        None,
    )
    solution = model._disambiguate(None, blocks, sample, random_state)
    confidences = model._calibrate_by(solution, sample, rows)
    _keep_results(model, solution, confidences)
    return model


def predict_on_cluster(predict: Callable[[Any], Any], X: Any, dtype: Any, *width: int) -> Any:
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


def _aligned(X: Any, y: Any, sample_weight: Any) -> tuple[Parts, Parts, Parts]:
    """Give the partitions of features, candidates and weights."""
    others = [y] if sample_weight is None else [y, sample_weight]
    if all(hasattr(each, "map_partitions") for each in (X, *others)):
        # Columns that are read apart from each other may be cut into other partitions.
        names = [f"{place} beside the features" for place in range(len(others))]
        columns = list(X.columns)
        wholes = _partitions(X.assign(**dict(zip(names, others, strict=True))))
        pick = _dask().delayed(_column)
        parts = [[pick(whole, key) for whole in wholes] for key in (columns, *names)]
    else:
        parts = [_partitions(each) for each in (X, *others)]
    if len({len(part) for part in parts}) > 1:
        raise ValueError(
            f"y: {len(parts[1])} partitions for the {len(parts[0])} of X; give both the same."
        )
    features, sets, *weights = parts
    return features, sets, weights[0] if weights else [None] * len(sets)


def _column(frame: Any, key: Any) -> Any:
    return frame[key]


def _partitions(collection: Any) -> list[Any]:
    """Give the partitions of an array or data frame, all columns of a row in one."""
    if hasattr(collection, "rechunk") and collection.ndim == 2:
        collection = collection.rechunk({1: -1})
    return list(np.ravel(np.asarray(collection.to_delayed(), dtype=object)))


def _joined(parts: Parts, sizes: Any, dtype: Any, *width: int, meta: Any = None) -> Any:
    """Make a Dask array of the rows of all blocks."""
    return _dask_array().concatenate(
        [
            _dask_array().from_delayed(part, (size, *width), dtype=dtype, meta=meta)
            for part, size in zip(parts, sizes, strict=True)
        ]
    )


def _summary(part: Any) -> tuple[int, list[Any], list[Any]]:
    """Count the examples of a partition, and give all classes and those that are candidates."""
    sets = as_candidates(part)
    used = sets.classes[np.unique(sets.indices)]
    return len(sets), as_objects(sets.classes), as_objects(used)


def _light(part: Any, names: tuple[NDArray[Any], NDArray[Any]], weights: Any, mean: float) -> Block:
    """Make a block without features of the candidates of a partition."""
    classes, seen = names
    sets = as_candidates(part, classes=classes)
    places = np.full(len(classes), -1, dtype=np.int32)
    places[seen] = np.arange(len(seen), dtype=np.int32)
    sets = CandidateSets._trusted(sets.indptr, places[sets.indices], classes[seen], sets.weights)
    counts = np.ones(len(sets)) if weights is None else np.asarray(weights, dtype=np.float64)
    if len(counts) != len(sets) or not (np.isfinite(counts) & (counts > 0)).all():
        raise ValueError("sample_weight: give each example on a cluster one positive weight.")
    return Block(None, sets, counts / mean, in_pieces=True)


def _with_rows(
    function: Callable[..., Any],
    changes: Sequence[tuple[Callable[..., Block], dict[str, Any]]],
    block: Block,
    part: Any,
    *parts: Any,
    **constants: Any,
) -> Any:
    """Give a block its features, change it, and apply a function to it and its parts."""
    X = check_array(part, dtype=[np.float64, np.float32], order="C")
    if len(X) != len(block.sets):
        raise ValueError(
            f"y: candidate labels of {len(block.sets)} examples for {len(X)} rows of X in a "
            "partition; give both the same partitions."
        )
    block = replace(block, X=X)
    for change, arguments in changes:
        block = change(block, **arguments)
    return function(block, *parts, **constants)


def _picked_sets(block: Block, rows: NDArray[np.intp]) -> tuple[CandidateSets, Any]:
    return block.sets[rows], block.weights[rows]


def _keep_results(model: Any, solution: Any, confidences: Parts) -> None:
    """Keep the labels and confidences of all examples as Dask arrays."""
    blocks: DaskBlocks = solution.loop.blocks
    sizes, q = np.diff(blocks.starts), len(model.classes_)
    model.noise_ = solution.evidence.share
    model.missing_ = _dask_array().zeros(int(blocks.starts[-1]), chunks=(tuple(sizes),))
    if solution.recipe.noise:
        model.missing_ = _joined(blocks.map(missing, confidences), sizes, np.float64)
        confidences = blocks.map(on_given, confidences)
    names = (model.classes_, model._seen)
    labels = blocks.map(_labels, confidences, names=names)
    model.transduction_ = _joined(labels, sizes, model.classes_.dtype)
    rows = blocks.map(_confidence_rows, confidences, names=names)
    model.label_distributions_ = _joined(rows, sizes, np.float64, q, meta=sparse.csr_array((0, 0)))


def _labels(block: Block, confidences: Any, *, names: Any) -> NDArray[Any]:
    classes, seen = names
    sets = block.sets if block.given is None else block.given
    labels: NDArray[Any] = classes[seen[sets.indices[row_argmax(sets, confidences)]]]
    return labels


def _confidence_rows(block: Block, confidences: Any, *, names: Any) -> sparse.csr_array:
    classes, seen = names
    sets = block.sets if block.given is None else block.given
    values = row_normalized(sets, confidences)
    return sparse.csr_array(
        (values, seen[sets.indices], sets.indptr), shape=(len(sets), len(classes))
    )
