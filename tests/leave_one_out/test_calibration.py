"""Calibration without the truth, and with some of it."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpll import PLKNN, PLLOO, CalibratedCandidatesCV, as_candidates
from skpll.datasets import make_partial_labels
from skpll.leave_one_out.calibration import with_truth


@pytest.fixture(scope="module")
def overlapping():
    """Four classes that overlap, in two halves."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 800)
    X = rng.normal(size=(800, 3)) + 1.6 * np.eye(4, 3)[y]
    S = make_partial_labels(y, p=0.7, r=1, random_state=0)
    return X[:400], S[:400], y[:400], X[400:], y[400:]


@pytest.mark.parametrize("method", [PLKNN(), PLLOO(kernel="rbf", gamma=1.0, alpha=0.1)])
def test_mean_confidence_meets_the_accuracy(overlapping, method):
    X, S, y, X_new, y_new = overlapping
    plain = make_pipeline(StandardScaler(), method).fit(X, S)
    model = CalibratedCandidatesCV(make_pipeline(StandardScaler(), method)).fit(X, S)
    accuracy = model.score(X_new, y_new)
    assert accuracy == plain.score(X_new, y_new)
    gap = abs(model.predict_proba(X_new).max(axis=1).mean() - accuracy)
    before = abs(plain.predict_proba(X_new).max(axis=1).mean() - accuracy)
    assert gap < max(0.08, 0.6 * before)
    confidence = model.label_distributions_.max(axis=1).toarray().ravel()
    ambiguous = S.sizes > 1
    found = (model.transduction_ == y)[ambiguous].mean()
    assert confidence[ambiguous].mean() == pytest.approx(found, abs=0.08)


def test_probabilities_that_were_too_cautious_are_sharpened(overlapping):
    X, S, *_ = overlapping
    assert CalibratedCandidatesCV(PLKNN()).fit(X, S).temperature_ < 1


@pytest.fixture(scope="module")
def by_features():
    """Classes whose most similar one is a candidate: sets are more predictable than labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 6, 1600)
    X = rng.normal(size=(1600, 3)) + 1.8 * np.eye(6, 3)[y] - 1.8 * np.eye(6, 3, -3)[y]
    S = make_partial_labels(y, X=X, p=1.0, r=1, kind="feature", random_state=0)
    return X, S, y


def test_known_labels_calibrate_where_candidates_depend_on_features(by_features):
    X, S, y = by_features
    truth = np.where(np.arange(800) % 8 == 0, y[:800], np.nan)
    blind = CalibratedCandidatesCV(PLKNN()).fit(X[:800], S[:800])
    checked = CalibratedCandidatesCV(PLKNN()).fit(X[:800], S[:800], truth=truth)
    assert (blind.calibrated_by_, checked.calibrated_by_) == ("candidates", "truth")
    sure = {model: model.predict_proba(X[800:]).max(axis=1).mean() for model in (blind, checked)}
    assert sure[blind] > blind.score(X[800:], y[800:]) + 0.06
    assert sure[checked] == pytest.approx(checked.score(X[800:], y[800:]), abs=0.06)
    known = ~np.isnan(truth)
    assert (checked.transduction_[known] == truth[known]).all()
    assert (checked.label_distributions_[known].max(axis=1).toarray() == 1).all()


@pytest.mark.parametrize("coverage", [0.8, 0.9])
def test_prediction_sets_have_the_right_label_as_often_as_asked_for(by_features, coverage):
    X, S, y = by_features
    truth = [int(label) if row % 4 == 0 else None for row, label in enumerate(y[:800])]
    model = CalibratedCandidatesCV(PLKNN()).fit(X[:800], S[:800], truth=truth)
    found = model.predict_sets(X[800:], coverage=coverage)
    spread = np.sqrt(coverage * (1 - coverage) * (1 / 200 + 1 / 800))
    assert found.contains(y[800:]).mean() > coverage - 3 * spread
    assert found.sizes.mean() < 4
    assert found.contains(model.predict(X[800:])).all()
    assert "random sample" in model.coverage_assumption_


def test_prediction_sets_by_singletons(overlapping):
    X, S, _, X_new, y_new = overlapping
    model = CalibratedCandidatesCV(PLKNN()).fit(X, S)
    assert len(model.nonconformity_) == (S.sizes == 1).sum()
    assert "single candidate" in model.coverage_assumption_
    assert model.predict_sets(X_new).contains(y_new).mean() > 0.9 - 0.08
    assert (model.predict_sets(X_new, coverage=0.999).sizes == 4).all(), "too few labels are known"


def test_bad_truths_and_coverages(overlapping):
    X, S, y, *_ = overlapping
    model = CalibratedCandidatesCV(PLKNN(), cv=2)
    with pytest.raises(ValueError, match=r"truth: row 3: the label 9\.0 is in no candidate set"):
        model.fit(X, S, truth=[None, 1, None, 9.0] + [None] * (len(y) - 4))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, S, truth=[1, 2])
    with pytest.raises(ValueError, match="truth: pass one label per example"):
        model.fit(X, S, truth=np.ones((len(y), 2)))
    pairs = [set(each) if len(each) > 1 else {*each, (min(each) + 1) % 4} for each in S]
    model.fit(X, pairs)
    with pytest.raises(ValueError, match="no label of a training row is known"):
        model.predict_sets(X)
    with pytest.raises(ValueError, match=r"coverage: 1\.5 is no share"):
        model.predict_sets(X, coverage=1.5)


def test_truth_keeps_the_evidence_of_other_rows():
    S = as_candidates([{"a", "b"}, {"b", "c"}, {"a", "c"}], weights=[1, 2, 3, 4, 5, 6])
    sets, known = with_truth(S, [None, "a", None])
    assert sets.to_lists() == [["a", "b"], ["a"], ["a", "c"]]
    assert sets.weights.tolist() == [1, 2, 1, 5, 6]
    assert known.tolist() == [False, True, False]


@pytest.mark.parametrize("coverage", [0, 1, -0.1, 1.5])
def test_a_coverage_is_between_0_and_1(overlapping, coverage):
    X, S, *_ = overlapping
    model = CalibratedCandidatesCV(PLKNN(), cv=2).fit(X, S)
    with pytest.raises(ValueError, match="is no share between 0 and 1"):
        model.predict_sets(X, coverage=coverage)


def test_pipelines_that_end_in_a_classifier_of_labels_are_refused(overlapping):
    X, S, *_ = overlapping
    for wrong in (LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression())):
        with pytest.raises(ValueError, match="estimator: LogisticRegression learns from labels"):
            CalibratedCandidatesCV(wrong, cv=2).fit(X, S)
