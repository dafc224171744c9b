"""Features in which a kernel is an inner product, for methods whose scores are linear."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skpll.engine.kernels import KernelMap, median_distance

__all__ = ["KernelFeatures"]

Floats = NDArray[np.float64]

_LOOKED_AT = 20
"""Landmarks are drawn from so many times as many rows."""


@dataclass(frozen=True)
class KernelFeatures:
    """From raw features to those of a kernel on landmarks (Nyström).

    Parameters
    ----------
    kernel : KernelMap
        The kernel and the landmarks.
    whitening : array of shape (number of landmarks, m)
        From kernel values to features.
    """

    kernel: KernelMap
    whitening: Floats

    @classmethod
    def of(cls, X: Any, kernel: str, gamma: float, n_landmarks: int, seed: int) -> Self:
        """Choose the landmarks among the distinct rows of `X`.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            The features.
        kernel : {"laplacian", "rbf"}
            The kernel.
        gamma : float
            How fast it falls with the distance, in units of the median distance.
        n_landmarks : int
            Number of landmarks; all rows where there are not so many.
        seed : int
            Draws them.
        """
        random_state = np.random.RandomState(seed)
        if X.shape[0] > _LOOKED_AT * n_landmarks:
            X = X[random_state.choice(X.shape[0], _LOOKED_AT * n_landmarks, replace=False)]
        if not sparse.issparse(X):
            X = np.unique(X, axis=0)
        unit = median_distance(X, random_state)
        if X.shape[0] > n_landmarks:
            X = X[random_state.choice(X.shape[0], n_landmarks, replace=False)]
        landmarks = KernelMap(kernel, gamma, unit, X)
        return cls(landmarks, landmarks.whitening())

    def __call__(self, X: Any) -> Floats:
        """Map rows of features."""
        return np.ascontiguousarray(self.kernel.against(X) @ self.whitening, dtype=np.float64)
