"""What the tables need beyond the core, and how they speak to their user."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["TableWarning", "arrow", "pandas", "parquet", "short", "skops"]


class TableWarning(UserWarning):
    """Something about a table that its owner should know; the work goes on."""


def short(text: object, length: int = 60) -> str:
    """Quote a cell or a name in a message, cut where it is long."""
    shown = repr(text)
    return shown if len(shown) <= length else f"{shown[: length - 1]}…"


def arrow() -> Any:
    """Import pyarrow, or say how to get it."""
    return _load("pyarrow")


def parquet() -> Any:
    """Import pyarrow.parquet, or say how to get it."""
    return _load("pyarrow.parquet")


def pandas() -> Any:
    """Import pandas, or say how to get it."""
    return _load("pandas")


def skops() -> Any:
    """Import skops.io, or say how to get it."""
    return _load("skops.io")


def _load(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{name.partition('.')[0]} is needed for tables: pip install 'skpll[tables]'"
        ) from error
