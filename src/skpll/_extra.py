"""Packages beyond the core, imported where they are first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def need(module: str, what_for: str, extra: str) -> Any:
    """Import a module, or say how to get it.

    Parameters
    ----------
    module : str
        Its name.
    what_for : str
        What needs it, for the message.
    extra : str
        The extra of skpll that brings it.

    Returns
    -------
    module
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        message = f"{what_for}: pip install 'skpll[{extra}]'"
        raise ModuleNotFoundError(message, name=error.name) from None


def pandas() -> Any:
    """Import pandas, or say how to get it."""
    return need("pandas", "results come as frames of pandas", "tables")
