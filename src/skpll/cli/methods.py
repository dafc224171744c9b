"""`skpll methods`: what there is."""

from __future__ import annotations

import inspect

from .options import AsJson
from .output import print_json, print_table

USE, REFERENCES = "Use it ", "References ---------- "
"""How the paragraphs of a docstring begin that say when to use a method, and whose it is."""


def methods(as_json: AsJson = False) -> None:
    """List the methods, with what each one is, when to use it, and its paper.

    Example: skpll methods --json
    """
    from skpll import all_methods

    known = [_describe(name, cls) for name, cls in all_methods().items()]
    if as_json:
        print_json(known)
        return
    print_table(
        "Methods",
        ["name", "what it is", "when to use it", "paper"],
        [[entry["name"], entry["summary"], entry["use"], entry["paper"]] for entry in known],
    )


def _describe(name: str, cls: type) -> dict[str, str]:
    """Read what the docstring of a method says: its first line, its use, its first reference."""
    text = inspect.cleandoc(cls.__doc__ or "")
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]

    def after(beginning: str) -> str:
        found = (text for text in paragraphs if text.startswith(beginning))
        return next(found, "").removeprefix(beginning)

    return {
        "name": name,
        "class": cls.__name__,
        "summary": paragraphs[0].rstrip("."),
        "use": after(USE).rstrip("."),
        "paper": after(REFERENCES),
    }
