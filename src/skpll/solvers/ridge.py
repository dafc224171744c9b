r"""Ridge regression of candidate indicators on features.

.. math:: \min_{W, b} \sum_i c_i \|Y_i - W x_i - b\|^2 + \alpha \|W\|^2

for the rows :math:`Y_i` of a sparse n × q matrix, which is never made dense. With the constant 1 as
a last feature, the normal equations are gathered in one pass over blocks of rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

_BLOCK = 2**20


def fit_ridge(
    X: Any,
    Y: sparse.csr_array,
    weights: NDArray[np.float64],
    *,
    shrinkage: float = 1e-3,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Fit a linear least-squares model with an intercept.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        The features; d × d matrices have to fit into memory.
    Y : CSR matrix of shape (n, q)
        The targets.
    weights : array of shape (n,)
        How much each example counts; the sum must not be zero.
    shrinkage : float, default=1e-3
        The penalty α, as a share of the mean variance of a feature times the sum of the weights:
        the fit does not depend on the units of `X`. Constant features get no weight.

    Returns
    -------
    coef : array of shape (q, d)
    intercept : array of shape (q,)
    """
    n, d = X.shape
    gram = np.zeros((d + 1, d + 1))
    right = np.zeros((d + 1, Y.shape[1]))
    rows = max(1, _BLOCK // (d + 1))
    for start in range(0, n, rows):
        block = X[start : start + rows]
        dense = block if isinstance(block, np.ndarray) else block.toarray()
        extended = np.column_stack([dense, np.ones(len(dense))])
        weighted = extended * weights[start : start + rows, None]
        gram += extended.T @ weighted
        right += (Y[start : start + rows].T @ weighted).T
    total, mean, target = gram[-1, -1], gram[-1, :-1] / gram[-1, -1], right[-1] / gram[-1, -1]
    covariance = gram[:-1, :-1] / total - np.outer(mean, mean)
    unit = float(np.diagonal(covariance).mean())
    if unit <= np.finfo(np.float64).eps * float(np.diagonal(gram)[:-1].mean()) / total:
        return np.zeros((Y.shape[1], d)), target
    penalized = covariance / unit + shrinkage * np.eye(d)
    W = linalg.solve(
        penalized, (right[:-1] / total - np.outer(mean, target)) / unit, assume_a="sym"
    )
    return W.T, target - mean @ W
