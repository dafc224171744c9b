"""`skpll inspect`: what a table is taken for, before anything is learned from it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from .aggregate import print_agreement
from .exits import say
from .options import written_file
from .output import print_json, print_table
from .tables import Empty, Request, on_request, opening_lines, reporting

if TYPE_CHECKING:
    from skpll.tables.labels import Labels
    from skpll.tables.reading import Table


@on_request
def inspect(
    request: Request,
    propose_merge: Annotated[
        Path | None,
        written_file("A table to write, for --merge: spellings that seem to be one label."),
    ] = None,
) -> None:
    """Show how each column of a table is read and why, and what is known about its labels.

    The options that describe the table are those of skpll disambiguate. Without any of them, the
    columns that look like candidate labels are named. For votes, the agreement of the annotators
    is shown.

    Example: skpll inspect people.csv --candidates names
    """
    from skpll.diagnosis import diagnose
    from skpll.tables.formats import known_suffix, write_table
    from skpll.tables.inspecting import Inspection, candidate_columns
    from skpll.tables.label_studio import own_labels
    from skpll.tables.labels import proposed_merge
    from skpll.tables.votes import describe_agreement

    named = request.names_labels
    if propose_merge is not None:
        if not named:
            raise ValueError("--propose-merge: name the labels, for instance with --candidates.")
        known_suffix(propose_merge)
        request.check_outputs(propose_merge)

    with reporting(request.quiet) as notes:
        source = request.read()
        named = named or bool(own_labels(source))
        labels = _labels(request, source) if named else None
        inspection = Inspection.of(source, labels, **request.columns(source))
        agreement = None
        if labels is not None and labels.votes is not None:
            agreement = describe_agreement(labels.votes.found)
        likely = [] if named else candidate_columns(source)
        if propose_merge is not None and labels is not None:
            write_table(propose_merge, proposed_merge(labels.candidates), {})
        obstacles = [] if labels is None else diagnose(labels.candidates).sentences()
    summary = {
        **inspection.summary(),
        "agreement": agreement,
        "candidate_columns": likely,
        "obstacles": obstacles,
        "notes": notes,
    }
    if request.as_json:
        print_json(summary)
        return
    print_table(
        "Columns",
        ["column", "becomes", "gaps", "values"],
        [
            [
                column["name"],
                column["becomes"] if column["used"] else f"left out: {column['why']}",
                f"{column['missing']:.1%}",
                column["values"],
            ]
            for column in summary["columns"]
        ],
    )
    if labels is not None:
        print_table(
            "Labels",
            ["label", "expected rows"],
            list(summary["labels"]["expected_rows"].items()),
        )
    if agreement is not None:
        print_agreement(agreement)
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
