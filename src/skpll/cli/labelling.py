"""`skpll inspect`, `disambiguate`, `fit` and `predict`: how a table is read, labels and models."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from . import options as opt
from .exits import counted, say
from .output import believed, print_table, scored
from .tables import (
    Empty,
    Request,
    Source,
    check_outputs,
    display,
    parsed_settings,
    print_opening,
    reporting,
    score_of,
)
from .votes import print_aggregation, print_agreement

if TYPE_CHECKING:
    from skpll.tables._extra import Plain
    from skpll.tables.labels import Labels
    from skpll.tables.learning import Learned, TableModel
    from skpll.tables.reading import Table
    from skpll.tables.review import Display


@opt.taking(Request)
def inspect(
    request: Request,
    propose_merge: Annotated[
        Path | None,
        opt.written_file("A table to write, for --merge: spellings that seem to be one label."),
    ] = None,
) -> None:
    """Show how each column of a table is read and why, and what is known about its labels.

    The options that describe the table are those of skpll disambiguate. Without any of them, the
    columns that look like candidate labels are named. For votes, the agreement of the annotators
    is shown.

    Example: skpll inspect people.csv --candidates names
    """
    from skpll.diagnosis import diagnose
    from skpll.tables.formats import write_table
    from skpll.tables.label_studio import own_labels
    from skpll.tables.labels import candidate_columns, proposed_merge
    from skpll.tables.learning import inspect_table
    from skpll.tables.votes import describe_agreement

    named = request.names_labels
    if propose_merge is not None:
        if not named:
            raise ValueError("--propose-merge: name the labels, for instance with --candidates.")
        check_outputs(request.inputs, [propose_merge])

    with reporting(request.quiet) as notes:
        source = request.read()
        named = named or bool(own_labels(source))
        labels = _labels(request, source) if named else None
        summary = inspect_table(source, labels, **request.columns(source))
        agreement = None
        if labels is not None and labels.votes is not None:
            agreement = describe_agreement(labels.votes.found)
        likely = [] if named else candidate_columns(source)
        if propose_merge is not None and labels is not None:
            write_table(propose_merge, proposed_merge(labels.candidates), {})
        obstacles = [] if labels is None else diagnose(labels.candidates).sentences()
    summary |= {
        "agreement": agreement,
        "candidate_columns": likely,
        "obstacles": obstacles,
        "notes": notes,
    }
    request.print_result(summary, _print_inspection)


def _print_inspection(summary: Plain) -> None:
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
    labels = summary["labels"]
    if labels is not None:
        print_table("Labels", ["label", "expected rows"], labels["expected_rows"].items())
    if summary["agreement"] is not None:
        print_agreement(summary["agreement"])
    print_opening(summary)
    for obstacle in summary["obstacles"]:
        say(f"Can't be learned: {obstacle}")
    if summary["candidate_columns"]:
        names = ", ".join(summary["candidate_columns"])
        say(f"Candidate labels seem to be in: {names} (--candidates).")
    elif labels is None:
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


@dataclass(frozen=True, kw_only=True)
class Resolving(Request):
    """What the user asks of a table, and what is to be written: each field is an option."""

    out: Annotated[Path, opt.written_file("The table to write, with labels; - is standard output.")]
    page: Annotated[
        Path | None, opt.written_file("An HTML page to write for reviewing the rows.", "--report")
    ] = None
    show: opt.Show = None
    explain: Annotated[
        bool,
        opt.flag("--explain", "Explain each label, in extra columns and on the page."),
    ] = False
    ask: Annotated[int | None, opt.number("Number of rows to ask people about.", min=1)] = None
    ask_out: Annotated[
        Path | None, opt.written_file("The questions to write (default: next to --out).")
    ] = None
    truth: Annotated[
        str | None,
        opt.column("Column with the right label of some rows, to score by; not a feature."),
    ] = None
    escape_formulas: opt.EscapeFormulas = False

    @property
    def questions(self) -> Path | None:
        """The table of questions to write, if any are asked."""
        from skpll.tables.formats import known_suffix

        if not self.ask:
            return None
        if self.ask_out is not None or str(self.out) == "-":
            return self.ask_out or Path("questions.csv")
        suffix = known_suffix(self.out)
        return self.out.with_name(f"{self.out.name.removesuffix(suffix)}-questions{suffix}")

    def write(self, source: Table, learned: Learned, shown: Display) -> dict[str, object]:
        """Write labels, questions and the page; return what there is to report."""
        from skpll.tables.explaining import Explanations
        from skpll.tables.formats import known_suffix, write_table
        from skpll.tables.label_studio import task_columns
        from skpll.tables.labels import note_copied_truth
        from skpll.tables.review import questions, write_review

        sep = learned.labels.separator or "|"
        explanations = Explanations.of(source, learned) if self.explain else None
        more = None if explanations is None else explanations.columns()
        added = learned.resolution.columns(source.names, more)
        score = None
        if self.truth is not None:
            note_copied_truth(source, learned.model.columns.columns, self.truth)
            score = score_of(source, self.truth, added)
        written: list[Path] = []
        try:
            tasks = known_suffix(self.out) in (".json", ".json.gz")
            columns = task_columns(source, learned) if tasks else added
            write_table(self.out, source, columns, sep=sep, escape_formulas=self.escape_formulas)
            written.append(self.out)
            if self.questions is not None:
                asked = questions(source, learned, self.ask or 0)
                write_table(self.questions, *asked, sep=sep, escape_formulas=self.escape_formulas)
                written.append(self.questions)
            if self.page is not None:
                write_review(self.page, source, learned, display=shown, explanations=explanations)
        except OSError as error:
            before = ", ".join(map(str, written))
            raise OSError(f"{error} Written before: {before or 'nothing'}.") from None
        return {
            "columns_added": list(added),
            "truth": score,
            "report": None if self.page is None else str(self.page),
            "questions": None if self.questions is None else str(self.questions),
        }

    def votes_alone(self, source: Table, labels: Labels) -> dict[str, object]:
        """Write the labels that the votes alone give; return what there is to report."""
        from skpll.tables.formats import write_table
        from skpll.tables.learning import resolved_by_votes
        from skpll.tables.votes import describe, read_truth

        options = {
            "--report": self.page is not None,
            "--ask": self.questions is not None,
            "--explain": self.explain,
        }
        refused = [name for name, given in options.items() if given]
        if refused:
            raise ValueError(
                f"{', '.join(refused)}: there is no feature column, so labels come from the votes "
                "alone; leave the option out, and see skpll audit for a page to check them."
            )
        resolution = resolved_by_votes(labels)
        added = resolution.columns(source.names)
        write_table(self.out, source, added, escape_formulas=self.escape_formulas)
        assert labels.votes is not None
        found = labels.votes.with_names(labels.ids)
        truth = None if self.truth is None else read_truth(source, self.truth)
        return {**describe(found, found, truth), "columns_added": list(added)}


@opt.taking(Resolving)
def disambiguate(request: Resolving) -> None:
    """Find the right label among the candidate labels of every row.

    The table is written again, with its rows in order and these columns added: label, confidence,
    runner_up, and unanimous (whether there was one candidate from the start). If there are votes
    but no column to learn from, the labels come from the votes alone, as with skpll aggregate.

    Example: skpll disambiguate people.csv --candidates names --out resolved.csv
    """
    from skpll.tables.columns import NoFeaturesError

    if str(request.out) == "-":
        request = replace(request, quiet=True)
    if request.truth is not None:
        request = replace(request, exclude=[*(request.exclude or []), request.truth])
    check_outputs(request.inputs, [request.out, request.questions], [request.page])
    with reporting(request.quiet) as notes:
        source = request.read()
        shown = display(source, request.table, request.show)
        labels = request.labels(source)
        try:
            learned = request.learn(source, labels)
        except NoFeaturesError:
            if labels.votes is None:
                raise
            result = request.votes_alone(source, labels)
        else:
            result = request.write(source, learned, shown)
    result |= {"notes": notes, "out": str(request.out)}
    if "rules" in result:
        request.print_result(result, print_aggregation)
    else:
        request.report(learned, **result)


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
