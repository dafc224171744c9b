"""What cells say: gaps, numbers and dates, in the ways people write them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ._extra import pa, pc, pd
from .reading import Array, Frame, plain, text_of

GAPS: tuple[str, ...] = ("", "?", "??", "-", "--", "na", "n/a", "n.a.", "#n/a", "<na>")
GAPS += ("nan", "nat", "null", "none", "unknown", "missing")
"""Words that stand for "nothing is known", in any case of letters."""

POINT, COMMA, THOUSANDS = "1234.5", "1.234,5", "1,234.5"
ISO, DAY_FIRST, MONTH_FIRST = "2024-12-31", "31.12.2024", "12/31/2024"

NUMBERS = (POINT, COMMA, THOUSANDS)
DATES = (ISO, DAY_FIRST, MONTH_FIRST)
"""The ways of writing numbers and dates, by an example of each; the first of equals is taken."""

_WRITTEN = {
    COMMA: r"^[+-]?(\d{1,3}(\.\d{3})+|\d*)(,\d+)?([eE][+-]?\d+)?$",
    THOUSANDS: r"^[+-]?(\d{1,3}(,\d{3})+|\d+)(\.\d*)?([eE][+-]?\d+)?$",
}
_SHORT_GROUP = r"^[+-]?[1-9]\d{0,2},\d{3}$"
_DATE = r"^(\d{1,2})[./-](\d{1,2})[./-](\d{4})(?:[ T]+(\d{1,2}:\d{2}(?::\d{2})?))?$"
_HUGE = 1e100  # numbers beyond can't be squared and summed; they count as missing


def gap_words(words: Iterable[str] | None) -> frozenset[str]:
    """Return the words that stand for a gap: the usual ones, or those of the user."""
    return frozenset(GAPS if words is None else {"", *(word.strip().lower() for word in words)})


def texts(column: Array, gaps: Iterable[str] = GAPS) -> Array:
    """Return cells as text without blanks around it; gaps are missing."""
    trimmed = pc.utf8_trim_whitespace(text_of(column))
    is_gap = pc.is_in(pc.utf8_lower(trimmed), pa.array(list(gaps), trimmed.type))
    return pc.if_else(is_gap, pa.scalar(None, trimmed.type), trimmed)


def numbers(column: Array, style: str = POINT) -> NDArray[np.float64]:
    """Read cells as numbers; gaps, what is no number, and infinity become NaN."""
    values = _parsed(column, style)
    return np.where(np.abs(values) < _HUGE, values, np.nan)


def _parsed(column: Array, style: str) -> NDArray[np.float64]:
    column = plain(column)
    if is_text(column.type):
        cells = _with_points(texts(column), style)
        try:
            return np.asarray(cells.cast(pa.float64()).to_numpy(zero_copy_only=False))
        except pa.ArrowInvalid:
            cells = pd.Series(cells.to_pylist(), dtype=object)
            values = pd.to_numeric(cells, errors="coerce")
            return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))


def days(column: Array, style: str = ISO) -> NDArray[np.float64]:
    """Read cells as dates and times, as days since 1970; gaps and what is none become NaN."""
    column = plain(column)
    if is_text(column.type):
        cells = pd.Series(texts(column).to_pylist(), dtype=object)
        cells = _as_iso(cells, style)
        times = pd.to_datetime(cells, format="ISO8601", errors="coerce", utc=True)
    else:
        moments = column.cast(pa.timestamp("us"), safe=False).to_numpy(zero_copy_only=False)
        times = pd.Series(moments).dt.tz_localize("UTC")
    return np.asarray((times - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1), np.float64)


def best_style(column: Array, styles: tuple[str, ...], preferred: str = "") -> tuple[str, float]:
    """Find how the numbers or dates of a column are written.

    Parameters
    ----------
    column : Arrow array
        The cells.
    styles : tuple of str
        `NUMBERS` or `DATES`.
    preferred : str
        What to take if it reads as many cells as any other.

    Returns
    -------
    style : str
        The one that reads most cells.
    share : float
        The share of the cells that are no gaps which it reads.
    """
    read = _parsed if styles is NUMBERS else days
    if not is_text(plain(column).type):
        return styles[0], 1.0
    cells = texts(column).drop_null()
    if not len(cells):
        return styles[0], 0.0
    shares = {}
    for style in styles:
        shares[style] = float((~np.isnan(read(cells, style))).mean())
        if shares[style] == 1.0 and style == styles[0]:
            return style, 1.0
    best = max(shares.values())
    equal = [style for style in styles if shares[style] == best]
    if preferred in equal:
        return preferred, best
    if equal == [COMMA, THOUSANDS] and _are_thousands(cells):
        return THOUSANDS, best
    return equal[0], best


def is_vectors(column: Array) -> bool:
    """Return whether the cells are lists of decimal numbers, all of one length."""
    types, kind = pa.types, column.type
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        return False
    if not types.is_floating(kind.value_type) or not len(column.drop_null()):
        return False
    if types.is_fixed_size_list(kind):
        return True
    ends = pc.min_max(pc.list_value_length(column)).as_py()
    return bool(ends["min"] == ends["max"] > 0)


def vectors(column: Array) -> list[NDArray[np.float32] | None]:
    """Read cells that are lists of numbers of one length; a gap is None."""
    flat = pc.list_flatten(column).to_numpy(zero_copy_only=False)
    known = column.is_valid().to_numpy(zero_copy_only=False)
    rows = iter(np.nan_to_num(flat.astype(np.float32)).reshape(int(known.sum()) or 1, -1))
    return [next(rows) if there else None for there in known]


def is_text(kind: object) -> bool:
    """Return whether a type of Arrow is text."""
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _with_points(cells: Array, style: str) -> Array:
    """Write numbers with a decimal point and nothing else; what is written otherwise is missing."""
    if style == POINT:
        return cells
    fits = pc.match_substring_regex(cells, _WRITTEN[style])
    cells = pc.if_else(fits, cells, None)
    if style == THOUSANDS:
        return pc.replace_substring(cells, ",", "")
    return pc.replace_substring(pc.replace_substring(cells, ".", ""), ",", ".")


def _are_thousands(cells: Array) -> bool:
    """Return whether commas group thousands: three digits follow each, and some cells have none."""
    commas = pc.match_substring(cells, ",")
    grouped = pc.match_substring_regex(cells.filter(commas), _SHORT_GROUP)
    return pc.all(grouped).as_py() and not pc.all(commas).as_py()


def _as_iso(cells: Frame, style: str) -> Frame:
    if style == ISO:
        return cells
    parts = cells.astype("str").str.extract(_DATE)
    day, month = (0, 1) if style == DAY_FIRST else (1, 0)
    dates = parts[2] + "-" + parts[month].str.zfill(2) + "-" + parts[day].str.zfill(2)
    return dates + ("T" + parts[3].str.zfill(5)).fillna("")
