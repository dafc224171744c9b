"""Optional packages that tables need, and helpers for their messages."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from skpll._errors import ArgumentError
from skpll._extra import Package

Plain: TypeAlias = dict[str, Any]
"""Facts by name, in values that JSON knows."""


class TableWarning(UserWarning):
    """Something about a table that the user should know; the work goes on.

    Parameters
    ----------
    problem : str
        What there is to know.
    remedy : mapping from str to object, optional
        Arguments that would help, with their values; they are named at the end of the message.
    """

    def __init__(self, problem: str, remedy: Mapping[str, object] | None = None) -> None:
        super().__init__(problem)
        self.problem, self.remedy = problem, dict(remedy or {})

    def __str__(self) -> str:
        return self.named([f"{name}={value!r}" for name, value in self.remedy.items()])

    def named(self, remedies: Sequence[str]) -> str:
        """Return the message with other names for the arguments, such as options."""
        return f"{self.problem} ({', '.join(remedies)})." if remedies else self.problem


def short(text: object, length: int = 60) -> str:
    """Quote a cell or a name in a message, cut where it is long."""
    shown = repr(text)
    return shown if len(shown) <= length else f"{shown[: length - 1]}…"


def listed(names: Iterable[object], most: int = 8) -> str:
    """Quote some names in a message; of many the first ones, and how many there are."""
    names = list(names)
    shown = ", ".join(short(name, 30) for name in names[:most])
    return shown if len(names) <= most else f"{shown}, … ({len(names)} in all)"


def refuse_rows(wrong: NDArray[np.bool_], argument: str, problem: str) -> None:
    """Raise an error that names the first row of a table that is wrong, if any is."""
    if wrong.any():
        raise ArgumentError(argument, f"row {int(np.argmax(wrong)) + 1} {problem}")


def note(message: str, remedy: Mapping[str, object] | None = None) -> None:
    """Warn the user about something in a table; the work goes on."""
    warnings.warn(TableWarning(message, remedy), stacklevel=3)


def _package(name: str) -> Any:
    return Package(name, f"{name.partition('.')[0]} is needed for tables", "tables")


jinja2 = _package("jinja2")
openpyxl = _package("openpyxl")
pa = _package("pyarrow")
pads = _package("pyarrow.dataset")
pc = _package("pyarrow.compute")
pd = _package("pandas")
pq = _package("pyarrow.parquet")
skops = _package("skops.io")
