"""What the commands for tables share: their options, how they read, and how they report."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, get_type_hints

import typer

from .output import AsJson, Quiet, Seed, print_json, print_table, progress_bar

if TYPE_CHECKING:
    from skpll.candidates import CandidateSets
    from skpll.tables.labels import Votes
    from skpll.tables.learning import Learned
    from skpll.tables.reading import Table

__all__ = [
    "Delimiter",
    "EscapeFormulas",
    "Request",
    "TableFile",
    "check_outputs",
    "on_request",
    "told",
]

Own = ParamSpec("Own")


class Empty(StrEnum):
    """What a row without candidates means."""

    error = "error"
    any = "any"


def _methods(incomplete: str) -> list[str]:
    from skpll import all_methods

    return [name for name in [*all_methods(), "auto"] if name.startswith(incomplete)]


_FILE = {"exists": True, "dir_okay": False}

TableFile = Annotated[Path, typer.Argument(help="A CSV or Parquet file.", **_FILE)]
Delimiter = Annotated[
    str | None,
    typer.Option("--delimiter", help="What separates the cells of a CSV file; found by default."),
]
EscapeFormulas = Annotated[
    bool,
    typer.Option(
        "--escape-formulas", help="Put ' before text that a spreadsheet would run (CSV only)."
    ),
]


@contextmanager
def told(quiet: bool) -> Iterator[list[str]]:
    """Do the work of a command: progress on a terminal, an interrupt ends it, warnings are notes.

    Parameters
    ----------
    quiet : bool
        Whether to keep all of that from the user.

    Yields
    ------
    notes : list of str
        What there was to say; complete only after the work.
    """
    from skpll._iteration import InterruptedFitWarning
    from skpll._progress import watched

    notes: list[str] = []
    with (
        warnings.catch_warnings(record=True) as caught,
        progress_bar(not quiet, compiles=True) as show,
        watched(show),
    ):
        warnings.simplefilter("always")
        warnings.simplefilter("error", InterruptedFitWarning)
        try:
            yield notes
        except ValueError as error:
            raise ValueError(_in_options(str(error))) from error
    notes += dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught)
    if not quiet:
        for note in notes:
            typer.echo(f"skpll: note: {note}", file=sys.stderr)


@dataclass(frozen=True)
class Request:
    """What the user asks of a table: each field is an option of the command line."""

    table: TableFile
    candidates: Annotated[
        str | None, typer.Option(help="Column with the candidate labels of each row.")
    ] = None
    sep: Annotated[str, typer.Option(help="What separates the candidates in a cell.")] = "|"
    id_column: Annotated[
        str | None, typer.Option("--id", help="Column that names the rows; it is no feature.")
    ] = None
    features: Annotated[
        list[str] | None,
        typer.Option(help="Columns to learn from (again, or with commas, for more)."),
    ] = None
    exclude: Annotated[
        list[str] | None,
        typer.Option(help="Columns not to learn from (again, or with commas, for more)."),
    ] = None
    method: Annotated[
        str,
        typer.Option(
            help="A method of `skpll methods`, or auto to choose one by inner folds.",
            autocompletion=_methods,
        ),
    ] = "sppll"
    parameters: Annotated[
        list[str] | None,
        typer.Option("--set", help="A parameter of the method, as in --set C=1 (again for more)."),
    ] = None
    votes: Annotated[
        Path | None,
        typer.Option(help="Instead of --candidates: a table of votes. Needs --id.", **_FILE),
    ] = None
    vote_columns: Annotated[str, typer.Option(help="Its columns of item, annotator and label.")] = (
        "item,annotator,label"
    )
    decisions: Annotated[
        Path | None,
        typer.Option(help="Decisions from the review page, taken as certain.", **_FILE),
    ] = None
    empty: Annotated[
        Empty, typer.Option(help="A row without candidates is an error, or may be any.")
    ] = Empty.error
    delimiter: Delimiter = None
    seed: Seed = 0
    as_json: AsJson = False
    quiet: Quiet = False

    def check_outputs(self, *outputs: Path | None) -> None:
        """Refuse to write where an input lies, or where nothing can be written."""
        check_outputs([self.table, self.votes, self.decisions], outputs)

    def learn(self, source: Table) -> tuple[Learned, Votes | None]:
        """Read the candidates of the table's rows, and learn from them."""
        from skpll.tables.learning import learn_from_table

        sets, given = self._candidates(source)
        no_features = [name for name in (self.candidates, self.id_column) if name is not None]
        learned = learn_from_table(
            source,
            sets,
            features=_names(source, self.features),
            exclude=[*(_names(source, self.exclude) or ()), *no_features],
            method=self.method,
            parameters=_parsed(self.parameters),
            seed=self.seed,
        )
        return learned, given

    def _candidates(self, source: Table) -> tuple[CandidateSets, Votes | None]:
        from skpll.tables.columns import check_column
        from skpll.tables.formats import read_table
        from skpll.tables.labels import column_candidates, identifiers, read_votes, with_decisions

        items = given = None
        if self.id_column is not None:
            check_column(source, self.id_column, "id")
            if (self.votes, self.decisions) != (None, None):
                items = identifiers(source, self.id_column)
        if self.candidates is not None and self.votes is None:
            check_column(source, self.candidates, "candidates")
            sets = column_candidates(
                source.column(self.candidates),
                sep=self.sep,
                name=self.candidates,
                empty=self.empty.value,
            )
        elif self.votes is not None and self.candidates is None:
            if items is None:
                raise ValueError("--votes: name with --id the column that the votes refer to.")
            votes = read_table(self.votes, delimiter=self.delimiter)
            given = read_votes(votes, self.vote_columns.split(","), items)
            sets = given.candidates
        else:
            raise ValueError("give either --candidates COLUMN or --votes TABLE.")
        if self.decisions is not None:
            sets = with_decisions(sets, read_table(self.decisions), items)
        return sets, given

    def report(self, learned: Learned, given: Votes | None, **more: Any) -> None:
        """Say what was learned and where it is, as JSON or in words."""
        result = {**_describe(learned, given), **more}
        if self.as_json:
            print_json(result)
        elif not self.quiet:
            _print_description(result)
            written = [result[name] for name in ("out", "report") if result.get(name)]
            typer.echo(f"Written: {' and '.join(written)}")


_OPTIONS = {field.name: f"--{field.name}" for field in fields(Request)} | {
    "columns": "--vote-columns",
    "id": "--id",
    "parameters": "--set",
    "y": "--method auto",
}
"""The options that arguments of the library come from."""


def _in_options(message: str) -> str:
    """Name the option where a message of the library names its argument."""
    message = re.sub(r"^\w+(?=: )", lambda found: _OPTIONS.get(found[0], found[0]), message)
    return message.replace("(empty='any')", "(--empty any)")


def on_request(command: Callable[Concatenate[Request, Own], None]) -> Callable[..., None]:
    """Make a command of the command line, with the options of a `Request` and its own.

    Parameters
    ----------
    command : callable
        Takes a request, and further parameters with annotations for Typer.

    Returns
    -------
    command : callable
        The same with the fields of the request as parameters.
    """
    requested = [field.name for field in fields(Request)]
    own = list(inspect.signature(command).parameters.values())[1:]
    hints = get_type_hints(Request, include_extras=True)
    hints |= get_type_hints(command, include_extras=True)

    def run(**options: Any) -> None:
        request = Request(**{name: options.pop(name) for name in requested})
        command(request, **options)  # type: ignore[call-arg]

    parameters = sorted(
        [*inspect.signature(Request).parameters.values(), *own],
        key=lambda parameter: parameter.default is not inspect.Parameter.empty,
    )
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[parameter.name])
            for parameter in parameters
        ]
    )
    run.__annotations__ = {parameter.name: hints[parameter.name] for parameter in parameters}
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    return run


def _describe(learned: Learned, given: Votes | None) -> dict[str, Any]:
    """Say in plain values what was learned, for scripts and for `_print_description`."""
    resolution, choice = learned.resolution, learned.choice
    return {
        **resolution.summary(),
        "method": learned.model.name,
        "parameters": learned.model.changed_parameters(),
        "features": learned.model.columns.kinds,
        "annotators": None if given is None else given.agreement(resolution.labels),
        "choice": None
        if choice is None
        else {"reason": choice.reason, "trials": [asdict(trial) for trial in choice.trials]},
    }


def _print_description(result: dict[str, Any]) -> None:
    """Say in words what was learned."""
    if result["choice"] is not None:
        print_table(
            "Methods compared on held-out rows",
            ["method", "parameters", "covering rate", "± error", "seconds"],
            [
                [trial["method"], _settings(trial["parameters"]), *list(trial.values())[2:]]
                for trial in result["choice"]["trials"]
            ],
        )
        typer.echo(result["choice"]["reason"])
    typer.echo(
        f"{result['rows']} rows, {result['classes']} classes; "
        f"{result['certain_from_the_start']} rows had one candidate from the start."
    )
    typer.echo(
        f"Candidates a row: {result['candidates_before']:.2f} before, "
        f"{result['candidates_after']:.2f} after (effective number). "
        f"Expected accuracy, by the confidences: {result['expected_accuracy']:.1%}."
    )
    if result["annotators"] is not None:
        print_table(
            "Annotators",
            ["annotator", "share of votes that agree with the label"],
            list(result["annotators"].items()),
        )


def _names(table: Table, words: Sequence[str] | None) -> list[str] | None:
    """Read names of columns; commas separate them, unless a column is so called."""
    if words is None:
        return None
    names: list[str] = []
    for word in words:
        names += [word] if word in table.names else [part.strip() for part in word.split(",")]
    return names


def _parsed(settings: Sequence[str] | None) -> dict[str, Any]:
    """Read parameters such as ``C=1``; what is no Python literal is text."""
    parameters: dict[str, Any] = {}
    for setting in settings or ():
        name, equals, value = setting.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"--set: {setting!r} is not of the form name=value.")
        try:
            parameters[name.strip()] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            parameters[name.strip()] = value
    return parameters


def _settings(parameters: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in parameters.items())


def check_outputs(inputs: Sequence[Path | None], outputs: Sequence[Path | None]) -> None:
    """Refuse to write where an input lies, twice to one place, or where nothing can be written."""
    from skpll.tables.writing import check_writable

    taken = {path.resolve() for path in inputs if path is not None}
    for path in outputs:
        if path is None:
            continue
        check_writable(path)
        if path.resolve() in taken:
            raise ValueError(f"{path}: is in use already; choose another name for the output.")
        taken.add(path.resolve())
