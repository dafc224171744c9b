"""`skpll predict`: label the rows of a table with a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .exits import counted, say
from .options import one_column, written_file
from .output import print_json, scored
from .tables import EscapeFormulas, Source, check_outputs, on_source, reporting, score_of


@on_source
def predict(
    request: Source,
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="A model that `skpll fit` wrote.", exists=True, dir_okay=False
        ),
    ],
    out: Annotated[Path, written_file("The table to write, with labels.")],
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Add the probability of every class.")
    ] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Predict even if most columns differ from the training data."),
    ] = False,
    truth: Annotated[
        str | None, one_column("Column with the right label of some rows, to score by.")
    ] = None,
    escape_formulas: EscapeFormulas = False,
) -> None:
    """Label the rows of a table with a saved model.

    The table is written again with the rows in order and the columns label and confidence added.
    Every column is held against what was learned from; a note says where they differ.

    Example: skpll predict people.skops others.csv --out labelled.csv
    """
    from skpll.tables.formats import known_suffix, write_table
    from skpll.tables.models import load_model

    quiet = request.quiet or str(out) == "-"
    known_suffix(out)
    check_outputs([model, request.table, request.embeddings], [out])
    with reporting(quiet) as notes:
        source = request.read()
        loaded = load_model(model)
        added = loaded.predicted_columns(source, probabilities=probabilities, force=force)
        score = None if truth is None else score_of(source, truth, added)
        write_table(out, source, added, escape_formulas=escape_formulas)
    result = {
        "rows": source.n_rows,
        "classes": len(loaded.classes),
        "method": loaded.name,
        "columns_added": list(added),
        "truth": score,
        "notes": notes,
        "out": str(out),
    }
    if request.as_json and str(out) != "-":
        print_json(result)
    elif not quiet:
        if score is not None:
            say(scored(score))
        say(f"{counted(source.n_rows, 'row')} labelled with {loaded.name}. Written: {out}")
