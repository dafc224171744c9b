"""Frames in, frames out: the labels are those that the methods decide on prepared features."""

from typing import get_overloads, get_type_hints

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.preprocessing import StandardScaler

from skpll import PLKNN, SPPLL, CalibratedCandidatesCV, as_candidates, disambiguate
from skpll.datasets import load_dataset, make_partial_labels
from skpll.tables.disambiguate import Disambiguation
from skpll.tables.learning import learn_from_table
from skpll.tables.reading import FrameTable

X, _, Y = load_dataset("iris", return_X_S_y=True)
S = make_partial_labels(Y, p=0.8, r=1, random_state=0)
ADDED = ["label", "confidence", "runner_up", "unanimous"]


def columns(candidates):
    return {**{f"x{j}": X[:, j] for j in range(4)}, "names": candidates}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("method", ["sppll", PLKNN(n_neighbors=7)])
def test_the_label_is_what_the_method_decides(make, method):
    frame = make(columns(S.to_strings()))
    found = disambiguate(frame, candidates="names", method=method)
    estimator = SPPLL() if method == "sppll" else method
    estimator = CalibratedCandidatesCV(estimator).fit(StandardScaler().fit_transform(X), S)
    shares = estimator.label_distributions_.toarray()
    labels = found["label"].to_list()
    assert type(found) is type(frame)
    assert list(found.columns) == [*frame.columns, *ADDED]
    assert labels == estimator.estimator_.transduction_.tolist()
    codes = np.searchsorted(S.classes, labels)
    assert np.allclose(found["confidence"], shares[np.arange(150), codes])
    assert found["unanimous"].to_list() == (S.sizes == 1).tolist()
    for given, label, second in zip(S, labels, found["runner_up"].to_list(), strict=True):
        assert ({label} if pd.isna(second) else {label, second}) == given
    assert list(frame.columns) == list(columns(0))  # the user's frame is left alone


@pytest.mark.parametrize(
    "candidates",
    [S.to_lists(), [set(s) for s in S], S.to_strings("/")],
    ids=["lists", "sets", "strings"],
)
def test_candidates_in_any_format(candidates):
    expected = disambiguate(pd.DataFrame(columns(S.to_strings())), candidates="names")["label"]
    found = disambiguate(pd.DataFrame(columns(candidates)), candidates="names", sep="/")["label"]
    assert found.tolist() == expected.tolist()
    bare = pd.DataFrame(X)
    assert disambiguate(bare, candidates=S)["label"].tolist() == expected.tolist()


def test_the_index_and_the_order_of_rows_are_kept():
    index = np.random.default_rng(0).permutation(150) / 7
    frame = pd.DataFrame(columns(S.to_strings()), index=index)
    found = disambiguate(frame, candidates="names")
    assert found.index.equals(frame.index)
    pd.testing.assert_frame_equal(found[list(frame.columns)], frame)


def test_names_that_are_taken_get_a_prefix():
    frame = pd.DataFrame({**columns(S.to_strings()), "label": ["a", "b", "c"] * 50})
    with pytest.warns(UserWarning, match="the new columns are called skpll_label and so on"):
        found = disambiguate(frame, candidates="names", exclude=["label"])
    assert list(found.columns)[-4:] == [f"skpll_{name}" for name in ADDED]
    assert found["label"].equals(frame["label"])
    with pytest.warns(UserWarning, match="the new columns are called skpll_skpll_label"):
        again = disambiguate(found, candidates="names", features=["x0", "x1", "x2", "x3"])
    assert list(again.columns)[-1] == "skpll_skpll_unanimous"
    assert again["skpll_skpll_label"].tolist() == found["skpll_label"].tolist()


def test_methods_that_take_no_sparse_matrix_get_a_dense_one():
    frame = pd.DataFrame({**columns(S.to_strings()), "city": [f"c{i % 30}" for i in range(150)]})
    assert disambiguate(frame, "names", method="lsbcmm", seed=1)["label"].isin(S.classes).all()


def test_the_summary_counts():
    sets = as_candidates([{"a", "b"}, {"a"}, {"b"}, {"a", "b"}])
    table = FrameTable(pd.DataFrame({"x": [0.0, 0.1, 5.0, 5.1]}))
    learned = learn_from_table(table, sets, method="plknn", parameters={"n_neighbors": 1})
    summary = learned.resolution.summary()
    assert summary == {
        "rows": 4,
        "classes": 2,
        "unanimous": 2,
        "decided": 0,
        "candidates_before": 1.5,
        "candidates_after": pytest.approx(1.0),
        "mean_confidence": pytest.approx(1.0),
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"candidates": "nmaes"}, "no column 'nmaes'; did you mean 'names'"),
        ({"method": "spll"}, "no method 'spll'; did you mean 'sppll'"),
        ({"method": "best"}, "there are clpl, "),
        ({"method": "sppll", "parameters": {"c": 1}}, "sppll has no 'c'; it has C, "),
        ({"method": "sppll", "parameters": {"C": -1}}, "'C' parameter"),
        ({"candidates": None}, "annotators, counts, probabilities: give exactly one"),
        ({"method": "auto", "parameters": {"C": 1}}, "the method auto chooses them"),
        ({"features": ["x0", "y"]}, "no column 'y'"),
        ({"features": ["names"]}, "can't be a feature"),
        ({"candidates": S[:10]}, "10 sets for the 150 rows"),
    ],
)
def test_wrong_input_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        disambiguate(pd.DataFrame(columns(S.to_strings())), **{"candidates": "names", **options})


def test_the_result_has_the_type_of_the_frame():
    plain, detailed = get_overloads(disambiguate)
    hints = get_type_hints(plain)
    assert hints["return"] is hints["frame"]
    hints = get_type_hints(detailed)
    assert hints["return"] == Disambiguation[hints["frame"]]


def test_what_is_no_frame_is_refused():
    with pytest.raises(ValueError, match="expected a pandas or polars frame, got a list"):
        disambiguate([[1, 2]], candidates="names")


@pytest.mark.filterwarnings("ignore:features say nothing")  # of votes that follow the alphabet
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_votes_decisions_reasons_and_a_page_in_one_call(make, tmp_path):
    keys = [f"k{row}" for row in range(150)]
    frame = make({**columns(S.to_strings()), "key": keys})
    votes = [(keys[row], f"p{place}", label) for row, given in enumerate(S.to_lists())
             for place, label in enumerate(given)]  # fmt: skip
    long = make(dict(zip(("item", "annotator", "label"), zip(*votes, strict=True), strict=True)))
    result = disambiguate(
        frame,
        votes=long,
        id="key",
        exclude=["names"],
        decisions=make({"id": ["k3"], "label": ["virginica"]}),
        explain=True,
        report=tmp_path / "page.html",
        details=True,
    )
    assert isinstance(result, Disambiguation)
    assert type(result.frame) is type(frame)
    assert list(result.frame.columns)[-8:] == [
        *(*ADDED, "decided"),
        *("like_label", "like_runner_up", "columns_that_matter"),
    ]
    assert [annotator.name for annotator in result.annotators] == ["p0", "p1"]
    assert sum(annotator.votes for annotator in result.annotators) == len(votes)
    assert result.frame["label"].to_list()[3] == "virginica"
    assert result.mean_confidence == pytest.approx(result.frame["confidence"].mean())
    assert 0 < result.new_rows().accuracy <= 1
    assert "</html>" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_columns_that_matter_may_have_gaps(missing):
    kinds = np.array(["a", "b", missing] * 50, dtype=object)
    frame = pd.DataFrame({**columns(S.to_strings()), "kind": kinds})
    found = disambiguate(frame, "names", explain=True)
    assert found["columns_that_matter"].notna().any()


def test_messages_speak_of_arguments():
    frame = pd.DataFrame(columns(["", *S.to_strings()[1:]]))
    with pytest.raises(ValueError, match=r"allow any label there \(empty='any'\)"):
        disambiguate(frame, "names")
