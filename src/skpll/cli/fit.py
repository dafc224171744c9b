"""`skpll fit`: learn a model from a table and save it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .exits import counted, say
from .options import written_file
from .output import believed, print_json
from .tables import Empty, Request, check_outputs, on_request, parsed_settings, reporting

if TYPE_CHECKING:
    from skpll.tables.beyond_memory import LargeFit
    from skpll.tables.reading import Table


@on_request
def fit(
    request: Request,
    out: Annotated[Path, written_file("The model to write (.skops).")],
    more: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="MORE",
            help="More Parquet files of the same table.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Learn on the Dask cluster with this scheduler, such as tcp://host:8786.",
        ),
    ] = None,
) -> None:
    """Learn a model from a table of candidate labels, for labelling other tables.

    The model holds everything from the columns to the label: how gaps are filled, numbers scaled
    and text encoded, and the method. How often it will be right for new rows is estimated with
    models that have not seen some of the rows.

    Parquet files whose features would take more than a quarter of this computer's memory are read
    some rows at a time, by Dask.

    Example: skpll fit people.csv --candidates names --out people.skops
    """
    from skpll.tables.beyond_memory import is_beyond_memory
    from skpll.tables.formats import Parquet, ParquetTable
    from skpll.tables.models import save_model
    from skpll.tables.reading import embedded

    files = [request.table, *(more or [])]
    check_outputs(files, [out])
    request.check_outputs(out)
    of_parquet = all(path.is_dir() or path.suffix.lower() in Parquet.suffixes for path in files)
    if not of_parquet and (more or scheduler is not None):
        raise ValueError(
            "only Parquet files can be several, or be learned from on a cluster; write the table "
            "as Parquet first."
        )
    with reporting(request.quiet) as notes:
        source = embedded(ParquetTable(*files), request.embeddings) if more else request.read()
        if scheduler is not None or (of_parquet and is_beyond_memory(source)):
            large = _learn_beyond_memory(request, files, source, scheduler)
            save_model(large.model, out)
        else:
            learned = request.learn(source)
            save_model(learned.model, out)
            new_rows = asdict(learned.new_rows())
            large = None
    if large is None:
        request.report(learned, new_rows=new_rows, notes=notes, out=str(out))
    else:
        _report(request, large, notes, out)


def _learn_beyond_memory(
    request: Request, files: Sequence[Path], source: Table, scheduler: str | None
) -> LargeFit:
    """Learn from some rows at a time; refuse options that need all rows in memory."""
    from skpll.tables.beyond_memory import learn_beyond_memory

    refused = {
        "--votes": request.votes is not None,
        "--annotators": request.annotators is not None,
        "--decisions": request.decisions is not None,
        "--embeddings": request.embeddings is not None,
        "--merge": request.merge is not None,
        "--empty any": request.empty == Empty.any,
        f"--method {request.method}": request.method != "plloo",
        "no --candidates": request.candidates is None,
    }
    wrong = [option for option, given in refused.items() if given]
    if request.candidates is None or wrong:
        raise ValueError(
            f"{', '.join(wrong)}: all rows would have to be in memory; tables beyond it are "
            "learned from with plloo and a column of --candidates."
        )
    if not request.quiet:
        where = "the threads of this computer" if scheduler is None else f"the cluster {scheduler}"
        say(
            f"{source.n_rows} rows of {len(source.names)} columns: learned from some rows at a "
            f"time, by Dask on {where}. What the columns are is judged by 50 000 rows.",
            error=True,
        )
    options = request.columns(source)
    if request.id_column is not None:
        options["exclude"] = [*options["exclude"], request.id_column]
    return learn_beyond_memory(
        files,
        request.candidates,
        sep=request.sep,
        gaps=request.gap_words,
        parameters=parsed_settings(request.parameters),
        seed=request.seed,
        scheduler=scheduler,
        **options,
    )


def _report(request: Request, large: LargeFit, notes: list[str], out: Path) -> None:
    """Print what was learned and where it is, as JSON or as text."""
    result = {
        "rows": large.rows,
        "partitions": large.partitions,
        "classes": len(large.model.classes),
        "method": large.model.name,
        "parameters": large.model.changed_parameters(),
        "features": large.model.columns.kinds,
        "mean_confidence": large.mean_confidence,
        "notes": notes,
        "out": str(out),
    }
    if request.as_json:
        print_json(result)
    elif not request.quiet:
        say(
            f"{counted(large.rows, 'row')} in {counted(large.partitions, 'group')}, "
            f"{counted(len(large.model.classes), 'class')}.\n"
            + believed(large.mean_confidence, "candidates err independently")
            + f"\nWritten: {out}"
        )
