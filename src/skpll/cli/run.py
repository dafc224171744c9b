"""`skpll run`: do what an experiment's store lacks."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .exits import DONE, FAILED, Interrupted, complain, say
from .options import AsJson, Quiet, experiment_names, taking
from .output import print_frame, print_json, progress_bar

if TYPE_CHECKING:
    from skpll.experiments import Summary


_HANDED_ON = ("jobs", "backend", "scheduler", "limit", "retry_failed", "time_limit")


@dataclass(frozen=True)
class Running:
    """How experiments are run: each field is an option of the command line."""

    store: Annotated[Path, typer.Option(metavar="FILE", help="The store of results.")] = Path(
        "results.db"
    )
    jobs: Annotated[
        int,
        typer.Option("--jobs", "-j", metavar="N", help="Parallel tasks; -1 uses all cores."),
    ] = -1
    backend: Annotated[
        str,
        typer.Option(metavar="NAME", help="processes (of this machine) or dask (a Dask cluster)."),
    ] = "processes"
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="The Dask scheduler, such as tcp://host:8786."),
    ] = None
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Maximum number of tasks to run.")
    ] = None
    quick: Annotated[bool, typer.Option("--quick", help="The small version of the experiment.")] = (
        False
    )
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run failed tasks again.")
    ] = False
    time_limit: Annotated[
        float | None, typer.Option(min=0.001, metavar="SECONDS", help="Time limit of a task.")
    ] = None
    as_json: AsJson = False
    quiet: Quiet = False

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


@taking(Running)
def run(
    running: Running,
    specification: Annotated[
        str,
        typer.Argument(
            metavar="SPECIFICATION",
            help="A TOML file, or the name of an experiment that comes with skpll.",
            autocompletion=experiment_names,
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
    from skpll.experiments.tables import headline

    with Store.open(store, read_only=True) as opened:
        (experiment,) = (e for e in opened.experiments() if e.name == summary.experiment)
        results = opened.results(experiment.name)
    if len(results):
        print_frame(headline(results, experiment))
