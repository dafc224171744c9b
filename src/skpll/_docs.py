"""Documentation of parameters and attributes that several methods share, written once.

A line ``<<tol, verbose>>`` in a docstring stands for the entries of these names in ``_docs.txt``,
``<<Attributes: classes_>>`` for a section of them, and ``<<margin.labels>>`` for a group of entries
that the methods of one family share. In an entry, ``{max_iter}`` stands for the default of a
parameter, and ``{__name__}`` for the name of the class.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from textwrap import indent
from types import FunctionType
from typing import TypeVar

__all__ = ["documented"]

Target = TypeVar("Target", bound=Callable[..., object])


def _shared() -> dict[str, str]:
    text = Path(__file__).with_name("_docs.txt").read_text(encoding="utf-8")
    _, *parts = re.split(r"^<<(.+)>>\n", text, flags=re.MULTILINE)
    groups = dict(zip(parts[::2], (part.rstrip() for part in parts[1::2]), strict=True))
    entries = re.split(r"\n(?=\w)", groups.pop("entries"))
    return groups | {entry.split(" :")[0]: entry for entry in entries}


SHARED = _shared()


def documented(target: Target) -> Target:
    """Fill in the docstring of a function, or of a class and its methods.

    Parameters
    ----------
    target : function or class
        Lines of its docstring that name shared entries are replaced by the entries.
    """
    members = vars(target).values() if isinstance(target, type) else ()
    for owner in (target, *(getattr(member, "__func__", member) for member in members)):
        if isinstance(owner, type | FunctionType) and owner.__doc__ and "<<" in owner.__doc__:
            owner.__doc__ = _filled_in(owner.__doc__, target)
    return target


def _filled_in(doc: str, target: object) -> str:
    def default(place: re.Match[str]) -> str:
        return str(getattr(target, place[1]))

    def entries(line: re.Match[str]) -> str:
        parts = [SHARED[entry] for entry in line[3].split(", ")]
        if line[2]:
            heading = line[2].removesuffix(": ")
            parts = [heading, "-" * len(heading), *parts]
        return indent(re.sub(r"\{(\w+)\}", default, "\n".join(parts)), line[1])

    return re.sub(r"^( *)<<(\w+: )?([\w., ]+)>>$", entries, doc, flags=re.MULTILINE)
