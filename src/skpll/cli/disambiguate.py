"""`skpll disambiguate`: which of the candidates is right, for every row of a table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from .tables import EscapeFormulas, Request, Show, display, on_request, reporting, score_of


@on_request
def disambiguate(
    request: Request,
    out: Annotated[
        Path,
        typer.Option(metavar="FILE", help="The table to write, with labels; - is standard output."),
    ],
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="An HTML page to write for reviewing the rows."),
    ] = None,
    show: Show = None,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Explain each label, in extra columns and on the page."),
    ] = False,
    ask: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Number of rows to ask people about."),
    ] = None,
    ask_out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The questions to write (default: next to --out)."),
    ] = None,
    truth: Annotated[
        str | None,
        typer.Option(help="Column with the right label of some rows, to score by; no feature."),
    ] = None,
    escape_formulas: EscapeFormulas = False,
) -> None:
    """Find the right one among the candidate labels of every row.

    The table is written again with the rows in order and these columns added: label, confidence,
    runner_up, and unanimous (whether there was one candidate from the start).

    Example: skpll disambiguate people.csv --candidates names --out resolved.csv
    """
    from skpll.tables.formats import known_suffix, write_table
    from skpll.tables.label_studio import task_columns

    if str(out) == "-":
        request = replace(request, quiet=True, as_json=False)
    if truth is not None:
        request = replace(request, exclude=[*(request.exclude or []), truth])
    suffix = known_suffix(out)
    questions = (ask_out or _next_to(out, suffix)) if ask else None
    request.check_outputs(out, report, questions)
    if questions is not None:
        known_suffix(questions)
    with reporting(request.quiet) as notes:
        source = request.read()
        shown = display(source, request.table, show)
        learned = request.learn(source)
        sep = learned.labels.separator or "|"
        explanations = None
        if explain:
            from skpll.tables.explaining import Explanations

            explanations = Explanations.of(source, learned)
        more = None if explanations is None else explanations.columns()
        added = learned.resolution.columns(source.names, more)
        score = None if truth is None else score_of(source, truth, added)
        written: list[Path] = []
        try:
            columns = task_columns(source, learned) if suffix in (".json", ".json.gz") else added
            write_table(out, source, columns, sep=sep, escape_formulas=escape_formulas)
            written.append(out)
            if ask and questions:
                from skpll.tables.asking import questions as ask_about

                asked = ask_about(source, learned, ask)
                asked[0].delimiter = source.delimiter
                write_table(questions, *asked, sep=sep, escape_formulas=escape_formulas)
                written.append(questions)
            if report is not None:
                from skpll.tables.review import write_review

                write_review(report, source, learned, display=shown, explanations=explanations)
        except OSError as error:
            before = ", ".join(map(str, written))
            raise OSError(f"{error} Written before: {before or 'nothing'}.") from None
    request.report(
        learned,
        columns_added=list(added),
        truth=score,
        notes=notes,
        out=str(out),
        report=None if report is None else str(report),
        questions=None if questions is None else str(questions),
    )


def _next_to(out: Path, suffix: str) -> Path:
    if str(out) == "-":
        return Path("questions.csv")
    return out.with_name(f"{out.name.removesuffix(suffix)}-questions{suffix}")
