"""The command line. Each command is a module: it parses, calls the library and prints."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]

DONE, FAILED, WRONG_INPUT, INTERRUPTED = 0, 1, 2, 130


class Interrupted(Exception):
    """A command was interrupted, and has something to say about it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after ``skpll``; by default those of this process.

    Returns
    -------
    status : int
        0 done, 1 the work failed, 2 the command line or the input was wrong, 130 interrupted.
    """
    try:
        from .app import run
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        return complain(
            "the command line needs two more packages: pip install 'skpll[cli]'", FAILED
        )
    return run(sys.argv[1:] if arguments is None else list(arguments))


def complain(message: str, status: int) -> int:
    """Print one line to standard error and hand the exit status back."""
    print(f"skpll: {' '.join(message.split())}", file=sys.stderr)  # noqa: T201
    return status
