r"""Scaling confidences so that the columns of a sparse matrix meet given sums.

Given positive values :math:`P_{ij}` on a sparse pattern, find :math:`u_j > 0` such that the rows of
:math:`Q_{ij} \propto P_{ij} u_j`, which sum to the weights of their examples, have given column
sums. This is Sinkhorn's problem; the solution is found by matching the columns in turn with the
rows. A column need not be a class: it may be a class inside a group of examples. All that has to be
known of the rows is the sums of the columns under a scaling.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skpll._typing import Floats

_BOUND = 50.0
"""No column is scaled by more than the exponential of this."""


def log_scaling(
    column_sums: Callable[[Floats], Floats],
    targets: Floats,
    *,
    start: Floats | None = None,
    tol: float = 1e-3,
    max_iter: int = 20,
) -> Floats:
    """Find the logarithms of the factors of the columns.

    Parameters
    ----------
    column_sums : callable
        From logarithms of factors to the sums of the columns of Q.
    targets : array of shape (number of columns,)
        The sums that the columns should have; together those of the rows.
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
    wanted = targets > 0
    log_targets = np.log(np.where(wanted, targets, 1.0))
    for _ in range(max_iter):
        sums = column_sums(logs)
        steps = log_targets - np.log(np.maximum(sums, np.finfo(np.float64).tiny))
        logs = np.where(wanted, np.clip(logs + steps, -_BOUND, _BOUND), -_BOUND)
        if np.abs(steps[wanted]).max() <= tol:
            break
    return np.asarray(logs)
