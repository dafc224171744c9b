"""How many training examples each label may take."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["class_bounds", "rounded_counts"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def rounded_counts(expected: Floats) -> Floats:
    """Round expected counts down, and give what is missing to the labels expected least."""
    counts = np.floor(expected + 1e-6)
    rarest = np.argsort(expected, kind="stable")
    counts[rarest[: int(np.rint(expected.sum() - counts.sum()))]] += 1
    return counts


def class_bounds(counts: Floats, n: int, slack: float) -> tuple[Ints, Ints]:
    """Lower and upper bounds on the number of examples of each label.

    Parameters
    ----------
    counts : array of shape (q,)
        The expected counts; the bounds are the next whole numbers.
    n : int
        The number of examples.
    slack : float
        By which share of the expected count the bounds give.

    Returns
    -------
    lower, upper : int arrays of shape (q,)
    """
    # A hair's breadth, so that 3 as a sum of thirds does not become 3.0000000001.
    lower = np.floor((1 - slack) * counts + 1e-6)
    upper = np.ceil((1 + slack) * counts - 1e-6)
    return np.maximum(lower, 0).astype(np.int64), np.minimum(upper, n).astype(np.int64)
