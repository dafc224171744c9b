"""A pace around any method."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpll import CLPL, IPAL, PLLOO, CalibratedCandidatesCV, SelfPaced, as_candidates
from skpll._iteration import InterruptedFitWarning
from skpll.datasets import make_partial_classification
from skpll.pacing import Pace


@pytest.fixture(scope="module")
def data():
    return make_partial_classification(150, 6, 4, p=0.8, r=2, class_sep=1.2, random_state=0)


@pytest.mark.parametrize("method", [CLPL(), PLLOO(kernel="rbf", gamma=0.5, alpha=0.1)])
@pytest.mark.parametrize("cv", [3, None])
def test_easy_examples_come_first(data, method, cv):
    X, S, y = data
    model = SelfPaced(method, pace=Pace("loss", "mixture", cv=cv, start=0.3)).fit(X, S)
    assert model.n_iter_ == 4
    admitted = [record["admitted"] for record in model.history_]
    assert admitted[0] < admitted[-1]
    assert model.score(X, y) > 0.8
    assert S.contains(model.transduction_).all()
    first, later = model.labeled_iter_ == 0, model.labeled_iter_ > 0
    right = model.transduction_ == y
    assert right[first].mean() > right[later].mean()


def test_one_stage_written_out(data):
    """At pace 1 the linear weight is the confidence in the label decided for."""
    X, S, _ = data
    plain = CLPL().fit(X, S)
    trust = plain.label_distributions_.toarray().max(axis=1)
    paced = SelfPaced(CLPL(), pace=Pace("loss"), n_stages=1).fit(X, S)
    np.testing.assert_allclose(paced.weights_, trust)
    again = CLPL().fit(X, S, sample_weight=trust)
    np.testing.assert_allclose(paced.estimator_.coef_, again.coef_)
    np.testing.assert_array_equal(paced.predict(X), again.predict(X))
    np.testing.assert_allclose(
        paced.label_distributions_.toarray(), again.label_distributions_.toarray()
    )


def test_hard_shares(data):
    X, S, _ = data
    pace = Pace("gap", "hard", "share", start=0.5, end=0.8, cv=3)
    model = SelfPaced(CLPL(), pace=pace).fit(X, S)
    assert set(model.weights_) == {0.0, 1.0}
    assert model.weights_.mean() == pytest.approx(0.8, abs=0.1)
    assert [r["pace"] for r in model.history_] == [s.pace for s in pace.stages([1.0] * 4)]


def test_known_labels_need_no_pace(data):
    X, _, y = data
    model = SelfPaced(CLPL()).fit(X, y)
    assert (model.weights_ == 1).all()
    np.testing.assert_allclose(model.estimator_.coef_, CLPL().fit(X, y).coef_)


def test_importance_and_examples_without_any(data):
    X, S, _ = data
    importance = np.where(np.arange(len(S)) < 10, 0.0, 2.0)
    model = SelfPaced(CLPL()).fit(X, S, sample_weight=importance)
    assert (model.weights_[:10] == 0).all()
    assert (model.labeled_iter_[:10] == -1).all()
    without = SelfPaced(CLPL()).fit(X[10:], S[10:], sample_weight=importance[10:])
    np.testing.assert_array_equal(model.estimator_.coef_, without.estimator_.coef_)


def test_a_method_without_weights_is_refused(data):
    X, S, _ = data
    with pytest.raises(ValueError, match=r"estimator: IPAL.fit takes no sample_weight"):
        SelfPaced(IPAL()).fit(X, S)
    with pytest.raises(ValueError, match=r"start, end: a pace can't grow from 0.9 to 0.5"):
        SelfPaced(CLPL(), pace=Pace(start=0.9, end=0.5)).fit(X, S)


def test_models_that_have_not_seen_the_example_are_asked_by_default(data):
    X, S, _ = data
    default = SelfPaced(CLPL()).fit(X, S)
    named = SelfPaced(CLPL(), pace=Pace("leave_one_out", "mixture")).fit(X, S)
    with pytest.warns(FutureWarning, match="pace_cv, weights: now parameters of the pace"):
        old = SelfPaced(CLPL(), pace_cv=3, weights="mixture")
    for model in (named, old.fit(X, S)):
        np.testing.assert_array_equal(model.weights_, default.weights_)


def test_few_examples():
    X = [[0.0], [0.1], [2.9], [3.0]]
    S = as_candidates([{"a"}, {"a", "b"}, {"a", "b"}, {"b"}])
    for cv in (2, 3):  # in two parts one class may be missing, three are too many
        model = SelfPaced(CLPL(), pace=Pace("loss", "mixture", cv=cv)).fit(X, S)
        assert model.predict(X)[[0, 3]].tolist() == ["a", "b"]
        assert S.contains(model.transduction_).all()


def test_an_interrupt_leaves_a_usable_model(data, monkeypatch):
    X, S, y = data
    original, calls = CLPL.fit, []

    def fit(self, X, y, sample_weight=None):
        calls.append(1)
        if len(calls) == 7:
            raise KeyboardInterrupt
        return original(self, X, y, sample_weight)

    monkeypatch.setattr(CLPL, "fit", fit)
    with pytest.warns(InterruptedFitWarning, match="Interrupted after 1 of 4 stages"):
        model = SelfPaced(CLPL()).fit(X, S)
    assert model.score(X, y) > 0.7


@pytest.mark.parametrize("wrapper", [SelfPaced, CalibratedCandidatesCV])
@pytest.mark.parametrize("scaled", [False, True])
def test_a_classifier_of_labels_is_refused_with_a_remedy(wrapper, scaled):
    X, S, _ = make_partial_classification(40, random_state=0)
    inner = LogisticRegression()
    model = wrapper(make_pipeline(StandardScaler(), inner) if scaled else inner)
    with pytest.raises(ValueError, match=r"candidate sets; CrossFitClassifier\(LogisticRegression"):
        model.fit(X, S)
