"""Pictures, as display objects in scikit-learn's manner.

A display holds what is to be drawn; its class methods compute that from a fitted estimator
(``from_estimator``), from the results of experiments (``from_results``, ``from_store``) or from
scores, and `plot` draws it into the axes given, or into new ones. The axes and the figure are then
`ax_` and `figure_`. Needs matplotlib: ``pip install 'skpll[plot]'``.

Colours stay apart for the colour-blind, and every method has a marker of its own besides.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self, TypeAlias

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

__all__ = [
    "AccuracyOverAmbiguityDisplay",
    "AmbiguityDisplay",
    "AnnotatorConfusionDisplay",
    "ConfidenceHistogramDisplay",
    "CurriculumDisplay",
    "Curve",
    "MixtureWeightsDisplay",
    "ObjectiveTraceDisplay",
    "SensitivityDisplay",
    "method_styles",
]


def __dir__() -> list[str]:
    return __all__


COLORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"]
COLORS += ["#56B4E9", "#7F7F7F", "#AA4499", "#999933", "#44AA99"]
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
Trace: TypeAlias = Sequence[Mapping[str, Any]]
"""A record of each stage of a fit."""

METRICS = ("accuracy", "balanced_accuracy", "transductive_accuracy", "covering_rate")
RIGHT, WRONG, NEUTRAL = COLORS[0], COLORS[1], COLORS[6]


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


class Display:
    """What all displays share: where they were drawn."""

    ax_: Axes
    figure_: Figure

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        documented(cls)

    def _axes(self, ax: Axes | None) -> Axes:
        if ax is None:
            plt = need("matplotlib.pyplot", "plots need matplotlib", "plot")
            _, ax = plt.subplots(layout="constrained")
        assert ax is not None
        self.ax_ = ax
        self.figure_ = ax.get_figure(root=True)  # type: ignore[assignment]
        return ax


class _CurvesDisplay(Display):
    """Lines of methods over something.

    Parameters
    ----------
    curves : sequence of Curve
        One line a method.
    <<title, metric>>
    """

    x_label = ""

    def __init__(
        self, curves: Sequence[Curve], *, title: str = "", metric: str = "accuracy"
    ) -> None:
        self.curves = tuple(curves)
        self.title = title
        self.metric = metric

    def plot(
        self,
        ax: Axes | None = None,
        *,
        styles: Mapping[str, Mapping[str, Any]] | None = None,
        highlight: str | None = None,
        legend: bool = True,
        band: bool = False,
    ) -> Self:
        """Draw the lines.

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
        self._label(ax)
        if legend:
            ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        return self

    def _label(self, ax: Axes) -> None:
        ax.set(xlabel=self.x_label, ylabel=self.metric.replace("_", " "), title=self.title)
        ax.grid(alpha=0.25)


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
        several = sorted(set(wanted["r"].tolist()))
        if len(several) > 1:
            raise ValueError(f"r: {data} has results for r = {several}; choose one.")
        if wanted.empty:
            raise ValueError(f"data, r: there are no results on {data!r} with r = {r}.")
        curves = mean_curves(wanted, wanted["method"], wanted["p"], metric)
        return cls(curves, title=f"{data}, r = {several[0]}", metric=metric)

    @classmethod
    def from_store(cls, store: Any, *, experiment: str | None = None, **which: Any) -> Self:
        """Average what a store holds.

        Parameters
        ----------
        store : `skpll.experiments.Store`
            Where the results are.
        experiment : str, optional
            Of which experiment; by default all.
        **which
            `data`, `r` and `metric`, see `from_results`.

        Returns
        -------
        display
        """
        return cls.from_results(store.results(experiment), **which)


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

    def __init__(
        self, curves: Sequence[Curve], *, parameter: str, title: str = "", metric: str = "accuracy"
    ) -> None:
        super().__init__(curves, title=title, metric=metric)
        self.parameter = self.x_label = parameter

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
        kept = values.notna() & (True if data is None else results["dataset"] == data)
        if not kept.any():
            raise ValueError(f"parameter: there are no results in which {parameter!r} varies.")
        wanted = results[kept]
        lines = wanted["dataset" if data is None else "series"]
        return cls(
            mean_curves(wanted, lines, values[kept].astype(float), metric),
            parameter=parameter,
            title=data or "",
            metric=metric,
        )

    def _label(self, ax: Axes) -> None:
        super()._label(ax)
        values = np.unique(np.concatenate([curve.x for curve in self.curves]))
        if values[0] > 0 and values[-1] / values[0] >= 100:
            ax.set_xscale("log")


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

    def __init__(
        self,
        admitted: ArrayLike,
        *,
        right: ArrayLike | None = None,
        wrong: ArrayLike | None = None,
        mean_weight: ArrayLike | None = None,
        title: str = "",
    ) -> None:
        self.admitted = np.asarray(admitted, dtype=float)
        self.right, self.wrong, self.mean_weight = (
            None if values is None else np.asarray(values, dtype=float)
            for values in (right, wrong, mean_weight)
        )
        self.title = title

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
            return cls.from_trace(history, title=title)
        right, since = _right(method, y_true), method.labeled_iter_
        shares = [
            np.cumsum(np.bincount(since[kind & (since >= 0)], minlength=len(history))) / len(right)
            for kind in (right, ~right)
        ]
        return cls(shares[0] + shares[1], right=shares[0], wrong=shares[1], title=title)

    @classmethod
    def from_trace(cls, trace: Trace, *, n: int | None = None, title: str = "") -> Self:
        """Read the records that an estimator or a store keeps of the stages of a fit.

        Parameters
        ----------
        trace : sequence of dict
            Has ``admitted`` and ``mean_weight``; from a store also ``admitted_right`` and
            ``admitted_wrong``, numbers of examples.
        n : int, optional
            Number of training examples; needed for those.
        <<title>>

        Returns
        -------
        display
        """
        columns = {
            key: np.array([record[key] for record in trace], dtype=float)
            for key in ("admitted", "mean_weight", "admitted_right", "admitted_wrong")
            if trace and all(key in record for record in trace)
        }
        if "admitted" not in columns:
            raise ValueError("trace: expected one record a stage, with the share `admitted`.")
        known = n is not None and "admitted_right" in columns
        return cls(
            columns["admitted"],
            right=columns["admitted_right"] / n if known else None,
            wrong=columns["admitted_wrong"] / n if known else None,
            mean_weight=columns.get("mean_weight"),
            title=title,
        )

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the shares over the stages.

        <<Parameters: ax>>

        Returns
        -------
        self
        """
        ax = self._axes(ax)
        stages = np.arange(1, len(self.admitted) + 1)
        if self.right is not None and self.wrong is not None:
            names = ["admitted, label right", "admitted, label wrong"]
            shares = [self.right, self.wrong]
            ax.stackplot(stages, *shares, colors=[RIGHT, WRONG], labels=names, alpha=0.75)
        else:
            ax.plot(stages, self.admitted, color=RIGHT, label="admitted")
        if self.mean_weight is not None:
            ink = ax.xaxis.label.get_color()
            ax.plot(stages, self.mean_weight, color=ink, linestyle="--", label="mean weight")
        ax.set(xlabel="stage", ylabel="share of the examples", title=self.title)
        ax.set(xlim=(1, max(len(stages), 2)), ylim=(0, 1.02))
        ax.grid(alpha=0.25)
        ax.legend(loc="lower right", framealpha=0.8)
        return self


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

    NAMES = ("objective", "lower_bound", "change", "gap")

    def __init__(
        self, values: ArrayLike, *, stages: ArrayLike = (), name: str = "objective", title: str = ""
    ) -> None:
        self.values = np.asarray(values, dtype=float)
        self.stages = np.asarray(stages, dtype=int)
        self.name = name
        self.title = title

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
        return cls.from_trace(_history(method, *cls.NAMES), title=type(method).__name__)

    @classmethod
    def from_trace(cls, trace: Trace, *, title: str = "") -> Self:
        """Read the records that an estimator or a store keeps of the stages of a fit.

        Parameters
        ----------
        trace : sequence of dict
            Has ``objective``, ``lower_bound``, ``change`` or ``gap``; ``trace``, a list of the
            values after every update, is drawn instead where it is there.
        <<title>>

        Returns
        -------
        display
        """
        name = next((name for name in cls.NAMES if trace and name in trace[0]), None)
        if name is None:
            raise ValueError(f"trace: expected records with one of {', '.join(cls.NAMES)}.")
        if "trace" not in trace[0]:
            return cls([record[name] for record in trace], name=name, title=title)
        lengths = [len(record["trace"]) for record in trace]
        values = np.concatenate([np.asarray(record["trace"], dtype=float) for record in trace])
        return cls(values, stages=np.cumsum([0, *lengths[:-1]]), name=name, title=title)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the values over the iterations.

        <<Parameters: ax>>

        Returns
        -------
        self
        """
        ax = self._axes(ax)
        for place in self.stages:
            ax.axvline(place + 1, color=NEUTRAL, alpha=0.25, linewidth=0.6)
        iterations = np.arange(1, len(self.values) + 1)
        ax.plot(iterations, self.values, color=COLORS[0], marker=".", markersize=3, linewidth=1)
        positive = self.values[self.values > 0]
        if len(positive) == len(self.values) and positive.max() > 100 * positive.min():
            ax.set_yscale("log")
        steps = "update" if len(self.stages) else "iteration"
        ax.set(xlabel=steps, ylabel=self.name.replace("_", " "), title=self.title)
        ax.grid(alpha=0.25)
        return self


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

    def __init__(
        self, confidences: ArrayLike, *, right: ArrayLike | None = None, title: str = ""
    ) -> None:
        self.confidences = np.asarray(confidences, dtype=float)
        self.right = None if right is None else np.asarray(right, dtype=bool)
        self.title = title

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
        ax = self._axes(ax)
        edges = np.linspace(0, 1, bins + 1).tolist()
        if self.right is None:
            ax.hist(self.confidences, edges, color=RIGHT)
        else:
            parts = [self.confidences[self.right], self.confidences[~self.right]]
            names = [f"label right ({len(parts[0])})", f"label wrong ({len(parts[1])})"]
            ax.hist(parts, edges, stacked=True, color=[RIGHT, WRONG], label=names)
            ax.legend(loc="upper left", framealpha=0.8)
        ax.set(xlabel="confidence in the label decided", ylabel="examples", title=self.title)
        ax.set_xlim(0, 1)
        ax.grid(alpha=0.25, axis="y")
        return self


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

    def __init__(self, confusion: ArrayLike, classes: Sequence[object], *, title: str = "") -> None:
        self.confusion = np.asarray(confusion, dtype=float)
        self.classes = list(classes)
        self.title = title

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
            raise ValueError(
                f"annotator: {annotator!r} gave no vote; there are {', '.join(map(str, names[:5]))}"
                f"{', …' if len(names) > 5 else ''}."
            )
        place = names.index(annotator)
        votes = int(aggregation.votes.votes_per_annotator[place])
        title = (
            f"{annotator}: {votes} votes, estimated to be right {aggregation.quality[place]:.2f}"
        )
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
        ax = self._axes(ax)
        q = len(self.classes)
        image = ax.imshow(self.confusion, cmap="Blues", vmin=0, vmax=1)
        self.figure_.colorbar(image, ax=ax, label="share of the votes")
        for j, k in np.ndindex(q, q) if q <= max_written else ():
            share = self.confusion[j, k]
            color = "white" if share > 0.5 else "black"
            ax.text(k, j, f"{share:.2f}", ha="center", va="center", color=color)
        names = [str(name) for name in self.classes]
        ax.set_xticks(range(q), names, rotation=45 if q > 5 else 0)
        ax.set_yticks(range(q), names)
        ax.set(xlabel="the annotator says", ylabel="class of the item", title=self.title)
        return self


class AmbiguityDisplay(Display):
    """How often another label comes along with each label.

    Parameters
    ----------
    ambiguity : sequence of skpll.diagnosis.Ambiguity
        For each label, the one that comes along most often, with an interval of its share.
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

    def __init__(self, ambiguity: Sequence[Ambiguity], *, title: str = "") -> None:
        self.ambiguity = sorted(ambiguity, key=lambda each: -each.low)
        self.title = title

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
        return cls(diagnosis.ambiguity)

    def plot(self, ax: Axes | None = None, *, max_labels: int = 20) -> Self:
        """Draw the share of each label with its 95 % interval, the most ambiguous label first.

        <<Parameters: ax>>
        max_labels : int, default=20
            Number of labels that are drawn.

        Returns
        -------
        self
        """
        ax = self._axes(ax)
        shown = self.ambiguity[:max_labels]
        shares = np.array([each.share for each in shown])
        limits = np.array([(each.low, each.high) for each in shown]).reshape(-1, 2).T
        errors = np.abs(limits - shares)
        ax.errorbar(shares, range(len(shown)), xerr=errors, fmt="o", color=COLORS[0], capsize=3)
        ax.set_yticks(range(len(shown)), [f"{each.label}: {each.other}" for each in shown])
        ax.invert_yaxis()
        ax.set(xlim=(-0.02, 1.02), xlabel="share of the sets with the label", title=self.title)
        ax.set_ylabel("label: the one that comes along")
        ax.grid(alpha=0.25, axis="x")
        return self


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
    >>> MixtureWeightsDisplay(["near", "linear"], [0.3, 0.7]).plot().weights.tolist()
    [0.3, 0.7]
    """

    def __init__(self, names: Sequence[str], weights: ArrayLike, *, title: str = "") -> None:
        self.names = list(names)
        self.weights = np.asarray(weights, dtype=float)
        self.title = title

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
        ax = self._axes(ax)
        bars = ax.barh(self.names, self.weights, color=COLORS[0])
        ax.bar_label(bars, fmt="%.2f", padding=3)
        ax.invert_yaxis()
        ax.set(xlim=(0, 1.1), xlabel="weight", title=self.title)
        return self


def __getattr__(name: str) -> object:
    """Find what has moved, with a warning."""
    if name != "CriticalDifferenceDisplay":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "skpll.experiments.comparison"
    message = f"{__name__}.{name} has moved to {home}; the old name ends with 0.3."
    warnings.warn(message, FutureWarning, stacklevel=2)
    return import_module(home).CriticalDifferenceDisplay


def mean_curves(results: DataFrame, lines: Any, places: Any, metric: str) -> list[Curve]:
    """Average the results that fall on the same place of the same line."""
    if metric not in results:
        known = ", ".join(name for name in METRICS if name in results)
        raise ValueError(f"metric: {metric!r} was not measured; there are {known}.")
    return [
        Curve(str(label), points.index.to_numpy(float), points["mean"].to_numpy(), std.to_numpy())
        for label, values in results[metric].groupby(lines, sort=False)
        for points in [values.groupby(places).agg(["mean", "std"])]
        for std in [points["std"]]
    ]


def _last_step(estimator: Any) -> Any:
    """Find the method at the end of a pipeline; anything else is the method itself."""
    return estimator[-1] if hasattr(estimator, "named_steps") else estimator


def _right(method: Any, y_true: ArrayLike) -> NDArray[np.bool_]:
    """Hold the labels decided against the truth."""
    truth = np.asarray(y_true)
    if truth.shape != method.transduction_.shape:
        raise ValueError(
            f"y_true: shape {truth.shape} for {len(method.transduction_)} training examples."
        )
    return np.asarray(method.transduction_ == truth)


def _history(estimator: object, *keys: str) -> list[dict[str, Any]]:
    """Find the records of a method, which have to know one of the keys."""
    history = getattr(estimator, "history_", None)
    if not history or not any(key in history[0] for key in keys):
        wanted = " or ".join(keys)
        raise ValueError(
            f"estimator: {type(estimator).__name__} has no history of {wanted}; fit it first, or "
            "choose a method that keeps one."
        )
    return list(history)
