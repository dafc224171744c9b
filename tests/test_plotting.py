"""What displays compute and draw; figures are never shown."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpll import CLPL, LSBCMM, PLKNN, SPPLL, StackedCandidates, diagnose
from skpll.crowd import aggregate
from skpll.datasets import load_dataset, make_partial_classification, make_partial_labels
from skpll.experiments.comparison import CriticalDifferenceDisplay
from skpll.plotting import (
    COLORS,
    MARKERS,
    AccuracyOverAmbiguityDisplay,
    AccuracyOverTimeDisplay,
    AmbiguityDisplay,
    AnnotatorConfusionDisplay,
    ConfidenceHistogramDisplay,
    CurriculumDisplay,
    MixtureWeightsDisplay,
    ObjectiveTraceDisplay,
    SensitivityDisplay,
    method_styles,
)

pyplot = pytest.importorskip("matplotlib.pyplot")
pyplot.switch_backend("agg")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


@pytest.fixture
def ax():
    return pyplot.figure().subplots()


@pytest.fixture(scope="module")
def iris():
    X, _, y = load_dataset("iris", return_X_S_y=True)
    return X, make_partial_labels(y, p=0.8, r=1, random_state=0), y


@pytest.fixture(scope="module")
def fitted(iris):
    X, S, _ = iris
    return make_pipeline(StandardScaler(), SPPLL(C_start=1e-5)).fit(X, S)


def result(method, dataset, p, r, accuracy, **parameters):
    return {
        "method": method,
        "series": method.partition(", C")[0],
        "dataset": dataset,
        "p": p,
        "r": r,
        "parameters": parameters,
        "accuracy": accuracy,
    }


def frame(results):
    return pd.DataFrame(results).astype({"p": float, "r": "Int64"})


RESULTS = frame(
    [
        result("ours", "glass", 0.5, 1, 0.7),
        result("ours", "glass", 0.1, 1, 0.8),
        result("ours", "glass", 0.1, 1, 0.9),
        result("theirs", "glass", 0.1, 1, 0.6),
        result("ours", "glass", 0.1, 2, 0.1),
        result("ours", "lost", None, None, 0.2),
    ]
)


def test_accuracy_over_ambiguity_averages_the_right_results(ax):
    display = AccuracyOverAmbiguityDisplay.from_results(RESULTS, data="glass", r=1)
    ours, theirs = display.curves
    assert (ours.label, ours.x.tolist(), ours.mean.tolist()) == (
        "ours",
        [0.1, 0.5],
        pytest.approx([0.85, 0.7]),
    )
    assert ours.std.tolist() == pytest.approx([np.std([0.8, 0.9], ddof=1), np.nan], nan_ok=True)
    assert theirs.mean.tolist() == [0.6]
    display.plot(ax, highlight="ours", band=True)
    assert display.ax_ is ax
    drawn = {line.get_label(): line for line in ax.get_lines()}
    assert drawn["ours"].get_ydata().tolist() == ours.mean.tolist()
    assert drawn["ours"].get_linewidth() > drawn["theirs"].get_linewidth()
    assert drawn["ours"].get_marker() != drawn["theirs"].get_marker()
    assert ax.get_title() == "glass, r = 1"
    other = AccuracyOverAmbiguityDisplay.from_results(RESULTS, data="glass", r=2)
    assert other.curves[0].mean.tolist() == [0.1]


def test_accuracy_over_ambiguity_asks_for_what_is_missing():
    with pytest.raises(ValueError, match=r"results for r = \[1, 2\]; choose one"):
        AccuracyOverAmbiguityDisplay.from_results(RESULTS, data="glass")
    with pytest.raises(ValueError, match=r"'lost' has results for r = \[\]"):
        AccuracyOverAmbiguityDisplay.from_results(RESULTS, data="lost")
    with pytest.raises(ValueError, match="metric: 'f1' was not measured"):
        AccuracyOverAmbiguityDisplay.from_results(RESULTS, data="glass", r=1, metric="f1")


@pytest.mark.parametrize(("values", "scale"), [([0.01, 1, 100], "log"), ([0.2, 0.6], "linear")])
def test_sensitivity_has_an_axis_that_fits_the_parameter(ax, values, scale):
    results = frame(
        result(f"SP-PLL, C={C}", data, None, None, C / 100, C=C)
        for C in values
        for data in ("lost", "msrcv2")
    )
    display = SensitivityDisplay.from_results(results, parameter="C")
    assert [curve.label for curve in display.curves] == ["lost", "msrcv2"]
    assert display.plot(ax).ax_.get_xscale() == scale
    one = SensitivityDisplay.from_results(results, parameter="C", data="lost")
    assert [(curve.label, curve.x.tolist()) for curve in one.curves] == [("SP-PLL", values)]
    with pytest.raises(ValueError, match="in which 'gamma' varies"):
        SensitivityDisplay.from_results(results, parameter="gamma")


def test_the_curriculum_ends_with_the_labels_decided(fitted, iris, ax):
    _, _, y = iris
    display = CurriculumDisplay.from_estimator(fitted, y_true=y).plot(ax)
    method = fitted[-1]
    assert len(display.right) == method.n_iter_
    admitted = method.labeled_iter_ >= 0
    assert display.right[-1] == np.mean(admitted & (method.transduction_ == y))
    assert display.wrong[-1] == np.mean(admitted & (method.transduction_ != y))
    assert np.all(np.diff(display.admitted) >= 0)
    without_truth = CurriculumDisplay.from_estimator(fitted).plot(ax)
    assert without_truth.admitted.tolist() == [record["admitted"] for record in method.history_]
    with pytest.raises(ValueError, match="for 150 training examples"):
        CurriculumDisplay.from_estimator(fitted, y_true=y[:5])


def test_the_objective_of_every_update(fitted, ax):
    display = ObjectiveTraceDisplay.from_estimator(fitted).plot(ax)
    history = fitted[-1].history_
    assert len(display.values) == sum(len(record["trace"]) for record in history)
    assert display.values[display.stages[1]] == history[1]["trace"][0]
    assert (ax.get_xlabel(), ax.get_yscale()) == ("update", "log")


@pytest.mark.parametrize(
    ("method", "name"), [(LSBCMM(max_iter=3, tol=1e9), "lower bound"), (CLPL(), "objective")]
)
def test_methods_name_what_they_follow(iris, ax, method, name):
    X, S, _ = iris
    display = ObjectiveTraceDisplay.from_estimator(method.fit(X, S)).plot(ax)
    assert (ax.get_ylabel(), len(display.values)) == (name, len(method.history_))


def test_methods_without_a_history_are_refused(iris):
    X, S, _ = iris
    with pytest.raises(ValueError, match="PLKNN has no history of objective"):
        ObjectiveTraceDisplay.from_estimator(PLKNN().fit(X, S))
    with pytest.raises(ValueError, match="CLPL has no history of admitted"):
        CurriculumDisplay.from_estimator(CLPL().fit(X, S))


def test_confidences_of_ambiguous_examples(fitted, iris, ax):
    _, S, y = iris
    display = ConfidenceHistogramDisplay.from_estimator(fitted, y_true=y).plot(ax)
    method = fitted[-1]
    assert len(display.confidences) == np.sum(S.sizes > 1)
    dense = method.label_distributions_.toarray()
    decided = dense[np.arange(len(y)), np.searchsorted(method.classes_, method.transduction_)]
    assert display.confidences.tolist() == decided[S.sizes > 1].tolist()
    assert display.right.tolist() == (method.transduction_ == y)[S.sizes > 1].tolist()
    assert sum(patch.get_height() for patch in ax.patches) == pytest.approx(
        len(display.confidences)
    )
    assert ConfidenceHistogramDisplay.from_estimator(fitted).plot().right is None


def test_the_confusion_of_an_annotator(ax):
    found = aggregate([1, 1, 1, 2, 2, 2], ["ann", "bob", "cy"] * 2, list("xxyyyy"))
    display = AnnotatorConfusionDisplay.from_aggregation(found, "cy").plot(ax)
    np.testing.assert_allclose(display.confusion, found.confusions[2])
    written = [float(text.get_text()) for text in ax.texts]
    np.testing.assert_allclose(written, found.confusions[2].ravel(), atol=0.005)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["x", "y"]
    assert ax.get_title().startswith("cy: 2 votes")
    with pytest.raises(ValueError, match="annotator: 'dan' gave no vote"):
        AnnotatorConfusionDisplay.from_aggregation(found, "dan")


def test_the_ambiguity_of_labels(ax):
    S = [{"cow", "grass"}, {"cow", "grass", "sky"}, {"sky"}, {"sky", "tree"}, {"tree"}] * 10
    diagnosis = diagnose(S)
    display = AmbiguityDisplay.from_diagnosis(diagnosis).plot(ax, max_labels=3)
    drawn = [label.get_text() for label in ax.get_yticklabels()]
    assert drawn[:2] == ["cow: grass", "grass: cow"]
    assert len(drawn) == 3
    (line,) = (line for line in ax.lines if line.get_marker() == "o")
    assert line.get_xdata().tolist() == [each.share for each in display.ambiguity[:3]]
    lows = [each.low for each in display.ambiguity]
    assert lows == sorted(lows, reverse=True)
    assert len(lows) == len(diagnosis.ambiguity)


def test_the_weights_of_a_mixture(ax):
    X, S, _ = make_partial_classification(60, 4, 3, random_state=0)
    mixture = StackedCandidates([("near", PLKNN()), ("linear", CLPL())], final="equal").fit(X, S)
    display = MixtureWeightsDisplay.from_estimator(mixture).plot(ax)
    assert display.names == ["near", "linear"]
    assert [bar.get_width() for bar in ax.patches] == mixture.weights_.tolist() == [0.5, 0.5]
    assert ax.get_title() == "weights by equal"


def test_the_critical_difference_diagram_names_everyone(ax):
    rows = [{"a": 4, "b": 3, "c": 2, "d": 1}, {"a": 4, "b": 2, "c": 3, "d": 1}]
    scores = {str(i): rows[i % 2] for i in range(30)}
    CriticalDifferenceDisplay.from_scores(scores).plot(ax)
    texts = {text.get_text() for text in ax.texts}
    assert {"a  1.00", "b  2.50", "2.50  c", "4.00  d", "critical difference 0.86"} <= texts
    bars = [line for line in ax.get_lines() if line.get_color() == COLORS[0]]
    assert [bar.get_xdata()[0] < 2.5 < bar.get_xdata()[-1] for bar in bars] == [True]


def test_styles_tell_methods_apart():
    styles = method_styles(str(i) for i in range(25))
    looks = {(look["color"], look["marker"], look["linestyle"]) for look in styles.values()}
    assert len(looks) == 25
    assert len(set(COLORS)) == len(set(MARKERS)) == 10


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'skpll\[plot\]'"):
        ConfidenceHistogramDisplay([0.5]).plot()


def test_accuracy_over_time_is_a_mean_over_data_sets():
    results = pd.DataFrame(
        {
            "method": ["a", "a", "a", "a", "b", "b", "c"],
            "case": ["x", "x", "y", "y", "x", "y", "x"],
            "fit_seconds": [1.0, 3.0, 8.0, 8.0, 0.0, 0.1, 1.0],
            "accuracy": [0.5, 0.7, 0.8, 1.0, 0.9, 0.2, 1.0],
        }
    )
    display = AccuracyOverTimeDisplay.from_results(results)
    assert display.methods == ["a", "b"]  # c lacks a data set
    np.testing.assert_allclose(display.scores, [(0.6 + 0.9) / 2, (0.9 + 0.2) / 2])
    np.testing.assert_allclose(display.seconds, [4.0, 0.01])
    display.plot(highlight="b")
    shown = {text.get_text(): text for text in display.ax_.texts}
    assert set(shown) == {"a", "b"}
    assert shown["b"].get_fontweight() == "bold"


def test_accuracy_over_time_in_a_part_of_a_figure():
    part, _ = pyplot.figure().subfigures(1, 2)
    AccuracyOverTimeDisplay(["a", "b"], [0.1, 2], [0.3, 0.4]).plot(part.subplots())
    with pytest.raises(ValueError, match="metric: 'zz' was not measured"):
        AccuracyOverTimeDisplay.from_results(pd.DataFrame({"method": ["a"]}), metric="zz")


def test_names_of_near_points_do_not_overlap():
    names = [f"method {number}" for number in range(6)]
    display = AccuracyOverTimeDisplay(names, np.ones(6), 0.8 + np.arange(6) / 1000).plot()
    display.figure_.canvas.draw()
    boxes = [text.get_window_extent() for text in display.ax_.texts]
    points = display.ax_.transData.transform(np.column_stack([display.seconds, display.scores]))
    for place, box in enumerate(boxes):
        assert not box.count_overlaps(boxes[:place])
        assert not box.count_contains(points)
