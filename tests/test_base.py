"""The base class alone: classes that are no candidate, examples without weight, values by row."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import config_context
from sklearn.exceptions import NotFittedError

from skpll import as_candidates
from skpll._errors import DiagnosisWarning
from skpll.base import ScoringClassifier, WeightedPartialLabelClassifier, for_all_examples


class Linear(WeightedPartialLabelClassifier, ScoringClassifier):
    """Scores the classes by the features themselves; keeps what it was given to learn from."""

    def _fit(self, examples):
        self.examples_ = examples
        return np.arange(1.0, len(examples.sets.indices) + 1)

    def _class_scores(self, X):
        return X[:, : len(self._seen)]


class Diagnosed(Linear):
    """A method that says what it can't learn."""

    diagnosed = True


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
    three = Linear().fit(X, [{"a", "b"}, {"b", "c"}, {"a"}, {"c"}])
    assert_array_equal(three.decision_function(X), X)


def test_no_weight_and_one_class_are_errors(data):
    X, S = data
    with pytest.raises(ValueError, match="zero"):
        Linear().fit(X, S, sample_weight=np.zeros(4))
    alone = as_candidates([{"a"}, {"b", "c"}, {"a"}, {"b"}])
    with pytest.raises(ValueError, match="y: only one class, 'a', is among the candidates"):
        Linear().fit(X, alone, sample_weight=[1, 0, 1, 0])


def test_negative_weights_are_an_error(data):
    X, S = data
    with pytest.raises(ValueError, match="Negative values"):
        Linear().fit(X, S, sample_weight=[1, 1, 1, -1])


def test_what_a_method_needs_before_it_answers(data):
    X, S = data
    for ask in (Linear().predict, Linear().predict_proba, Linear().decision_function):
        with pytest.raises(NotFittedError, match="This Linear instance is not fitted yet"):
            ask(X)
    with pytest.raises(NotFittedError, match="This Linear instance is not fitted yet"):
        Linear().score(X, S)
    model = Linear().fit(X, S)
    with pytest.raises(ValueError, match="2 features, but Linear is expecting 3 features"):
        model.predict(X[:, :2])
    assert model.n_features_in_ == 3
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.score(X, S[:3])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.score(X, S, sample_weight=[1, 1])


def test_lengths_that_differ_are_named(data):
    X, S = data
    with pytest.raises(ValueError, match="y: candidate labels of 3 examples for the 4 rows of X"):
        Linear().fit(X, S[:3])


def test_fractions_are_no_labels_unless_they_are_said_to_be(data):
    X, _ = data
    with pytest.raises(ValueError, match="y: Unknown label type: the labels are continuous"):
        Linear().fit(X, [0.5, 1.0, 2.0, 1.0])
    assert Linear().fit(X, [0.0, 1.0, 2.0, 1.0]).classes_.tolist() == [0, 1, 2]
    assert Linear().fit(X, as_candidates([0.5, 1.0, 2.0, 1.0])).classes_.tolist() == [0.5, 1, 2]


def test_labels_to_score_with_are_of_the_same_kind(data):
    X, S = data
    model = Linear().fit(X, S)
    assert model.score(X, ["c", "c", "a", "a"]) == 0.75
    assert model.score(X, S) == 0.75
    assert model.score(X, S, sample_weight=[2, 2, 1, 1]) == pytest.approx(2 / 3)
    assert model.score(X, pd.DataFrame(np.asarray(S), columns=list("abcde"))) == 0.75
    numbers = "the labels are numbers, such as 3, but the model learned strings, such as 'a'"
    with pytest.raises(ValueError, match=f"y: {numbers}"):
        model.score(X, [3, 4, 3, 4])
    with pytest.raises(ValueError, match="y: the labels are objects, such as "):
        model.score(X, [{("a", 1)}, {("a", 2)}, {("a", 1)}, {("a", 2)}])
    with pytest.raises(ValueError, match="y: a matrix without names for a model with 5 classes"):
        model.score(X, np.asarray(S))
    numbered = Linear().fit(X, as_candidates(np.asarray(S)))
    assert numbered.score(X, np.asarray(S)) == 0.75


def test_sparse_features_only_where_declared(data):
    X, S = data
    with pytest.raises(TypeError, match="Sparse data was passed"):
        Linear().fit(sparse.csr_array(X), S)

    class Sparse(Linear):
        accepts_sparse = True

    model = Sparse().fit(sparse.csc_array(X), S)
    assert model.examples_.X.format == "csr"


def test_every_class_a_candidate_everywhere_is_told(data):
    X, _ = data
    for classes in ("ab", "abc"):
        with pytest.warns(UserWarning, match="every class is a candidate of every example"):
            Linear().fit(X, [set(classes)] * 4)
    evidence = [{"a": 1, "b": 2}, {"a": 2, "b": 1}] * 2
    assert Linear().fit(X, evidence).classes_.tolist() == ["a", "b"]  # without a warning
    with pytest.raises(ValueError, match="y: only one class, 'a'"):
        Linear().fit(X, [{"a"}] * 4)


def test_only_methods_that_declare_it_diagnose(data):
    X = np.tile(data[0], (10, 1))
    together = [{"a", "b"}, {"c"}] * 20
    assert not hasattr(Linear().fit(X, together), "inseparable_")
    with pytest.warns(DiagnosisWarning, match="^y: .*never come apart"):
        model = Diagnosed().fit(X, together)
    assert [sorted(labels) for labels in model.inseparable_] == [["a", "b"]]
    assert_allclose(model.label_distributions_.toarray()[0], [0.5, 0.5, 0])
    plain, shared = Linear().fit(X, together).predict_proba(X), model.predict_proba(X)
    assert_allclose(shared[:, :2], np.repeat(plain[:, :2].sum(axis=1)[:, None] / 2, 2, axis=1))
    assert_allclose(shared[:, 2], plain[:, 2])
    apart = [{"a", "b"}, {"b", "c"}, {"a", "c"}, {"c"}] * 10
    assert Diagnosed().fit(X, apart).inseparable_ == []  # without a warning


def test_attributes_by_example_are_brought_to_all_examples(data):
    class Counting(Linear):
        def _fit(self, examples):
            self.values_ = np.arange(float(len(examples.sets)))
            return super()._fit(examples)

        def _restore(self, taking_part):
            self.values_ = for_all_examples(self.values_, taking_part, np.nan)

    X, S = data
    model = Counting().fit(X, S, sample_weight=[1, 0, 1, 1])
    assert_array_equal(model.values_, [0, np.nan, 1, 2])


def test_methods_outside_of_the_package_are_documented_and_routed(data):
    class Routed(Linear):
        """A method.

        <<Attributes: classes_>>
        """

        def fit(self, X, y, sample_weight=None):
            """Learn.

            <<Parameters: X>>
            """
            return super().fit(X, y, sample_weight)

    for text in (Routed.__doc__, Routed.fit.__doc__, Linear.predict.__doc__):
        assert "<<" not in text
    assert "Attributes\n" in Routed.__doc__
    assert "X : " in Routed.fit.__doc__
    with config_context(enable_metadata_routing=True):
        model = Routed().set_fit_request(sample_weight=True)
        assert model.get_metadata_routing().fit.requests == {"sample_weight": True}


def test_a_failing_refit_leaves_the_model_as_it_was(data):
    class Failing(Linear):
        def _fit(self, examples):
            super()._fit(examples)
            if examples.X[0, 0] < 0:
                raise MemoryError
            return np.ones(len(examples.sets.indices))

    X, S = data
    model = Failing()
    with pytest.raises(MemoryError):
        model.fit(-X, S)
    assert vars(model) == {}
    before = dict(vars(model.fit(X, S)))
    with pytest.raises(MemoryError):
        model.fit(-X[:, :2], S)
    assert vars(model) == before
    assert model.predict(X).shape == (4,)


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
