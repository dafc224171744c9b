"""`skpll disambiguate`: which of the candidates is right, for every row of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .tables import EscapeFormulas, Request, on_request, told


@on_request
def disambiguate(
    request: Request,
    out: Annotated[Path, typer.Option(help="Where to write the table with the labels added.")],
    report: Annotated[
        Path | None, typer.Option(help="Where to write a page (HTML) for reviewing the rows.")
    ] = None,
    escape_formulas: EscapeFormulas = False,
) -> None:
    """Find the right one among the candidate labels of every row.

    The table is written again with the rows in order and these columns added: label, confidence,
    runner_up, and certain (whether there was one candidate from the start).

    Example: skpll disambiguate people.csv --candidates names --out resolved.csv
    """
    from skpll.tables.formats import read_table, write_table
    from skpll.tables.review import write_review
    from skpll.tables.writing import written_whole

    request.check_outputs(out, report)
    with told(request.quiet) as notes:
        source = read_table(request.table, delimiter=request.delimiter)
        learned, given = request.learn(source)
        added = learned.resolution.columns(source.names)
        with written_whole(out) as beside:
            write_table(
                beside,
                source,
                added,
                file_format=out.suffix,
                sep=request.sep,
                escape_formulas=escape_formulas,
            )
            if report is not None:
                with written_whole(report) as page:
                    write_review(
                        page,
                        source,
                        learned,
                        id_column=request.id_column,
                        hidden=[] if request.candidates is None else [request.candidates],
                        title=request.table.name,
                    )
    request.report(
        learned,
        given,
        columns_added=list(added),
        notes=notes,
        out=str(out),
        report=None if report is None else str(report),
    )
