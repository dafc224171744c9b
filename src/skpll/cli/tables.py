"""What the commands for tables share: their options, how they read, and how they report."""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .output import AsJson, Quiet, Seed, print_table, progress_bar

if TYPE_CHECKING:
    from skpll.candidates import CandidateSets
    from skpll.tables.disambiguate import Learned
    from skpll.tables.labels import Votes
    from skpll.tables.reading import Table

__all__ = [
    "AsJson",
    "CandidatesColumn",
    "Decisions",
    "Delimiter",
    "Empty",
    "EmptyCells",
    "Exclude",
    "Features",
    "IdColumn",
    "Method",
    "Parameters",
    "Quiet",
    "Request",
    "Seed",
    "Separator",
    "TableFile",
    "VoteColumns",
    "VotesFile",
    "check_outputs",
    "describe",
    "print_description",
    "told",
]


class Empty(StrEnum):
    """What a row without candidates means."""

    error = "error"
    any = "any"


def _methods(incomplete: str) -> list[str]:
    from skpll import all_methods

    return [name for name in [*all_methods(), "auto"] if name.startswith(incomplete)]


_FILE = {"exists": True, "dir_okay": False}

TableFile = Annotated[Path, typer.Argument(help="A CSV or Parquet file.", **_FILE)]
CandidatesColumn = Annotated[
    str | None, typer.Option("--candidates", help="Column with the candidate labels of each row.")
]
Separator = Annotated[str, typer.Option("--sep", help="What separates the candidates in a cell.")]
IdColumn = Annotated[
    str | None, typer.Option("--id", help="Column that names the rows; it is no feature.")
]
Features = Annotated[
    list[str] | None,
    typer.Option("--features", help="Columns to learn from (again, or with commas, for more)."),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option("--exclude", help="Columns not to learn from (again, or with commas, for more)."),
]
Method = Annotated[
    str,
    typer.Option(
        "--method",
        help="A method of `skpll methods`, or auto to choose one by inner folds.",
        autocompletion=_methods,
    ),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option("--set", help="A parameter of the method, as in --set C=1 (again for more)."),
]
VotesFile = Annotated[
    Path | None,
    typer.Option("--votes", help="Instead of --candidates: a table of votes. Needs --id.", **_FILE),
]
VoteColumns = Annotated[
    str,
    typer.Option("--vote-columns", help="Its columns of item, annotator and label."),
]
Decisions = Annotated[
    Path | None,
    typer.Option("--decisions", help="Decisions from the review page, taken as certain.", **_FILE),
]
EmptyCells = Annotated[
    Empty, typer.Option("--empty", help="A row without candidates is an error, or may be any.")
]
Delimiter = Annotated[
    str | None,
    typer.Option("--delimiter", help="What separates the cells of a CSV file; found by default."),
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
        progress_bar(not quiet) as show,
        watched(show),
    ):
        warnings.simplefilter("always")
        warnings.simplefilter("error", InterruptedFitWarning)
        yield notes
    notes += dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught)
    if not quiet:
        for note in notes:
            typer.echo(f"skpll: note: {note}", file=sys.stderr)


@dataclass(frozen=True)
class Request:
    """What the user asks of a table, in the words of the command line."""

    candidates: str | None
    sep: str
    id_column: str | None
    features: list[str] | None
    exclude: list[str] | None
    method: str
    parameters: list[str] | None
    votes: Path | None
    vote_columns: str
    decisions: Path | None
    empty: Empty
    delimiter: str | None
    seed: int

    def learn(self, source: Table) -> tuple[Learned, Votes | None]:
        """Read the candidates of the table's rows, and learn from them."""
        from skpll.tables.disambiguate import learn_from_table

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
        from skpll.tables.labels import column_candidates, identifiers, read_votes, with_decisions
        from skpll.tables.reading import read_table

        items = given = None
        if self.id_column is not None:
            check_column(source, self.id_column, "--id")
            if (self.votes, self.decisions) != (None, None):
                items = identifiers(source, self.id_column)
        if self.candidates is not None and self.votes is None:
            check_column(source, self.candidates, "--candidates")
            sets = column_candidates(
                source.column(self.candidates),
                sep=self.sep,
                name=self.candidates,
                any_if_empty=self.empty is Empty.any,
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


def describe(learned: Learned, given: Votes | None) -> dict[str, Any]:
    """Say in plain values what was learned, for scripts and for `print_description`."""
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


def print_description(result: dict[str, Any]) -> None:
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
