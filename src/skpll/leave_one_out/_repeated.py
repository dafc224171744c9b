r"""Examples that repeat each other: copies, words of a dictionary, and groups of equal sets.

Copies of an example vouch for each other: the regression without one of them has seen the others.
What it says of a group G of copies without all of them is

.. math:: F^\circ_G = Q_G - (I - H_{GG})^{-1} (Q_G - F_G),

where H is the matrix that turns confidences into fitted scores F. For a kernel,
:math:`I - H = \alpha C^{-1} B`, so that :math:`F^\circ_G = Q_G - B_{GG}^{-1} A_G` with the dual
coefficients A. If the features decide the set of an example, examples with the same set vouch for
each other, too.

Candidate sets come in groups if all regions of a picture, say, share the labels of it: then each
label of a set is expected to be that of one of the examples, see `skpll.PLLOO`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skpll._examples import Examples, Features
from skpll.candidates import CandidateSets
from skpll.engine.arrays import is_sparse
from skpll.engine.blocks import Block
from skpll.engine.kernels import squared_distances
from skpll.engine.limits import LIMITS

from ._set_model import SetModel, has_set_model

__all__ = [
    "LeftOut",
    "NearCopyWarning",
    "Neighbors",
    "by_set",
    "come_in_groups",
    "look_at_neighbors",
    "merge_duplicates",
    "n_independent",
    "same_sets",
]

Floats = NDArray[Any]

PROBES = 400
"""Number of examples whose neighbours are looked at for near copies."""

NEIGHBORS = 20
"""The last of these neighbours is taken to be no copy."""

MIN_SAME = 0.7
"""Near copies are suspected if this share of the nearest neighbours have the same candidates."""

MAX_SAME = 0.4
"""And if this share of them, at most, is the share among the last neighbours."""

MIN_KAPPA = 0.55
"""Features decide sets if this share of the nearest neighbours, beyond chance, has the same."""

MIN_SETS = 8
"""And if there are this number of different sets of several candidates."""


MIN_ROWS = 50
"""With fewer ambiguous examples, sets are taken to be drawn for each example."""

MIN_RATIO = 2.5
"""Sets come in groups if draws for each example would give this number of times as many sets."""


class NearCopyWarning(UserWarning):
    """Examples have near copies with the same candidates, which vouch for each other."""


def n_independent(examples: Examples) -> int:
    """Count the examples, near copies as one."""
    return len(examples) if examples.copies is None else len(np.unique(examples.copies))


def merge_duplicates(examples: Examples) -> tuple[Examples, NDArray[np.intp]]:
    """Merge examples that agree in everything, and add up their weights.

    Two copies of an example would confirm each other: neither would be judged by a model that has
    not seen it.

    Returns
    -------
    merged : Examples
        The distinct examples, in an order that does not depend on that of the rows; weights are one
        on average.
    where : int array of shape (n,)
        The position of each example among them.
    """
    n = len(examples)
    if is_sparse(examples.X):
        examples = replace(examples, X=_canonical(examples.X))
    marks = _marks(examples.X)
    order = np.argsort(marks, kind="stable")
    new = np.append(True, marks[order[1:]] != marks[order[:-1]])
    starts = np.flatnonzero(new)
    ends = np.append(starts[1:], n)
    for start, end in zip(starts[ends - starts > 1], ends[ends - starts > 1], strict=True):
        identities = [_identity(examples, row) for row in order[start:end].tolist()]
        arranged = sorted(range(end - start), key=identities.__getitem__)
        order[start:end] = order[start:end][arranged]
        new[start + 1 : end] = [identities[a] != identities[b] for a, b in pairwise(arranged)]
    first, where = order[new], np.empty(n, dtype=np.intp)
    where[order] = np.cumsum(new) - 1
    weights = np.bincount(where, examples.weights)
    return replace(examples.take(first), weights=weights / weights.mean()), where


def _canonical(X: sparse.csr_array) -> sparse.csr_array:
    """Return a CSR matrix with sorted indices, no duplicates and no explicit zeros."""
    if X.has_canonical_format and np.count_nonzero(X.data) == X.nnz:
        return X
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def _marks(X: Features) -> Floats:
    """Return a number for each row that depends on nothing but its features."""
    factors = np.cos(np.arange(1.0, X.shape[1] + 1))
    if is_sparse(X):
        return np.asarray(X @ factors)
    marks, size = np.empty(X.shape[0]), max(1, 2**20 // X.shape[1])
    for start in range(0, len(marks), size):
        marks[start : start + size] = (X[start : start + size] * factors).sum(axis=1)
    return marks


def _identity(examples: Examples, row: int) -> bytes:
    """Return all that describes an example but its weight, as bytes."""
    x, sets = examples.X[[row]], examples.sets
    ends = slice(sets.indptr[row], sets.indptr[row + 1])
    parts = [x.data, x.indices] if is_sparse(x) else [x + 0.0]
    parts.append(sets.indices[ends])
    if sets.weights is not None:
        parts.append(sets.weights[ends])
    if examples.groups is not None:
        parts.append(examples.groups[[row]])
    return b"|".join(part.tobytes() for part in parts)


@dataclass(frozen=True)
class LeftOut:
    """Groups of two and more examples, and the inverse matrix of each.

    Parameters
    ----------
    groups : list of int arrays of shape (number of groups, size)
        The examples of the groups of each size.
    inverses : list of arrays of shape (number of groups, size, size)
        The inverse of what each group's residuals are multiplied with.
    """

    groups: list[NDArray[np.intp]]
    inverses: list[Floats]

    @classmethod
    def of(
        cls, copies: NDArray[np.intp], matrices: Callable[[NDArray[np.intp]], Floats]
    ) -> LeftOut:
        """Invert the matrices of groups, given the group of each example."""
        groups = _by_size(copies)
        return cls(groups, [np.asarray(np.linalg.inv(matrices(rows))) for rows in groups])

    def solve(self, residuals: Floats, solved: Floats) -> Floats:
        """Return what is solved for each example alone, with the rows of groups replaced."""
        for rows, inverses in zip(self.groups, self.inverses, strict=True):
            solved[rows] = inverses @ residuals[rows]
        return solved


def _by_size(copies: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Return the rows of the groups of two and more examples, one array for each size."""
    order = np.argsort(copies, kind="stable")
    _, starts, sizes = np.unique(copies[order], return_index=True, return_counts=True)
    return [
        order[starts[sizes == size][:, np.newaxis] + np.arange(size)]
        for size in np.unique(sizes[sizes > 1]).tolist()
    ]


@dataclass(frozen=True)
class Neighbors:
    """How often an example with several candidates has the same candidates as its neighbours.

    Parameters
    ----------
    nearest, distant : float
        The share of the nearest and of the twentieth neighbours that have the same candidates.
    chance : float
        The share of all examples that have.
    n_sets : int
        Number of different sets of several candidates.
    pair : tuple of int
        The two nearest examples with the same candidates.
    """

    nearest: float
    distant: float
    chance: float
    n_sets: int
    pair: tuple[int, int]

    @property
    def are_copies(self) -> bool:
        """Whether most examples have near copies.

        The nearest neighbour has the same candidates then, but not the twentieth.
        """
        return self.nearest >= MIN_SAME and self.distant <= MAX_SAME

    @property
    def decide_sets(self) -> bool:
        """Whether the features of an example decide which candidates it has.

        Near copies and examples of the same word of a dictionary have the same candidates. If sets
        are drawn for each example, or depend on its features in part, few neighbours do. With few
        different sets there is too little to learn from where one is left out.
        """
        if self.n_sets < MIN_SETS:
            return False
        return self.nearest - self.chance >= MIN_KAPPA * (1 - self.chance)


def look_at_neighbors(
    examples: Examples, same_sets: NDArray[np.intp], random_state: np.random.RandomState
) -> Neighbors | None:
    """Compare the candidates of neighbours; None for few examples.

    Parameters
    ----------
    examples : Examples
        The examples, without exact duplicates.
    same_sets : int array of shape (n,)
        The same number for examples with the same candidates.
    random_state : RandomState
        Draws the examples that are looked at.
    """
    ambiguous = np.flatnonzero(examples.sets.sizes > 1)
    if len(examples) < 2 * NEIGHBORS or len(ambiguous) < NEIGHBORS:
        return None
    probes = np.sort(random_state.permutation(ambiguous)[:PROBES])
    squared = squared_distances(examples.X[probes], examples.X)
    squared[np.arange(len(probes)), probes] = np.inf
    nearest = np.argpartition(squared, NEIGHBORS - 1, axis=1)[:, :NEIGHBORS]
    order = np.argsort(np.take_along_axis(squared, nearest, axis=1), axis=1)
    first, last = np.take_along_axis(nearest, order[:, [0, -1]], axis=1).T
    near = same_sets[first] == same_sets[probes]
    place = int(np.argmin(np.where(near, squared[np.arange(len(probes)), first], np.inf)))
    counts = np.bincount(same_sets[ambiguous])
    return Neighbors(
        float(near.mean()),
        float(np.mean(same_sets[last] == same_sets[probes])),
        float(np.mean(counts[same_sets[ambiguous]]) / len(ambiguous)),
        int(np.count_nonzero(counts)),
        (int(probes[place]), int(first[place])),
    )


def by_set(sets: CandidateSets) -> NDArray[np.intp]:
    """Return the same number for ambiguous examples with the same candidates."""
    numbers = same_sets(sets)
    alone = numbers.max() + 1 + np.arange(len(sets))
    return np.unique(np.where(sets.sizes == 1, alone, numbers), return_inverse=True)[1]


def same_sets(candidates: CandidateSets) -> NDArray[np.intp]:
    """Return the same number for examples with the same candidate set."""
    numbers: dict[bytes, int] = {}
    ends = zip(candidates.indptr[:-1], candidates.indptr[1:], strict=True)
    return np.array(
        [numbers.setdefault(candidates.indices[a:b].tobytes(), len(numbers)) for a, b in ends],
        dtype=np.intp,
    )


def come_in_groups(sets: CandidateSets, random_state: np.random.RandomState) -> bool:
    """Return True if there are far fewer different sets than independent draws would give.

    The draws keep the size of each set, and how often labels are candidates together: a label is
    drawn from the set, and false candidates by their rates for that class.
    """
    sets = sets[sets.sizes > 1]
    if len(sets) > LIMITS.choice_rows:
        sets = sets[np.sort(random_state.choice(len(sets), LIMITS.choice_rows, replace=False))]
    block = Block(np.empty((len(sets), 0)), sets, np.ones(len(sets)))
    if len(sets) < MIN_ROWS or not has_set_model(block):
        return False
    drawn = _drawn_independently(block, random_state)
    return _number_of_rows(drawn) >= MIN_RATIO * _number_of_rows(np.asarray(sets) > 0)


def _drawn_independently(block: Block, random_state: np.random.RandomState) -> NDArray[np.bool_]:
    """Draw sets of the same sizes, each for itself."""
    sets, (n, q) = block.sets, block.shape
    rates = SetModel.of(block, sets.initial_confidences()).rates
    labels = sets.indices[
        sets.indptr[:-1] + (random_state.uniform(size=n) * sets.sizes).astype(int)
    ]
    order = np.log(rates) - np.log1p(-rates)
    scores = order[labels] + random_state.gumbel(size=(n, q))
    scores[np.arange(n), labels] = np.inf
    ranks = np.argsort(np.argsort(-scores, axis=1), axis=1)
    return np.asarray(ranks < sets.sizes[:, np.newaxis])


def _number_of_rows(pattern: NDArray[np.bool_]) -> int:
    """Count the different rows of a pattern."""
    return len(np.unique(np.packbits(pattern, axis=1), axis=0))
