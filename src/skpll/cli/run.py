"""`skpll run`: do what an experiment's store lacks."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .completion import experiment_names
from .exits import DONE, FAILED, Interrupted, complain
from .output import AsJson, Quiet, print_frame, print_json, progress_bar

if TYPE_CHECKING:
    from skpll.experiments import Specification, Summary

StorePath = Annotated[Path, typer.Option("--store", help="The file that results go to.")]
Jobs = Annotated[
    int, typer.Option("--jobs", "-j", help="Tasks at a time; -1 for as many as there are cores.")
]
Backend = Annotated[str, typer.Option(help="processes (of this machine) or dask (a Dask cluster).")]
Scheduler = Annotated[
    str | None, typer.Option(help="Address of the Dask scheduler, such as tcp://host:8786.")
]
Limit = Annotated[int | None, typer.Option(min=1, help="Do at most so many tasks.")]
Quick = Annotated[bool, typer.Option("--quick", help="The small version of the experiment.")]
RetryFailed = Annotated[
    bool, typer.Option("--retry-failed", help="Do tasks again that failed in an earlier run.")
]
TimeLimit = Annotated[float | None, typer.Option(min=0.001, help="Seconds that one task may take.")]


def run(
    specification: Annotated[
        str,
        typer.Argument(
            help="A TOML file, or the name of one that comes with skpll.",
            autocompletion=experiment_names,
        ),
    ],
    store: StorePath = Path("results.db"),
    jobs: Jobs = -1,
    backend: Backend = "processes",
    scheduler: Scheduler = None,
    limit: Limit = None,
    quick: Quick = False,
    retry_failed: RetryFailed = False,
    time_limit: TimeLimit = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Run an experiment, or go on with one that was interrupted, and show what came of it.

    Every result is in the store the moment it is there. Tasks that have a result are not done
    again.

    Example: skpll run experiment.toml --store results.db --jobs 2
    """
    from skpll.experiments import Specification

    options = {"jobs": jobs, "backend": backend, "scheduler": scheduler, "limit": limit}
    options |= {"retry_failed": retry_failed, "time_limit": time_limit}
    experiment = Specification.read(specification, quick=quick)
    summary = run_shown(experiment, store, shown=not quiet, **options)
    if as_json:
        print_json(asdict(summary))
    elif not quiet:
        typer.echo(describe(summary, store))
        show_results(summary, store)
    return exit_status(summary, store)


def run_shown(
    specification: Specification, store: Path, *, shown: bool, **options: object
) -> Summary:
    """Run an experiment with a progress display; an interrupt says how to go on."""
    from skpll.experiments import Store, run_experiment

    latest: list[Summary] = []
    try:
        with progress_bar(shown) as show:

            def watch(summary: Summary) -> None:
                latest[:] = [summary]
                state = f"{summary.done} done, {summary.failed} failed, {summary.running} running"
                finished = summary.planned - (summary.todo - summary.ran)
                show(f"{summary.experiment}: {state}", finished, summary.planned)

            return run_experiment(specification, store, progress=watch, **options)  # type: ignore[arg-type]
    except KeyboardInterrupt:
        if not latest:
            raise
        with Store.open(store, read_only=True) as opened:
            done, _ = opened.finished_keys(specification.name)
        raise Interrupted(
            f"interrupted; {len(done)} of {latest[0].planned} tasks of {specification.name} "
            f"are in {store}: give the same command again to go on"
        ) from None


def describe(summary: Summary, store: Path) -> str:
    """Say in one line what a run has come to."""
    left = summary.planned - summary.done - summary.failed
    parts = [f"{summary.experiment}: {summary.done} of {summary.planned} tasks done in {store}"]
    parts += [f"{summary.failed} failed"] if summary.failed else []
    parts += [f"{left} left"] if left else []
    if summary.absent:
        names = " ".join(summary.absent)
        parts.append(f"data that are not here: {names} (skpll data fetch {names})")
    return "; ".join(parts)


def show_results(summary: Summary, store: Path) -> None:
    """Print the table of results, if there are any."""
    from skpll.experiments import Store
    from skpll.experiments.tables import headline

    with Store.open(store, read_only=True) as opened:
        (experiment,) = (e for e in opened.experiments() if e.name == summary.experiment)
        results = opened.results(experiment.name)
    if len(results):
        print_frame(headline(results, experiment))


def exit_status(summary: Summary, store: Path) -> int:
    """Complain about failures, if there are any."""
    if not summary.failed:
        return DONE
    return complain(
        f"{summary.failed} of {summary.planned} tasks of {summary.experiment} have failed: "
        f"skpll status {store} says why, --retry-failed does them again",
        FAILED,
    )
