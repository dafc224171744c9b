"""Figures as files for papers (PDF, PNG) and as SVG inside the report."""

from __future__ import annotations

import io
import re
from html import escape
from pathlib import Path
from typing import Any

__all__ = ["write_figure"]

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.fontsize": 8,
    "svg.fonttype": "none",
}


def write_figure(
    folder: Path,
    name: str,
    display: Any,
    *,
    description: str,
    size: tuple[float, float] = (4.6, 2.9),
    **options: Any,
) -> str:
    """Write a figure as PDF and PNG, and give it back as SVG for a page.

    Parameters
    ----------
    folder : Path
        Where the files go.
    name : str
        What the files are called.
    display : object with a method `plot`
        What to draw, such as those of `skpll.plotting`.
    description : str
        What is to be seen, for those who can't see it.
    size : tuple of two floats
        Width and height in inches.
    **options
        Passed to the display's `plot`.

    Returns
    -------
    str
        The figure as an ``svg`` element that takes its ink from the page.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({**STYLE, "svg.hashsalt": name}):
        figure = Figure(figsize=size, layout="constrained")
        display.plot(figure.subplots(), **options)
        drawn = io.StringIO()
        blank = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(drawn, format="svg", transparent=True, metadata=blank)
        figure.set_layout_engine("none")  # once laid out, it need not be again
        figure.savefig(folder / f"{name}.pdf", metadata={"CreationDate": None})
        figure.savefig(folder / f"{name}.png", dpi=200)
    return _for_page(drawn.getvalue(), name, description)


def _for_page(svg: str, name: str, description: str) -> str:
    """Make a drawing part of a page: ids of its own, the page's colours, a description."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\1{name}-", svg)
    svg = svg.replace("#000000", "currentColor").replace("#ffffff", "var(--surface)")
    box = re.search(r'viewBox="[^"]*"', svg)
    assert box is not None
    body = svg[svg.index(">") + 1 : svg.rindex("</svg>")]
    opening = f'<svg role="img" xmlns:xlink="http://www.w3.org/1999/xlink" {box[0]}>'
    title = escape(description, quote=False)
    return f"{opening}<title>{title}</title>{body}</svg>"
