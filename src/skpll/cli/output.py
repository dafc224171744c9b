"""How commands print: tables for people, JSON for scripts, progress only on a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Seed = Annotated[int, typer.Option(help="Seed of everything that is random.")]

Item = TypeVar("Item")


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table; columns of numbers are flush right."""
    rows = [list(row) for row in rows]
    table = Table(title=title, title_justify="left", title_style="bold", caption_justify="left")
    for place, name in enumerate(columns):
        numbers = all(isinstance(row[place], int | float | type(None)) for row in rows)
        table.add_column(name, justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(value) for value in row))
    console().print(table)


def console() -> Console:
    """Make a console on standard output, wide enough for a table when that is not a terminal."""
    return Console(width=None if sys.stdout.isatty() else 120)


def track(items: Sequence[Item], label: str) -> Iterable[Item]:
    """Go through the items with a progress bar on standard error; it vanishes at the end."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    stderr = Console(stderr=True)
    with Progress(*columns, console=stderr, transient=True, disable=not stderr.is_terminal) as bar:
        task = bar.add_task(label, total=len(items))
        for item in items:
            bar.update(task, description=f"{label}: {item}")
            yield item
            bar.advance(task)


def _cell(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
