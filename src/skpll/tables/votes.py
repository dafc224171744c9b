"""Votes on the rows of a table: what they say of the labels, alone and beside a model.

How far each annotator can be trusted is estimated by `skpll.crowd`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from skpll._errors import ArgumentError
from skpll._labels import as_objects, lookup_codes
from skpll._typing import Label
from skpll.candidates import CandidateSets
from skpll.crowd import Aggregation, VoteTable, aggregate_votes

Floats = NDArray[np.float64]

_MIN_Z = 2.0
"""A model counts if it makes the votes on rows that it has not seen more likely than the shares of
the classes do, by this number of standard errors.
"""

_TINY, _TIE = 1e-300, 1e-9


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
    found : Aggregation
        What the votes say, with one item for each row of the table.
    candidates : CandidateSets
        The labels that each row got; their weights are the likelihoods of the votes.
    decided : int array of shape (n,)
        The class that is known for certain; −1 where none is.
    """

    found: Aggregation
    candidates: CandidateSets
    decided: NDArray[np.int64]

    @classmethod
    def collect(
        cls,
        votes: VoteTable,
        rows: NDArray[np.integer],
        n_rows: int,
        *,
        empty: str = "error",
        decisions: Mapping[int, Label] | None = None,
    ) -> Votes:
        """Collect what votes say of the rows of a table.

        Parameters
        ----------
        votes : VoteTable
            The votes.
        rows : int array of shape (n_items,)
            The row of the table that each item is.
        n_rows : int
            The number of rows of the table.
        empty : {"error", "any"}, default="error"
            Whether a row without a vote is an error, or may have any label.
        decisions : mapping from rows to labels, optional
            What is known for certain.

        Returns
        -------
        Votes
        """
        classes = votes.classes
        if len(classes) < 2:
            found = as_objects(classes)[0]
            message = f"only {found!r} was voted for, so there is nothing to choose."
            raise ArgumentError("votes", message)
        known = dict(decisions or {})
        decided = np.full(n_rows, -1)
        decided[list(known)] = lookup_codes(list(known.values()), classes)
        item = rows[votes.item].astype(np.int32)
        heard = np.bincount(item, minlength=n_rows) + (decided >= 0)
        without = np.flatnonzero(heard == 0)
        if len(without) and empty == "error":
            more = f" (and {len(without) - 1} more)" if len(without) > 1 else ""
            raise ArgumentError(
                "votes",
                f"row {without[0] + 1} of the table{more} has no vote; leave it out, or allow any "
                "label there",
                {"empty": "any"},
            )
        order = np.argsort(item, kind="stable")
        by_row = replace(
            votes,
            items=np.arange(n_rows),
            item=item[order],
            annotator=votes.annotator[order],
            label=votes.label[order],
        )
        prior = _known_prior(np.full((n_rows, len(classes)), np.nan), decided)
        aggregated = aggregate_votes(by_row.with_prior(prior if known else None))
        return cls(aggregated, CandidateSets.from_aggregation(aggregated), decided)

    def judged(self, opinion: Floats, held_out: Floats | None) -> Votes:
        """Estimate again how far annotators can be trusted, beside what a model says.

        Where models that have not seen a row make its votes no more likely than the shares of the
        classes do, what the votes say alone stays as it is.

        Parameters
        ----------
        opinion : array
            How probable a model that has not seen the votes of a row finds each of its candidates.
        held_out : array of shape (n, q) or None
            How probable models that have not seen the row find each class; NaN in rows that no
            model was asked about. With None the opinion counts.

        Returns
        -------
        Votes
        """
        sets = self.candidates
        if held_out is not None and not self._more_likely_with(held_out):
            return self
        n, q = sets.shape
        rows = np.repeat(np.arange(n), sets.sizes)
        prior = np.full((n, q), 1 / q)
        prior[rows, sets.indices] = opinion * sets.sizes[rows] / q
        prior = _known_prior(prior, self.decided)
        return replace(self, found=aggregate_votes(self.found.votes.with_prior(prior)))

    def _more_likely_with(self, shares: Floats) -> bool:
        """Return whether probabilities of the classes make the votes more likely than shares do."""
        asked = (self.decided < 0) & ~np.isnan(shares[:, 0])
        likelihoods = self.found.likelihoods[asked]
        alone = likelihoods @ self.found.posteriors.mean(axis=0)
        both = (likelihoods * shares[asked]).sum(axis=1)
        gain = np.log(np.maximum(both, _TINY) / alone)
        return bool(gain.sum() > _MIN_Z * gain.std() * np.sqrt(len(gain)))

    def confidences(self) -> Floats:
        """Return the confidence in each candidate; the rest up to one is that in other labels."""
        return self.candidates.entries(self.found.posteriors)

    def chosen(self) -> NDArray[np.int64]:
        """Return the place of each row's label, by the votes, among all candidates.

        Ties go to the class with more votes in all, as in `skpll.crowd.aggregate`.
        """
        counts = self.found.votes.counts.sum(axis=0)
        first = _TIE * counts / max(counts.sum(), 1)
        return self.candidates.row_argmax(self.confidences() + first[self.candidates.indices])

    def with_names(self, ids: Sequence[str] | None) -> Aggregation:
        """Return what the votes say, with the names of the rows, or their numbers from 1."""
        found = self.found
        names = np.arange(1, len(found.items) + 1) if ids is None else np.array(ids, dtype=object)
        return replace(found, votes=replace(found.votes, items=names))

    def report(self, labels: NDArray[np.integer]) -> list[Annotator]:
        """Return how each annotator did, by name, given the final class of each row."""
        votes = self.found.votes
        if votes.anonymous:
            return []
        counts = votes.votes_per_annotator
        agreed = votes.label == labels[votes.item]
        shares = np.bincount(votes.annotator, agreed, len(counts)) / counts
        return [
            Annotator(str(name), int(counts[a]), float(shares[a]), float(self.found.quality[a]))
            for a, name in sorted(enumerate(votes.annotators), key=lambda pair: str(pair[1]))
        ]

    def by_row(self, row: int) -> dict[int, list[str]]:
        """Return who voted for which class in a row."""
        votes = self.found.votes
        voters: dict[int, list[str]] = {}
        first, last = np.searchsorted(votes.item, [row, row + 1])
        if votes.anonymous:
            labels, counts = np.unique(votes.label[first:last], return_counts=True)
            pairs = zip(labels.tolist(), counts.tolist(), strict=True)
            return {code: [f"{n} vote{'s' * (n > 1)}"] for code, n in pairs}
        for vote in range(first, last):
            name = str(votes.annotators[votes.annotator[vote]])
            voters.setdefault(int(votes.label[vote]), []).append(name)
        return voters


def _known_prior(prior: Floats, decided: NDArray[np.int64]) -> Floats:
    """Return the prior with certainty in the rows that are decided."""
    known = decided >= 0
    prior[known] = np.eye(prior.shape[1])[decided[known]]
    return prior
