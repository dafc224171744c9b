"""Candidates from columns, votes of annotators, and decisions on top of them."""

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpll import as_candidates, disambiguate
from skpll.crowd import VoteTable, aggregate_votes
from skpll.tables._extra import TableWarning
from skpll.tables.labels import LabelSource, column_candidates, find_separator, look_alike
from skpll.tables.reading import Table
from skpll.tables.votes import Votes

NAMES = ("item", "annotator", "label")


def text_table(**columns):
    return Table(list(columns), [pa.chunked_array([pa.array(c)]) for c in columns.values()])


def sets_of(column, **options):
    return column_candidates(column, **options)[0]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["b | a", "a", " b||a ", "a|"]),
        pa.chunked_array([["b|a"], ["a", "b|a", "a"]]),
        pa.array(["b|a", "a", "b|a", "a"]).dictionary_encode(),
        pa.array([["b", "a"], ["a", None], ["a", "b", "a"], ["a"]]),
        pa.array(["b;a", "a", "a; b", "a"]),
        pa.array(["b, a", "a", "a,b", "a"]),
        pa.array(["['b', 'a']", "['a']", '["a", "b"]', "a"]),
    ],
)
def test_columns_of_candidates(column):
    assert sets_of(column) == as_candidates([{"a", "b"}, {"a"}, {"a", "b"}, {"a"}])


@pytest.mark.parametrize(
    ("cells", "sep"),
    [
        (["A;B", "A", "B;C", "C"], ";"),
        (["A|B", "A;x|B"], "|"),
        (["A/B", "B", "A"], "/"),
        (["A,B,C", "A,B", "B,C"], ","),
        (["A\nB", "B\nC", "A"], "\n"),
        (["cat", "dog"], ""),
        (["Paris, France", "Lyon, France", "Paris, Texas"], ""),
        (["red/green", "blue"], ""),
        (["Smith, John;Doe, Jane", "Smith, John", "Doe, Jane"], ";"),
    ],
)
def test_the_separator_is_found(cells, sep):
    assert find_separator(cells) == sep


def test_a_separator_that_no_cell_has_is_doubted():
    with pytest.warns(UserWarning, match="no cell has the separator '/', but many have ';'"):
        sets = sets_of(pa.array(["A;B", "A", "B;A"]), sep="/")
    assert sets.classes.tolist() == ["A", "A;B", "B;A"]


def test_plain_labels_keep_their_type():
    assert sets_of(pa.array([3, 1, 3])).classes.tolist() == [1, 3]
    assert sets_of(pa.array([True, False])).classes.tolist() == [False, True]
    assert sets_of(pa.array([[0, 1], [1, 1]])).to_lists() == [[0, 1], [1]]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["a|b", "", "a"], "row 2 has no candidate;"),
        (["a|b", "a", None, ""], "row 3 has no candidate, nor have 1 more"),
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
    sets = sets_of(pa.array(["a|b", "", "c", None]), empty="any")
    assert sets.to_lists() == [["a", "b"], ["a", "b", "c"], ["c"], ["a", "b", "c"]]


def test_gap_words_are_no_labels_and_can_be_changed():
    cells = pa.array(["a|b", "?", "a|NA", "unknown", "none"])
    with pytest.warns(UserWarning, match=r"not as labels: '\?' \(once\), 'NA'"):
        sets = sets_of(cells, empty="any")
    assert sets.to_lists() == [["a", "b"], ["a", "b"], ["a"], ["a", "b"], ["a", "b"]]
    with pytest.warns(UserWarning, match=r"'\?' \(once\)\.$"):
        sets = sets_of(cells, empty="any", gaps=["?"])
    assert sets.classes.tolist() == ["NA", "a", "b", "none", "unknown"]


def test_blanks_inside_labels_count_once():
    assert sets_of(pa.array(["iris  setosa|b", "iris setosa", " iris\tsetosa "])).to_lists() == [
        ["b", "iris setosa"],
        ["iris setosa"],
        ["iris setosa"],
    ]


def test_labels_that_look_alike_are_named():
    sets = as_candidates(
        ["Setosa"] * 9 + ["setosa"] + ["virginica"] * 20 + ["virginca", "v1", "v2"]
    )
    assert look_alike(sets) == [("setosa", "Setosa"), ("virginca", "virginica")]
    table = text_table(x=["a|b"] * 20 + ["c|a"])
    with pytest.warns(UserWarning, match="labels that only one row has: 'c'"):
        LabelSource("x").read(table)


def votes_on(items, votes, **options):
    columns = [pa.array(list(column), pa.string()) for column in zip(*votes, strict=True)]
    source = LabelSource(votes=Table(list(NAMES), columns), vote_columns=NAMES, id="key", **options)
    return source.read(text_table(key=items))


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from("uvw"), st.sampled_from("abc"))))
def test_votes_are_collected_by_item(votes):
    items = [f"i{n}" for n in (3, 0, 4, 1, 2)]
    votes = [(f"i{n}", who, label) for n, who, label in votes]
    votes += [(item, who, label) for item in items for who, label in ("ra", "sb")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)  # an annotator voted again
        labels = votes_on(items, votes)
    last = {(item, who): label for item, who, label in votes}
    votes = [(item, who, label) for (item, who), label in last.items()]
    for wanted, found in zip(items, labels.candidates.to_lists(), strict=True):
        voted = {label for item, _, label in votes if item == wanted}
        assert voted <= set(found)
        assert len(found) <= len(voted) + 1  # the most probable label may have got no vote
    chosen = np.zeros(5, dtype=int)  # "a" everywhere
    report = {found.name: found for found in labels.votes.report(chosen)}
    for who in {who for _, who, _ in votes}:
        mine = [label for _, name, label in votes if name == who]
        assert report[who].votes == len(mine)
        assert report[who].agrees == pytest.approx(np.mean([label == "a" for label in mine]))
    third = labels.votes.by_row(2)
    given = sorted((label, who) for item, who, label in votes if item == "i4")
    classes = labels.candidates.classes
    assert given == sorted((classes[code], who) for code, names in third.items() for who in names)


def test_columns_of_annotators_are_votes():
    table = text_table(ann=["a", "b", "a", ""], bob=["a", "a", "?", "b"], x=["1", "2", "3", "4"])
    with pytest.warns(UserWarning, match="votes: taken as empty, not as labels"):
        labels = LabelSource(annotators=["ann", "bob"]).read(table)
    assert labels.candidates.to_lists() == [["a"], ["a", "b"], ["a"], ["b"]]
    assert labels.columns == ("ann", "bob")
    with pytest.raises(ValueError, match="annotators: the table has no columns 'cy', 'dee'"):
        LabelSource(annotators=["ann", "cy", "dee"]).read(table)


def test_who_agrees_with_the_others_counts_more():
    random = np.random.default_rng(0)
    truth = random.integers(3, size=300)
    skills = {"good": 0.95, "fair": 0.8, "same": 0.8, "poor": 0.4}
    votes = [
        (str(row), who, "abc"[t if random.random() < skill else (t + random.integers(1, 3)) % 3])
        for row, t in enumerate(truth)
        for who, skill in skills.items()
    ]
    labels = votes_on([str(row) for row in range(300)], votes)
    found = {a.name: a.right for a in labels.votes.report(truth)}
    for who, skill in skills.items():
        assert found[who] == pytest.approx(skill, abs=0.08)
    confidences = labels.votes.confidences()
    best = labels.candidates.row_argmax(confidences)
    right = labels.candidates.indices[best] == truth
    assert confidences[best].mean() < right.mean() + 0.02  # not too sure of itself
    assert right.mean() > 0.93


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("q", "skills"),
    [(3, (0.95, 0.8, 0.4)), (2, (0.75, 0.75, 0.75)), (5, (0.85, 0.7)), (4, (0.9, 0.9, 0.25, 0.25))],
)
def test_votes_alone_are_never_worse_than_their_majority(seed, q, skills):
    random = np.random.default_rng(seed)
    truth = random.integers(q, size=300)
    answers = np.array(
        [np.where(random.random(300) < s, truth, (truth + random.integers(1, q, 300)) % q)
         for s in skills]
    )  # fmt: skip
    rows, who = np.tile(np.arange(300), len(skills)), np.repeat(np.arange(len(skills)), 300)
    table = VoteTable.from_long(rows, who, answers.ravel())
    votes = Votes.collect(table, np.arange(300), np.full(300, -1))
    sets = votes.candidates
    chosen = sets.indices[sets.row_argmax(votes.confidences())]
    majority = table.counts.argmax(axis=1)
    assert (chosen == truth).mean() > (majority == truth).mean() - 0.03


@pytest.mark.parametrize(
    ("votes", "message"),
    [
        ({"item": ["p", "z"], "annotator": ["u", "v"], "label": ["a", "b"]}, "row 2 is about 'z'"),
        ({"item": ["p", "p"], "annotator": ["u", "v"], "label": ["a", "b"]}, "has no vote"),
        ({"item": ["p", "q"], "annotator": ["u", "v"], "label": ["a", "a"]}, "only 'a' was voted"),
        ({"item": ["p"], "who": ["u"], "label": ["a"]}, "no column 'annotator'"),
        ({"item": ["p"], "who": ["u"], "la": ["a"]}, "no columns 'annotator', 'label'"),
    ],
)
def test_votes_that_can_not_be_used(votes, message):
    table = text_table(key=["p", "q"])
    with pytest.raises(ValueError, match=message):
        LabelSource(votes=text_table(**votes), id="key").read(table)
    with pytest.raises(ValueError, match="expected three names"):
        LabelSource(votes=text_table(**votes), vote_columns=["item", "label"], id="key").read(table)
    with pytest.raises(ValueError, match="id: name the column"):
        LabelSource(votes=text_table(**votes)).read(table)


def test_rows_that_nobody_voted_on_may_be_anything_on_demand():
    labels = votes_on(["p", "q", "r"], [("p", "u", "a"), ("q", "u", "b")], empty="any")
    assert labels.candidates.to_lists() == [["a"], ["b"], ["a", "b"]]
    assert labels.votes.confidences()[2:].tolist() == pytest.approx([0.5, 0.5])


def test_decisions_settle_votes():
    votes = [("p", "u", "a"), ("p", "v", "a"), ("q", "u", "b"), ("q", "v", "c")]
    decisions = text_table(id=["p", "q"], label=["c", ""])
    labels = votes_on(["p", "q"], votes, decisions=decisions)
    assert labels.candidates.to_lists() == [["a", "c"], ["b", "c"]]
    assert labels.decided.tolist() == [True, False]
    assert labels.votes.confidences()[:2].tolist() == [0, 1]
    assert labels.candidates.weights[0] < 1e-9


@given(st.data())
def test_decisions_replace_the_candidates_of_their_rows(data):
    sets = data.draw(st.lists(st.sets(st.sampled_from("abc"), min_size=1), min_size=2, max_size=9))
    candidates = as_candidates(sets, classes="abc")
    rows = st.integers(0, len(sets) - 1)
    decided = data.draw(st.dictionaries(rows, st.sampled_from("abc")))
    expected = [[decided[i]] if i in decided else sorted(sets[i]) for i in range(len(sets))]
    keys = [str(row + 1) for row in decided]
    names = [f"n{row + 1}" for row in range(len(sets))]
    table = Table(["name"], [pa.array(names)])
    for key, column, id in (
        ("row", keys, None),
        ("id", [f"n{key}" for key in keys], "name"),
    ):
        decisions = Table(
            [key, "label"], [pa.array(column, pa.string()), pa.array(decided.values(), pa.string())]
        )
        labels = LabelSource(candidates, decisions=decisions, id=id).read(table)
        assert labels.candidates.to_lists() == expected
        assert np.flatnonzero(labels.decided).tolist() == sorted(decided)


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
    table = text_table(key=items or ["x"] * 3)
    with pytest.raises(ValueError, match=message):
        LabelSource(
            as_candidates([{"a", "b"}] * 3),
            decisions=text_table(**decisions),
            id="key" if items else None,
        ).read(table)


def test_gap_words_are_counted_in_the_note():
    column = pa.array(["a|?", "a|?", "b|na", "a|b", "a|?|na"])
    with pytest.warns(TableWarning, match=r"not as labels: '\?' \(3 times\), 'na' \(2 times\)\."):
        sets, _ = column_candidates(column)
    assert sets.to_lists() == [["a"], ["a"], ["b"], ["a", "b"], ["a"]]


@pytest.mark.parametrize(
    ("usual", "rare", "alike"),
    [
        ("spain", "spains", True),
        ("rome", "romes", False),  # too short to tell a slip from another word
        ("batch1234", "batch1235", False),  # numbers are never slips
        ("room 12 blue", "room 12 bleu", True),
    ],
)
def test_slips_are_told_from_other_words(usual, rare, alike):
    sets = as_candidates([{usual, "x"}] * 20 + [{rare, "x"}] + [{"x"}])
    assert look_alike(sets) == [(rare, usual)] * alike


def test_a_decision_on_the_first_candidate_of_the_first_row_counts():
    table = VoteTable.from_long([0, 0, 1], ["u", "v", "v"], ["a", "b", "b"])
    votes = Votes.collect(table, np.arange(2), np.array([0, -1]))
    assert votes.decided.tolist() == [0, -1]
    assert votes.confidences()[:2].tolist() == [1.0, 0.0]
    assert votes.candidates.weights[0] == 1.0
    assert votes.candidates.weights[1] < 1e-9


def shares_near(truth, weight, rng):
    """Probabilities of three classes that know something of the truth."""
    shares = rng.random((len(truth), 3)) + weight * np.eye(3)[truth]
    return shares / shares.sum(axis=1, keepdims=True)


def test_a_model_that_says_nothing_of_the_votes_does_not_count():
    rng = np.random.default_rng(2)
    truth = rng.integers(3, size=200)
    cells = np.where(rng.random((200, 5)) < 0.7, truth[:, None], rng.integers(3, size=(200, 5)))
    votes = Votes.collect(VoteTable.from_wide(cells), np.arange(200), np.full(200, -1))
    sets = votes.candidates
    noise = sets.row_normalized(rng.random(len(sets.indices)))
    assert votes.judged(noise, shares_near(truth, 0, rng)) is votes
    hint = sets.row_normalized(np.where(sets.indices == sets.spread(truth), 3.0, 1.0))
    judged = votes.judged(hint, shares_near(truth, 2, rng))
    right = [np.mean(found.found.codes == truth) for found in (votes, judged)]
    assert right[1] > right[0] + 0.01


@pytest.mark.parametrize("asked", [200, 70])
def test_a_model_counts_where_no_majority_is_clear(asked):
    rng = np.random.default_rng(2)
    truth = rng.integers(3, size=200)
    cells = np.where(rng.random((200, 2)) < 0.7, truth[:, None], rng.integers(3, size=(200, 2)))
    votes = Votes.collect(VoteTable.from_wide(cells), np.arange(200), np.full(200, -1))
    sets = votes.candidates
    hint = sets.row_normalized(np.where(sets.indices == sets.spread(truth), 3.0, 1.0))
    tied = sets.sizes == 2
    named = (cells == truth[:, None]).any(axis=1)
    held_out = shares_near(truth, 2, rng)
    held_out[asked:] = np.nan
    found = votes.judged(hint, held_out).found.codes
    np.testing.assert_array_equal(found[tied & named], truth[tied & named])
    noise = shares_near(truth, 0, rng)
    noise[asked:] = np.nan
    assert votes.judged(sets.row_normalized(rng.random(len(hint))), noise) is votes


def test_labels_with_useless_features_are_those_of_the_votes():
    rng = np.random.default_rng(3)
    truth = rng.choice(4, 120, p=[0.1, 0.2, 0.3, 0.4])
    cells = np.where(rng.random((120, 2)) < 0.7, truth[:, None], rng.integers(4, size=(120, 2)))
    frame = pd.DataFrame(rng.normal(size=(120, 4)), columns=list("abcd"))
    columns = ["ann", "bob"]
    frame[columns] = cells
    with pytest.warns(TableWarning, match="the labels are those of the votes alone"):
        found = disambiguate(frame, annotators=columns)["label"].astype(int)
    alone = aggregate_votes(VoteTable.from_wide(cells)).labels
    np.testing.assert_array_equal(found, alone)
