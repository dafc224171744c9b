"""One renderer: a frame as CSV, LaTeX, Markdown or HTML, or as rows of text for a terminal.

What it is called, how it is to be read and which columns are shown lies in the frame's `attrs`, see
`skpll.experiments.tables.titled`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from skpll._extra import content_digest, need

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Cell:
    """An entry of a table.

    Attributes
    ----------
    text : str
        What to read.
    value : float, str or None
        What to sort by; None goes to the end.
    mark : str
        A sign after the text.
    note : str
        What stands beside it in small print.
    best : bool
        Whether to print it bold.
    """

    text: str
    value: float | str | None = None
    mark: str = ""
    note: str = ""
    best: bool = False

    @property
    def is_number(self) -> bool:
        """Whether it is a number, or a gap among numbers."""
        return not isinstance(self.value, str)

    def __str__(self) -> str:
        return f"{self.text} {self.mark}".rstrip()


@dataclass(frozen=True)
class Layout:
    """A table as it is to be read: its title, the heads of its columns, its entries, and notes."""

    title: str
    heads: list[Cell]
    rows: list[list[Cell]]
    notes: list[str]

    @property
    def columns(self) -> list[tuple[Cell, bool, bool]]:
        """The heads, with whether all entries below are numbers, and whether any has a mark."""
        return [
            (head, all(cell.is_number for cell in cells), any(cell.mark for cell in cells))
            for head, *cells in zip(self.heads, *self.rows, strict=True)
        ]


def render(frame: DataFrame, form: Literal["csv", "tex", "md", "html"], name: str = "table") -> str:
    """Write a frame as text.

    Parameters
    ----------
    frame : DataFrame
        A table, see `skpll.experiments.tables`.
    form : {"csv", "tex", "md", "html"}
        All columns as CSV; what is to be read as LaTeX (for booktabs), Markdown or HTML.
    name : str
        What it is referred to by.

    Returns
    -------
    str

    Examples
    --------
    >>> import pandas as pd
    >>> from skpll.experiments.render import render
    >>> print(render(pd.DataFrame({"method": ["PL-LOO"], "rank": [1]}), "csv"))
    method,rank
    PL-LOO,1
    <BLANKLINE>
    """
    if form == "csv":
        return frame.to_csv(index=False, lineterminator="\n")
    return templates().get_template(f"table.{form}").render(table=lay_out(frame), name=name)


def lay_out(frame: DataFrame) -> Layout:
    """Turn a frame into heads and entries to be read.

    Parameters
    ----------
    frame : DataFrame
        A table, see `skpll.experiments.tables`.

    Returns
    -------
    Layout
    """
    about: dict[Any, Any] = frame.attrs
    formats, names = about.get("formats", {}), about.get("heads", {})
    records: list[dict[Any, Any]] = frame.to_dict("records")

    def head(column: str) -> Cell:
        is_name = column.islower() and len(column) > 1
        name = column.replace("_", " ").capitalize() if is_name else column
        return Cell(names.get(column, name), "")

    if "wide" in about:
        index, across = about["wide"]
        figures: dict[tuple[Cell, ...], dict[str, Cell]] = {}
        for row in records:
            place = tuple(_cell(row, name, "{:g}") for name in index)
            figures.setdefault(place, {})[row[across]] = _figure(row, formats["mean"])
        columns = dict.fromkeys(row[across] for row in records)
        under = about.get("under", "")
        heads = [*map(head, index), *(Cell(str(name), "", note=under) for name in columns)]
        rows = [
            [*place, *(line.get(name, Cell("–")) for name in columns)]
            for place, line in figures.items()
        ]
    else:
        shown = about.get("shown", list(frame.columns))
        heads = [head(column) for column in shown]
        rows = [[_cell(row, name, formats.get(name)) for name in shown] for row in records]
    return Layout(about.get("title", ""), heads, rows, list(about.get("notes", ())))


def _cell(row: dict[str, Any], name: str, pattern: Any) -> Cell:
    """Turn a value of a row into an entry; what is missing becomes a dash."""
    value = row[name]
    if value is None or value != value or str(value) == "<NA>":
        return Cell("–")
    if isinstance(value, str):
        return Cell(value, value)
    if callable(pattern):
        return Cell(pattern(row), value)
    text = (pattern or ("{:.3f}" if isinstance(value, float) else "{}")).format(value)
    return Cell(text.replace("-", "−"), value)


def _figure(row: dict[str, Any], pattern: str) -> Cell:
    """Turn the mean of a score, with what belongs to it, into an entry."""
    mean, std = row["mean"], row["std"]
    if pattern == "seconds":
        text = f"{1000 * mean:.0f} ms" if mean < 1 else f"{mean:.1f} s"
    else:
        text = pattern.format(mean) + ("" if math.isnan(std) else f"±{pattern.format(std)}")
    return Cell(text, mean, row["mark"] or "", row["note"], bool(row["best"]))


@lru_cache(maxsize=1)
def templates() -> Any:
    """Return the environment of the templates; text in HTML is escaped automatically."""
    found = need("jinja2", "reports are made with jinja2", "tables")
    environment = found.Environment(
        loader=found.PackageLoader(__package__),
        autoescape=found.select_autoescape(["html"]),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=found.StrictUndefined,
    )
    environment.filters |= {
        "tex": lambda text: text.translate(str.maketrans(_TEX)),
        "md": lambda text: text.replace("|", "\\|"),
        "digest": content_digest,
    }
    return environment


def caption(name: str, *about: object) -> str:
    """Fill the text of a name in ``templates/captions.txt``.

    Parameters
    ----------
    name : str
        The name.
    *about
        What it is filled with.

    Returns
    -------
    str
    """
    return str(getattr(templates().get_template("captions.txt").module, name)(*about))


_MATHS = {"±": r"\pm", "×": r"\times", "−": "-", "λ": r"\lambda", "●": r"\bullet", "○": r"\circ"}
_TEX = {sign: f"\\{sign}" for sign in "&%$#_{}"} | {sign: f"${sign}$" for sign in "<>"}
_TEX |= {sign: f"${command}$" for sign, command in _MATHS.items()}
_TEX |= {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
}
