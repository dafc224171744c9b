"""Options that many commands have, how some are taken together, and what the shell completes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar, get_type_hints

import typer


def one_column(text: str, *names: str) -> Any:
    """Return an option that takes the name of a column."""
    return typer.Option(*names, metavar="COLUMN", help=text)


def column_list(text: str, *names: str) -> Any:
    """Return an option that takes names of columns; see `skpll.cli.tables.column_names`."""
    return typer.Option(*names, metavar="COLUMN,…", help=text)


def given_file(text: str) -> Any:
    """Return an option that takes a file that is there."""
    return typer.Option(metavar="FILE", help=text, exists=True, dir_okay=False)


def written_file(text: str, *names: str) -> Any:
    """Return an option that takes a file to write."""
    return typer.Option(*names, metavar="FILE", help=text)


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Results = Annotated[Path | None, written_file("Also write the results as Markdown.")]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed of the random numbers.")]

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
        a command with all of them as parameters.
    """
    shared: Any = settings

    def decorate(command: Callable[Concatenate[Settings, Own], Result]) -> Callable[..., Result]:
        own = list(inspect.signature(command).parameters.values())[1:]
        hints = get_type_hints(settings, include_extras=True)
        hints |= get_type_hints(command, include_extras=True)
        all_shared, empty = inspect.signature(settings).parameters.values(), inspect.Parameter.empty
        parameters = [parameter for parameter in (*own, *all_shared) if parameter.default is empty]
        parameters += [
            parameter for parameter in (*all_shared, *own) if parameter.default is not empty
        ]

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
