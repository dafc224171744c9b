"""The record that methods learn from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from .candidates import CandidateSets

__all__ = ["Examples", "Features"]

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
    """

    X: Features
    sets: CandidateSets
    weights: NDArray[np.float64]
    groups: NDArray[np.intp] | None = None

    def __len__(self) -> int:
        return len(self.sets)

    def take(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> Examples:
        """Return the examples of some rows, given by a mask or by their positions."""
        groups = None if self.groups is None else self.groups[rows]
        X = _safe_indexing(self.X, rows)
        return Examples(X, self.sets[rows], self.weights[rows], groups)
