r"""Votes of annotators: who said what, how far each can be trusted, and what follows.

Annotator a is right with probability :math:`p_a`, and otherwise names any of the other classes.
A vote multiplies the odds of its label by :math:`p_a (q - 1) / (1 - p_a)`. The probability is
estimated from the labels that follow from all votes, and from what a model says
that has not seen them; the two are brought into agreement in turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from skpll._errors import ArgumentError
from skpll._labels import as_objects, encode_labels, lookup_codes
from skpll._typing import Label
from skpll.candidates import CandidateSets

Floats = NDArray[np.float64]

_TURNS, _STILL = 100, 1e-5
_DOUBT = 0.1
"""The accuracies of annotators are shrunk to their mean, with the weight of this share of their
votes plus two votes: where votes can't tell who is right, the majority counts.
"""

_LEAST = 1e-12


@dataclass(frozen=True)
class Annotator:
    """How an annotator did.

    Parameters
    ----------
    name : str
        The name.
    votes : int
        The number of votes.
    agrees : float
        The share of them that are the label in the end.
    right : float
        How probable it is that a vote is right, as estimated.
    """

    name: str
    votes: int
    agrees: float
    right: float


@dataclass(frozen=True)
class Votes:
    """Votes on the rows of a table.

    Parameters
    ----------
    candidates : CandidateSets
        The labels that each row got; their numbers of votes are the weights.
    rows : int array
        The row that each vote is about, in ascending order.
    places : int array
        The place of its label among all candidates.
    who : int array
        The number of the annotator.
    annotators : sequence of str
        The names of the annotators.
    right : array
        How probable it is that a vote of each annotator is right.
    decided : int array of shape (n,)
        The place of the label that is known for certain; −1 where none is.
    """

    candidates: CandidateSets
    rows: NDArray[np.int64]
    places: NDArray[np.int64]
    who: NDArray[np.int64]
    annotators: Sequence[str]
    right: Floats
    decided: NDArray[np.int64]

    @classmethod
    def collect(
        cls,
        n_rows: int,
        rows: Iterable[int],
        annotators: Sequence[str],
        labels: Sequence[Label],
        *,
        empty: str = "error",
        decisions: Mapping[int, Label] | None = None,
    ) -> Votes:
        """Collect votes, given one by one.

        Parameters
        ----------
        n_rows : int
            The number of rows that can be voted on.
        rows : iterable of int
            The row that each vote is about.
        annotators : sequence of str
            Who gave it.
        labels : sequence
            The label it gives.
        empty : {"error", "any"}, default="error"
            Whether a row without a vote is an error, or may have any label.
        decisions : mapping from rows to labels, optional
            What is known for certain.

        Returns
        -------
        Votes
            With annotators weighted by how often they agree with each other.
        """
        voted = np.asarray(list(rows), dtype=np.int64)
        codes, classes = encode_labels(list(labels), None)
        if len(classes) < 2:
            found = f"only {as_objects(classes)[0]!r}" if len(classes) else "nothing"
            raise ArgumentError("votes", f"{found} was voted for, so there is nothing to choose.")
        decided = dict(decisions or {})
        known = np.fromiter(decided, np.int64, len(decided))
        right = lookup_codes(list(decided.values()), classes)
        heard = np.bincount(np.concatenate((voted, known)), minlength=n_rows)
        without = np.flatnonzero(heard == 0)
        if len(without) and empty == "error":
            more = f" (and {len(without) - 1} more)" if len(without) > 1 else ""
            raise ArgumentError(
                "votes",
                f"row {without[0] + 1} of the table{more} has no vote; leave it out, or allow any "
                "label there",
                {"empty": "any"},
            )
        q = len(classes)
        pairs = [
            (voted, codes),
            (known, right),
            (np.repeat(without, q), np.tile(np.arange(q), len(without))),
        ]
        candidates = CandidateSets.from_votes(
            np.concatenate([rows for rows, _ in pairs]),
            as_objects(classes[np.concatenate([codes for _, codes in pairs])]),
            order=range(n_rows),
            classes=as_objects(classes),
        )
        flat = np.repeat(np.arange(n_rows), candidates.sizes) * q + candidates.indices
        places = np.searchsorted(flat, voted * q + codes)
        fixed = np.full(n_rows, -1)
        fixed[known] = np.searchsorted(flat, known * q + right)
        names, who = np.unique(np.array(annotators, dtype=str), return_inverse=True)
        order = np.argsort(voted, kind="stable")
        votes = cls(
            candidates,
            voted[order],
            places[order],
            who[order],
            names.tolist(),
            np.full(len(names), 0.7),
            fixed,
        )
        return votes.judged()

    def judged(self, opinion: Floats | None = None) -> Votes:
        """Estimate how often each annotator is right.

        Parameters
        ----------
        opinion : array, optional
            How probable a model that has not seen the votes finds each candidate; all alike by
            default.

        Returns
        -------
        Votes
        """
        votes = self
        counts = np.bincount(self.who, minlength=len(self.annotators))
        doubt = 2 + _DOUBT * counts
        for _ in range(_TURNS):
            agreed = votes.confidences(opinion)[self.places]
            sums = np.bincount(self.who, agreed, len(counts)) + doubt * agreed.mean()
            right = np.clip(sums / (counts + doubt), 0.01, 0.99)
            moved = np.abs(right - votes.right).max()
            votes = replace(votes, right=right)
            if moved < _STILL:
                break
        return votes

    def logits(self) -> Floats:
        """Return the logarithm of the likelihood of the votes for each candidate.

        A label without votes has zero. Votes of annotators below chance level are ignored.
        """
        q = self.candidates.shape[1]
        worth = np.maximum(np.log(self.right * (q - 1) / (1 - self.right)), 0.0)
        sums = np.bincount(self.places, worth[self.who], len(self.candidates.indices))
        return np.asarray(sums, dtype=np.float64)

    def evidence(self) -> CandidateSets:
        """Return the candidates with the likelihood of the votes as their weights."""
        logits = self.logits()
        peaks = np.repeat(self.candidates.row_max(logits), self.candidates.sizes)
        weights = self._settled(np.exp(logits - peaks))
        return self.candidates.with_weights(np.maximum(weights, _LEAST))

    def confidences(self, opinion: Floats | None = None) -> Floats:
        """Return the confidence in each candidate that follows from the votes, and from a model.

        The rest up to one belongs to the labels without votes.
        """
        sets = self.candidates
        logits = self.logits()
        if opinion is not None:
            sizes = np.repeat(sets.sizes, sets.sizes)
            logits = logits + np.log(np.maximum(opinion, _LEAST) * sizes)
        peaks = np.maximum(sets.row_max(logits), 0.0)
        values = np.exp(logits - np.repeat(peaks, sets.sizes))
        rest = (sets.shape[1] - sets.sizes) * np.exp(-peaks)
        return self._settled(values / np.repeat(sets.row_sums(values) + rest, sets.sizes))

    def _settled(self, values: Floats) -> Floats:
        """Return one to what is known for certain, and zero to what else the row has."""
        known = self.decided >= 0
        values = np.where(np.repeat(known, self.candidates.sizes), 0.0, values)
        values[self.decided[known]] = 1.0
        return values

    def report(self, labels: NDArray[np.integer]) -> list[Annotator]:
        """Return how each annotator did, given the final class of each row."""
        agreed = self.candidates.indices[self.places] == labels[self.rows]
        counts = np.bincount(self.who, minlength=len(self.annotators))
        shares = np.bincount(self.who, agreed, len(counts)) / counts
        return [
            Annotator(name, int(counts[a]), float(shares[a]), float(self.right[a]))
            for a, name in enumerate(self.annotators)
        ]

    def by_row(self, row: int) -> dict[int, list[str]]:
        """Return who voted for which class in a row."""
        found: dict[int, list[str]] = {}
        first, last = np.searchsorted(self.rows, [row, row + 1])
        for vote in range(first, last):
            label = int(self.candidates.indices[self.places[vote]])
            found.setdefault(label, []).append(self.annotators[self.who[vote]])
        return found
