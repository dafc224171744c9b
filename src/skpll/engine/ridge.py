r"""Ridge regression: by features or by a kernel, with what it says of examples it has not seen.

For targets T, weights c and a ridge :math:`\alpha` there are two ways to the same answers.

*By features* Z, with :math:`G = Z^\top C Z + \alpha I` and :math:`C = \operatorname{diag}(c)`: the
coefficients are :math:`W = G^{-1} Z^\top C T`, the leverage of example i is
:math:`h_i = c_i z_i^\top G^{-1} z_i`, and what the regression would say of example i had it been
trained without it is

.. math:: F^\circ_{ij} = \frac{z_i^\top w_j - h_i T_{ij}}{1 - h_i}.

G and :math:`Z^\top C T` are sums over examples, and everything else is computed for one example at
a time: examples may come in blocks. `PrimalRidge` is what follows from the sums; `leverages` and
`leave_one_out_answers` are for the examples of a block, in any array library. `fit_ridge` is the
regression with an intercept.

*By a kernel* K of all examples, with :math:`B = (K + \alpha C^{-1})^{-1}`: the dual coefficients
are :math:`A = B T`, and

.. math:: F^\circ_{ij} = T_{ij} - A_{ij} / B_{ii}.

For an example that the regression *was* trained on, :math:`z_i^\top w_j = T_{ij} - \alpha A_{ij} /
c_i`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from .arrays import Matrix, as_dense, as_float64, as_numpy, is_sparse, is_tensor, to_namespace

__all__ = [
    "DualRidge",
    "PrimalRidge",
    "fit_ridge",
    "leave_one_out_answers",
    "leverages",
    "weighted_gram",
]

Floats = NDArray[Any]

MIN_WEIGHT = 1e-20
"""Smaller weights of examples count as this much, so that the ridge divided by one is finite."""

MAX_LEVERAGE = 1 - 1e-6
"""Leverages are kept below this: no other example shares the features of such an example."""

MAX_TEMPORARY_NUMBERS = 2**22
"""Numbers in a temporary matrix of `leverages`."""

MAX_BLOCK_NUMBERS = 2**20
"""Numbers in a block of rows of `fit_ridge`."""

ROUNDING = 1e3 * np.finfo(np.float64).eps
"""Relative error of the mean of a feature; smaller deviations from it count as zero."""

MIRROR_SIDE = 256
"""Side of the blocks in which the lower triangle of a matrix is copied to the upper one."""

MAX_SUM_ROWS = 2**13
"""Rows whose products are added up in the precision of the features."""


class PrimalRidge:
    """Ridge regression on features, with fewer columns than rows.

    Parameters
    ----------
    gram : array of shape (m, m)
        The products of the columns of the features, weighted by the examples.
    alpha : float
        The ridge.

    Attributes
    ----------
    root : array of shape (m, m)
        Its product with its transpose is the inverse of the regression's matrix G.
    """

    def __init__(self, gram: Floats, alpha: float) -> None:
        matrix = gram.copy()
        matrix[np.diag_indices_from(matrix)] += alpha
        factor = linalg.cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
        invert: Any = linalg.get_lapack_funcs("trtri", (factor,))
        inverse, _ = invert(factor, lower=True, overwrite_c=True)
        self.root = inverse.T

    def coefficients(self, products: Floats) -> Floats:
        """Compute the coefficients from the products of features and targets: (m, q)."""
        return np.asarray(self.root @ (self.root.T @ products))


def leverages(Z: Matrix, weights: Matrix, root: Matrix) -> Matrix:
    """Compute how much each example weighs in the regression's answer for itself: (n,)."""
    lengths, size = weights * 0, max(1, MAX_TEMPORARY_NUMBERS // len(root))
    for start in range(0, len(lengths), size):
        solved = Z[start : start + size] @ root
        lengths[start : start + size] = (solved * solved).sum(1)
    return (weights * lengths).clip(max=MAX_LEVERAGE)


def leave_one_out_answers(fitted: Matrix, targets: Matrix, leverage: Matrix) -> Matrix:
    """Compute what is said of examples without them, from the fitted values and their targets."""
    return (fitted - leverage * targets) / (1 - leverage)


def weighted_gram(Z: Matrix, weights: Matrix) -> Matrix:
    """Compute the products of the columns of features, weighted by the examples: (m, m).

    Sums of many products are kept in double precision, whatever the precision of the features.
    """
    roots, total = (weights**0.5)[:, None], 0.0
    for start in range(0, Z.shape[0], MAX_SUM_ROWS):
        rows = slice(start, start + MAX_SUM_ROWS)
        if is_sparse(Z):
            part = Z[rows].multiply(roots[rows]).tocsr()
            total = total + (part.T @ part).toarray()
        else:
            part = Z[rows] * roots[rows]
            total = total + as_float64(part.T @ part)
    return total


class DualRidge:
    """Ridge regression on a kernel of all examples.

    Parameters
    ----------
    inverse : array or tensor of shape (n, n)
        The matrix B. Products with a tensor are computed on its device.
    ridge : array of shape (n,)
        What the kernel's diagonal was raised by.

    Attributes
    ----------
    diagonal : array of shape (n,)
        The diagonal of B.
    row_sums : array of shape (n,)
        The sums of the rows of B: its product with targets that are all one.
    """

    def __init__(self, inverse: Matrix, ridge: Floats) -> None:
        self.inverse, self.ridge = inverse, ridge
        self.diagonal = as_numpy(inverse.diagonal()).copy()
        self.row_sums = as_numpy(inverse.sum(1))

    @classmethod
    def of(cls, K: Matrix, weights: Floats, alpha: float) -> DualRidge:
        """Compute the inverse for a kernel, positive weights of the examples and a ridge."""
        weights = np.maximum(weights, MIN_WEIGHT)
        if is_tensor(K):
            torch, ridge, matrix = import_module("torch"), alpha / weights, K.clone()
            matrix.diagonal().add_(to_namespace(ridge, K))
            return cls(torch.cholesky_inverse(torch.linalg.cholesky(matrix)), ridge)
        matrix = K.copy(order="F")  # LAPACK would copy it otherwise
        ridge = (alpha / weights).astype(K.dtype)
        matrix[np.diag_indices_from(matrix)] += ridge
        factor = linalg.cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
        invert: Any = linalg.get_lapack_funcs("potri", (factor,))
        inverse, info = invert(factor, lower=True, overwrite_c=True)
        if info:
            raise np.linalg.LinAlgError("the kernel is not positive definite; raise alpha")
        _mirror(inverse)
        return cls(inverse.T, ridge)  # row by row

    def astype(self, dtype: type[np.floating[Any]]) -> DualRidge:
        """Return the regression in another precision."""
        return DualRidge(self.inverse.astype(dtype), self.ridge.astype(dtype))

    def without(self, held_out: NDArray[np.bool_]) -> tuple[DualRidge, Callable[[Floats], Floats]]:
        r"""Return the regression without some examples, and what predicts them.

        No kernel has to be computed and inverted anew: with G the examples held out, T the others
        and :math:`B_{GG} = L L^\top`,

        .. math:: B_T = B_{TT} - V^\top V, \qquad V = L^{-1} B_{GT},

        and the predictions for targets Y of the others, less their intercepts, are
        :math:`-B_{GG}^{-1} B_{GT} Y = -L^{-\top} V Y`.

        Parameters
        ----------
        held_out : bool array of shape (n,)
            Which examples are held out.

        Returns
        -------
        others : DualRidge
            The regression on the others.
        predict : callable
            From targets of the others, (n - m, q), to predictions of those held out, (m, q).
        """
        rows, others = np.flatnonzero(held_out), np.flatnonzero(~held_out)
        root = linalg.cholesky(self.inverse[np.ix_(rows, rows)], lower=True, check_finite=False)
        beside = self.inverse[np.ix_(others, rows)].T  # symmetric: column by column for LAPACK
        V = linalg.solve_triangular(root, beside, lower=True, overwrite_b=True, check_finite=False)
        rest = self.inverse[np.ix_(others, others)].T
        multiply: Any = linalg.get_blas_funcs("syrk", (V,))
        inverse = multiply(-1.0, V, 1.0, rest, trans=1, lower=1, overwrite_c=True)
        _mirror(inverse)

        def predict(targets: Floats) -> Floats:
            products = -V @ targets
            return np.asarray(
                linalg.solve_triangular(root, products, lower=True, trans=1, check_finite=False)
            )

        return DualRidge(inverse.T, self.ridge[others]), predict

    def coefficients(self, targets: Matrix, offset: Floats) -> Matrix:
        """Compute the coefficients of the kernel for targets less an offset: (n, q)."""
        products = self.inverse @ to_namespace(targets, self.inverse)
        shift = np.outer(self.row_sums, offset)
        return products - (to_namespace(shift, products) if is_tensor(products) else shift)

    def intercepts(self, targets: Floats) -> Floats:
        """Compute the intercepts that minimize the error of the regression: (q,)."""
        return np.asarray(self.row_sums @ targets / self.row_sums.sum())


def _mirror(matrix: Floats) -> None:
    """Copy the lower triangle to the upper one in blocks, without a second matrix."""
    for start in range(0, len(matrix), MIRROR_SIDE):
        stop = start + MIRROR_SIDE
        matrix[start:stop, stop:] = matrix[stop:, start:stop].T
        corner = matrix[start:stop, start:stop]
        corner[...] = np.tril(corner) + np.tril(corner, -1).T


def fit_ridge(
    X: Matrix, Y: sparse.csr_array, weights: NDArray[np.float64], *, shrinkage: float = 1e-3
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Fit a linear least-squares model with an intercept.

    .. math:: \min_{W, b} \sum_i c_i \|Y_i - W x_i - b\|^2 + \alpha \|W\|^2

    The n × q matrix Y is never made dense. Features are centred first, so that they may be far
    from zero.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        The features; d × d matrices have to fit into memory.
    Y : CSR matrix of shape (n, q)
        The targets.
    weights : array of shape (n,)
        How much each example counts; the sum must not be zero.
    shrinkage : float, default=1e-3
        The penalty α, as a share of the mean variance of a feature times the sum of the weights:
        the fit does not depend on the units of `X`. Constant features get no weight.

    Returns
    -------
    coef : array of shape (q, d)
    intercept : array of shape (q,)
    """
    total, d = float(weights.sum()), X.shape[1]
    center, target = np.asarray(X.T @ weights) / total, np.asarray(Y.T @ weights) / total
    gram, products = np.zeros((d, d)), np.zeros((Y.shape[1], d))
    size = max(1, MAX_BLOCK_NUMBERS // (d + 1))
    for start in range(0, X.shape[0], size):
        rows = slice(start, start + size)
        block = as_dense(X[rows]) - center
        weighted = block * weights[rows, None]
        gram += block.T @ weighted
        products += Y[rows].T @ weighted
    unit = float(np.diagonal(gram).mean())
    if unit <= ROUNDING**2 * total * float((center**2).mean()):  # all features are constant
        return np.zeros((Y.shape[1], d)), target
    sums = products.T / unit  # the centred features add up to zero
    W = PrimalRidge(gram / unit, shrinkage).coefficients(sums)
    return W.T, target - center @ W
