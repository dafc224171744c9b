"""Why this label? The rows most like it that speak for each candidate, and the columns that matter.

What a column matters for a row is how much less probable the model finds the label when the cells
of the column are shuffled among the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skpll._progress import tracked

from ._extra import arrow
from .learning import Learned
from .reading import Array, Frame, Table

_NEIGHBORS = 3
_COLUMNS = 3
_SHUFFLES = 3
_MAX_ROWS_PER_LABEL = 2000  # that are searched for neighbours
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
    names : list of str
        The columns.
    labels : list of pairs
        The numbers of the label and of the runner-up (or −1) of each row.
    ids : list of str or None
        The names of all rows of the table.
    """

    neighbors: list[dict[int, list[int]]]
    effects: NDArray[np.float64]
    names: list[str]
    labels: list[tuple[int, int]]
    ids: list[str] | None

    @classmethod
    def of(cls, table: Table, learned: Learned) -> Explanations:
        """Explain the rows of a table by what was learned from it."""
        resolution = learned.resolution
        runner_up = resolution.runner_up
        second = np.where(runner_up < 0, -1, resolution.candidates.indices[runner_up])
        return cls(
            _neighbors(learned),
            _effects(table, learned),
            list(learned.model.columns.columns),
            list(zip(resolution.labels.tolist(), second.tolist(), strict=True)),
            learned.labels.ids,
        )

    def matter(self, row: int) -> list[str]:
        """Return the columns that matter most for a row, the most important first."""
        order = np.argsort(-self.effects[row], kind="stable")[:_COLUMNS]
        return [self.names[column] for column in order if self.effects[row, column] > _MIN_EFFECT]

    def overall(self) -> dict[str, float]:
        """Return what each column matters on average, the most important first."""
        means = self.effects.mean(axis=0)
        order = np.argsort(-means, kind="stable")
        return {self.names[column]: float(means[column]) for column in order}

    def called(self, row: int) -> str:
        """Return the name of a row, or its number where rows have no names."""
        return f"row {row + 1}" if self.ids is None else self.ids[row]

    def columns(self) -> dict[str, Array]:
        """Return the columns to add to a table."""
        pa = arrow()
        like = [
            [", ".join(map(self.called, near.get(code, []))) or None for code in pair]
            for near, pair in zip(self.neighbors, self.labels, strict=True)
        ]
        texts = {
            "like_label": [first for first, _ in like],
            "like_runner_up": [second for _, second in like],
            "columns_that_matter": [
                ", ".join(self.matter(row)) or None for row in range(len(self.labels))
            ],
        }
        return {name: pa.array(column, pa.string()) for name, column in texts.items()}


def _neighbors(learned: Learned) -> list[dict[int, list[int]]]:
    """Find for each candidate of each row the nearest other rows that have it as their label."""
    from sklearn.neighbors import NearestNeighbors

    resolution, X = learned.resolution, learned.X
    sets = resolution.candidates
    found: list[dict[int, list[int]]] = [{} for _ in range(len(sets))]
    holders = np.repeat(np.arange(len(sets)), sets.sizes)
    for code in tracked(range(sets.shape[1]), "Finding similar rows", sets.shape[1]):
        asking = holders[sets.indices == code]
        known = np.flatnonzero(resolution.labels == code)
        known = known[np.argsort(-resolution.confidence[known], kind="stable")][
            :_MAX_ROWS_PER_LABEL
        ]
        if len(asking) and len(known):
            k = min(_NEIGHBORS + 1, len(known))
            near = NearestNeighbors(n_neighbors=k).fit(X[known])
            for row, places in zip(
                asking.tolist(), near.kneighbors(X[asking], return_distance=False), strict=True
            ):
                others = [int(known[place]) for place in places if known[place] != row]
                found[row][code] = others[:_NEIGHBORS]
    return found


def _effects(table: Table, learned: Learned) -> NDArray[np.float64]:
    """Shuffle each column, and see how much less probable the label of each row becomes."""
    columns, method = learned.model.columns, learned.model.method
    labels = learned.resolution.labels
    effects = np.zeros((table.n_rows, len(columns.columns)))
    random = np.random.default_rng(0)
    start = 0

    def share(frame: Frame, given: NDArray[np.int32]) -> NDArray[np.float64]:
        shares = method.predict_proba(columns.encoder.transform(frame))
        return np.asarray(shares[np.arange(len(given)), given])

    for frame in tracked(columns.frames(table), "Asking which columns matter", table.n_rows, len):
        end = start + len(frame)
        given = labels[start:end]
        before = share(frame, given)
        for place, name in enumerate(columns.columns):
            for _ in range(_SHUFFLES):
                cells = frame[name].to_numpy()[random.integers(len(frame), size=len(frame))]
                after = share(frame.assign(**{name: cells}), given)
                effects[start:end, place] += (before - after) / _SHUFFLES
        start = end
    return effects
