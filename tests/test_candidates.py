import copy
import datetime
import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.utils import check_array

from skpll import CandidateSets, as_candidates
from skpll._errors import ArgumentError
from skpll.crowd import VoteTable, aggregate_votes

ANIMALS = [{"cat", "dog"}, {"cat"}, {"dog", "fox"}, {"cat", "dog", "fox"}]
INDICATOR = np.array([[1, 1, 0], [1, 0, 0], [0, 1, 1], [1, 1, 1]])
NAMES = ["cat", "dog", "fox"]


@pytest.fixture
def animals():
    return as_candidates(ANIMALS)


# -- formats -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        ANIMALS,
        [sorted(s) for s in ANIMALS],
        [tuple(s) for s in ANIMALS],
        [np.array(sorted(s)) for s in ANIMALS],
        tuple(frozenset(s) for s in ANIMALS),
        (s for s in ANIMALS),
        np.array(ANIMALS, dtype=object),
        pd.Series(ANIMALS, index=[7, 5, 3, 1]),
        pl.Series([sorted(s) for s in ANIMALS]),
        pd.DataFrame(INDICATOR, columns=NAMES),
        pd.DataFrame(INDICATOR.astype(bool), columns=NAMES)[["fox", "cat", "dog"]],
        pl.DataFrame(INDICATOR, schema=NAMES),
        pd.DataFrame(INDICATOR, columns=NAMES).astype(object),
    ],
    ids=lambda given: type(given).__name__,
)
def test_sequences_and_frames(given, animals):
    assert as_candidates(given) == animals


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.float32, float])
@pytest.mark.parametrize(
    "container", [np.array, sparse.csr_array, sparse.csc_matrix, sparse.coo_array, sparse.lil_array]
)
def test_indicator_matrices(container, dtype, animals):
    S = as_candidates(container(INDICATOR.astype(dtype)), classes=NAMES)
    assert animals == S


def test_the_columns_of_a_matrix_may_come_in_any_order(animals):
    S = as_candidates(INDICATOR[:, [2, 0, 1]], classes=["fox", "cat", "dog"])
    assert animals == S


def test_unnamed_columns_are_numbered_and_empty_ones_kept():
    S = as_candidates(np.array([[0, 1, 0], [0, 1, 1]]))
    assert S.classes.tolist() == [0, 1, 2]
    assert S.to_lists() == [[1], [1, 2]]


def test_duplicate_entries_of_a_sparse_matrix_are_not_binary():
    M = sparse.coo_array((np.ones(3), ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    with pytest.raises(ValueError, match=r"S: row 0 has 2\.0 in column 1"):
        as_candidates(M)


@pytest.mark.parametrize(
    "column",
    [
        ["cat|dog", "cat", "dog|fox", "cat|dog|fox"],
        [" dog | cat", "cat|", "|fox||dog", "fox|dog|cat|cat"],
        pd.Series(["cat|dog", "cat", "dog|fox", "cat|dog|fox"], dtype="string"),
        pl.Series(["cat|dog", "cat", "dog|fox", "cat|dog|fox"]),
        np.array(["cat|dog", "cat", "dog|fox", "cat|dog|fox"]),
    ],
)
def test_delimited_strings(column, animals):
    assert as_candidates(column, sep="|") == animals


def test_separators_of_several_characters_do_not_run_across_rows():
    S = as_candidates(["a|", "|b", "c||d"], sep="||")
    assert S.to_lists() == [["a|"], ["|b"], ["c", "d"]]


@pytest.mark.parametrize(
    "labels",
    [
        [3, 1, 2, 1],
        np.array([3, 1, 2, 1], dtype=np.uint8),
        np.array([3.0, 1.0, 2.0, 1.0]),
        ["b", "a", "c", "a"],
        np.array(["b", "a", "c", "a"]),
        pd.Series(["b", "a", "c", "a"], dtype="category"),
        pl.Series(["b", "a", "c", "a"]),
        [True, False, True, False],
        [b"x", b"y", b"x", b"z"],
        [datetime.date(2020, 1, 2), datetime.date(2020, 1, 1)],
        np.array(["2020-01-02", "2020-01-01"], dtype="M8[ns]"),
        [10**30, 1, 2, 2**63],
        ["a", "a\0", "ß", "💥", "\ud800", ""],
    ],
    ids=str,
)
def test_plain_labels_are_singletons(labels):
    S = as_candidates(labels)
    assert S.sizes.tolist() == [1] * len(labels)
    assert [next(iter(labels)) for labels in S] == list(labels)
    assert list(S.classes) == sorted(set(labels))


def test_labels_keep_their_type():
    assert as_candidates([{1, 2}, {3}]).classes.dtype.kind == "i"
    assert as_candidates([{"a", "b"}, {"c"}]).classes.dtype.kind == "U"
    assert as_candidates([{1, 2.5}, {3}]).classes.tolist() == [1, 2.5, 3]
    assert as_candidates([{True, 2}]).to_lists() == [[True, 2]]
    assert type(as_candidates([{True, 2}]).classes[0]) is bool
    stamps = np.array(["2020-01-02", "2020-01-01"], dtype="M8[ns]")
    assert as_candidates(stamps).classes.dtype == stamps.dtype


def test_given_classes_are_sorted_and_empty_ones_kept():
    S = as_candidates(ANIMALS, classes=["fox", "emu", "dog", "cat"])
    assert S.classes.tolist() == ["cat", "dog", "emu", "fox"]
    assert S.to_lists()[2] == ["dog", "fox"]
    assert as_candidates([2, 1], classes=np.arange(5)).shape == (2, 5)


def test_candidate_sets_pass_through(animals):
    assert as_candidates(animals) is animals
    wider = as_candidates(animals, classes=[*NAMES, "ant"])
    assert wider.shape == (4, 4)
    assert wider.to_lists() == animals.to_lists()
    with pytest.raises(ValueError, match=r"S: row 2: the label 'fox' is not one of the classes"):
        animals.with_classes(["cat", "dog"])


def test_zeros_that_a_sparse_matrix_stores_are_no_candidates():
    M = sparse.coo_array((np.array([1, 0, 1]), ([0, 0, 1], [1, 0, 0])), shape=(2, 2))
    assert as_candidates(M).to_lists() == [[1], [0]]


def test_what_is_only_an_array_by_its_protocol_is_read_as_one(animals):
    class Column:
        def __array__(self, dtype=None, copy=None):
            return INDICATOR.astype(dtype or int)

    assert as_candidates(Column(), classes=NAMES) == animals


def test_matrices_in_half_precision():
    assert as_candidates(np.eye(2, dtype=np.float16)).to_lists() == [[0], [1]]


def test_decimal_numbers_of_a_database():
    frame = pd.DataFrame({"a": [Decimal(1), Decimal(0)], "b": [Decimal(0), Decimal(1)]})
    assert as_candidates(frame).to_lists() == [["a"], ["b"]]


def test_ones_are_no_weights():
    assert as_candidates(np.eye(3)).weights is None
    assert as_candidates(sparse.eye_array(3)).weights is None


def test_equally_long_lists_that_can_only_be_labels():
    assert as_candidates([[0, 1], [1, 0]]).to_lists() == [[0, 1], [0, 1]]
    assert as_candidates([[0.5], [1.0]]).to_lists() == [[0.5], [1.0]]
    assert as_candidates([[0.5, 0.25], [0.125]]).to_lists() == [[0.25, 0.5], [0.125]]
    with pytest.raises(ValueError, match=r"S: a list of equally long lists"):
        as_candidates([[0, 1], [1, 1]])
    with pytest.raises(ValueError, match=r"S: row 1 has 0\.5: equally long lists"):
        as_candidates([[0, 1], [0.5, 1]])


def test_a_column_vector_is_a_vector_with_a_warning():
    with pytest.warns(DataConversionWarning, match="column-vector") as caught:
        S = as_candidates(np.array([[1], [2]]))
    assert caught[0].filename == __file__
    assert S.to_lists() == [[1], [2]]


# -- from other sources --------------------------------------------------------------------


def test_from_votes(animals):
    items = [0, 0, 1, 1, 2, 2, 3, 3, 3]
    labels = ["dog", "cat", "cat", "cat", "dog", "fox", "dog", "fox", "cat"]
    S = CandidateSets.from_votes(items, labels)
    assert S.with_weights(None) == animals
    assert S.weights.tolist() == [1, 1, 2, 1, 1, 1, 1, 1]
    shuffled = np.random.default_rng(0).permutation(len(items))
    assert CandidateSets.from_votes(np.array(items)[shuffled], pd.Series(labels)[shuffled]) == S


def test_from_votes_in_the_order_of_a_table():
    S = CandidateSets.from_votes(["b", "a", "b"], [1, 2, 3], order=["b", "a"])
    assert S.to_lists() == [[1, 3], [2]]
    with pytest.raises(ValueError, match=r"items: vote 1.*'a'.*`order`"):
        CandidateSets.from_votes(["b", "a", "b"], [1, 2, 3], order=["b", "c"])
    with pytest.raises(ValueError, match="items: 'c' of `order` has no vote; an example without"):
        CandidateSets.from_votes(["b", "a", "b"], [1, 2, 3], order=["b", "a", "c"])
    with pytest.raises(ValueError, match="labels: 2 labels for 3 items"):
        CandidateSets.from_votes(["b", "a", "b"], [1, 2])
    with pytest.raises(ValueError, match="items: vote 1") as caught:
        CandidateSets.from_votes(["b", None, "b"], [1, 2, 3])
    assert "`order`" not in str(caught.value)
    assert CandidateSets.from_votes("ab", [1, 2], classes=[1, 2, 3]).shape == (2, 3)


def test_items_without_votes_may_be_of_any_class():
    found = aggregate_votes(VoteTable.from_counts([[1, 1], [0, 2], [0, 0]], classes=["x", "y"]))
    assert CandidateSets.from_aggregation(found).to_lists() == [["x", "y"], ["y"], ["x", "y"]]


@pytest.mark.parametrize(
    "answers",
    [
        np.array([[1, 2, 1], [0, -1, -1], [-1, 2, 0]]),
        np.array([[1, 2, 1], [0, np.nan, np.nan], [np.nan, 2, 0]]),
        [[1, 2, 1], [0, None, -1], [float("nan"), 2, 0]],
        pd.DataFrame([[1, 2, 1], [0, None, None], [None, 2, 0]]),
    ],
)
def test_from_annotators(answers):
    S = CandidateSets.from_annotators(answers)
    assert S.to_lists() == [[1, 2], [0], [0, 2]]
    assert S.classes.dtype.kind in "iO"


def test_labels_of_annotators_may_be_fractions():
    S = CandidateSets.from_annotators([[0.5, 1.0], [np.nan, 2.0], [-1.0, 0.5]])
    assert S.to_lists() == [[0.5, 1.0], [2.0], [0.5]]


def test_from_annotators_with_names_and_gaps():
    S = CandidateSets.from_annotators([["a", "b"], ["?", "b"], [None, "a"]], missing="?")
    assert S.to_lists() == [["a", "b"], ["b"], ["a"]]
    with pytest.raises(ValueError, match="A: row 1 has no candidate"):
        CandidateSets.from_annotators([["a", "b"], ["?", None]], missing="?")
    with pytest.raises(ValueError, match="A: expected a row an example"):
        CandidateSets.from_annotators(["a", "b"])
    with pytest.raises(ValueError, match=r"A: row 1: the label 'c' is not one of the classes"):
        CandidateSets.from_annotators([["a", "b"], ["c", None]], classes=["a", "b"])


@pytest.mark.parametrize(
    "excluded",
    [
        [{"cat"}, set(), {"cat", "dog"}],
        np.array([[1, 0, 0], [0, 0, 0], [1, 1, 0]]),
        ["cat", "", "cat|dog"],
    ],
)
def test_from_excluded(excluded):
    sep = "|" if isinstance(excluded[0], str) else None
    S = CandidateSets.from_excluded(excluded, classes=NAMES, sep=sep)
    assert S.to_lists() == [["dog", "fox"], ["cat", "dog", "fox"], ["fox"]]


def test_from_excluded_plain_labels_and_errors():
    S = CandidateSets.from_excluded([3, 1], classes=[1, 2, 3])
    assert S.to_lists() == [[1, 2], [2, 3]]
    with pytest.raises(ValueError, match="E: row 0 has no candidate"):
        CandidateSets.from_excluded([{1, 2}], classes=[1, 2])
    with pytest.raises(ValueError, match=r"E: row 0: the label 9 is not one of the classes"):
        CandidateSets.from_excluded([{9}], classes=[1, 2])


def test_from_coarse():
    groups = {"bird": ["eagle", "wren"], "fish": ["cod", "eel", "carp"]}
    S = CandidateSets.from_coarse(["bird", "eel", "fish"], groups=groups)
    assert S.to_lists() == [["eagle", "wren"], ["eel"], ["carp", "cod", "eel"]]
    assert CandidateSets.from_coarse(["ant"], groups=groups, classes=[*S.classes, "ant"]).sizes == 1
    with pytest.raises(ValueError, match=r"labels: row 1 has 'brid'"):
        CandidateSets.from_coarse(["bird", "brid"], groups=groups)
    with pytest.raises(ValueError, match=r"groups: 'bird' has no class"):
        CandidateSets.from_coarse(["bird"], groups={"bird": []})
    with pytest.raises(ValueError, match=r"groups: 'wren' is not one of `classes`"):
        CandidateSets.from_coarse(["bird"], groups=groups, classes=["eagle", "cod", "eel", "carp"])


def test_from_scores():
    P = np.array([[0.5, 0.3, 0.2], [0.1, 0.45, 0.45], [0.3, 0.3, 0.4]])
    assert CandidateSets.from_scores(P, top_k=2).to_lists() == [[0, 1], [1, 2], [0, 2]]
    assert CandidateSets.from_scores(P, top_k=1).to_lists() == [[0], [1], [2]]
    assert CandidateSets.from_scores(P, threshold=0.45).to_lists() == [[0], [1, 2], [2]]
    frame = pd.DataFrame(P, columns=["b", "a", "c"])
    assert CandidateSets.from_scores(frame, top_k=1).to_lists() == [["b"], ["a"], ["c"]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "top_k, threshold: give one"),
        ({"top_k": 1, "threshold": 0.5}, "top_k, threshold: give one"),
        ({"top_k": 0}, "top_k: 0 is not between 1 and the 2"),
        ({"top_k": 3}, "top_k: 3 is not between 1 and the 2"),
        ({"top_k": 1, "classes": ["a"]}, "classes: 1 names for the 2 columns"),
    ],
)
def test_from_scores_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        CandidateSets.from_scores([[0.2, 0.8]], **arguments)


def test_scores_must_be_numbers():
    with pytest.raises(ValueError, match="P: row 1 has NaN"):
        CandidateSets.from_scores([[0.2, 0.8], [np.nan, 1]], top_k=1)
    with pytest.raises(ValueError, match="P: expected a row an example"):
        CandidateSets.from_scores([0.2, 0.8], top_k=1)


# -- errors --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("S", "arguments", "message"),
    [
        (None, {}, "S: got None"),
        ("cat", {}, "S: got a str"),
        (5, {}, "S: got a int"),
        ({"a": 1}, {}, "S: got a dict"),
        (np.array(3), {}, "S: expected a vector or a 0/1 matrix, got 0"),
        (np.zeros((2, 2, 2)), {}, "S: expected a vector or a 0/1 matrix, got 3"),
        ([], {}, "S: there is no example"),
        ([{1, 2}, set(), {1}], {}, "S: row 1 has no candidate; .*unlabeled"),
        (np.array([[1, 1], [0, 0]]), {}, "S: row 1 has no candidate"),
        (sparse.csr_array((3, 2)), {}, "S: row 0 has no candidate"),
        (["a|b", " | "], {"sep": "|"}, "S: row 1 has no candidate"),
        (["a|b", None], {"sep": "|"}, "S: row 1 is None; .*unlabeled"),
        (["a|b", float("nan")], {"sep": "|"}, "S: row 1 is nan; .*unlabeled"),
        (["a|b", 3], {"sep": "|"}, "S: row 1 is a int, not a string"),
        ([1, 2], {"sep": "|"}, "S: row 0 is a int, not a string"),
        (np.array([1, 2]), {"sep": "|"}, "S: row 0 is a int, not a string"),
        ([{"a"}], {"sep": "|"}, "S: row 0 is a set, not a string"),
        (["a|b"], {"sep": ""}, "sep: an empty separator"),
        ([{"a", "b"}, {"c"}], {"classes": ["a", "b"]}, "S: row 1: the label 'c' is not one of"),
        ([1, 9, 2], {"classes": [1, 2]}, "S: row 1: the label 9 is not one of"),
        (np.array([1, 9, 2]), {"classes": [1, 2]}, "S: row 1: the label 9 is not one of"),
        (["a|x"], {"classes": ["a", "b"], "sep": "|"}, "S: row 0: the label 'x' is not one of"),
        ([1.0, np.nan, 2.0], {}, "S: row 1: the label is nan"),
        (np.array([1.0, np.nan]), {}, "S: row 1: the label is nan"),
        (np.array([1.0, np.inf]), {}, "S: row 1: the label is inf"),
        ([1.0, float("inf")], {}, "S: row 1: the label is inf"),
        (np.array(["2020-01-01", "NaT"], dtype="M8[D]"), {}, "S: row 1: the label is NaT"),
        ([{"a", "b"}, {"a", None}], {}, "S: row 1: the label is None"),
        (["a", None], {}, "S: row 1: the label is None"),
        (pd.Series(["a", pd.NA], dtype="string"), {}, "S: row 1: the label is <NA>"),
        ([{"a"}, None], {}, "S: row 1 is None; .*unlabeled"),
        ([{"a"}, "dog"], {}, r"S: row 1 is the single label 'dog' .*\{'dog'\}"),
        ([{"a"}, {"a": 0.3}], {}, "S: row 1 is a dict among sets of labels; .*weight"),
        ([[{"a"}], [{"b"}]], {}, "S: row 0: {'a'} can't be a label"),
        ([{1, 2}, {"a"}], {}, r"S: row 1: the label 'a' \(str\) can't be sorted with 1 \(int\)"),
        (np.array([[0, 2], [1, 0]]), {}, "S: row 0 has 2 in column 1; .*from_annotators"),
        (np.array([[0, 1], [-1, 0]]), {}, "S: row 1 has -1 in column 0"),
        (np.array([[1, 2], [3, 1]]), {}, "S: row 0 has 2 in column 1"),
        (sparse.csc_array([[1, 2], [3, 1]]), {}, "S: row 0 has 2 in column 1"),
        (np.array([[-0.5, 1.5], [1, 0]]), {}, "S: row 0 has -0.5 in column 0"),
        (np.array([[1, 0], [{3}, 1]], dtype=object), {}, r"S: row 1 has \{3\} in column 0"),
        ([{"a": 1}, {"b": 0}], {}, "S: row 1 has the weight 0; weights are positive"),
        ([{"a": 1}, {"b": np.inf}], {}, "S: row 1 has the weight inf"),
        (np.array([[0, 1], [1, np.nan]]), {}, "S: row 1 has nan in column 1"),
        (np.array([[0.5, 1], [1, 0]]), {}, "S: row 0 has 0.5 in column 0; .*from_scores"),
        (np.array([["a", "b"]]), {}, "S: row 0 has .*'a'.* in column 0; .*from_annotators"),
        (pd.DataFrame({"a": [0, None], "b": [1, 1]}), {}, "S: row 1 has nan in column 0"),
        (pd.DataFrame({"names": ["a|b"]}), {}, r"S: the data frame has one column; .*S\['names'\]"),
        (
            pd.DataFrame({"a": [1], "b": [1]}),
            {"classes": ["a", "b", "c"]},
            "classes: 'c' is not both",
        ),
        (
            pd.DataFrame({"a": [1], "b": [1]}),
            {"classes": [["a"], "b"]},
            "classes: the names can't be sorted or hashed",
        ),
        (pd.DataFrame({"a": [1], "b": [1]}), {"classes": ["a"]}, "classes: 'b' is .* column of S"),
        (np.eye(2), {"classes": ["a"]}, "classes: 1 names for the 2 columns of S"),
        ([1, 2], {"classes": [1, 2, 1]}, "classes: 1 is there twice"),
        ([1, 2], {"classes": [1, "a"]}, "classes: the names can't be sorted"),
        ([1, 2], {"classes": [1, None]}, "classes: entry 1 is None"),
        (["a", "a"], {}, "S: only one class is present"),
        ([{1}, {1}], {}, "S: only one class is present .1.; .*two"),
        (np.ones((3, 1)), {"classes": ["a"]}, "is not one of the classes"),
        ([[0, 1, 1], [1, 0, 0]], {}, "S: a list of equally long lists .*numpy.array"),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_bad_input_gets_its_error(S, arguments, message):
    with pytest.raises(ValueError, match=message):
        as_candidates(S, **arguments)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (([0, 1], [0], ["b", "a"]), "classes: the labels are not sorted"),
        (([0, 1], [0], ["a", "a"]), "classes: 'a' is there twice"),
        (([0, 2], [0], ["a", "b"]), "indptr: must rise from 0"),
        (([0, 2, 1, 2], [0, 1], ["a", "b"]), "indptr: must rise from 0"),
        (([0, 1], [2], ["a", "b"]), "indices: row 0 has class number 2"),
        (([0, 1], [-1], ["a", "b"]), "indices: row 0 has class number -1"),
        (([0, 2], [1, 1], ["a", "b"]), "indices: row 0 names a class twice"),
        (([0, 0, 1], [1], ["a", "b"]), "indptr: row 0 has no candidate"),
        (([], [], ["a", "b"]), "one-dimensional"),
        (([[0, 1]], [0], ["a", "b"]), "one-dimensional"),
        (([0, 1], [[0]], ["a", "b"]), "one-dimensional"),
        (([1, 2], [0, 1], ["a", "b"]), "indptr: must rise from 0"),
        (([0, 1, 2, 3], [0, 5, 7], ["a", "b"]), "indices: row 1 has class number 5"),
        (([0, 1, 3], [0, 1, 1], ["a", "b"]), "indices: row 1 names a class twice"),
        (([0, 1], [0], ["a"]), "indptr: only one class is present"),
    ],
)
def test_the_constructor_checks_its_arrays(arrays, message):
    with pytest.raises(ValueError, match=message):
        CandidateSets(*arrays)


def test_the_constructor_sorts_rows():
    S = CandidateSets([0, 2, 3], [1, 0, 1], ["a", "b"])
    assert as_candidates([{"a", "b"}, {"b"}]) == S


# -- as a sequence -------------------------------------------------------------------------


def test_indexing(animals):
    assert animals[1] == {"cat"}
    assert animals[-1] == {"cat", "dog", "fox"}
    assert animals[np.int64(2)] == {"dog", "fox"}
    assert animals[1:3].to_lists() == [["cat"], ["dog", "fox"]]
    assert animals[::-1].to_lists() == animals.to_lists()[::-1]
    assert animals[3:1].to_lists() == []
    assert animals[[3, 0, 0]].to_lists() == [["cat", "dog", "fox"], ["cat", "dog"], ["cat", "dog"]]
    assert animals[[-1]].to_lists() == [["cat", "dog", "fox"]]
    assert animals[np.array([True, False, True, False])] == animals[[0, 2]]
    assert animals[[0, 2], ...] == animals[[0, 2]]
    assert animals[[]].shape == (0, 3)
    assert list(animals) == [frozenset(s) for s in ANIMALS]


@pytest.mark.parametrize("key", [4, -5, [4], (0, 1), (0, 1, 2), "cat", [[0]], [0.5], [True]])
def test_bad_indices(animals, key):
    with pytest.raises(IndexError):
        animals[key]


def test_slices_share_the_classes(animals):
    for part in (animals[1:], animals[[0, 1]], animals[animals.sizes > 1], animals[::2]):
        assert part.classes is animals.classes
    assert np.shares_memory(animals[1:].indices, animals.indices)


def test_immutable(animals):
    with pytest.raises(AttributeError, match="can't be changed"):
        animals.classes = np.arange(3)
    with pytest.raises(AttributeError, match="can't be changed"):
        del animals.indices
    for array in (animals.classes, animals.indptr, animals.indices):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]
    with pytest.raises(TypeError, match="unhashable"):
        hash(animals)


def test_copies_and_pickles(animals):
    assert copy.copy(animals) is animals
    assert copy.deepcopy(animals) is animals
    assert pickle.loads(pickle.dumps(animals)) == animals


def test_equality(animals):
    assert animals == as_candidates(INDICATOR, classes=NAMES)
    assert animals != as_candidates(INDICATOR)
    assert animals != animals[:3]
    assert animals != as_candidates(ANIMALS, classes=[*NAMES, "yak"])
    assert animals != ANIMALS


def test_contains(animals):
    assert animals.contains("dog").tolist() == [True, False, True, True]
    assert animals.contains(["fox", "cat", "fox", "cat"]).tolist() == [False, True, True, True]
    assert animals.contains(["emu", "cat", "emu", "emu"]).tolist() == [False, True, False, False]
    assert animals.contains(3).tolist() == [False] * 4
    assert animals[:0].contains("dog").shape == (0,)
    assert as_candidates(["a", "b", "a"]).contains("b").tolist() == [False, True, False]
    with pytest.raises(ValueError, match="labels: 3 labels for 4 examples"):
        animals.contains(["fox", "cat", "fox"])


def test_to_other_formats(animals):
    matrix = animals.to_matrix()
    assert isinstance(matrix, sparse.csr_array)
    np.testing.assert_array_equal(matrix.toarray(), INDICATOR)
    np.testing.assert_array_equal(np.asarray(animals), INDICATOR)
    assert np.asarray(animals).dtype == np.uint8
    assert np.asarray(animals, dtype=float).dtype == float
    assert animals.__array__(float).dtype == float
    with pytest.raises(ValueError, match="without a copy"):
        np.array(animals, copy=False)
    assert animals.to_strings() == ["cat|dog", "cat", "dog|fox", "cat|dog|fox"]
    for sep in ("a", "o"):
        with pytest.raises(ValueError, match="sep: the label"):
            animals.to_strings(sep)
    for label in ("", " a"):
        with pytest.raises(ValueError, match=f"sep: the label '{label}' can't be read back"):
            as_candidates([{label}, {"b"}]).to_strings()


def test_metrics_of_labels_say_that_candidate_sets_are_none(animals):
    with pytest.raises(TypeError, match="y_true: candidate sets where this metric needs one true"):
        accuracy_score(animals, ["cat"] * 4)
    with pytest.raises(TypeError, match="y_true: candidate sets where this metric needs one true"):
        roc_auc_score(animals, INDICATOR)
    np.testing.assert_array_equal(check_array(animals), INDICATOR)


def test_classes_that_are_left():
    S = as_candidates([{"b"}, {"b", "d"}], classes=list("abcde"))
    for also, kept in (((), "bd"), ([2], "bcd"), ([0, 4], "abde")):
        narrow, places = S.seen(also)
        assert narrow == S.with_classes(list(kept))
        assert [str(S.classes[place]) for place in places] == list(kept)


def test_repr(animals):
    assert repr(animals) == (
        "<CandidateSets: 4 examples, 3 classes, 2.00 candidates on average (1 to 3)\n"
        "  {'cat', 'dog'}\n  {'cat'}\n  {'dog', 'fox'}\n  … 1 more>"
    )
    assert repr(animals[:0]) == "<CandidateSets: no examples, 3 classes>"
    assert "… 90 more}" in repr(as_candidates([set(range(100))]))
    assert "more" not in repr(as_candidates([set(range(10))] * 3))


def test_table_for_notebooks(animals):
    html = animals._repr_html_()
    assert html.startswith("<p>CandidateSets: 4 examples, 3 classes, 2.00 candidates on average")
    assert "<tr><th>2</th><td>&#x27;dog&#x27;, &#x27;fox&#x27;</td></tr>" in html
    many = as_candidates([{"<b>", "x"}] * 7)
    assert "&lt;b&gt;" in many._repr_html_()
    assert "<tr><th>…</th><td>2 more</td></tr>" in many._repr_html_()
    assert "<th>4</th>" in many._repr_html_()
    assert "<th>5</th>" not in many._repr_html_()
    assert "more" not in as_candidates([set(range(10))] * 5)._repr_html_()
    assert ", … 90 more</td>" in as_candidates([set(range(100))])._repr_html_()
    empty = "<p>CandidateSets: no examples, 3 classes</p><table></table>"
    assert animals[:0]._repr_html_() == empty


# -- properties ----------------------------------------------------------------------------

labels_of_one_type = st.sampled_from(
    [
        st.text(max_size=5),
        st.integers(),
        st.integers(-3, 3),
        st.floats(allow_nan=False, allow_infinity=False),
        st.booleans(),
        st.dates(),
        st.binary(max_size=3),
        st.tuples(st.integers(0, 3), st.text(max_size=2)),
        st.one_of(st.integers(-5, 5), st.floats(-5, 5)),
    ]
)
label_lists = labels_of_one_type.flatmap(
    lambda labels: st.lists(st.lists(labels, min_size=1, max_size=4), min_size=1, max_size=8)
).filter(lambda rows: len(set().union(*rows)) > 1)


@given(rows=label_lists)
def test_any_labels_survive_the_round_trip(rows):
    sets = [set(row) for row in rows]
    S = as_candidates(sets)
    assert [set(row) for row in S.to_lists()] == sets
    assert list(S) == sets
    assert as_candidates(S.to_lists(), classes=S.classes) == S
    assert as_candidates(S.to_matrix(), classes=S.classes) == S
    assert as_candidates(np.asarray(S), classes=S.classes) == S
    assert CandidateSets(S.indptr, S.indices, S.classes) == S
    assert pickle.loads(pickle.dumps(S)) == S
    items = [i for i, row in enumerate(rows) for _ in row]
    votes = CandidateSets.from_votes(items, [label for row in rows for label in row])
    assert votes.with_weights(None) == S


@given(rows=label_lists, data=st.data())
def test_indexing_is_that_of_a_list(rows, data):
    S = as_candidates([set(row) for row in rows])
    sets = list(S)
    chosen = data.draw(st.lists(st.integers(-len(rows), len(rows) - 1), max_size=10))
    assert list(S[chosen]) == [sets[i] for i in chosen]
    cut = data.draw(st.slices(len(rows)))
    assert list(S[cut]) == sets[cut]
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))))
    assert list(S[mask]) == [s for s, kept in zip(sets, mask, strict=True) if kept]
    label = data.draw(st.sampled_from(sets)).__iter__().__next__()
    assert S[chosen].contains(label).tolist() == [label in sets[i] for i in chosen]


@given(
    rows=st.lists(
        st.lists(st.text(st.characters(exclude_characters="|"), min_size=1), min_size=1),
        min_size=1,
    )
)
def test_delimited_strings_round_trip(rows):
    stripped = [{text.strip() for text in row} - {""} for row in rows]
    if any(not row for row in stripped) or len(set().union(*stripped)) < 2:
        with pytest.raises(ValueError, match=r"has no candidate|one class|no example"):
            as_candidates(["|".join(row) for row in rows], sep="|")
        return
    S = as_candidates(["|".join(row) for row in rows], sep="|")
    assert list(S) == stripped
    assert as_candidates(S.to_strings("|"), sep="|") == S


@given(st.data())
def test_excluding_is_the_complement(data):
    q = data.draw(st.integers(2, 6))
    rows = data.draw(
        st.lists(st.sets(st.integers(0, q - 1), max_size=q - 1), min_size=1, max_size=6)
    )
    S = CandidateSets.from_excluded(rows, classes=range(q))
    assert list(S) == [set(range(q)) - row for row in rows]


@pytest.fixture(scope="module")
def million():
    rng = np.random.default_rng(0)
    codes = np.sort(rng.integers(0, 50, size=(1_000_000, 3)), axis=1)
    return codes, CandidateSets.from_annotators(codes, classes=range(50))


def test_a_million_rows_from_every_vectorized_format(million):
    codes, S = million
    assert S.shape == (1_000_000, 50)
    rows = np.random.default_rng(1).integers(0, len(codes), 500)
    assert list(S[rows]) == [set(row) for row in codes[rows].tolist()]
    assert as_candidates(S.to_matrix()) == S.with_weights(None)
    assert as_candidates(np.asarray(S)) == S.with_weights(None)
    assert CandidateSets.from_votes(np.repeat(np.arange(len(codes)), 3), codes.ravel()) == S


def test_a_million_delimited_strings(million):
    codes, S = million
    names = np.array([f"class {i:02d}" for i in range(50)])
    column = pd.Series(names[codes[:, 0]]) + "|" + names[codes[:, 1]] + "|" + names[codes[:, 2]]
    T = as_candidates(column, sep="|")
    assert T.classes.tolist() == names.tolist()
    np.testing.assert_array_equal(T.indices, S.indices)
    np.testing.assert_array_equal(T.indptr, S.indptr)


# -- evidence ------------------------------------------------------------------------------


@pytest.fixture
def votes():
    return as_candidates([{"cat": 3, "dog": 1}, {"cat": 2}, {"fox": 1, "dog": 3}])


def test_mappings_give_each_candidate_a_weight(votes):
    assert votes.to_lists() == [["cat", "dog"], ["cat"], ["dog", "fox"]]
    assert votes.weights.tolist() == [3, 1, 2, 3, 1]
    assert not votes.weights.flags.writeable
    assert as_candidates([{"cat", "dog"}, {"cat"}]).weights is None


def test_confidences_before_learning_are_shares_of_the_weights(votes):
    np.testing.assert_allclose(votes.initial_confidences(), [0.75, 0.25, 1, 0.75, 0.25])
    np.testing.assert_allclose(votes.expected_counts(), [1.75, 1, 0.25])
    np.testing.assert_allclose(votes.expected_counts([2, 0, 4]), [1.5, 3.5, 1])
    bare = votes.with_weights(None)
    np.testing.assert_allclose(bare.initial_confidences(), [0.5, 0.5, 1, 0.5, 0.5])
    np.testing.assert_allclose(bare.expected_counts(), [1.5, 1, 0.5])


def test_weights_stay_with_their_candidates(votes):
    assert votes[[2, 0]].weights.tolist() == [3, 1, 3, 1]
    assert votes[1:].weights.tolist() == [2, 3, 1]
    assert votes[votes.sizes == 1].weights.tolist() == [2]
    assert pickle.loads(pickle.dumps(votes)) == votes
    assert votes != votes.with_weights(None)
    assert votes != votes.with_weights([3, 1, 2, 3, 2])
    assert votes == votes.with_weights([3, 1, 2, 3, 1])
    wide = votes.with_classes(["ant", "cat", "dog", "fox"])
    assert wide.weights.tolist() == votes.weights.tolist()
    narrow, kept = wide.seen()
    assert narrow == votes
    assert kept.tolist() == [1, 2, 3]
    assert "{'cat': 3, 'dog': 1}" in repr(votes)
    assert "with weights" in repr(votes)
    unsorted = CandidateSets([0, 2], [1, 0], ["cat", "dog"], weights=[1, 3])
    assert unsorted == votes[:1].with_classes(["cat", "dog", "fox"]).seen()[0]


def test_concatenation(votes):
    other = as_candidates([{"ant", "fox"}, {"ant"}])
    both = CandidateSets.concatenate([votes, other])
    assert both.classes.tolist() == ["ant", "cat", "dog", "fox"]
    assert list(both) == [*votes, *other]
    assert both.weights.tolist() == [3, 1, 2, 3, 1, 1, 1, 1]
    assert CandidateSets.concatenate([other, other]).weights is None
    assert CandidateSets.concatenate([votes[:1], votes[1:]]) == votes
    with pytest.raises(ValueError, match="parts: there is nothing"):
        CandidateSets.concatenate([])
    with pytest.raises(ValueError, match="parts: the classes can't be sorted together"):
        CandidateSets.concatenate([votes, as_candidates([1, 2])])


def test_soft_labels_are_candidates_with_weights():
    P = np.array([[0.7, 0.3, 0], [0, 1, 0], [0.2, 0.3, 0.5]])
    S = as_candidates(P, classes=["c", "b", "a"])
    assert S.to_lists() == [["b", "c"], ["b"], ["a", "b", "c"]]
    np.testing.assert_allclose(S.weights, [0.3, 0.7, 1, 0.5, 0.3, 0.2])
    assert as_candidates(pd.DataFrame(P, columns=["c", "b", "a"])) == S
    assert as_candidates(sparse.csr_array(P), classes=["c", "b", "a"]) == S


def test_the_weights_argument_takes_arrays_and_matrices(votes):
    bare = votes.with_weights(None)
    matrix = np.array([[3, 1, 9], [2, 9, 9], [9, 3, 1]])
    assert as_candidates(bare, weights=[3, 1, 2, 3, 1]) == votes
    assert as_candidates(list(bare), weights=matrix) == votes
    assert as_candidates(list(bare), weights=sparse.coo_array(matrix)) == votes
    assert as_candidates(bare, weights=pd.DataFrame(matrix, columns=bare.classes)) == votes


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], "weights: 2 weights for 5 candidates"),
        ([1, 1, 1, 0, 1], "weights: row 2 has the weight 0; .*positive"),
        ([1, 1, np.nan, 1, 1], "weights: row 1 has the weight nan"),
        ([1, np.inf, 1, 1, 1], "weights: row 0 has the weight inf"),
        ([1, 1, 1, 1, -2], "weights: row 2 has the weight -2"),
        (np.ones((3, 2)), r"weights: a matrix of shape \(3, 2\)"),
    ],
)
def test_bad_weights(votes, weights, message):
    with pytest.raises(ValueError, match=message):
        votes.with_weights(weights)


def test_bad_mappings():
    with pytest.raises(ValueError, match="row 1 has the weight -1"):
        as_candidates([{"a": 1}, {"b": -1}])
    with pytest.raises(ValueError, match="positive number"):
        as_candidates([{"a": 1}, {"b": "much"}])


def test_annotators_and_scores_keep_their_evidence():
    S = CandidateSets.from_annotators([[0, 1, 0], [1, 1, -1], [2, 0, 1]])
    assert S.weights.tolist() == [2, 1, 2, 1, 1, 1]
    T = CandidateSets.from_scores(
        [[0.6, 0.3, 0.1], [0, 0.2, 0.8]], top_k=2, classes=["c", "b", "a"]
    )
    assert T.to_lists() == [["b", "c"], ["a", "b"]]
    np.testing.assert_allclose(T.weights, [0.3, 0.6, 0.8, 0.2])
    assert (CandidateSets.from_scores([[1, 0, 0]], top_k=2).weights > 0).all()
    assert CandidateSets.from_scores([[1, -1, 0]], top_k=2).weights is None
    assert CandidateSets.from_scores([[0, 0, 0]], top_k=2).weights is None
    assert CandidateSets.from_scores([[np.inf, 1, 0]], top_k=2).weights is None


# -- what could be read in two ways ----------------------------------------------------------


@pytest.mark.parametrize("form", [list, tuple, np.array])
@pytest.mark.parametrize("rows", [[[0.5, 0.5, 0], [0.2, 0.2, 0.6]], [[0.9, 0.8], [1, 0.1]]])
def test_rows_of_probabilities_are_not_labels(form, rows):
    with pytest.raises(ValueError, match=r"S: row 0 has 0\.\d: .*from_scores .* in sets"):
        as_candidates([form(row) for row in rows])
    assert as_candidates([set(row) for row in rows]).shape[0] == 2
    assert as_candidates([[0.5, 1.5], [1.5, 2.5]]).classes.tolist() == [0.5, 1.5, 2.5]


@pytest.mark.parametrize(
    ("labels", "row", "sep", "n"),
    [
        (["a", "b", "a", "a|b", "c"], 3, "|", 3),
        (["a", "x | y", "b", "c"], 1, "|", 5),
        (["a", "b", "a;b"], 2, ";", 2),
        (["a, b", "b, c", "a, c", "a, b, c", "c, a", "b, a"], 0, ",", 3),
        (np.array(["a", "b", "a/b"]), 2, "/", 2),
    ],
)
def test_joined_labels_are_noticed_in_any_row(labels, row, sep, n):
    message = rf"S: row {row} has .* as_candidates\(S, sep={sep!r}\): there are {n} labels"
    with pytest.warns(UserWarning, match=message.replace("|", r"\|")) as warned:
        S = as_candidates(labels)
    assert warned[0].filename == __file__
    assert (S.sizes == 1).all()
    assert as_candidates([{label} for label in labels]) == S  # without a warning
    assert as_candidates(labels, classes=S.classes) == S


def test_names_with_other_signs_are_no_joined_labels():
    for labels in (["Smith, Jo", "Smith, Al"], ["n/a", "b"], ["|", "a"], ["AC/DC", "Abba", "DC"]):
        assert as_candidates(labels).shape[0] == len(labels)


def test_labels_of_dates_are_found_again():
    days = np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]")
    assert as_candidates(days).contains(days).all()


def test_errors_carry_the_name_of_the_argument():
    with pytest.raises(ArgumentError, match=r"^sep: an empty separator") as caught:
        as_candidates(["a|b"], sep="")
    assert caught.value.argument == "sep"
    with pytest.raises(ArgumentError, match=r"^S: row 1 has no candidate") as caught:
        as_candidates([{"a"}, set()])
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.argument == "S"
    assert str(again) == str(caught.value)


def crowd_of(n=200, seed=0):
    """Votes of three annotators who are often right and three who always say the same."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n)
    cells = np.where(rng.random((n, 6)) < 0.75, truth[:, None], rng.integers(3, size=(n, 6)))
    cells[:, 3:] = [0, 1, 1]
    items, annotators = np.repeat(np.arange(n), 6), np.tile(np.arange(6), n)
    return items, annotators, cells.ravel(), truth


def test_votes_of_known_annotators_weigh_by_their_confusions():
    items, annotators, labels, truth = crowd_of()
    counted = CandidateSets.from_votes(items, labels)
    weighed = CandidateSets.from_votes(items, labels, annotators=annotators)
    assert weighed.to_lists() == counted.to_lists()
    right = [
        np.mean(sets.indices[sets.row_argmax(sets.weights)] == truth) for sets in (counted, weighed)
    ]
    assert right[1] > right[0] + 0.1
    assert weighed.weights.max() == 1


def test_votes_of_known_annotators_come_in_the_order_asked_for():
    items, annotators, labels, _ = crowd_of(40)
    order = np.random.default_rng(1).permutation(40)
    plain = CandidateSets.from_votes(items, labels, annotators=annotators)
    mixed = CandidateSets.from_votes(
        items, labels, annotators=annotators, order=order, classes=range(5)
    )
    assert mixed.to_lists() == plain[order].to_lists()
    np.testing.assert_allclose(mixed.weights, plain[order].weights)
    assert mixed.classes.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"annotators": [1, 2]}, "annotators: 2 annotators for 3 votes"),
        ({"annotators": [1, 2, 3], "order": [1]}, "items: vote 2: 2 is not in `order`"),
        ({"annotators": [1, 2, 3], "order": [1, 2, 7]}, "items: 7 of `order` has no vote"),
    ],
)
def test_votes_of_known_annotators_that_can_not_be_used(options, message):
    with pytest.raises(ValueError, match=message):
        CandidateSets.from_votes([1, 1, 2], ["x", "y", "y"], **options)
