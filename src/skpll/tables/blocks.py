"""Columns that become many features each: free text, and vectors that were computed elsewhere.

Text becomes the weights (TF-IDF) of its words, pairs of words and short runs of letters, reduced to
`N_DIRECTIONS` numbers by a truncated singular value decomposition. On questions with candidate
classes, kernels of the reduced features found as many labels as kernels of the sparse ones, in less
time (`python -m benchmarks.text`). Fitted encoders hold arrays only, so that a file can store them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin

Floats = NDArray[np.floating]

TEXT, PICTURE = "text", "picture"

N_DIRECTIONS, MIN_DIRECTIONS = 400, 100
"""The number of features that a column of text becomes: from 250 rows on two for five rows."""

MAX_TERMS = 20_000
"""The number of words, and of runs of letters, that are known, at most."""

MAX_ROWS = 20_000
"""Words and directions are learned from at most this number of rows."""

MAX_LETTERS = 5 * 10**6
"""Runs of letters are used if the rows that are learned from have at most this number of them."""

MIN_ROWS_OF_REPEATED_TERMS = 200
"""From this number of rows on, terms that only one row has are ignored."""

_ANALYZERS = ("word", "char_wb")  # words and pairs of them; runs of letters inside of words
_TOKEN = r"(?u)\w+|[^\w\s]+"
_WORD = re.compile(r"[\u3040-\u9fff]|[^\s\u3040-\u9fff]+")  # a letter of Chinese is a word
_PICTURE = re.compile(
    r"^(data:image/.*|\S.*\.(jpe?g|png|gif|webp|bmp|tiff?|svg|heic|avif)(\?\S*)?)$", re.I | re.S
)
_PERIODS = {"time of day": 1.0, "day of week": 7.0, "time of year": 365.2425}
_MIN_WORDS, _MIN_LETTERS = 4, 15  # of free text, on average
_MIN_PICTURES = 0.95
_LOOKED_AT = 1000  # cells that say what a column is
_MIN_BINS = 8  # of a histogram
_MIN_EMPTY_BINS = 0.25  # share of the zeros, where counts don't sum to one of few totals
_MAX_TOTALS = 3  # different sums of the rows of histograms


def is_prose(texts: Sequence[str]) -> bool:
    """Return whether different texts are free text: several words each, on average."""
    words = sum(len(_WORD.findall(text)) for text in texts)
    letters = sum(map(len, texts))
    return words >= _MIN_WORDS * len(texts) and letters >= _MIN_LETTERS * len(texts) > 0


def are_pictures(texts: Sequence[str]) -> bool:
    """Return whether texts are names or addresses of picture files."""
    found = sum(_PICTURE.match(text) is not None for text in texts)
    return found >= _MIN_PICTURES * len(texts) > 0


def kind_of(cells: Sequence[str]) -> str:
    """Return whether the cells of a column are pictures, text, or neither."""
    filled = [cell for cell in cells[:_LOOKED_AT] if cell]
    if are_pictures(filled):
        return PICTURE
    return TEXT if is_prose(filled) else ""


def periods(first: float, last: float) -> dict[str, float]:
    """Return the periods that dates cover, by name: their lengths in days.

    Parameters
    ----------
    first, last : float
        The first and the last date, in days.
    """
    with_times = first % 1 > 0 or last % 1 > 0
    return {
        name: days
        for name, days in _PERIODS.items()
        if last - first >= 2 * days and (days > 1 or with_times)
    }


def n_directions(n_rows: int) -> int:
    """Return how many features a column of text becomes, at most."""
    return min(N_DIRECTIONS, max(MIN_DIRECTIONS, 2 * n_rows // 5), n_rows)


def are_histograms(values: Floats) -> bool:
    """Return whether rows of numbers look like histograms: shares of few totals, or counts."""
    if values.shape[1] < _MIN_BINS or not np.isfinite(values).all() or values.min() < 0:
        return False
    totals = values.sum(axis=1)
    shares = np.unique(np.round(totals / max(totals.max(), 1e-300), 3))
    counts = (values == np.round(values)).all() and (values == 0).mean() > _MIN_EMPTY_BINS
    return bool(values.max() > values[values > 0].min() and (len(shares) <= _MAX_TOTALS or counts))


def tokens(text: str) -> list[str]:
    """Return the words and signs of a text, in lower case."""
    return re.findall(_TOKEN, text.lower())


class BlockEncoder(TransformerMixin, BaseEstimator):
    """Turns the cells of one column into features of a given size.

    Parameters
    ----------
    weight : float, default=1.0
        The mean squared distance of the features from their mean. A column of scaled numbers has 1.
    """

    def __init__(self, weight: float = 1.0) -> None:
        self.weight = weight

    def fit(self, cells: Iterable[Any], y: object = None) -> Self:  # noqa: ARG002
        """Learn the features, their mean and their size from cells that are no gaps."""
        cells = [cell for cell in cells if not _is_gap(cell)]
        if len(cells) > MAX_ROWS:
            rows = np.random.default_rng(0).choice(len(cells), MAX_ROWS, replace=False)
            cells = [cells[row] for row in np.sort(rows)]
        X = self._learned(cells)
        self.mean_ = X.mean(axis=0)
        size = np.sqrt(((X - self.mean_) ** 2).sum(axis=1).mean())
        self.scale_ = np.asarray(np.sqrt(self.weight) / size if size > 0 else 1.0)
        return self

    def transform(self, cells: Iterable[Any]) -> Floats:
        """Return the features of cells; a gap is at their mean."""
        cells = list(cells)
        missing = np.array(list(map(_is_gap, cells)), dtype=bool)
        found = (self._features(cells) - self.mean_) * self.scale_
        return np.where(missing[:, np.newaxis], 0.0, found)

    def _learned(self, cells: list[Any]) -> Floats:
        """Learn from cells how to turn them into features, and return these."""
        return self._features(cells)

    def _features(self, cells: list[Any]) -> Floats:
        raise NotImplementedError


def _is_gap(cell: object) -> bool:
    return cell is None or (isinstance(cell, float) and np.isnan(cell))


class SquareRoots(TransformerMixin, BaseEstimator):
    """Takes the square roots of numbers that are not negative; others count as zero."""

    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002
        """Learn nothing."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def transform(self, X: ArrayLike) -> Floats:
        """Return the square roots."""
        return np.sqrt(np.maximum(np.asarray(X, dtype=np.float64), 0.0))


class PeriodEncoder(BlockEncoder):
    """Cells that are days since 1970: points on circles, such as that of the year.

    Parameters
    ----------
    weight : float, default=1.0
        The mean squared distance of the features from their mean.
    periods : tuple of float
        How many days it takes to go once around each circle.
    """

    def __init__(self, weight: float = 1.0, periods: tuple[float, ...] = (7.0,)) -> None:
        super().__init__(weight)
        self.periods = periods

    def _features(self, cells: list[Any]) -> Floats:
        turns = 2 * np.pi * np.array(cells, dtype=np.float64)[:, np.newaxis] / self.periods
        points = np.hstack([np.cos(turns), np.sin(turns)])
        return np.nan_to_num(points)


class VectorEncoder(BlockEncoder):
    """Cells that are vectors of one length, such as embeddings; they keep their proportions."""

    def _features(self, cells: list[Any]) -> Floats:
        length = len(getattr(self, "mean_", cells[0]))
        wrong = {len(cell) for cell in cells if cell is not None} - {length}
        if wrong:
            raise ValueError(
                f"a vector has {min(wrong)} numbers, those that were learned from have {length}."
            )
        gap = np.zeros(length)
        return np.vstack([gap if cell is None else cell for cell in cells]).astype(np.float64)


class TextEncoder(BlockEncoder):
    """Cells of free text.

    Parameters
    ----------
    weight : float, default=1.0
        The mean squared distance of the features from their mean.
    """

    def _learned(self, cells: list[Any]) -> Floats:
        texts = [cell or "" for cell in cells]
        few_letters = sum(map(len, texts)) <= MAX_LETTERS
        parts = [_fitted(name, texts) for name in (_ANALYZERS if few_letters else _ANALYZERS[:1])]
        self.terms_ = [np.array(part.get_feature_names_out(), dtype=str) for part in parts]
        self.idf_ = [part.idf_ for part in parts]
        weights = self._weights(texts)
        self.components_ = _directions(weights)
        return np.asarray(weights @ self.components_.T)

    def _features(self, cells: list[Any]) -> Floats:
        return np.asarray(self._weights([cell or "" for cell in cells]) @ self.components_.T)

    def _weights(self, texts: list[str]) -> sparse.csr_array:
        parts = []
        for analyzer, terms, idf in zip(_ANALYZERS, self.terms_, self.idf_, strict=False):
            part = _vectorizer(analyzer, vocabulary=terms.tolist())
            part.idf_ = idf
            parts.append(part.transform(texts))
        return sparse.csr_array(sparse.hstack(parts))


def _vectorizer(analyzer: str, **options: object) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    lengths = (1, 2) if analyzer == "word" else (2, 4)
    return TfidfVectorizer(
        analyzer=analyzer,
        ngram_range=lengths,
        sublinear_tf=True,
        token_pattern=_TOKEN if analyzer == "word" else None,
        dtype=np.float32,
        **options,
    )


def _fitted(analyzer: str, texts: list[str]) -> Any:
    """Find the most frequent terms, and how rare each is."""
    rare = 2 if len(texts) >= MIN_ROWS_OF_REPEATED_TERMS else 1
    try:
        return _vectorizer(analyzer, min_df=rare, max_features=MAX_TERMS).fit(texts)
    except ValueError:  # no term occurs twice
        return _vectorizer(analyzer, max_features=MAX_TERMS).fit(texts)


def _directions(weights: sparse.csr_array) -> NDArray[np.float32]:
    """Return the directions in which texts differ most: (directions, terms)."""
    from sklearn.decomposition import TruncatedSVD

    n = n_directions(weights.shape[0])
    if min(weights.shape) <= n:
        found = np.linalg.svd(weights.toarray(), full_matrices=False)[2]
    else:
        found = TruncatedSVD(n, random_state=0).fit(weights).components_
    return np.asarray(found, dtype=np.float32)
