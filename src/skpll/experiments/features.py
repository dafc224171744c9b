"""Kernel features whose width comes from the data."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics import pairwise_distances
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

__all__ = ["MedianNystroem"]

_MOST_ROWS = 1000


class MedianNystroem(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Nyström features of an RBF kernel as wide as the data.

    The kernel is :math:`\exp(-\|x - x'\|^2 / (2 m^2))`, where :math:`m` is the median distance
    between two training examples (of at most 1000, drawn at random).

    Parameters
    ----------
    n_components : int, default=500
        Number of features; at most as many as there are examples.
    random_state : int, RandomState or None, default=0
        Seed of the draws.

    Attributes
    ----------
    gamma_ : float
        :math:`1 / (2 m^2)`.
    nystroem_ : sklearn.kernel_approximation.Nystroem
        The fitted map.
    n_features_in_ : int
        Number of features seen in `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from skpll.experiments.features import MedianNystroem
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> float(MedianNystroem(2).fit(X).gamma_)  # the median of the distances 1, 2, 3 is 2
    0.125
    """

    def __init__(
        self, n_components: int = 500, *, random_state: int | np.random.RandomState | None = 0
    ) -> None:
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Measure the width and choose the landmarks.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The features.
        y : object, optional
            Not used.

        Returns
        -------
        self
        """
        X = validate_data(self, X, accept_sparse="csr", ensure_min_samples=2)
        random = check_random_state(self.random_state)
        rows = np.sort(random.permutation(X.shape[0])[:_MOST_ROWS])
        distances = pairwise_distances(X[rows])
        median = np.median(distances[np.triu_indices_from(distances, 1)])
        self.gamma_ = 1 / (2 * median**2) if median > 0 else 1.0
        count = min(self.n_components, X.shape[0])
        self.nystroem_ = Nystroem(gamma=self.gamma_, n_components=count, random_state=random).fit(X)
        self._n_features_out = count
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Map examples to their features.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The features.

        Returns
        -------
        mapped : array of shape (n, n_components)
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        return self.nystroem_.transform(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
