"""`skpll fit`: learn a model from a table and save it."""

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


def fit(
    table: TableFile,
    out: Annotated[Path, typer.Option(help="Where to write the model, by custom ….skops.")],
    candidates: CandidatesColumn = None,
    sep: Separator = "|",
    id_column: IdColumn = None,
    features: Features = None,
    exclude: Exclude = None,
    method: Method = "sppll",
    parameters: Parameters = None,
    votes: VotesFile = None,
    vote_columns: VoteColumns = "item,annotator,label",
    decisions: Decisions = None,
    empty: EmptyCells = Empty.error,
    delimiter: Delimiter = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Learn a model from a table of candidate labels, for labelling other tables.

    The model holds everything from the columns to the label: how gaps are filled, numbers scaled
    and text encoded, and the method.

    Example: skpll fit people.csv --candidates names --out people.skops
    """
    from skpll.tables.models import save_model
    from skpll.tables.reading import read_table

    check_outputs([table, votes, decisions], [out])
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
        learned, given = request.learn(read_table(table, delimiter=delimiter))
        save_model(learned.model, out)
    result = {**describe(learned, given), "notes": notes, "out": str(out)}
    if as_json:
        print_json(result)
    elif not quiet:
        print_description(result)
        typer.echo(f"Written: {out}")
