"""The neighbours of examples, found exactly or, among very many examples, approximately."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from importlib import import_module
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.neighbors import NearestNeighbors
from sklearn.utils._param_validation import StrOptions

from skpll._errors import ArgumentError
from skpll._examples import Features
from skpll._parameters import COUNT
from skpll._typing import Array, Constraints
from skpll.base import PartialLabelClassifier

Found = tuple[Array, Array]
Metric = str | Callable[..., float]


class NeighborSearch:
    """Search for the nearest training examples.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        The training examples.
    search : {"exact", "approximate"}, default="exact"
        How: by scikit-learn's :class:`~sklearn.neighbors.NearestNeighbors`, or by nearest-neighbour
        descent, which may miss a neighbour but does not compare all pairs. The latter needs
        pynndescent (``pip install skpll[approx]``); below `SMALL` examples it is exact as well.
    metric : str or callable, default="euclidean"
        A metric of the search.
    metric_params : dict, optional
        Further arguments of the metric.
    n_jobs : int, optional
        Number of parallel searches. The result does not depend on it.
    """

    SMALL: ClassVar[int] = 2000

    def __init__(
        self,
        X: Features,
        *,
        search: str = "exact",
        metric: Metric = "euclidean",
        metric_params: dict[str, object] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_examples: int = X.shape[0]
        index = NearestNeighbors(metric=metric, metric_params=metric_params, n_jobs=n_jobs)
        self._index: Any = index.fit(X)
        if search == "approximate" and self.n_examples >= self.SMALL:
            self._index = _Descent(X, self._index, metric, metric_params)

    def nearest(self, X: Features, n_neighbors: int) -> Found:
        """Find the nearest training examples of each row.

        Parameters
        ----------
        X : array or CSR matrix of shape (m, d)
            The examples whose neighbours are wanted.
        n_neighbors : int
            How many; all of them where there are fewer.

        Returns
        -------
        distances, neighbors : arrays of shape (m, k)
            Nearest first.
        """
        return self._index.kneighbors(X, n_neighbors=min(n_neighbors, self.n_examples))

    def nearest_others(self, X: Features, n_neighbors: int, rows: range | None = None) -> Found:
        """Find the nearest other training examples of training examples.

        Parameters
        ----------
        X : array or CSR matrix of shape (m, d)
            Training examples.
        n_neighbors : int
            How many; all others where there are fewer.
        rows : range of length m, optional
            Which training examples these are; by default all of them.

        Returns
        -------
        distances, neighbors : arrays of shape (m, k)
            Nearest first. No example is its own neighbour; its duplicates may be.
        """
        rows = range(self.n_examples) if rows is None else rows
        if self.n_examples == 1:
            return np.zeros((len(rows), 0)), np.zeros((len(rows), 0), dtype=np.int64)
        return _without_self(*self.nearest(X, n_neighbors + 1), rows)


@dataclass(eq=False, repr=False)
class NeighborMethod(PartialLabelClassifier):
    """Base class of the methods that look at the neighbours of examples."""

    _parameter_constraints: ClassVar[Constraints] = {
        "n_neighbors": [COUNT],
        "search": [StrOptions({"exact", "approximate"})],
        "n_jobs": [Integral, None],
    }

    n_neighbors: int = 10
    _: KW_ONLY
    search: str = "exact"
    n_jobs: int | None = None

    def _search_among(self, X: Features, **options: Any) -> NeighborSearch:
        """Return a search for neighbours among training examples."""
        check_n_neighbors(self, X.shape[0])
        return NeighborSearch(X, search=self.search, n_jobs=self.n_jobs, **options)

    def _find_neighbors(self, X: Features) -> Found:
        """Find the nearest other examples of each, and how far they are."""
        return self._search_among(X).nearest_others(X, self.n_neighbors)


def check_n_neighbors(method: Any, n: int) -> None:
    """Refuse more neighbours than there are examples; only the default means "all" then."""
    if method.n_neighbors > n and method.n_neighbors != type(method).n_neighbors:
        raise ArgumentError(
            "n_neighbors",
            f"{method.n_neighbors} neighbours among {n} training examples; ask for {n} at most.",
        )


class _Descent:
    """Nearest-neighbour descent with the interface of scikit-learn's search."""

    def __init__(
        self, X: Features, exact: Any, metric: Metric, metric_params: dict[str, object] | None
    ) -> None:
        self._exact = exact
        try:
            NNDescent = import_module("pynndescent").NNDescent
        except ImportError as error:
            raise ImportError(
                'search: "approximate" needs pynndescent; install it (pip install skpll[approx]), '
                'or use search="exact".'
            ) from error
        self._graph = NNDescent(X, metric=metric, metric_kwds=metric_params, random_state=0)

    def kneighbors(self, X: Features, n_neighbors: int) -> Found:
        """Find neighbours; where too few were found, search exactly."""
        neighbors, distances = self._graph.query(X, k=n_neighbors)
        short = (neighbors < 0).any(axis=1)
        if short.any():
            distances[short], neighbors[short] = self._exact.kneighbors(X[short], n_neighbors)
        return distances, neighbors.astype(np.int64)


def _without_self(distances: Array, neighbors: Array, rows: range) -> Found:
    """Drop each example from its own neighbours, or the farthest where duplicates crowd it out."""
    keep = neighbors != np.asarray(rows)[:, np.newaxis]
    keep[keep.all(axis=1), -1] = False
    shape = (len(keep), keep.shape[1] - 1)
    return distances[keep].reshape(shape), neighbors[keep].reshape(shape)
