"""`skpll audit`: the accuracy of labels, from a random sample that a person decides."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from . import options as opt
from .exits import counted, say
from .output import percent
from .tables import check_outputs, display, reporting

if TYPE_CHECKING:
    from skpll.tables._extra import Plain


@dataclass(frozen=True, kw_only=True)
class LabelFile(opt.Printing):
    """A table of labels with confidences, as options."""

    labels: opt.TableFile
    label_column: Annotated[str, opt.column("The column of the labels.", "--label")] = "label"
    confidence_column: Annotated[
        str, opt.column("The column of the confidences.", "--confidence")
    ] = "confidence"
    delimiter: opt.Delimiter = None


@opt.taking(LabelFile)
def audit(
    request: LabelFile,
    rows: Annotated[
        int | None, opt.number("Number of rows to draw, for a person to decide.", min=1)
    ] = None,
    decisions: Annotated[
        Path | None, opt.given_file("The drawn rows, with the right labels in the column label.")
    ] = None,
    target: Annotated[
        float, opt.value("SHARE", "The accuracy that a review should lead to.", min=0, max=1)
    ] = 0.95,
    out: Annotated[
        Path | None,
        opt.written_file(
            "With --rows, the table or page (.html) of the drawn rows to write; with "
            "--decisions, the table with checked confidences added."
        ),
    ] = None,
    show: opt.Show = None,
    seed: opt.Seed = 0,
    escape_formulas: opt.EscapeFormulas = False,
) -> None:
    """Measure the accuracy of labels by a random sample that a person decides.

    First draw rows: skpll audit labels.csv --rows 100 --out check.html. Pick the right label of
    each row on that page, which does not show the guesses, and download check.csv. Then:
    skpll audit labels.csv --decisions check.csv

    With --out check.csv, a table is written instead: put the right labels into its column label.

    Rows are drawn at random within strata of similar confidence. Decisions on rows that were
    chosen because they are uncertain are not a random sample, so they are refused.
    """
    from skpll.tables._extra import pa
    from skpll.tables.formats import read_table, write_table
    from skpll.tables.reading import free_names
    from skpll.tables.review import audit_rows, read_audit, write_check

    if (rows is None) == (decisions is None):
        raise ValueError("give either --rows, to draw rows, or --decisions, to evaluate them.")
    page = False
    if out is not None:
        page = rows is not None and out.suffix.lower() in (".html", ".htm")
        tables, pages = ([], [out]) if page else ([out], [])
        check_outputs([request.labels, decisions], tables, pages)
    columns = (request.label_column, request.confidence_column)
    with reporting(request.quiet) as notes:
        table = read_table(request.labels, delimiter=request.delimiter)
        if decisions is not None:
            decided = read_table(decisions, delimiter=request.delimiter)
            result, corrected = read_audit(table, columns, decided, target)
            if out is not None:
                added = free_names({"checked_confidence": pa.array(corrected)}, table.names)
                write_table(out, table, added, escape_formulas=escape_formulas)
            result["out"] = None if out is None else str(out)
        elif out is None or rows is None:
            raise ValueError("--rows needs --out, a file for the drawn rows.")
        else:
            asked, cells = audit_rows(table, columns, rows, seed=seed)
            if page:
                shown = display(table, request.labels, show)
                write_check(out, table, columns, asked, display=shown)
            else:
                write_table(out, asked, cells, escape_formulas=escape_formulas)
            result = {"rows": table.n_rows, "drawn": asked.n_rows, "out": str(out)}
            result |= {"labels": str(request.labels), "page": page}
    request.print_result(result | {"notes": notes}, _print)


def _print(result: Plain) -> None:
    if "drawn" in result:
        say(
            f"{result['drawn']} of {result['rows']} rows drawn at random, stratified by confidence."
        )
        decisions = Path(result["out"])
        if result["page"]:
            decisions = decisions.with_suffix(".csv")
            say("Open the page, pick the right label of each row and download the decisions, then:")
        else:
            say("Fill in the column label with the right label of each row, then:")
        say(f"skpll audit {result['labels']} --decisions {decisions}")
        say(f"Written: {result['out']}")
        return
    say(
        f"Accuracy: {percent(result['accuracy'])}, 95 % interval {percent(result['low'])} to "
        f"{percent(result['high'])}, from {result['decided']} decided rows of {result['rows']}."
    )
    say(f"The confidences alone say {percent(result['believed'])}.")
    review, careful = result["review"], result["review_careful"]
    target = percent(result["target"])
    if not review["rows"]:
        say(f"By the estimate the labels reach {target} without a review.")
    else:
        say(
            f"To reach {target}: review {counted(review['rows'], 'row')} "
            f"{_below(review['below'])}, if every reviewed row is right then."
        )
    if careful["rows"] > review["rows"]:
        say(
            "If the accuracy is at the lower end of the interval: "
            f"{counted(careful['rows'], 'row')} {_below(careful['below'])}."
        )
    if result["out"]:
        say(f"Written: {result['out']}, with the column checked_confidence.")


def _below(confidence: float) -> str:
    return "(all)" if confidence > 1 else f"with a confidence below {confidence:.4g}"
