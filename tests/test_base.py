"""The base class alone: classes that are no candidate, examples without weight, values by row."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skpll import as_candidates
from skpll.base import ScoringClassifier, WeightedPartialLabelClassifier, for_all_examples


class Linear(WeightedPartialLabelClassifier, ScoringClassifier):
    """Scores the classes by the features themselves; keeps what it was given to learn from."""

    def _fit(self, examples):
        self.examples_ = examples
        return np.arange(1.0, len(examples.sets.indices) + 1)

    def _class_scores(self, X):
        return X[:, : len(self._seen)]


@pytest.fixture
def data():
    X = np.array([[1.0, 2.0, 4.0], [0.0, 3.0, 1.0], [5.0, 0.0, 2.0], [1.0, 1.0, 0.5]])
    S = as_candidates(
        [{"a", "b"}, {"b", "c", "e"}, {"a", "c"}, {"a", "b", "c"}], classes=list("abcde")
    )
    return X, S


def test_examples_without_weight_are_decided_by_the_model(data):
    X, S = data
    model = Linear().fit(X, S, sample_weight=[2, 0, 0.5, 0])
    assert_array_equal(model.examples_.X, X[[0, 2]])
    assert_array_equal(model.examples_.weights, [2, 0.5])
    assert model.examples_.sets.to_lists() == [["a", "b"], ["a", "c"]]
    found = model.label_distributions_.toarray()
    assert_allclose(found[0], [1 / 3, 2 / 3, 0, 0, 0])
    assert_allclose(found[2], [3 / 7, 0, 4 / 7, 0, 0])
    for row in (1, 3):  # class e is a candidate of an example without weight only
        expected = model.predict_proba(X)[row] * S.to_matrix().toarray()[row]
        assert_allclose(found[row], expected / expected.sum())
    assert model.transduction_.tolist() == ["b", "b", "c", "a"]


def test_weights_change_nothing_if_all_examples_have_one(data):
    X, S = data
    weighted = Linear().fit(X, S, sample_weight=[1, 2, 3, 4])
    assert weighted.examples_.X is not None
    assert_array_equal(
        weighted.label_distributions_.toarray(), Linear().fit(X, S).label_distributions_.toarray()
    )
    assert_array_equal(Linear().fit(X, S).examples_.weights, np.ones(4))


def test_classes_that_are_no_candidate_score_below_all_others(data):
    X, S = data
    model = Linear().fit(X[:3], S[[0, 0, 2]])
    scores = model.decision_function(X)
    assert_array_equal(scores[:, :3], X)
    spread = X.max(axis=1) - X.min(axis=1)
    assert_allclose(scores[:, 3:], np.repeat((X.min(axis=1) - spread - 1)[:, None], 2, axis=1))
    probabilities = model.predict_proba(X)
    assert (probabilities[:, 3:] == 0).all()
    assert_allclose(probabilities.sum(axis=1), 1)
    assert model.predict(X).tolist() == ["c", "b", "a", "a"]


def test_two_classes_have_one_decision(data):
    X, _ = data
    model = Linear().fit(X[:, :2], [{"a", "b"}, {"b"}, {"a"}, {"a", "b"}])
    assert_array_equal(model.decision_function(X[:, :2]), X[:, 1] - X[:, 0])


def test_no_weight_and_one_class_are_errors(data):
    X, S = data
    with pytest.raises(ValueError, match="zero"):
        Linear().fit(X, S, sample_weight=np.zeros(4))
    alone = as_candidates([{"a"}, {"b", "c"}, {"a"}, {"b"}])
    with pytest.raises(ValueError, match="y: only one class, 'a', is among the candidates"):
        Linear().fit(X, alone, sample_weight=[1, 0, 1, 0])


def test_values_for_all_examples():
    taking_part = np.array([True, False, True])
    assert for_all_examples(np.array([5, 7]), taking_part, -1).tolist() == [5, -1, 7]
    assert for_all_examples(np.array([0.5, 0.25]), taking_part, 0.0).tolist() == [0.5, 0, 0.25]


# -- values by row -------------------------------------------------------------------------

VALUES = np.array([1.0, 3.0, 2.0, 2.0, 0.0, 0.0, 4.0])


@pytest.fixture
def rows():
    return as_candidates([{0, 1}, {0, 1, 2}, {1}, {2}])


def test_sums_and_peaks_of_rows(rows):
    assert rows.row_sums(VALUES).tolist() == [4, 4, 0, 4]
    assert rows.row_max(-VALUES).tolist() == [-1, 0, 0, -4]


def test_the_first_of_equals_is_the_largest_of_a_row(rows):
    assert rows.row_argmax(VALUES).tolist() == [1, 2, 5, 6]
    assert rows.row_argmax(np.array([1.0, 3, 1, 1, 3, 3, 1])).tolist() == [1, 4, 5, 6]


def test_rows_sum_to_one(rows):
    expected = [0.25, 0.75, 0.5, 0.5, 0, 1, 1]
    assert_allclose(rows.row_normalized(VALUES), expected)
    assert_allclose(rows.row_normalized(VALUES * 1e-320), expected, atol=1e-3)
    assert_allclose(rows.row_normalized(VALUES * 4e307), expected)
    assert_allclose(rows.row_normalized(0 * VALUES), [1 / 2, 1 / 2, 1 / 3, 1 / 3, 1 / 3, 1, 1])


def test_softmax_of_rows(rows):
    logs = np.log([1.0, 3.0, 2.0, 2.0, 4.0, 5.0, 6.0])
    expected = [0.25, 0.75, 0.25, 0.25, 0.5, 1, 1]
    assert_allclose(rows.row_softmax(logs), expected)
    assert_allclose(rows.row_softmax(logs + 1e5), expected, rtol=1e-9)
    none = np.full(7, -np.inf)
    assert_allclose(rows.row_softmax(none), [1 / 2, 1 / 2, 1 / 3, 1 / 3, 1 / 3, 1, 1])


def test_entropies_of_rows(rows):
    found = rows.row_entropies(rows.row_normalized(0 * VALUES))
    assert_allclose(found, [np.log(2), np.log(3), 0, 0], atol=1e-15)


def test_scores_at_the_candidates(rows):
    scores = np.arange(12.0).reshape(4, 3)
    expected = [0, 1, 3, 4, 5, 7, 11]
    assert rows.entries(scores).tolist() == expected
    assert rows.entries(sparse.csr_array(scores)).tolist() == expected
