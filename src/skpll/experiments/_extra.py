"""What experiments need beyond the core, imported where it is first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["jinja2", "pandas"]


def pandas() -> Any:
    """Import pandas, or say how to get it."""
    return _load("pandas", "results come as frames of pandas")


def jinja2() -> Any:
    """Import Jinja, or say how to get it."""
    return _load("jinja2", "reports are made with jinja2")


def _load(name: str, what_for: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{what_for}: pip install 'skpll[tables]'", name=name) from error
