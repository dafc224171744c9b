"""What was decided for each row of a table, and the columns that say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skpll._labels import as_objects
from skpll._typing import Array as LabelArray
from skpll.candidates import CandidateSets

from ._extra import Plain, note, pa
from .reading import Array

RESULT_PREFIX = "skpll_"
"""What the names of added columns begin with if their plain names are taken."""


@dataclass(frozen=True)
class Resolution:
    """What was decided for each row.

    Parameters
    ----------
    candidates : CandidateSets
        What could be chosen from.
    confidences : array of shape (number of candidates in all,)
        The confidence in each candidate, in the order of ``candidates.indices``; the sum over a
        row is one, or less where votes leave a share to labels without votes.
    chosen : int array of shape (n,)
        The place of the chosen label among all candidates.
    decided : bool array of shape (n,)
        Which rows a person has decided.
    """

    candidates: CandidateSets
    confidences: NDArray[np.float64]
    chosen: NDArray[np.int64]
    decided: NDArray[np.bool_]

    @property
    def labels(self) -> NDArray[np.int32]:
        """The chosen classes, by number."""
        return self.candidates.indices[self.chosen]

    @property
    def confidence(self) -> NDArray[np.float64]:
        """The confidence in the chosen labels."""
        return self.confidences[self.chosen]

    @property
    def unanimous(self) -> NDArray[np.bool_]:
        """Whether there was one candidate from the start: all votes, or the only label given."""
        return (self.candidates.sizes == 1) & ~self.decided

    @property
    def runner_up(self) -> NDArray[np.int64]:
        """The place of the second-best label among all candidates; −1 where there is none."""
        others = self.confidences.copy()
        others[self.chosen] = -1.0
        single = self.candidates.sizes == 1
        return np.where(single, -1, self.candidates.row_argmax(others))

    @property
    def runner_up_labels(self) -> NDArray[np.int64]:
        """The second-best classes, by number; −1 where there is none."""
        runner_up = self.runner_up
        return np.where(runner_up < 0, -1, self.candidates.indices[runner_up])

    def columns(
        self, taken: Sequence[str], more: Mapping[str, Array] | None = None
    ) -> dict[str, Array]:
        """Return the columns to add to a table, under names that are free.

        Parameters
        ----------
        taken : sequence of str
            Names of columns that there are.
        more : mapping from names to Arrow arrays, optional
            Further columns.

        Returns
        -------
        columns : dict of Arrow arrays
        """
        found = {
            "label": label_column(self.candidates.classes, self.labels),
            "confidence": pa.array(self.confidence),
            "runner_up": label_column(self.candidates.classes, self.runner_up_labels),
            "unanimous": pa.array(self.unanimous),
        }
        if self.decided.any():
            found["decided"] = pa.array(self.decided)
        return free_names(found | dict(more or {}), taken)

    def summary(self) -> Plain:
        """Count what there was and what came out."""
        n, q = self.candidates.shape
        sizes = self.candidates.sizes
        entropy = self.candidates.row_entropies(self.candidates.row_normalized(self.confidences))
        return {
            "rows": n,
            "classes": q,
            "unanimous": int(self.unanimous.sum()),
            "decided": int(self.decided.sum()),
            "candidates_before": float(sizes.mean()),
            "candidates_after": float(np.exp(entropy).mean()),
            "mean_confidence": float(self.confidence.mean()),
        }


def free_names(columns: Mapping[str, Array], taken: Sequence[str]) -> dict[str, Array]:
    """Return columns a prefix if the name of any is taken, and a longer one while that is."""
    prefix = ""
    while any(f"{prefix}{name}" in set(taken) for name in columns):
        prefix += RESULT_PREFIX
    if prefix:
        note(f"names are taken, so the new columns are called {prefix}label and so on.")
    return {f"{prefix}{name}": column for name, column in columns.items()}


def label_column(classes: LabelArray, codes: NDArray[np.integer]) -> Array:
    """Turn class numbers into a column of labels; a negative number is an empty cell."""
    return pa.array(as_objects(classes)).take(pa.array(codes, mask=codes < 0))
