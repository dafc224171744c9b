"""Metrics against brute force and scikit-learn, and the scorers inside scikit-learn's tools."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score, cohen_kappa_score, get_scorer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from skpll import CLPL, PLKNN, as_candidates, metrics
from skpll.datasets import load_dataset, make_partial_labels


@pytest.fixture(scope="module")
def iris():
    X, _, y = load_dataset("iris", return_X_S_y=True)
    return X, make_partial_labels(y, p=0.8, r=1, random_state=0), y


@st.composite
def problems(draw):
    """Candidate sets over four classes, a truth inside them, and positive beliefs."""
    n = draw(st.integers(1, 12))
    sets = [draw(st.sets(st.integers(0, 3), min_size=1)) for _ in range(n)]
    truth = [draw(st.sampled_from(sorted(labels))) for labels in sets]
    seed = draw(st.integers(0, 2**32 - 1))
    P = np.random.default_rng(seed).dirichlet(np.ones(4), n)
    return sets, truth, P


def approximated_by_hand(sets, P):
    total = 0.0
    for labels, row in zip(sets, P, strict=True):
        best = int(np.argmax(row))
        total += row[best] / sum(row[label] for label in labels) if best in labels else 0.0
    return total / len(sets)


def calibration_error_by_hand(sure, right, weights, n_bins):
    total = 0.0
    for low in np.arange(n_bins) / n_bins:
        last = low + 1.5 / n_bins > 1
        inside = (sure >= low) & ((sure < low + 1 / n_bins) | last)
        if weights[inside].sum() > 0:
            gap = np.average(sure[inside], weights=weights[inside]) - np.average(
                right[inside], weights=weights[inside]
            )
            total += weights[inside].sum() * abs(gap)
    return total / weights.sum()


@pytest.mark.parametrize("n_bins", [1, 2, 4, 8])
def test_the_calibration_error_against_its_definition(n_bins):
    random = np.random.default_rng(n_bins)
    sure = np.append(random.integers(0, 65, 200) / 64, [0.0, 0.5, 1.0])
    right = random.random(203) < sure**2
    weights = random.integers(0, 4, 203).astype(float)
    ones = np.ones(203)
    error = metrics.expected_calibration_error
    assert error(sure, right, n_bins=n_bins) == pytest.approx(
        calibration_error_by_hand(sure, right, ones, n_bins)
    )
    assert error(sure, right) == pytest.approx(calibration_error_by_hand(sure, right, ones, 10))
    weighted = error(sure, right, n_bins=n_bins, sample_weight=weights)
    assert weighted == pytest.approx(calibration_error_by_hand(sure, right, weights, n_bins))
    copies = np.repeat(np.arange(203), weights.astype(int))
    assert weighted == pytest.approx(error(sure[copies], right[copies], n_bins=n_bins))


def test_a_confidence_of_one_is_in_the_last_bin():
    error = metrics.expected_calibration_error
    assert error([1.0, 0.95], [False, True], n_bins=10) == pytest.approx(0.95 / 2)


def test_the_calibration_error_of_confidences_that_mean_what_they_say():
    random = np.random.default_rng(0)
    sure = random.random(200_000)
    assert metrics.expected_calibration_error(sure, random.random(200_000) < sure) < 0.01
    assert metrics.expected_calibration_error(np.ones(4), [True] * 4) == 0


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([0.5, 1.5], [1, 0]), {}, "confidences: some are not between 0 and 1"),
        (([0.5, np.nan], [1, 0]), {}, "confidences: some are not between 0 and 1"),
        (([[0.5]], [1]), {}, "confidences: shape"),
        (([], []), {}, "confidences: shape"),
        (([0.5, 0.5], [1]), {}, "right: shape"),
        (([0.5], [1]), {"n_bins": 0}, "n_bins: 0 is not a whole number"),
    ],
)
def test_calibration_errors_that_make_no_sense(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        metrics.expected_calibration_error(*arguments, **options)


@given(problems())
def test_label_free_figures_bracket_the_truth(problem):
    sets, truth, P = problem
    S = as_candidates(sets, classes=range(4))
    predicted = P.argmax(axis=1)
    covering = metrics.covering_rate(S, predicted)
    approximated = metrics.approximated_accuracy(S, P)
    assert covering == np.mean([label in row for label, row in zip(predicted, sets, strict=True)])
    assert approximated == pytest.approx(approximated_by_hand(sets, P))
    assert accuracy_score(truth, predicted) <= covering
    assert approximated <= covering + 1e-12


@given(problems())
def test_the_chance_correction_is_that_of_predictions_dealt_out_at_random(problem):
    sets, truth, P = problem
    S = as_candidates(sets, classes=range(4))
    predicted = P.argmax(axis=1)
    by_chance = np.mean([[label in row for row in sets] for label in predicted])
    kappa = metrics.covering_kappa(S, predicted)
    if by_chance == 1:
        assert kappa == 0
    else:
        covering = metrics.covering_rate(S, predicted)
        assert kappa * (1 - by_chance) == pytest.approx(covering - by_chance)
    if len(set(truth) | set(predicted)) > 1:
        assert metrics.covering_kappa(truth, predicted) == pytest.approx(
            cohen_kappa_score(truth, predicted)
        )


def test_the_chance_correction_heeds_weights_and_unknown_predictions():
    S = [{"a", "b"}, {"b"}, {"c"}]
    repeated = [S[0], S[0], S[2]]
    assert metrics.covering_kappa(
        S, ["a", "b", "z"], sample_weight=[2, 0, 1]
    ) == metrics.covering_kappa(repeated, ["a", "a", "z"])
    # By chance a is covered in 1/3 of the examples, b in 2/3, and z in none.
    assert metrics.covering_kappa(S, ["a", "b", "z"]) == pytest.approx((2 / 3 - 1 / 3) / (2 / 3))


@given(problems())
def test_on_single_labels_all_are_the_accuracy(problem):
    _, truth, P = problem
    predicted = P.argmax(axis=1)
    right = accuracy_score(truth, predicted)
    assert metrics.covering_rate(truth, predicted) == pytest.approx(right)
    assert metrics.approximated_accuracy(truth, P, classes=range(4)) == pytest.approx(right)


def test_columns_may_be_in_any_order_and_may_miss_a_candidate():
    S = as_candidates([{"a", "b"}, {"b", "c"}, {"c"}])
    P = np.array([[0.2, 0.8], [0.4, 0.6], [0.5, 0.5]])
    # Columns are b, a: predictions a (0.8 of 1.0), a (not a candidate), b (not a candidate).
    assert metrics.approximated_accuracy(S, P, classes=["b", "a"]) == pytest.approx(0.8 / 3)
    assert metrics.approximated_accuracy(
        S, P, classes=["b", "a"], sample_weight=[1, 0, 0]
    ) == pytest.approx(0.8)
    # A candidate without a column takes nothing from the one that is predicted.
    assert metrics.approximated_accuracy([{"a", "c"}], [[0.8, 0.2]], classes=["a", "b"]) == 1


def test_confidences_of_one_may_be_rounded():
    error = metrics.expected_calibration_error
    assert error([1 + 1e-12, 1.0], [True, True]) == pytest.approx(0, abs=1e-9)


def test_twins_of_scikit_learn_still_work_and_name_their_successors():
    rng = np.random.default_rng(0)
    truth, predicted, weights = rng.integers(0, 4, 60), rng.integers(0, 4, 60), rng.random(60)
    message = r"accuracy is deprecated; use sklearn\.metrics\.accuracy_score"
    with pytest.warns(FutureWarning, match=message):
        assert metrics.accuracy(truth, predicted) == accuracy_score(truth, predicted)
    with pytest.warns(FutureWarning, match=r"use sklearn\.metrics\.balanced_accuracy_score"):
        found = metrics.balanced_accuracy(truth, predicted, sample_weight=weights)
    expected = balanced_accuracy_score(truth, predicted, sample_weight=weights)
    assert found == pytest.approx(expected)
    with pytest.warns(FutureWarning, match=r"use sklearn\.metrics\.classification_report"):
        report = metrics.class_report(["cat", "dog", "dog", "dog"], ["cat", "dog", "cat", "emu"])
    assert "dog       1.00      0.33      0.50         3" in report
    assert "emu       0.00      0.00      0.00         0" in report
    assert not {"accuracy", "balanced_accuracy", "class_report"} & set(metrics.__all__)


@pytest.mark.parametrize("metric", [metrics.covering_rate, metrics.covering_kappa])
@pytest.mark.parametrize("form", [list, as_candidates, np.array, np.asarray])
def test_swapped_arguments_are_noticed(metric, form):
    S = [{"a", "b"}, {"b"}, {"c"}]
    sets = np.asarray(as_candidates(S)) if form is np.asarray else form(S)
    with pytest.raises(ValueError, match=r"y_pred: candidate sets .* covering_rate\(S, y_pred\)"):
        metric(["a", "b", "c"], sets)
    with pytest.raises(ValueError, match="y_pred: 2 labels for 3 examples"):
        metric(S, ["a", "b"])


def test_swapped_probabilities_are_noticed():
    with pytest.raises(ValueError, match=r"approximated_accuracy\(S, probabilities\)"):
        metrics.approximated_accuracy(np.eye(2), [{0, 1}, {1}])


def test_transductive_accuracy_finds_the_labels_in_whatever_decided_them(iris):
    X, S, y = iris
    method = PLKNN().fit(X, S)
    expected = np.mean(method.transduction_ == y)
    pipeline = make_pipeline(PLKNN()).fit(X, S)
    search = GridSearchCV(pipeline, {"plknn__n_neighbors": [10]}, cv=2).fit(X, S)
    for decided in (method.transduction_, list(method.transduction_), method, pipeline, search):
        assert metrics.transductive_accuracy(y, decided) == expected
    with pytest.raises(ValueError, match="LogisticRegression has no transduction_"):
        metrics.transductive_accuracy(y, LogisticRegression())


@pytest.mark.parametrize(
    "scorer",
    [
        metrics.covering_rate_scorer,
        metrics.covering_kappa_scorer,
        metrics.approximated_accuracy_scorer,
    ],
)
@pytest.mark.parametrize("method", [PLKNN, CLPL])
def test_scorers_work_in_search_and_cross_validation(iris, scorer, method):
    X, S, _ = iris
    model = make_pipeline(StandardScaler(), method())
    cv = KFold(3, shuffle=True, random_state=0)
    scores = cross_val_score(model, X, S, cv=cv, scoring=scorer, error_score="raise")
    by_hand = [scorer(model.fit(X[a], S[a]), X[b], S[b]) for a, b in cv.split(X)]
    assert scores.tolist() == by_hand
    assert min(scores) > 0.5
    name = "clpl__C" if method is CLPL else "plknn__n_neighbors"
    search = GridSearchCV(model, {name: [1, 10]}, cv=cv, scoring=scorer, error_score="raise")
    assert search.fit(X, S).best_score_ == pytest.approx(max(search.cv_results_["mean_test_score"]))


@pytest.mark.parametrize("name", ["covering_rate", "covering_kappa", "approximated_accuracy"])
def test_scorers_are_found_by_name(iris, name):
    X, S, _ = iris
    scorer = getattr(metrics, f"{name}_scorer")
    cv = KFold(3, shuffle=True, random_state=0)
    assert get_scorer(name)(PLKNN().fit(X, S), X, S) == scorer(PLKNN().fit(X, S), X, S)
    by_function = cross_val_score(PLKNN(), X, S, cv=cv, scoring=scorer)
    by_name = cross_val_score(PLKNN(), X, S, cv=cv, scoring=name)
    np.testing.assert_array_equal(by_name, by_function)


@pytest.mark.parametrize("order", ["skpll first", "scikit-learn first"])
def test_scorers_are_found_whatever_is_imported_first(order):
    tools = "from sklearn.model_selection import GridSearchCV, cross_val_score"
    lines = ["from skpll import PLKNN", tools]
    code = "\n".join(
        [
            *(lines if order == "skpll first" else lines[::-1]),
            "PLKNN",
            "X, S = [[0.0], [0.1], [1.0], [1.1]] * 2, [{0}, {0, 1}, {1}, {0, 1}] * 2",
            "GridSearchCV(PLKNN(), {'n_neighbors': [2]}, cv=2, scoring='covering_rate').fit(X, S)",
            "print(cross_val_score(PLKNN(), X, S, cv=2, scoring='covering_kappa'))",
        ]
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "nan" not in done.stdout


def test_the_scorer_uses_a_softmax_where_there_are_no_probabilities(iris):
    X, S, y = iris
    machine = LinearSVC(random_state=0).fit(X, y)
    assert not hasattr(machine, "predict_proba")
    decisions = machine.decision_function(X)
    P = np.exp(decisions) / np.exp(decisions).sum(axis=1, keepdims=True)
    assert metrics.approximated_accuracy_scorer(machine, X, S) == pytest.approx(
        metrics.approximated_accuracy(S, P, classes=machine.classes_)
    )
    two = y != "virginica"
    binary = LinearSVC(random_state=0).fit(X[two], y[two])
    right = 1 / (1 + np.exp(-binary.decision_function(X[two])))
    P = np.column_stack([1 - right, right])
    S_two = as_candidates(y[two])
    assert metrics.approximated_accuracy_scorer(binary, X[two], S_two) == pytest.approx(
        metrics.approximated_accuracy(S_two, P, classes=binary.classes_)
    )


def test_the_scorer_says_what_is_missing(iris):
    class Guess:
        classes_ = np.arange(3)

    with pytest.raises(ValueError, match="Guess has neither predict_proba nor decision_function"):
        metrics.approximated_accuracy_scorer(Guess(), iris[0], iris[1])


@pytest.mark.parametrize(
    ("P", "message"),
    [
        ([[1.0, 0.0]], r"shape \(1, 2\) for 2 examples and 2 classes"),
        ([[1.0, 0.0], [0.0, 0.0]], "row 1 is negative somewhere, NaN or all zeros"),
        ([[1.0, -0.1], [0.5, 0.5]], "row 0 is negative"),
        ([[1.0, 0.0], [np.nan, 0.5]], "row 1 is negative somewhere, NaN"),
    ],
)
def test_beliefs_that_are_none(P, message):
    with pytest.raises(ValueError, match=message):
        metrics.approximated_accuracy([{"a", "b"}, {"b"}], P)


def test_lengths_that_differ():
    with pytest.raises(ValueError, match="y_pred: 1 labels for 2 examples"):
        metrics.covering_rate([{"a", "b"}, {"b"}], ["a"])
    with pytest.raises(ValueError, match="sample_weight: shape"):
        metrics.covering_rate([{"a", "b"}, {"b"}], ["a", "b"], sample_weight=[1])
    with pytest.raises(ValueError, match="transduction: shape"):
        metrics.transductive_accuracy(["a", "b"], ["a"])
