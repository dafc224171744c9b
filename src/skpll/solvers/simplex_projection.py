r"""Projection of the rows of a sparse matrix onto the probability simplex of their own entries.

.. math:: \arg\min_p \|p - v\|^2 \quad\text{s.t.}\quad p \ge 0,\ \sum_l p_l = 1

is :math:`p = \max(v - \theta, 0)`, where :math:`\theta` makes the sum one. With the values in
descending order, it is the largest of the :math:`(v_{(1)} + \dots + v_{(m)} - 1) / m`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["project_rows"]


@njit(cache=True, nogil=True)
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
    projected = np.empty(values.size)
    for i in range(indptr.size - 1):
        row = values[indptr[i] : indptr[i + 1]]
        descending = -np.sort(-row)
        total, threshold = -1.0, -np.inf
        for m in range(descending.size):
            total += descending[m]
            threshold = max(threshold, total / (m + 1))
        for e in range(row.size):
            projected[indptr[i] + e] = max(row[e] - threshold, 0.0)
    return projected
