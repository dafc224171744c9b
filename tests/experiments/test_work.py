"""What a task does: divisions, shared data, selection without the truth, metrics."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpll import PLKNN, SPPLL, as_candidates, datasets
from skpll.datasets import load_dataset, make_partial_labels
from skpll.experiments import Store, plan, work
from skpll.experiments.tables import choices
from skpll.experiments.tasks import Division, known_methods, make_method
from skpll.experiments.work import (
    TaskData,
    divide,
    measure,
    prepare_data,
    run_task,
)
from skpll.metrics import expected_calibration_error


@pytest.fixture
def task(small):
    return next(plan(small()))


@pytest.fixture(scope="module")
def iris():
    X, _, y = load_dataset("iris", return_X_S_y=True)
    return TaskData(X, make_partial_labels(y, p=0.6, r=1, random_state=1), y)


# -- divisions and data --------------------------------------------------------------------


def test_folds_cover_every_row_once():
    parts = [divide(30, Division("kfold", seed=5, split=i, folds=4)) for i in range(4)]
    assert np.array_equal(np.sort(np.concatenate([test for _, test in parts])), np.arange(30))
    for train, test in parts:
        assert not set(train) & set(test)
        assert len(train) + len(test) == 30
    assert not np.array_equal(parts[0][1], divide(30, Division("kfold", 6, 0, folds=4))[1])


def test_halves():
    train, test = divide(31, Division("shuffle", 0, 0, test_size=0.5))
    assert (len(train), len(test)) == (15, 16)
    assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(31))


def test_data_are_loaded_once_and_mapped(task, tmp_path, monkeypatch):
    data = prepare_data(task, str(tmp_path))
    X, _, y = load_dataset("iris", return_X_S_y=True)
    assert np.array_equal(data.X, X)
    assert np.array_equal(data.y, y)
    assert data.S == make_partial_labels(y, p=0.3, r=1, random_state=0)
    assert isinstance(data.X, np.memmap)

    def refuse(*_, **__):
        raise AssertionError("loaded again")

    monkeypatch.setattr(datasets, "load_dataset", refuse)
    again = prepare_data(task, str(tmp_path))
    assert np.array_equal(again.X, X)
    assert again.S == data.S
    # Another corruption of the same data needs new candidate sets, but no new features.
    other = prepare_data(replace(task, p=0.7), str(tmp_path))
    assert other.S.sizes.sum() == 150 + 105
    assert len(list(tmp_path.iterdir())) == 3


def test_kind_and_noise_of_the_candidates(task, tmp_path):
    X, _, y = load_dataset("iris", return_X_S_y=True)
    data = prepare_data(replace(task, p=0.8, kind="feature"), str(tmp_path))
    assert data.S == make_partial_labels(y, p=0.8, kind="feature", X=X, random_state=0)
    data = prepare_data(replace(task, p=0.1, kind="dictionary"), str(tmp_path))
    assert data.S == make_partial_labels(y, kind="dictionary", min_share=0.1, X=X, random_state=0)
    data = prepare_data(replace(task, p=0.8, kind="constant"), str(tmp_path))
    usual = make_partial_labels(y, p=0.8, random_state=0)
    assert data.S.shape[1] == usual.shape[1] + 1
    assert data.S.contains(data.S.classes[[-1] * len(y)]).all()
    assert (np.asarray(data.S)[:, :-1] == np.asarray(usual)).all()
    data = prepare_data(replace(task, p=0.8, noise=0.2), str(tmp_path))
    assert data.S == make_partial_labels(y, p=0.8, noise=0.2, random_state=0)
    assert (~data.S.contains(data.y)).sum() == 30


def test_two_who_prepare_the_same_do_no_harm(tmp_path):
    def make_after_somebody_else():
        work._shared(str(tmp_path), (), lambda: np.arange(3))
        return np.arange(3)

    found = work._shared(str(tmp_path), (), make_after_somebody_else)
    assert np.array_equal(found, np.arange(3))
    assert len(list(tmp_path.iterdir())) == 1


def test_rows_are_a_fixed_subset(task, tmp_path):
    wanted = replace(task, rows=40)
    data = prepare_data(wanted, str(tmp_path))
    assert len(data.y) == data.X.shape[0] == len(data.S) == 40
    whole = load_dataset("iris").X
    assert all((whole == row).all(axis=1).any() for row in data.X)


def test_sparse_features_and_real_candidates(task, tmp_path, monkeypatch):
    X = sparse.random_array(
        (20, 4), density=0.3, format="csr", random_state=np.random.default_rng(0)
    )
    y = np.array(["a", "b"] * 10)
    S = make_partial_labels(y, p=0.5, random_state=0)
    found = type("Bunch", (), {"X": X, "candidates": S, "y": y, "classes": np.array(["a", "b"])})
    monkeypatch.setattr(datasets, "load_dataset", lambda _: found)
    wanted = replace(task, dataset="lost", p=None, r=None, corruption_seed=None)
    data = prepare_data(wanted, str(tmp_path))
    assert (data.X != X).nnz == 0
    assert data.S == S
    assert np.array_equal(data.y, y)


# -- measuring -----------------------------------------------------------------------------


def test_a_task_does_what_its_parts_say(small, iris):
    """The same protocol, written out by hand."""
    specification = small(
        methods=['method = "sppll"\ngrid = { C = [0.01, 1] }\nparameters = { init = "uniform" }']
    )
    task = next(plan(specification))
    found = measure(task, iris)

    train, test = divide(150, task.split)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), SPPLL(init="uniform")),
        {"sppll__C": [0.01, 1]},
        cv=KFold(3, shuffle=True, random_state=0),
    ).fit(iris.X[train], iris.S[train])
    assert found["chosen"] == {"C": search.best_params_["sppll__C"]}
    predicted = search.predict(iris.X[test])
    assert found["metrics"]["accuracy"] == np.mean(predicted == iris.y[test])
    assert found["metrics"]["covering_rate"] == np.mean(iris.S[test].contains(predicted))
    decided = search.best_estimator_[-1].transduction_
    assert found["metrics"]["transductive_accuracy"] == np.mean(decided == iris.y[train])
    assert set(found["metrics"]) == {
        "accuracy", "balanced_accuracy", "transductive_accuracy", "covering_rate",
        "approximated_accuracy", "mean_confidence", "calibration_error",
    }  # fmt: skip
    probabilities = search.predict_proba(iris.X[test])
    assert found["metrics"]["mean_confidence"] == probabilities.max(axis=1).mean()
    ambiguous = iris.S[train].sizes > 1
    sure = search.best_estimator_[-1].label_distributions_.max(axis=1).toarray()[ambiguous]
    right = (decided == iris.y[train])[ambiguous]
    error = expected_calibration_error(sure, right)
    assert found["metrics"]["calibration_error"] == pytest.approx(error)
    assert error > 0
    assert (found["n_train"], found["n_test"]) == (100, 50)
    assert 0 < found["fit_seconds"] < found["seconds"]


def test_the_truth_of_the_training_part_changes_no_prediction(small, iris):
    specification = small(methods=['method = "m3pl"\ngrid = { C = [0.01, 1] }'], more="[selection]")
    task = next(plan(specification))
    train, _ = divide(150, task.split)
    lied = iris.y.copy()
    lied[train] = "setosa"
    honest, deceived = (
        measure(task, iris),
        measure(task, TaskData(iris.X, iris.S, lied)),
    )
    assert deceived["chosen"] == honest["chosen"]
    for name in ("accuracy", "covering_rate", "approximated_accuracy"):
        assert deceived["metrics"][name] == honest["metrics"][name]
    assert deceived["metrics"]["transductive_accuracy"] < honest["metrics"]["transductive_accuracy"]


def scaled(X, train, scaling):
    """Scale by hand: what is learned, is learned from the training part."""
    part = X[train]
    if scaling == "zscore":
        return (X - part.mean(axis=0)) / part.std(axis=0)
    if scaling == "minmax":
        return (X - part.min(axis=0)) / (part.max(axis=0) - part.min(axis=0))
    return np.sign(X) * np.sqrt(np.abs(X)) if scaling == "sqrt" else X


@pytest.mark.parametrize("scaling", ["zscore", "minmax", "none", "sqrt"])
def test_scaling(small, iris, scaling):
    task = next(plan(small(more=f'[defaults]\nscaling = "{scaling}"')))
    assert task.scaling == scaling
    train, test = divide(150, task.split)
    data = replace(iris, X=iris.X - 2.0)  # of both signs
    X = scaled(data.X, train, scaling)
    expected = PLKNN().fit(X[train], iris.S[train]).score(X[test], iris.y[test])
    found = measure(task, data)
    assert found["metrics"]["accuracy"] == expected
    assert found["chosen"] == {}


@pytest.mark.parametrize("scaling", ["zscore", "minmax", "none", "sqrt", "auto"])
def test_sparse_features_stay_sparse(small, iris, scaling):
    task = next(plan(small(more=f'[defaults]\nscaling = "{scaling}"')))
    centred = np.where(abs(iris.X - 3) < 1, 0, iris.X - 3)
    found = measure(task, replace(iris, X=sparse.csr_array(centred)))
    train, test = divide(150, task.split)
    if scaling == "sqrt":
        X = scaled(centred, train, "sqrt")
        expected = PLKNN().fit(X[train], iris.S[train]).score(X[test], iris.y[test])
        assert found["metrics"]["accuracy"] == expected
    assert found["metrics"]["accuracy"] > 0.8


def test_scaling_is_chosen_with_the_parameters(small, iris):
    """Noise in large units: whoever does not scale sees nothing but it."""
    noise = np.random.default_rng(0).normal(scale=100.0, size=(150, 3))
    data = replace(iris, X=np.hstack([iris.X, noise]))
    method = 'method = "plknn"\ngrid = { n_neighbors = [3, 10] }'
    task = next(plan(small(methods=[method], more='[defaults]\nscaling = "auto"')))
    train, test = divide(150, task.split)
    X, S, folds = data.X[train], iris.S[train], KFold(3, shuffle=True, random_state=0)
    covered = {
        (k, scaling): np.mean(
            [
                PLKNN(n_neighbors=k).fit(Z[inner], S[inner]).score(Z[left], S[left])
                for inner, left in folds.split(X)
                for Z in [scaled(X, inner, scaling)]
            ]
        )
        for k in (3, 10)
        for scaling in ("zscore", "minmax", "none", "sqrt")
    }
    k, scaling = max(covered, key=covered.get)
    found = measure(task, data)
    assert found["chosen"] == {"n_neighbors": k, "scaling": scaling}
    assert covered[k, scaling] > max(covered[3, "none"], covered[10, "none"]) + 0.1
    Z = scaled(data.X, train, scaling)
    expected = PLKNN(n_neighbors=k).fit(Z[train], S).score(Z[test], iris.y[test])
    assert found["metrics"]["accuracy"] == expected


def test_a_method_without_a_grid_has_its_scaling_chosen(small, iris, tmp_path):
    auto = small(more='[defaults]\nscaling = "auto"\n[selection]\nfolds = 2')
    task = next(plan(auto))
    assert task.selection.folds == 2
    assert task.key != next(plan(small())).key
    found = measure(task, iris)
    assert set(found["chosen"]) == {"scaling"}
    with Store.open(tmp_path / "a.db") as store:
        store.add_result(store.begin_run(auto, [task], []), task.key, found)
        (result,) = store.results().itertuples()
        (experiment,) = store.experiments()
    assert (result.scaling, result.chosen) == ("auto", found["chosen"])
    assert experiment.selection == "2 inner folds, covering rate"
    row = choices(*[pd.DataFrame([result]), experiment]).iloc[0]
    assert (row["parameter"], row["most_often"]) == ("scaling", found["chosen"]["scaling"])


def test_scoring_by_approximated_accuracy(small, iris, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "skpll.metrics.approximated_accuracy_scorer", lambda *_: seen.append(1) or 0.5
    )
    more = '[selection]\nscoring = "approximated_accuracy"\nfolds = 2'
    specification = small(methods=['method="plknn"\ngrid = { n_neighbors = [3, 5] }'], more=more)
    measure(next(plan(specification)), iris)
    assert len(seen) == 2 * 2 + 1


def test_a_single_value_needs_no_choice(small, iris, monkeypatch):
    monkeypatch.setattr("skpll.experiments.work.GridSearchCV", None)
    one = next(plan(small(methods=['method="plknn"\ngrid = { n_neighbors = [3] }'])))
    fixed = next(plan(small(methods=['method="plknn"\nparameters={n_neighbors=3}'])))
    found = measure(one, iris)
    assert found["chosen"] == {"n_neighbors": 3}
    assert found["metrics"] == measure(fixed, iris)["metrics"]


@pytest.mark.parametrize("method", ["plsvm", "plecoc"])
def test_random_methods_are_seeded(small, iris, method):
    task = next(plan(small(methods=[f'method = "{method}"'])))
    assert measure(task, iris)["metrics"] == measure(task, iris)["metrics"]


def test_without_ambiguous_examples_there_is_no_calibration_to_measure(small, iris):
    plain = TaskData(iris.X, as_candidates(iris.y), iris.y)
    found = measure(next(plan(small())), plain)["metrics"]
    assert "calibration_error" not in found
    assert found["transductive_accuracy"] == 1


def test_a_baseline_may_be_told_the_truth(small, iris):
    task = next(plan(small(methods=['method = "knowntruth"'])))
    train, test = divide(150, task.split)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    expected = model.fit(iris.X[train], iris.y[train]).score(iris.X[test], iris.y[test])
    found = measure(task, iris)["metrics"]
    assert found["accuracy"] == expected
    assert not {"transductive_accuracy", "calibration_error"} & set(found)


@pytest.mark.parametrize("method", ["weightedcopies", "randomcandidate", "crossfitclassifier"])
def test_classifiers_of_scikit_learn_by_name(small, iris, method):
    entries = [
        f'method = "{method}"\nparameters = {{ estimator = "logistic_regression" }}',
        f'method = "{method}"\nlabel = "boosting"\n'
        'parameters = { estimator = "hist_gradient_boosting" }',
    ]
    regression, boosting = list(plan(small(methods=entries)))[:2]
    train, test = divide(150, regression.split)
    inner = LogisticRegression(max_iter=1000)
    model = make_pipeline(StandardScaler(), known_methods()[method](inner))
    expected = model.fit(iris.X[train], iris.S[train]).score(iris.X[test], iris.y[test])
    assert measure(regression, iris)["metrics"]["accuracy"] == expected
    made = make_method(boosting.method, boosting.parameters)
    assert isinstance(made.estimator, HistGradientBoostingClassifier)
    assert made.estimator.random_state == 0
    assert regression.key != boosting.key


def test_run_task_prepares_the_data(task, tmp_path):
    data = prepare_data(task, str(tmp_path))
    assert run_task(task, str(tmp_path))["metrics"] == measure(task, data)["metrics"]
