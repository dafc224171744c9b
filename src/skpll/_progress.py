"""A progress bar for people who fit a model in a terminal, with nothing to install."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_WIDTH = 24


@contextmanager
def progress(title: str, total: int, shown: bool) -> Iterator[Callable[[int, str], None]]:
    """Show how far a loop is, on one line of standard error.

    Parameters
    ----------
    title : str
        What is going on.
    total : int
        Number of steps.
    shown : bool
        Whether to show anything at all.

    Yields
    ------
    step : callable
        To be called with the number of steps done and a few words on the state of things.
    """
    interactive = sys.stderr.isatty()

    def step(done: int, state: str) -> None:
        if not shown:
            return
        filled = _WIDTH * done // max(total, 1)
        line = f"{title} [{'#' * filled}{'.' * (_WIDTH - filled)}] {done}/{total}  {state}"
        sys.stderr.write(f"\r\033[K{line}" if interactive else f"{line}\n")
        sys.stderr.flush()

    try:
        yield step
    finally:
        if shown and interactive:
            sys.stderr.write("\n")
