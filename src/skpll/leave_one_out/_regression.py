"""The ridge regression of PL-LOO on the features of a kernel, and its leave-one-out answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import add, sub
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
from skpll.engine.blocks import Block, Part, Store, Values, column_sums, reads_features
from skpll.engine.kernels import FeatureMap, KernelMap
from skpll.engine.limits import LIMITS
from skpll.engine.ridge import (
    DualRidge,
    PrimalRidge,
    leave_one_out_answers,
    leverages,
    weighted_gram,
)

from ._repeated import LeftOut

__all__ = ["AnyRidge", "KernelRidge", "Predict", "Ridge", "Sums", "System"]

Floats: TypeAlias = NDArray[Any]
Predict: TypeAlias = Callable[[Floats], Floats]
"""From confidences in the candidates of some examples to scores of all classes of others."""


class Sums(NamedTuple):
    """All that a regression on features has to know of the examples that it has learned from.

    Parameters
    ----------
    gram : array of shape (m, m)
        The products of the columns of the features.
    sums : array of shape (m,)
        The sums of the columns.
    total : float
        The weight of all examples.
    products : array of shape (q, m)
        The products of confidences and features.
    columns : array of shape (q,)
        The sums of the confidences.
    """

    gram: Floats
    sums: Floats
    total: float
    products: Floats | float = 0.0
    columns: Floats | float = 0.0

    @classmethod
    def of_kernel(
        cls, features: FeatureMap, targets: sparse.csr_array, weights: Floats
    ) -> tuple[FeatureMap, Sums]:
        """Return the features of the kernel of all examples, and the sums over them."""
        assert features.kernel is not None
        rows = as_float64(features.kernel.rows)
        kernel = replace(features.kernel, rows=rows)
        whitening = kernel.whitening()
        Z = kernel.against(rows) @ whitening
        weighted = targets.T.multiply(weights).tocsr()
        moments = weighted_gram(Z, weights), weights @ Z, weights.sum()
        sums = cls(*moments, weighted @ Z, np.asarray(weighted.sum(axis=1)).ravel())
        return replace(features, whitening=whitening), sums

    def on_classes(self, positions: NDArray[np.intp], n_classes: int) -> Sums:
        """Move the classes to new positions among more classes."""
        products, columns = np.zeros((n_classes, len(self.sums))), np.zeros(n_classes)
        products[positions], columns[positions] = self.products, self.columns
        return self._replace(products=products, columns=columns)


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
    sums : Sums or None
        Otherwise the sums over the features, and over the confidences in examples of earlier fits.
    """

    features: FeatureMap
    store: Store
    kernel: Floats | None = None
    sums: Sums | None = None

    @classmethod
    def of(
        cls, store: Store, kernel: KernelMap, n_landmarks: int, random_state: np.random.RandomState
    ) -> System:
        """Map the features of examples.

        If there are more than `2 * n_landmarks` examples, the kernel is approximated with
        `n_landmarks` random ones. Linear features are used as they are if they are at most
        `2 * n_landmarks`, and at most as many as the examples (or `LIMITS.linear_features`). For
        one tensor the exact kernel is computed on its device.
        """
        scaled, n = FeatureMap(None), store.shape[0]
        if kernel.kernel == "linear":
            scaled = FeatureMap(None, *_location(store))
            few = store.n_features <= min(2 * n_landmarks, max(n, LIMITS.linear_features))
            if few and not (isinstance(store, Block) and is_tensor(store.X)):
                return cls.on_features(scaled, store, keep=n <= LIMITS.rows_in_memory)
        exact = n <= 2 * n_landmarks
        rows = np.arange(n) if exact else np.sort(random_state.choice(n, n_landmarks, False))
        X = store.X if exact and isinstance(store, Block) else store.sample(rows)[0].X
        kernel = replace(kernel, rows=scaled(X) if kernel.kernel == "linear" else X)
        features = replace(scaled, kernel=kernel)
        if exact:
            return cls(features, store, kernel=kernel.against(kernel.rows))
        return cls.on_features(replace(features, whitening=kernel.whitening()), store)

    @classmethod
    def on_features(
        cls, features: FeatureMap, store: Store, before: Sums | None = None, keep: bool = True
    ) -> System:
        """Add up the products of the features of examples, and those of earlier ones."""
        store = store.mapped(features, keep=keep)
        sums = Sums(*store.sum(_moments))
        if before is not None:
            sums = Sums(*map(add, sums, before))
        return cls(features, store, sums=sums)

    def ridge(self, alpha: float) -> Ridge | KernelRidge:
        """Return the regression with a ridge."""
        if self.kernel is None:
            return Ridge(self, alpha)
        assert isinstance(self.store, Block)
        dual = DualRidge.of(self.kernel, self.store.weights, alpha)
        return KernelRidge(self.features, self.store, dual)


def _location(store: Store) -> tuple[Floats | float, float]:
    """Compute the centre and the size of raw features; sparse ones are not centred."""
    sums, total = store.sum(_weighted_sums)
    center: Floats | float = as_numpy(sums) / total if np.ndim(sums) else 0.0
    size = math.sqrt(float(store.sum(_squares, center=center)) / float(total))
    return center, size if size > 0 else 1.0


@reads_features
def _weighted_sums(block: Block) -> tuple[Values, Values]:
    if is_sparse(block.X):
        return np.float64(0.0), block.weights.sum()
    X = as_float64(block.X)
    return to_namespace(block.weights, X) @ X, block.weights.sum()


@reads_features
def _squares(block: Block, *, center: Values) -> Values:
    if is_sparse(block.X):
        return block.weights @ row_norms(block.X, squared=True)
    X = as_float64(block.X)
    X = X - to_namespace(center, X)
    return to_namespace(block.weights, X) @ (X * X).sum(1)


class KernelRidge:
    """The ridge regression on the kernel of all examples, which are in memory.

    Parameters
    ----------
    features : FeatureMap
        The kernel.
    store : Block
        The examples.
    dual : DualRidge
        The regression on their kernel.
    """

    def __init__(self, features: FeatureMap, store: Block, dual: DualRidge) -> None:
        self.features, self.store, self.dual = features, store, dual
        self.operations = float(len(store)) ** 2 * store.shape[1]
        self.left_out = None
        if store.copies is not None:
            inverse = dual.inverse
            self.left_out = LeftOut.of(
                store.copies, lambda rows: inverse[rows[:, :, None], rows[:, None, :]]
            )

    def ask(self, confidences: Floats) -> Floats:
        """Compute F°, the score of each candidate by the regression without the example."""
        sets, diagonal = self.store.sets, self.dual.diagonal
        if self.left_out is None:
            coefs, _ = self._of_candidates(confidences)
            return np.asarray(confidences - coefs / sets.spread(diagonal))
        coefs, _ = self.coefficients(confidences)
        solved = self.left_out.solve(coefs, coefs / diagonal[:, np.newaxis])
        return np.asarray(confidences - sets.entries(solved))

    def fitted(self, confidences: Floats) -> Floats:
        """Compute the score of each candidate by the regression that was trained on it."""
        coefs, _ = self._of_candidates(confidences)
        return np.asarray(confidences - coefs * self.store.sets.spread(self.dual.ridge))

    def descended(self, confidences: Floats) -> Floats:
        """Compute the fitted scores, shifted to the means of the confidences.

        That is a step of gradient descent on the error of the regression, as a function of the
        confidences that it is trained on.
        """
        coefs, sums = self._of_candidates(confidences)
        sets, ridge, weights = self.store.sets, self.dual.ridge, self.store.weights
        shifts = ridge[0] * weights[0] * sums / weights.sum()
        return np.asarray(confidences - coefs * sets.spread(ridge) + shifts[sets.indices])

    def coefficients(self, confidences: Floats) -> tuple[Floats, Floats]:
        """Compute the coefficients and intercepts of the regression on kernel values."""
        targets, means = self._targets(confidences)
        return self.dual.coefficients(targets, means), means

    def without(self, held_out: NDArray[np.bool_]) -> tuple[KernelRidge, Predict]:
        """Return the regression without some examples, and what predicts them."""
        dual, predictions = self.dual.without(held_out)
        others = KernelRidge(self.features, self.store.take(~held_out), dual)

        def predict(confidences: Floats) -> Floats:
            targets, means = others._targets(confidences)
            means = means.astype(targets.dtype)
            return predictions(targets - means) + means

        return others, predict

    def _of_candidates(self, confidences: Floats) -> tuple[Floats, Floats]:
        """Compute the dual coefficients A of the candidates, and the sums of all of them."""
        (targets, means), sets = self._targets(confidences), self.store.sets
        row_sums = self.dual.row_sums
        coefs = self.store.at(self.dual.inverse, targets)
        coefs = coefs - sets.spread(row_sums) * means[sets.indices]
        return coefs, row_sums @ as_numpy(targets) - row_sums.sum() * means

    def _targets(self, confidences: Floats) -> tuple[Matrix, Floats]:
        """Return the confidences as a matrix, where the regression is, and their means."""
        targets = self.store.sets.to_matrix(confidences).toarray()
        weights = self.store.weights
        return to_namespace(targets, self.dual.inverse), weights @ targets / weights.sum()


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
        assert system.sums is not None
        self.system, self.alpha, self.features = system, alpha, system.features
        self.store, self.sums = system.store, system.sums
        n, q = self.store.shape
        self.operations = float(n) * len(self.sums.gram) * q
        self.primal = PrimalRidge(self.sums.gram, alpha)
        self.leverages = self.store.map(_leverages, root=self.primal.root)
        self.left_out = None
        if isinstance(self.store, Block) and self.store.copies is not None:
            self.left_out = LeftOut.of(self.store.copies, self._without_groups)

    def _without_groups(self, rows: NDArray[np.intp]) -> Floats:
        """Compute the matrix I - H of each group of copies."""
        block = self.store
        assert isinstance(block, Block)
        mapped, weights = as_dense(block.Z[rows.ravel()] @ self.primal.root), block.weights[rows]
        mapped = mapped.reshape(*rows.shape, -1)
        hats = mapped @ mapped.transpose(0, 2, 1) * weights[:, np.newaxis]
        return np.eye(rows.shape[1]) - hats

    def ask(self, confidences: Part) -> Part:
        """Compute F°, the score of each candidate by the regression without the example."""
        coef, means = self._solved(confidences)
        if self.left_out is None:
            return self.store.map(_answers, confidences, self.leverages, coef=coef, means=means)
        block = self.store
        assert isinstance(block, Block)
        targets = block.sets.to_matrix(confidences).toarray()
        residuals = targets - np.asarray(block.Z @ coef) - means
        alone = residuals / (1 - self.leverages[:, np.newaxis])
        return np.asarray(block.sets.entries(targets - self.left_out.solve(residuals, alone)))

    def fitted(self, confidences: Part) -> Part:
        """Compute the score of each candidate by the regression that was trained on it."""
        coef, means = self._solved(confidences)
        return self.store.map(_fitted, coef=coef, offsets=means)

    def descended(self, confidences: Part) -> Part:
        """Compute the fitted scores, shifted to the means of the confidences.

        That is a step of gradient descent on the error of the regression, as a function of the
        confidences that it is trained on.
        """
        coef, means = self._solved(confidences)
        offsets = means - self.sums.sums @ coef / self.sums.total
        return self.store.map(_fitted, coef=coef, offsets=offsets)

    def without(self, held_out: NDArray[np.bool_]) -> tuple[Ridge, Predict]:
        """Return the regression without some examples in memory, and what predicts them."""
        assert isinstance(self.store, Block)
        gone, block = self.store.take(held_out), self.store.take(~held_out)
        sums = Sums(*map(sub, self.sums, Sums(*_moments(gone))))
        others = Ridge(replace(self.system, store=block, sums=sums), self.alpha)

        def predict(confidences: Floats) -> Floats:
            coef, means = others._solved(confidences)
            return np.asarray(gone.Z @ coef + means)

        return others, predict

    def ask_everywhere(self, confidences: Part, rows: NDArray[np.intp]) -> Floats:
        """Score all classes of some examples, whose numbers are sorted, without them."""
        coef, means = self._solved(confidences)
        block, (own, leverage) = self.store.sample(rows, confidences, self.leverages)
        Z = block.Z
        fitted, h = as_numpy(Z @ to_namespace(coef, Z)), as_numpy(leverage)[:, np.newaxis]
        targets = block.sets.to_matrix(as_numpy(own)).toarray() - means
        return np.asarray(leave_one_out_answers(fitted, targets, h) + means)

    def coefficients(self, confidences: Part) -> tuple[Floats, Floats]:
        """Compute the coefficients and intercepts of the regression on kernel values."""
        coef, means = self._solved(confidences)
        whitening = self.features.whitening
        return coef if whitening is None else whitening @ coef, means

    def added_up(self) -> Sums:
        """Return the sums over the features, with the confidences that were asked for last."""
        products, columns = self._products
        return self.sums._replace(products=products, columns=columns)

    def _solved(self, confidences: Part) -> tuple[Floats, Floats]:
        products, columns = self.store.sum(_products, confidences)
        products, columns = products + self.sums.products, columns + self.sums.columns
        self._products = products, columns
        means = columns / self.sums.total
        return self.primal.coefficients(products.T - np.outer(self.sums.sums, means)), means


AnyRidge: TypeAlias = Ridge | KernelRidge


@reads_features
def _moments(block: Block) -> tuple[Values, Values, Values]:
    Z = block.Z
    gram = weighted_gram(Z, to_namespace(block.weights, Z))
    return gram, block.weights @ as_float64(Z), block.weights.sum()


@reads_features
def _leverages(block: Block, *, root: Values) -> Values:
    Z = block.Z
    return leverages(Z, to_namespace(block.weights, Z), to_namespace(root, Z))


@reads_features
def _products(block: Block, confidences: Values) -> tuple[Values, Values]:
    weighted = block.candidates.spread(block.weights) * confidences
    sums = column_sums(weighted, block.candidates.indices, block.shape[1])
    return block.products(weighted), sums


@reads_features
def _answers(
    block: Block, confidences: Values, leverage: Values, *, coef: Values, means: Values
) -> Values:
    offsets, h = means[block.candidates.indices], block.candidates.spread(leverage)
    fitted = block.at(block.Z, coef)
    return leave_one_out_answers(fitted, confidences - offsets, h) + offsets


@reads_features
def _fitted(block: Block, *, coef: Values, offsets: Values) -> Values:
    return block.at(block.Z, coef) + offsets[block.candidates.indices]
