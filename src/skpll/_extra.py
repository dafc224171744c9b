"""Packages beyond the core, imported where they are first needed, and what their pages share."""

from __future__ import annotations

import base64
import hashlib
from importlib import import_module
from typing import Any


def need(module: str, what_for: str, extra: str) -> Any:
    """Import a module; an error says how to install it.

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


class Package:
    """A module that is imported when something of it is first needed; see `need`."""

    def __init__(self, module: str, what_for: str, extra: str) -> None:
        self._needed = module, what_for, extra

    def __getattr__(self, name: str) -> Any:
        return getattr(need(*self._needed), name)


def pandas() -> Any:
    """Import pandas; an error says how to install it."""
    return need("pandas", "results come as frames of pandas", "tables")


def content_digest(text: str) -> str:
    """Return what a content-security policy calls a script or a style sheet by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
