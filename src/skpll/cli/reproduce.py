"""`skpll reproduce`: the experiments that come with the package, from data to report."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from .completion import experiment_names
from .exits import DONE, FAILED
from .output import AsJson, Quiet, print_json
from .run import (
    Backend,
    Jobs,
    Limit,
    Quick,
    RetryFailed,
    Scheduler,
    StorePath,
    TimeLimit,
    describe,
    exit_status,
    run_shown,
)


def reproduce(
    names: Annotated[
        list[str],
        typer.Argument(
            help="table3, table3-halves, table3-fifths, table4, figure2 … 6, ambiguity, or all.",
            autocompletion=experiment_names,
        ),
    ],
    store: StorePath = Path("results.db"),
    out: Annotated[Path, typer.Option(help="The folder that the report goes to.")] = Path("report"),
    results: Annotated[
        Path | None,
        typer.Option(help="Write the results to this file too, as one text in Markdown."),
    ] = None,
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
    """Run experiments that come with the package, such as the paper's, and write a report.

    Example: skpll reproduce table3 --quick --store results.db --out report
    """
    from skpll.experiments import Specification, shipped_specifications
    from skpll.experiments._reading import check_name
    from skpll.experiments.specification import plug_ins

    everything = [name for plug_in in plug_ins().values() for name in plug_in.EXPERIMENTS]
    wanted = everything if names == ["all"] else names
    for name in wanted:
        check_name(name, shipped_specifications(), "NAMES", "name")
    options = {"jobs": jobs, "backend": backend, "scheduler": scheduler, "limit": limit}
    options |= {"retry_failed": retry_failed, "time_limit": time_limit}
    summaries = []
    for specification in [Specification.read(name, quick=quick) for name in wanted]:
        summary = run_shown(specification, store, shown=not quiet, **options)
        summaries.append(summary)
        if not quiet and not as_json:
            typer.echo(describe(summary, store))
    from skpll.experiments.report import write_report

    write_report(store, out)
    if results is not None:
        from skpll.experiments.results import write_results

        write_results(store, results)
    if as_json:
        print_json({"experiments": [asdict(summary) for summary in summaries], "report": str(out)})
    elif not quiet:
        typer.echo(f"report: {out}")
    statuses = [exit_status(summary, store) for summary in summaries]
    return FAILED if FAILED in statuses else DONE
