"""`skpll disambiguate`: which of the candidates is right, for every row of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .output import print_json
from .tables import (
    AsJson,
    CandidatesColumn,
    Decisions,
    Delimiter,
    Empty,
    EmptyCells,
    Exclude,
    Features,
    IdColumn,
    Method,
    Parameters,
    Quiet,
    Request,
    Seed,
    Separator,
    TableFile,
    VoteColumns,
    VotesFile,
    check_outputs,
    describe,
    print_description,
    told,
)


def disambiguate(
    table: TableFile,
    out: Annotated[Path, typer.Option(help="Where to write the table with the labels added.")],
    candidates: CandidatesColumn = None,
    sep: Separator = "|",
    id_column: IdColumn = None,
    features: Features = None,
    exclude: Exclude = None,
    method: Method = "sppll",
    parameters: Parameters = None,
    report: Annotated[
        Path | None, typer.Option(help="Where to write a page (HTML) for reviewing the rows.")
    ] = None,
    votes: VotesFile = None,
    vote_columns: VoteColumns = "item,annotator,label",
    decisions: Decisions = None,
    empty: EmptyCells = Empty.error,
    escape_formulas: Annotated[
        bool,
        typer.Option(
            "--escape-formulas", help="Put ' before text that a spreadsheet would run (CSV only)."
        ),
    ] = False,
    delimiter: Delimiter = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Find the right one among the candidate labels of every row.

    The table is written again with the rows in order and these columns added: label, confidence,
    runner_up, and certain (whether there was one candidate from the start).

    Example: skpll disambiguate people.csv --candidates names --out resolved.csv
    """
    from skpll.tables.reading import read_table
    from skpll.tables.review import write_review
    from skpll.tables.writing import write_table, written_whole

    check_outputs([table, votes, decisions], [out, report])
    request = Request(
        candidates=candidates,
        sep=sep,
        id_column=id_column,
        features=features,
        exclude=exclude,
        method=method,
        parameters=parameters,
        votes=votes,
        vote_columns=vote_columns,
        decisions=decisions,
        empty=empty,
        delimiter=delimiter,
        seed=seed,
    )
    with told(quiet) as notes:
        source = read_table(table, delimiter=delimiter)
        learned, given = request.learn(source)
        added = learned.resolution.columns(source.names)
        with written_whole(out) as beside:
            write_table(
                beside,
                source,
                added,
                file_format=out.suffix,
                sep=sep,
                escape_formulas=escape_formulas,
            )
            if report is not None:
                with written_whole(report) as page:
                    write_review(
                        page,
                        source,
                        learned,
                        id_column=id_column,
                        hidden=[] if candidates is None else [candidates],
                        title=table.name,
                    )
    result = {
        **describe(learned, given),
        "columns_added": list(added),
        "notes": notes,
        "out": str(out),
        "report": None if report is None else str(report),
    }
    if as_json:
        print_json(result)
    elif not quiet:
        print_description(result)
        typer.echo(f"Written: {out}" + ("" if report is None else f" and {report}"))
