"""Why this label? The rows most like it that speak for each candidate, and the columns that matter.

What a column matters for a row is how much less probable the model finds the label when the cells
of the column are shuffled among the rows; what a word matters, when it is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skpll._progress import tracked
from skpll.base import PartialLabelClassifier

from ._extra import pa
from .blocks import TEXT, tokens
from .columns import Matrix
from .learning import Learned
from .reading import Array, Frame, Table

_NEIGHBORS = 3
_COLUMNS = 3
_SHUFFLES = 3
_MAX_ROWS_PER_LABEL = 2000  # that are searched for neighbours
_WORDS = 5
_MAX_WORDS = 40  # of a row, the first ones, that are left out one after the other
_MAX_ROWS_OF_WORDS = 5000  # whose words are left out
_ROWS_OF_WORDS = 500  # that are asked about together
_MIN_LOG_ODDS = 0.1  # a word that changes the log-odds of the label by less does not matter
_MIN_EFFECT = 0.01  # a column that changes the probability by less does not matter


@dataclass(frozen=True)
class Explanations:
    """Why each row has its label.

    Parameters
    ----------
    neighbors : list of dict
        For each row, from the candidates (as numbers of classes) to the most similar rows of that
        label, the nearest first.
    effects : array of shape (rows, columns)
        By how much the probability of the label falls when a column is shuffled.
    words : list of list of str
        The words of each row without which its label is less probable, the most important first;
        empty for tables without text.
    learned : Learned
        What was learned from the table.
    """

    neighbors: list[dict[int, list[int]]]
    effects: NDArray[np.float64]
    words: list[list[str]]
    learned: Learned

    @classmethod
    def of(cls, table: Table, learned: Learned) -> Explanations:
        """Explain the rows of a table by what was learned from it."""
        return cls(_neighbors(learned), _effects(table, learned), _words(table, learned), learned)

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self.learned.model.columns.columns)

    def matter(self, row: int) -> list[str]:
        """Return the columns that matter most for a row, the most important first."""
        order = np.argsort(-self.effects[row], kind="stable")[:_COLUMNS]
        return [self.names[column] for column in order if self.effects[row, column] > _MIN_EFFECT]

    def overall(self) -> dict[str, float]:
        """Return what each column matters on average, the most important first."""
        means = self.effects.mean(axis=0)
        order = np.argsort(-means, kind="stable")
        return {self.names[column]: float(means[column]) for column in order}

    def columns(self) -> dict[str, Array]:
        """Return the columns to add to a table."""
        resolution, ids = self.learned.resolution, self.learned.labels.ids

        def like(codes: NDArray[np.integer]) -> list[list[str]]:
            return [
                [f"row {row + 1}" if ids is None else ids[row] for row in near.get(code, [])]
                for near, code in zip(self.neighbors, codes.tolist(), strict=True)
            ]

        words = {
            "like_label": like(resolution.labels),
            "like_runner_up": like(resolution.runner_up_labels),
            "columns_that_matter": [self.matter(row) for row in range(len(self.effects))],
        }
        if self.words:
            words["words_that_matter"] = self.words
        return {
            name: pa.array([", ".join(cell) or None for cell in cells], pa.string())
            for name, cells in words.items()
        }


def _neighbors(learned: Learned) -> list[dict[int, list[int]]]:
    """Find for each candidate of each row the nearest other rows that have it as their label."""
    from sklearn.neighbors import NearestNeighbors

    resolution, X = learned.resolution, learned.X
    sets = resolution.candidates
    found: list[dict[int, list[int]]] = [{} for _ in range(len(sets))]
    by_confidence = np.argsort(-resolution.confidence, kind="stable")
    for code in tracked(range(sets.shape[1]), "Finding similar rows", sets.shape[1]):
        asking = sets.rows[sets.indices == code]
        known = by_confidence[resolution.labels[by_confidence] == code][:_MAX_ROWS_PER_LABEL]
        if len(asking) and len(known):
            near = NearestNeighbors(n_neighbors=min(_NEIGHBORS + 1, len(known))).fit(X[known])
            rows = known[near.kneighbors(X[asking], return_distance=False)].tolist()
            for row, others in zip(asking.tolist(), rows, strict=True):
                found[row][code] = [other for other in others if other != row][:_NEIGHBORS]
    return found


def _effects(table: Table, learned: Learned) -> NDArray[np.float64]:
    """Shuffle each column, and see how much less probable the label of each row becomes."""
    columns, method = learned.model.columns, learned.model.method
    effects = np.zeros((table.n_rows, len(columns.columns)))
    random = np.random.default_rng(0)
    start = 0
    for frame in tracked(columns.frames(table), "Asking which columns matter", table.n_rows, len):
        rows = slice(start, start + len(frame))
        given, features = learned.resolution.labels[rows], columns.encoder.transform(frame)
        before = _shares(method, features, given)
        for place, name in enumerate(columns.columns):
            for _ in range(_SHUFFLES):
                order = random.integers(len(frame), size=len(frame))
                after = _shares(method, columns.shuffled(frame, features, name, order), given)
                effects[rows, place] += (before - after) / _SHUFFLES
        start = rows.stop
    return effects


def _shares(
    method: PartialLabelClassifier, features: Matrix, given: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Return the probability of a given label for each row."""
    return np.asarray(method.predict_proba(features)[np.arange(len(given)), given])


def _log_odds(
    method: PartialLabelClassifier, features: Matrix, given: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Return the log-odds of a given label against the most probable other one, for each row."""
    shares = np.log(np.maximum(method.predict_proba(features), np.finfo(np.float64).tiny))
    rows = np.arange(len(given))
    own = shares[rows, given]
    shares[rows, given] = -np.inf
    return np.asarray(own - shares.max(axis=1))


def _words(table: Table, learned: Learned) -> list[list[str]]:
    """Leave out one word after the other, and see how much less probable the label becomes.

    Parameters
    ----------
    table : Table
        The table.
    learned : Learned
        What was learned from it.

    Returns
    -------
    words : list of list of str
        For each row; empty for those that are most certain, if there are very many.
    """
    columns = learned.model.columns
    names = [name for name, kind in columns.kinds.items() if kind == TEXT]
    if not names:
        return []
    found: list[list[tuple[float, str]]] = [[] for _ in range(table.n_rows)]
    rows = np.sort(np.argsort(learned.resolution.confidence, kind="stable")[:_MAX_ROWS_OF_WORDS])
    frame = columns.frame(table.take(list(columns.columns), rows))
    starts = range(0, len(rows), _ROWS_OF_WORDS)
    for name in names:
        for start in tracked(starts, f"Asking which words of {name} matter", len(starts)):
            some = slice(start, start + _ROWS_OF_WORDS)
            for row, effect, word in _effects_of_words(learned, frame[some], name, rows[some]):
                found[row].append((effect, word))
    return [
        [word for effect, word in sorted(words, reverse=True)[:_WORDS] if effect > _MIN_LOG_ODDS]
        for words in found
    ]


def _effects_of_words(
    learned: Learned, frame: Frame, name: str, rows: NDArray[np.int64]
) -> Iterator[tuple[int, float, str]]:
    """Yield the number of a row, by how much a word of it raises the log-odds, and the word."""
    columns, method = learned.model.columns, learned.model.method
    cells = [list(dict.fromkeys(tokens(cell or ""))) for cell in frame[name]]
    words = [(place, word) for place, cell in enumerate(cells) for word in cell[:_MAX_WORDS]]
    if not words:
        return
    places = np.array([place for place, _ in words])
    whole = frame.assign(**{name: [" ".join(cell) for cell in cells]})
    without = whole.iloc[places].assign(
        **{name: [" ".join(w for w in cells[place] if w != word) for place, word in words]}
    )
    labels = learned.resolution.labels[rows]
    before = _log_odds(method, columns.encoder.transform(whole), labels)
    after = _log_odds(method, columns.encoder.transform(without), labels[places])
    for (place, word), effect in zip(words, before[places] - after, strict=True):
        yield int(rows[place]), float(effect), word
