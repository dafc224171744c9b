"""`skpll fit`: learn a model from a table and save it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from .tables import Request, on_request, told


@on_request
def fit(
    request: Request,
    out: Annotated[Path, typer.Option(help="Where to write the model, by custom ….skops.")],
) -> None:
    """Learn a model from a table of candidate labels, for labelling other tables.

    The model holds everything from the columns to the label: how gaps are filled, numbers scaled
    and text encoded, and the method. How often it will be right for new rows is estimated with
    models that have not seen some of the rows.

    Example: skpll fit people.csv --candidates names --out people.skops
    """
    from skpll.tables.formats import read_table
    from skpll.tables.models import save_model

    request.check_outputs(out)
    with told(request.quiet) as notes:
        learned = request.learn(read_table(request.table, delimiter=request.delimiter))
        save_model(learned.model, out)
        new_rows = asdict(learned.new_rows())
    request.report(learned, new_rows=new_rows, notes=notes, out=str(out))
