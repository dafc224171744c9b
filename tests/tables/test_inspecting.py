"""Feature columns that hold the truth, or copies of the votes."""

import warnings

import numpy as np
import pyarrow as pa
import pytest

from skpll.tables._extra import TableWarning
from skpll.tables.labels import LabelSource, note_copied_truth, note_copied_votes
from skpll.tables.reading import Table

RNG = np.random.default_rng(0)
TRUTH = RNG.choice(["cat", "dog", "eel"], 60)
VOTES = np.where(RNG.random((3, 60)) < 0.8, TRUTH, RNG.choice(["cat", "dog", "eel"], (3, 60)))
MAJORITY = [max(set(given), key=list(given).count) for given in VOTES.T]


def table(**columns):
    people = dict(zip(("ann", "bob", "cy"), VOTES, strict=True))
    both = {**people, **columns}
    return Table(list(both), [pa.array([str(c) for c in cells]) for cells in both.values()])


@pytest.mark.parametrize(
    "column",
    [TRUTH, MAJORITY, VOTES[0], [f"{a}|{b}|{c}" for a, b, c in VOTES.T]],
    ids=["truth", "majority", "a vote", "all votes"],
)
def test_copies_of_the_votes_are_noted(column):
    rows = table(other=column)
    labels = LabelSource(annotators=["ann", "bob", "cy"]).read(rows)
    with pytest.warns(TableWarning, match=r"'other' has labels .* leak.*\(exclude='other'\)"):
        note_copied_votes(rows, ["other"], labels)


@pytest.mark.parametrize(
    "column",
    [RNG.random(60), RNG.choice(["cat", "dog", "eel"], 60), [f"a {t}" for t in TRUTH], [""] * 60],
    ids=["numbers", "other labels", "words", "nothing"],
)
def test_other_columns_are_no_leaks(column):
    rows = table(other=column)
    labels = LabelSource(annotators=["ann", "bob", "cy"]).read(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        note_copied_votes(rows, ["other"], labels)


def test_copies_of_the_truth_are_noted():
    rows = table(gold=TRUTH, copy=TRUTH, near=MAJORITY)
    with pytest.warns(TableWarning) as caught:
        note_copied_truth(rows, ["copy", "near"], "gold")
    assert [str(item.message) for item in caught] == [
        "column 'copy' equals the truth in 100% of the rows, so it is a leak: leave it out "
        "(exclude='copy')."
    ]
