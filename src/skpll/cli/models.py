"""`skpll fit` and `skpll predict`: learn a model from a table, and label others with it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from . import options as opt
from .exits import counted, say
from .output import believed, scored
from .tables import Empty, Request, Source, check_outputs, parsed_settings, reporting, score_of

if TYPE_CHECKING:
    from skpll.tables._extra import Plain
    from skpll.tables.learning import TableModel
    from skpll.tables.reading import Table


@opt.taking(Request)
def fit(
    request: Request,
    out: Annotated[Path, opt.written_file("The model to write (.skops).")],
    more: Annotated[
        list[Path] | None, opt.existing_file("MORE", "More Parquet files of the same table.")
    ] = None,
    scheduler: Annotated[
        str | None,
        opt.value(
            "ADDRESS", "Learn on the Dask cluster with this scheduler, such as tcp://host:8786."
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
    from skpll.tables.formats import Parquet, ParquetTable
    from skpll.tables.learning import is_beyond_memory
    from skpll.tables.models import save_model
    from skpll.tables.reading import embedded

    files = [request.table, *(more or [])]
    check_outputs([*request.inputs, *files], [], [out])
    of_parquet = all(path.is_dir() or path.suffix.lower() in Parquet.suffixes for path in files)
    if not of_parquet and (more or scheduler is not None):
        raise ValueError(
            "only Parquet files can be several, or be learned from on a cluster; write the table "
            "as Parquet first."
        )
    with reporting(request.quiet) as notes:
        source = embedded(ParquetTable(*files), request.embeddings) if more else request.read()
        beyond_memory = scheduler is not None or (of_parquet and is_beyond_memory(source))
        if beyond_memory:
            model, result = _learn_beyond_memory(request, source, scheduler)
            save_model(model, out)
        else:
            learned = request.learn(source)
            save_model(learned.model, out)
            new_rows = asdict(learned.new_rows())
    if beyond_memory:
        request.print_result({**result, "notes": notes, "out": str(out)}, _print_beyond_memory)
    else:
        request.report(learned, new_rows=new_rows, notes=notes, out=str(out))


def _learn_beyond_memory(
    request: Request, source: Table, scheduler: str | None
) -> tuple[TableModel, Plain]:
    """Learn from some rows at a time; refuse options that need all rows in memory."""
    from skpll.tables.learning import learn_beyond_memory

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
        source,
        request.candidates,
        sep=request.sep,
        gaps=request.gap_words,
        parameters=parsed_settings(request.parameters),
        seed=request.seed,
        scheduler=scheduler,
        **options,
    )


def _print_beyond_memory(result: Plain) -> None:
    say(
        f"{counted(result['rows'], 'row')} in {counted(result['partitions'], 'group')}, "
        f"{counted(result['classes'], 'class')}.\n"
        + believed(result["mean_confidence"], "candidates err independently")
        + f"\nWritten: {result['out']}"
    )


@opt.taking(Source)
def predict(
    request: Source,
    model: Annotated[Path, opt.existing_file("MODEL", "A model that `skpll fit` wrote.")],
    out: Annotated[Path, opt.written_file("The table to write, with labels.")],
    probabilities: Annotated[
        bool, opt.flag("--probabilities", "Add the probability of every class.")
    ] = False,
    force: Annotated[
        bool,
        opt.flag("--force", "Predict even if most columns differ from the training data."),
    ] = False,
    truth: Annotated[
        str | None, opt.column("Column with the right label of some rows, to score by.")
    ] = None,
    escape_formulas: opt.EscapeFormulas = False,
) -> None:
    """Label the rows of a table with a saved model.

    The table is written again with the rows in order and the columns label and confidence added.
    Every column is held against what was learned from; a note says where they differ.

    Example: skpll predict people.skops others.csv --out labelled.csv
    """
    from skpll.tables.formats import write_table
    from skpll.tables.models import load_model

    check_outputs([model, request.table, request.embeddings], [out])
    with reporting(request.quiet or str(out) == "-") as notes:
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
    request.print_result(result, _print_predictions)


def _print_predictions(result: Plain) -> None:
    if result["truth"] is not None:
        say(scored(result["truth"]))
    rows = counted(result["rows"], "row")
    say(f"{rows} labelled with {result['method']}. Written: {result['out']}")
