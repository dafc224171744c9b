"""The record that methods learn from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing, check_consistent_length

from ._labels import is_missing
from ._typing import Array
from .candidates import CandidateSets

__all__ = ["Examples", "Features", "are_missing", "group_numbers"]

Features: TypeAlias = Any
"""Validated features in rows: an array, a CSR matrix, a tensor or a data frame."""


@dataclass(frozen=True)
class Examples:
    """Training examples: features, candidate sets, weights and, where given, groups.

    Parameters
    ----------
    X : array, tensor, data frame or CSR matrix of shape (n, d)
        The features.
    sets : CandidateSets
        The candidate set of each example.
    weights : array of shape (n,)
        The weight of each example.
    groups : int array of shape (n,), optional
        The group of each example.
    copies : int array of shape (n,), optional
        The same number for near copies of an example.
    """

    X: Features
    sets: CandidateSets
    weights: NDArray[np.float64]
    groups: NDArray[np.intp] | None = None
    copies: NDArray[np.intp] | None = None

    def __len__(self) -> int:
        return len(self.sets)

    def take(self, rows: NDArray[np.bool_] | NDArray[np.intp] | slice) -> Self:
        """Return the examples of some rows, given by a mask, by their positions, or by a slice."""
        chosen = {"X": _rows_of(self.X, rows)}
        for name in ("sets", "weights", "groups", "copies", "given"):
            if getattr(self, name, None) is not None:
                chosen[name] = getattr(self, name)[rows]
        return replace(self, **chosen)


def _rows_of(X: Features, rows: NDArray[np.bool_] | NDArray[np.intp] | slice) -> Features:
    """Return some rows of features, also where scikit-learn dispatches to the library of arrays.

    Versions before 1.9 may take a mask for numbers of rows then, and index no tensor with an array.
    """
    if isinstance(rows, slice):
        return X[rows]
    positions = np.flatnonzero(rows) if rows.dtype == bool else rows
    return X[positions] if hasattr(X, "index_select") else _safe_indexing(X, positions)


def group_numbers(
    groups: ArrayLike, sets: CandidateSets, argument: str = "groups"
) -> NDArray[np.intp]:
    """Return the group of each example as a number, or raise ValueError for bad groups."""
    values = np.asarray(groups)
    if values.ndim != 1:
        raise ValueError(f"{argument}: pass one group per example, in one dimension.")
    check_consistent_length(sets, values)
    missing = are_missing(values)
    if missing.any():
        raise ValueError(
            f"{argument}: row {int(np.argmax(missing))} has no group; give every example one, or "
            f"leave {argument} out."
        )
    try:
        return np.unique(values, return_inverse=True)[1]
    except TypeError:
        raise ValueError(f"{argument}: values of different types; use one type for all.") from None


def are_missing(values: Array) -> NDArray[np.bool_]:
    """Return which values are None, NaN or what pandas has for them."""
    return np.fromiter(map(is_missing, values.tolist()), dtype=bool, count=len(values))
