r"""Projection of the rows of a sparse matrix onto the probability simplex of their own entries.

.. math:: \arg\min_p \|p - v\|^2 \quad\text{s.t.}\quad p \ge 0,\ \sum_l p_l = 1

is :math:`p = \max(v - \theta, 0)`, where :math:`\theta` makes the sum one: the sum of the m
entries above it, less one, divided by m. It is found by dropping the entries below it, which raises
it, until none is left to drop.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def project_rows(
    indptr: NDArray[np.integer[Any]], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Project every row onto the simplex of its entries.

    Parameters
    ----------
    indptr : int array of shape (n + 1,)
        Where the entries of each row start and end; no row is empty.
    values : array
        The entries.

    Returns
    -------
    projected : array
        Non-negative entries; every row sums to one.
    """
    starts, sizes = indptr[:-1], np.diff(indptr)
    above = np.ones(len(values), dtype=bool)
    n_above = sizes
    while True:
        totals = np.add.reduceat(np.where(above, values, 0.0), starts) - 1
        projected = values - np.repeat(totals / n_above, sizes)
        above &= projected > 0
        n_before, n_above = n_above, np.add.reduceat(above, starts, dtype=np.int64)
        if np.array_equal(n_above, n_before):
            return np.maximum(projected, 0.0)
