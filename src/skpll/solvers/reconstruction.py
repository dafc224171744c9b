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
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

__all__ = [
    "label_residuals",
    "nonnegative_least_squares",
    "reconstruction_weights",
    "simplex_least_squares",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]

_BLOCK = 2**22
_GRADIENT_TOL = 1e-14
_DEPENDENT = 1e-13


def reconstruction_weights(
    queries: Any, X: Any, neighbors: Ints, *, sum_to_one: bool = False
) -> Floats:
    r"""Find the non-negative weights with which neighbours reconstruct each query best.

    Parameters
    ----------
    queries : array or CSR matrix of shape (m, d)
        The examples to reconstruct.
    X : array or CSR matrix of shape (n, d)
        The examples to reconstruct them from.
    neighbors : int array of shape (m, k)
        Rows of `X` that may be used for each query.
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
            grams = _grams([*basis, x])
            weights[block] = _weights(grams)
    return weights


def label_residuals(queries: Any, X: Any, neighbors: Ints, labels: Ints, n_classes: int) -> Floats:
    r"""Measure how badly the neighbours of each label alone reconstruct each query.

    With the non-negative weights :math:`w` of all neighbours, the residual of label :math:`l` is
    :math:`r_l = \|x - \sum_{j : y_j = l} w_j x_j\|`; that of a label without a neighbour is
    :math:`\|x\|`.

    Parameters
    ----------
    queries : array or CSR matrix of shape (m, d)
        The examples to reconstruct.
    X : array or CSR matrix of shape (n, d)
        The examples to reconstruct them from.
    neighbors : int array of shape (m, k)
        Rows of `X` that may be used for each query.
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
        weights = _weights(grams)
        _fill_residuals(grams, weights, labels[chosen], residuals[block])
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


@njit(cache=True, nogil=True)
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
    m, k = targets.shape
    weights = np.zeros((m, k))
    for i in range(m):
        _solve_one(grams[i], targets[i], weights[i])
    return weights


@njit(cache=True, nogil=True)
def _solve_one(G: Floats, b: Floats, w: Floats) -> None:
    """Solve one problem; `w` comes in as zeros and goes out as the solution."""
    k = b.size
    free = np.empty(k, np.int64)
    n_free = 0
    is_free = np.zeros(k, np.bool_)
    refused = np.zeros(k, np.bool_)
    trial, trial_free = np.empty(k), np.empty(k, np.int64)
    factor, solution = np.empty((k, k)), np.empty(k)
    tol = _GRADIENT_TOL * np.max(np.abs(b))
    objective = 0.0
    while True:
        entering = _steepest(G, b, w, is_free | refused, tol)
        if entering < 0:
            return
        trial[:] = w
        trial_free[:n_free] = free[:n_free]
        trial_free[n_free] = entering
        n_trial = _descend(G, b, trial, trial_free, n_free + 1, factor, solution)
        reached = _objective(G, b, trial)
        if n_trial == 0 or not reached < objective:
            refused[entering] = True
            continue
        objective = reached
        w[:] = trial
        n_free = n_trial
        free[:n_free] = trial_free[:n_free]
        is_free[:] = False
        for a in range(n_free):
            is_free[free[a]] = True
        refused[:] = False


@njit(cache=True, nogil=True)
def _steepest(G: Floats, b: Floats, w: Floats, excluded: NDArray[np.bool_], tol: float) -> int:
    """Find the variable whose growth lowers the objective fastest; -1 if there is none."""
    best, steepest = -1, tol
    for j in range(b.size):
        if excluded[j]:
            continue
        descent = b[j]
        for a in range(b.size):
            descent -= G[j, a] * w[a]
        if descent > steepest:
            best, steepest = j, descent
    return best


@njit(cache=True, nogil=True)
def _objective(G: Floats, b: Floats, w: Floats) -> float:
    value = 0.0
    for j in range(b.size):
        if w[j] > 0:
            slope = 0.0
            for a in range(b.size):
                slope += G[j, a] * w[a]
            value += w[j] * (0.5 * slope - b[j])
    return value


@njit(cache=True, nogil=True)
def _descend(
    G: Floats, b: Floats, w: Floats, free: Ints, n_free: int, factor: Floats, solution: Floats
) -> int:
    """Minimize over the free variables, and fix those that would become negative on the way.

    Each round either ends or fixes a variable. The last of the free variables is the entering one.
    Where its column depends on the others, its growth has no end but the zero of another variable.
    Returns how many are free in the end; 0 if there is no such end, or nothing was gained.
    """
    while n_free > 0:
        independent = _factorize(G, free, n_free, factor)
        if independent < n_free - 1:
            return 0
        _substitute(factor, b, free, n_free, solution)
        step, blocking = 1.0, -1
        for a in range(n_free):
            if solution[a] <= 0:
                here = w[free[a]]
                share = here / (here - solution[a]) if here > 0 else 0.0
                if share < step or blocking < 0:
                    step, blocking = share, a
        if blocking < 0 and independent < n_free:
            return 0
        for a in range(n_free):
            w[free[a]] += step * (solution[a] - w[free[a]])
        if blocking < 0:
            return n_free
        w[free[blocking]] = 0.0
        kept = 0
        for a in range(n_free):
            if w[free[a]] > 0:
                free[kept] = free[a]
                kept += 1
            else:
                w[free[a]] = 0.0
        n_free = kept
    return 0


@njit(cache=True, nogil=True)
def _factorize(G: Floats, free: Ints, n_free: int, factor: Floats) -> int:
    """Cholesky factor of the free part of `G`; returns how many columns are independent.

    The pivot of a dependent column is zero but for rounding. A tiny one in its place makes the
    step along it very long.
    """
    independent = 0
    for a in range(n_free):
        for c in range(a + 1):
            value = G[free[a], free[c]]
            for e in range(c):
                value -= factor[a, e] * factor[c, e]
            if c < a:
                factor[a, c] = value / factor[c, c]
        floor = _DEPENDENT * G[free[a], free[a]]
        factor[a, a] = np.sqrt(max(value, floor))
        if value > floor and independent == a:
            independent += 1
    return independent


@njit(cache=True, nogil=True)
def _substitute(factor: Floats, b: Floats, free: Ints, n_free: int, solution: Floats) -> None:
    for a in range(n_free):
        value = b[free[a]]
        for c in range(a):
            value -= factor[a, c] * solution[c]
        solution[a] = value / factor[a, a]
    for a in range(n_free - 1, -1, -1):
        value = solution[a]
        for c in range(a + 1, n_free):
            value -= factor[c, a] * solution[c]
        solution[a] = value / factor[a, a]


@njit(cache=True, nogil=True)
def _fill_residuals(grams: Floats, weights: Floats, labels: Ints, residuals: Floats) -> None:
    """Expand the square of every residual in inner products; the query is the last of `grams`."""
    m, k = weights.shape
    for i in range(m):
        norm = grams[i, k, k]
        residuals[i, :] = norm
        for j in range(k):
            cross = -2.0 * grams[i, k, j]
            for a in range(k):
                if labels[i, a] == labels[i, j]:
                    cross += weights[i, a] * grams[i, a, j]
            residuals[i, labels[i, j]] += weights[i, j] * cross
        for label in range(residuals.shape[1]):
            residuals[i, label] = np.sqrt(max(residuals[i, label], 0.0))


def _grams(vectors: list[Any]) -> Floats:
    """Inner products of k matrices with each other, row by row: (m, k, k)."""
    if not sparse.issparse(vectors[0]):
        stacked = np.stack(vectors, axis=1).astype(np.float64, copy=False)
        return stacked @ stacked.transpose(0, 2, 1)
    rows = [sparse.csr_array(matrix, dtype=np.float64) for matrix in vectors]
    grams = np.empty((rows[0].shape[0], len(rows), len(rows)))
    for a, left in enumerate(rows):
        for c, right in enumerate(rows[: a + 1]):
            grams[:, a, c] = grams[:, c, a] = left.multiply(right).sum(axis=1)
    return grams


def _weights(grams: Floats) -> Floats:
    """Solve for the reconstruction of the last vector from the others."""
    return nonnegative_least_squares(
        np.ascontiguousarray(grams[:, :-1, :-1]), np.ascontiguousarray(grams[:, -1, :-1])
    )


def _blocks(queries: Any, neighbors: Ints) -> Iterator[slice]:
    """Rows that are handled at a time, so that the gathered neighbours take bounded memory."""
    m, k = neighbors.shape
    is_sparse = sparse.issparse(queries)
    per_row = queries.count_nonzero() / max(m, 1) if is_sparse else queries.shape[1]
    size = max(1, int(_BLOCK / ((k + 1) * (per_row + k + 1))))
    return (slice(start, min(start + size, m)) for start in range(0, m, size))
