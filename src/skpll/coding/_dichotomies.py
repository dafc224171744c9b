"""Dichotomies of the labels, and the examples that lie on one side of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ._models import Sides


def count_dichotomies(q: int) -> int:
    """Count the ways to split q labels into two sides, neither of them empty."""
    return 2 ** (q - 1) - 1


def draw_dichotomies(
    q: int, max_draws: int, random: np.random.RandomState
) -> Iterator[NDArray[np.bool_]]:
    """Draw dichotomies at random, none of them twice.

    A dichotomy and its complement are the same, so the first label is always on the positive
    side. Where there are no more than `max_draws` dichotomies, all of them come, in random order.

    Parameters
    ----------
    q : int
        Number of labels.
    max_draws : int
        Number of draws; one that hits a dichotomy again, or leaves a side empty, is lost.
    random : RandomState
        Source of chance.

    Yields
    ------
    code : bool array of shape (q,)
        Which labels are on the positive side.
    """
    if count_dichotomies(q) <= max_draws:
        for number in random.permutation(count_dichotomies(q)):
            yield np.append(True, number >> np.arange(q - 1) & 1 == 1)
        return
    seen = {np.ones(q, dtype=bool).tobytes()}
    for _ in range(max_draws):
        code = np.append(True, random.uniform(size=q - 1) < 0.5)
        if code.tobytes() not in seen:
            seen.add(code.tobytes())
            yield code


def sides_of(
    code: NDArray[np.bool_], candidates: sparse.csr_array, sizes: NDArray[np.int64]
) -> Sides:
    """Find the examples whose candidates are all on the positive, or all on the negative side.

    Parameters
    ----------
    code : bool array of shape (q,)
        Which labels are on the positive side.
    candidates : sparse array of shape (n, q)
        One for every candidate.
    sizes : int array of shape (n,)
        Number of candidates of each example.

    Returns
    -------
    positive, negative : bool arrays of shape (n,)
        An example with candidates on both sides is in neither.
    """
    on_positive_side = candidates @ code.astype(np.int64)
    return on_positive_side == sizes, on_positive_side == 0
