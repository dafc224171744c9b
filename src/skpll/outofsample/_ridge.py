"""The ridge regression of PL-LOO on a kernel's features, and the examples it learns from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.extmath import row_norms

from skpll.candidates import CandidateSets
from skpll.solvers.leave_one_out import (
    DualRidge,
    OutOfSampleRidge,
    PrimalRidge,
    weighted_gram,
)

from ._kernels import KernelMap

__all__ = ["Examples", "FeatureMap", "Ridge", "System", "merge_duplicates"]

Floats = NDArray[Any]


@dataclass(frozen=True)
class Examples:
    """What is learned from.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        The features.
    sets : CandidateSets
        The candidates of each example.
    weights : array of shape (n,)
        How much each counts; one on average.
    groups : int array of shape (n,) or None
        The group of each.
    """

    X: Any
    sets: CandidateSets
    weights: NDArray[np.float64]
    groups: NDArray[np.intp] | None

    def part(self, rows: NDArray[Any]) -> Examples:
        """Take some of the examples."""
        groups = None if self.groups is None else self.groups[rows]
        return Examples(self.X[rows], self.sets[rows], self.weights[rows], groups)


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
    marks = _marks(examples.X)
    order = np.argsort(marks, kind="stable")
    ordered = marks[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    first: list[int] = []
    where = np.empty(n, dtype=np.intp)
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), n], strict=True):
        if end - start == 1:
            where[order[start]] = len(first)
            first.append(order[start])
            continue
        rows = {row: _identity(examples, row) for row in order[start:end].tolist()}
        places: dict[bytes, int] = {}
        for row, identity in sorted(rows.items(), key=lambda entry: entry[1]):
            if identity not in places:
                places[identity] = len(first)
                first.append(row)
            where[row] = places[identity]
    weights = np.bincount(where, examples.weights)
    merged = examples.part(np.asarray(first))
    return replace(merged, weights=weights / weights.mean()), where


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
        if self.kernel is not None and self.kernel.kernel != "linear":
            return self.kernel.against(X)
        X = X / self.scale if hasattr(X, "tocsr") else (X - self.center) / self.scale
        return X if self.kernel is None else self.kernel.against(X)


@dataclass(frozen=True)
class System:
    """The features of some examples, from which a ridge regression follows for every alpha.

    Parameters
    ----------
    features : FeatureMap
        How other examples are mapped.
    weights : array of shape (n,)
        How much each example counts.
    kernel : array of shape (n, n) or None
        The kernel of all examples, where the regression is made with it.
    Z : array or CSR matrix of shape (n, m) or None
        The features otherwise, and
    gram : array of shape (m, m) or None
        the products of their columns.
    whitening : array of shape (number of landmarks, m) or None
        From kernel values against landmarks to `Z`.
    """

    features: FeatureMap
    weights: Floats
    kernel: Floats | None = None
    Z: Any = None
    gram: Floats | None = None
    whitening: Floats | None = None

    def ridge(self, alpha: float) -> OutOfSampleRidge:
        """Give the regression with a ridge."""
        if self.kernel is not None:
            return DualRidge(self.kernel, self.weights, alpha)
        assert self.gram is not None
        return PrimalRidge(self.Z, self.gram, self.weights, alpha)

    def coefficients_of_map(self, coefficients: Floats) -> Floats:
        """Turn coefficients of the regression into those of mapped features."""
        return coefficients if self.whitening is None else self.whitening @ coefficients

    @classmethod
    def of(
        cls,
        examples: Examples,
        kernel: str,
        gamma: float,
        unit: float,
        n_landmarks: int,
        random_state: np.random.RandomState,
    ) -> System:
        """Map the features of examples.

        Parameters
        ----------
        examples : Examples
            The examples.
        kernel : {"laplacian", "rbf", "linear"}
            The kernel.
        gamma : float
            How fast it falls with the distance.
        unit : float
            The unit of distances.
        n_landmarks : int
            More than twice as many examples are compared with so many only, and linear
            features are taken as they are if there are not more than twice as many.
        random_state : RandomState
            Draws the landmarks.
        """
        X, weights, scaled = examples.X, examples.weights, FeatureMap(None)
        if kernel == "linear":
            scaled = FeatureMap(None, *_location(X, weights))
            X = scaled(X)
            if X.shape[1] <= 2 * n_landmarks:
                return cls(scaled, weights, Z=X, gram=weighted_gram(X, weights))
        n = X.shape[0]
        rows = X if n <= 2 * n_landmarks else X[random_state.choice(n, n_landmarks, False)]
        landmarks = KernelMap(kernel, gamma, unit, rows)
        features = replace(scaled, kernel=landmarks)
        if n <= 2 * n_landmarks:
            return cls(features, weights, kernel=landmarks.against(X))
        whitening = landmarks.whitening()
        Z = landmarks.against(X) @ whitening
        gram = weighted_gram(Z, weights)
        return cls(features, weights, Z=Z, gram=gram, whitening=whitening)


def _location(X: Any, weights: Floats) -> tuple[Floats | float, float]:
    """Centre and size of raw features; sparse ones stay where they are."""
    center: Floats | float = 0.0
    if not sparse.issparse(X):
        center = np.average(X, axis=0, weights=weights)
        X = X - center
    size = float(np.sqrt(np.average(row_norms(X, squared=True), weights=weights)))
    return center, size if size > 0 else 1.0


class Ridge:
    """A ridge regression of confidences that answers for each example without it.

    Parameters
    ----------
    system : System
        The features.
    alpha : float
        The ridge.
    pattern : CandidateSets
        Where confidences are.
    in_sample : bool
        Whether the regression is asked about examples that it was trained on after all.
    """

    def __init__(
        self, system: System, alpha: float, pattern: CandidateSets, in_sample: bool = False
    ) -> None:
        self.in_sample = in_sample
        self.system = system
        self.pattern = pattern
        self.regression = system.ridge(alpha)
        self._shares = np.repeat(system.weights / system.weights.sum(), pattern.sizes)

    def targets(self, confidences: Floats) -> tuple[sparse.csr_array, Floats]:
        """Give the confidences as a matrix, and the weighted mean of each column."""
        pattern = self.pattern
        matrix = sparse.csr_array(
            (confidences, pattern.indices, pattern.indptr), shape=pattern.shape
        )
        means = np.bincount(pattern.indices, self._shares * confidences, pattern.shape[1])
        return matrix, means

    def ask(self, confidences: Floats) -> Floats:
        """Score the candidates of every example without it."""
        return self.regression.predict(*self.targets(confidences), in_sample=self.in_sample)

    def ask_everywhere(self, confidences: Floats) -> Floats:
        """Score all classes for every example without it: (n, q)."""
        return self.regression.predict_everywhere(*self.targets(confidences))

    def coefficients(self, confidences: Floats) -> tuple[Floats, Floats]:
        """Give the coefficients and intercepts of the regression on mapped features."""
        targets, means = self.targets(confidences)
        coef = self.regression.coefficients(targets, means)
        return self.system.coefficients_of_map(coef), means
