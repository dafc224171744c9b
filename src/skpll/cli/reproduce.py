"""`skpll reproduce`: the experiments that come with the package, from data to report."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from .exits import say
from .options import Results, experiment_names, taking
from .output import print_json
from .report import write
from .run import Running


@taking(Running)
def reproduce(
    running: Running,
    names: Annotated[
        list[str],
        typer.Argument(
            help="table3, table3-halves, table3-fifths, table3-scaling, table4, figure2 … 6, "
            "ambiguity, deep-uniform, or all (without deep-uniform).",
            autocompletion=experiment_names,
        ),
    ],
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="The folder to write the report to.")
    ] = Path("report"),
    results: Results = None,
) -> int:
    """Run experiments that come with the package, such as the paper's, and write a report.

    Example: skpll reproduce table3 --quick --store results.db --out report
    """
    from skpll.experiments import shipped_specifications
    from skpll.experiments.specification import COLLECTIONS
    from skpll.experiments.tasks import check_name

    everything = [name for _, names in COLLECTIONS.values() for name in names]
    wanted = everything if names == ["all"] else names
    for name in wanted:
        check_name(name, shipped_specifications(), "NAMES", "name")
    summaries = [running.run(name) for name in wanted]
    write(running.store, out, results)
    if running.as_json:
        print_json({"experiments": [asdict(summary) for summary in summaries], "report": str(out)})
    elif not running.quiet:
        say(f"report: {out}")
    return max(running.exit_status(summary) for summary in summaries)
