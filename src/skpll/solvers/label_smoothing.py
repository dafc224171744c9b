r"""Confidences in candidates that are as smooth as possible on a graph.

.. math:: \min_F \tfrac12 \|(I - W) F\|^2 \quad\text{s.t.}\quad
          F \ge 0,\ \sum_{l \in S_i} F_{il} = 1,\ F_{il} = 0 \text{ for } l \notin S_i

for weights :math:`W` that examples give their neighbours (`smooth_labels`): the confidences of an
example are to be those of its neighbours. Or pairs of neighbours are to agree
(`propagate_labels`): with symmetric similarities :math:`A` whose row sums are :math:`D`,
:math:`\tfrac12 \operatorname{tr} F^\top (I - D^{-1/2} A D^{-1/2}) F` in its place.

The feasible set is a product of simplices, one an example, so that accelerated projected gradients
need nothing but products with the matrix :math:`M` of the quadratic form. Steps have a length of
their own in every row, one over :math:`\sum_j |M_{ij}|`: the diagonal matrix of these sums is at
least :math:`M`, and no eigenvalue is needed.

Confidences are a sparse matrix :math:`F` (n examples × q labels) whose pattern is the candidate
sets, held as the vector of its entries. What passes along the edges of a graph :math:`A`, the
entries of :math:`A F`, is linear in these entries: a sparse matrix built once makes every product
with :math:`A` a matrix-vector product.

The duality gap :math:`\sum_i (\sum_l F_{il} g_{il} - \min_l g_{il})` with the gradient
:math:`g` bounds how far the objective is from the optimum, and ends the iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from skpll._docs import documented
from skpll._typing import Floats, Ints

Report = Callable[[int, float], None]


@dataclass(frozen=True, slots=True)
class Smoothing:
    """The outcome of `smooth_labels` and `propagate_labels`.

    Attributes
    ----------
    values : array
        The confidences, in the order of the candidates.
    objective : list of float
        The objective at the start and after each iteration; it never rises.
    gap : float
        By how much, at most, the last objective is above the optimum.
    converged : bool
        Whether the gap is as small as was asked for, or as rounding allows.
    """

    values: Floats
    objective: list[float]
    gap: float
    converged: bool


@documented
def smooth_labels(
    graph: sparse.csr_array,
    indptr: Ints,
    indices: Ints,
    evidence: Floats | None = None,
    *,
    pull: float = 1.0,
    start: Floats | None = None,
    tol: float = 1e-3,
    max_iter: int = 1000,
    report: Report = lambda _iteration, _gap: None,
) -> Smoothing:
    r"""Minimize :math:`\tfrac12 \|(I - W) F\|^2` over confidences in the candidates.

    Parameters
    ----------
    graph : CSR matrix of shape (n, n)
        The weights W.
    <<sets>>
    evidence : array of the size of `indices`, optional
        Values E to stay near: :math:`\tfrac c2 \|F - E\|^2` is added to the objective.
    pull : float, default=1.0
        The weight c of the evidence.
    <<smoothing>>
    report : callable, optional
        Called with the number and the duality gap of each iteration.

    Returns
    -------
    Smoothing
    """
    residual = sparse.csr_array(sparse.eye_array(len(indptr) - 1) - graph)
    curvature = np.asarray(abs(sparse.csr_array(residual.T @ residual)).sum(axis=1), np.float64)
    apart = label_operator(residual, indptr, indices)
    together = sparse.csr_array(apart.T)

    def evaluate(values: Floats) -> tuple[float, Floats]:
        difference = apart @ values
        value, slope = float(difference @ difference) / 2, together @ difference
        if evidence is not None:
            value += pull * float(np.sum((values - evidence) ** 2)) / 2
            slope += pull * (values - evidence)
        return value, slope

    if evidence is not None:
        curvature = curvature + pull
    return _minimize(evaluate, curvature, indptr, start, tol, max_iter, report)


@documented
def propagate_labels(
    similarities: sparse.csr_array,
    indptr: Ints,
    indices: Ints,
    evidence: Floats,
    *,
    strength: float,
    start: Floats | None = None,
    tol: float = 1e-3,
    max_iter: int = 1000,
) -> Smoothing:
    r"""Minimize :math:`\tfrac12 \|F - E\|^2` plus the differences of similar examples.

    Parameters
    ----------
    similarities : CSR matrix of shape (n, n)
        The symmetric matrix A; the weight of an example without neighbours is zero everywhere.
    <<sets>>
    evidence : array of the size of `indices`
        Values E to stay near.
    strength : float
        The weight of :math:`\tfrac12 \operatorname{tr} F^\top (I - D^{-1/2} A D^{-1/2}) F`.
    <<smoothing>>

    Returns
    -------
    Smoothing
    """
    degrees = np.asarray(similarities.sum(axis=1))
    roots = np.divide(1, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)
    normalized = sparse.csr_array(similarities.multiply(roots[:, np.newaxis]).multiply(roots))
    curvature = 1 + strength * (1 + np.asarray(normalized.sum(axis=1), np.float64))
    neighbors = candidate_operator(normalized, indptr, indices)

    def evaluate(values: Floats) -> tuple[float, Floats]:
        apart, rough = values - evidence, strength * (values - neighbors @ values)
        return (float(apart @ apart) + float(values @ rough)) / 2, apart + rough

    return _minimize(evaluate, curvature, indptr, start, tol, max_iter)


def _minimize(
    evaluate: Callable[[Floats], tuple[float, Floats]],
    curvature: Floats,
    indptr: Ints,
    start: Floats | None,
    tol: float,
    max_iter: int,
    report: Report = lambda _iteration, _gap: None,
) -> Smoothing:
    """Minimize a quadratic function on a product of simplices.

    `evaluate` returns its value and its slope; `curvature` is a bound for each row of the matrix.
    """
    sizes = np.diff(indptr)
    lengths = 1 / np.repeat(np.maximum(curvature, np.finfo(np.float64).tiny), sizes)

    def gap(values: Floats, slope: Floats) -> float:
        lowest = np.minimum.reduceat(slope, indptr[:-1])
        return max(float(values @ (slope - np.repeat(lowest, sizes))), 0.0)

    best = 1 / np.repeat(sizes, sizes) if start is None else start
    value, best_slope = evaluate(best)
    objective = [value]
    goal, current = tol * objective[0], gap(best, best_slope)
    ahead, ahead_slope, momentum = best, best_slope, 1.0
    converged = current <= goal
    while not converged and len(objective) <= max_iter:
        moved = project_rows(indptr, ahead - ahead_slope * lengths)
        reached, moved_slope = evaluate(moved)
        if reached >= objective[-1]:
            converged = momentum == 1.0  # a plain step gains nothing: only rounding is left
            ahead, ahead_slope, momentum = best, best_slope, 1.0
            continue
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        push = (momentum - 1) / following
        ahead = moved + push * (moved - best)
        ahead_slope = moved_slope + push * (moved_slope - best_slope)
        best, best_slope, momentum = moved, moved_slope, following
        objective.append(reached)
        current = gap(best, best_slope)
        converged = current <= goal
        report(len(objective) - 1, current)
    return Smoothing(best, objective, current, converged)


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
    # Copies: dropping the zeros would shift the entries of the caller's arrays.
    entries = weights.flatten(), neighbors.flatten(), np.arange(n + 1) * k
    graph = sparse.csr_array(entries, shape=(n, n))
    graph.eliminate_zeros()
    return graph


@documented
def label_operator(graph: sparse.csr_array, indptr: Ints, indices: Ints) -> sparse.csr_array:
    r"""Build the operator that takes the entries of F to all that are not zero in :math:`A F`.

    Parameters
    ----------
    graph : CSR matrix of shape (n, n)
        The matrix A.
    <<sets>>

    Returns
    -------
    operator : CSR matrix
        A column for each candidate, and a row for each entry of A F, in their order.
    """
    targets, entries, weights = _messages(graph, indptr, indices)
    pairs, places = np.unique(targets, return_inverse=True)
    return sparse.csr_array((weights, (places, entries)), shape=(len(pairs), len(indices)))


@documented
def candidate_operator(graph: sparse.csr_array, indptr: Ints, indices: Ints) -> sparse.csr_array:
    r"""Build the operator that takes the entries of F to those of :math:`A F` on the candidates.

    Parameters
    ----------
    graph : CSR matrix of shape (n, n)
        The matrix A.
    <<sets>>

    Returns
    -------
    operator : CSR matrix
        A row and a column for each candidate. The entry between candidate l of example i and
        candidate l' of example j is :math:`A_{ij}` if l = l', and zero otherwise.
    """
    targets, entries, weights = _messages(graph, indptr, indices)
    own = _pairs(np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)), indices, indices)
    received = np.isin(targets, own)
    places = np.searchsorted(own, targets[received]), entries[received]
    return sparse.csr_array((weights[received], places), shape=(len(own), len(own)))


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
    """Return a number for every pair of an example and a label."""
    return examples * (np.int64(indices.max(initial=-1)) + 1) + labels


def project_rows(indptr: Ints, values: Floats) -> Floats:
    r"""Project every row onto the simplex of its entries.

    .. math:: \arg\min_p \|p - v\|^2 \quad\text{s.t.}\quad p \ge 0,\ \sum_l p_l = 1

    is :math:`p = \max(v - \theta, 0)`, where :math:`\theta` makes the sum one: the sum of the m
    entries above it, less one, divided by m. It is found by dropping the entries below it, which
    raises it, until none is left to drop.

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
