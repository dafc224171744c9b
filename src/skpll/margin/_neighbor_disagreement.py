"""How far the neighbours of an example disagree with its label."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpll.candidates import CandidateSets
from skpll.neighbors.graph import NeighborSearch

__all__ = ["NeighborDisagreement"]

Floats = NDArray[np.float64]


class NeighborDisagreement:
    """A difficulty (see `skpll.pacing`): the share of the neighbours that have another label.

    Among examples with equally many such neighbours, those of less loss are easier.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        The examples.
    n_neighbors : int, default=10
        How many neighbours are asked.
    """

    def __init__(self, X: Any, n_neighbors: int = 10) -> None:
        _, self._neighbors = NeighborSearch(X).nearest_others(X, n_neighbors)

    def __call__(
        self, losses: Floats, assigned: NDArray[np.int64], candidates: CandidateSets
    ) -> Floats:
        """Count the neighbours that disagree; a loss, cut at 1, counts like one more neighbour."""
        labels = candidates.indices[assigned]
        disagreeing = (labels[self._neighbors] != labels[:, np.newaxis]).sum(axis=1)
        return (disagreeing + np.minimum(losses[assigned], 1.0)) / (self._neighbors.shape[1] + 1)
