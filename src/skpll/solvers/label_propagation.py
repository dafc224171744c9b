r"""Graphs between examples as operators on the confidences in their candidate labels.

Confidences are a sparse matrix :math:`F` (n examples × q labels) whose pattern is the candidate
sets, held as the vector of its entries. What passes along the edges of a graph :math:`A`, the
entries of :math:`A F`, is linear in these entries: a sparse matrix built once makes every product
with :math:`A` a matrix-vector product.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

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
    # Copies: dropping the zeros would shift the entries of the caller's arrays.
    graph = sparse.csr_array((weights.flatten(), neighbors.flatten(), starts), shape=(n, n))
    graph.eliminate_zeros()
    return graph


def label_operator(graph: sparse.csr_array, indptr: Ints, indices: Ints) -> sparse.csr_array:
    r"""Build the operator that takes the entries of F to all that are not zero in :math:`A F`.

    Parameters
    ----------
    graph : CSR matrix of shape (n, n)
        The matrix A.
    indptr, indices : int arrays
        The candidate sets in CSR form, E entries in all, labels in ascending order in each row.

    Returns
    -------
    operator : CSR matrix of shape (number of pairs of an example and a label that it hears of, E)
        Its rows are in the order of the entries of A F.
    """
    targets, entries, weights = _messages(graph, indptr, indices)
    pairs, places = np.unique(targets, return_inverse=True)
    return sparse.csr_array((weights, (places, entries)), shape=(len(pairs), len(indices)))


def candidate_operator(graph: sparse.csr_array, indptr: Ints, indices: Ints) -> sparse.csr_array:
    r"""Build the operator that takes the entries of F to those of :math:`A F` on the candidates.

    Parameters
    ----------
    graph : CSR matrix of shape (n, n)
        The matrix A.
    indptr, indices : int arrays
        The candidate sets in CSR form, E entries in all, labels in ascending order in each row.

    Returns
    -------
    operator : CSR matrix of shape (E, E)
        Its entry between candidate l of example i and candidate l' of example j is
        :math:`A_{ij}` if l = l', and zero otherwise.
    """
    targets, entries, weights = _messages(graph, indptr, indices)
    own = _pairs(np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)), indices, indices)
    places = np.searchsorted(own, targets)
    heard = own[np.minimum(places, len(own) - 1)] == targets if len(own) else places < 0
    shape = (len(indices), len(indices))
    return sparse.csr_array((weights[heard], (places[heard], entries[heard])), shape=shape)


def _messages(graph: sparse.csr_array, indptr: Ints, indices: Ints) -> tuple[Ints, Ints, Floats]:
    """List what every example hears of every candidate of its neighbours.

    Returns the pair of example and label that it is about, the entry it comes from, and its weight.
    """
    listeners = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    sizes = np.diff(indptr)[graph.indices]
    first = np.cumsum(sizes) - sizes
    entries = np.arange(sizes.sum()) + np.repeat(indptr[:-1][graph.indices] - first, sizes)
    targets = _pairs(np.repeat(listeners, sizes), indices[entries], indices)
    return targets, entries, np.repeat(graph.data, sizes)


def _pairs(examples: Ints, labels: Ints, indices: Ints) -> Ints:
    """Give a number to every pair of an example and a label."""
    return examples * (np.int64(indices.max(initial=-1)) + 1) + labels
