"""Columns: what each column of a table is taken for, why, and how it becomes numbers.

*Numbers* get their gaps filled with the median, and are scaled. *Dates* become days, and points on
the circles of the week, the year and the day where they cover them. *Categories* are one-hot
encoded. *Text* of several words, and *vectors* that were computed elsewhere, become blocks of
features, see `skpll.tables.blocks`. *Pictures*, that is names of their files, are no features. The
kinds are found by looking at the cells, since in a CSV file everything is text. What was seen of a
column is kept, so that another table can be held against it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

from skpll._errors import ArgumentError
from skpll._progress import tracked
from skpll.engine.arrays import as_dense

from . import blocks, reading
from ._extra import Plain, listed, note, pa, pd, short
from .blocks import PICTURE, TEXT, BlockEncoder
from .reading import DATES, EMBEDDINGS, ISO, NUMBERS, POINT, Array, Batch, Frame, Table

if TYPE_CHECKING:
    from sklearn.compose import ColumnTransformer

Cells: TypeAlias = NDArray[Any]
"""Cells that were read: texts and None, or numbers with gaps as NaN."""

Matrix: TypeAlias = NDArray[np.floating] | sparse.csr_array
"""The features of the rows of a table."""

_SAMPLE_ROWS = 50_000
_LARGE = 10**7  # entries; larger feature matrices are kept in single precision
_SHARE = 0.95  # of the cells of a column that have to be numbers, or dates
_FEW = 20  # a column with at most this number of different texts is never one of names
_MAX_CATEGORIES = 100
_NOTED, _LOST = 0.05, 0.5  # shares of the cells: worth a note, and as good as gone

NUMBER, DATE, CATEGORY = "number", "date", "category"
VECTOR = "vector"
_STYLES = {NUMBER: NUMBERS, DATE: DATES, CATEGORY: (), TEXT: (), VECTOR: (), PICTURE: ()}
_IDENTIFIER = re.compile(r"(^|[\W_])(id|ids|key|nr|no|number|index|uid|uuid|code)$", re.IGNORECASE)
_CHOOSE = "(to use it, name it among the features)"

_NO_FEATURES = (
    "no feature column is left to learn from; name some, and see that they differ from row to row."
)
_ONLY_PICTURES = (
    "pictures are all that the table has to learn from; compute a vector for each of them, and "
    "name the file"
)


class ColumnOptions(TypedDict, total=False):
    """Which columns are features.

    Parameters
    ----------
    features : sequence of str or None
        The columns to use; by default all but `exclude`, those that say nothing and those that
        merely name the rows.
    exclude : sequence of str
        Columns that are no features.
    text : sequence of str
        Columns that are features, as free text.
    """

    features: Sequence[str] | None
    exclude: Sequence[str]
    text: Sequence[str]


class NoFeaturesError(ArgumentError):
    """A table without a column to learn from."""


@dataclass(frozen=True)
class Column:
    """What was seen of a column.

    Parameters
    ----------
    name : str
        Its name.
    kind : str
        ``"number"``, ``"date"``, ``"category"``, ``"text"``, ``"vector"``, ``"picture"``, or empty
        for what is none of these.
    style : str
        How its numbers or dates are written, by an example.
    reason : str
        Why it was taken for that, or why it is no feature.
    used : bool
        Whether it is a feature.
    missing : float
        The share of the cells that are gaps.
    unreadable : float
        The share that are no gaps, but not of the kind.
    low, high : float or None
        The smallest and the largest number, or number of words in a text.
    n_values : int
        The number of different texts, or of entries in a vector.
    categories : tuple of str
        The most frequent texts.
    others : float
        The share of the cells that are none of these.
    beyond : float
        The share of the numbers that lie far outside of what was there before.
    """

    name: str
    kind: str
    style: str = ""
    reason: str = ""
    used: bool = True
    missing: float = 0.0
    unreadable: float = 0.0
    low: float | None = None
    high: float | None = None
    n_values: int = 0
    categories: tuple[str, ...] = ()
    others: float = 0.0
    beyond: float = 0.0

    @classmethod
    def look(
        cls, name: str, cells: Array, rows: NDArray[np.int64], chosen: bool, as_text: bool
    ) -> Column:
        """Find out what a column is, from some of its cells and the rows they are in."""
        kind, style, reason = (TEXT, "", "named as text") if as_text else _kind(cells, chosen)
        if not kind:
            return cls(
                name, "", reason=f"{cells.type} is neither number, date nor text", used=False
            )
        column = cls(name, kind, style, reason)
        values = column.read(cells)
        column = column._with_statistics(cells, values)
        objection = column._objection(values, rows, chosen or as_text)
        return replace(column, used=False, reason=objection) if objection else column

    @classmethod
    def described(cls, entry: Plain) -> Column:
        """Read the fields of a column from a file; refuse what can't be one."""
        column = cls(**{**entry, "categories": tuple(entry["categories"])})
        texts = (column.name, column.kind, column.style, column.reason, *column.categories)
        shares = (column.missing, column.unreadable, column.others, column.beyond, column.n_values)
        ends = (end for end in (column.low, column.high) if end is not None)
        if not all(isinstance(text, str) for text in texts) or column.kind not in _STYLES:
            raise ValueError("a column has no name, or is of no kind")
        if not all(isinstance(number, int | float) for number in (*shares, *ends)):
            raise ValueError("what was seen of a column is no number")
        if column.style not in ("", *_STYLES[column.kind]):
            raise ValueError("a column is not written in any known way")
        return column

    def again(self, cells: Array) -> Column:
        """Look at the cells of the same column in another table."""
        style = self.style and reading.best_style(cells, _STYLES[self.kind], self.style)[0]
        column = replace(self, style=style)
        return column._with_statistics(cells, column.read(cells), self)

    def read(self, cells: Array) -> Cells:
        """Read cells as what the column is."""
        if self.kind == NUMBER:
            return reading.numbers(cells, self.style)
        if self.kind == DATE:
            return reading.days(cells, self.style)
        values = np.empty(len(cells), dtype=object)
        values[:] = (
            reading.vectors(cells) if self.kind == VECTOR else reading.texts(cells).to_pylist()
        )
        return values

    @property
    def periods(self) -> dict[str, float]:
        """The periods of a date that are features beside the days, with their length in days."""
        if self.kind != DATE or self.low is None or self.high is None:
            return {}
        return blocks.periods(self.low, self.high)

    @property
    def width(self) -> int:
        """About how many features the column becomes."""
        widths = {CATEGORY: len(self.categories), TEXT: blocks.n_directions(self.n_values)}
        return widths.get(self.kind, self.n_values if self.kind == VECTOR else 1)

    def lost_since(self, before: Column, n: int) -> tuple[float, str]:
        """Return how much of the column can no longer be used, and why.

        Parameters
        ----------
        before : Column
            The column as it was learned from.
        n : int
            The number of cells looked at now; a share of few cells says little.

        Returns
        -------
        share : float
            The share of the cells.
        what : str
            What is wrong with them; empty where it is not worth a word.
        """
        complaints = {
            f"not {'a date' if self.kind == DATE else 'a number'}": self.unreadable
            - before.unreadable,
            "empty": self.missing - before.missing,
            "of categories that were not there": self.others - before.others,
            f"far beyond {_span(before)}, which was all there was": self.beyond,
        }
        reliable = max(n - 1, 0) / (n + 1)
        what, share = max(complaints.items(), key=lambda entry: entry[1])
        if share * reliable <= _NOTED:
            return 0.0, ""
        return share * reliable, f"{share:.0%} of its cells are {what}"

    def becomes(self) -> str:
        """Say in a few words what features the column becomes."""
        if not self.used:
            return "–"
        n, known = self.n_values, len(self.categories)
        written = f" (written as {self.style})" if self.style not in ("", POINT, ISO) else ""
        several = f"{known} of {n} categories, others as one" if n > known else f"{n} categories"
        return {
            NUMBER: "a number" + written,
            DATE: ", ".join(["days", *self.periods]) + written,
            CATEGORY: several,
            TEXT: f"words and letters ({self.width} numbers)",
            VECTOR: f"{self.width} numbers",
        }[self.kind]

    def summary(self) -> str:
        """Describe the content in a few words."""
        if self.kind == VECTOR:
            return f"vectors of {self.n_values} numbers"
        if self.kind in (CATEGORY, PICTURE):
            shown = ", ".join(short(text, 30) for text in self.categories[:3])
            return shown if self.n_values <= 3 else f"{shown}, … ({self.n_values} different)"
        return _span(self)

    def _with_statistics(self, cells: Array, values: Cells, before: Column | None = None) -> Column:
        n = max(len(cells), 1)
        if self.kind in (NUMBER, DATE):
            return self._with_span(cells, values, before)
        given = [value for value in values.tolist() if value is not None]
        seen = replace(self, missing=(len(values) - len(given)) / n)
        if self.kind == VECTOR:
            return replace(seen, n_values=len(given[0]) if given else 0)
        counts = Counter(given)
        seen = replace(seen, n_values=len(counts))
        if self.kind == TEXT:
            lengths = [len(text.split()) for text in counts]
            return replace(seen, low=float(min(lengths, default=0)), high=max(lengths, default=0))
        known = tuple(text for text, _ in counts.most_common(_MAX_CATEGORIES))
        known = known if before is None else before.categories
        familiar = sum(counts[text] for text in known)
        return replace(seen, categories=known, others=(len(given) - familiar) / n)

    def _with_span(self, cells: Array, values: Cells, before: Column | None) -> Column:
        n, found = max(len(cells), 1), values[~np.isnan(values)]
        written = reading.is_text(reading.plain(cells).type)
        missing = reading.texts(cells).null_count if written else len(values) - len(found)
        low, high = (float(found.min()), float(found.max())) if len(found) else (None, None)
        beyond = 0  # more than half of the former span away from it
        if before is not None and before.low is not None and before.high is not None:
            slack = 0.5 * (before.high - before.low)
            beyond = ((found < before.low - slack) | (found > before.high + slack)).sum()
        return replace(
            self,
            missing=missing / n,
            unreadable=(len(values) - len(found) - missing) / n,
            low=low,
            high=high,
            beyond=float(beyond / n),
        )

    def _objection(self, values: Cells, rows: NDArray[np.int64], chosen: bool) -> str:
        """Return the reason why the column is not a feature, or an empty text."""
        if self.kind == VECTOR:
            return ""
        if self.kind == PICTURE:
            return "names of pictures; what to learn from are vectors that describe them"
        if self.kind in (CATEGORY, TEXT):
            given = round((1 - self.missing) * len(values))
            different = self.n_values + (given < len(values))
            if different <= 1:
                return "the same in every row"
            names = self.kind == CATEGORY and not chosen and different > max(_FEW, given / 2)
            return f"most cells differ, as in a name {_CHOOSE}" if names else ""
        return _objection_to_numbers(self.name, values, rows, chosen or self.kind == DATE)


class FeatureColumns:
    """The feature columns of a table and how they become a matrix.

    Parameters
    ----------
    columns : sequence of Column
        In the order of the table.
    encoder : ColumnTransformer
        Fitted; it takes the frames that `frames` gives.
    left_out : sequence of Column
        Columns that were looked at and are no features.
    """

    def __init__(
        self, columns: Sequence[Column], encoder: ColumnTransformer, left_out: Sequence[Column] = ()
    ) -> None:
        self.columns = {column.name: column for column in columns}
        self.encoder = encoder
        self.left_out = list(left_out)

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of each column."""
        return {name: column.kind for name, column in self.columns.items()}

    @classmethod
    def learn(
        cls, table: Table, *, max_dense: float = 0, **options: Unpack[ColumnOptions]
    ) -> FeatureColumns:
        """Find out what the columns are, and learn how to encode them.

        Very long tables are judged by 50 000 rows, drawn at random but always the same.

        Parameters
        ----------
        table : Table
            The table.
        max_dense : float, default=0
            Matrices with at most this number of entries are dense, however many zeros they have.
        **options : ColumnOptions
            Which columns are features.

        Returns
        -------
        FeatureColumns
        """
        seen, sample = look(table, options)
        used = [column for column in seen if column.used]
        left_out = [column for column in seen if not column.used]
        objections: dict[str, list[str]] = {}
        for column in left_out:
            objections.setdefault(column.reason, []).append(column.name)
        for objection, names in objections.items():
            note(f"left out of the features: {listed(names)}: {objection}.")
        if not used and any(column.kind == PICTURE for column in seen):
            raise NoFeaturesError("table", _ONLY_PICTURES, {"embeddings": "FILE.npy"})
        if not used:
            raise NoFeaturesError("features", _NO_FEATURES)
        named = options.get("text", ())
        prose = [c.name for c in used if c.kind == TEXT and c.name not in named]
        if prose:
            note(f"read as text, by words and letters: {listed(prose)}.")
        width = sum(column.width for column in used)
        found = cls(used, _encoder(used, table.n_rows * width <= max_dense), left_out)
        found.encoder.fit(found.frame(sample))
        return found

    def with_roots(self, table: Table) -> FeatureColumns | None:
        """Return the same with square roots of the numbers, or None if they are no histograms."""
        numbers = [name for name, kind in self.kinds.items() if kind == NUMBER]
        if set(self.kinds.values()) & {DATE} or not numbers:
            return None
        frame = self.frame(table.take(list(self.columns), _sample_rows(table.n_rows)))
        if not blocks.are_histograms(frame[numbers].to_numpy()):
            return None
        encoder = clone(self.encoder)
        measured = {name: part for name, part, _ in encoder.transformers}["numbers"]
        measured.steps.insert(1, ("roots", blocks.SquareRoots()))
        return FeatureColumns(list(self.columns.values()), encoder.fit(frame), self.left_out)

    def compared_with(self, table: Table, *, force: bool = False) -> FeatureColumns:
        """Compare another table with what was learned, and return its columns.

        Parameters
        ----------
        table : Table
            A table with these columns.
        force : bool, default=False
            Whether to go on where most of what was learned from is gone.

        Returns
        -------
        FeatureColumns
            The same, with the style of the numbers and dates of the other table.
        """
        check_columns(table, list(self.columns), "the model")
        rows = _sample_rows(table.n_rows)
        sample = table.take(list(self.columns), rows)
        now = (
            [column.again(sample[name]) for name, column in self.columns.items()] if sample else []
        )
        gone = []
        for column in now:
            before = self.columns[column.name]
            share, what = column.lost_since(before, len(rows))
            if column.style != before.style:
                note(f"{short(column.name)} is written as {column.style}; read accordingly.")
            if what:
                note(f"{short(column.name)} is not as it was learned: {what}.")
            if share > _LOST:
                gone.append(column.name)
        if len(gone) > len(self.columns) / 2 and not force:
            raise ArgumentError(
                "table",
                f"it differs from the one that was learned from: {listed(gone)} can't be used, "
                "which is most of it. Check that it is written in the same way, or insist",
                {"force": True},
            )
        return FeatureColumns(now or list(self.columns.values()), self.encoder)

    def transform(self, table: Table) -> Matrix:
        """Turn the feature columns of a table into a matrix, a batch of rows at a time.

        Parameters
        ----------
        table : Table
            A table with these columns.

        Returns
        -------
        X : array or CSR array of shape (n, d)
            In single precision where it is large.
        """
        parts: list[sparse.csr_array] = []
        matrix: NDArray[np.floating] | None = None
        start = 0
        for frame in tracked(self.frames(table), "Reading features", table.n_rows, len):
            block = self.encoder.transform(frame)
            if not isinstance(block, np.ndarray):
                parts.append(sparse.csr_array(block))
            elif matrix is None:
                shape = (table.n_rows, block.shape[1])
                large = shape[0] * shape[1] >= _LARGE
                matrix = np.empty(shape, np.float32 if large else np.float64)
            if matrix is not None:
                matrix[start : start + len(frame)] = block
            start += len(frame)
        if matrix is not None:
            return matrix
        if not parts:
            raise ValueError("the table has no rows.")
        return sparse.vstack(parts, format="csr")

    def gaps(self) -> Frame:
        """Return a frame of one row, in which nothing is known."""
        types = {NUMBER: pa.float64(), DATE: pa.timestamp("us"), VECTOR: pa.list_(pa.float32())}
        cells = {
            name: pa.nulls(1, types.get(kind, pa.string())) for name, kind in self.kinds.items()
        }
        return self.frame(pa.table(cells))

    def frames(self, table: Table) -> Iterator[Frame]:
        """Return the features as pandas frames of numbers and text, a batch of rows at a time."""
        check_columns(table, list(self.columns), "the model")
        yield from map(self.frame, table.batches(list(self.columns)))

    def frame(self, batch: Batch) -> Frame:
        """Return the cells of some rows as a pandas frame of numbers and text."""
        read = {name: column.read(batch[name]) for name, column in self.columns.items()}
        return pd.DataFrame(
            {name: pd.Series(cells, dtype=cells.dtype) for name, cells in read.items()}
        )

    def shuffled(self, frame: Frame, X: Matrix, name: str, order: NDArray[np.int64]) -> Matrix:
        """Return the features of a frame, where the cells of one column are in another order.

        Parameters
        ----------
        frame : pandas.DataFrame
            Some rows, as `frame` returns them.
        X : array or sparse array of shape (n, d)
            Their features.
        name : str
            The column.
        order : array of shape (n,)
            The row that each cell comes from.
        """
        blocks: list[Any] = []
        for part, encoder, names in self.encoder.transformers_:
            block: Any = X[:, self.encoder.output_indices_[part]]
            if name == names:
                block = block[order]
            elif not isinstance(names, str) and name in names:
                cells = pd.Series(frame[name].to_numpy()[order], frame.index, frame[name].dtype)
                block = encoder.transform(frame[names].assign(**{name: cells}))
                block = block if sparse.issparse(X) else as_dense(block)
            blocks.append(block)
        return sparse.csr_array(sparse.hstack(blocks)) if sparse.issparse(X) else np.hstack(blocks)


def excluding(options: ColumnOptions, names: Iterable[str]) -> ColumnOptions:
    """Return the options with further columns that are no features, such as those of the labels."""
    return {**options, "exclude": list(dict.fromkeys((*options.get("exclude", ()), *names)))}


def check_columns(table: Table, names: Sequence[str], who: str) -> None:
    """Raise an error that names all columns that the table lacks, and similar names."""
    absent = [name for name in names if name not in (*table.names, *table.hidden)]
    if not absent:
        return
    if EMBEDDINGS in absent:
        raise ArgumentError(who, "it needs a vector for each row", {EMBEDDINGS: "FILE.npy"})
    if len(absent) > 1:
        raise ArgumentError(
            who, f"the table has no columns {listed(absent)}; it has {listed(table.names)}."
        )
    near = get_close_matches(absent[0], table.names, n=1)
    hint = f"did you mean {short(near[0])}?" if near else f"it has {listed(table.names)}."
    raise ArgumentError(who, f"the table has no column {short(absent[0])}; {hint}")


def look(table: Table, options: ColumnOptions) -> tuple[list[Column], Batch]:
    """Return what each column would be taken for, and the cells it is judged by."""
    names = _choose(table, options)
    rows = _sample_rows(table.n_rows)
    sample = table.take(names, rows)
    chosen, prose = options.get("features") is not None, set(options.get("text", ()))
    seen = [
        Column.look(name, cells, rows, chosen, name in prose)
        for name, cells in zip(sample.column_names, sample.columns, strict=True)
    ]
    return seen, sample


def _choose(table: Table, options: ColumnOptions) -> list[str]:
    exclude, prose = options.get("exclude", ()), options.get("text", ())
    features = options.get("features")
    for argument, names in {"exclude": exclude, "text": prose, "features": features or ()}.items():
        check_columns(table, names, argument)
        for name in names if argument != "exclude" else ():
            if name in exclude:
                raise ArgumentError(argument, f"the column {short(name)} can't be a feature here.")
    if features is None:
        return [name for name in (*table.names, *table.hidden) if name not in set(exclude)]
    return list(dict.fromkeys((*features, *prose)))


def _sample_rows(n_rows: int) -> NDArray[np.int64]:
    """Choose the rows by which a table is judged: all, or `_SAMPLE_ROWS` drawn at random."""
    if n_rows <= _SAMPLE_ROWS:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(0).choice(n_rows, _SAMPLE_ROWS, replace=False))


def _kind(column: Array, chosen: bool) -> tuple[str, str, str]:
    """Return the kind of a column, how it is written, and why it is taken for that."""
    types = pa.types
    if reading.is_vectors(column):
        return VECTOR, "", "stored as vectors"
    kind = reading.plain(column).type
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return NUMBER, POINT, "stored as numbers"
    if types.is_timestamp(kind) or types.is_date(kind):
        return DATE, ISO, "stored as dates"
    if types.is_boolean(kind) or types.is_null(kind):
        return CATEGORY, "", "stored as yes and no"
    if not reading.is_text(kind):
        return "", "", ""
    for name, styles in ((NUMBER, NUMBERS), (DATE, DATES)):
        style, share = reading.best_style(column, styles)
        if share >= _SHARE:
            return name, style, f"{share:.0%} of its cells are written as {style}"
    return _kind_of_texts(reading.texts(column).drop_null().to_pylist(), chosen)


def _kind_of_texts(cells: list[str], chosen: bool) -> tuple[str, str, str]:
    different = list(set(cells))
    if blocks.are_pictures(different):
        return PICTURE, "", "names of picture files"
    if len(different) > max(_FEW, len(cells) / 2):
        if blocks.is_prose(different):
            return TEXT, "", "most cells differ and have several words"
        if chosen:
            return TEXT, "", "most cells differ"
    return CATEGORY, "", "text"


def _objection_to_numbers(
    name: str, values: NDArray[np.float64], rows: NDArray[np.int64], chosen: bool
) -> str:
    known = values[~np.isnan(values)]
    if not len(known) or (len(known) == len(values) and (known == known[0]).all()):
        return "the same in every row"
    if chosen or len(values) <= 2:
        return ""
    if any(np.ptp(values - sign * rows) == 0 for sign in (1, -1)):
        return f"it counts the rows {_CHOOSE}"
    if name.startswith(("__index_level_", "Unnamed: 0")):
        return f"it is the index that pandas writes {_CHOOSE}"
    return f"its numbers name the rows {_CHOOSE}" if _are_identifiers(name, values) else ""


def _are_identifiers(name: str, values: NDArray[np.float64]) -> bool:
    """Return whether numbers identify rows: whole, different, and named so or rising."""
    if len(values) <= _FEW or np.isnan(values).any() or (values != np.round(values)).any():
        return False
    if len(np.unique(values)) < len(values):
        return False
    digits = np.floor(np.log10(np.maximum(np.abs(values), 1)))
    equally_long = len(values) >= 5 * _FEW and digits[0] >= 4 and np.ptp(digits) == 0
    rising = (np.diff(values) > 0).all()
    return bool(_IDENTIFIER.search(name) or rising or equally_long)


def _span(column: Column) -> str:
    if column.low is None or column.high is None:
        return ""
    if column.kind == TEXT:
        return f"{column.n_values} texts of {column.low:.0f} to {column.high:.0f} words"
    if column.kind == DATE:
        ends = (pd.Timestamp(0) + pd.Timedelta(days=end) for end in (column.low, column.high))
        return " to ".join(str(end.date()) for end in ends)
    return f"{column.low:.6g} to {column.high:.6g}"


def _encoder(columns: Sequence[Column], dense: bool) -> ColumnTransformer:
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    measured = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    categories = make_pipeline(
        SimpleImputer(missing_values=None, strategy="constant", fill_value="missing"),
        OneHotEncoder(
            handle_unknown="infrequent_if_exist", min_frequency=2, max_categories=_MAX_CATEGORIES
        ),
    )
    plain = {
        "numbers": (measured, [column.name for column in columns if column.kind in (NUMBER, DATE)]),
        "categories": (categories, [column.name for column in columns if column.kind == CATEGORY]),
    }
    weight = float(max(1, sum(len(names) for _, names in plain.values())))
    parts: list[tuple[str, Any, list[str] | str]] = [
        (name, part, names) for name, (part, names) in plain.items() if names
    ]
    parts += [
        (f"block {place}", block, column.name)
        for place, column in enumerate(columns)
        if (block := _block(column, weight)) is not None
    ]
    return ColumnTransformer(parts, sparse_threshold=0.0 if dense else 0.3)


def _block(column: Column, weight: float) -> BlockEncoder | None:
    """Make what encodes a column by itself; text counts as much as all plain columns together."""
    if column.kind == TEXT:
        return blocks.TextEncoder(weight)
    if column.kind == VECTOR:
        return blocks.VectorEncoder(weight)
    found = column.periods
    return blocks.PeriodEncoder(float(len(found)), tuple(found.values())) if found else None
