"""From results to tables, as plain data, and from tables to CSV, LaTeX and Markdown.

A `Table` has cells to be read (``0.749±0.033 ●``) and, beside them, `records` with one number in
each field, which is what the CSV file holds. Nothing is computed twice: the report shows the same
tables.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skpll.comparison import PairComparison, compare_pair, deviation
from skpll.datasets import dataset_info

from .paper import CLAIMS, TABLE3, TABLE4, Claim, Printed
from .store import Experiment, Result

__all__ = [
    "Case",
    "Cell",
    "Score",
    "Table",
    "check_claim",
    "choices_table",
    "claims_table",
    "penalty_table",
    "score_table",
    "sensitivity_table",
    "spread_table",
    "summarize",
    "to_csv",
    "to_latex",
    "to_markdown",
    "wins_table",
]

REFERENCE_BETTER, REFERENCE_WORSE = "●", "○"


# -- plain data ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """An entry of a table.

    Attributes
    ----------
    text : str
        What to read.
    value : float, str or None
        What to sort by; None goes to the end.
    mark : str
        A sign after the text.
    detail : str
        What stands beside it in small print.
    best : bool
        Whether to print it bold.
    """

    text: str
    value: float | str | None = None
    mark: str = ""
    detail: str = ""
    best: bool = False

    def __str__(self) -> str:
        return f"{self.text} {self.mark}".rstrip()


@dataclass(frozen=True)
class Table:
    """A table to be read, with the numbers behind it.

    Attributes
    ----------
    name : str
        What its files are called.
    title : str
        What it shows.
    columns : tuple of Cell
        The names of the columns; in small print beside them how their numbers were measured.
    rows : tuple of tuples of Cell
        The entries, as many in a row as there are columns.
    notes : tuple of str
        How to read it.
    records : tuple of dict
        The numbers behind it, one in each field, all with the same keys.
    """

    name: str
    title: str
    columns: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    records: tuple[dict[str, Any], ...] = field(default=(), repr=False)


@dataclass(frozen=True, order=True)
class Case:
    """A data set, and how its labels were made ambiguous where they were not."""

    dataset: str
    p: float | None = None
    r: int | None = None

    @classmethod
    def of(cls, result: Any) -> Case:
        """Give the case that a result or a failure belongs to."""
        return cls(result.dataset, result.p, result.r)

    def __str__(self) -> str:
        title = dataset_info(self.dataset).title
        return title if self.p is None else f"{title}, p = {self.p:g}, r = {self.r}"


@dataclass(frozen=True)
class Score:
    """What a method reached in a case, over all folds and seeds.

    Attributes
    ----------
    case : Case
        The data.
    method : str
        The method's label.
    protocol, scaling, features : str
        How it was measured.
    values : tuple of float
        The metric in each fold.
    comparison, corrected : PairComparison or None
        The reference against this method over their common folds: the paired t-test that the
        literature uses, and the one corrected for overlapping training sets.
    printed : Printed or None
        What the paper prints for it.
    """

    case: Case
    method: str
    protocol: str
    scaling: str
    features: str | None
    values: tuple[float, ...]
    comparison: PairComparison | None = None
    corrected: PairComparison | None = None
    printed: Printed | None = None

    @property
    def mean(self) -> float:
        """Mean over the folds."""
        return float(np.mean(self.values))

    @property
    def std(self) -> float:
        """Standard deviation over the folds."""
        return deviation(self.values)

    @property
    def marker(self) -> str:
        """● where the reference is better than this method, ○ where it is worse."""
        if self.comparison is None:
            return ""
        return {"better": REFERENCE_BETTER, "worse": REFERENCE_WORSE, "tie": ""}[
            self.comparison.verdict
        ]


def summarize(
    results: Iterable[Result], *, reference: str | None = None, metric: str = "accuracy"
) -> list[Score]:
    """Bring the results of one experiment together by case and method.

    Parameters
    ----------
    results : iterable of Result
        In the order of the plan.
    reference : str, optional
        Label of the method with which the others are compared.
    metric : str, default="accuracy"
        Which of the metrics; ``"seconds"`` and ``"fit_seconds"`` are known too.

    Returns
    -------
    list of Score
        Case by case, the methods in the order of the plan.
    """
    grouped: dict[Case, dict[str, list[Result]]] = {}
    for result in results:
        grouped.setdefault(Case.of(result), {}).setdefault(result.method, []).append(result)
    return [
        _score(case, method, found, methods.get(reference or ""), reference, metric)
        for case, methods in grouped.items()
        for method, found in methods.items()
    ]


def _score(
    case: Case,
    method: str,
    results: list[Result],
    rivals: list[Result] | None,
    reference: str | None,
    metric: str,
) -> Score:
    first = results[0]
    values = {_fold(result): _value(result, metric) for result in results}
    theirs = {_fold(result): _value(result, metric) for result in rivals or ()}
    common = [fold for fold in values if fold in theirs]

    def comparison(ratio: float | None) -> PairComparison | None:
        if reference is None or method == reference or len(common) < 2:
            return None
        return compare_pair(
            [theirs[fold] for fold in common],
            [values[fold] for fold in common],
            names=(reference, method),
            data=str(case),
            test_train_ratio=ratio,
        )

    return Score(
        case=case,
        method=method,
        protocol=first.protocol,
        scaling=first.scaling,
        features=first.features,
        values=tuple(values.values()),
        comparison=comparison(None),
        corrected=comparison(first.n_test / first.n_train),
        printed=TABLE3.get(case.dataset, {}).get(method) if metric == "accuracy" else None,
    )


def _fold(result: Result) -> tuple[int | None, int, int]:
    return result.corruption_seed, result.repeat, result.split


def _value(result: Result, metric: str) -> float:
    if metric in ("seconds", "fit_seconds"):
        return float(getattr(result, metric))
    return result.metrics[metric]


# -- tables of one experiment --------------------------------------------------------------


def score_table(
    experiment: Experiment, results: Iterable[Result], *, metric: str = "accuracy"
) -> Table:
    """Mean ± standard deviation of every method in every case.

    With real candidate sets a row is a method, as in the paper, and its figures stand beside; with
    a grid of p and r a row is a case.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    results : iterable of Result
        Its results.
    metric : str, default="accuracy"
        Which of the metrics.

    Returns
    -------
    Table
    """
    seconds = metric.endswith("seconds")
    reference = None if seconds else experiment.specification.reference
    scores = summarize(results, reference=reference, metric=metric)
    cases = list(dict.fromkeys(score.case for score in scores))
    methods = list(dict.fromkeys(score.method for score in scores))
    found = {(score.case, score.method): score for score in scores}
    protocol = str(experiment.specification.protocol)
    peaks = _best(scores) if len(methods) > 1 else {}
    expected = _expected_folds(experiment)

    def cell(case: Case, method: str) -> Cell:
        score = found.get((case, method))
        if score is None:
            return Cell("–")
        if seconds:
            return Cell(_duration(score.mean), score.mean)
        return _score_cell(score, round(score.mean, 12) == peaks.get(case), expected[case.dataset])

    if any(case.p is not None for case in cases):
        columns = _heads(["Data", "p", "r"], methods, protocol)
        rows = [
            (
                _text(dataset_info(case.dataset).title),
                Cell("–" if case.p is None else f"{case.p:g}", case.p),
                Cell("–" if case.r is None else str(case.r), case.r),
                *(cell(case, method) for method in methods),
            )
            for case in cases
        ]
    else:
        columns = _heads(["Method"], map(str, cases), protocol)
        rows = [(_text(method), *(cell(case, method) for case in cases)) for method in methods]
    name = metric.replace("_", " ")
    return Table(
        name=f"{experiment.name}-{metric.replace('_', '-')}",
        title=f"{experiment.title}: {name}" if metric != "accuracy" else experiment.title,
        columns=columns,
        rows=tuple(rows),
        notes=tuple(_score_notes(scores, reference, name, seconds)),
        records=tuple(_score_record(experiment, metric, score) for score in scores),
    )


def _best(scores: Iterable[Score]) -> dict[Case, float]:
    best: dict[Case, float] = {}
    for score in scores:
        best[score.case] = max(best.get(score.case, -np.inf), round(score.mean, 12))
    return best


def _expected_folds(experiment: Experiment) -> dict[str, int]:
    """Give the number of results that a method is to have in a case of each data set."""
    divisions = len(list(experiment.specification.protocol.divisions()))
    return {
        entry.name: divisions * max(len(entry.corruption_seeds), 1)
        for entry in experiment.specification.data
    }


def _score_cell(score: Score, best: bool, expected: int) -> Cell:
    details = []
    if score.printed is not None:
        printed = score.printed
        mark = {"•": f" {REFERENCE_BETTER}", "◦": f" {REFERENCE_WORSE}"}.get(printed.marker or "")
        details += [
            f"paper {printed.mean:.3f}±{printed.std:.3f}{mark or ''}",
            _signed(score.mean - printed.mean),
        ]
    details += _unfinished(len(score.values), expected)
    return Cell(
        f"{score.mean:.3f}±{score.std:.3f}", score.mean, score.marker, ", ".join(details), best
    )


def _unfinished(folds: int, expected: int) -> list[str]:
    return [f"{folds} of {expected} folds"] if folds < expected else []


def _score_notes(
    scores: Sequence[Score], reference: str | None, name: str, seconds: bool
) -> Iterable[str]:
    if seconds:
        yield "Mean time of a fold. It depends on the machine and on what else ran on it."
        return
    yield f"Mean {name} ± standard deviation over the folds; the best of a case is bold."
    if reference is not None and any(score.comparison for score in scores):
        yield (
            f"{REFERENCE_BETTER} {reference} is better, {REFERENCE_WORSE} it is worse: two-sided "
            "paired t-test over the folds at 0.05, as in the paper, not corrected for training "
            "sets that overlap."
        )
    if any(score.printed for score in scores):
        yield (
            "In small print the paper's figure, said to be from ten folds, and by how much the "
            "figure here is higher (+) or lower (−)."
        )


def _score_record(experiment: Experiment, metric: str, score: Score) -> dict[str, Any]:
    comparison, corrected, printed = score.comparison, score.corrected, score.printed
    return {
        "experiment": experiment.name,
        "dataset": score.case.dataset,
        "p": score.case.p,
        "r": score.case.r,
        "method": score.method,
        "protocol": score.protocol,
        "scaling": score.scaling,
        "features": score.features,
        "metric": metric,
        "folds": len(score.values),
        "mean": score.mean,
        "std": score.std,
        "reference_minus_method": comparison.difference if comparison else None,
        "interval_low": comparison.interval[0] if comparison else None,
        "interval_high": comparison.interval[1] if comparison else None,
        "p_value": comparison.p_value if comparison else None,
        "p_value_corrected": corrected.p_value if corrected else None,
        "reference_is": comparison.verdict if comparison else None,
        "paper_mean": printed.mean if printed else None,
        "paper_std": printed.std if printed else None,
        "minus_paper": score.mean - printed.mean if printed else None,
    }


def wins_table(experiment: Experiment, results: Iterable[Result]) -> Table | None:
    """In how many cases the reference is better than each other method.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    results : iterable of Result
        Its results.

    Returns
    -------
    Table or None
        None where there is no reference, or nothing to compare it with.
    """
    reference = experiment.specification.reference
    scores = [
        score for score in summarize(results, reference=reference) if score.comparison is not None
    ]
    if not scores:
        return None
    rows, records = [], []
    for method in dict.fromkeys(score.method for score in scores):
        own = [score for score in scores if score.method == method]
        plain = [score.comparison for score in own if score.comparison]
        corrected = [score.corrected for score in own if score.corrected]
        higher = sum(pair.difference > 0 for pair in plain)
        lower = sum(pair.difference < 0 for pair in plain)
        gain = float(np.mean([pair.difference for pair in plain]))
        counts, cautious = _counts(plain), _counts(corrected)
        rows.append(
            (
                _text(method),
                Cell(str(len(plain)), len(plain)),
                Cell(f"{higher / len(plain):.1%}", higher / len(plain)),
                Cell(f"{lower / len(plain):.1%}", lower / len(plain)),
                Cell(_signed(gain), gain),
                Cell("/".join(map(str, counts)), counts[0] - counts[2]),
                Cell("/".join(map(str, cautious)), cautious[0] - cautious[2]),
            )
        )
        records.append(
            {
                "experiment": experiment.name,
                "reference": reference,
                "method": method,
                "protocol": own[0].protocol,
                "cases": len(plain),
                "reference_higher": higher,
                "reference_lower": lower,
                "mean_gain": gain,
                **dict(zip(("wins", "ties", "losses"), counts, strict=True)),
                **dict(
                    zip(
                        ("wins_corrected", "ties_corrected", "losses_corrected"),
                        cautious,
                        strict=True,
                    )
                ),
            }
        )
    return Table(
        name=f"{experiment.name}-wins",
        title=f"{reference} against each other method",
        columns=_heads(
            ["Method", "Cases"],
            ["Higher", "Lower", "Mean gain", "Win/tie/loss", "Corrected"],
            scores[0].protocol,
        ),
        rows=tuple(rows),
        notes=(
            f"Share of the cases in which the mean accuracy of {reference} is higher or lower; "
            "wins, ties and losses by the paired t-test at 0.05, and by the same test corrected "
            "for training sets that overlap (Nadeau and Bengio).",
        ),
        records=tuple(records),
    )


def spread_table(experiment: Experiment, results: Iterable[Result]) -> Table | None:
    """How the mean accuracies of a method vary over the cases of a data set.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    results : iterable of Result
        Its results.

    Returns
    -------
    Table or None
        None where no data set has several cases.
    """
    grouped: dict[tuple[str, str], list[float]] = {}
    for score in summarize(results):
        grouped.setdefault((score.case.dataset, score.method), []).append(score.mean)
    grouped = {place: means for place, means in grouped.items() if len(means) > 1}
    if not grouped:
        return None
    protocol = str(experiment.specification.protocol)
    rows, records = [], []
    for (dataset, method), means in grouped.items():
        span = max(means) - min(means)
        rows.append(
            (
                _text(dataset_info(dataset).title),
                _text(method),
                Cell(str(len(means)), len(means)),
                _number(float(np.mean(means))),
                _number(span),
                _number(deviation(means)),
            )
        )
        records.append(
            {
                "experiment": experiment.name,
                "dataset": dataset,
                "method": method,
                "protocol": protocol,
                "cases": len(means),
                "mean": float(np.mean(means)),
                "max_minus_min": span,
                "std": deviation(means),
            }
        )
    return Table(
        name=f"{experiment.name}-spread",
        title="Mean, span and spread over the cases of a data set",
        columns=_heads(["Data", "Method", "Cases"], ["Mean", "Max − min", "Std"], protocol),
        rows=tuple(rows),
        notes=("Over the mean accuracies of the cases (p and r), not over folds.",),
        records=tuple(records),
    )


def sensitivity_table(experiment: Experiment, results: Iterable[Result]) -> Table:
    """Accuracy for each value of the parameter that an experiment varies.

    Parameters
    ----------
    experiment : Experiment
        An experiment of the kind ``"sensitivity"``.
    results : iterable of Result
        Its results.

    Returns
    -------
    Table
        A row is a method on a data set, a column is a value.
    """
    over = experiment.specification.over
    assert over is not None
    lines: dict[tuple[Case, str], dict[Any, list[float]]] = {}
    for result in results:
        if over in result.parameters:
            line = lines.setdefault((Case.of(result), result.series), {})
            line.setdefault(result.parameters[over], []).append(result.metrics["accuracy"])
    values = sorted({value for line in lines.values() for value in line})
    protocol = str(experiment.specification.protocol)
    expected = _expected_folds(experiment)
    rows, records = [], []
    for (case, series), line in lines.items():
        best = max(line, key=lambda value: float(np.mean(line[value])))
        cells = [
            Cell(
                f"{np.mean(line[value]):.3f}±{deviation(line[value]):.3f}",
                float(np.mean(line[value])),
                detail=", ".join(_unfinished(len(line[value]), expected[case.dataset])),
                best=value == best,
            )
            if value in line
            else Cell("–")
            for value in values
        ]
        rows.append((_text(str(case)), _text(series), *cells))
        records += [
            {
                "experiment": experiment.name,
                "dataset": case.dataset,
                "p": case.p,
                "r": case.r,
                "method": series,
                "protocol": protocol,
                over: value,
                "folds": len(line[value]),
                "mean": float(np.mean(line[value])),
                "std": deviation(line[value]),
            }
            for value in sorted(line)
        ]
    return Table(
        name=f"{experiment.name}-accuracy",
        title=experiment.title,
        columns=_heads(["Data", "Method"], (f"{over} = {value:g}" for value in values), protocol),
        rows=tuple(rows),
        notes=("Mean accuracy ± standard deviation over the folds; the best of a row is bold.",),
        records=tuple(records),
    )


def choices_table(experiment: Experiment, results: Iterable[Result]) -> Table | None:
    """Which parameters the inner folds chose, and how often.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    results : iterable of Result
        Its results.

    Returns
    -------
    Table or None
        None where there was nothing to choose.
    """
    counts: dict[tuple[str, str, str], Counter[str]] = {}
    for result in results:
        for name, value in result.chosen.items():
            key = result.dataset, result.method, name
            counts.setdefault(key, Counter())[_plain(value)] += 1
    if not counts:
        return None
    selection = experiment.specification.selection
    return Table(
        name=f"{experiment.name}-choices",
        title="Parameters that were chosen",
        columns=_heads(["Data", "Method", "Parameter", "Most often", "All choices"]),
        rows=tuple(
            (
                _text(dataset_info(dataset).title),
                _text(method),
                _text(name),
                _choice(found.most_common(1)[0][0]),
                _text(_tally(found)),
            )
            for (dataset, method, name), found in counts.items()
        ),
        notes=(
            f"Inside each training part, by {selection.folds} inner folds and "
            f"{selection.scoring.replace('_', ' ')}: on candidate sets alone.",
        ),
        records=tuple(
            {
                "experiment": experiment.name,
                "dataset": dataset,
                "method": method,
                "parameter": name,
                "value": value,
                "times": times,
            }
            for (dataset, method, name), found in counts.items()
            for value, times in sorted(found.items())
        ),
    )


# -- tables about the paper ----------------------------------------------------------------


def penalty_table(results: Iterable[Result]) -> Table | None:
    """Tell the C chosen for SP-PLL on each data set, beside the paper's Table 4.

    Parameters
    ----------
    results : iterable of Result
        Of all experiments; tasks that several share count once.

    Returns
    -------
    Table or None
        None where C was never chosen on one of the paper's data sets.
    """
    counts: dict[str, Counter[str]] = {}
    protocols: dict[str, set[str]] = {}
    seen: set[str] = set()
    for result in results:
        if result.dataset not in TABLE4 or result.estimator != "sppll" or result.key in seen:
            continue
        seen.add(result.key)
        if "C" in result.chosen:
            counts.setdefault(result.dataset, Counter())[_plain(result.chosen["C"])] += 1
            protocols.setdefault(result.dataset, set()).add(result.protocol)
    if not counts:
        return None
    return Table(
        name="table4",
        title="The C that is chosen for SP-PLL, beside the paper's Table 4",
        columns=_heads(["Data", "Chosen most often", "Paper", "All choices", "Protocol"]),
        rows=tuple(
            (
                _text(dataset_info(dataset).title),
                _choice(found.most_common(1)[0][0]),
                _choice(_plain(TABLE4[dataset])),
                _text(_tally(found)),
                _text(", ".join(sorted(protocols[dataset]))),
            )
            for dataset, found in counts.items()
        ),
        notes=(
            "Chosen inside each training part on candidate sets alone; the paper does not say how "
            "its values were chosen.",
        ),
        records=tuple(
            {
                "dataset": dataset,
                "protocol": ", ".join(sorted(protocols[dataset])),
                "C": value,
                "times": times,
                "paper_C": TABLE4[dataset],
            }
            for dataset, found in counts.items()
            for value, times in sorted(found.items(), key=lambda item: float(item[0]))
        ),
    )


def claims_table(experiments: Iterable[Experiment], results: Iterable[Result]) -> Table | None:
    """Hold what the paper's text says about its experiments against what was found here.

    Parameters
    ----------
    experiments : iterable of Experiment
        Those in the store.
    results : iterable of Result
        Of all of them.

    Returns
    -------
    Table or None
        None where no claim is about any of the experiments.
    """
    names = {experiment.name: experiment for experiment in experiments}
    by_experiment: dict[str, list[Result]] = {}
    for result in results:
        by_experiment.setdefault(result.experiment, []).append(result)
    rows, records = [], []
    for claim in CLAIMS:
        there = [names[name] for name in claim.experiments if name in by_experiment]
        if not there:
            continue
        found = [result for entry in there for result in by_experiment[entry.name]]
        measured, cases = check_claim(claim, found, over=there[0].specification.over)
        protocols = ", ".join(dict.fromkeys(str(entry.specification.protocol) for entry in there))
        show = _claim_format(claim)
        if measured is None:
            figures = (Cell("–"), Cell("–"), Cell("none", 0))
        else:
            gap = measured - claim.value
            of = f" of {cases}" if claim.quantity == "cases lost" else ""
            figures = (
                Cell(show(measured) + of, measured),
                Cell(("+" if gap > 0 else "") + show(gap), gap),
                Cell(str(cases), cases),
            )
        rows.append(
            (
                _text(claim.statement),
                Cell(show(claim.value), claim.value),
                *figures,
                _text(f"{', '.join(entry.name for entry in there)}; {protocols}"),
            )
        )
        records.append(
            {
                "claim": claim.name,
                "statement": claim.statement,
                "quantity": claim.quantity,
                "paper": claim.value,
                "measured": measured,
                "cases": cases,
                "experiments": " ".join(entry.name for entry in there),
                "protocol": protocols,
            }
        )
    if not rows:
        return None
    return Table(
        name="claims",
        title="What the paper's text says, and what was found",
        columns=_heads(["Claim", "Paper", "Here", "Difference", "Cases", "Where"]),
        rows=tuple(rows),
        notes=(
            "A case is a data set with one p and one r, or a real data set. Where fewer cases were "
            "run than in the paper, the figure is about those.",
        ),
        records=tuple(records),
    )


def check_claim(
    claim: Claim, results: Iterable[Result], *, over: str | None = None
) -> tuple[float | None, int]:
    """Measure what a claim is about.

    Parameters
    ----------
    claim : Claim
        A figure in the paper's text.
    results : iterable of Result
        Of the experiments that it is about.
    over : str, optional
        The parameter that they vary.

    Returns
    -------
    measured : float or None
        None where the results don't have what it is about.
    cases : int
        The number of cases it was measured on.
    """
    wanted = [result for result in results if claim.dataset in (None, result.dataset)]
    if claim.quantity == "best value":
        return (None, 0) if over is None else _best_value(wanted, over)
    means: dict[str, dict[Case, float]] = {}
    for score in summarize(wanted):
        means.setdefault(score.method, {})[score.case] = score.mean
    own = means.get(claim.method, {})
    if claim.rival is None:
        values = list(own.values())
        spread = _span if claim.quantity == "range" else deviation
        return (None, 0) if len(values) < 2 else (spread(values), len(values))
    theirs = means.get(claim.rival, {})
    common = [case for case in own if case in theirs]
    if not common:
        return None, 0
    a, b = (np.array([row[case] for case in common]) for row in (own, theirs))
    quantities: dict[str, Callable[[], Any]] = {
        "share of cases won": lambda: np.mean(a > b),
        "cases lost": lambda: np.sum(a < b),
        "mean difference": lambda: np.mean(a - b),
        "relative difference": lambda: np.mean(a) / np.mean(b) - 1,
        "difference of ranges": lambda: _span(a) - _span(b),
        "difference of deviations": lambda: deviation(a) - deviation(b),
    }
    return float(quantities[claim.quantity]()), len(common)


def _best_value(results: Sequence[Result], over: str) -> tuple[float | None, int]:
    """Find the value at which the accuracy is best, on average over the data sets."""
    values: dict[float, dict[Case, list[float]]] = {}
    for result in results:
        if over in result.parameters:
            line = values.setdefault(float(result.parameters[over]), {})
            line.setdefault(Case.of(result), []).append(result.metrics["accuracy"])
    if not values:
        return None, 0
    cases = {case for line in values.values() for case in line}
    full = {
        value: np.mean([np.mean(folds) for folds in line.values()])
        for value, line in values.items()
        if len(line) == len(cases)
    }
    return (max(full, key=full.__getitem__), len(cases)) if full else (None, 0)


def _claim_format(claim: Claim) -> Callable[[float], str]:
    pattern = "{:.4f}"
    if claim.quantity in ("share of cases won", "relative difference"):
        pattern = "{:.1%}"
    elif claim.quantity in ("cases lost", "best value"):
        pattern = "{:.3g}"
    return lambda value: pattern.format(value).replace("-", "−")


# -- writers -------------------------------------------------------------------------------


def to_csv(table: Table) -> str:
    """Write the records of a table as CSV.

    Parameters
    ----------
    table : Table
        The table.

    Returns
    -------
    str
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, list(table.records[0]) if table.records else [])
    writer.writeheader()
    writer.writerows(table.records)
    return text.getvalue()


def to_markdown(table: Table) -> str:
    """Write a table as Markdown.

    Parameters
    ----------
    table : Table
        The table.

    Returns
    -------
    str
    """

    def entry(cell: Cell) -> str:
        text = str(cell).replace("|", "\\|")
        detail = cell.detail.replace("|", "\\|")
        shown = f"**{text}**" if cell.best else text
        return f"{shown} ({detail})" if detail else shown

    heads, *rows = ([entry(cell) for cell in row] for row in (table.columns, *table.rows))
    lines = [heads, ["---"] * len(heads), *rows]
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    notes = "".join(f"\n{note}\n" for note in table.notes)
    return f"**{table.title}**\n\n{body}\n{notes}"


def to_latex(table: Table) -> str:
    """Write a table as LaTeX, for the package booktabs.

    Parameters
    ----------
    table : Table
        The table.

    Returns
    -------
    str
    """

    def entry(cell: Cell) -> str:
        text = f"\\textbf{{{_tex(cell.text)}}}" if cell.best else _tex(cell.text)
        text += f" {_tex(cell.mark)}" if cell.mark else ""
        return f"{text} {{\\scriptsize ({_tex(cell.detail)})}}" if cell.detail else text

    def line(entries: Iterable[str]) -> str:
        return "  " + " & ".join(entries) + r" \\"

    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_tex(' '.join((table.title + '.', *table.notes)))}}}",
            rf"\label{{tab:{table.name}}}",
            rf"\begin{{tabular}}{{{'l' * len(table.columns)}}}",
            r"\toprule",
            line(map(entry, table.columns)),
            r"\midrule",
            *(line(map(entry, row)) for row in table.rows),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


_TEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"$<$",
        ">": r"$>$",
        "±": r"$\pm$",
        "×": r"$\times$",
        "−": r"$-$",
        "–": r"--",
        "λ": r"$\lambda$",
        REFERENCE_BETTER: r"$\bullet$",
        REFERENCE_WORSE: r"$\circ$",
    }
)


def _tex(text: str) -> str:
    return text.translate(_TEX)


# -- small things --------------------------------------------------------------------------


def _heads(
    names: Iterable[str], measured: Iterable[str] = (), protocol: str = ""
) -> tuple[Cell, ...]:
    """Name the columns; those of measured numbers say under which protocol."""
    return (*map(_text, names), *(Cell(name, name, detail=protocol) for name in measured))


def _text(text: str) -> Cell:
    return Cell(text, text)


def _number(value: float) -> Cell:
    return Cell(f"{value:.3f}", value)


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")


def _duration(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _span(values: Any) -> float:
    return float(np.max(values) - np.min(values))


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _choice(text: str) -> Cell:
    try:
        return Cell(text, float(text))
    except ValueError:
        return _text(text)


def _tally(counts: Counter[str]) -> str:
    return ", ".join(f"{value} ({times}×)" for value, times in counts.most_common())


def _counts(pairs: Sequence[PairComparison]) -> tuple[int, int, int]:
    verdicts = [pair.verdict for pair in pairs]
    return verdicts.count("better"), verdicts.count("tie"), verdicts.count("worse")
