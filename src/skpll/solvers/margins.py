r"""Scores and margins of candidate labels under a linear model.

The margin of label :math:`p` on :math:`x` is its score less the best score of any other label,
:math:`\eta^p = s_p - \max_{r \ne p} s_r`; its hinge loss is :math:`\max(0, 1 - \eta^p)`. Rows are
taken in blocks, so that the n × q scores never exist as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from skpll._typing import Floats, Ints
from skpll.engine.arrays import Matrix

MAX_BLOCK_SCORES = 2**20
"""Largest number of scores in a block."""

MAX_KEPT_SCORES = 2**25
"""Up to this number, scores are kept from one run over the blocks to the next: computing them takes
longer than reading them."""


def candidate_margins(blocks: Iterable[tuple[int, Floats]], indptr: Ints, indices: Ints) -> Floats:
    """Compute the margin of every candidate of every example.

    Parameters
    ----------
    blocks : iterable of (int, array), such as `ScoreBlocks`
        The scores of all classes.
    indptr, indices : int arrays
        The candidates, as the pattern of an n × q CSR matrix.

    Returns
    -------
    margins : array of the size of `indices`
        Where there is a single class and so no other label, the margin is 1: no loss.
    """
    margins = np.ones(len(indices))
    for first, scores in blocks:
        if scores.shape[1] == 1:
            break
        rows, entries = _entries(indptr, first, len(scores))
        every = np.arange(len(scores))
        winners = scores.argmax(axis=1)
        best, others = scores[every, winners], scores.copy()
        others[every, winners] = -np.inf
        is_winner = indices[entries] == winners[rows]
        rivals = np.where(is_winner, others.max(axis=1)[rows], best[rows])
        margins[entries] = scores[rows, indices[entries]] - rivals
    return margins


def _entries(indptr: Ints, first: int, n_rows: int) -> tuple[Ints, slice]:
    """Return the row of each entry of a block of rows, counted from its first, and the entries."""
    starts = indptr[first : first + n_rows + 1]
    return np.repeat(np.arange(n_rows), np.diff(starts)), slice(starts[0], starts[-1])


class ScoreBlocks:
    """Scores of all classes in blocks of rows.

    Yields pairs of the number of the first row and the scores, which must not be changed. Each run
    over the blocks computes them anew if there are too many to be kept.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        The features.
    coef : array of shape (q, d)
        The weight vectors.
    intercept : array of shape (q,)
        The intercepts.
    absent : tuple of int arrays (indptr, indices), optional
        The pattern of an n × q CSR matrix: classes whose scores are minus infinity.
    """

    def __init__(
        self,
        X: Matrix,
        coef: Floats,
        intercept: Floats,
        absent: tuple[Ints, Ints] | None = None,
    ) -> None:
        self.X = X
        self.coef = coef
        self.intercept = intercept
        self.absent = absent
        self.firsts = range(0, X.shape[0], max(1, MAX_BLOCK_SCORES // len(coef)))
        self.kept: list[tuple[int, Floats]] | None = None

    def __len__(self) -> int:
        """Count the blocks."""
        return len(self.firsts)

    def __iter__(self) -> Iterator[tuple[int, Floats]]:
        """Yield one block after the other."""
        is_small = self.X.shape[0] * len(self.coef) <= MAX_KEPT_SCORES
        if self.kept is None and len(self) > 1 and is_small:
            self.kept = list(self._computed())
        return self._computed() if self.kept is None else iter(self.kept)

    def _computed(self) -> Iterator[tuple[int, Floats]]:
        for first in self.firsts:
            rows = self.X if len(self) == 1 else self.X[first : first + self.firsts.step]
            scores = np.asarray(rows @ self.coef.T, dtype=np.float64)
            scores += self.intercept
            if self.absent is not None:
                indptr, indices = self.absent
                places, entries = _entries(indptr, first, len(scores))
                scores[places, indices[entries]] = -np.inf
            yield first, scores
