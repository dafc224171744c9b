"""Candidate sets that a dictionary makes: each word has the labels that it is seen with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skpll._typing import MatrixLike

__all__ = ["draw_words", "sets_of_words"]

ROWS_PER_WORD = 12
"""The mean number of examples of a word, if the number of words is not given."""


def draw_words(X: MatrixLike, n_words: int | None, random: np.random.Generator) -> NDArray[np.intp]:
    """Return the word of each example: its cluster among standardized features."""
    from scipy.sparse import issparse
    from sklearn.cluster import KMeans
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    n = X.shape[0] if hasattr(X, "shape") else len(X)
    wanted = max(2, n // ROWS_PER_WORD) if n_words is None else n_words
    clusters = KMeans(min(wanted, n), n_init=1, random_state=int(random.integers(2**31)))
    words = make_pipeline(StandardScaler(with_mean=not issparse(X)), clusters).fit_predict(X)
    return np.asarray(words, dtype=np.intp)


def sets_of_words(
    words: NDArray[np.intp], codes: NDArray[np.int32], n_classes: int, share: float
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the pattern of the sets: frequent labels of an example's word, and its own label."""
    counts = np.zeros((words.max() + 1, n_classes))
    np.add.at(counts, (words, codes), 1)
    listed = counts > share * counts.sum(axis=1, keepdims=True)
    inside = listed[words]
    inside[np.arange(len(codes)), codes] = True
    rows, indices = np.nonzero(inside)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(codes)))])
    return indptr.astype(np.int64), indices.astype(np.int32)
