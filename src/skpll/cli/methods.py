"""`skpll methods`: what there is."""

from __future__ import annotations

import inspect
from typing import Any

from .output import AsJson, print_json, print_table


def methods(as_json: AsJson = False) -> None:
    """List the methods, with what each one does and its paper.

    Example: skpll methods --json
    """
    from skpll import all_methods

    known = [_describe(name, cls) for name, cls in all_methods().items()]
    if as_json:
        print_json(known)
        return
    print_table(
        "Methods",
        ["name", "class", "what it is", "paper"],
        [list(entry.values()) for entry in known],
    )


def _describe(name: str, cls: type) -> dict[str, Any]:
    text = inspect.cleandoc(cls.__doc__ or "")
    _, _, references = text.partition("References\n----------\n")
    return {
        "name": name,
        "class": cls.__name__,
        "summary": text.splitlines()[0].rstrip("."),
        "paper": " ".join(references.partition("\n\n")[0].split()),
    }
