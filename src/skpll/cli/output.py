"""How commands print tables, JSON and progress bars."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from inspect import cleandoc
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import typer
from rich import progress as bars
from rich.box import HEAVY_HEAD, SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from skpll._progress import Watcher

from .exits import counted, printable, say, wrapped

if TYPE_CHECKING:
    from pandas import DataFrame

    from skpll.tables._extra import Plain

Item = TypeVar("Item")
Row: TypeAlias = Sequence[object] | Mapping[str, object]


def print_json(value: object) -> None:
    """Print a value as JSON."""
    say(json.dumps(value, indent=2, ensure_ascii=False), wrap=False)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Print a table; columns of numbers are flush right, and text is never taken for markup.

    Rows are sequences, or mappings of which the values are shown. Lines are broken between words
    only: where a table is too wide for that, its lines between columns go, and then each row
    becomes a paragraph.
    """
    values = [list(row.values() if isinstance(row, Mapping) else row) for row in rows]
    cells = [
        [_text(name) for name in columns],
        *([_cell(value) for value in row] for row in values),
    ]
    screen = console()
    screen.print(_text(title, "bold"))
    widths, narrow = _widths(cells, screen.width - 3 * len(columns) - 1), False
    if widths is None:
        widths, narrow = _widths(cells, screen.width - 2 * len(columns) + 2), True
    if widths is None:
        _print_paragraphs(cells, screen.width)
        return
    table = Table(box=HEAVY_HEAD)
    if narrow:
        table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for place, (head, width) in enumerate(zip(cells[0], widths, strict=True)):
        numbers = all(isinstance(row[place], int | float | type(None)) for row in values)
        table.add_column(head, justify="right" if numbers else "left", width=width)
    for row in cells[1:]:
        table.add_row(*row)
    screen.print(table)


def _widths(cells: Sequence[Sequence[Text]], width: int) -> list[int] | None:
    """Return the widths of columns that break no word; None where they don't fit."""
    columns = [[cell.plain for cell in column] for column in zip(*cells, strict=True)]
    words = [" ".join(column).split() for column in columns]
    lines = ["\n".join(column).splitlines() for column in columns]
    least, most = ([max(map(cell_len, x), default=0) for x in parts] for parts in (words, lines))
    found = None
    for level in range(max(most) + 1):
        widths = [min(max(level, low), high) for low, high in zip(least, most, strict=True)]
        if sum(widths) > width:
            break
        found = widths
    return found


def _print_paragraphs(cells: Sequence[Sequence[Text]], width: int) -> None:
    """Print each row as its first cell and, below it, the others with their names."""
    heads, *rows = ([" ".join(cell.plain.split()) for cell in row] for row in cells)
    for first, *rest in rows:
        said = "; ".join(f"{head}: {cell}" for head, cell in zip(heads[1:], rest, strict=True))
        say(f"{wrapped(first, width)}\n{wrapped(said, width, indent='  ')}", wrap=False)


def print_frame(frame: DataFrame) -> None:
    """Print a table of experiments with its notes, see `skpll.experiments.tables`."""
    from skpll.experiments.render import Cell, lay_out

    def shown(cell: Cell) -> Text:
        return _text(f"{cell}\n{cell.note}".strip(), "bold" if cell.best else "")

    table = lay_out(frame)
    rows = [[shown(cell) for cell in row] for row in table.rows]
    print_table(table.title, [head.text for head in table.heads], rows)
    for note in table.notes:
        say(note)


def console() -> Console:
    """Make a console on standard output; one that is no terminal is 120 wide, or `COLUMNS`."""
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if known else 120)


def percent(share: float) -> str:
    """Write a share as percent; one that rounds to all rows is written as a bound."""
    return "over 99.9 %" if share > 0.999 else f"{100 * share:.1f} %"


def believed(mean_confidence: float, assumption: str, *, checked: bool = False) -> str:
    """Say what a model believes of its labels, what that assumes and how far off it was.

    Parameters
    ----------
    mean_confidence : float
        The mean confidence in the labels.
    assumption : str
        What the confidences rest on.
    checked : bool, default=False
        Whether an accuracy on known labels is printed beside it.

    Returns
    -------
    text : str
    """
    unchecked = "" if checked else " No accuracy was checked: see skpll audit."
    return (
        f"The model believes that {percent(mean_confidence)} of the labels are right. That assumes "
        f"that {assumption}; on five real tables of votes such figures were up to 36 points too "
        f"high.{unchecked}"
    )


def scored(truth: Plain) -> str:
    """Say how often labels are right on rows whose label is known."""
    return (
        f"Accuracy on {counted(truth['known'], 'row')} with a known label: "
        f"{percent(truth['accuracy'])}, "
        f"95 % interval {percent(truth['low'])} to {percent(truth['high'])}."
    )


def help_if_alone(context: typer.Context) -> None:
    """Print the help of a group of commands if none of them is called."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def reflowed(text: str | None) -> str:
    """Return a docstring whose paragraphs are single lines, so that any width can wrap them."""
    return "\n\n".join(" ".join(part.split()) for part in cleandoc(text or "").split("\n\n"))


def track(items: Sequence[Item], label: str, *, compiles: bool = False) -> Iterable[Item]:
    """Go through the items with a progress bar on standard error; it vanishes at the end."""
    with progress_bar(compiles=compiles) as show:
        for done, item in enumerate(items):
            show(f"{label}: {item}", done, len(items))
            yield item


@contextmanager
def progress_bar(shown: bool = True, *, compiles: bool = False) -> Iterator[Watcher]:
    """Show a progress bar on standard error, if that is a terminal; it vanishes at the end.

    Parameters
    ----------
    shown : bool, default=True
        Whether to show anything at all.
    compiles : bool, default=False
        Whether to say so while kernels are compiled, which happens where their cache is empty.

    Yields
    ------
    show : callable
        To be called with what is going on, the number of steps done, and the number in all.
    """
    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TimeElapsedColumn(),
        bars.TextColumn("left"),
        bars.TimeRemainingColumn(),
    )
    stderr = Console(stderr=True)
    if not (shown and stderr.is_terminal):  # Progress(disable=True) of rich 13.7 prints a line
        yield _show_nothing
        return
    with bars.Progress(*columns, console=stderr, transient=True, speed_estimate_period=1800) as bar:
        task = bar.add_task("Working", total=None)

        def show(label: str, done: int, total: int) -> None:
            if bar.tasks[task].total != total:  # what was done before says nothing of the speed
                bar.reset(task, total=total, completed=done)
            bar.update(task, description=escape(printable(label)), completed=done)

        with _compiling_shown(bar, task) if compiles else nullcontext():
            yield show


def _show_nothing(label: str, done: int, total: int) -> None:
    del label, done, total


def _compiling_shown(bar: bars.Progress, task: bars.TaskID) -> AbstractContextManager[None]:
    """Show on a progress bar that numba compiles; cached kernels are not compiled."""
    from numba.core import event

    class Listener(event.Listener):
        def __init__(self) -> None:
            self.before: list[str] = []  # a stack: one kernel may have to compile another

        def on_start(self, event: object) -> None:  # noqa: ARG002
            self.before.append(bar.tasks[task].description)
            bar.update(task, description="Compiling, once")

        def on_end(self, event: object) -> None:  # noqa: ARG002
            bar.update(task, description=self.before.pop())

    return event.install_listener("numba:compile", Listener())


def _cell(value: object) -> Text:
    if isinstance(value, Text):
        return value
    if value is None:
        return Text("–")
    return _text(f"{value:.3f}" if isinstance(value, float) else str(value))


def _text(text: str, style: str = "") -> Text:
    return Text(printable(text), style)
