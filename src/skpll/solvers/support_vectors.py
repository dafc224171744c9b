r"""The two-class support vector machine on a kernel matrix that is at hand.

With signs :math:`y_i = \pm 1` and dual variables :math:`\beta_i` between zero and :math:`C y_i`,

.. math:: \max_\beta\ y^\top \beta - \tfrac12 \beta^\top K \beta
          \quad\text{s.t.}\quad \mathbf 1^\top \beta = 0

gives the outputs :math:`K \beta + b`. Let :math:`v = y - K \beta`. The variables are optimal when
no :math:`v_i` of a variable that can grow is above a :math:`v_j` of one that can fall; how far the
two overlap is the violation.

Sequential minimal optimization moves two variables at a time, and looks at all examples to find
them. Here it works on a few hundred examples, those that violate most and those whose variables
were between their bounds before, until they violate little; only then the :math:`v` of all
examples are brought up to date. What it touches all the time stays in the processor's cache. The
kernel matrix, of which several problems can make use, may be in single precision.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skpll._typing import Array, Floats

from ._compiled import kernel

MAX_MEMBERS = 512
"""Number of examples that are worked on at a time."""

PROGRESS = 0.1
"""They are worked on until their violation is this share of that of all examples before."""

CHECK_STEPS = 8
"""Number of steps after which their violation is checked."""

FAR = 1e300
"""Added to the values of variables at a bound, so that they are not chosen."""

MIN_CURVATURE = 1e-12


class SupportVectors(NamedTuple):
    """The outcome of `fit_support_vectors`.

    Attributes
    ----------
    dual : array of shape (n,)
        The dual variables; zero for examples that are not support vectors.
    intercept : float
        The intercept.
    """

    dual: Floats
    intercept: float


def fit_support_vectors(
    K: NDArray[np.floating], signs: Array, C: float, *, tol: float = 1e-3
) -> SupportVectors:
    """Train a two-class support vector machine.

    Parameters
    ----------
    K : array of shape (n, n)
        The kernel matrix, positive semi-definite.
    signs : array of shape (n,)
        One for the examples of the positive class, minus one for those of the negative class, of
        which there is one at least; zero for examples that take no part.
    C : float
        The penalty of errors, the largest size of a dual variable.
    tol : float, default=1e-3
        The largest violation of the optimality conditions.

    Returns
    -------
    SupportVectors

    Examples
    --------
    >>> import numpy as np
    >>> from skpll.solvers.support_vectors import fit_support_vectors
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> dual, intercept = fit_support_vectors(np.outer(x, x), np.sign(x), 10.0)
    >>> dual.round(2).tolist(), round(intercept, 2)
    ([0.0, -0.5, 0.5, 0.0], 0.0)
    """
    lower, upper = np.minimum(C * signs, 0.0), np.maximum(C * signs, 0.0)
    dual, lacks = np.zeros(len(signs)), np.asarray(signs, dtype=np.float64).copy()
    members = _first_members(signs)
    size = len(members)
    n_new, goal = size, 2 * PROGRESS
    Q = np.empty((size, size), dtype=K.dtype)
    while True:
        n_steps = _improve(K, members, dual, lacks, lower, upper, goal, Q)
        growing = np.where(dual < upper, lacks, -np.inf)
        falling = np.where(dual > lower, lacks, np.inf)
        highest, lowest = growing.max(), falling.min()
        if highest - lowest <= tol or n_steps + n_new == 0:  # rounding is all that is left
            break
        goal = max(PROGRESS * (highest - lowest), tol / 2)
        n_new = _replace(members, np.maximum(growing - lowest, highest - falling))
    between = (dual > lower) & (dual < upper)
    intercept = lacks[between].mean() if between.any() else (highest + lowest) / 2
    return SupportVectors(dual, float(intercept))


def _first_members(signs: Array) -> NDArray[np.uintp]:
    """Take as many examples of either class as there is room for."""
    rank = np.where(signs > 0, np.cumsum(signs > 0), np.cumsum(signs < 0))
    part = np.flatnonzero(signs)
    return np.sort(part[np.argsort(rank[part], kind="stable")][:MAX_MEMBERS]).astype(np.uintp)


def _replace(members: NDArray[np.uintp], violations: Floats) -> int:
    """Let others that violate most come in for those that violate least; return how many came.

    They are up to half of all members, or as many as do not violate at all.
    """
    outside = violations.copy()
    outside[members] = -np.inf
    count = max(len(members) // 2, int(np.sum(violations[members] <= 0)))
    coming = np.argpartition(-outside, count - 1)[:count]
    coming = coming[outside[coming] > 0]
    members[np.argsort(violations[members])[: len(coming)]] = coming
    members.sort()  # neighbours in memory are read one after the other
    return len(coming)


@kernel(fastmath={"nnan", "nsz", "reassoc", "contract", "arcp"})
def _improve(K, members, dual, lacks, lower, upper, goal, Q):  # type: ignore[no-untyped-def]
    """Move pairs of members until they violate no more than the goal; returns how many moved.

    The first of a pair is the one that lacks most, the second promises the largest gain with it.
    """
    q = len(members)
    own, norms, moved = np.empty(q), np.empty(q), np.empty(q)
    growing, falling, gains = np.empty(q), np.empty(q), np.empty(q)
    # Variables at a bound are kept out of the search by numbers that are far away.
    no_growth, no_fall = np.empty(q), np.empty(q)
    for a in range(q):
        row = K[members[a]]
        for b in range(q):
            Q[a, b] = row[members[b]]
        own[a], norms[a], moved[a] = lacks[members[a]], row[members[a]], 0.0
        no_growth[a] = 0.0 if dual[members[a]] < upper[members[a]] else -FAR
        no_fall[a] = 0.0 if dual[members[a]] > lower[members[a]] else FAR
    n_steps = 0
    while True:
        for a in range(q):
            growing[a] = own[a] + no_growth[a]
        for a in range(q):
            falling[a] = own[a] + no_fall[a]
        i = growing.argmax()
        if n_steps % CHECK_STEPS == 0 and growing[i] - falling.min() <= goal:
            break
        first, top, norm = Q[i], growing[i], norms[i]
        for a in range(q):
            gap = max(top - falling[a], 0.0)
            gains[a] = gap * gap / max(norm + norms[a] - 2.0 * first[a], MIN_CURVATURE)
        j = gains.argmax()
        if gains[j] == 0.0:
            break
        curvature = max(norm + norms[j] - 2.0 * first[j], MIN_CURVATURE)
        left = upper[members[i]] - dual[members[i]], dual[members[j]] - lower[members[j]]
        step = min((top - own[j]) / curvature, left[0], left[1])
        dual[members[i]] = upper[members[i]] if step == left[0] else dual[members[i]] + step
        dual[members[j]] = lower[members[j]] if step == left[1] else dual[members[j]] - step
        moved[i] += step
        moved[j] -= step
        no_growth[i] = 0.0 if dual[members[i]] < upper[members[i]] else -FAR
        no_fall[j] = 0.0 if dual[members[j]] > lower[members[j]] else FAR
        no_growth[j], no_fall[i] = 0.0, 0.0
        second = Q[j]
        for a in range(q):
            own[a] -= step * (first[a] - second[a])
        n_steps += 1
    for a in range(q):
        if moved[a] != 0.0:
            row, change = K[members[a]], moved[a]
            for t in range(len(lacks)):
                lacks[t] -= change * row[t]
    return n_steps
