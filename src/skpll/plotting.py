"""Pictures, as display objects in scikit-learn's manner.

A display holds what is to be drawn; its class methods compute that from a fitted estimator
(``from_estimator``) or from the results of experiments (``from_results``), and `plot` draws it into
the axes given, or into new ones. The axes and the figure are then `ax_` and `figure_`. Needs
matplotlib: ``pip install 'skpll[plot]'``.

Colours stay apart for the colour-blind, and every method has a marker of its own besides.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._docs import documented
from ._extra import need

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from .crowd import Aggregation
    from .diagnosis import Ambiguity, Diagnosis

__all__ = ["AccuracyOverAmbiguityDisplay", "AccuracyOverTimeDisplay", "AmbiguityDisplay"]
__all__ += [
    "AnnotatorConfusionDisplay",
    "ConfidenceHistogramDisplay",
    "CurriculumDisplay",
    "Curve",
    "MixtureWeightsDisplay",
]
__all__ += ["ObjectiveTraceDisplay", "SensitivityDisplay", "method_styles"]


def __dir__() -> list[str]:
    return __all__


COLORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"]
COLORS += ["#56B4E9", "#7F7F7F", "#AA4499", "#999933", "#44AA99"]
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
RIGHT, WRONG, NEUTRAL = COLORS[0], COLORS[1], COLORS[6]

MIN_SECONDS = 1e-3
"""Shorter fits are shown at this time."""


def method_styles(methods: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the colour and the marker of each method.

    Parameters
    ----------
    methods : iterable of str
        The methods, in the order in which colours are handed out.

    Returns
    -------
    dict from method to keyword arguments of matplotlib
        After ten methods colours come again, with broken lines.
    """
    return {
        method: {
            "color": COLORS[place % len(COLORS)],
            "marker": MARKERS[place % len(MARKERS)],
            "linestyle": ("-", "--", ":")[place // len(COLORS) % 3],
        }
        for place, method in enumerate(dict.fromkeys(methods))
    }


@dataclass(frozen=True)
class Curve:
    """A line through means, with their standard deviations.

    Attributes
    ----------
    label : str
        The method.
    x : array of shape (m,)
        Where the means were taken, ascending.
    mean, std : array of shape (m,)
        Mean and standard deviation of the scores there; a single score has no deviation (NaN).
    """

    label: str
    x: NDArray[np.float64]
    mean: NDArray[np.float64]
    std: NDArray[np.float64]


@dataclass(eq=False, repr=False, kw_only=True)
class Display:
    """What all displays share: a title, and where they were drawn."""

    title: str = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        documented(cls)

    def _axes(self, ax: Axes | None, grid: Literal["both", "x", "y", ""] = "both") -> Axes:
        """Return the axes to draw into, with the title and a grid."""
        if ax is None:
            plt = need("matplotlib.pyplot", "plots need matplotlib", "plot")
            _, ax = plt.subplots(layout="constrained")
        self.ax_: Axes = ax
        self.figure_: Figure = ax.get_figure(root=True)  # type: ignore[assignment]
        ax.set_title(self.title)
        if grid:
            ax.grid(alpha=0.25, axis=grid)
        return ax


@dataclass(eq=False, repr=False)
class _CurvesDisplay(Display):
    """Lines of methods over something, whose name is `x_label`."""

    x_label = ""

    curves: Sequence[Curve]
    metric: str = field(default="accuracy", kw_only=True)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        styles: Mapping[str, Mapping[str, Any]] | None = None,
        highlight: str | None = None,
        legend: bool = True,
        band: bool = False,
    ) -> Self:
        """Draw the lines, on a logarithmic axis if their places span two orders of magnitude.

        <<Parameters: ax>>
        styles : mapping from method to keyword arguments of matplotlib, optional
            By default `method_styles` of the methods here; give it for the same looks in
            several pictures.
        highlight : str, optional
            A method to draw with a thicker line, above the others.
        legend : bool, default=True
            Whether to name the methods beside the axes.
        band : bool, default=False
            Whether to shade a standard deviation around each line.

        Returns
        -------
        self
        """
        ax = self._axes(ax)
        looks = method_styles(curve.label for curve in self.curves) if styles is None else styles
        thin = {"linewidth": 1.3, "markersize": 4.5, "zorder": 2}
        thick = {"linewidth": 2.4, "markersize": 6, "zorder": 3}
        for curve in self.curves:
            look = looks[curve.label]
            weight: dict[str, Any] = thick if curve.label == highlight else thin
            ax.plot(curve.x, curve.mean, label=curve.label, **weight, **look)
            if band:
                low, high = curve.mean - curve.std, curve.mean + curve.std
                ax.fill_between(curve.x, low, high, color=look["color"], alpha=0.15, linewidth=0)
        places = np.concatenate([curve.x for curve in self.curves])
        if 0 < 100 * places.min() <= places.max():
            ax.set_xscale("log")
        ax.set(xlabel=self.x_label, ylabel=self.metric.replace("_", " "))
        if legend:
            ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        return self


class AccuracyOverAmbiguityDisplay(_CurvesDisplay):
    """Accuracy over p, the share of the training examples that have false candidates.

    Parameters
    ----------
    curves : sequence of Curve
        One line a method.
    <<title, metric>>

    Examples
    --------
    >>> import numpy as np
    >>> from skpll.plotting import AccuracyOverAmbiguityDisplay, Curve
    >>> line = Curve("SP-PLL", np.array([0.1, 0.7]), np.array([0.9, 0.8]), np.zeros(2))
    >>> display = AccuracyOverAmbiguityDisplay([line], title="glass").plot()
    >>> display.ax_.get_xlabel()
    'p, share of examples with false candidates'
    """

    x_label = "p, share of examples with false candidates"

    @classmethod
    def from_results(
        cls, results: DataFrame, *, data: str, r: int | None = None, metric: str = "accuracy"
    ) -> Self:
        """Average results over folds and seeds.

        Parameters
        ----------
        results : DataFrame
            As `skpll.experiments.Store.results` gives it; others than those asked for are passed
            over.
        data : str
            The data set.
        r : int, optional
            Number of false candidates; needed where the results have several.
        metric : str, default="accuracy"
            Which of the results' metrics.

        Returns
        -------
        display
        """
        wanted = results[(results["dataset"] == data) & results["p"].notna()]
        if r is not None:
            wanted = wanted[wanted["r"] == r]
        there = sorted(set(wanted["r"].tolist()))
        if len(there) != 1:
            raise ValueError(f"data, r: {data!r} has results for r = {there}; choose one.")
        curves = mean_curves(wanted, "method", "p", metric)
        return cls(curves, title=f"{data}, r = {there[0]}", metric=metric)


@dataclass(eq=False, repr=False)
class SensitivityDisplay(_CurvesDisplay):
    """Accuracy over a parameter of a method.

    Parameters
    ----------
    curves : sequence of Curve
        One line for each data set or method.
    parameter : str
        What is varied.
    <<title, metric>>

    Examples
    --------
    >>> import numpy as np
    >>> from skpll.plotting import Curve, SensitivityDisplay
    >>> line = Curve("SP-PLL", np.array([0.01, 1.0]), np.array([0.8, 0.9]), np.zeros(2))
    >>> display = SensitivityDisplay([line], parameter="C").plot()
    >>> display.ax_.get_xlabel(), display.ax_.get_xscale()
    ('C', 'log')
    """

    parameter: str = field(kw_only=True)

    def __post_init__(self) -> None:
        self.x_label = self.parameter

    @classmethod
    def from_results(
        cls,
        results: DataFrame,
        *,
        parameter: str,
        data: str | None = None,
        metric: str = "accuracy",
    ) -> Self:
        """Average results over folds, for each value of a numerical parameter.

        Parameters
        ----------
        results : DataFrame
            As `skpll.experiments.Store.results` gives it; results without this parameter are
            passed over.
        parameter : str
            The parameter.
        data : str, optional
            A data set, for a line a method; by default there is a line for each data set.
        metric : str, default="accuracy"
            Which of the results' metrics.

        Returns
        -------
        display
        """
        values = results["parameters"].map(lambda given: given.get(parameter, np.nan))
        wanted = results.assign(value=values.astype(float)).dropna(subset="value")
        if data is not None:
            wanted = wanted[wanted["dataset"] == data]
        if wanted.empty:
            raise ValueError(f"parameter: there are no results in which {parameter!r} varies.")
        curves = mean_curves(wanted, "dataset" if data is None else "series", "value", metric)
        return cls(curves, parameter=parameter, title=data or "", metric=metric)


@dataclass(eq=False, repr=False)
class AccuracyOverTimeDisplay(Display):
    """Accuracy of methods over the processor time of a fit.

    Parameters
    ----------
    methods : sequence of str
        The methods.
    seconds, scores : array-like of shape (number of methods,)
        The time of a fit, and what it achieved.
    <<title, metric>>

    Examples
    --------
    >>> from skpll.plotting import AccuracyOverTimeDisplay
    >>> display = AccuracyOverTimeDisplay(["PL-KNN", "PL-LOO"], [0.01, 1.2], [0.39, 0.84]).plot()
    >>> display.ax_.get_xscale()
    'log'
    """

    methods: Sequence[str]
    seconds: ArrayLike
    scores: ArrayLike
    metric: str = field(default="accuracy", kw_only=True)

    @classmethod
    def from_results(cls, results: DataFrame, *, metric: str = "accuracy") -> Self:
        """Average results over folds and data sets; methods that lack a data set are left out.

        Parameters
        ----------
        results : DataFrame
            As `skpll.experiments.Store.results` gives it.
        metric : str, default="accuracy"
            Which of the results' metrics.

        Returns
        -------
        display
            Times are geometric means over the data sets.
        """
        _check_measured(results, metric)
        means: Any = results.groupby(["method", "case"], sort=False)[["fit_seconds", metric]].mean()
        times, scores = (means[name].unstack().dropna() for name in ("fit_seconds", metric))
        seconds = np.exp(np.log(times.clip(lower=MIN_SECONDS)).mean(axis=1))
        found = scores.mean(axis=1).to_frame("score").assign(seconds=seconds).dropna()
        return cls(list(found.index), found["seconds"], found["score"], metric=metric)

    def plot(self, ax: Axes | None = None, *, highlight: str | None = None) -> Self:
        """Draw a point for each method, with its name; names are moved apart.

        <<Parameters: ax>>
        highlight : str, optional
            A method whose name is bold.

        Returns
        -------
        self
        """
        ax = self._axes(ax)
        seconds, scores = np.asarray(self.seconds), np.asarray(self.scores)
        ax.scatter(seconds, scores, s=18, color=COLORS[0], zorder=2)
        ax.set(xscale="log", xlabel="processor seconds of a fit", ylabel=self.metric)
        ax.margins(x=0.25, y=0.06)
        texts = [
            ax.annotate(
                name,
                place,
                (0, 0),
                textcoords="offset points",
                fontsize=7,
                fontweight="bold" if name == highlight else "normal",
                va="center",
                arrowprops={"arrowstyle": "-", "linewidth": 0.4, "color": NEUTRAL, "shrinkA": 0},
            )
            for name, place in zip(self.methods, zip(seconds, scores, strict=True), strict=True)
        ]
        _move_apart(ax, texts)
        return self


def _move_apart(ax: Axes, texts: Sequence[Any]) -> None:
    """Put each name where it covers no point and no other name, as near to its point as it can."""
    figure: Any = ax.get_figure(root=True)
    figure.draw_without_rendering()  # the layout is settled by drawing
    per_point = figure.dpi / 72
    points = ax.transData.transform([text.xy for text in texts])
    taken = [(x - 3, y - 3, x + 3, y + 3) for x, y in points]
    for text, (x, y) in zip(texts, points, strict=True):
        box = text.get_window_extent()
        for away, angle in product(range(7, 70, 7), range(0, 360, 30)):
            right, up = away * np.cos(np.radians(angle)), away * np.sin(np.radians(angle))
            left = x + right * per_point - box.width * (1 - np.cos(np.radians(angle))) / 2
            bottom = y + up * per_point - box.height / 2
            wanted = (left, bottom, left + box.width, bottom + box.height)
            if not any(_overlap(wanted, other) for other in taken):
                break
        text.set_position(((left - x) / per_point, up))
        taken.append(wanted)


def _overlap(first: tuple[float, ...], second: tuple[float, ...]) -> bool:
    return (
        first[0] < second[2]
        and second[0] < first[2]
        and first[1] < second[3]
        and second[1] < first[3]
    )


@dataclass(eq=False, repr=False)
class CurriculumDisplay(Display):
    """How self-paced learning lets the examples in, stage by stage.

    Parameters
    ----------
    admitted : array-like of shape (stages,)
        Share of the training examples admitted.
    right, wrong : array-like of shape (stages,), optional
        Shares admitted with the right and with a wrong label, where the truth is known.
    mean_weight : array-like of shape (stages,), optional
        Mean weight of the examples.
    <<title>>

    Examples
    --------
    >>> from skpll import SPPLL
    >>> from skpll.datasets import load_dataset, make_partial_labels
    >>> from skpll.plotting import CurriculumDisplay
    >>> X, _, y = load_dataset("iris", return_X_S_y=True)
    >>> model = SPPLL().fit(X, make_partial_labels(y, p=0.8, r=1, random_state=0))
    >>> display = CurriculumDisplay.from_estimator(model, y_true=y).plot()
    >>> display.ax_.get_xlabel()
    'stage'
    """

    admitted: ArrayLike
    right: ArrayLike | None = None
    wrong: ArrayLike | None = None
    mean_weight: ArrayLike | None = None

    @classmethod
    def from_estimator(cls, estimator: object, *, y_true: ArrayLike | None = None) -> Self:
        """Read the curriculum of a fitted `SPPLL`.

        Parameters
        ----------
        estimator : fitted SPPLL
            Has `history_`, `labeled_iter_` and `transduction_`.
        y_true : array-like of shape (n,), optional
            The true labels of its training examples. An example then counts from the stage in
            which it was first admitted, as right or wrong by the label finally decided.

        Returns
        -------
        display
        """
        method = _last_step(estimator)
        history, title = _history(method, "admitted"), type(method).__name__
        if y_true is None:
            admitted, weights = (
                np.array([record[key] for record in history]) for key in ("admitted", "mean_weight")
            )
            return cls(admitted, mean_weight=weights, title=title)
        right, since = _right(method, y_true), method.labeled_iter_
        shares = [
            np.cumsum(np.bincount(since[kind & (since >= 0)], minlength=len(history))) / len(right)
            for kind in (right, ~right)
        ]
        return cls(shares[0] + shares[1], right=shares[0], wrong=shares[1], title=title)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the shares over the stages.

        <<Parameters: ax>>

        Returns
        -------
        self
        """
        ax = self._axes(ax)
        stages = np.arange(1, np.size(self.admitted) + 1)
        if self.right is not None and self.wrong is not None:
            names, colors = ["admitted, label right", "admitted, label wrong"], [RIGHT, WRONG]
            ax.stackplot(stages, self.right, self.wrong, labels=names, colors=colors, alpha=0.75)
        else:
            ax.plot(stages, self.admitted, color=RIGHT, label="admitted")
        if self.mean_weight is not None:
            ink = ax.xaxis.label.get_color()
            ax.plot(stages, self.mean_weight, color=ink, linestyle="--", label="mean weight")
        ax.set(xlabel="stage", ylabel="share of the examples")
        ax.set(xlim=(1, max(len(stages), 2)), ylim=(0, 1.02))
        ax.legend(loc="lower right", framealpha=0.8)
        return self


@dataclass(eq=False, repr=False)
class ObjectiveTraceDisplay(Display):
    """What a method minimizes or maximizes, or how much it still changes, over its iterations.

    Parameters
    ----------
    values : array-like of shape (iterations,)
        The objective.
    stages : array-like of int, optional
        Where stages begin: there the objective itself changes, and may jump.
    name : str, default="objective"
        What the values are.
    <<title>>

    Examples
    --------
    >>> from skpll import PLLOO
    >>> from skpll.plotting import ObjectiveTraceDisplay
    >>> X = [[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]]
    >>> S = [{"a"}, {"a", "b"}, {"a", "b"}, {"b"}, {"a", "b"}, {"b"}]
    >>> display = ObjectiveTraceDisplay.from_estimator(PLLOO().fit(X, S)).plot()
    >>> display.ax_.get_ylabel()
    'change'
    """

    NAMES: ClassVar = ("objective", "lower_bound", "change", "gap")

    values: ArrayLike
    stages: ArrayLike = ()
    name: str = "objective"

    @classmethod
    def from_estimator(cls, estimator: object) -> Self:
        """Read the history of a fitted method.

        Parameters
        ----------
        estimator : fitted method with `history_`
            For instance `SPPLL`, whose objective is drawn after every single update.

        Returns
        -------
        display
        """
        method = _last_step(estimator)
        history, title = _history(method, *cls.NAMES), type(method).__name__
        name = next(name for name in cls.NAMES if name in history[0])
        if "trace" not in history[0]:
            return cls(np.array([record[name] for record in history]), name=name, title=title)
        traces = [record["trace"] for record in history]
        stages = np.cumsum([0, *map(len, traces[:-1])])
        return cls(np.concatenate(traces), stages=stages, name=name, title=title)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the values over the iterations.

        <<Parameters: ax>>

        Returns
        -------
        self
        """
        ax = self._axes(ax)
        values, stages = np.asarray(self.values), np.asarray(self.stages)
        for place in stages:
            ax.axvline(place + 1, color=NEUTRAL, alpha=0.25, linewidth=0.6)
        iterations = np.arange(1, len(values) + 1)
        ax.plot(iterations, values, color=COLORS[0], marker=".", markersize=3, linewidth=1)
        if values.min() > 0 and values.max() > 100 * values.min():
            ax.set_yscale("log")
        ax.set(xlabel="update" if len(stages) else "iteration", ylabel=self.name.replace("_", " "))
        return self


@dataclass(eq=False, repr=False)
class ConfidenceHistogramDisplay(Display):
    """How sure a method is of the labels that it decided.

    Parameters
    ----------
    confidences : array-like of shape (m,)
        The confidence in the label decided, of the examples with several candidates.
    right : bool array-like of shape (m,), optional
        Whether that label is the true one.
    <<title>>

    Examples
    --------
    >>> from skpll import PLLOO
    >>> from skpll.plotting import ConfidenceHistogramDisplay
    >>> X = [[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]]
    >>> S = [{"a"}, {"a", "b"}, {"a", "b"}, {"b"}, {"a", "b"}, {"b"}]
    >>> display = ConfidenceHistogramDisplay.from_estimator(PLLOO().fit(X, S)).plot()
    >>> len(display.confidences)  # those with several candidates
    3
    """

    confidences: ArrayLike
    right: ArrayLike | None = None

    @classmethod
    def from_estimator(cls, estimator: object, *, y_true: ArrayLike | None = None) -> Self:
        """Read the confidences of a fitted method.

        Parameters
        ----------
        estimator : fitted method
            Has `label_distributions_` and `transduction_`. Examples with a single candidate are
            left out: their label is certain.
        y_true : array-like of shape (n,), optional
            The true labels of its training examples.

        Returns
        -------
        display
        """
        method = _last_step(estimator)
        found = method.label_distributions_
        ambiguous = np.diff(found.indptr) > 1
        columns = np.searchsorted(method.classes_, method.transduction_)
        confidences = np.asarray(found[np.arange(len(columns)), columns]).ravel()
        right = None if y_true is None else _right(method, y_true)[ambiguous]
        return cls(confidences[ambiguous], right=right, title=type(method).__name__)

    def plot(self, ax: Axes | None = None, *, bins: int = 20) -> Self:
        """Draw the histogram, stacked by right and wrong where the truth is known.

        <<Parameters: ax>>
        bins : int, default=20
            Number of bars between 0 and 1.

        Returns
        -------
        self
        """
        ax = self._axes(ax, "y")
        confidences = np.asarray(self.confidences)
        if self.right is None:
            ax.hist(confidences, bins, range=(0, 1), color=RIGHT)
        else:
            right = np.asarray(self.right, dtype=bool)
            parts = [confidences[right], confidences[~right]]
            names = [f"label right ({len(parts[0])})", f"label wrong ({len(parts[1])})"]
            ax.hist(parts, bins, range=(0, 1), stacked=True, color=[RIGHT, WRONG], label=names)
            ax.legend(loc="upper left", framealpha=0.8)
        ax.set(xlim=(0, 1), xlabel="confidence in the label decided", ylabel="examples")
        return self


@dataclass(eq=False, repr=False)
class AnnotatorConfusionDisplay(Display):
    """What an annotator says about items of each class.

    Parameters
    ----------
    confusion : array-like of shape (q, q)
        The share of each answer (column) for items of each class (row).
    classes : sequence of length q
        The classes.
    <<title>>

    Examples
    --------
    >>> from skpll.crowd import aggregate
    >>> from skpll.plotting import AnnotatorConfusionDisplay
    >>> found = aggregate([1, 1, 2, 2, 3, 3], ["ann", "bob"] * 3, list("xxyyxy"))
    >>> display = AnnotatorConfusionDisplay.from_aggregation(found, "bob").plot()
    >>> display.confusion.shape
    (2, 2)
    """

    confusion: ArrayLike
    classes: Sequence[object]

    @classmethod
    def from_aggregation(cls, aggregation: Aggregation, annotator: object) -> Self:
        """Read the confusion of one annotator.

        Parameters
        ----------
        aggregation : skpll.crowd.Aggregation
            Labels from votes.
        annotator : object
            The annotator's name, as in the votes.

        Returns
        -------
        display
        """
        names = aggregation.annotators.tolist()
        if annotator not in names:
            raise ValueError(f"annotator: {annotator!r} gave no vote.")
        place = names.index(annotator)
        votes, right = aggregation.votes.votes_per_annotator[place], aggregation.quality[place]
        title = f"{annotator}: {votes} votes, estimated to be right {right:.2f}"
        return cls(aggregation.confusions[place], aggregation.classes.tolist(), title=title)

    def plot(self, ax: Axes | None = None, *, max_written: int = 12) -> Self:
        """Draw the confusion; its numbers too, if there are few classes.

        <<Parameters: ax>>
        max_written : int, default=12
            Up to this number of classes the shares are written into the cells.

        Returns
        -------
        self
        """
        ax = self._axes(ax, "")
        q = len(self.classes)
        confusion = np.asarray(self.confusion)
        image = ax.imshow(confusion, cmap="Blues", vmin=0, vmax=1)
        self.figure_.colorbar(image, ax=ax, label="share of the votes")
        for j, k in np.ndindex(q, q) if q <= max_written else ():
            share = confusion[j, k]
            color = "white" if share > 0.5 else "black"
            ax.text(k, j, f"{share:.2f}", ha="center", va="center", color=color)
        names = [str(name) for name in self.classes]
        ax.set_xticks(range(q), names, rotation=45 if q > 5 else 0)
        ax.set_yticks(range(q), names)
        ax.set(xlabel="the annotator says", ylabel="class of the item")
        return self


@dataclass(eq=False, repr=False)
class AmbiguityDisplay(Display):
    """How often another label occurs together with each label.

    Parameters
    ----------
    ambiguity : sequence of skpll.diagnosis.Ambiguity
        For each label, the one that occurs with it most often, with an interval of its share.
    <<title>>

    Examples
    --------
    >>> from skpll import diagnose
    >>> from skpll.plotting import AmbiguityDisplay
    >>> S = [{"cow", "grass"}, {"cow", "grass", "sky"}, {"sky"}, {"sky", "tree"}, {"tree"}] * 10
    >>> display = AmbiguityDisplay.from_diagnosis(diagnose(S)).plot()
    >>> display.ambiguity[0].share
    1.0
    """

    ambiguity: Sequence[Ambiguity]

    @classmethod
    def from_diagnosis(cls, diagnosis: Diagnosis) -> Self:
        """Read the ambiguity of each label.

        Parameters
        ----------
        diagnosis : skpll.diagnosis.Diagnosis
            What `skpll.diagnose` found.

        Returns
        -------
        display
        """
        return cls(sorted(diagnosis.ambiguity, key=lambda each: -each.low))

    def plot(self, ax: Axes | None = None, *, max_labels: int = 20) -> Self:
        """Draw the share of each label with its 95 % interval, in the order of the labels.

        <<Parameters: ax>>
        max_labels : int, default=20
            Number of labels that are drawn.

        Returns
        -------
        self
        """
        ax = self._axes(ax, "x")
        shown = self.ambiguity[:max_labels]
        shares = np.array([each.share for each in shown])
        limits = np.array([(each.low, each.high) for each in shown]).reshape(-1, 2)
        errors = np.abs(limits.T - shares)
        ax.errorbar(shares, range(len(shown)), xerr=errors, fmt="o", color=COLORS[0], capsize=3)
        ax.set_yticks(range(len(shown)), [f"{each.label}: {each.other}" for each in shown])
        ax.invert_yaxis()
        ax.set(xlim=(-0.02, 1.02), xlabel="share of the sets with the label")
        ax.set_ylabel("label: the one that comes along")
        return self


@dataclass(eq=False, repr=False)
class MixtureWeightsDisplay(Display):
    """The weight of each method in a mixture.

    Parameters
    ----------
    names : sequence of str
        The names of the methods.
    weights : array-like of shape (number of methods,)
        Their weights.
    <<title>>

    Examples
    --------
    >>> from skpll.plotting import MixtureWeightsDisplay
    >>> MixtureWeightsDisplay(["near", "linear"], [0.3, 0.7]).plot().weights
    [0.3, 0.7]
    """

    names: Sequence[str]
    weights: ArrayLike

    @classmethod
    def from_estimator(cls, estimator: object) -> Self:
        """Read the weights of a fitted `StackedCandidates`.

        Parameters
        ----------
        estimator : StackedCandidates
            The fitted mixture, or a pipeline that ends in it.

        Returns
        -------
        display
        """
        mixture = _last_step(estimator)
        names = [name for name, _ in mixture.estimators]
        return cls(names, mixture.weights_, title=f"weights by {mixture.final}")

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw a bar for each method.

        <<Parameters: ax>>

        Returns
        -------
        self
        """
        ax = self._axes(ax, "")
        bars = ax.barh(self.names, self.weights, color=COLORS[0])
        ax.bar_label(bars, fmt="%.2f", padding=3)
        ax.invert_yaxis()
        ax.set(xlim=(0, 1.1), xlabel="weight")
        return self


def __getattr__(name: str) -> object:
    """Find what has moved; its old place warns."""
    if name == "CriticalDifferenceDisplay":
        place = "skpll.experiments.comparison"
        message = f"skpll.plotting.{name} has moved to {place}; the old name ends with 0.3."
        warnings.warn(message, FutureWarning, stacklevel=2)
        return getattr(import_module(place), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _check_measured(results: DataFrame, metric: str) -> None:
    if metric not in results:
        raise ValueError(f"metric: {metric!r} was not measured.")


def mean_curves(results: DataFrame, line: str, place: str, metric: str) -> list[Curve]:
    """Average the results that fall on the same place of the same line."""
    _check_measured(results, metric)
    curves = []
    for label, values in results.groupby(line, sort=False):
        points = values.groupby(place)[metric].agg(["mean", "std"])
        curves.append(Curve(str(label), points.index.to_numpy(float), *points.to_numpy().T))
    return curves


def _last_step(estimator: Any) -> Any:
    """Find the method at the end of a pipeline; anything else is the method itself."""
    return estimator[-1] if hasattr(estimator, "named_steps") else estimator


def _right(method: Any, y_true: ArrayLike) -> NDArray[np.bool_]:
    """Hold the labels decided against the truth."""
    truth = np.asarray(y_true)
    if truth.shape != method.transduction_.shape:
        n = len(method.transduction_)
        raise ValueError(f"y_true: shape {truth.shape} for {n} training examples.")
    return np.asarray(method.transduction_ == truth)


def _history(estimator: object, *keys: str) -> list[dict[str, Any]]:
    """Find the records of a method, which have to know one of the keys."""
    history = getattr(estimator, "history_", None)
    if not history or not any(key in history[0] for key in keys):
        name, wanted = type(estimator).__name__, " or ".join(keys)
        raise ValueError(f"estimator: {name} has no history of {wanted}, or is not fitted.")
    return list(history)
