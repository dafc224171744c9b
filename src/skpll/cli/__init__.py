"""The command line. A command, or several that belong together, is a module."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .exits import DONE, FAILED, INTERRUPTED, WRONG_INPUT, complain

__all__ = ["DONE", "FAILED", "INTERRUPTED", "WRONG_INPUT", "main"]


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
