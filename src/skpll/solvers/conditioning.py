r"""Features that double precision can work with.

Solvers and kernels square the features. Where a column varies by much less than its distance from
zero (identifiers, dates, readings with an offset), or where numbers are huge, squares lose the
digits that matter, or overflow. `condition` then moves such columns to zero, and divides all of
them by a power of two. Other features are left alone, to the last bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skpll._typing import Floats
from skpll.engine.arrays import Matrix

MAX_OFFSET = 1e5
"""The offset that double precision can work with, in ranges of the column."""

MODERATE_OFFSET = 10.0
"""The offset that a model with an intercept can work with, in ranges of the column."""

MAX_SIZE = 1e8
"""Features are divided by a power of two if the largest absolute value exceeds this."""

LARGE_SIZE = 32.0
"""What the largest absolute value then becomes, up to a factor of two: still a light penalty."""


class Conditioning(NamedTuple):
    r"""The change of features :math:`x \mapsto (x - m) / s`.

    Attributes
    ----------
    offset : array of shape (d,) or None
        The vector m; None for zero.
    scale : float
        The power of two s.
    """

    offset: Floats | None = None
    scale: float = 1.0

    def __call__(self, X: Matrix) -> Matrix:
        """Change the features, an array or CSR matrix of shape (n, d)."""
        moved = X if self.offset is None else X - self.offset
        return moved if self.scale == 1.0 else moved / self.scale

    def undo(self, coef: Floats, intercept: Floats) -> tuple[Floats, Floats]:
        """Return weights and intercepts that give the same scores on the features as they were."""
        if self.scale != 1.0:
            coef = coef / self.scale
        return coef, intercept if self.offset is None else intercept - coef @ self.offset


def condition(
    X: NDArray[np.floating] | sparse.csr_array, *, max_offset: float = MAX_OFFSET
) -> Conditioning:
    """Find what features of shape (n, d) need.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        The features. Sparse ones keep their offsets, for the sake of their zeros.
    max_offset : float, default=1e5
        A column is moved if its distance from zero exceeds its range by more than this factor.

    Returns
    -------
    Conditioning

    Examples
    --------
    >>> import numpy as np
    >>> from skpll.solvers.conditioning import condition
    >>> condition(np.array([[1.0, 1e9], [2.0, 1e9 + 2]])).offset.tolist()
    [0.0, 1000000001.0]
    """
    entries = X if isinstance(X, np.ndarray) else X.data[:, np.newaxis]
    if not entries.size:
        return Conditioning()
    low, high = entries.min(axis=0).astype(np.float64), entries.max(axis=0).astype(np.float64)
    offset = _offset(low, high, max_offset) if isinstance(X, np.ndarray) else None
    if offset is not None:
        low, high = low - offset, high - offset
    largest = max(-low.min(), high.max())
    if not MAX_SIZE < largest < np.inf:
        return Conditioning(offset)
    return Conditioning(offset, float(2.0 ** np.floor(np.log2(largest / LARGE_SIZE))))


def _offset(low: Floats, high: Floats, max_offset: float) -> Floats | None:
    """Return the middle of the columns that are far from zero, and zero for the others."""
    with np.errstate(over="ignore"):
        ranges = high - low
    distances = np.maximum(np.maximum(low, -high), 0.0)
    # A constant column is compared with the others: it may be one that stands for the intercept.
    far = distances / max_offset > np.where(ranges > 0, ranges, ranges.max())
    return np.where(far, low + ranges / 2, 0.0) if far.any() and ranges.any() else None
