"""Folds that are stratified by candidate sets."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from numbers import Integral
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_consistent_length, check_random_state

from skpll._errors import ArgumentError
from skpll.base import MatrixLike
from skpll.candidates import CandidateSets, CandidatesLike, scoring_candidates

RandomState: TypeAlias = int | np.random.RandomState | None


class StratifiedCandidateKFold(BaseCrossValidator):
    """Folds that share out the classes and the ambiguity of candidate sets evenly.

    scikit-learn's `StratifiedKFold` needs one label an example, and ``cv=5`` falls back to
    consecutive blocks where there are sets: on data sorted by class, every fold then asks for a
    class that its training part has hardly seen. Here an example counts to its most likely
    label: the candidate with the most evidence (`CandidateSets.weights`), and among equals the one
    that is rarest in all, counting ``1 / |S_i|`` for each candidate of ``S_i``. Within a label the
    examples are shared out by the number of their candidates, so that certain and ambiguous ones
    are everywhere in the same proportion. Each number differs by one at most between folds, and
    so do the sizes of the folds.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    shuffle : bool, default=True
        Whether similar examples are distributed at random; otherwise each fold gets a run of
        them, in the order of the rows.
    random_state : int, RandomState instance or None, default=0
        Seed of the shuffling. An integer gives the same folds in every call, so that the
        candidates of a search are compared on the same ones.

    See Also
    --------
    sklearn.model_selection.StratifiedKFold : The same for plain labels.

    Examples
    --------
    >>> from skpll.model_selection import StratifiedCandidateKFold
    >>> y = [{"cat"}, {"cat"}, {"cat", "dog"}, {"cat", "dog"}, {"dog"}, {"dog"}]
    >>> for train, test in StratifiedCandidateKFold(2, shuffle=False).split(y, y):
    ...     print([sorted(y[row]) for row in test])
    [['cat'], ['cat', 'dog'], ['dog']]
    [['cat'], ['cat', 'dog'], ['dog']]
    """

    def __init__(
        self, n_splits: int = 5, *, shuffle: bool = True, random_state: RandomState = 0
    ) -> None:
        if not isinstance(n_splits, Integral) or n_splits < 2:
            problem = f"{n_splits!r} folds are not possible; give an integer of at least 2."
            raise ArgumentError("n_splits", problem)
        self.n_splits: int = n_splits
        self.shuffle: bool = shuffle
        self.random_state: RandomState = random_state

    def get_n_splits(self, X: object = None, y: object = None, groups: object = None) -> int:  # noqa: ARG002
        """Return the number of folds.

        Parameters
        ----------
        X, y, groups : ignored
            There for scikit-learn's tools.

        Returns
        -------
        n_splits : int
        """
        return self.n_splits

    def split(
        self, X: MatrixLike, y: CandidatesLike, groups: object = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Share out the examples.

        Parameters
        ----------
        X : array-like of shape (n, d)
            The features; only their number matters.
        y : candidate sets of n examples
            In a format of `skpll.as_candidates`.
        groups : ignored
            There for scikit-learn's tools.

        Yields
        ------
        train : int array
            The rows to learn from.
        test : int array
            The rows held out; over the folds every row once.
        """
        if groups is not None:
            ignored = (
                "ignores them; use GroupKFold where the examples of a group must stay together."
            )
            warnings.warn(f"groups: {type(self).__name__} {ignored}", UserWarning, stacklevel=2)
        if y is None:
            raise ArgumentError("y", "folds are made by candidate labels; give those of each row.")
        candidates = scoring_candidates(y)
        check_consistent_length(X, candidates)
        fold = self._deal(candidates)
        for k in range(self.n_splits):
            yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)

    def _deal(self, candidates: CandidateSets) -> NDArray[np.intp]:
        """Return the fold of each example: similar examples are assigned in turn."""
        n = len(candidates)
        if self.n_splits > n:
            problem = f"{self.n_splits} folds for {n} examples; ask for fewer."
            raise ArgumentError("n_splits", problem)
        labels, sizes = likely_codes(candidates), candidates.sizes
        order = np.arange(n)
        if self.shuffle:
            order = check_random_state(self.random_state).permutation(n)
        order = order[np.lexsort((sizes[order], labels[order]))]
        dealt = np.arange(n) % self.n_splits
        if not self.shuffle:
            dealt = dealt[np.lexsort((dealt, sizes[order], labels[order]))]
        fold = np.empty(n, dtype=np.intp)
        fold[order] = dealt
        return fold


def likely_codes(candidates: CandidateSets) -> NDArray[np.int32]:
    """Guess the label of each example from the candidate sets alone, as a position in the classes.

    The candidate with the most evidence; among equals the rarest, since a candidate that many sets
    have is a false one in most of them.
    """
    rarity = candidates.expected_counts()[candidates.indices]
    order = np.lexsort((rarity, -candidates.initial_confidences(), candidates.rows))
    return candidates.indices[order[candidates.indptr[:-1]]]
