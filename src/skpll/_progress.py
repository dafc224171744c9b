"""A progress bar for people who fit a model in a terminal, and warnings before long fits."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Item = TypeVar("Item")
Watcher = Callable[[str, int, int], None]
"""Called with what is going on, the number of steps done, and the number of steps in all."""

BAR_WIDTH = 24
"""Characters in a progress bar."""

LONG_FIT_SECONDS = 60.0
"""Fits that are expected to take longer give a warning."""

_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Send the progress of every loop inside to a watcher, shown or not.

    Parameters
    ----------
    watcher : callable
        Called after every step.
    """
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def tracked(
    items: Iterable[Item], title: str, total: int, size: Callable[[Item], int] = lambda _: 1
) -> Iterator[Item]:
    """Yield items, and report to the watcher how many of `total` steps are done.

    An item is `size(item)` steps, by default one.
    """
    done = 0
    with progress(title, total, shown=False) as step:
        for item in items:
            yield item
            done += size(item)
            step(done, "")


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
    watcher = _watcher.get()

    def step(done: int, state: str) -> None:
        if watcher is not None:
            watcher(title, done, total)
        if not shown:
            return
        filled = BAR_WIDTH * done // max(total, 1)
        line = f"{title} [{'#' * filled}{'.' * (BAR_WIDTH - filled)}] {done}/{total}  {state}"
        sys.stderr.write(f"\r\033[K{line}" if interactive else f"{line}\n")
        sys.stderr.flush()

    try:
        yield step
    finally:
        if shown and interactive:
            sys.stderr.write("\n")


def warn_of_long_fit(seconds: float, message: str, *, stacklevel: int) -> None:
    """Warn if a fit is expected to take long; `stacklevel` as if the caller warned."""
    if seconds > LONG_FIT_SECONDS:
        warnings.warn(message, UserWarning, stacklevel=stacklevel + 1)
