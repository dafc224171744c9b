"""Any classifier, asked about what it has not been trained on."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpll import PLLOO, CandidateSets, CrossFitClassifier


def test_a_round_on_plain_labels_is_cross_val_predict(clusters):
    X, _, y = clusters
    folds = KFold(4, shuffle=True, random_state=2)
    model = CrossFitClassifier(LogisticRegression(), cv=folds, max_iter=1).fit(X, y)
    expected = cross_val_predict(LogisticRegression(), X, y, cv=folds, method="predict_proba")
    logits = np.log(np.maximum(expected, 1e-4)) / model.temperature_
    assert 0.05 < model.temperature_ < 20
    assert model.n_iter_ == 1
    fitted = LogisticRegression().fit(X, y)
    scores = np.log(np.maximum(fitted.predict_proba(X), 1e-4)) / model.temperature_
    P = np.exp(scores - scores.max(axis=1, keepdims=True))
    assert_allclose(model.predict_proba(X), P / P.sum(axis=1, keepdims=True), rtol=1e-6)
    assert logits.shape == (len(X), 3)


def test_soft_labels_are_weighted_copies(clusters):
    X, S, _ = clusters
    splits = list(KFold(3, shuffle=True, random_state=0).split(X))
    model = CrossFitClassifier(LogisticRegression(), cv=splits, max_iter=1, power=1.0).fit(X, S)
    rows = np.repeat(np.arange(len(S)), S.sizes)
    answers = np.zeros(S.shape)
    for train, test in splits:
        inside = np.isin(rows, train)
        inner = LogisticRegression().fit(
            X[rows[inside]], S.indices[inside], sample_weight=1 / S.sizes[rows[inside]]
        )
        answers[test] = inner.predict_proba(X[test])
    first = S.row_normalized(S.entries(answers))
    change = np.abs(first - S.initial_confidences()).sum() / (2 * len(S))
    assert model.history_[0]["change"] == pytest.approx(change, rel=1e-6)


def test_a_forest_is_asked_out_of_bag(clusters):
    X, S, y = clusters
    model = CrossFitClassifier(RandomForestClassifier(100, random_state=0)).fit(X, S)
    assert type(model.estimator_).__name__ == "RandomForestRegressor"
    assert model.estimator_.oob_prediction_.shape == (len(X), 3)
    assert (model.transduction_ == y).mean() > 0.85
    assert CrossFitClassifier().fit(X, S).estimator_.n_estimators == 100


def test_a_data_frame_with_categories_and_gaps():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 240)
    seen = (y + (rng.random(240) < 0.2)) % 3
    colours = pd.Categorical(np.array(["red", "green", "blue"])[seen])
    frame = pd.DataFrame({"length": rng.normal(size=240) + 2.5 * y, "colour": colours})
    frame.loc[rng.random(240) < 0.2, "length"] = np.nan
    M = (rng.random((240, 3)) < 0.3).astype(int)
    M[np.arange(240), y] = 1
    boosting = HistGradientBoostingClassifier(
        categorical_features="from_dtype", max_iter=30, random_state=0
    )
    model = CrossFitClassifier(boosting, cv=3, max_iter=2).fit(frame, M)
    assert (model.transduction_ == y).mean() > 0.85
    assert model.score(frame, y) > 0.85
    assert model.feature_names_in_.tolist() == ["length", "colour"]
    pd.testing.assert_index_equal(frame.columns, pd.Index(["length", "colour"]))


def test_pipelines_and_weights(clusters):
    X, S, y = clusters
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    model = CrossFitClassifier(pipeline, cv=3).fit(X, S)
    assert (model.transduction_ == y).mean() > 0.85
    weights = np.where(y == "ant", 20.0, 1.0)
    heavy = CrossFitClassifier(pipeline, cv=3).fit(X, S, sample_weight=weights)
    assert (heavy.predict(X) == "ant").sum() > (model.predict(X) == "ant").sum()


def test_a_classifier_without_weights_is_refused(clusters):
    X, S, _ = clusters
    with pytest.raises(ValueError, match="estimator: the fit of KNeighborsClassifier takes no"):
        CrossFitClassifier(KNeighborsClassifier()).fit(X, S)


def test_evidence_is_used(clusters):
    X, S, y = clusters
    noise = np.random.default_rng(0).normal(size=X.shape)  # features that tell nothing
    right = S.indices == np.repeat(np.searchsorted(S.classes, y), S.sizes)
    votes = S.with_weights(np.where(right, 4.0, 1.0))
    model = CrossFitClassifier(LogisticRegression(), cv=3).fit(noise, votes)
    assert (model.transduction_ == y).mean() > 0.95
    assert isinstance(votes, CandidateSets)


def test_folds_that_leave_out_rows_are_refused(clusters):
    X, S, _ = clusters
    with pytest.raises(ValueError, match="cv: the test parts don't hold each of the 150"):
        CrossFitClassifier(LogisticRegression(), cv=[(np.arange(99), np.arange(99, 140))]).fit(X, S)


def test_the_prior_does_not_hang_on_the_scale_of_the_weights(clusters):
    X, S, _ = clusters
    model = CrossFitClassifier(LogisticRegression(), prior_strength=0.5)
    one = model.fit(X, S, sample_weight=np.full(len(S), 1e3)).label_distributions_.data
    other = model.fit(X, S, sample_weight=np.full(len(S), 2e3)).label_distributions_.data
    assert_allclose(one, other, atol=0.01)


class StrictClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that takes no labels but 0, 1, …, as some boosting libraries do."""

    def fit(self, X, y, sample_weight=None):
        assert np.array_equal(np.unique(y), np.arange(y.max() + 1)), np.unique(y)
        self.inner_ = LogisticRegression().fit(X, y, sample_weight)
        self.classes_ = self.inner_.classes_
        return self

    def predict_proba(self, X):
        return self.inner_.predict_proba(X)


def test_labels_are_encoded_within_each_fold(clusters):
    X, S, y = clusters
    late = np.concatenate([np.flatnonzero(y != "ant"), np.flatnonzero(y == "ant")])
    X, y = X[late], y[late]
    folds = KFold(3)  # the first fold is trained on two classes of which one is not the first
    strict = CrossFitClassifier(StrictClassifier(), cv=folds).fit(X, y)
    usual = CrossFitClassifier(LogisticRegression(), cv=folds).fit(X, y)
    assert_allclose(strict.predict_proba(X), usual.predict_proba(X), atol=1e-9)
    assert strict.score(X, y) > 0.85
    bees, others = np.flatnonzero(y == "bee"), np.flatnonzero(y != "bee")
    model = CrossFitClassifier(StrictClassifier(), cv=[(bees, others), (others, bees)], max_iter=1)
    assert model.fit(X, S[late]).estimator_.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("cv", [GroupKFold(4), 4])
def test_groups_are_held_out_together(clusters, cv):
    X, S, _ = clusters
    rows = np.repeat(np.arange(len(S)), 3)  # copies, of which the others would know the answer
    seen = []

    class Spy(StrictClassifier):
        def fit(self, X, y, sample_weight=None):
            seen.append(set(X[:, 0].tolist()))
            return super().fit(X, y, sample_weight)

        def predict_proba(self, X):
            assert not seen[-1] & set(X[:, 0].tolist())
            return super().predict_proba(X)

    CrossFitClassifier(Spy(), cv=cv, max_iter=1).fit(X[rows], S[rows], groups=rows)
    assert len(seen) == 9
    forest = CrossFitClassifier(RandomForestClassifier(5, random_state=0), cv=cv, max_iter=1)
    forest.fit(X[rows], S[rows], groups=rows)
    assert type(forest.estimator_).__name__ == "RandomForestClassifier"


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([None] * 150, "groups: row 0 has no group"),
        ([1.0] * 149 + [np.nan], "groups: row 149 has no group"),
        (np.array([1, "a"] * 75, dtype=object), "groups: values of different types"),
        (np.ones((150, 2)), "groups: pass one group per example"),
        ([1, 2], "inconsistent numbers of samples"),
    ],
)
@pytest.mark.parametrize("method", [PLLOO(), CrossFitClassifier(LogisticRegression())])
def test_bad_groups(clusters, method, groups, message):
    X, S, _ = clusters
    with pytest.raises(ValueError, match=message):
        method.fit(X, S, groups=groups)
