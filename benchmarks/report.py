"""How benchmarks show and keep their results."""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Record = dict[str, Any]

RESULTS = Path(__file__).parent / "results"


def show(title: str, records: Iterable[Record]) -> None:
    """Print records as a table."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    records = list(records)
    names = list(dict.fromkeys(name for record in records for name in record))
    table = Table(title=title, title_justify="left")
    for name in names:
        text = name in ("case", "rival", "data")
        table.add_column(escape(name), justify="left" if text else "right")
    for record in records:
        table.add_row(*(_text(record.get(name)) for name in names))
    Console(width=160).print(table)


def save(name: str, records: list[Record]) -> Path:
    """Write records as JSON, with a word on the machine."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    machine = {"python": platform.python_version(), "machine": platform.machine()}
    path.write_text(json.dumps({"machine": machine, "records": records}, indent=2) + "\n")
    return path


def main(name: str, title: str, run: Callable[[bool], list[Record]]) -> None:
    """Run one benchmark from the command line."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    options = parser.parse_args()
    records = run(options.quick)
    show(title, records)
    print(save(name, records))


def _text(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
