"""`skpll methods`: what there is."""

from __future__ import annotations

import inspect
from typing import Any

from .output import AsJson, print_json, print_table

WHEN = {
    "clpl": "a linear model from one convex problem: no local optima, fast on many rows",
    "ipal": "small and medium tables with no time to tune; classes of any shape",
    "lsbcmm": "probabilities are wanted, or a class lies in several places",
    "m3pl": "a linear model that decides each training label, with known class sizes",
    "paloc": "few classes, and curved boundaries between them",
    "plecoc": "many classes, and time to train many machines",
    "plknn": "a first answer at once; classes of any shape, many rows",
    "plleaf": "few features or kernels; classes of any shape, no time to tune",
    "plsvm": "class sizes that the candidates don't show; a linear model without a prior",
    "sppll": "the default: a linear model that learns easy rows first, robust to hard ones",
}
"""When to use each method, in a few words."""


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


def _describe(name: str, cls: type) -> dict[str, Any]:
    text = inspect.cleandoc(cls.__doc__ or "")
    _, _, references = text.partition("References\n----------\n")
    return {
        "name": name,
        "class": cls.__name__,
        "summary": text.splitlines()[0].rstrip("."),
        "use": WHEN.get(name, ""),
        "paper": " ".join(references.partition("\n\n")[0].split()),
    }
