"""`skpll report`: a page to read from a store of results."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .exits import say
from .options import AsJson, Results
from .output import print_json


class Open(StrEnum):
    """Whether to show the page."""

    yes = "yes"
    no = "no"


def write(store: Path, out: Path, results: Path | None) -> Path:
    """Write a report, and the results as one text if that is wanted; give the page to read."""
    from skpll.experiments.report import write_report

    if results is not None:
        from skpll.experiments.report import write_results

        write_results(store, results)
    return write_report(store, out)


def report(
    store: Annotated[Path, typer.Argument(help="The store that skpll run wrote.")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder to write to.")] = Path(
        "report"
    ),
    results: Results = None,
    open_: Annotated[
        Open, typer.Option("--open", help="Whether to open the page in a browser.")
    ] = Open.no,
    as_json: AsJson = False,
) -> None:
    """Write tables, figures and one page to read from the results in a store.

    The page index.html is complete by itself. Every table is also written as CSV and LaTeX, and
    every figure as PDF and PNG.

    Example: skpll report results.db --out report --results RESULTS.md
    """
    page = write(store, out, results)
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
