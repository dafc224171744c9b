"""The report: a folder with one page to read, and every table and figure as a file.

The page needs nothing beside itself: no network, no other file. Everything on it comes from the
store alone. Its tables are those that `skpll.experiments.tables.report_table` registers.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
from collections import Counter
from itertools import takewhile
from pathlib import Path
from typing import Any, get_args

from skpll import plotting
from skpll._extra import need

from .comparison import CriticalDifferenceDisplay, compare_ranks
from .render import caption, render, templates
from .specification import COLLECTIONS, Kind
from .store import Experiment, Store
from .tables import Content, Frame, make_tables, mean_accuracies, moment
from .tasks import Values

FEWEST_POINTS = 3  # in the figure of accuracy over time
_STYLE = Path(__file__).with_name("templates") / "report.mplstyle"


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

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skpll.experiments import Store
    >>> from skpll.experiments.report import write_report
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Store.open(Path(folder) / "results.db"):
    ...         pass  # an experiment would be run here
    ...     write_report(Path(folder) / "results.db", Path(folder) / "report").name
    'index.html'
    """
    folder = Path(out)
    with Store.open(store_path, read_only=True) as store:
        content = Content.read(store)
    experiments = sorted(content.experiments, key=lambda entry: get_args(Kind).index(entry.kind))
    content = content._replace(experiments=experiments)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"out: {folder} is a file; name a folder.")
    report, page = _Report(folder, content), templates().get_template("report.html")
    ends = [run["ended"] or run["started"] for entry in experiments for run in entry.runs]
    shown = [report.experiment(entry) for entry in experiments]
    text = page.render(
        store=Path(store_path).name,
        written=moment(max(ends)) if ends else None,
        content=content,
        of_plug_ins=[
            {"name": name, "title": about["title"], "tables": report.of_store(name)}
            for name, about in COLLECTIONS.items()
        ],
        experiments=shown,
        of_store=report.of_store(None),
    )
    path = folder / "index.html"
    path.write_text(text, encoding="utf-8")
    return path


class _Report:
    """Writes tables and figures as files, and gives each back as part of the page."""

    def __init__(self, folder: Path, content: Content) -> None:
        need("matplotlib.figure", "figures need matplotlib", "plot")
        self._content = content
        self._tables, self._figures = folder / "tables", folder / "figures"
        for place in (self._tables, self._figures):
            place.mkdir(parents=True, exist_ok=True)

    def _table(self, name: str, frame: Frame) -> dict[str, str]:
        name = _safe_name(name)
        for form in ("csv", "tex"):
            path = self._tables / f"{name}.{form}"
            path.write_text(render(frame, form, name), encoding="utf-8", newline="")
        return {"name": name, "title": frame.attrs["title"], "html": render(frame, "html", name)}

    def _figure(
        self, name: str, display: Any, description: str, *, size: Any = None, **options: Any
    ) -> dict[str, str]:
        from matplotlib import style
        from matplotlib.figure import Figure

        name = _safe_name(name)
        with style.context([_STYLE, {"svg.hashsalt": name}]):
            figure = Figure(figsize=size, layout="constrained")
            display.plot(figure.subplots(), **options)
            drawn = io.BytesIO()
            blank = dict.fromkeys(("Date", "Creator", "Format", "Type"))
            figure.savefig(drawn, format="svg", transparent=True, metadata=blank)
            figure.set_layout_engine("none")  # once laid out, it need not be again
            figure.savefig(self._figures / f"{name}.pdf", metadata={"CreationDate": None})
            figure.savefig(self._figures / f"{name}.png", dpi=200)
        address = f"data:image/svg+xml;base64,{base64.b64encode(drawn.getvalue()).decode()}"
        return {"name": name, "description": description, "address": address}

    def of_store(self, collection: str | None) -> list[dict[str, str]]:
        """Make the tables about all experiments, or about all those of a plug-in."""
        there = self._content.experiments
        kept = [entry for entry in there if collection in (None, entry.collection)]
        found = make_tables(self._content.of(*kept), "store", collection)
        return [self._table(table.name, frame) for table, frame in found]

    def experiment(self, experiment: Experiment) -> Values:
        """Make the section of an experiment."""
        content = self._content.of(experiment)
        results = content.results
        tables: dict[str, list[dict[str, str]]] = {}
        for table, frame in make_tables(content, experiment.kind, experiment.collection):
            shown = self._table(f"{experiment.name}-{table.name}", frame)
            tables.setdefault(table.details, []).append(shown)
        return {
            "about": experiment,
            "content": content,
            "figures": self._curves(experiment, results),
            "ranks": self._ranks(experiment, results) if len(results) else None,
            "tables": tables.pop("", []),
            "folded": tables,
        }

    def _curves(self, experiment: Experiment, results: Frame) -> list[dict[str, str]]:
        """Draw the accuracy over time, or on each data set over p or what else is varied."""
        if results.empty:
            return []
        if experiment.kind == "table":
            points = plotting.AccuracyOverTimeDisplay.from_results(results)
            if len(points.methods) < FEWEST_POINTS:
                return []
            name, about = f"{experiment.name}-times", caption("times", experiment)
            highlight = experiment.reference
            return [self._figure(name, points, about, size=(7, 5), highlight=highlight)]
        over_p = experiment.kind == "curves"
        styles = plotting.method_styles(results["method"])
        look = {"styles": styles, "highlight": experiment.reference} if over_p else {"band": True}
        kind: Any = plotting.AccuracyOverAmbiguityDisplay if over_p else plotting.SensitivityDisplay
        what = {} if over_p else {"parameter": experiment.over}
        panels: Any = results.groupby(["dataset", "data"] + ["r"] * over_p, sort=False)
        shown = []
        for (dataset, data, *r), panel in panels:
            display = kind.from_results(panel, data=dataset, **what)
            display.title = ", ".join([data, *(f"r = {number}" for number in r)])
            name = _file_name(experiment, dataset, data, *(f"r{number}" for number in r))
            about = caption(experiment.kind, experiment, display.title)
            shown.append(self._figure(name, display, about, **look))
        return shown

    def _ranks(self, experiment: Experiment, results: Frame) -> dict[str, str] | None:
        """Rank the methods that do not use the truth, over the cases that all of them have."""
        means = mean_accuracies(results, "case").T.dropna()
        if experiment.kind == "sensitivity" or min(means.shape) < 2:
            return None
        ranks = compare_ranks(means.to_dict("index"))  # type: ignore[arg-type]
        display = CriticalDifferenceDisplay(ranks)
        longest = max(map(len, ranks.average_ranks))
        width = 3.6 + 0.08 * longest + 0.3 * max(len(ranks.average_ranks) - 9, 0)
        size = (width, 1.2 + 0.22 * (display.rows + len(ranks.groups)))
        about = caption("ranks", ranks, results["dataset"].nunique())
        return self._figure(f"{experiment.name}-ranks", display, about, size=size)


def _file_name(experiment: Experiment, dataset: str, title: str, *parts: str) -> str:
    """Name a figure by the data set, and by what its title has beyond that of the data set."""
    more = title.removeprefix(experiment.titles.get(dataset, dataset)).split(", ")[1:]
    return "-".join([experiment.name, dataset, *parts, *(word.replace(" = ", "") for word in more)])


def _safe_name(name: str) -> str:
    """Return a name that can't lead out of a folder; one that has to be changed gets a digest."""
    safe = re.sub(r"[^\w.-]|^\.+", "_", name)[:150]
    return safe if safe == name else f"{safe}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


# -- the results as one text ---------------------------------------------------------------


def write_results(store_path: str | os.PathLike[str], out: str | os.PathLike[str]) -> Path:
    """Write the content of a store: tables, the commands that gave them, what is missing and why.

    Parameters
    ----------
    store_path : path-like
        The store.
    out : path-like
        The file to write, in a folder that is made where it is not there; a file that is there
        is replaced.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    FileNotFoundError
        If there is no such store.
    ValueError
        If the file is not a store.
    """
    with Store.open(store_path, read_only=True) as store:
        content = Content.read(store)
        planned = store.planned()
    parts = []
    others = {"title": "Other experiments", "experiments": []}
    for name, collection in [*reversed(COLLECTIONS.items()), (None, others)]:
        order = [*collection["experiments"], *(entry.name for entry in content.experiments)]
        own = [entry for entry in content.experiments if entry.collection == name]
        own.sort(key=lambda entry: order.index(entry.name))
        tables = _written(content.of(*own), "store", name)
        sections = [_section(content.of(entry), planned) for entry in own]
        texts = {text: _text_of(name, f"{text}.md") for text in ("about", "summary")}
        if own:
            part = {"title": collection["title"], "experiments": sections, "tables": tables}
            parts.append(part | texts)
    machines = _machines(content)
    text = templates().get_template("results.md").render(parts=parts, machines=machines)
    path = Path(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _text_of(collection: str | None, name: str) -> str:
    """Return a text of a collection, if it has it."""
    path = Path(__file__).with_name(str(collection)) / name
    return path.read_text(encoding="utf-8").rstrip() if path.is_file() else ""


def _written(content: Content, kind: str, collection: str | None) -> list[str]:
    tables = make_tables(content, kind, collection, "in_results")
    return [render(frame, "md") for _, frame in tables]


def _section(content: Content, planned: Frame) -> Values:
    """Describe an experiment: what it is, its tables, and what is missing."""
    (experiment,) = content.experiments
    comment = takewhile(lambda line: line.startswith("#"), experiment.text.splitlines())
    planned = planned[planned["experiment"] == experiment.name]
    return {
        "about": experiment,
        "comment": "\n".join(line.lstrip("# ") for line in comment),
        "done": content.results["key"].nunique(),
        "tables": _written(content, experiment.kind, experiment.collection),
        "missing": _missing(planned, content.results, content.failures),
    }


def _missing(planned: Frame, done: Frame, failures: Frame) -> list[str]:
    """Return why places in a table are empty."""
    if done.empty:
        return ["nothing was run yet"]
    pairs = set(zip(done["case"], done["method"], strict=True))
    wanted = zip(planned["case"], planned["method"], strict=True)
    left = planned[[pair not in pairs for pair in wanted]]
    failed = dict(zip(failures["key"], failures["reason"], strict=True))
    places: dict[str, list[str]] = {}
    for method, rows in left.groupby("method", sort=False):
        why = sorted({failed.get(key, "not run yet") for key in rows["key"]})
        where = f"on {', '.join(sorted(set(rows['data'])))} ({', '.join(why)})"
        places.setdefault(where, []).append(str(method))
    return [f"{', '.join(methods)} {where}" for where, methods in places.items()]


def _machines(content: Content) -> list[dict[str, Any]]:
    """Return the environments of the results, with the number of results of each."""
    runs = (run for experiment in content.experiments for run in experiment.runs)
    known = {run["id"]: json.dumps(run["environment"]) for run in runs}
    counts = Counter(content.results.drop_duplicates("key")["run"].map(known))
    return [{"results": number, **json.loads(text)} for text, number in counts.most_common()]
