r"""Ridge regression that answers for every training example without having seen it.

For targets T, weights c and a ridge :math:`\alpha` there are two ways to the same answers.

*By features* Z, with :math:`G = Z^\top C Z + \alpha I` and :math:`C = \operatorname{diag}(c)`: the
coefficients are :math:`W = G^{-1} Z^\top C T`, the leverage of example i is
:math:`h_i = c_i z_i^\top G^{-1} z_i`, and what the regression would say of example i had it been
trained without it is

.. math:: F^\circ_{ij} = \frac{z_i^\top w_j - h_i T_{ij}}{1 - h_i}.

G and :math:`Z^\top C T` are sums over examples, and all the rest is said of one example at a time:
examples may come in blocks, from wherever they are. `PrimalRidge` is what follows from the sums,
`leverages` and `without_own` are for the examples of a block, in any array library.

*By a kernel* K of all examples, with :math:`B = (K + \alpha C^{-1})^{-1}`: the dual coefficients
are :math:`A = B T`, and

.. math:: F^\circ_{ij} = T_{ij} - A_{ij} / B_{ii}.

What the regression says of an example that it *was* trained on, :math:`z_i^\top w_j`, can be asked
as well, for comparison. Nothing here is compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

Floats = NDArray[Any]

_LEVERAGE = 1 - 1e-6
"""Leverages are kept below this: nobody else can speak for such an example."""

_BLOCK = 2**22
"""Numbers in a temporary result."""

_SIDE = 256
"""Side of the blocks in which a matrix is turned over."""

_ROWS = 2**13
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
        """Coefficients of the features, from the products of features and targets: (m, q)."""
        return np.asarray(self.root @ (self.root.T @ products))


def leverages(Z: Any, weights: Any, root: Any) -> Any:
    """How much each of some examples says of itself: (n,)."""
    lengths, size = weights * 0, max(1, _BLOCK // len(root))
    for start in range(0, len(lengths), size):
        solved = Z[start : start + size] @ root
        lengths[start : start + size] = (solved * solved).sum(1)
    return (weights * lengths).clip(max=_LEVERAGE)


def without_own(fitted: Any, own: Any, leverage: Any) -> Any:
    """Say of examples what is said without them, from what is said with them and their targets."""
    return (fitted - leverage * own) / (1 - leverage)


def weighted_gram(Z: Any, weights: Any) -> Any:
    """Give the products of the columns of features, weighted by the examples.

    Not too many products of single precision are added up before they go to a sum of double
    precision.
    """
    roots, total = (weights**0.5)[:, None], 0.0
    for start in range(0, Z.shape[0], _ROWS):
        rows = slice(start, start + _ROWS)
        if hasattr(Z, "tocsr"):
            part = Z[rows].multiply(roots[rows]).tocsr()
            total = total + (part.T @ part).toarray()
        else:
            part = Z[rows] * roots[rows]
            total = total + _double(part.T @ part)
    return total


def _double(values: Any) -> Any:
    return values.astype(np.float64) if isinstance(values, np.ndarray) else values.double()


class DualRidge:
    """Ridge regression on a kernel of all examples.

    Parameters
    ----------
    K : array of shape (n, n)
        The kernel.
    weights : array of shape (n,)
        How much each example counts; positive.
    alpha : float
        The ridge.

    Attributes
    ----------
    inverse : array of shape (n, n)
        The matrix B.
    ridge : array of shape (n,)
        What the kernel's diagonal was raised by.
    against_offset : array of shape (n,)
        The sums of the rows of B: its product with targets that are all one.
    """

    def __init__(self, K: Floats, weights: Floats, alpha: float) -> None:
        matrix = K.copy(order="F")  # LAPACK would copy it otherwise
        self.ridge = (alpha / weights).astype(K.dtype)
        matrix[np.diag_indices_from(matrix)] += self.ridge
        factor = linalg.cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
        invert: Any = linalg.get_lapack_funcs("potri", (factor,))
        inverse, info = invert(factor, lower=True, overwrite_c=True)
        if info:
            raise np.linalg.LinAlgError("the kernel is not positive definite; raise alpha")
        _mirror(inverse)
        self.inverse = inverse.T  # row by row
        self.diagonal = np.diag(self.inverse).copy()
        self.against_offset = self.inverse.sum(axis=1)

    def coefficients(self, targets: Floats, offset: Floats) -> Floats:
        """Coefficients of the kernel against all examples, for targets less an offset: (n, q)."""
        products = self.inverse @ targets.astype(self.inverse.dtype)
        return np.asarray(products - np.outer(self.against_offset, offset))


def _mirror(matrix: Floats) -> None:
    """Put what is below the diagonal above it, block by block: no second matrix is made."""
    for start in range(0, len(matrix), _SIDE):
        stop = start + _SIDE
        matrix[start:stop, stop:] = matrix[stop:, start:stop].T
        corner = matrix[start:stop, start:stop]
        corner[...] = np.tril(corner) + np.tril(corner, -1).T
