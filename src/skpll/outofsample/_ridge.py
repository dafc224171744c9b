"""The ridge regression of PL-LOO on a kernel's features, and the examples it learns from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.extmath import row_norms

from skpll._examples import Examples as _Examples
from skpll.engine.arrays import is_sparse
from skpll.engine.kernels import KernelMap
from skpll.engine.ridge import DualRidge, PrimalRidge, leverages, weighted_gram
from skpll.engine.ridge import leave_one_out_answers as without_own

from ._blocks import (
    Block,
    Blocks,
    LocalBlocks,
    Parts,
    in_blocks,
    on_features,
    rows_of,
    rows_of_pieces,
    sum_of_pieces,
    with_features,
)
from ._segments import as_numpy, double, like

__all__ = [
    "MANY",
    "Examples",
    "FeatureMap",
    "KernelRidge",
    "Ridge",
    "Sums",
    "System",
    "is_large",
    "merge_duplicates",
    "number_of_landmarks",
]

MANY = 50_000
"""More examples than this are worked on where they are, block by block."""

_LANDMARKS, _FEWER_LANDMARKS, _FEWER_BEYOND = 2500, 1000, 20_000

Floats = NDArray[Any]


def number_of_landmarks(n: int, asked: int | Literal["auto"]) -> int:
    """Give the number of landmarks for n examples; all of up to twice as many are compared."""
    if asked != "auto":
        return int(asked)
    return _LANDMARKS if n <= _FEWER_BEYOND else _FEWER_LANDMARKS


def is_large(n: int, n_landmarks: int | Literal["auto"]) -> bool:
    """Whether examples are so many that each of them, or a copy of it, is next to nothing."""
    return n > max(MANY, 20 * number_of_landmarks(n, n_landmarks))


class Examples(_Examples):
    """Training examples, in memory or in blocks."""

    def part(self, rows: NDArray[Any]) -> Examples:
        """Take some of the examples."""
        groups = None if self.groups is None else self.groups[rows]
        return Examples(as_numpy(self.X[rows]), self.sets[rows], self.weights[rows], groups)

    def blocks(self, width: int | None = None) -> LocalBlocks:
        """Give them as one block, or in blocks of so many features a row."""
        return in_blocks(self.X, self.sets, self.weights, width)


def merge_duplicates(examples: Examples) -> tuple[Examples, NDArray[np.intp]]:
    """Merge examples that agree in everything, and add up their weights.

    Two copies of an example would vouch for each other: none is then judged by a model that has
    not seen it.

    Returns
    -------
    merged : Examples
        The distinct examples, in an order that does not depend on that of the rows; weights are one
        on average.
    where : int array of shape (n,)
        The place of each example among them.
    """
    n = len(examples.sets)
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
    merged = examples.part(first)
    return replace(merged, weights=weights / weights.mean()), where


def _canonical(X: sparse.csr_array) -> sparse.csr_array:
    """Return a CSR matrix with sorted indices, no duplicates and no explicit zeros."""
    if X.has_canonical_format and np.count_nonzero(X.data) == X.nnz:
        return X
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def _marks(X: Any) -> Floats:
    """Give a number for each row that depends on nothing but its features."""
    factors = np.cos(np.arange(1.0, X.shape[1] + 1))
    if sparse.issparse(X):
        return np.asarray(X @ factors)
    marks, size = np.empty(X.shape[0]), max(1, 2**20 // X.shape[1])
    for start in range(0, len(marks), size):
        marks[start : start + size] = (X[start : start + size] * factors).sum(axis=1)
    return marks


def _identity(examples: Examples, row: int) -> bytes:
    """Give all there is to an example but its weight, as bytes."""
    x, sets = examples.X[[row]], examples.sets
    ends = slice(sets.indptr[row], sets.indptr[row + 1])
    parts = [x.data, x.indices] if hasattr(x, "indices") else [x + 0.0]
    parts.append(sets.indices[ends])
    if sets.weights is not None:
        parts.append(sets.weights[ends])
    if examples.groups is not None:
        parts.append(examples.groups[[row]])
    return b"|".join(part.tobytes() for part in parts)


@dataclass(frozen=True)
class FeatureMap:
    """From raw features to those that a linear regression is made on.

    Parameters
    ----------
    kernel : KernelMap or None
        The kernel and its rows; None takes the raw features.
    center : array of shape (d,) or float
        Subtracted from raw features first.
    scale : float
        By which they are divided then.
    """

    kernel: KernelMap | None
    center: Floats | float = 0.0
    scale: float = 1.0

    def __call__(self, X: Any) -> Any:
        """Map rows of features."""
        if self.kernel is None or self.kernel.kernel == "linear":
            if hasattr(X, "tocsr") and np.any(self.center):  # learned from rows that were dense
                X = X.toarray()
            X = X / self.scale if hasattr(X, "tocsr") else (X - like(self.center, X)) / self.scale
        return X if self.kernel is None else self.kernel.against(X)


@dataclass(frozen=True)
class Whitened:
    """From raw features to those whose products are the kernel.

    Parameters
    ----------
    features : FeatureMap
        From raw features to kernel values.
    whitening : array of shape (number of landmarks, m)
        From kernel values to features.
    """

    features: FeatureMap
    whitening: Floats

    def __call__(self, X: Any) -> Any:
        """Map rows of features; rounding errors would be divided by small eigenvalues."""
        values = self.features(double(X))
        return like(values @ like(self.whitening, values), X)


@dataclass(frozen=True)
class System:
    """The features of some examples, from which a ridge regression follows for every alpha.

    Parameters
    ----------
    features : FeatureMap
        How other examples are mapped.
    blocks : Blocks
        The examples, with the features of the regression.
    kernel : array of shape (n, n) or None
        The kernel of all examples, where the regression is made with it.
    gram : array of shape (m, m) or None
        The products of the columns of the features otherwise, and
    sums : array of shape (m,) or None
        their sums.
    whitening : array of shape (number of landmarks, m) or None
        From kernel values against landmarks to the features of the regression.
    before : Sums or None
        Sums over examples of earlier fits, which `gram` and `sums` hold already.
    """

    features: FeatureMap
    blocks: Any
    kernel: Floats | None = None
    gram: Any = None
    sums: Any = None
    whitening: Floats | None = None
    before: Sums | None = None

    def ridge(self, alpha: float, in_sample: bool = False) -> Ridge | KernelRidge:
        """Give the regression with a ridge."""
        if self.kernel is not None:
            return KernelRidge(self, alpha, in_sample)
        return Ridge(self, alpha, in_sample)

    @classmethod
    def of(
        cls,
        blocks: Blocks,
        kernel: str,
        gamma: float,
        unit: float,
        n_landmarks: int,
        random_state: np.random.RandomState,
    ) -> System:
        """Map the features of examples.

        Parameters
        ----------
        blocks : Blocks
            The examples.
        kernel : {"laplacian", "rbf", "linear"}
            The kernel.
        gamma : float
            How fast it falls with the distance.
        unit : float
            The unit of distances.
        n_landmarks : int
            More than twice as many examples are compared with so many only. Linear features
            are taken as they are if there are not more than twice as many, and not more of them
            than of examples or than 2000.
        random_state : RandomState
            Draws the landmarks.
        """
        scaled, n = FeatureMap(None), blocks.shape[0]
        if kernel == "linear":
            scaled = FeatureMap(None, *_location(blocks))
            if blocks.n_features <= min(2 * n_landmarks, max(n, 2000)):
                blocks = blocks.changed(with_features, features=scaled, keep=n <= MANY)
                gram, sums = blocks.sum(_gram)
                return cls(scaled, blocks, gram=gram, sums=sums)
        landmarks = np.arange(n)
        if n > 2 * n_landmarks:
            landmarks = np.sort(random_state.choice(n, n_landmarks, False))
        rows = rows_of(blocks, landmarks)
        rows = scaled(rows) if kernel == "linear" else rows
        against = KernelMap(kernel, gamma, unit, rows)
        features = replace(scaled, kernel=against)
        if n <= 2 * n_landmarks:
            return cls(features, blocks, kernel=against.against(rows))
        whitening = against.whitening()
        whitened = Whitened(features, whitening)
        blocks = blocks.changed(with_features, features=whitened, keep=True)
        gram, sums = blocks.sum(_gram)
        return cls(features, blocks, gram=gram, sums=sums, whitening=whitening)


@dataclass(frozen=True)
class Sums:
    """All that a regression on features has to know of examples that it has learned from.

    Parameters
    ----------
    features : FeatureMap
        From raw features to those of the kernel.
    whitening : array of shape (number of landmarks, m) or None
        From those to the features of the regression, where they are others.
    gram, sums : arrays of shape (m, m) and (m,)
        The products of the columns of the features, and their sums.
    products, columns : arrays of shape (q, m) and (q,)
        The products of confidences and features, and the sums of the confidences.
    total : float
        The weight of all examples.
    labels : list
        The labels of the q classes.
    unit : float
        The weight, as the user counts, that is one.
    """

    features: FeatureMap
    whitening: Floats | None
    gram: Floats
    sums: Floats
    products: Floats
    columns: Floats
    total: float
    labels: list[Any]
    unit: float

    @classmethod
    def of(
        cls, ridge: Ridge | KernelRidge, confidences: Parts, labels: list[Any], unit: float
    ) -> Sums:
        """Add up the examples of a regression, with their confidences."""
        if isinstance(ridge, KernelRidge):  # on the features whose products are the kernel
            system = ridge.system
            kernel = system.features.kernel
            assert kernel is not None
            whitening = kernel.whitening()
            Z = double(system.kernel) @ whitening
            blocks = LocalBlocks([replace(ridge.block, X=Z)])
            gram, sums = blocks.sum(_gram)
            system = System(system.features, blocks, gram=gram, sums=sums, whitening=whitening)
            ridge = Ridge(system, ridge.alpha)
        system = ridge.system
        parts = ridge.products(confidences)
        features = system.features, system.whitening
        return cls(*features, system.gram, system.sums, *parts, ridge.total, labels, unit)

    def on_classes(self, places: NDArray[np.intp], labels: list[Any]) -> Sums:
        """Give the classes new places among more of them."""
        products, columns = np.zeros((len(labels), len(self.sums))), np.zeros(len(labels))
        products[places], columns[places] = self.products, self.columns
        return replace(self, products=products, columns=columns, labels=labels)

    def system(self, blocks: LocalBlocks) -> System:
        """Give the system of these examples and more of them."""
        features: Any = self.features
        if self.whitening is not None:
            features = Whitened(self.features, self.whitening)
        blocks = blocks.changed(with_features, features=features, keep=True)
        gram, sums = blocks.sum(_gram)
        return System(
            self.features,
            blocks,
            gram=self.gram + gram,
            sums=self.sums + sums,
            whitening=self.whitening,
            before=self,
        )


@on_features
@sum_of_pieces
def _gram(block: Block) -> tuple[Any, Any]:
    Z = block.Z
    weights = like(block.weights, Z)
    return weighted_gram(Z, weights), block.weights @ double(Z)


def _location(blocks: Blocks) -> tuple[Floats | float, float]:
    """Centre and size of raw features; sparse ones stay where they are."""
    sums, total = blocks.sum(_weighted_sums)
    center: Floats | float = sums / total if np.ndim(sums) else 0.0
    size = float(np.sqrt(blocks.sum(_squares, center=center) / total))
    return center, size if size > 0 else 1.0


@on_features
@sum_of_pieces
def _weighted_sums(block: Block) -> tuple[Any, Any]:
    if sparse.issparse(block.X):
        return np.float64(0.0), block.weights.sum()
    return block.weights @ double(block.X), block.weights.sum()


@on_features
@sum_of_pieces
def _squares(block: Block, *, center: Floats | float) -> Any:
    if sparse.issparse(block.X):
        return block.weights @ row_norms(block.X, squared=True)
    X = double(block.X) - like(center, block.weights)
    return block.weights @ (X * X).sum(1)


class Ridge:
    """A ridge regression of confidences that answers for each example without it.

    Parameters
    ----------
    system : System
        The features.
    alpha : float
        The ridge.
    in_sample : bool
        Whether the regression is asked about examples that it was trained on after all.
    """

    def __init__(self, system: System, alpha: float, in_sample: bool = False) -> None:
        self.system, self.blocks, self.in_sample = system, system.blocks, in_sample
        self.regression = PrimalRidge(system.gram, alpha)
        self.total = float(self.blocks.sum(_weight))
        if system.before is not None:
            self.total += system.before.total
        self.leverages = self.blocks.map(_leverages, root=self.regression.root)

    def ask(self, confidences: Parts) -> Parts:
        """Score the candidates of every example without it."""
        coef, offset = self._solved(confidences)
        constants = {"coef": coef, "offset": offset, "in_sample": self.in_sample}
        return self.blocks.map(_answers, confidences, self.leverages, **constants)

    def ask_everywhere(self, confidences: Parts, rows: NDArray[np.intp]) -> Floats:
        """Score all classes of some examples, whose numbers are sorted, without them."""
        coef, offset = self._solved(confidences)
        places = self.blocks.places(rows)
        answers = self.blocks.map(
            _answers_everywhere, confidences, self.leverages, places, coef=coef, offset=offset
        )
        return np.concatenate(self.blocks.collect(answers))

    def coefficients(self, confidences: Parts) -> tuple[Floats, Floats]:
        """Give the coefficients and intercepts of the regression on mapped features."""
        coef, means = self._solved(confidences)
        whitening = self.system.whitening
        return coef if whitening is None else whitening @ coef, means

    def products(self, confidences: Parts) -> tuple[Floats, Floats]:
        """Multiply confidences with features: (q, m); and add them up: (q,)."""
        products, columns = self.blocks.sum(_products, confidences)
        before = self.system.before
        if before is not None:
            products, columns = products + before.products, columns + before.columns
        return products, columns

    def _solved(self, confidences: Parts) -> tuple[Floats, Floats]:
        products, columns = self.products(confidences)
        means = columns / self.total
        return self.regression.coefficients(products.T - np.outer(self.system.sums, means)), means


def _weight(block: Block) -> Any:
    return block.weights.sum()


@on_features
@rows_of_pieces
def _leverages(block: Block, *, root: Floats) -> Any:
    Z = block.Z
    return leverages(Z, like(block.weights, Z), like(root, Z))


@on_features
@sum_of_pieces
def _products(block: Block, confidences: Any) -> tuple[Any, Any]:
    segments, weighted = block.segments, block.importance * confidences
    sums = segments.column_sums(weighted, segments.indices, block.sets.shape[1])
    return segments.products(block.Z, weighted), sums


@on_features
@rows_of_pieces
def _answers(
    block: Block, confidences: Any, leverage: Any, *, coef: Floats, offset: Floats, in_sample: bool
) -> Any:
    segments, Z = block.segments, block.Z
    offsets = segments.entries(offset)[segments.indices]
    fitted = segments.at(Z, coef)
    if in_sample:
        return fitted + offsets
    return without_own(fitted, confidences - offsets, segments.spread(leverage)) + offsets


@on_features
def _answers_everywhere(
    block: Block, confidences: Any, leverage: Any, rows: Any, *, coef: Floats, offset: Floats
) -> Floats:
    sets = block.sets
    own = sparse.csr_array((as_numpy(confidences), sets.indices, sets.indptr), shape=sets.shape)
    Z = replace(block, X=block.X[rows]).Z
    fitted, h = as_numpy(Z @ like(coef, Z)), as_numpy(leverage)[rows][:, np.newaxis]
    offset = as_numpy(offset)
    return np.asarray(without_own(fitted, own[rows].toarray() - offset, h) + offset)


class KernelRidge:
    """The same with the kernel of all examples, which are one block.

    Parameters
    ----------
    system : System
        The kernel.
    alpha : float
        The ridge.
    in_sample : bool
        Whether the regression is asked about examples that it was trained on after all.
    """

    def __init__(self, system: System, alpha: float, in_sample: bool = False) -> None:
        self.system, self.blocks, self.in_sample = system, system.blocks, in_sample
        self.alpha = alpha
        (self.block,) = system.blocks.blocks
        assert system.kernel is not None
        self.regression = DualRidge(system.kernel, self.block.weights, alpha)
        self.shares = self.block.importance / self.block.weights.sum()

    def _means(self, confidences: Floats) -> Floats:
        sets = self.block.sets
        return np.bincount(sets.indices, self.shares * confidences, sets.shape[1])

    def ask(self, confidences: Parts) -> Parts:
        """Score the candidates of every example without it."""
        (own,), segments, dual = confidences, self.block.segments, self.regression
        offsets = self._means(own)[segments.indices]
        dense = segments.dense(own).astype(dual.inverse.dtype)
        coefs = segments.at(dual.inverse, dense)
        coefs = coefs - segments.spread(dual.row_sums) * offsets
        if self.in_sample:
            return [own - coefs * segments.spread(dual.ridge)]
        return [own - coefs / segments.spread(dual.diagonal)]

    def coefficients(self, confidences: Parts) -> tuple[Floats, Floats]:
        """Give the coefficients and intercepts of the regression on mapped features."""
        means = self._means(confidences[0])
        dense = self.block.segments.dense(confidences[0])
        return self.regression.coefficients(dense, means), means
