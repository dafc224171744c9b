"""scikit-learn's tools on candidate sets: which work, which can't, and what to do instead.

The table in `docs/sklearn-tools.md` says the same: a tool that moves from one list to the other
here has to move there, too.
"""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import (
    RFE,
    RFECV,
    SelectFromModel,
    SelectKBest,
    SequentialFeatureSelector,
)
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import hamming_loss, log_loss, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    KFold,
    RandomizedSearchCV,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    train_test_split,
    validation_curve,
)
from sklearn.multiclass import OneVsOneClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpll import CLPL, PLKNN, as_candidates
from skpll.datasets import make_partial_labels
from skpll.metrics import covering_kappa_scorer, covering_rate_scorer
from skpll.model_selection import StratifiedCandidateKFold

NAMES = np.array(["setosa", "versicolor", "virginica"])
X, Y = load_iris(return_X_y=True)
X, Y = StandardScaler().fit_transform(X), NAMES[Y]
S = make_partial_labels(Y, p=0.7, r=1, random_state=0)
FOLDS = StratifiedCandidateKFold(3)
NEIGHBORS = {"n_neighbors": [5, 10]}


@pytest.fixture(params=[False, True], ids=["", "routing"])
def routing(request):
    with config_context(enable_metadata_routing=request.param):
        yield


# -- what works ----------------------------------------------------------------------------


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(StandardScaler(), PLKNN()),
        GridSearchCV(PLKNN(), NEIGHBORS, cv=FOLDS),
        GridSearchCV(PLKNN(), NEIGHBORS, cv=FOLDS, scoring="covering_kappa"),
        RandomizedSearchCV(PLKNN(), NEIGHBORS, cv=FOLDS, n_iter=2),
        HalvingGridSearchCV(PLKNN(), NEIGHBORS, cv=FOLDS, min_resources=50, factor=2),
        HalvingRandomSearchCV(
            PLKNN(), NEIGHBORS, cv=FOLDS, min_resources=50, n_candidates=2, factor=2, random_state=0
        ),
        make_pipeline(SequentialFeatureSelector(PLKNN(), cv=FOLDS), PLKNN()),
        make_pipeline(SelectFromModel(CLPL()), PLKNN()),
        make_pipeline(RFE(CLPL(), n_features_to_select=2), PLKNN()),
        make_pipeline(RFECV(CLPL(), scoring="covering_rate", cv=FOLDS), PLKNN()),
    ],
    ids=lambda estimator: type(estimator[0] if hasattr(estimator, "steps") else estimator).__name__,
)
def test_estimators_that_hold_a_method(estimator):
    model = clone(estimator).fit(X, S)
    assert np.mean(model.predict(X) == Y) > 0.9
    assert model.score(X, S) >= model.score(X, Y) > 0.9


@pytest.mark.parametrize(
    "splitter",
    [
        KFold(3, shuffle=True, random_state=0),
        RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
        ShuffleSplit(3, random_state=0),
        GroupKFold(3),
        StratifiedCandidateKFold(3),
    ],
    ids=lambda splitter: type(splitter).__name__,
)
def test_splitters(splitter):
    groups = np.arange(len(S)) % 30 if isinstance(splitter, GroupKFold) else None
    assert cross_val_score(PLKNN(), X, S, cv=splitter, groups=groups).mean() > 0.9


@pytest.mark.usefixtures("routing")
def test_functions_of_model_selection():
    model = PLKNN()
    assert np.mean(cross_val_predict(model, X, S, cv=FOLDS) == Y) > 0.9
    _, train, test = learning_curve(model, X, S, cv=FOLDS, train_sizes=[0.5, 1.0])
    assert train.shape == test.shape == (2, 3)
    _, test = validation_curve(model, X, S, cv=FOLDS, param_name="n_neighbors", param_range=[5, 10])
    assert test.mean() > 0.9
    score, permuted, _ = permutation_test_score(model, X, S, cv=FOLDS, n_permutations=3)
    assert score > 0.9 > permuted.max()
    importances = permutation_importance(model.fit(X, S), X, S, random_state=0)
    assert importances.importances_mean.argmax() in (2, 3)
    scoring = {"rate": covering_rate_scorer, "kappa": covering_kappa_scorer}
    scores = cross_validate(model, X, S, cv=FOLDS, scoring=scoring)
    assert scores["test_rate"].mean() > scores["test_kappa"].mean()


# -- what can't ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tool",
    [
        HalvingGridSearchCV(PLKNN(), NEIGHBORS, cv=FOLDS),
        RFECV(CLPL(), cv=FOLDS),
        SelectKBest(k=2),
        CalibratedClassifierCV(PLKNN(), cv=FOLDS),
        BaggingClassifier(PLKNN()),
        AdaBoostClassifier(CLPL()),
        VotingClassifier([("a", PLKNN()), ("b", CLPL())]),
        StackingClassifier([("a", PLKNN()), ("b", CLPL())]),
        OneVsOneClassifier(PLKNN()),
        TunedThresholdClassifierCV(PLKNN()),
    ],
    ids=lambda tool: type(tool).__name__,
)
def test_tools_that_ask_for_one_label_an_example_refuse_sets(tool):
    with pytest.raises((ValueError, NotImplementedError, AttributeError)):
        clone(tool).fit(X, S)


@pytest.mark.parametrize(
    "splitter", [StratifiedKFold(3), RepeatedStratifiedKFold(n_splits=3), StratifiedGroupKFold(3)]
)
def test_stratified_splitters_refuse_sets(splitter):
    groups = np.arange(len(S)) if isinstance(splitter, StratifiedGroupKFold) else None
    with pytest.raises(ValueError, match="Supported target types"):
        cross_val_score(PLKNN(), X, S, cv=splitter, groups=groups)


@pytest.mark.parametrize(
    "scoring", ["accuracy", "balanced_accuracy", "f1_macro", "neg_log_loss", "roc_auc_ovr"]
)
def test_scores_that_compare_labels_refuse_sets(scoring):
    with pytest.raises(TypeError, match=r'candidate sets where .* scoring="covering_rate"'):
        cross_val_score(PLKNN(), X, S, cv=FOLDS, scoring=scoring, error_score="raise")


def test_a_search_by_accuracy_says_why_it_has_no_scores():
    search = GridSearchCV(PLKNN(), NEIGHBORS, cv=FOLDS, scoring="accuracy")
    with (
        pytest.warns(UserWarning, match="non-finite"),
        pytest.warns(UserWarning, match=r'(?s)scoring="covering_rate".* error_score="raise" stops'),
    ):
        search.fit(X, S)
    assert np.isnan(search.best_score_)
    assert search.best_params_ == {"n_neighbors": 5}
    with pytest.raises(TypeError, match="keeps its first setting"):
        search.set_params(error_score="raise").fit(X, S)


def test_scorers_and_metrics_of_others_may_read_the_matrix():
    scorer = make_scorer(lambda sets, predicted: np.asarray(sets).shape[0] / len(predicted))
    assert cross_val_score(PLKNN(), X, S, cv=FOLDS, scoring=scorer).tolist() == [1.0] * 3
    assert hamming_loss(np.asarray(S), np.asarray(S)) == 0


# -- what to do instead --------------------------------------------------------------------


def test_plain_cv_takes_blocks_and_ours_does_not():
    assert np.mean(cross_val_predict(PLKNN(), X, S, cv=3) == Y) < 0.5
    assert np.mean(cross_val_predict(PLKNN(), X, S, cv=FOLDS) == Y) > 0.9


def test_a_stratified_split_into_two():
    rare = as_candidates([*S.to_lists()[:-1], list(NAMES)])
    with pytest.raises(ValueError, match="least populated class"):
        train_test_split(X, rare, stratify=rare)
    train, test = next(StratifiedCandidateKFold(4).split(X, rare))
    assert len(train) == 112
    assert min(np.unique(Y[test], return_counts=True)[1]) >= 10


def test_rfe_forgets_the_names_of_the_classes():
    assert set(RFE(CLPL()).fit(X, S).predict(X)) <= {0, 1, 2}


def test_bagging_is_a_loop():
    rng = np.random.default_rng(0)
    parts = rng.integers(len(X), size=(10, len(X)))
    models = [PLKNN().fit(X[rows], S[rows]) for rows in parts]
    P = np.mean([model.predict_proba(X) for model in models], axis=0)
    assert np.mean(S.classes[P.argmax(axis=1)] == Y) > 0.9


def test_voting_is_a_mean():
    models = [PLKNN().fit(X, S), CLPL().fit(X, S)]
    P = np.mean([model.predict_proba(X) for model in models], axis=0)
    assert np.mean(S.classes[P.argmax(axis=1)] == Y) > 0.9


@pytest.mark.parametrize(
    "tool",
    [
        SelectKBest(k=2),
        BaggingClassifier(LogisticRegression(), random_state=0),
        StackingClassifier([("a", PLKNN()), ("b", LogisticRegression())]),
        VotingClassifier([("a", PLKNN()), ("b", LogisticRegression())]),
        OneVsOneClassifier(LogisticRegression()),
    ],
    ids=lambda tool: type(tool).__name__,
)
def test_everything_learns_from_decided_labels(tool):
    decided = PLKNN().fit(X, S).transduction_
    model = make_pipeline(StandardScaler(), tool, PLKNN()) if hasattr(tool, "k") else tool
    assert np.mean(model.fit(X, decided).predict(X) == Y) > 0.85


def test_calibration_where_some_labels_are_known():
    learned, known = next(FOLDS.split(X, S))
    model = CLPL().fit(X[learned], S[learned])
    calibrated = CalibratedClassifierCV(FrozenEstimator(model)).fit(X[known], Y[known])
    assert calibrated.score(X, Y) > 0.85
    assert log_loss(Y, calibrated.predict_proba(X)) < log_loss(Y, model.predict_proba(X))


def test_probabilities_out_of_fold():
    everybody = as_candidates([{"setosa", label} for label in Y])  # a column of ones
    found = cross_validate(
        PLKNN(), X, everybody, cv=FOLDS, return_estimator=True, return_indices=True
    )
    P = np.zeros(everybody.shape)
    for model, test in zip(found["estimator"], found["indices"]["test"], strict=True):
        P[test] = model.predict_proba(X[test])
    np.testing.assert_allclose(P.sum(axis=1), 1)
    assert np.mean(everybody.contains(everybody.classes[P.argmax(axis=1)])) > 0.9
    with pytest.raises(ValueError, match="no candidate"):  # scikit-learn turns the ones into zeros
        cross_val_predict(PLKNN(), X, everybody, cv=FOLDS, method="predict_proba")
