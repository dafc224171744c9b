r"""Confidences in candidates that are as smooth as possible on a graph.

.. math:: \min_F \tfrac12 \|(I - W) F\|^2 \quad\text{s.t.}\quad
          F \ge 0,\ \sum_{l \in S_i} F_{il} = 1,\ F_{il} = 0 \text{ for } l \notin S_i

for weights :math:`W` that examples give their neighbours: the confidences of an example are to be
those of its neighbours. The feasible set is a product of simplices, one an example, so that
accelerated projected gradients need nothing but products with :math:`I - W` and its transpose, and
so with :math:`M = (I - W)^T (I - W)`. Steps have a length of their own in every row, one over
:math:`\sum_j |M_{ij}|`: the diagonal matrix of these sums is at least :math:`M`, and no eigenvalue
is needed.

The duality gap :math:`\sum_i (\sum_l F_{il} g_{il} - \min_l g_{il})` with the gradient
:math:`g = M F` bounds how far the objective is from the optimum, and ends the iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .label_propagation import label_operator
from .simplex_projection import project_rows

__all__ = ["Smoothing", "smooth_labels"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class Smoothing:
    """The outcome of `smooth_labels`.

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


def smooth_labels(
    graph: sparse.csr_array,
    indptr: Ints,
    indices: Ints,
    evidence: Floats | None = None,
    *,
    tol: float = 1e-3,
    max_iter: int = 1000,
    report: Callable[[int, float], None] = lambda _iteration, _gap: None,
) -> Smoothing:
    r"""Minimize :math:`\tfrac12 \|(I - W) F\|^2` over confidences in the candidates.

    Parameters
    ----------
    graph : CSR matrix of shape (n, n)
        The weights W.
    indptr, indices : int arrays
        The candidate sets in CSR form.
    evidence : array of the size of `indices`, optional
        Confidences E to stay near: :math:`\tfrac12 \|F - E\|^2` is added to the objective.
    tol : float, default=1e-3
        The iteration ends when the duality gap is below this share of the objective of even
        confidences.
    max_iter : int, default=1000
        At most so many iterations.
    report : callable, optional
        Called with the number and the duality gap of each iteration.

    Returns
    -------
    Smoothing
    """
    n = len(indptr) - 1
    residual = sparse.csr_array(sparse.eye_array(n) - graph)
    product = sparse.csr_array(residual.T @ residual)
    sizes = np.diff(indptr)
    curvature = np.repeat(np.maximum(abs(product).sum(axis=1), np.finfo(np.float64).tiny), sizes)
    apart = label_operator(residual, indptr, indices)
    together = sparse.csr_array(apart.T)

    if evidence is not None:
        curvature += 1

    def evaluate(values: Floats) -> tuple[float, Floats]:
        difference = apart @ values
        value, slope = float(difference @ difference) / 2, together @ difference
        if evidence is not None:
            value += float(np.sum((values - evidence) ** 2)) / 2
            slope += values - evidence
        return value, slope

    def gap(values: Floats, slope: Floats) -> float:
        lowest = np.minimum.reduceat(slope, indptr[:-1])
        return max(float(values @ (slope - np.repeat(lowest, sizes))), 0.0)

    best = 1 / np.repeat(sizes, sizes)
    value, best_slope = evaluate(best)
    objective = [value]
    goal, current = tol * objective[0], gap(best, best_slope)
    ahead, ahead_slope, momentum = best, best_slope, 1.0
    converged = current <= goal
    while not converged and len(objective) <= max_iter:
        moved = project_rows(indptr, ahead - ahead_slope / curvature)
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
