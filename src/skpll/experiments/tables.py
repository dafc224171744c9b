"""Tables: functions from a frame of results to a frame of figures.

A new table is one function with the decorator `report_table`: the report shows it, and writes it as
a CSV and a LaTeX file. What a frame needs to be read besides its numbers, a title, notes and which
of its columns are shown, lies in its `attrs`, and `render` turns it into text. The docstring of the
function gives title and notes, `titled` the rest.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from importlib import import_module
from inspect import cleandoc
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import pandas as pd

from .comparison import compare_pair
from .render import caption
from .store import Experiment, Store
from .tasks import USES_TRUTH, method_version

Frame: TypeAlias = pd.DataFrame
Make = TypeVar("Make", bound=Callable[..., pd.DataFrame | None])

REFERENCE_BETTER, REFERENCE_WORSE = "●", "○"
FEWEST_FOLDS = 5  # that a test of significance is based on
_MARKS = {"better": REFERENCE_BETTER, "worse": REFERENCE_WORSE, "tie": ""}
_ABOUT = ["dataset", "protocol", "estimator", "data", "p", "r", "scaling", "version"]
_SHOWN = ["experiment", "dataset", "case", "method", *_ABOUT[1:]]
_COMPARED = ["reference_minus_method", "interval_low", "interval_high", "p_value"]
_COMPARED += ["p_value_corrected", "reference_is", "reference_is_corrected"]
_TIMES = ("seconds", "fit_seconds")
_UNRANKED = (*_TIMES, "mean_confidence", "calibration_error")


class Content(NamedTuple):
    """All that a store holds."""

    experiments: Sequence[Experiment]
    results: Frame
    failures: Frame

    @classmethod
    def read(cls, store: Store) -> Content:
        """Read all of a store, its experiments in the order of their names."""
        return cls(store.experiments(), store.results(), store.failures())

    def of(self, *experiments: Experiment) -> Content:
        """Keep some of the experiments."""
        names = [entry.name for entry in experiments]
        frames = (frame[frame["experiment"].isin(names)] for frame in self[1:])
        return Content(experiments, *frames)


@dataclass(frozen=True)
class ReportTable:
    """A table of the report.

    Attributes
    ----------
    name : str
        What its files are called, after the experiment.
    make : callable
        From the results of an experiment and the `Experiment` to a frame; from the `Content` of
        the store to a frame if its kind is ``"store"``. None or an empty frame is not shown.
    kinds : tuple of str
        The kinds of experiments that have it; ``"store"`` for a table about all together.
    details : str
        What it is folded away under; empty if it is not.
    collection : str or None
        The plug-in to whose experiments it belongs; None for all experiments.
    in_results : tuple of str
        Those of its kinds with which it stands in the written results too.
    """

    name: str
    make: Callable[..., Frame | None]
    kinds: tuple[str, ...] = ("table", "curves", "sensitivity")
    details: str = ""
    collection: str | None = None
    in_results: tuple[str, ...] = ()


REPORT_TABLES: list[ReportTable] = []
"""The tables of the report, in their order."""


def report_table(name: str, **about: Any) -> Callable[[Make], Make]:
    """Register a table of the report.

    The first line of the function's docstring is the title of the table, each paragraph after it
    a note below the table, unless the function itself says otherwise with `titled`.

    Parameters
    ----------
    name : str
        What its files are called, after the experiment.
    **about
        The other attributes of `ReportTable`.

    Returns
    -------
    decorator : callable

    Examples
    --------
    >>> from skpll.experiments.tables import REPORT_TABLES, report_table
    >>> @report_table("counts", kinds=("table",))
    ... def counts(results, experiment):
    ...     '''How many results there are.'''
    ...     return results.groupby("dataset", as_index=False).size()
    >>> REPORT_TABLES.pop().name  # taken out again, so that no report shows it
    'counts'
    """

    def register(make: Make) -> Make:
        title, *notes = (" ".join(p.split()) for p in cleandoc(make.__doc__ or name).split("\n\n"))
        said = {"title": title.rstrip("."), "notes": notes}

        @wraps(make)
        def table(*of: Any, **options: Any) -> Frame | None:
            frame = make(*of, **options)
            if frame is not None:
                frame.attrs = said | frame.attrs
            return frame

        REPORT_TABLES.append(ReportTable(name, table, **about))
        return table  # type: ignore[return-value]

    return register


def load_tables() -> list[ReportTable]:
    """Return the tables of the report, with those of the collections that have some.

    Returns
    -------
    list of ReportTable
    """
    for collection in ("deep", "paper"):
        import_module(f"{__package__}.{collection}.tables")
    return REPORT_TABLES


def make_tables(
    content: Content, kind: str, collection: str | None, place: str = "kinds"
) -> Iterator[tuple[ReportTable, Frame]]:
    """Make the tables of an experiment, or of a store; those that are empty are left out.

    Parameters
    ----------
    content : Content
        The experiment alone, or what the tables are to be about.
    kind : str
        The kind of the experiment, or ``"store"``.
    collection : str or None
        The plug-in that it came with.
    place : {"kinds", "in_results"}
        Where the tables are to stand: in the report, or in the written results.

    Yields
    ------
    table : ReportTable
    frame : DataFrame
    """
    of_store = kind == "store"
    of = [content] if of_store else [content.results, content.experiments[0]]
    collections = {collection} if of_store else {None, collection}
    for table in load_tables() if of_store or len(content.results) else ():
        if kind in getattr(table, place) and table.collection in collections:
            frame = table.make(*of)
            if frame is not None and len(frame):
                yield table, frame


def titled(frame: Frame, title: str = "", **more: Any) -> Frame:
    """Set the title, notes and formats of a frame.

    Parameters
    ----------
    frame : DataFrame
        The table.
    title : str, optional
        What it shows; for a table of the report by default what its docstring says.
    **more
        ``notes`` (list of str), ``shown`` (list of the columns to be read; the CSV file has all),
        ``heads`` (dict from columns to their names), ``formats`` (dict from columns to format
        strings, or to functions from a row to text), ``under`` (small print under the names of
        columns with figures), and ``wide``, a list of columns that name a row and a column whose
        values become columns, for frames with a ``mean`` in each row.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> import pandas as pd
    >>> from skpll.experiments.tables import titled
    >>> frame = titled(pd.DataFrame({"method": ["PL-LOO"], "mean": [0.8241]}), "Accuracy")
    >>> frame.attrs["title"]
    'Accuracy'
    """
    frame.attrs.clear()
    frame.attrs.update(more | ({"title": title} if title else {}))
    return frame


# -- scores --------------------------------------------------------------------------------


def scores(results: Frame, experiment: Experiment, *, metric: str = "accuracy") -> Frame:
    """Bring the results of an experiment together by case and method.

    Parameters
    ----------
    results : DataFrame
        In the order of the plan, see `Store.results`.
    experiment : Experiment
        The experiment.
    metric : str, default="accuracy"
        Which of the metrics; ``"seconds"`` and ``"fit_seconds"`` are known too. Results that do
        not have it are passed over.

    Returns
    -------
    DataFrame
        A row for each case and method: number of ``folds``, ``mean`` and ``std`` over them (none
        for one fold); the mean difference of the reference and this method over their common folds
        and, from five folds on, paired t-tests, as in the literature and corrected for overlapping
        training sets; ``mark`` (● the reference is better, ○ worse), ``best`` (of the case, among
        methods that do not use the truth) and ``note``.
    """
    frame = _summed_up(results, experiment, metric, ["case", "method"])
    reference = None if metric in _UNRANKED else experiment.reference
    folds: Any = by_fold(results, metric)
    compared = [
        _compared(folds.loc[row.case][[reference, row.method]].dropna(), row)
        if reference in folds and row.method != reference
        else {}
        for row in frame.itertuples()
    ]
    frame = frame.join(pd.DataFrame(compared, columns=_COMPARED, index=frame.index))
    frame = frame.assign(metric=metric, mark=frame["reference_is"].map(_MARKS).fillna(""))
    return frame[[*_SHOWN, "metric", "folds", "mean", "std", *_COMPARED, "mark", "note", "best"]]


def by_fold(results: Frame, metric: str = "accuracy") -> Frame:
    """Return the scores of each method in a column, with a row for each case and fold.

    Parameters
    ----------
    results : DataFrame
        Results, see `Store.results`.
    metric : str, default="accuracy"
        Which of the metrics.

    Returns
    -------
    DataFrame
    """
    return results.assign(seed=results["corruption_seed"].fillna(-1)).pivot_table(
        index=["case", "seed", "repeat", "split"], columns="method", values=metric
    )


def _summed_up(results: Frame, experiment: Experiment, metric: str, by: list[str]) -> Frame:
    """Count folds, and give mean and deviation over them; find the best of each row."""
    results = results[results[metric].notna()]
    frame = results.groupby(by, sort=False).agg(
        folds=(metric, "size"),
        mean=(metric, "mean"),
        std=(metric, "std"),
        older=("older", "any"),
        **{name: (name, "first") for name in (*_ABOUT, "of_case", "n_train", "n_test")},
    )
    frame = frame.reset_index()
    counts = zip(frame["folds"], frame.pop("of_case"), frame.pop("older"), strict=True)
    frame["note"] = [
        ", ".join([f"{n} of {of} folds"] * (n < of) + ["older than the code"] * old)
        for n, of, old in counts
    ]
    best = metric not in _UNRANKED and _best(frame, by[:-1])
    return frame.assign(experiment=experiment.name, mark="", best=best)


def _best(frame: Frame, by: list[str]) -> Any:
    """Find the largest mean of each row, among methods that do not use the truth."""
    rivals = frame["mean"].where(~frame["estimator"].isin(USES_TRUTH)).round(12)
    row = rivals.groupby([frame[name] for name in by], sort=False)
    return (rivals == row.transform("max")) & (row.transform("count") > 1)


def _compared(pair: Frame, row: Any) -> dict[str, Any]:
    """Compare the reference with a method over their common folds."""
    a, b = pair.to_numpy().T
    if len(pair) < FEWEST_FOLDS:
        return {"reference_minus_method": np.mean(a - b) if len(pair) else np.nan}
    plain = compare_pair(a, b)
    corrected = compare_pair(a, b, test_train_ratio=row.n_test / row.n_train)
    found = (np.mean(a - b), *plain.interval, plain.p_value, corrected.p_value)
    return dict(zip(_COMPARED, (*found, plain.verdict, corrected.verdict), strict=True))


def mean_accuracies(results: Frame, by: str | list[str]) -> Frame:
    """Return the mean accuracy of each method that does not use the truth, in columns by case.

    Parameters
    ----------
    results : DataFrame
        Results, see `Store.results`.
    by : str or list of str
        The columns by which they are grouped.

    Returns
    -------
    DataFrame
    """
    fair = results[~results["estimator"].isin(USES_TRUTH)]
    return fair.pivot_table(index="method", columns=by, values="accuracy", sort=False)


@report_table("accuracy", kinds=("table", "curves"), in_results=("table",))
def score_table(results: Frame, experiment: Experiment, *, metric: str = "accuracy") -> Frame:
    """Mean ± standard deviation of every method in every case.

    With real candidate sets a row is a method; with a grid of p and r a row is a case.
    """
    frame = scores(results, experiment, metric=metric)
    name, timed = metric.replace("_", " "), metric in _TIMES
    reference = experiment.reference if frame["reference_is"].notna().any() else None
    notes = caption("scores", name, timed, metric not in _UNRANKED, reference, FEWEST_FOLDS)
    by_case = frame["p"].notna().any()
    titled(
        frame,
        experiment.title if metric == "accuracy" else f"{experiment.title}: {name}",
        notes=notes.splitlines(),
        wide=(["data", "p", "r"], "method") if by_case else (["method"], "case"),
        formats={"mean": "seconds" if timed else "{:.3f}"},
        under=experiment.protocol,
    )
    if metric == "accuracy" and experiment.collection in PRINTED_FIGURES:
        return _beside_printed(frame, *PRINTED_FIGURES[experiment.collection])
    return frame


class Printed(NamedTuple):
    """A figure in print.

    Attributes
    ----------
    mean, std : float
        Accuracy, and its standard deviation over the folds; NaN if it is not printed.
    marker : {"•", "◦", ""}
        Whether the paper's method is said to be statistically superior (•) or inferior (◦).
    """

    mean: float = math.nan
    std: float = math.nan
    marker: str = ""


PRINTED_FIGURES: dict[str | None, tuple[Callable[[Any], Printed | None], str]] = {}
"""For a collection a function that looks up the figure in print beside a row of scores (a named
tuple), and a remark on these figures."""


def _beside_printed(frame: Frame, look_up: Callable[[Any], Printed | None], remark: str) -> Frame:
    """Put printed figures beside the scores of a frame, and a remark below it."""
    found = [look_up(row) or Printed() for row in frame.itertuples()]
    printed = pd.DataFrame(found, columns=Printed._fields, index=frame.index)
    if printed["mean"].isna().all():
        return frame
    gaps = frame["mean"] - printed["mean"]
    notes = list(map(_beside, found, gaps, frame["note"]))
    about = frame.attrs | {"notes": [*frame.attrs["notes"], remark]}
    frame = frame.assign(paper_mean=printed["mean"], paper_std=printed["std"])
    frame = frame.assign(minus_paper=gaps, note=notes)
    frame.attrs = about
    return frame


def _beside(printed: Printed, gap: float, note: str) -> str:
    """Return the note of an entry with the figure in print before it."""
    if math.isnan(printed.mean):
        return note
    mark = {"•": f" {REFERENCE_BETTER}", "◦": f" {REFERENCE_WORSE}", "": ""}[printed.marker]
    std = "" if math.isnan(printed.std) else f"±{printed.std:.3f}"
    words = f"paper {printed.mean:.3f}{std}{mark}, {gap:+.3f}".replace("-", "−")
    return f"{words}, {note}" if note else words


@report_table("accuracy", kinds=("sensitivity",), in_results=("sensitivity",))
def sensitivity(results: Frame, experiment: Experiment) -> Frame:
    """Accuracy for each value of the parameter that an experiment varies.

    Mean accuracy ± standard deviation over the folds; the best of a row is bold.
    """
    over = str(experiment.over)
    value = results["parameters"].map(lambda given: given.get(over, np.nan))
    varied = results.assign(value=value, method=results["series"])[value.notna()]
    varied = varied.sort_values("value", kind="stable")
    varied[over] = [f"{over} = {x:g}" for x in varied["value"]]
    frame = _summed_up(varied, experiment, "accuracy", ["case", "method", over])
    return titled(
        frame,
        experiment.title,
        wide=(["case", "method"], over),
        heads={"case": "Data"},
        formats={"mean": "{:.3f}"},
        under=experiment.protocol,
    )


# -- more about an experiment --------------------------------------------------------------


@report_table("wins", kinds=("table", "curves"), in_results=("curves",))
def wins(results: Frame, experiment: Experiment) -> Frame:
    """In how many cases the reference is better than each other method.

    Share of the cases in which its mean accuracy is higher or lower.

    Wins, ties and losses by the paired t-test at 0.05, and by the same test corrected for training
    sets that overlap (Nadeau and Bengio).
    """
    frame = scores(results, experiment)
    frame = frame[frame["reference_minus_method"].notna()]
    frame = frame.assign(gain=frame["reference_minus_method"].round(12))
    counted = frame.groupby("method", sort=False).agg(
        cases=("gain", "size"),
        higher=("gain", lambda gain: (gain > 0).mean()),
        lower=("gain", lambda gain: (gain < 0).mean()),
        mean_gain=("reference_minus_method", "mean"),
        win_tie_loss=("reference_is", _counts),
        corrected=("reference_is_corrected", _counts),
    )
    return titled(
        counted.reset_index(),
        f"{experiment.reference} against each other method",
        heads={"win_tie_loss": "Win/tie/loss"},
        formats={"higher": "{:.1%}", "lower": "{:.1%}", "mean_gain": "{:+.3f}"},
    )


def _counts(verdicts: pd.Series[Any]) -> str:
    """Return wins/ties/losses of the reference in words."""
    found = Counter(verdicts.dropna())
    return f"{found['better']}/{found['tie']}/{found['worse']}" if found else "too few folds"


@report_table("spread", kinds=("table", "curves"), in_results=("curves",), details="Spread")
def spread(results: Frame, experiment: Experiment) -> Frame:
    """Mean and spread over the cases of a data set.

    Over the mean accuracies of the cases (p and r), not over folds.
    """
    groups = scores(results, experiment).groupby(["data", "method"], sort=False)
    frame = groups.agg(
        cases=("mean", "size"),
        max_minus_min=("mean", np.ptp),
        std=("mean", "std"),
        mean=("mean", "mean"),
        estimator=("estimator", "first"),
        fewest=("folds", "min"),
        most=("folds", "max"),
    ).reset_index()
    frame = frame[frame["cases"] > 1]
    folds = [number_of_folds(*counts) for counts in frame[["fewest", "most"]].to_numpy()]
    note = folds if len(set(folds)) > 1 else ""
    frame = frame.assign(mark="", note=note, best=_best(frame, ["data"]))
    return titled(frame, wide=(["method"], "data"), formats={"mean": "{:.3f}"})


def number_of_folds(fewest: int, most: int) -> str:
    """Return the numbers of folds in words."""
    if fewest < most:
        return f"{fewest} to {most} folds"
    return f"{most} fold" if most == 1 else f"{most} folds"


def _other_metric(results: Frame, experiment: Experiment, *, metric: str) -> Frame | None:
    there = metric in results and results[metric].notna().any()
    return score_table(results, experiment, metric=metric) if there else None


_OTHERS = ["within_three", "transductive_accuracy", "balanced_accuracy", "covering_rate"]
_OTHERS += ["mean_confidence"]
for _metric in [*_OTHERS, "calibration_error", "fit_seconds"]:
    _register = report_table(_metric.replace("_", "-"), details="Other measures and times")
    _register(partial(_other_metric, metric=_metric))


def chosen_values(results: Frame) -> Frame:
    """Return a row for each parameter that inner folds chose: `parameter`, and `value` as text."""
    frame = results.assign(chosen=results["chosen"].map(lambda found: list(found.items())))
    frame = frame.explode("chosen").dropna(subset="chosen")
    values = (value for _, value in frame["chosen"])
    return frame.assign(
        parameter=[name for name, _ in frame["chosen"]],
        value=[f"{v:g}" if isinstance(v, int | float) else str(v) for v in values],
    )


def tally(values: pd.Series[str]) -> str:
    """Return the values with the number of times that each occurs, the most frequent first."""
    return ", ".join(f"{value} ({times}×)" for value, times in Counter(values).most_common())


def most_often(values: pd.Series[str]) -> str:
    """Return the most frequent value."""
    return Counter(values).most_common(1)[0][0]


@report_table("choices", details="Parameters that were chosen")
def choices(results: Frame, _: Experiment) -> Frame:
    """Parameters that were chosen, and how often.

    By the inner folds in each training part, on candidate sets alone.
    """
    values = chosen_values(results).groupby(["data", "method", "parameter"], sort=False)["value"]
    return values.agg(most_often=most_often, all_choices=tally).reset_index()


@report_table("scaling", kinds=("table",), in_results=("table",))
def scaling(results: Frame, _: Experiment) -> Frame | None:
    """Which scaling of the features the inner folds chose, and how often."""
    chosen = chosen_values(results).query("parameter == 'scaling'")
    if chosen.empty:
        return None
    frame = chosen.groupby(["method", "data"], sort=False)["value"].agg(tally).unstack(sort=False)
    return frame.reset_index().rename_axis(columns=None)


@report_table("versions", details="Versions of the methods")
def versions(results: Frame, _: Experiment) -> Frame:
    """Versions of the methods.

    A method's version grows when its results change. Results of an older version are shown as they
    are; running the experiment again does them anew.
    """
    groups = results.groupby(["method", "estimator", "version"], sort=False)
    frame = groups.agg(results=("key", "nunique"), older=("older", "sum")).reset_index()
    frame.insert(3, "code_has", [method_version(name) or "–" for name in frame["estimator"]])
    return titled(frame, heads={"older": "Older than the code"})


# -- about the whole store -----------------------------------------------------------------


@report_table("failures", kinds=("store",))
def failures(content: Content) -> Frame:
    """Tasks that failed.

    To try them again, run the experiment with retry_failed.
    """
    columns = ["experiment", "method", "case", "reason", "message"]
    counts = content.failures.groupby(columns, sort=False).size()
    return titled(counts.reset_index(name="tasks"), heads={"case": "Data"})


@report_table("environment", kinds=("store",))
def environment(content: Content) -> Frame:
    """What was run on what."""
    rows = [{"experiment": each.name, **run} for each in content.experiments for run in each.runs]
    frame = pd.json_normalize(rows).drop(columns="id", errors="ignore")
    frame.columns = [str(name).rpartition(".")[2] for name in frame]
    for name in {"started", "ended"} & set(frame):
        frame[name] = [moment(text) if pd.notna(text) else "was cut off" for text in frame[name]]
    return titled(frame, heads={name: name for name in frame})


def moment(text: str) -> str:
    """Print a time of the store, which is UTC."""
    return f"{text[:16].replace('T', ' ')} UTC"
