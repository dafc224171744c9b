"""The ridge regression of PL-LOO on the features of a kernel, and its leave-one-out answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.extmath import row_norms

from skpll.engine.arrays import (
    Matrix,
    as_dense,
    as_float64,
    as_numpy,
    is_sparse,
    is_tensor,
    to_namespace,
)
from skpll.engine.blocks import Block, Part, Store, Values
from skpll.engine.kernels import KernelMap
from skpll.engine.limits import LIMITS
from skpll.engine.ridge import (
    DualRidge,
    PrimalRidge,
    leave_one_out_answers,
    leverages,
    weighted_gram,
)

from ._repeated import LeftOut

__all__ = ["FeatureMap", "Kernel", "KernelRidge", "Predict", "Ridge", "Sums", "System"]

Floats: TypeAlias = NDArray[Any]
Predict: TypeAlias = Callable[[Floats], Floats]
"""From confidences in the candidates of some examples to scores of all classes of others."""


class Kernel(NamedTuple):
    """A kernel without the rows that it is measured against.

    Parameters
    ----------
    name : {"laplacian", "rbf", "linear"}
        The kernel.
    gamma : float
        How fast it falls with the distance, in units of `unit`.
    unit : float
        The unit of distances.
    """

    name: str
    gamma: float
    unit: float


@dataclass(frozen=True)
class FeatureMap:
    """From raw features to those that a linear regression is made on.

    Parameters
    ----------
    kernel : KernelMap or None
        The kernel and its rows; None takes the raw features.
    center : array of shape (d,) or float
        Subtracted from raw features first, for a linear kernel.
    scale : float
        By which they are divided then.
    whitening : array of shape (number of landmarks, m) or None
        From kernel values to features whose products are the kernel.
    """

    kernel: KernelMap | None
    center: Floats | float = 0.0
    scale: float = 1.0
    whitening: Floats | None = None

    def __call__(self, X: Matrix) -> Matrix:
        """Map rows of features."""
        if self.whitening is not None:  # in double precision: small eigenvalues amplify rounding
            values = replace(self, whitening=None)(as_float64(X))
            return to_namespace(values @ to_namespace(self.whitening, values), X)
        if self.kernel is None:
            return self._standardized(X)
        return self.kernel.against(self._standardized(X) if self.kernel.kernel == "linear" else X)

    def _standardized(self, X: Matrix) -> Matrix:
        if np.any(self.center):
            X = as_dense(X)  # learned from rows that were dense
        return X / self.scale if is_sparse(X) else (X - to_namespace(self.center, X)) / self.scale


@dataclass(frozen=True)
class Sums:
    """All that a regression on features has to know of the examples that it has learned from.

    Parameters
    ----------
    gram : array of shape (m, m)
        The products of the columns of the features.
    sums : array of shape (m,)
        The sums of the columns.
    products : array of shape (q, m)
        The products of confidences and features.
    columns : array of shape (q,)
        The sums of the confidences.
    total : float
        The weight of all examples.
    """

    gram: Floats
    sums: Floats
    products: Floats
    columns: Floats
    total: float

    @classmethod
    def of_kernel(
        cls, features: FeatureMap, targets: sparse.csr_array, weights: Floats
    ) -> tuple[FeatureMap, Sums]:
        """Return the features of the kernel of all examples, and the sums over them."""
        kernel = features.kernel
        assert kernel is not None
        whitening = kernel.whitening()
        Z = (
            replace(kernel, rows=as_float64(kernel.rows)).against(as_float64(kernel.rows))
            @ whitening
        )
        weighted = targets.T.multiply(weights).tocsr()
        sums = cls(
            weighted_gram(Z, weights),
            weights @ Z,
            weighted @ Z,
            np.asarray(weighted.sum(axis=1)).ravel(),
            float(weights.sum()),
        )
        return replace(features, whitening=whitening), sums

    def on_classes(self, positions: NDArray[np.intp], n_classes: int) -> Sums:
        """Move the classes to new positions among more classes."""
        products, columns = np.zeros((n_classes, len(self.sums))), np.zeros(n_classes)
        products[positions], columns[positions] = self.products, self.columns
        return replace(self, products=products, columns=columns)


@dataclass(frozen=True)
class System:
    """The features of some examples, from which a ridge regression follows for every alpha.

    Parameters
    ----------
    features : FeatureMap
        How other examples are mapped.
    store : Store
        The examples, with the features of the regression.
    kernel : array of shape (n, n) or None
        The kernel of all examples, where the regression is made with it.
    moments : tuple of arrays of shape (m, m), (m,) and () or None
        Otherwise the products of the columns of the features, their sums, and the total weight.
    before : Sums or None
        Sums over the examples of earlier fits, which `moments` include.
    """

    features: FeatureMap
    store: Store
    kernel: Floats | None = None
    moments: tuple[Floats, Floats, float] | None = None
    before: Sums | None = None

    @classmethod
    def of(
        cls, store: Store, kernel: Kernel, n_landmarks: int, random_state: np.random.RandomState
    ) -> System:
        """Map the features of examples.

        If there are more than `2 * n_landmarks` examples, the kernel is approximated with
        `n_landmarks` random ones. Linear features are used as they are if they are at most
        `2 * n_landmarks`, and at most as many as the examples (or `LIMITS.linear_features`). For
        one tensor the exact kernel is computed on its device.
        """
        scaled, n = FeatureMap(None), store.shape[0]
        tensor = isinstance(store, Block) and is_tensor(store.X)
        if kernel.name == "linear":
            scaled = FeatureMap(None, *_location(store))
            few = store.n_features <= min(2 * n_landmarks, max(n, LIMITS.linear_features))
            if few and not tensor:
                keep = n <= LIMITS.rows_in_memory
                return cls.on_features(scaled, store, keep=keep)
        exact = n <= 2 * n_landmarks
        rows = np.arange(n) if exact else np.sort(random_state.choice(n, n_landmarks, False))
        X = store.X if exact and isinstance(store, Block) else store.take(rows)[0].X
        X = scaled(X) if kernel.name == "linear" else X
        against = KernelMap(kernel.name, kernel.gamma, kernel.unit, X)
        features = replace(scaled, kernel=against)
        if exact:
            return cls(features, store, kernel=against.against(X))
        features = replace(features, whitening=against.whitening())
        return cls.on_features(features, store)

    @classmethod
    def on_features(
        cls, features: FeatureMap, store: Store, before: Sums | None = None, keep: bool = True
    ) -> System:
        """Add up the products of the features of examples, and those of earlier ones."""
        store = store.mapped(features, keep=keep)
        gram, sums, total = store.with_features.sum(_moments)
        if before is not None:
            gram, sums, total = gram + before.gram, sums + before.sums, total + before.total
        return cls(features, store, moments=(gram, sums, float(total)), before=before)

    def ridge(self, alpha: float) -> Ridge | KernelRidge:
        """Return the regression with a ridge."""
        if self.kernel is None:
            return Ridge(self, alpha)
        assert isinstance(self.store, Block)
        dual = DualRidge.of(self.kernel, self.store.weights, alpha)
        return KernelRidge(self.features, self.store, dual)


def _location(store: Store) -> tuple[Floats | float, float]:
    """Compute the centre and the size of raw features; sparse ones are not centred."""
    sums, total = store.with_features.sum(_weighted_sums)
    center: Floats | float = as_numpy(sums) / total if np.ndim(sums) else 0.0
    size = math.sqrt(float(store.with_features.sum(_squares, center=center)) / float(total))
    return center, size if size > 0 else 1.0


def _weighted_sums(block: Block) -> tuple[Values, Values]:
    if is_sparse(block.X):
        return np.float64(0.0), block.weights.sum()
    X = as_float64(block.X)
    return to_namespace(block.weights, X) @ X, block.weights.sum()


def _squares(block: Block, *, center: Values) -> Values:
    if is_sparse(block.X):
        return block.weights @ row_norms(block.X, squared=True)
    X = as_float64(block.X)
    X = X - to_namespace(center, X)
    return to_namespace(block.weights, X) @ (X * X).sum(1)


@dataclass(frozen=True)
class KernelRidge:
    """The ridge regression on the kernel of all examples, which are in memory.

    Parameters
    ----------
    features : FeatureMap
        The kernel.
    block : Block
        The examples.
    dual : DualRidge
        The regression on their kernel.
    """

    features: FeatureMap
    block: Block
    dual: DualRidge

    @property
    def store(self) -> Block:
        """The examples."""
        return self.block

    @property
    def size(self) -> int:
        """The number of coefficients for each class."""
        return len(self.dual.inverse)

    def ask(self, confidences: Floats) -> Floats:
        """Compute F°, the score of each candidate by the regression without the example."""
        if self._left_out is not None:
            return self._ask_without_copies(confidences, self._left_out)
        coefs = self._coefficients_of_candidates(confidences)
        return np.asarray(confidences - coefs / self.block.spread(self.dual.diagonal))

    @cached_property
    def _places(self) -> tuple[Matrix, Matrix]:
        """The row and the column of each candidate, where the kernel is a tensor."""
        torch, inverse = import_module("torch"), self.dual.inverse
        sets = self.block.sets
        rows, columns = (
            torch.tensor(each, dtype=torch.int64, device=inverse.device)
            for each in (sets.rows, sets.indices)
        )
        return rows, columns

    @cached_property
    def _left_out(self) -> LeftOut | None:
        copies, inverse = self.block.copies, self.dual.inverse
        if copies is None:
            return None
        return LeftOut.of(copies, lambda rows: inverse[rows[:, :, None], rows[:, None, :]])

    def _ask_without_copies(self, confidences: Floats, left_out: LeftOut) -> Floats:
        coefs, _ = self.coefficients(confidences)
        solved = left_out.solve(coefs, coefs / self.dual.diagonal[:, np.newaxis])
        return np.asarray(confidences - self.block.sets.entries(solved))

    def fitted(self, confidences: Floats) -> Floats:
        """Compute the score of each candidate by the regression that was trained on it."""
        coefs = self._coefficients_of_candidates(confidences)
        return np.asarray(confidences - coefs * self.block.spread(self.dual.ridge))

    def descended(self, confidences: Floats) -> Floats:
        """Compute the fitted scores, shifted to the means of the confidences.

        That is a step of gradient descent on the error of the regression, as a function of the
        confidences that it is trained on.
        """
        row_sums, means = self.dual.row_sums, self._means(confidences)
        sums = row_sums @ self._targets(confidences) - row_sums.sum() * means
        weights = self.block.weights
        alpha = self.dual.ridge[0] * weights[0]
        return np.asarray(
            self.fitted(confidences) + (alpha * sums / weights.sum())[self.block.indices]
        )

    def coefficients(self, confidences: Floats) -> tuple[Floats, Floats]:
        """Compute the coefficients and intercepts of the regression on kernel values."""
        means = self._means(confidences)
        return self.dual.coefficients(self._targets(confidences), means), means

    def in_single_precision(self) -> KernelRidge:
        """Return the regression in single precision, in which products take half the time."""
        return replace(self, dual=self.dual.astype(np.float32))

    def without(self, held_out: NDArray[np.bool_]) -> tuple[KernelRidge, Predict]:
        """Return the regression without some examples, and what predicts them."""
        dual, predictions = self.dual.without(held_out)
        block, _ = self.block.take(np.flatnonzero(~held_out))
        others = KernelRidge(self.features, block, dual)

        def predict(confidences: Floats) -> Floats:
            means = others._means(confidences).astype(dual.inverse.dtype)
            return predictions(others._targets(confidences) - means) + means

        return others, predict

    def _coefficients_of_candidates(self, confidences: Floats) -> Floats:
        """Compute the dual coefficients A of the candidates alone."""
        block, dual = self.block, self.dual
        targets = self._targets(confidences)
        if is_tensor(targets):
            coefs = as_numpy((dual.inverse @ targets)[self._places])
        else:
            coefs = block.at(dual.inverse, targets)
        return np.asarray(
            coefs - block.spread(dual.row_sums) * self._means(confidences)[block.indices]
        )

    def _targets(self, confidences: Floats) -> Matrix:
        if is_tensor(self.dual.inverse):
            targets = self.dual.inverse.new_zeros(self.block.shape)
            targets[self._places] = to_namespace(confidences, targets)
            return targets
        return self.block.sets.to_matrix(confidences).toarray().astype(self.dual.inverse.dtype)

    def _means(self, confidences: Floats) -> Floats:
        block = self.block
        weighted = block.spread(block.weights / block.weights.sum()) * confidences
        return np.asarray(block.column_sums(weighted, block.indices, block.shape[1]))


class Ridge:
    """The ridge regression on features of examples wherever they are.

    Parameters
    ----------
    system : System
        The features.
    alpha : float
        The ridge.
    """

    def __init__(self, system: System, alpha: float) -> None:
        assert system.moments is not None
        self.system, self.alpha, self.features = system, alpha, system.features
        self.store, self.reading = system.store, system.store.with_features
        self.gram, self.sums, self.total = system.moments
        self.size = len(self.gram)
        self.primal = PrimalRidge(self.gram, alpha)
        self.leverages = self.reading.map(_leverages, root=self.primal.root)

    def ask(self, confidences: Part) -> Part:
        """Compute F°, the score of each candidate by the regression without the example."""
        if self._left_out is not None:
            return self._ask_without_copies(confidences, self._left_out)
        coef, means = self._solved(confidences)
        return self.reading.map(_answers, confidences, self.leverages, coef=coef, means=means)

    @cached_property
    def _left_out(self) -> LeftOut | None:
        block = self.store
        if not isinstance(block, Block) or block.copies is None:
            return None
        mapped, weights = as_dense(block.Z @ self.primal.root), block.weights

        def matrices(rows: NDArray[np.intp]) -> Floats:
            hats = mapped[rows] @ mapped[rows].transpose(0, 2, 1) * weights[rows][:, np.newaxis]
            return np.eye(rows.shape[1]) - hats

        return LeftOut.of(block.copies, matrices)

    def _ask_without_copies(self, confidences: Floats, left_out: LeftOut) -> Floats:
        coef, means = self._solved(confidences)
        block = self.store
        assert isinstance(block, Block)
        targets = block.sets.to_matrix(confidences).toarray()
        residuals = targets - np.asarray(block.Z @ coef) - means
        alone = residuals / (1 - self.leverages[:, np.newaxis])
        return np.asarray(block.sets.entries(targets - left_out.solve(residuals, alone)))

    def fitted(self, confidences: Part) -> Part:
        """Compute the score of each candidate by the regression that was trained on it."""
        coef, means = self._solved(confidences)
        return self.reading.map(_fitted, coef=coef, offsets=means)

    def descended(self, confidences: Part) -> Part:
        """Compute the fitted scores, shifted to the means of the confidences.

        That is a step of gradient descent on the error of the regression, as a function of the
        confidences that it is trained on.
        """
        coef, means = self._solved(confidences)
        return self.reading.map(_fitted, coef=coef, offsets=means - self.sums @ coef / self.total)

    def in_single_precision(self) -> Ridge:
        """Return the regression itself: its features are few."""
        return self

    def without(self, held_out: NDArray[np.bool_]) -> tuple[Ridge, Predict]:
        """Return the regression without some examples in memory, and what predicts them."""
        (gone, _), (block, _) = (
            self.reading.take(np.flatnonzero(rows)) for rows in (held_out, ~held_out)
        )
        gram, sums, total = _moments(gone)
        moments = self.gram - gram, self.sums - sums, self.total - float(total)
        others = Ridge(replace(self.system, store=block, moments=moments), self.alpha)

        def predict(confidences: Floats) -> Floats:
            coef, means = others._solved(confidences)
            return np.asarray(gone.Z @ coef + means)

        return others, predict

    def ask_everywhere(self, confidences: Part, rows: NDArray[np.intp]) -> Floats:
        """Score all classes of some examples, whose numbers are sorted, without them."""
        coef, means = self._solved(confidences)
        block, (own, leverage) = self.reading.take(rows, confidences, self.leverages)
        Z = block.Z
        fitted, h = as_numpy(Z @ to_namespace(coef, Z)), as_numpy(leverage)[:, np.newaxis]
        targets = block.sets.to_matrix(as_numpy(own)).toarray() - means
        return np.asarray(leave_one_out_answers(fitted, targets, h) + means)

    def coefficients(self, confidences: Part) -> tuple[Floats, Floats]:
        """Compute the coefficients and intercepts of the regression on kernel values."""
        coef, means = self._solved(confidences)
        whitening = self.system.features.whitening
        return coef if whitening is None else whitening @ coef, means

    def added_up(self) -> Sums:
        """Return the sums over the features, with the confidences that were asked for last."""
        return Sums(self.gram, self.sums, *self._products, self.total)

    def _solved(self, confidences: Part) -> tuple[Floats, Floats]:
        products, columns = self.reading.sum(_products, confidences)
        before = self.system.before
        if before is not None:
            products, columns = products + before.products, columns + before.columns
        self._products = products, columns
        means = columns / self.total
        return self.primal.coefficients(products.T - np.outer(self.sums, means)), means


def _moments(block: Block) -> tuple[Values, Values, Values]:
    Z = block.Z
    gram = weighted_gram(Z, to_namespace(block.weights, Z))
    return gram, block.weights @ as_float64(Z), block.weights.sum()


def _leverages(block: Block, *, root: Values) -> Values:
    Z = block.Z
    return leverages(Z, to_namespace(block.weights, Z), to_namespace(root, Z))


def _products(block: Block, confidences: Values) -> tuple[Values, Values]:
    weighted = block.spread(block.weights) * confidences
    sums = block.column_sums(weighted, block.indices, block.sets.shape[1])
    return block.products(weighted), sums


def _answers(
    block: Block, confidences: Values, leverage: Values, *, coef: Values, means: Values
) -> Values:
    offsets = block.entries(means)[block.indices]
    fitted = block.at(block.Z, coef)
    return leave_one_out_answers(fitted, confidences - offsets, block.spread(leverage)) + offsets


def _fitted(block: Block, *, coef: Values, offsets: Values) -> Values:
    return block.at(block.Z, coef) + block.entries(offsets)[block.indices]
