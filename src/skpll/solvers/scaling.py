r"""Scaling confidences so that the columns of a sparse matrix meet given sums.

Given positive values :math:`P_{ij}` on a sparse pattern, find :math:`u_j > 0` such that the rows of
:math:`Q_{ij} \propto P_{ij} u_j`, which sum to the weights of their examples, have given column
sums. This is Sinkhorn's problem; the solution is found by matching the columns in turn with the
rows. A column need not be a class: it may be a class inside a group of examples.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["log_scaling"]

Floats = NDArray[np.float64]

_BOUND = 50.0
"""No column is scaled by more than the exponential of this."""


def log_scaling(
    indptr: NDArray[Any],
    columns: NDArray[Any],
    values: Floats,
    targets: Floats,
    weights: Floats,
    *,
    start: Floats | None = None,
    tol: float = 1e-3,
    max_iter: int = 20,
) -> Floats:
    """Find the logarithms of the factors of the columns.

    Parameters
    ----------
    indptr : int array of shape (n + 1,)
        Where the entries of each row start and end; no row is empty.
    columns : int array
        The column of each entry.
    values : array
        The value of each entry; rows need not be normalized.
    targets : array of shape (number of columns,)
        The sums that the columns should have; together those of the weights.
    weights : array of shape (n,)
        The sums of the rows.
    start : array of shape (number of columns,), optional
        Logarithms of factors to begin with.
    tol : float
        Stop when all columns meet their targets up to this share.
    max_iter : int
        Largest number of turns.

    Returns
    -------
    logs : array of shape (number of columns,)
    """
    logs = np.zeros(len(targets)) if start is None else start.copy()
    sizes, rows = np.diff(indptr), indptr[:-1]
    wanted = targets > 0
    log_targets = np.log(np.where(wanted, targets, 1.0))
    for _ in range(max_iter):
        scaled = values * np.exp(logs)[columns]
        scaled *= np.repeat(weights / np.add.reduceat(scaled, rows), sizes)
        sums = np.bincount(columns, scaled, len(targets))
        steps = log_targets - np.log(np.maximum(sums, np.finfo(np.float64).tiny))
        logs = np.where(wanted, np.clip(logs + steps, -_BOUND, _BOUND), -_BOUND)
        if np.abs(steps[wanted]).max() <= tol:
            break
    return np.asarray(logs)
