"""What every method promises, whichever it is: the suite picks up new methods by itself."""

import contextlib
import copy
import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr, get_tags

import skpll
from skpll import PLKNN, PLLOO, CandidateSets, CrossFitClassifier, all_methods, as_candidates
from skpll.base import PartialLabelClassifier, WeightedPartialLabelClassifier

METHODS = all_methods()

pytestmark = pytest.mark.usefixtures("small_forests")


@pytest.fixture(params=METHODS.values(), ids=list(METHODS))
def method(request):
    return request.param


@pytest.fixture(scope="module")
def toy():
    """Four Gaussian classes; every second example has one or two false candidates."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % 4
    X = rng.normal(size=(120, 3)) + 3 * np.eye(4, 3)[y]
    names = np.array(["ant", "bee", "cat", "dog"])
    sets = [
        {names[k], *rng.choice(names, rng.integers(1, 3))} if i % 2 else {names[k]}
        for i, k in enumerate(y)
    ]
    return X, as_candidates(sets), names[y]


@pytest.fixture(scope="module")
def fitted_before():
    """The fitted methods, so that each is fitted once for all tests."""
    return {}


@pytest.fixture
def fitted(method, toy, fitted_before):
    X, S, _ = toy
    if method not in fitted_before:
        fitted_before[method] = method().fit(X, S)
    return copy.deepcopy(fitted_before[method])


def test_the_registry_lists_the_public_methods():
    assert METHODS
    assert all(getattr(skpll, cls.__name__) is cls for cls in METHODS.values())
    assert all(name == cls.__name__.lower() for name, cls in METHODS.items())
    assert "partiallabelclassifier" not in METHODS


def test_it_learns(fitted, toy):
    X, S, y = toy
    assert fitted.score(X, y) > 0.8
    assert (fitted.transduction_ == y).mean() > 0.8


def test_fitted_attributes(fitted, toy):
    X, S, _ = toy
    np.testing.assert_array_equal(fitted.classes_, S.classes)
    assert fitted.n_features_in_ == 3
    assert fitted.transduction_.dtype == S.classes.dtype
    assert S.contains(fitted.transduction_).all()
    distributions = fitted.label_distributions_
    assert distributions.format == "csr"
    np.testing.assert_array_equal(distributions.indptr, S.indptr)
    np.testing.assert_array_equal(distributions.indices, S.indices)
    assert (distributions.data >= 0).all()
    np.testing.assert_allclose(distributions.sum(axis=1), 1)


def test_every_format_gives_the_same_model(fitted, method, toy):
    X, S, _ = toy
    frame = pd.DataFrame(np.asarray(S), columns=S.classes)
    for y in (list(S), S.to_lists(), pd.Series(list(S)), frame):
        other = method().fit(X, y)
        np.testing.assert_array_equal(other.transduction_, fitted.transduction_)
        np.testing.assert_array_equal(other.predict(X), fitted.predict(X))


def test_same_data_same_result_to_the_bit(fitted, toy):
    X, S, _ = toy
    again = clone(fitted).fit(X, S)
    np.testing.assert_array_equal(again.label_distributions_.data, fitted.label_distributions_.data)
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    unpickled = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(unpickled.predict(X), fitted.predict(X))


def test_refitting_forgets(fitted, toy):
    X, S, _ = toy
    fitted.fit(X[:50], S[:50])
    assert len(fitted.transduction_) == 50
    assert fitted.label_distributions_.shape == (50, 4)


def test_score_is_accuracy_on_labels_and_covering_rate_on_sets(fitted, toy):
    X, S, y = toy
    predicted = fitted.predict(X)
    assert fitted.score(X, y) == accuracy_score(y, predicted)
    assert fitted.score(X, list(y)) == accuracy_score(y, predicted)
    assert fitted.score(X, S) == S.contains(predicted).mean()
    assert fitted.score(X, list(S)) == S.contains(predicted).mean()
    weights = np.arange(len(y), dtype=float)
    expected = np.average(predicted == y, weights=weights)
    assert fitted.score(X, y, sample_weight=weights) == pytest.approx(expected)
    assert fitted.score(X[:1], y[:1]) in (0, 1)
    assert fitted.score(X[:2], ["zebra", "zebra"]) == 0
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        fitted.score(X, y[:-1])


def test_classes_that_nobody_has_as_a_candidate_never_win(method, toy):
    X, S, _ = toy
    wide = S.with_classes([*S.classes, "yak", "aardvark"])
    model = method().fit(X, wide)
    assert len(model.classes_) == 6
    assert not set(model.predict(X)) & {"yak", "aardvark"}


def test_probabilities_and_decisions_agree_with_predict(fitted, toy):
    X, _, _ = toy
    P = fitted.predict_proba(X)
    assert P.shape == (len(X), 4)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    np.testing.assert_array_equal(fitted.classes_[P.argmax(axis=1)], fitted.predict(X))
    np.testing.assert_allclose(np.exp(fitted.predict_log_proba(X)), P)
    if hasattr(fitted, "decision_function"):
        scores = fitted.decision_function(X)
        assert scores.shape == (len(X), 4)
        np.testing.assert_array_equal(fitted.classes_[scores.argmax(axis=1)], fitted.predict(X))


def test_sample_weight_is_an_argument_only_where_the_method_knows_weights(method):
    weighted = issubclass(method, WeightedPartialLabelClassifier)
    assert ("sample_weight" in inspect.signature(method.fit).parameters) == weighted


def test_zero_weight_is_absence(method, toy):
    if not issubclass(method, WeightedPartialLabelClassifier):
        return
    X, S, _ = toy
    kept = np.arange(len(S)) % 3 > 0
    without = method().fit(X[kept], S[kept])
    zeroed = method().fit(X, S, sample_weight=kept.astype(float))
    agreement = (without.predict(X) == zeroed.predict(X)).mean()
    assert agreement > 0.95


def test_negative_weights_are_refused(method, toy):
    if not issubclass(method, WeightedPartialLabelClassifier):
        return
    X, S, _ = toy
    weights = np.ones(len(S))
    weights[4] = -0.5
    with pytest.raises(ValueError, match=r"[Nn]egative values"):
        method().fit(X, S, sample_weight=weights)


def test_sparse_input_where_declared(method, toy):
    X, S, _ = toy
    model = method()
    if not method.accepts_sparse:
        with pytest.raises(TypeError, match=r"[Ss]parse"):
            model.fit(sparse.csr_array(X), S)
        return
    model.fit(sparse.csr_array(X), S)
    if "kernel" in method().get_params():  # sparse features are taken as they are, without one
        assert model.score(sparse.csr_array(X), S) > 0.8
        return
    dense = method().fit(X, S)
    alike = (model.predict(sparse.csr_array(X)) == dense.predict(X)).mean()
    assert alike > (0.9 if method is CrossFitClassifier else 0.98)  # trees split ties otherwise


def test_feature_names(method, toy):
    X, S, _ = toy
    frame = pd.DataFrame(X, columns=["length", "width", "height"])
    model = method().fit(frame, S)
    assert model.feature_names_in_.tolist() == ["length", "width", "height"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["width", "length", "height"]])


def test_html_representation(fitted):
    assert type(fitted).__name__ in estimator_html_repr(fitted)


def test_bad_labels(method, toy):
    """Every method reads labels by the same door, so one bad case for each is enough."""
    with pytest.raises(ValueError, match="y: row 119 has no candidate"):
        method().fit(toy[0], [{"a", "b"}] * 119 + [set()])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed"),
        ([{"a", "b"}] * 119, "y: candidate labels of 119 examples for the 120 rows of X"),
        ([{"a", "b"}] * 119 + [set()], "y: row 119 has no candidate"),
        ([{"a", "b"}] * 119 + ["a"], "y: row 119 is the single label 'a'"),
        (np.full((120, 2), 0.25), r"y: row 0 has 0\.25 in column 0"),
        (["a"] * 120, "y: only one class, 'a', .* give examples of two classes at least"),
        (np.linspace(0, 1, 120), "continuous"),
    ],
)
def test_the_message_names_what_is_wrong_with_labels(toy, y, message):
    with pytest.raises(ValueError, match=message):
        PLKNN().fit(toy[0], y)


def test_bad_features(method, toy):
    X, S, _ = toy
    broken = X.copy()
    broken[3, 1] = np.nan
    if get_tags(method()).input_tags.allow_nan:
        assert method().fit(broken, S).score(broken, S) > 0.8
    else:
        with pytest.raises(ValueError, match="NaN"):
            method().fit(broken, S)
    with pytest.raises(ValueError, match="features"):
        method().fit(X, S).predict(X[:, :2])


# -- scikit-learn's tools ------------------------------------------------------------------


def test_candidate_sets_as_y_of_model_selection(method, toy):
    check_model_selection(method, *toy)


@pytest.mark.parametrize("weighted", [PLKNN, PLLOO])
def test_candidate_sets_as_y_of_model_selection_with_metadata_routing(weighted, toy):
    with config_context(enable_metadata_routing=True):
        check_model_selection(weighted, *toy)


def check_model_selection(method, X, S, y):
    pipeline = make_pipeline(StandardScaler(), method())
    A, B, S_A, S_B = train_test_split(X, S, random_state=0)
    assert pipeline.fit(A, S_A).score(B, S_B) > 0.8
    folds = KFold(3, shuffle=True, random_state=0)
    for train, test in folds.split(X, S):
        assert len(S[train]) + len(S[test]) == len(S)
    assert cross_val_score(pipeline, X, S, cv=folds).mean() > 0.8
    results = cross_validate(pipeline, X, S, cv=2, return_train_score=True)
    assert set(results) >= {"test_score", "train_score"}
    search = GridSearchCV(pipeline, {"standardscaler__with_mean": [True, False]}, cv=2)
    assert search.fit(X, S).best_score_ > 0.8
    assert cross_val_predict(pipeline, X, S, cv=2).shape == (len(S),)
    sizes, *_ = learning_curve(pipeline, X, S, cv=2, train_sizes=[0.5, 1.0])
    assert len(sizes) == 2


def test_scoring_with_the_truth_through_metadata_routing(method, toy):
    X, S, y = toy

    def accuracy(candidates, predicted, truth):
        assert len(candidates) == len(predicted) == len(truth)
        return accuracy_score(truth, predicted)

    with config_context(enable_metadata_routing=True):
        scorer = make_scorer(accuracy).set_score_request(truth=True)
        pipeline = make_pipeline(StandardScaler(), method())
        scores = cross_val_score(pipeline, X, S, cv=3, scoring=scorer, params={"truth": y})
    assert scores.mean() > 0.75


# -- the base class itself -----------------------------------------------------------------


class Prior(PartialLabelClassifier):
    """Predicts the label with the largest share of the candidates."""

    def _fit(self, examples):
        candidates = examples.sets
        shares = 1 / np.repeat(candidates.sizes, candidates.sizes)
        self.prior_ = np.bincount(candidates.indices, shares, minlength=candidates.shape[1])
        return self.prior_[candidates.indices]

    def _class_scores(self, X):
        return np.tile(self.prior_, (X.shape[0], 1))


def test_a_method_is_two_functions():
    X = np.zeros((4, 2))
    model = Prior().fit(X, [{"a", "b"}, {"b", "c"}, {"b"}, {"a", "c"}])
    assert model.predict(X).tolist() == ["b"] * 4
    assert model.transduction_.tolist() == ["b", "b", "b", "a"]
    np.testing.assert_allclose(model.label_distributions_.toarray()[1], [0, 2 / 3, 1 / 3])
    assert not Prior.accepts_sparse


class Silent(Prior):
    """Has no opinion about the training examples."""

    def _fit(self, examples):
        return 0 * super()._fit(examples)


def test_no_opinion_is_an_even_one():
    model = Silent().fit(np.zeros((2, 1)), [{"a", "b", "c"}, {"b"}])
    np.testing.assert_allclose(model.label_distributions_.data, [1 / 3, 1 / 3, 1 / 3, 1])
    assert model.transduction_.tolist() == ["a", "b"]


# -- what could go wrong without a word ----------------------------------------------------


def test_labels_of_another_kind_are_no_labels_to_score_with(fitted, toy):
    X, S, _ = toy
    with pytest.raises(ValueError, match="y: the labels are numbers, such as 0"):
        fitted.score(X, np.arange(120) % 4)
    with pytest.raises(ValueError, match="a matrix without names"):
        fitted.score(X, np.asarray(S))


def test_joined_labels_are_told(method, toy):
    X, S, _ = toy
    joined = ["|".join(row) if len(row) > 1 else row[0] + "|" + row[0] for row in S.to_lists()]
    with pytest.warns(UserWarning, match=r"as_candidates\(y, sep='\|'\): there are 4 labels"):
        method().fit(X, joined)


@pytest.mark.filterwarnings("ignore:.*never come apart")  # which some methods say as well
def test_nothing_to_learn_from_is_told(method):
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.warns(UserWarning, match="nothing to learn from"), contextlib.suppress(ValueError):
        method().fit(X, [{"a", "b", "c"}] * 20)


def test_one_class_left_is_an_error(method, toy):
    X, S, _ = toy
    with pytest.raises(ValueError, match="y: only one class, 'ant', is among the candidates"):
        method().fit(X[:5], as_candidates([["ant"]] * 5, classes=["ant", "bee"]))


def test_scores_are_finite(method, toy):
    X, S, _ = toy
    wide = method().fit(X, S.with_classes([*S.classes, "yak"]))
    probabilities = wide.predict_proba(X)
    assert probabilities.shape == (len(X), 5)
    assert (probabilities[:, 4] == 0).all()
    assert (wide.predict_log_proba(X)[:, 4] == -np.inf).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    if hasattr(wide, "decision_function"):
        scores = wide.decision_function(X)
        assert np.isfinite(scores).all()
        assert (scores[:, 4] < scores[:, :4].min(axis=1)).all()


def test_a_fit_that_fails_leaves_nothing_behind(method, toy, monkeypatch):
    X, S, _ = toy
    model, fitted = method(), method().fit(X, S)
    for argument in ([{"ant"}] * len(X), [{"ant", "bee"}] * 3):
        with pytest.raises(ValueError, match="y: "):
            model.fit(X, argument)
        assert not [name for name in vars(model) if name.endswith("_")]
    monkeypatch.setattr(CandidateSets, "initial_confidences", out_of_memory)
    monkeypatch.setattr(method, "_fit", out_of_memory)
    for estimator, state in ((model, set()), (fitted, set(vars(fitted)))):
        with pytest.raises(MemoryError):
            estimator.fit(X[:60, :2], S[:60])
        assert {name for name in vars(estimator) if name.endswith("_")} <= state
    assert fitted.n_features_in_ == 3
    assert fitted.predict(X).shape == (len(X),)


def out_of_memory(*_args, **_kwargs):
    raise MemoryError


@pytest.mark.parametrize("offset", [1e8, -1e8])
def test_features_far_from_zero(method, toy, fitted, offset):
    if method is CrossFitClassifier:
        return  # the forests of scikit-learn round features to single precision
    X, S, y = toy
    moved = method().fit(X + offset, S)
    assert moved.score(X + offset, y) > fitted.score(X, y) - 0.05
