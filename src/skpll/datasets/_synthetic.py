"""Synthetic data with candidate labels, of any size."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from skpll._errors import ArgumentError
from skpll._typing import Array, MatrixLike
from skpll.candidates import CandidateSets

from ._partial_labels import Seed, check_count, check_seed, make_partial_labels

_BLOCK_CELLS = 2**18


def make_partial_classification(
    n_samples: int = 1000,
    n_features: int = 20,
    n_classes: int = 5,
    *,
    n_informative: int | None = None,
    class_sep: float = 1.0,
    weights: Sequence[float] | None = None,
    p: float = 0.7,
    r: int = 1,
    epsilon: float | None = None,
    density: float | None = None,
    dtype: DTypeLike = np.float64,
    random_state: Seed = None,
) -> tuple[MatrixLike, CandidateSets, NDArray[np.int64]]:
    r"""Make Gaussian classes with candidate labels.

    The examples of class :math:`c` are drawn from :math:`N(\mu_c, I)`. The centres
    :math:`\mu_c` are random in the first ``n_informative`` features and zero in the others; the
    root mean square distance of two centres is ``4 * class_sep``, in units of the noise. The
    candidate sets are those of :func:`make_partial_labels` with the same ``p``, ``r`` and
    ``epsilon``.

    Parameters
    ----------
    n_samples, n_features, n_classes : int
        The shape of the data.
    n_informative : int, optional
        Number of features that tell classes apart, the first ones; by default all.
    class_sep : float, default=1.0
        How far apart the classes are.
    weights : sequence of n_classes floats, optional
        How frequent the classes are, up to a common factor; by default equally frequent.
    p, r, epsilon
        Share of ambiguous examples, number of their false candidates, and probability of the
        coupled one, as in :func:`make_partial_labels`.
    density : float, optional
        Make sparse features: every row has ``round(density * n_features)`` entries (one at least),
        one in each of as many equal runs of columns. An entry is distributed as in the dense
        case, with the centres scaled up so that their distance over the entries of a row is kept.
        By default features are dense.
    dtype : {np.float64, np.float32}, default=np.float64
        Type of the features.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the draws.

    Returns
    -------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Features.
    S : CandidateSets
        Candidate labels.
    y : ndarray of shape (n_samples,)
        True labels 0 … n_classes − 1.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    The features are drawn in blocks of rows right into the result, so that no second copy of them
    is ever held; beyond them only the labels and candidate sets take memory that grows with
    ``n_samples``.

    Examples
    --------
    >>> from skpll.datasets import make_partial_classification
    >>> X, S, y = make_partial_classification(100, 4, 3, p=1, r=1, random_state=0)
    >>> X.shape, S.shape, S.sizes.tolist() == [2] * 100
    ((100, 4), (100, 3), True)
    """
    check_count(n_samples, "n_samples", 1)
    check_count(n_features, "n_features", 1)
    check_count(n_classes, "n_classes", 2)
    n_informative = n_features if n_informative is None else n_informative
    check_count(n_informative, "n_informative", 1, n_features)
    if not (isinstance(class_sep, Real) and 0 <= float(class_sep) < np.inf):
        raise ArgumentError("class_sep", f"{class_sep!r} is not a finite number of 0 or more.")
    shares = _class_shares(weights, n_classes)
    if density is not None and not (isinstance(density, Real) and 0 < float(density) <= 1):
        raise ArgumentError("density", f"{density!r} is not a number above 0 and up to 1.")
    if np.dtype(dtype) not in (np.float64, np.float32):
        raise ArgumentError("dtype", f"{dtype!r} is neither float64 nor float32.")

    random = check_seed(random_state)
    n_stored = n_features if density is None else max(1, round(density * n_features))
    spread = class_sep * np.sqrt(8 * n_features / (n_informative * n_stored))
    centres = spread * random.standard_normal((n_classes, n_informative))
    y = np.searchsorted(np.cumsum(shares)[:-1], random.random_sample(n_samples), side="right")
    if density is None:
        X: MatrixLike = _dense_features(y, centres, n_features, dtype, random)
    else:
        X = _sparse_features(y, centres, n_features, n_stored, dtype, random)
    S = make_partial_labels(
        y, p=p, r=r, epsilon=epsilon, classes=range(n_classes), random_state=random
    )
    return X, S, y


def _class_shares(weights: Sequence[float] | None, n_classes: int) -> NDArray[np.float64]:
    if weights is None:
        return np.full(n_classes, 1 / n_classes)
    shares = np.asarray(weights, dtype=np.float64)
    if shares.shape != (n_classes,):
        problem = f"expected {n_classes} numbers, one a class; got {weights!r}."
        raise ArgumentError("weights", problem)
    if not np.isfinite(shares).all() or shares.min() < 0 or shares.sum() == 0:
        problem = f"{weights!r} are not all non-negative with a positive sum."
        raise ArgumentError("weights", problem)
    return shares / shares.sum()


def _dense_features(
    y: NDArray[np.int64],
    centres: NDArray[np.float64],
    n_features: int,
    dtype: DTypeLike,
    random: np.random.RandomState,
) -> Array:
    """Draw each row around the centre of its class."""
    n_informative = centres.shape[1]
    X = np.empty((len(y), n_features), dtype=dtype)
    step = max(1, _BLOCK_CELLS // n_features)
    for start in range(0, len(y), step):
        block = slice(start, start + step)
        values = random.standard_normal((len(y[block]), n_features))
        values[:, :n_informative] += centres[y[block]]
        X[block] = values
    return X


def _sparse_features(
    y: NDArray[np.int64],
    centres: NDArray[np.float64],
    n_features: int,
    n_stored: int,
    dtype: DTypeLike,
    random: np.random.RandomState,
) -> sparse.csr_array:
    """Draw a fixed number of entries for each row, in sorted columns, around the centre."""
    n_samples, n_informative = len(y), centres.shape[1]
    n_entries = n_samples * n_stored
    index_type = np.int32 if max(n_entries, n_features) < 2**31 else np.int64
    data = np.empty((n_samples, n_stored), dtype=dtype)
    columns = np.empty((n_samples, n_stored), dtype=index_type)
    edges = np.arange(n_stored + 1) * n_features // n_stored
    widths = np.diff(edges)
    step = max(1, _BLOCK_CELLS // n_stored)
    for start in range(0, n_samples, step):
        labels = y[start : start + step, np.newaxis]
        places = edges[:-1] + (widths * random.random_sample((len(labels), n_stored))).astype(int)
        values = random.standard_normal(places.shape)
        shifts = centres[labels, np.minimum(places, n_informative - 1)]
        data[start : start + step] = values + np.where(places < n_informative, shifts, 0)
        columns[start : start + step] = places
    indptr = np.arange(0, n_entries + 1, n_stored, dtype=index_type)
    return sparse.csr_array(
        (data.reshape(-1), columns.reshape(-1), indptr), shape=(n_samples, n_features)
    )
