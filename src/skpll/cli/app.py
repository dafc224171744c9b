"""All commands together, and what their errors look like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from skpll._version import __version__

from .catalogue import data, demo, methods
from .exits import DONE, FAILED, INTERRUPTED, WRONG_INPUT, Interrupted, complain
from .experiments import report, reproduce, status
from .experiments import run as run_experiment
from .labelling import disambiguate, fit, inspect, predict
from .output import help_if_alone, reflowed
from .votes import aggregate, audit

_SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    name="skpll",
    help="Learn from partial labels: each example has several candidate labels, of which one is "
    "right.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings=_SETTINGS,
)
commands: list[Callable[..., object]] = [demo, methods, inspect, disambiguate, aggregate, audit]
commands += [fit, predict, run_experiment, status, report, reproduce]
for command in commands:
    app.command(help=reflowed(command.__doc__))(command)
app.add_typer(data, name="data")

# Typer brings its own copy of click in some versions: its error class is found by inheritance.
_UsageError: type[Any] = typer.BadParameter.__mro__[1]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"skpll {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001  # its callback has all to say
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Take the options that stand before the command."""
    help_if_alone(context)


def _built() -> Any:
    """Make the commands; their help shows the types of options that take a value only."""
    built: Any = typer.main.get_command(app)
    waiting = [built]
    while waiting:
        command = waiting.pop()
        waiting += getattr(command, "commands", {}).values()
        context = typer.Context(command, **_SETTINGS)
        for parameter in [*command.params, command.get_help_option(context)]:
            if getattr(parameter, "is_flag", parameter.param_type_name == "argument"):
                vars(parameter)["display_type_rich"] = lambda ctx: None  # noqa: ARG005
    return built


def run(arguments: list[str]) -> int:
    """Run one command; whatever goes wrong becomes one line and an exit status."""
    try:
        code = _built()(args=arguments, prog_name="skpll", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except Interrupted as error:
        return complain(str(error), INTERRUPTED)
    except _UsageError as error:
        return complain(f"{error.format_message()} (see skpll --help)", WRONG_INPUT)
    except ValueError as error:
        return complain(str(error), WRONG_INPUT)
    except UserWarning:  # a fit that was interrupted
        code = INTERRUPTED
    except (OSError, ModuleNotFoundError) as error:
        return complain(str(error), FAILED)
    if code == INTERRUPTED:
        return complain("interrupted", INTERRUPTED)
    return code if isinstance(code, int) else DONE
