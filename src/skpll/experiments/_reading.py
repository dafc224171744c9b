"""Read tables of a TOML file into dataclasses, so that nothing misspelt goes unnoticed.

A field is a key of the table if its annotation carries a check, a function from a value and its
place in the file to what it means: ``folds: Annotated[int, whole(2)] = 10``.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
from collections.abc import Callable, Collection
from typing import Any, TypeVar, get_type_hints

Record = TypeVar("Record")
Check = Callable[[Any, str], Any]


def read(
    cls: type[Record], content: dict[str, Any], place: str, *, beside: Collection[str] = ()
) -> Record:
    """Make a record of a table.

    Parameters
    ----------
    cls : dataclass
        What it is to become.
    content : dict
        The table.
    place : str
        Where it stands, for messages: ``"[protocol]"``; empty for the top of the file.
    beside : collection of str
        Keys that somebody else reads.

    Returns
    -------
    instance of cls

    Raises
    ------
    ValueError
        If a key is unknown or missing, or a value is refused.
    """
    hints = get_type_hints(cls, include_extras=True).items()
    checks = {key: hint.__metadata__[0] for key, hint in hints if hasattr(hint, "__metadata__")}
    values = {}
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        where = f"{place} {field.name}".lstrip()
        if field.name in checks and field.name in content:
            values[field.name] = checks[field.name](content[field.name], where)
        elif field.default is field.default_factory:  # neither is there
            raise ValueError(f"{where}: is missing.")
    for key in content:
        check_name(key, [*checks, *beside], place or "specification")
    return cls(**values)


def table(cls: type[Any]) -> Check:
    """Accept a table of the keys of a record."""
    return lambda value, place: read(cls, mapping(value, place), f"[{place}]")


def check_name(name: Any, known: Collection[str], place: str, kind: str = "key") -> str:
    """Refuse a name that is not known, and point to the nearest one that is."""
    if isinstance(name, str) and name in known:
        return name
    near = difflib.get_close_matches(str(name), known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"{place}: unknown {kind} {name!r}.{hint} Known: {', '.join(known)}.")


def one_of(*known: str) -> Check:
    """Accept one of several names."""
    return lambda value, place: check_name(value, known, place, "name")


def _expect(what: str, accept: Callable[[Any], object], convert: Any = lambda value: value) -> Any:
    def check(value: Any, place: str) -> Any:
        if accept(value):
            return convert(value)
        raise ValueError(f"{place}: expected {what}, got {value!r}.")

    return check


text: Check = _expect("a text", lambda value: isinstance(value, str) and value.strip())
flag: Check = _expect("true or false", lambda value: isinstance(value, bool))
mapping: Check = _expect("a table such as { C = 1.0 }", lambda value: isinstance(value, dict), dict)
short_name: Check = _expect(
    "letters, digits, - and _",
    lambda value: isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9_-]+", value),
)


def whole(least: int) -> Check:
    """Accept a whole number that is not less than `least`."""
    return _expect(
        f"a whole number from {least}", lambda value: type(value) is int and value >= least
    )


def number(least: float, most: float = math.inf, *, open_ends: bool = False) -> Check:
    """Accept a number between two others."""

    def inside(value: Any) -> bool:
        if type(value) not in (int, float):
            return False
        return least < value < most if open_ends else least <= value <= most

    return _expect(f"a number from {least:g} to {most:g}", inside, float)


def each(check: Check) -> Check:
    """Accept a list of different things, not empty, or one thing alone."""

    def check_all(value: Any, place: str) -> tuple[Any, ...]:
        values = value if isinstance(value, list) else [value]
        checked = tuple(check(item, place) for item in values)
        if not checked:
            raise ValueError(f"{place}: the list is empty.")
        if len(set(checked)) < len(checked):
            raise ValueError(f"{place}: {value!r} names something twice.")
        return checked

    return check_all


def several(check: Check) -> Check:
    """Accept tables that stand under ``[[…]]``, one at least."""

    def check_all(value: Any, place: str) -> tuple[Any, ...]:
        if not isinstance(value, list) or not value:
            raise ValueError(f"[[{place}]]: expected one such table at least.")
        return tuple(check(item, f"{place} {number}") for number, item in enumerate(value, 1))

    return check_all


def lists(value: Any, place: str) -> dict[str, list[Any]]:
    """Accept a table of lists of values."""
    found = mapping(value, place)
    for key, values in found.items():
        if not isinstance(values, list) or not values:
            raise ValueError(f"{place} {key}: expected a list of values, got {values!r}.")
    return {key: [or_none(given) for given in values] for key, values in found.items()}


def or_none(value: Any) -> Any:
    """Read "none" as None, for which TOML has no word; no parameter has a text of that name."""
    return None if value == "none" else value
