r"""Graphs between examples as operators on the beliefs in their candidate labels.

Beliefs are a sparse matrix :math:`F` (n examples × q labels) whose pattern is the candidate sets,
held as the vector of its entries. What passes along the edges of a graph :math:`A` and arrives at
candidates, :math:`(A F)_{il}` for :math:`l \in S_i`, is linear in these entries: a sparse matrix
built once makes every product with :math:`A` a matrix-vector product.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["candidate_operator", "neighbor_graph", "row_shares"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]


def neighbor_graph(neighbors: Ints, weights: Floats) -> sparse.csr_array:
    """Build the n × n matrix of the weights that examples give their neighbours.

    Parameters
    ----------
    neighbors : int array of shape (n, k)
        The neighbours of each example.
    weights : array of shape (n, k)
        Their weights; zeros are left out.

    Returns
    -------
    graph : CSR matrix of shape (n, n)
    """
    n, k = neighbors.shape
    starts = np.arange(n + 1) * k
    graph = sparse.csr_array((weights.ravel(), neighbors.ravel(), starts), shape=(n, n))
    graph.eliminate_zeros()
    return graph


def candidate_operator(graph: sparse.csr_array, indptr: Ints, indices: Ints) -> sparse.csr_array:
    r"""Build the operator that takes the entries of F to those of :math:`A F` on the candidates.

    Parameters
    ----------
    graph : CSR matrix of shape (n, n)
        The matrix A.
    indptr, indices : int arrays
        The candidate sets in CSR form, E entries in all.

    Returns
    -------
    operator : CSR matrix of shape (E, E)
        Its entry between candidate l of example i and candidate l' of example j is
        :math:`A_{ij}` if l = l', and zero otherwise.
    """
    n_classes = int(indices.max(initial=-1)) + 1
    arrays = graph.indptr, graph.indices, indptr, indices, n_classes
    starts = np.concatenate(([0], np.cumsum(_count_links(*arrays))))
    columns, data = _fill_links(*arrays, graph.data, starts)
    return sparse.csr_array((data, columns, starts), shape=(len(indices), len(indices)))


@njit(cache=True, nogil=True)
def row_shares(indptr: Ints, values: Floats) -> Floats:
    """Divide the entries of every row by their sum.

    Parameters
    ----------
    indptr : int array of shape (n + 1,)
        Where the entries of each row start and end.
    values : array
        Non-negative entries; no row sums to zero.

    Returns
    -------
    shares : array
    """
    shares = np.empty(values.size)
    for i in range(indptr.size - 1):
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            total += values[e]
        for e in range(indptr[i], indptr[i + 1]):
            shares[e] = values[e] / total
    return shares


@njit(cache=True, nogil=True)
def _count_links(
    starts: Ints, neighbors: Ints, indptr: Ints, indices: Ints, n_classes: int
) -> Ints:
    """Count the candidates of neighbours that each candidate hears from."""
    counts = np.zeros(indices.size, np.int64)
    place = np.full(n_classes, -1)
    for i in range(indptr.size - 1):
        place[indices[indptr[i] : indptr[i + 1]]] = np.arange(indptr[i], indptr[i + 1])
        for edge in range(starts[i], starts[i + 1]):
            j = neighbors[edge]
            for e in range(indptr[j], indptr[j + 1]):
                if place[indices[e]] >= 0:
                    counts[place[indices[e]]] += 1
        place[indices[indptr[i] : indptr[i + 1]]] = -1
    return counts


@njit(cache=True, nogil=True)
def _fill_links(
    starts: Ints,
    neighbors: Ints,
    indptr: Ints,
    indices: Ints,
    n_classes: int,
    weights: Floats,
    link_starts: Ints,
) -> tuple[Ints, Floats]:
    """Write down which candidates those are, and how much they count."""
    columns = np.empty(link_starts[-1], np.int64)
    data = np.empty(link_starts[-1])
    end = link_starts[:-1].copy()
    place = np.full(n_classes, -1)
    for i in range(indptr.size - 1):
        place[indices[indptr[i] : indptr[i + 1]]] = np.arange(indptr[i], indptr[i + 1])
        for edge in range(starts[i], starts[i + 1]):
            j = neighbors[edge]
            for e in range(indptr[j], indptr[j + 1]):
                target = place[indices[e]]
                if target >= 0:
                    columns[end[target]] = e
                    data[end[target]] = weights[edge]
                    end[target] += 1
        place[indices[indptr[i] : indptr[i + 1]]] = -1
    return columns, data
