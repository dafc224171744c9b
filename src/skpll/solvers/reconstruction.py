r"""Reconstruction of examples from their neighbours: small least-squares problems, all at once.

For an example :math:`x` and its neighbours :math:`x_1, \dots, x_k` the weights are

.. math:: \arg\min_{w \ge 0} \Bigl\|x - \sum_j w_j x_j\Bigr\|^2,

where wanted with the further constraint :math:`\sum_j w_j = 1`. Only inner products matter, so
that every problem is a k × k Gram matrix, and dense and sparse features need no separate solver.

The problem with the sum constraint is a problem without. Let :math:`C` be the Gram matrix of the
differences :math:`x - x_j`, so that :math:`w^T C w` is the error where the weights sum to one. For
any :math:`c > 0` the minimizer :math:`u \ge 0` of

.. math:: u^T C u + c \, (1 - \mathbf 1^T u)^2

divided by its sum solves it: for :math:`u = t w` with :math:`\mathbf 1^T w = 1` the best :math:`t`
leaves :math:`c p / (c + p)` with :math:`p = w^T C w`, which grows with :math:`p`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from skpll._docs import documented
from skpll._typing import Floats, Ints
from skpll.engine.arrays import Matrix, is_sparse

from ._compiled import inner_kernel, kernel

BLOCK_VALUES = 2**22
_GRADIENT_TOL = 1e-14
DEPENDENCE_TOL = 1e-13


@documented
def reconstruction_weights(
    queries: Matrix, X: Matrix, neighbors: Ints, *, sum_to_one: bool = False
) -> Floats:
    r"""Find the non-negative weights with which neighbours reconstruct each query best.

    Parameters
    ----------
    <<reconstructed>>
    sum_to_one : bool, default=False
        Whether the weights of a query have to sum to one.

    Returns
    -------
    weights : array of shape (m, k)
        Minimizers; where there are many, one of them, always the same.
    """
    weights = np.zeros(neighbors.shape)
    if not neighbors.shape[1]:
        return weights
    for block in _blocks(queries, neighbors):
        x = queries[block]
        basis = [X[column] for column in neighbors[block].T]
        if sum_to_one:
            weights[block] = simplex_least_squares(_grams([x - row for row in basis]))
        else:
            weights[block] = _weights(_grams([*basis, x]))
    return weights


def difference_grams(X: Matrix, neighbors: Ints) -> Floats:
    """Compute the inner products of the differences between examples and their neighbours.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        The examples.
    neighbors : int array of shape (n, k)
        Rows of `X`, for each example.

    Returns
    -------
    grams : array of shape (n, k, k)
    """
    n, k = neighbors.shape
    grams = np.empty((n, k, k))
    for block in _blocks(X, neighbors) if k else ():
        x = X[block]
        grams[block] = _grams([x - X[column] for column in neighbors[block].T])
    return grams


@documented
def label_residuals(
    queries: Matrix, X: Matrix, neighbors: Ints, labels: Ints, n_classes: int
) -> Floats:
    r"""Measure how badly the neighbours of each label alone reconstruct each query.

    With the non-negative weights :math:`w` of all neighbours, the residual of label :math:`l` is
    :math:`r_l = \|x - \sum_{j : y_j = l} w_j x_j\|`; that of a label without a neighbour is
    :math:`\|x\|`.

    Parameters
    ----------
    <<reconstructed>>
    labels : int array of shape (n,)
        The label of each row of `X`.
    n_classes : int
        Number of labels.

    Returns
    -------
    residuals : array of shape (m, n_classes)
    """
    residuals = np.empty((len(neighbors), n_classes))
    for block in _blocks(queries, neighbors):
        chosen = neighbors[block]
        grams = _grams([*(X[column] for column in chosen.T), queries[block]])
        weights, own = _weights(grams), labels[chosen]
        # The square of a residual, expanded in inner products; the query is the last of them.
        same = own[:, :, np.newaxis] == own[:, np.newaxis, :]
        cross = np.einsum("mj,mja->ma", weights, np.where(same, grams[:, :-1, :-1], 0.0))
        parts = weights * (cross - 2 * grams[:, -1, :-1])
        cells = np.arange(len(own))[:, np.newaxis] * n_classes + own
        sums = np.bincount(cells.ravel(), parts.ravel(), len(own) * n_classes)
        squares = sums.reshape(-1, n_classes) + grams[:, -1, -1:]
        residuals[block] = np.sqrt(np.maximum(squares, 0.0))
    return residuals


def simplex_least_squares(grams: Floats) -> Floats:
    r"""Minimize :math:`w^T C w` over :math:`w \ge 0`, :math:`\sum_j w_j = 1`, for each matrix.

    Parameters
    ----------
    grams : array of shape (m, k, k)
        Gram matrices C of the differences between an example and its k ≥ 1 neighbours.

    Returns
    -------
    weights : array of shape (m, k)
    """
    diagonals = np.diagonal(grams, axis1=1, axis2=2)
    # At the scale of the best single neighbour both terms of the penalized problem matter.
    scale = np.maximum(diagonals.min(axis=1), 1e-10 * diagonals.max(axis=1))
    scale = np.where(scale > 0, scale, 1.0)[:, np.newaxis]
    targets = np.repeat(scale, diagonals.shape[1], axis=1)
    weights = nonnegative_least_squares(grams + scale[:, :, np.newaxis], targets)
    return weights / weights.sum(axis=1, keepdims=True)


def nonnegative_least_squares(grams: Floats, targets: Floats) -> Floats:
    r"""Minimize :math:`\tfrac12 w^T G w - b^T w` over :math:`w \ge 0`, for each pair :math:`G, b`.

    The active-set method of Lawson and Hanson on Gram matrices. It is finite: a variable is freed
    only if the objective falls, so that no set of free variables comes twice.

    Parameters
    ----------
    grams : array of shape (m, k, k)
        Positive semi-definite matrices G, singular ones included.
    targets : array of shape (m, k)
        Vectors b in the range of G.

    Returns
    -------
    weights : array of shape (m, k)
    """
    weights = np.zeros(targets.shape)
    _solve_all(np.ascontiguousarray(grams), np.ascontiguousarray(targets), weights)
    return weights


@kernel
def _solve_all(grams, targets, weights) -> None:  # type: ignore[no-untyped-def]
    """Solve one problem after the other; `weights` come in as zeros and go out as solutions.

    The status of a variable is free (1), refused (2) or neither (0). Free variables are listed in
    the order in which they were freed.
    """
    m, k = targets.shape
    free, tried, status = np.empty(k, np.int64), np.empty(k, np.int64), np.empty(k, np.int64)
    factor, solution, trial = np.empty((k, k)), np.empty(k), np.empty(k)
    for i in range(m):
        tol = 0.0
        for j in range(k):
            tol = max(tol, _GRADIENT_TOL * abs(targets[i, j]))
            status[j] = 0
        objective, n_free = 0.0, 0
        while True:
            entering, steepest = -1, tol
            for j in range(k):
                trial[j] = weights[i, j]
                if status[j] > 0:
                    continue
                descent = targets[i, j]
                for a in range(k):
                    descent -= grams[i, j, a] * weights[i, a]
                if descent > steepest:
                    entering, steepest = j, descent
            if entering < 0:
                break
            for a in range(n_free):
                tried[a] = free[a]
            tried[n_free] = entering
            n_trial = _descend(grams[i], targets[i], n_free + 1, tried, factor, solution, trial)
            reached = 0.0
            for j in range(k):
                slope = -2.0 * targets[i, j]
                for a in range(k):
                    slope += grams[i, j, a] * trial[a]
                reached += 0.5 * trial[j] * slope
            if n_trial == 0 or not reached < objective:
                status[entering] = 2
                continue
            objective, n_free = reached, n_trial
            for j in range(k):
                weights[i, j] = trial[j]
                status[j] = 0
            for a in range(n_free):
                free[a] = tried[a]
                status[free[a]] = 1


@inner_kernel
def _descend(gram, target, n_free, tried, factor, solution, trial) -> int:  # type: ignore[no-untyped-def]
    """Minimize over the free variables, and fix those that would become negative on the way.

    Each round either ends or fixes a variable. The last of the free variables is the entering one.
    Where its column depends on the others, its growth has no end but the zero of another variable.
    Returns how many are free in the end; 0 if there is no such end, or nothing was gained.
    """
    while n_free > 0:
        independent = _minimize(gram, target, n_free, tried, factor, solution)
        if independent < n_free - 1:
            return 0
        step, blocking = 1.0, -1
        for a in range(n_free):
            if solution[a] <= 0:
                here = trial[tried[a]]
                part = here / (here - solution[a]) if here > 0 else 0.0
                if part < step or blocking < 0:
                    step, blocking = part, a
        if blocking < 0 and independent < n_free:
            return 0
        kept = 0
        for a in range(n_free):
            j = tried[a]
            trial[j] += step * (solution[a] - trial[j])
            if blocking < 0 or (a != blocking and trial[j] > 0):
                tried[kept] = j
                kept += 1
            else:
                trial[j] = 0.0
        if blocking < 0:
            return n_free
        n_free = kept
    return 0


@inner_kernel
def _minimize(gram, target, n_free, tried, factor, solution) -> int:  # type: ignore[no-untyped-def]
    """Solve for the free variables by Cholesky's factor; returns how many columns are independent.

    The pivot of a dependent column is zero but for rounding. A tiny one in its place makes the
    step along it very long.
    """
    independent = 0
    for a in range(n_free):
        j = tried[a]
        pivot, value = gram[j, j], target[j]
        floor = DEPENDENCE_TOL * pivot
        for c in range(a):
            entry = gram[j, tried[c]]
            for e in range(c):
                entry -= factor[a, e] * factor[c, e]
            entry /= factor[c, c]
            factor[a, c] = entry
            pivot -= entry * entry
            value -= entry * solution[c]
        if pivot > floor and independent == a:
            independent += 1
        factor[a, a] = np.sqrt(max(pivot, floor))
        solution[a] = value / factor[a, a]
    for a in range(n_free - 1, -1, -1):
        value = solution[a]
        for c in range(a + 1, n_free):
            value -= factor[c, a] * solution[c]
        solution[a] = value / factor[a, a]
    return independent


def _grams(vectors: list[Matrix]) -> Floats:
    """Inner products of k matrices with each other, row by row: (m, k, k)."""
    if not is_sparse(vectors[0]):
        stacked = np.stack(vectors, axis=1).astype(np.float64, copy=False)
        return stacked @ stacked.transpose(0, 2, 1)
    rows: list[Matrix] = [sparse.csr_array(matrix, dtype=np.float64) for matrix in vectors]
    grams = np.empty((rows[0].shape[0], len(rows), len(rows)))
    for a, left in enumerate(rows):
        for c, right in enumerate(rows[: a + 1]):
            grams[:, a, c] = grams[:, c, a] = left.multiply(right).sum(axis=1)
    return grams


def _weights(grams: Floats) -> Floats:
    """Solve for the reconstruction of the last vector from the others."""
    return nonnegative_least_squares(grams[:, :-1, :-1], grams[:, -1, :-1])


def _blocks(queries: Matrix, neighbors: Ints) -> Iterator[slice]:
    """Rows that are handled at a time, so that the gathered neighbours take bounded memory."""
    m, k = neighbors.shape
    per_row = queries.nnz / max(m, 1) if is_sparse(queries) else queries.shape[1]
    size = max(1, int(BLOCK_VALUES / ((k + 1) * (per_row + k + 1))))
    return (slice(start, min(start + size, m)) for start in range(0, m, size))
