"""The commands for experiments: `skpll run`, `skpll status`, `skpll report`, `skpll reproduce`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options as opt
from .exits import DONE, FAILED, Interrupted, complain, say
from .output import print_frame, print_json, print_table, progress_bar

if TYPE_CHECKING:
    from skpll.experiments import Summary
    from skpll.experiments.tables import Content
    from skpll.tables._extra import Plain


_HANDED_ON = ("jobs", "backend", "scheduler", "limit", "retry_failed", "time_limit")


@dataclass(frozen=True, kw_only=True)
class Running(opt.Printing):
    """How experiments are run: each field is an option of the command line."""

    store: Annotated[Path, opt.value("FILE", "The store of results.")] = Path("results.db")
    jobs: Annotated[int, opt.number("Parallel tasks; -1 uses all cores.", "--jobs", "-j")] = -1
    backend: Annotated[
        str, opt.value("NAME", "processes (of this machine) or dask (a Dask cluster).")
    ] = "processes"
    scheduler: Annotated[
        str | None, opt.value("ADDRESS", "The Dask scheduler, such as tcp://host:8786.")
    ] = None
    limit: Annotated[int | None, opt.number("Maximum number of tasks to run.", min=1)] = None
    quick: Annotated[bool, opt.flag("--quick", "The small version of the experiment.")] = False
    retry_failed: Annotated[bool, opt.flag("--retry-failed", "Run failed tasks again.")] = False
    time_limit: Annotated[
        float | None, opt.value("SECONDS", "Time limit of a task.", min=0.001)
    ] = None

    def run(self, name: str) -> Summary:
        """Run an experiment with a progress bar, and print one line of summary."""
        from skpll.experiments import Specification, Store, run_experiment

        specification = Specification.read(name, quick=self.quick)
        latest: list[Summary] = []
        try:
            with progress_bar(not self.quiet) as show:

                def watch(summary: Summary) -> None:
                    latest[:] = [summary]
                    state = f"{summary.done} done, {summary.failed} failed"
                    finished = summary.planned - (summary.todo - summary.ran)
                    label = f"{summary.experiment}: {state}, {summary.running} running"
                    show(label, finished, summary.planned)

                options: Any = {name: getattr(self, name) for name in _HANDED_ON}
                summary = run_experiment(specification, self.store, progress=watch, **options)
        except KeyboardInterrupt:
            if not latest:
                raise
            with Store.open(self.store, read_only=True) as opened:
                done, _ = opened.finished_keys(specification.name)
            raise Interrupted(
                f"interrupted; {len(done)} of {latest[0].planned} tasks of {specification.name} "
                f"are in {self.store}: give the same command again to go on"
            ) from None
        if not self.quiet and not self.as_json:
            say(_describe(summary, self.store))
        return summary

    def exit_status(self, summary: Summary) -> int:
        """Complain about failures, if there are any."""
        if not summary.failed:
            return DONE
        return complain(
            f"{summary.failed} of {summary.planned} tasks of {summary.experiment} have failed: "
            f"skpll status {self.store} says why, --retry-failed does them again",
            FAILED,
        )


@opt.taking(Running)
def run(
    running: Running,
    specification: Annotated[
        str,
        opt.argument(
            "SPECIFICATION",
            "A TOML file, or the name of an experiment that comes with skpll.",
            autocompletion=opt.experiment_names,
        ),
    ],
) -> int:
    """Run an experiment, or continue one that was interrupted, and show its results.

    Every result is stored as soon as it is there. Tasks that have a result are not run again.

    Example: skpll run experiment.toml --store results.db --jobs 2
    """
    summary = running.run(specification)
    if running.as_json:
        print_json(asdict(summary))
    elif not running.quiet:
        _show_results(summary, running.store)
    return running.exit_status(summary)


def _describe(summary: Summary, store: Path) -> str:
    """Summarize a run in one line."""
    left = summary.planned - summary.done - summary.failed
    parts = [f"{summary.experiment}: {summary.done} of {summary.planned} tasks done in {store}"]
    parts += [f"{summary.failed} failed"] if summary.failed else []
    parts += [f"{left} left"] if left else []
    if summary.absent:
        names = " ".join(summary.absent)
        parts.append(f"data that are not here: {names} (skpll data fetch {names})")
    return "; ".join(parts)


def _show_results(summary: Summary, store: Path) -> None:
    """Print the table of results, if there are any."""
    from skpll.experiments import Store
    from skpll.experiments.tables import score_table, sensitivity

    with Store.open(store, read_only=True) as opened:
        (experiment,) = (e for e in opened.experiments() if e.name == summary.experiment)
        results = opened.results(experiment.name)
    if len(results):
        table = sensitivity if experiment.kind == "sensitivity" else score_table
        print_frame(table(results, experiment))


def status(
    store: Annotated[Path, opt.existing_file("STORE", "The file with the results.")],
    as_json: opt.AsJson = False,
) -> None:
    """Show how far each experiment is, which tasks failed and why, and which data are missing.

    Example: skpll status results.db
    """
    from skpll.experiments import Store
    from skpll.experiments.tables import Content, failures, versions

    with Store.open(store, read_only=True) as opened:
        content = Content.read(opened)
    found = [_summary(content.of(experiment)) for experiment in content.experiments]
    if as_json:
        print_json(found)
        return
    shown = ["name", "title", "planned", "done", "older", "failed", "left"]
    print_table(
        f"Experiments in {store}",
        [*shown, "hours", "last run"],
        [
            [*(e[key] for key in shown), e["seconds"] / 3600, e["runs"][-1]["started"]]
            for e in found
        ],
    )
    for experiment in content.experiments:
        results = content.of(experiment).results
        if results["older"].any():
            print_frame(versions(results, experiment))
        for name in experiment.absent:
            say(f"{experiment.name}: {name} is not here: skpll data fetch {name}")
    if len(content.failures):
        print_frame(failures(content))


def _summary(content: Content) -> Plain:
    """Describe one experiment; a task that it has under two labels counts once."""
    from skpll.experiments.tables import failures, versions

    (experiment,) = content.experiments
    done, failed = (frame.drop_duplicates("key") for frame in content[1:])
    about = {name: getattr(experiment, name) for name in ("name", "title", "quick", "planned")}
    return {
        **about,
        "done": len(done),
        "older": int(done["older"].sum()),
        "failed": len(failed),
        "left": experiment.planned - len(done) - len(failed),
        "seconds": float(done["seconds"].sum()),
        "absent": experiment.absent,
        "failures": failures(content).to_dict("records"),
        "versions": versions(done, experiment).to_dict("records"),
        "runs": experiment.runs,
    }


class Open(StrEnum):
    """Whether to show the page."""

    yes = "yes"
    no = "no"


def _write_pages(store: Path, out: Path, results: Path | None) -> Path:
    """Write a report, and the results as one text if that is wanted; give the page to read."""
    from skpll.experiments.report import write_report

    if results is not None:
        from skpll.experiments.report import write_results

        write_results(store, results)
    return write_report(store, out)


def report(
    store: Annotated[Path, typer.Argument(help="The store that skpll run wrote.")],
    out: opt.Report = Path("report"),
    results: opt.Results = None,
    open_: Annotated[
        Open, typer.Option("--open", help="Whether to open the page in a browser.")
    ] = Open.no,
    as_json: opt.AsJson = False,
) -> None:
    """Write tables, figures and one page to read from the results in a store.

    The page index.html is complete by itself. Every table is also written as CSV and LaTeX, and
    every figure as PDF and PNG.

    Example: skpll report results.db --out report --results RESULTS.md
    """
    page = _write_pages(store, out, results)
    if as_json:
        print_json(
            {
                "page": str(page),
                "tables": sorted(map(str, (out / "tables").iterdir())),
                "figures": sorted(map(str, (out / "figures").iterdir())),
            }
        )
    else:
        say(str(page))
    if open_ is Open.yes:
        typer.launch(page.resolve().as_uri())


@opt.taking(Running)
def reproduce(
    running: Running,
    names: Annotated[
        list[str],
        typer.Argument(
            help="table3, table3-halves, table3-fifths, table3-scaling, table4, figure2 … 6, "
            "ambiguity, deep-uniform, or all (without deep-uniform).",
            autocompletion=opt.experiment_names,
        ),
    ],
    out: opt.Report = Path("report"),
    results: opt.Results = None,
) -> int:
    """Run experiments that come with the package, such as the paper's, and write a report.

    Example: skpll reproduce table3 --quick --store results.db --out report
    """
    from skpll.experiments import shipped_specifications
    from skpll.experiments.specification import COLLECTIONS
    from skpll.experiments.tasks import check_name

    everything = [name for entry in COLLECTIONS.values() for name in entry["experiments"]]
    wanted = everything if names == ["all"] else names
    for name in wanted:
        check_name(name, shipped_specifications(), "NAMES", "name")
    summaries = [running.run(name) for name in wanted]
    _write_pages(running.store, out, results)
    if running.as_json:
        print_json({"experiments": [asdict(summary) for summary in summaries], "report": str(out)})
    elif not running.quiet:
        say(f"report: {out}")
    return max(running.exit_status(summary) for summary in summaries)
