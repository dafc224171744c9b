"""Read tables of a TOML file key by key, so that nothing misspelt goes unnoticed."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar

__all__ = ["Table", "check_name", "each", "flag", "mapping", "number", "text", "whole"]

Value = TypeVar("Value")
Check = Callable[[Any, str], Value]

_REQUIRED: Any = object()


class Table:
    """A table of a specification, and the keys that were asked for.

    Parameters
    ----------
    content : dict
        The table as it was parsed.
    place : str
        Where it stands, for error messages; empty for the top of the file.
    """

    def __init__(self, content: Any, place: str) -> None:
        if not isinstance(content, dict):
            raise ValueError(f"[{place}]: expected a table, got {content!r}.")
        self._content = content
        self._place = place
        self._asked: list[str] = []

    def take(self, key: str, check: Check[Value], default: Any = _REQUIRED) -> Value:
        """Give a checked value, or the default where the key is absent."""
        self._asked.append(key)
        if key in self._content:
            return check(self._content[key], self.place_of(key))
        if default is _REQUIRED:
            raise ValueError(f"{self.place_of(key)}: is missing.")
        return default

    def has(self, key: str) -> bool:
        """Whether a key is there."""
        return key in self._content

    def place_of(self, key: str) -> str:
        """Name a key as a reader of the file finds it."""
        return f"[{self._place}] {key}" if self._place else key

    def done(self) -> None:
        """Refuse keys that nobody asked for."""
        for key in self._content:
            check_name(key, self._asked, f"[{self._place}]" if self._place else "specification")


def check_name(name: Any, known: Collection[str], place: str, kind: str = "key") -> str:
    """Refuse a name that is not known, and point to the nearest one that is."""
    if isinstance(name, str) and name in known:
        return name
    near = difflib.get_close_matches(str(name), known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"{place}: unknown {kind} {name!r}.{hint} Known: {', '.join(known)}.")


def text(value: Any, place: str) -> str:
    """Accept a string that is not empty."""
    if isinstance(value, str) and value.strip():
        return value
    raise ValueError(f"{place}: expected a text, got {value!r}.")


def whole(least: int) -> Check[int]:
    """Accept a whole number that is not less than `least`."""

    def check(value: Any, place: str) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and value >= least:
            return value
        raise ValueError(f"{place}: expected a whole number from {least}, got {value!r}.")

    return check


def number(least: float, most: float = math.inf, *, open_ends: bool = False) -> Check[float]:
    """Accept a number between two others."""

    def check(value: Any, place: str) -> float:
        if isinstance(value, int | float) and not isinstance(value, bool):
            inside = least < value < most if open_ends else least <= value <= most
            if inside:
                return float(value)
        raise ValueError(f"{place}: expected a number from {least:g} to {most:g}, got {value!r}.")

    return check


def flag(value: Any, place: str) -> bool:
    """Accept true or false."""
    if isinstance(value, bool):
        return value
    raise ValueError(f"{place}: expected true or false, got {value!r}.")


def each(check: Check[Value]) -> Check[tuple[Value, ...]]:
    """Accept a list of different things, not empty, or one thing alone."""

    def check_all(value: Any, place: str) -> tuple[Value, ...]:
        values: Iterable[Any] = value if isinstance(value, list) else [value]
        checked = tuple(check(item, place) for item in values)
        if not checked:
            raise ValueError(f"{place}: the list is empty.")
        if len(set(checked)) < len(checked):
            raise ValueError(f"{place}: {value!r} names something twice.")
        return checked

    return check_all


def mapping(value: Any, place: str) -> dict[str, Any]:
    """Accept a table of anything."""
    if isinstance(value, dict):
        return dict(value)
    raise ValueError(f"{place}: expected a table such as {{ C = 1.0 }}, got {value!r}.")
