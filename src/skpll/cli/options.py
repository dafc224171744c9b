"""Options that many commands have, how some are taken together, and what the shell completes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, TypeVar, get_type_hints

import typer

from .output import print_json

if TYPE_CHECKING:
    from skpll.tables._extra import Plain


def value(metavar: str, text: str, *names: str, **checks: Any) -> Any:
    """Return an option that takes a value; the name for the value stands in the help."""
    return typer.Option(*names, metavar=metavar, help=text, **checks)


def flag(name: str, text: str, *short: str) -> Any:
    """Return an option that takes no value."""
    return typer.Option(name, *short, help=text)


def argument(metavar: str, text: str, **checks: Any) -> Any:
    """Return an argument, which has no name but its place."""
    return typer.Argument(metavar=metavar, help=text, **checks)


existing_file = partial(argument, exists=True, dir_okay=False)
number = partial(value, "N")
column = partial(value, "COLUMN")
columns = partial(value, "COLUMN,…")  # see `skpll.cli.tables.column_names`
given_file = partial(value, "FILE", exists=True, dir_okay=False)
written_file = partial(value, "FILE")


def _existing(path: Path) -> Path:
    """Return a path that is there, or standard input, which Typer's own check refuses."""
    if str(path) != "-" and not path.exists():
        raise typer.BadParameter(f"{path} does not exist.")
    return path


TableFile = Annotated[
    Path,
    argument(
        "TABLE",
        "A CSV, Excel, JSON or Parquet file, a Label Studio export, a folder of Parquet files, or "
        "- for standard input.",
        callback=_existing,
    ),
]
Delimiter = Annotated[str | None, value("TEXT", "Delimiter of the CSV file (default: detected).")]
EscapeFormulas = Annotated[
    bool,
    flag(
        "--escape-formulas",
        "Put ' before text that a spreadsheet would run as a formula (CSV only).",
    ),
]
Annotators = Annotated[list[str] | None, columns("Columns with the labels of one annotator each.")]
Counts = Annotated[
    list[str] | None, columns("Columns with the number of votes for one class each.")
]
Probabilities = Annotated[
    list[str] | None, columns("Columns with the probability of one class each.")
]
Show = Annotated[
    list[str] | None,
    columns("Columns that the page shows of each row (default: text, pictures, or few columns)."),
]
Report = Annotated[Path, value("FOLDER", "The folder to write the report to.")]
Results = Annotated[Path | None, written_file("Also write the results as Markdown.")]
Seed = Annotated[int, number("Seed of the random numbers.")]
AsJson = Annotated[bool, flag("--json", "Print JSON instead of text.")]


@dataclass(frozen=True, kw_only=True)
class Printing:
    """How a command prints: each field is an option."""

    as_json: AsJson = False
    quiet: Annotated[bool, flag("--quiet", "Print nothing but errors.", "-q")] = False

    def print_result(self, result: Plain, describe: Callable[[Plain], None]) -> None:
        """Print what a command did, unless the table that it wrote is on standard output.

        Parameters
        ----------
        result : dict
            What it did; ``out`` is the file that was written.
        describe : callable
            Prints the result as text.
        """
        if result.get("out") == "-":
            return
        if self.as_json:
            print_json(result)
        elif not self.quiet:
            describe(result)


Settings = TypeVar("Settings")
Result = TypeVar("Result")
Own = ParamSpec("Own")


def taking(
    settings: type[Settings],
) -> Callable[[Callable[Concatenate[Settings, Own], Result]], Callable[..., Result]]:
    """Make commands of functions that take a dataclass, whose fields are options, and their own.

    Parameters
    ----------
    settings : type
        A dataclass; its fields have annotations for Typer.

    Returns
    -------
    decorator : callable
        From a function of such settings, and of further parameters with annotations for Typer, to
        a command with all of them as parameters: first those that have to be given, last those
        of `Printing`.
    """
    shared: Any = settings
    of_printing = {field.name for field in fields(Printing)}

    def decorate(command: Callable[Concatenate[Settings, Own], Result]) -> Callable[..., Result]:
        own = list(inspect.signature(command).parameters.values())[1:]
        hints = get_type_hints(settings, include_extras=True)
        hints |= get_type_hints(command, include_extras=True)
        parameters = sorted(
            (*own, *inspect.signature(settings).parameters.values()),
            key=lambda found: (found.default is not found.empty, found.name in of_printing),
        )

        def run(**options: Any) -> Result:
            given = {field.name: options.pop(field.name) for field in fields(shared)}
            return command(settings(**given), **options)  # type: ignore[call-arg]

        run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                parameter.replace(
                    kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[parameter.name]
                )
                for parameter in parameters
            ]
        )
        run.__annotations__ = {parameter.name: hints[parameter.name] for parameter in parameters}
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        return run

    return decorate


def method_names(incomplete: str) -> list[str]:
    """Complete the name of a method."""
    from skpll import all_methods

    return [name for name in [*all_methods(), "auto"] if name.startswith(incomplete)]


def data_set_names(incomplete: str) -> list[str]:
    """Complete the name of a data set."""
    from skpll.datasets import list_datasets

    return [name for name in list_datasets() if name.startswith(incomplete)]


def experiment_names(incomplete: str) -> list[str]:
    """Complete the name of an experiment that comes with the package."""
    from skpll.experiments import shipped_specifications

    return [name for name in shipped_specifications() if name.startswith(incomplete)]
