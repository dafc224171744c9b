"""`skpll inspect`: what a table is taken for, before anything is learned from it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .exits import say
from .output import print_json, print_table
from .tables import Empty, Request, on_request, opening_lines, reporting

if TYPE_CHECKING:
    from skpll.tables.labels import Labels
    from skpll.tables.reading import Table


@on_request
def inspect(request: Request) -> None:
    """Show how each column of a table is read and why, and what is known about its labels.

    It has the options of `skpll disambiguate` that describe the table. Without any of them, it
    names the columns that look like candidate labels.

    Example: skpll inspect people.csv --candidates names
    """
    from skpll.diagnosis import diagnose
    from skpll.tables.columns import survey
    from skpll.tables.formats import read_table
    from skpll.tables.inspecting import Inspection, candidate_columns

    with reporting(request.quiet) as notes:
        source = read_table(request.table, delimiter=request.delimiter)
        named = request.names_labels
        labels = _labels(request, source) if named else None
        chosen, excluded = request.feature_names(source)
        own = () if labels is None else labels.columns
        columns = survey(source, features=chosen, exclude=[*excluded, *own])
        inspection = Inspection(source.n_rows, columns, labels)
        likely = [] if named else candidate_columns(source)
        obstacles = [] if labels is None else diagnose(labels.candidates).sentences()
    summary = {
        **inspection.summary(),
        "candidate_columns": likely,
        "obstacles": obstacles,
        "notes": notes,
    }
    if request.as_json:
        print_json(summary)
        return
    print_table(
        "Columns",
        ["column", "read as", "used", "why", "missing", "values"],
        [
            [
                column["name"],
                column["kind"] or "–",
                "yes" if column["used"] else "no",
                column["why"],
                f"{column['missing']:.1%}",
                column["values"],
            ]
            for column in summary["columns"]
        ],
    )
    if labels is not None:
        print_table(
            "Labels",
            ["label", "expected rows, if all candidates count the same"],
            list(summary["labels"]["expected_rows"].items()),
        )
    for line in opening_lines(summary):
        say(line)
    for obstacle in obstacles:
        say(f"Can't be learned: {obstacle}")
    if likely:
        say(f"Candidate labels seem to be in: {', '.join(likely)} (--candidates).")
    elif not named:
        say("No column looks like candidate labels; name it with --candidates.")


def _labels(request: Request, source: Table) -> Labels:
    """Read the labels; a row without any is worth a note, and no reason to stop."""
    from skpll.tables._extra import note

    try:
        return request.labels(source)
    except ValueError as error:
        found = replace(request, empty=Empty.any).labels(source)
        note(str(error))
        return found
