"""Candidates from columns and votes, and decisions on top of them."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpll import as_candidates
from skpll.tables.labels import column_candidates, read_votes, with_decisions
from skpll.tables.reading import TextTable


def text_table(**columns):
    return TextTable(list(columns), [pa.chunked_array([pa.array(c)]) for c in columns.values()])


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["b | a", "a", " b||a ", "a|"]),
        pa.chunked_array([["b|a"], ["a", "b|a", "a"]]),
        pa.array(["b|a", "a", "b|a", "a"]).dictionary_encode(),
        pa.array([["b", "a"], ["a", None], ["a", "b", "a"], ["a"]]),
    ],
)
def test_columns_of_candidates(column):
    assert column_candidates(column) == as_candidates([{"a", "b"}, {"a"}, {"a", "b"}, {"a"}])


def test_plain_labels_keep_their_type():
    assert column_candidates(pa.array([3, 1, 3])).classes.tolist() == [1, 3]
    assert column_candidates(pa.array([True, False])).classes.tolist() == [False, True]
    assert column_candidates(pa.array([[0, 1], [1, 1]])).to_lists() == [[0, 1], [1]]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["a|b", "", "a"], "row 2 has no candidate"),
        (["a|b", "a", None], "row 3 has no candidate"),
        ([["a", "b"], []], "row 2 has no candidate"),
        (["a", "a"], "'a' is the only label"),
        (["", " | "], "there is no label"),
        ([], "no rows"),
        (["a|b", "x" * 2000], "has 2000 characters"),
        ([[["a"]], [["b"]]], "use a list of labels"),
        ([{"a": 1}, {"a": 2}], "use a list of labels"),
    ],
)
def test_columns_that_are_no_candidates(column, message):
    with pytest.raises(ValueError, match=message):
        column_candidates(pa.array(column))


def test_rows_without_candidates_may_be_anything_on_demand():
    sets = column_candidates(pa.array(["a|b", "", "c", None]), empty="any")
    assert sets.to_lists() == [["a", "b"], ["a", "b", "c"], ["c"], ["a", "b", "c"]]


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from("uvw"), st.sampled_from("abc"))))
def test_votes_are_collected_by_item(votes):
    items = [f"i{n}" for n in (3, 0, 4, 1, 2)]
    votes = [(f"i{n}", who, label) for n, who, label in votes]
    votes += [(item, "u", label) for item in items for label in "ab"]
    columns = (pa.array(column) for column in zip(*votes, strict=True))
    table = TextTable(["item", "annotator", "label"], list(columns))
    read = read_votes(table, ["item", "annotator", "label"], items)
    assert read.candidates.to_lists() == [
        sorted({label for item, _, label in votes if item == wanted}) for wanted in items
    ]
    chosen = np.zeros(5, dtype=int)  # "a" everywhere
    assert read.agreement(chosen) == pytest.approx(
        {
            who: np.mean([label == "a" for _, name, label in votes if name == who])
            for who in sorted({who for _, who, _ in votes})
        }
    )


@pytest.mark.parametrize(
    ("votes", "message"),
    [
        ({"item": ["p", "z"], "annotator": ["u", "v"], "label": ["a", "b"]}, "row 2 is about 'z'"),
        ({"item": ["p", "p"], "annotator": ["u", "v"], "label": ["a", ""]}, "row 2 has no label"),
        ({"item": ["p", "p"], "annotator": ["u", "v"], "label": ["a", "b"]}, "nobody voted on 'q'"),
        ({"item": ["p"], "who": ["u"], "label": ["a"]}, "no column 'annotator'"),
    ],
)
def test_votes_that_can_not_be_used(votes, message):
    with pytest.raises(ValueError, match=message):
        read_votes(text_table(**votes), ["item", "annotator", "label"], ["p", "q"])
    with pytest.raises(ValueError, match="expected three names"):
        read_votes(text_table(**votes), ["item", "label"], ["p", "q"])


@given(st.data())
def test_decisions_replace_the_candidates_of_their_rows(data):
    sets = data.draw(st.lists(st.sets(st.sampled_from("abc"), min_size=1), min_size=2, max_size=9))
    candidates = as_candidates(sets, classes="abc")
    rows = st.integers(0, len(sets) - 1)
    decided = data.draw(st.dictionaries(rows, st.sampled_from("abc")))
    expected = [[decided[i]] if i in decided else sorted(sets[i]) for i in range(len(sets))]
    keys = pa.array([str(row + 1) for row in decided], pa.string())
    labels = pa.array(list(decided.values()), pa.string())
    by_row = TextTable(["row", "label"], [keys, labels])
    assert with_decisions(candidates, by_row, None).to_lists() == expected
    by_id = TextTable(
        ["id", "label"], [pa.array([f"n{k}" for k in keys.to_pylist()], pa.string()), labels]
    )
    names = [f"n{row + 1}" for row in range(len(sets))]
    assert with_decisions(candidates, by_id, names).to_lists() == expected


@pytest.mark.parametrize(
    ("decisions", "items", "message"),
    [
        ({"row": ["4"], "label": ["a"]}, None, "no row with the row '4'"),
        ({"row": ["1"], "label": ["z"]}, None, "'z' is not one of the labels"),
        ({"row": ["1"], "label": ["a"]}, ["p", "q", "r"], "no column 'id'"),
        ({"id": ["s"], "label": ["a"]}, ["p", "q", "r"], "no row with the id 's'"),
        ({"id": ["p"], "label": ["a"]}, ["p", "q", "p"], "rows 1 and 3 are both called 'p'"),
    ],
)
def test_decisions_that_can_not_be_used(decisions, items, message):
    with pytest.raises(ValueError, match=message):
        with_decisions(as_candidates([{"a", "b"}] * 3), text_table(**decisions), items)
