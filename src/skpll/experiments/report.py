"""The report: a folder with one page to read, and every table and figure as a file.

The page needs nothing beside itself: no network, no other file. Everything on it comes from the
store alone.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from skpll.comparison import RankComparison, compare_ranks
from skpll.datasets import dataset_info
from skpll.plotting import (
    AccuracyOverAmbiguityDisplay,
    CriticalDifferenceDisplay,
    CurriculumDisplay,
    ObjectiveTraceDisplay,
    SensitivityDisplay,
    method_styles,
)

from ._figures import FigureWriter
from ._html import Html, element, join
from .store import Experiment, Failure, Result, Store
from .tables import (
    Case,
    Cell,
    Table,
    choices_table,
    claims_table,
    penalty_table,
    score_table,
    sensitivity_table,
    spread_table,
    summarize,
    to_csv,
    to_latex,
    wins_table,
)

__all__ = ["write_report"]

_LONG = 40  # characters, from which on an entry of a table may be broken into lines
_KINDS = ("table", "curves", "sensitivity")
_OTHER_METRICS = ("transductive_accuracy", "balanced_accuracy", "covering_rate", "fit_seconds")


def write_report(store_path: str | os.PathLike[str], out: str | os.PathLike[str]) -> Path:
    """Write the report on all experiments of a store.

    Parameters
    ----------
    store_path : path-like
        The store.
    out : path-like
        The folder to write to; it is made if it is not there, and files of the same names are
        replaced: ``index.html``, ``tables/*.csv``, ``tables/*.tex``, ``figures/*.pdf`` and
        ``figures/*.png``.

    Returns
    -------
    Path
        The page to open.

    Raises
    ------
    FileNotFoundError
        If there is no such store.
    ValueError
        If the file is not a store, or `out` is a file.
    """
    folder = Path(out)
    with Store.open(store_path, read_only=True) as store:
        experiments = sorted(
            store.experiments(), key=lambda entry: _KINDS.index(entry.specification.kind)
        )
        results = store.results()
        failures = store.failures()
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"out: {folder} is a file; name a folder.")
    writer = _Writer(folder)
    body = join(
        _header(Path(store_path).name, experiments, results, failures),
        element(
            "main",
            _about_the_paper(writer, experiments, results),
            *(_experiment(writer, entry, results, failures) for entry in experiments),
            _failures(writer, failures),
            _environment(writer, experiments),
        ),
        element("footer", "Made by skpll from the results in the store alone."),
    )
    page = folder / "index.html"
    page.write_text(_page(f"Report on {Path(store_path).name}", body), encoding="utf-8")
    return page


class _Writer:
    """Writes tables and figures as files, and gives each back as part of the page."""

    def __init__(self, folder: Path) -> None:
        self._tables = folder / "tables"
        self._tables.mkdir(parents=True, exist_ok=True)
        self._figures = FigureWriter(folder / "figures")

    def table(self, table: Table | None, *, heading: bool = True) -> Html | None:
        """Write a table, and give it back with its notes and links to its files."""
        if table is None or not table.rows:
            return None
        for ending, text in ((".csv", to_csv(table)), (".tex", to_latex(table))):
            path = self._tables / f"{table.name}{ending}"
            path.write_text(text, encoding="utf-8", newline="")
        return join(
            element("h3", table.title) if heading else None,
            _scrolling(table),
            *(element("p", note, class_="notes") for note in table.notes),
            _links(f"tables/{table.name}", "csv", "tex"),
        )

    def figure(self, name: str, display: Any, description: str, **options: Any) -> Html:
        """Write a figure, and give it back with its description and links to its files."""
        drawn = self._figures.write(name, display, description=description, **options)
        return element(
            "figure",
            drawn,
            element("figcaption", f"{description} ", _links(f"figures/{name}", "pdf", "png")),
        )


# -- the parts of the page -----------------------------------------------------------------


def _header(
    name: str,
    experiments: Sequence[Experiment],
    results: Sequence[Result],
    failures: Sequence[Failure],
) -> Html:
    planned = sum(entry.planned for entry in experiments)
    absent = {dataset for entry in experiments for dataset in entry.absent}
    totals = {
        "experiments": len(experiments),
        "tasks done": f"{len(results)} of {planned}",
        "failed": len(failures),
        "data sets absent": len(absent),
    }
    ends = [run["ended"] or run["started"] for entry in experiments for run in entry.runs]
    links = [
        *((entry.title, f"experiment-{entry.name}") for entry in experiments),
        ("Environment", "environment"),
    ]
    return element(
        "header",
        element("h1", "Report on experiments with partial labels"),
        element(
            "p",
            "From the store ",
            element("code", name),
            f", last written {_moment(max(ends))}." if ends else ", in which there is no run yet.",
            class_="quiet",
        ),
        element(
            "dl",
            *(
                element("div", element("dt", label), element("dd", str(value)))
                for label, value in totals.items()
            ),
            class_="totals",
        ),
        element(
            "nav",
            element(
                "ul",
                *(element("li", element("a", text, href=f"#{target}")) for text, target in links),
            ),
            aria_label="Contents",
        ),
    )


def _about_the_paper(
    writer: _Writer, experiments: Sequence[Experiment], results: Sequence[Result]
) -> Html | None:
    parts = [
        writer.table(claims_table(experiments, results)),
        writer.table(penalty_table(results)),
    ]
    if not any(parts):
        return None
    return element("section", element("h2", "The paper and these results"), *parts, id="paper")


def _experiment(
    writer: _Writer,
    experiment: Experiment,
    all_results: Sequence[Result],
    all_failures: Sequence[Failure],
) -> Html:
    results = [result for result in all_results if result.experiment == experiment.name]
    failed = sum(failure.experiment == experiment.name for failure in all_failures)
    specification = experiment.specification
    shown: list[Html | None]
    if not results:
        shown = [element("p", "There is no result yet.", class_="quiet")]
    elif specification.kind == "sensitivity":
        shown = _sensitivity(writer, experiment, results)
    else:
        shown = _comparison(writer, experiment, results)
    return element(
        "section",
        element("h2", experiment.title),
        _facts(experiment, len(results), failed),
        _absent(experiment),
        *shown,
        _traces(writer, experiment, results),
        _details(
            "Other measures and times",
            [
                writer.table(score_table(experiment, results, metric=metric))
                for metric in _OTHER_METRICS
                if results
            ],
        ),
        _details(
            "Parameters that were chosen",
            [writer.table(choices_table(experiment, results), heading=False)],
        ),
        _details("Specification", [element("pre", element("code", experiment.text), tabindex="0")]),
        id=f"experiment-{experiment.name}",
    )


def _facts(experiment: Experiment, done: int, failed: int) -> Html:
    specification = experiment.specification
    selection = specification.selection
    scalings = dict.fromkeys(entry.scaling for entry in specification.data)
    facts = {
        "Protocol": str(specification.protocol),
        "Choice of parameters": f"{selection.folds} inner folds, "
        f"{selection.scoring.replace('_', ' ')}"
        if any(method.grid for method in specification.methods)
        else None,
        "Scaling": ", ".join(scalings),
        "Reference": specification.reference,
        "Size": "quick variant" if specification.quick else "full",
        "Tasks": f"{done} of {experiment.planned} done"
        + (f", {failed} failed" if failed else "")
        + (f", {missing} to do" if (missing := experiment.planned - done - failed) > 0 else ""),
    }
    return element(
        "dl",
        *(
            element("div", element("dt", name), element("dd", value))
            for name, value in facts.items()
            if value is not None
        ),
        class_="facts",
    )


def _absent(experiment: Experiment) -> Html | None:
    if not experiment.absent:
        return None
    titles = ", ".join(dataset_info(name).title for name in experiment.absent)
    return element(
        "p",
        element("span", f"Absent data: {titles}.", class_="alarm"),
        " Their files were not there; get them with ",
        element("code", f"skpll data fetch {' '.join(experiment.absent)}"),
        " and run the experiment again.",
    )


def _comparison(
    writer: _Writer, experiment: Experiment, results: Sequence[Result]
) -> list[Html | None]:
    curves = _curves(writer, experiment, results)
    return [
        element("div", *curves, class_="figures") if curves else None,
        writer.table(score_table(experiment, results), heading=False),
        _ranks(writer, experiment, results),
        writer.table(wins_table(experiment, results)),
        _details(
            "Mean, span and spread over the cases of a data set",
            [writer.table(spread_table(experiment, results), heading=False)],
        ),
    ]


def _curves(writer: _Writer, experiment: Experiment, results: Sequence[Result]) -> list[Html]:
    if experiment.specification.kind != "curves":
        return []
    styles = method_styles(result.method for result in results)
    panels = dict.fromkeys((result.dataset, result.r) for result in results if result.p is not None)
    shown = []
    for dataset, r in panels:
        display = AccuracyOverAmbiguityDisplay.from_results(results, data=dataset, r=r)
        display.title = f"{dataset_info(dataset).title}, r = {r}"
        shown.append(
            writer.figure(
                f"{experiment.name}-{dataset}-r{r}",
                display,
                f"Mean accuracy over p on {display.title}, {experiment.specification.protocol}.",
                styles=styles,
                highlight=experiment.specification.reference,
            )
        )
    return shown


def _ranks(writer: _Writer, experiment: Experiment, results: Sequence[Result]) -> Html | None:
    ranks = _rank_comparison(results)
    if ranks is None:
        return None
    display = CriticalDifferenceDisplay(ranks)
    longest = max(map(len, ranks.average_ranks))
    shared = len({result.dataset for result in results}) < len(ranks.data)
    told = "Methods joined by a bar are not told apart" if ranks.groups else "All are told apart"
    return join(
        element("h3", "Average ranks"),
        writer.figure(
            f"{experiment.name}-ranks",
            display,
            f"Average ranks over {len(ranks.data)} cases, 1 is the best. {told} at "
            f"{ranks.alpha:g} (Nemenyi). Friedman's test of all methods alike: "
            f"p = {ranks.p_value:.2g}."
            + (" Cases of one data set are not independent: the tests claim too much." * shared),
            size=(3.6 + 0.08 * longest, 1.2 + 0.22 * (display.rows + len(ranks.groups))),
        ),
    )


def _rank_comparison(results: Sequence[Result]) -> RankComparison | None:
    """Rank the methods over the cases in which all of them have a result."""
    means: dict[Case, dict[str, float]] = {}
    for score in summarize(results):
        means.setdefault(score.case, {})[score.method] = score.mean
    methods = {method for row in means.values() for method in row}
    complete = {str(case): row for case, row in means.items() if len(row) == len(methods)}
    return compare_ranks(complete) if len(complete) > 1 and len(methods) > 1 else None


def _sensitivity(
    writer: _Writer, experiment: Experiment, results: Sequence[Result]
) -> list[Html | None]:
    over = experiment.specification.over
    assert over is not None
    shown = []
    for dataset in dict.fromkeys(result.dataset for result in results):
        display = SensitivityDisplay.from_results(results, parameter=over, data=dataset)
        display.title = dataset_info(dataset).title
        shown.append(
            writer.figure(
                f"{experiment.name}-{dataset}",
                display,
                f"Mean accuracy over {over} on {display.title}, with a standard deviation, "
                f"{experiment.specification.protocol}.",
                band=True,
            )
        )
    return [
        element("div", *shown, class_="figures"),
        writer.table(sensitivity_table(experiment, results), heading=False),
    ]


def _traces(writer: _Writer, experiment: Experiment, results: Sequence[Result]) -> Html | None:
    """Show how SP-PLL went on the first fold of each data set, where that was kept."""
    first: dict[str, Result] = {}
    for result in results:
        if result.estimator == "sppll" and result.trace:
            first.setdefault(result.dataset, result)
    shown = []
    for dataset, result in first.items():
        trace = result.trace or []
        about = f"{result.method} on {Case.of(result)}, first fold"
        name = f"{experiment.name}-{dataset}"
        curriculum = CurriculumDisplay.from_trace(trace, n=result.n_train, title=about)
        objective = ObjectiveTraceDisplay.from_trace(trace, title=about)
        shown += [
            writer.figure(f"{name}-curriculum", curriculum, f"What is admitted: {about}."),
            writer.figure(f"{name}-objective", objective, f"Objective after a stage: {about}."),
        ]
    if not shown:
        return None
    return join(element("h3", "How SP-PLL went"), element("div", *shown, class_="figures"))


def _failures(writer: _Writer, failures: Sequence[Failure]) -> Html | None:
    if not failures:
        return None
    alike = Counter(
        (entry.experiment, entry.method, str(Case.of(entry)), entry.reason, entry.message)
        for entry in failures
    )
    columns = ("Experiment", "Method", "Data", "Reason", "Message", "Tasks")
    table = Table(
        name="failures",
        title="Tasks that failed",
        columns=tuple(map(Cell, columns)),
        rows=tuple(
            (*(Cell(text, text) for text in texts), Cell(str(times), times))
            for texts, times in alike.items()
        ),
        notes=("They are tried again by skpll run … --retry-failed.",),
        records=tuple(
            dict(zip(map(str.lower, columns), (*texts, times), strict=True))
            for texts, times in alike.items()
        ),
    )
    return element(
        "section", element("h2", table.title), writer.table(table, heading=False), id="failures"
    )


def _environment(writer: _Writer, experiments: Iterable[Experiment]) -> Html | None:
    rows, records = [], []
    for experiment in experiments:
        for run in experiment.runs:
            environment = run["environment"]
            versions = environment.get("versions", {})
            shown = {
                "experiment": experiment.name,
                "started": _moment(run["started"]),
                "ended": _moment(run["ended"]) if run["ended"] else "was cut off",
                "python": environment.get("python"),
                "platform": environment.get("platform"),
                "processors": environment.get("cpu_count"),
                **{name: version or "–" for name, version in versions.items()},
            }
            records.append(shown)
            rows.append(tuple(Cell(str(value), str(value)) for value in shown.values()))
    if not rows:
        return None
    table = Table(
        name="environment",
        title="What was run on what",
        columns=tuple(Cell(name) for name in records[0]),
        rows=tuple(rows),
        records=tuple(records),
    )
    return element(
        "section", element("h2", table.title), writer.table(table, heading=False), id="environment"
    )


# -- pieces of markup ----------------------------------------------------------------------


def _page(title: str, body: Html) -> str:
    folder = files(__package__).joinpath("templates")
    template, style, script = (
        folder.joinpath(f"report.{ending}").read_text(encoding="utf-8")
        for ending in ("html", "css", "js")
    )
    return Template(template).substitute(
        title=join(title), style=style.strip(), script=script.strip(), body=body
    )


def _scrolling(table: Table) -> Html:
    """Put a sortable table into a box that scrolls by itself."""
    numbers = [
        all(isinstance(row[place].value, int | float | None) for row in table.rows)
        for place in range(len(table.columns))
    ]
    heads = (
        element(
            "th",
            element("button", head.text, type="button"),
            element("small", head.detail) if head.detail else None,
            scope="col",
            class_="number" if number else None,
        )
        for head, number in zip(table.columns, numbers, strict=True)
    )
    marked = [any(row[place].mark for row in table.rows) for place in range(len(table.columns))]
    rows = (
        element(
            "tr",
            *(
                _entry(cell, place == 0, numbers[place], marked[place])
                for place, cell in enumerate(row)
            ),
        )
        for row in table.rows
    )
    return element(
        "div",
        element(
            "table",
            element("thead", element("tr", *heads)),
            element("tbody", *rows),
            class_="sortable",
        ),
        id=f"table-{table.name}",
        class_="scroll",
        role="region",
        aria_label=table.title,
        tabindex="0",
    )


def _entry(cell: Cell, first: bool, number: bool, marked: bool) -> Html:
    looks = {"number": number, "best": cell.best, "long": len(cell.text) > _LONG}
    return element(
        "th" if first else "td",
        cell.text,
        element("span", cell.mark, class_="mark") if marked else None,
        element("small", cell.detail) if cell.detail else None,
        scope="row" if first else None,
        class_=" ".join(name for name, wanted in looks.items() if wanted) or None,
        data_value=None if cell.value is None else str(cell.value),
    )


def _details(summary: str, parts: Iterable[Html | None]) -> Html | None:
    shown = [part for part in parts if part is not None]
    return element("details", element("summary", summary), *shown) if shown else None


def _links(stem: str, *endings: str) -> Html:
    names = {"csv": "CSV", "tex": "LaTeX", "pdf": "PDF", "png": "PNG"}
    links = [element("a", names[ending], href=f"{stem}.{ending}") for ending in endings]
    return element("span", links[0], " · ", *links[1:], class_="files")


def _moment(text: str) -> str:
    """Print a time of the store, which is UTC."""
    return f"{text[:16].replace('T', ' ')} UTC"
