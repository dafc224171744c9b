"""Tables in memory: one small interface to their columns, and what their cells say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpll._errors import ArgumentError
from skpll._labels import as_objects
from skpll._typing import Array as LabelArray

from ._extra import note, pa, pc, pd, refuse_rows, short

Array: TypeAlias = Any
"""An Arrow array, chunked or not."""

Batch: TypeAlias = Any
"""An Arrow table: some columns of some rows."""

Frame: TypeAlias = Any
"""A pandas or polars frame, of which only what both have is used."""

BATCH_ROWS = 2**14

RESULT_PREFIX = "skpll_"
"""What the names of added columns begin with if their plain names are taken."""

EMBEDDINGS = "embeddings"
"""The name of the hidden column of vectors."""


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


class Table:
    """A table in memory.

    Parameters
    ----------
    names : list of str
        The names of the columns.
    columns : list of Arrow arrays, or of columns of a frame
        The cells.

    Attributes
    ----------
    n_rows : int
        The number of rows.
    hidden : tuple of str
        Names of further columns, which can be features but are not written out again.
    delimiter : str or None
        What separates the cells in the text file that it was read from.
    tasks : Tasks or None
        What tasks of Label Studio have beside their columns.
    """

    hidden: tuple[str, ...] = ()
    delimiter: str | None = None
    tasks: Tasks | None = None

    def __init__(self, names: list[str], columns: list[Array]) -> None:
        self.names = names
        self.n_rows = len(columns[0]) if columns else 0
        self._columns = dict(zip(names, columns, strict=True))

    def column(self, name: str) -> Array:
        """Return a whole column."""
        return arrow_column(self._columns[name])

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """Yield some of the columns, a batch of rows at a time, in order."""
        cells = pa.table({name: self.column(name) for name in names})
        for start in range(0, self.n_rows, BATCH_ROWS):
            yield cells.slice(start, BATCH_ROWS)

    def groups(self) -> Sequence[Table]:
        """Return the table in groups of rows, which other processes can read."""
        return [self]

    def extended(self, more: Mapping[str, Array], *, hidden: bool = False) -> Self:
        """Return the table with further columns, or others in place of its own, in memory.

        Parameters
        ----------
        more : mapping from names to Arrow arrays
            The further columns.
        hidden : bool, default=False
            Whether they are hidden.

        Returns
        -------
        Table
        """
        found = copy(self)
        found._columns = {**self._columns, **more}
        if hidden:
            found.hidden = (*self.hidden, *more)
        else:
            found.names = list(dict.fromkeys((*self.names, *more)))
        return found

    def take(self, names: Sequence[str], rows: NDArray[np.integer]) -> Batch:
        """Return some rows, in the order in which they are named, without holding all of them."""
        order = np.argsort(rows, kind="stable")
        back, rows = np.argsort(order), rows[order]
        parts, start = [], 0
        for batch in self.batches(names) if names else ():
            first, last = np.searchsorted(rows, [start, start + len(batch)])
            parts.append(batch.take(rows[first:last] - start))
            start += len(batch)
        return pa.concat_tables(parts).take(back) if parts else pa.table({})


@dataclass(frozen=True)
class Tasks:
    """What tasks of Label Studio have beside their columns.

    Parameters
    ----------
    control : two str
        The names of the tag that people choose in, and of the tag that shows what they judge.
    votes : Table, optional
        The votes of the annotators: ``item``, ``annotator``, ``label``.
    """

    control: tuple[str, str]
    votes: Table | None = None


class FrameTable(Table):
    """A pandas or polars frame.

    Parameters
    ----------
    frame : pandas.DataFrame or polars.DataFrame
        The table.
    """

    def __init__(self, frame: Frame) -> None:
        names = [str(name) for name in frame.columns]
        check_names(names, "frame")
        super().__init__(names, [frame[name] for name in frame.columns])
        self.n_rows = len(frame)


def embedded(table: Table, vectors: ArrayLike | Path | None) -> Table:
    """Return a table with a vector for each row, given or in a ``.npy`` file; None: as it is."""
    if vectors is None:
        return table
    if isinstance(vectors, Path):
        try:
            vectors = np.load(vectors, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise ArgumentError(
                EMBEDDINGS, f"{vectors}: not a readable .npy file: {error}."
            ) from None
    found = np.asarray(vectors)
    if found.ndim != 2 or found.dtype.kind not in "fiu" or not found.shape[1]:
        problem = f"expected a matrix of numbers, got {found.dtype} of shape {found.shape}."
    elif len(found) != table.n_rows:
        problem = f"there are {len(found)} rows for the {table.n_rows} of the table."
    elif EMBEDDINGS in table.names:
        problem = "the table has a column of that name; rename it."
    else:
        wrong = ~np.isfinite(found).all(axis=1)
        refuse_rows(wrong, EMBEDDINGS, "has an entry that is not finite.")
        flat = pa.array(np.ascontiguousarray(found, np.float32).ravel())
        column = pa.FixedSizeListArray.from_arrays(flat, found.shape[1])
        return table.extended({EMBEDDINGS: column}, hidden=True)
    raise ArgumentError(EMBEDDINGS, problem)


def check_names(names: list[str], where: object) -> None:
    """Refuse a table with two columns of one name."""
    places: dict[str, int] = {}
    for place, name in enumerate(names, start=1):
        if name in places:
            raise ValueError(
                f"{where}: columns {places[name]} and {place} are both called {short(name)}; "
                "rename one of them."
            )
        places[name] = place


def text_of(array: Array) -> Array:
    """Turn a column into text; what is missing stays missing."""
    array = plain(array)
    if not pa.types.is_nested(array.type):
        try:
            return array.cast(pa.string())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            pass
    return pa.array(
        [None if cell is None else str(cell) for cell in array.to_pylist()], pa.string()
    )


def plain(array: Array) -> Array:
    """Write out a column that holds numbers of entries in a dictionary."""
    encoded = pa.types.is_dictionary(array.type)
    return array.cast(array.type.value_type) if encoded else array


def arrow_column(cells: Frame | list[Any]) -> Array:
    """Turn a list or a column of a frame into an Arrow array; mixed cells become text."""
    if isinstance(cells, pa.Array | pa.ChunkedArray):
        return cells
    mixed = isinstance(cells, list) or str(cells.dtype).lower() == "object"
    objects = list(cells) if mixed else []
    if any(isinstance(cell, Set) for cell in objects):
        return pa.array([sorted(c, key=str) if isinstance(c, Set) else c for c in objects])
    if hasattr(cells, "to_arrow"):
        return cells.to_arrow()
    try:
        return pa.array(cells, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        missing = pd.Series(cells, dtype=object).isna()
        return pa.array([None if gap else str(x) for x, gap in zip(cells, missing, strict=True)])


def gap_words(words: Iterable[str] | None) -> frozenset[str]:
    """Return the words that stand for a gap: the usual ones, or those of the user."""
    return frozenset(GAPS if words is None else {"", *(word.strip().lower() for word in words)})


def texts(column: Array, gaps: Iterable[str] = GAPS) -> Array:
    """Return cells as text without blanks around it; gaps are missing."""
    trimmed = pc.utf8_trim_whitespace(text_of(column))
    is_gap = pc.is_in(pc.utf8_lower(trimmed), pa.array(list(gaps), trimmed.type))
    return pc.if_else(is_gap, pa.scalar(None, trimmed.type), trimmed)


def numbers(column: Array, style: str | None = None) -> NDArray[np.float64]:
    """Read cells as numbers, by default in the style that reads most of them.

    Gaps, what is no number, and infinity become NaN.
    """
    values = _parsed(column, best_style(column, NUMBERS)[0] if style is None else style)
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


def free_names(columns: Mapping[str, Array], taken: Sequence[str]) -> dict[str, Array]:
    """Return columns a prefix if the name of any is taken, and a longer one while that is."""
    prefix = ""
    while any(f"{prefix}{name}" in set(taken) for name in columns):
        prefix += RESULT_PREFIX
    if prefix:
        first, many = f"{prefix}{next(iter(columns))}", len(columns) > 1
        called = f"columns are called {first} and so on" if many else f"column is called {first}"
        note(f"names are taken, so the new {called}.")
    return {f"{prefix}{name}": column for name, column in columns.items()}


def label_column(classes: LabelArray, codes: NDArray[np.integer]) -> Array:
    """Turn class numbers into a column of labels; a negative number is an empty cell."""
    return pa.array(as_objects(classes)).take(pa.array(codes, mask=codes < 0))
