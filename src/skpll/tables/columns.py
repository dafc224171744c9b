"""Feature columns: what each column of a table is, and how it becomes numbers.

A column is one of three kinds. *Numbers* get their gaps filled with the median, and are scaled.
*Dates* become days, and then numbers. *Categories*, whatever else is text, are one-hot encoded. The
kinds are found by looking at the cells, since in a CSV file everything is text.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skpll._progress import progress

from ._extra import TableWarning, arrow, pandas, short
from .reading import Array, Table, plain, text_of

__all__ = ["FeatureColumns", "check_column", "is_gap"]

_GAPS = frozenset({"", "na", "n/a", "nan", "null", "none", "-", "?", "nat", "<na>"})
_SAMPLE_ROWS = 50_000
_LARGE = 10**7  # from so many entries on, features are kept in single precision
_HUGE = 1e100  # numbers beyond can't be squared and summed; they count as missing
_SHARE = 0.95  # a column is of numbers, or of dates, if so many of its cells are
_FEW = 20  # so few different texts are never taken for names
_MAX_CATEGORIES = 100

NUMBER, DATE, CATEGORY = "number", "date", "category"


class FeatureColumns:
    """The feature columns of a table and how they become a matrix.

    Parameters
    ----------
    kinds : mapping from names of columns to "number", "date" or "category"
        In the order of the table.
    encoder : ColumnTransformer
        Fitted; it takes the frames that `frames` gives.
    """

    def __init__(self, kinds: Mapping[str, str], encoder: Any) -> None:
        self.kinds = dict(kinds)
        self.encoder = encoder

    @classmethod
    def learn(
        cls,
        table: Table,
        *,
        features: Sequence[str] | None = None,
        exclude: Sequence[str] = (),
        dense: bool = False,
    ) -> FeatureColumns:
        """Find out what the columns are, and learn how to encode them.

        Very long tables are judged by 50 000 rows, drawn at random but always the same.

        Parameters
        ----------
        table : Table
            The table.
        features : sequence of str, optional
            The columns to use; by default all but `exclude`, and but those that say nothing or
            merely name the row.
        exclude : sequence of str
            Columns that are no features.
        dense : bool, default=False
            Whether the matrix must not be sparse.

        Returns
        -------
        FeatureColumns
        """
        names = _choose(table, features, exclude)
        rows = _sample_rows(table.n_rows)
        sample = _take(table, names, rows)
        kinds: dict[str, str] = {}
        objections: dict[str, list[str]] = {}
        for name, column in sample.items():
            kind, objection = _judge(column, rows, chosen=features is not None)
            if objection:
                objections.setdefault(objection, []).append(name)
            else:
                kinds[name] = kind
        for objection, left_out in objections.items():
            warnings.warn(
                f"left out of the features: {_listed(left_out)}: {objection}.",
                TableWarning,
                stacklevel=3,
            )
        if not kinds:
            raise ValueError(
                "no feature column is left to learn from; name some, and see that "
                "they differ from row to row."
            )
        found = cls(kinds, _encoder(kinds, dense))
        found.encoder.fit(found._frame(sample))
        return found

    def transform(self, table: Table) -> Any:
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
        matrix: NDArray[Any] | None = None
        start = 0
        with progress("Reading features", table.n_rows, shown=False) as step:
            for frame in self.frames(table):
                block: Any = self.encoder.transform(frame)
                if not isinstance(block, np.ndarray):
                    parts.append(sparse.csr_array(block))
                elif matrix is None:
                    shape = (table.n_rows, block.shape[1])
                    large = shape[0] * shape[1] >= _LARGE
                    matrix = np.empty(shape, np.float32 if large else np.float64)
                if matrix is not None:
                    matrix[start : start + len(frame)] = block
                start += len(frame)
                step(start, "")
        if matrix is not None:
            return matrix
        if not parts:
            raise ValueError("the table has no rows.")
        return sparse.vstack(parts, format="csr")

    def frames(self, table: Table) -> Iterator[Any]:
        """Give the features as pandas frames of numbers and text, a batch of rows at a time."""
        for name in self.kinds:
            check_column(table, name, "the model")
        for batch in table.batches(list(self.kinds)):
            yield self._frame(batch)

    def _frame(self, batch: Mapping[str, Array]) -> Any:
        pd = pandas()
        read = {NUMBER: _numbers, DATE: _days, CATEGORY: _texts}
        columns = {name: read[kind](batch[name]) for name, kind in self.kinds.items()}
        return pd.DataFrame(
            {name: pd.Series(cells, dtype=cells.dtype) for name, cells in columns.items()}
        )


def check_column(table: Table, name: str, who: str) -> str:
    """See that the table has a column, or say which one might be meant."""
    if name in table.names:
        return name
    near = get_close_matches(name, table.names, n=1)
    hint = f"did you mean {short(near[0])}?" if near else f"it has {_listed(table.names)}."
    raise ValueError(f"{who}: the table has no column {short(name)}; {hint}")


def is_gap(text: str) -> bool:
    """Whether a cell of text stands for "unknown"."""
    return text.strip().lower() in _GAPS


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(short(name, 30) for name in names[:8])
    return shown if len(names) <= 8 else f"{shown}, … ({len(names)} in all)"


def _choose(table: Table, features: Sequence[str] | None, exclude: Sequence[str]) -> list[str]:
    left_out = {check_column(table, name, "exclude") for name in exclude}
    if features is None:
        return [name for name in table.names if name not in left_out]
    for name in features:
        check_column(table, name, "features")
        if name in left_out:
            raise ValueError(f"features: the column {short(name)} can't be a feature here.")
    return list(dict.fromkeys(features))


def _sample_rows(n_rows: int) -> NDArray[np.int64]:
    """Choose the rows by which a table is judged: all, or `_SAMPLE_ROWS` drawn at random."""
    if n_rows <= _SAMPLE_ROWS:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(0).choice(n_rows, _SAMPLE_ROWS, replace=False))


def _take(table: Table, names: Sequence[str], rows: NDArray[np.int64]) -> dict[str, Array]:
    """Read some rows, given in ascending order."""
    pa = arrow()
    chunks: dict[str, list[Any]] = {name: [] for name in names}
    start = 0
    for batch in table.batches(names) if names else ():
        size = len(next(iter(batch.values())))
        first, last = np.searchsorted(rows, [start, start + size])
        for name, column in batch.items():
            part = column.take(pa.array(rows[first:last] - start))
            chunks[name] += part.chunks if isinstance(part, pa.ChunkedArray) else [part]
        start += size
    return {name: pa.chunked_array(parts) for name, parts in chunks.items() if parts}


def _judge(column: Array, rows: NDArray[np.int64], chosen: bool) -> tuple[str, str]:
    """Give the kind of a column, and what speaks against it as a feature."""
    kind = _kind(column)
    if kind is None:
        return "", f"{column.type} is neither number, date nor text"
    if kind == CATEGORY:
        return kind, _objection_to_texts(_texts(column), chosen)
    values = (_numbers if kind == NUMBER else _days)(column)
    return kind, _objection_to_numbers(values, rows, chosen)


def _kind(column: Array) -> str | None:
    types = arrow().types
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return NUMBER
    if types.is_timestamp(kind) or types.is_date(kind):
        return DATE
    if types.is_boolean(kind) or types.is_null(kind):
        return CATEGORY
    return _kind_of_texts(column) if _is_text(kind) else None


def _kind_of_texts(column: Array) -> str:
    given = sum(text is not None for text in _texts(column))
    for kind, read in ((NUMBER, _parsed), (DATE, _days)):
        if given and (~np.isnan(read(column))).sum() >= _SHARE * given:
            return kind
    return CATEGORY


def _objection_to_numbers(
    values: NDArray[np.float64], rows: NDArray[np.int64], chosen: bool
) -> str:
    known = values[~np.isnan(values)]
    if not len(known) or (len(known) == len(values) and (known == known[0]).all()):
        return "the same in every row"
    counts = any(np.ptp(values - sign * rows) == 0 for sign in (1, -1))
    if not chosen and len(values) > 2 and counts:
        return "it counts the rows (to use it, name it among the features)"
    return ""


def _objection_to_texts(texts: NDArray[Any], chosen: bool) -> str:
    different = set(texts)
    if len(different) <= 1:
        return "the same in every row"
    given = sum(text is not None for text in texts)
    if not chosen and len(different) > max(_FEW, given / 2):
        return "most cells differ, as in a name (to use it, name it among the features)"
    return ""


def _texts(column: Array) -> NDArray[Any]:
    """Read cells as text without blanks around it; gaps become None."""
    cells = text_of(column).to_pylist()
    read = {cell: None if cell is None or is_gap(cell) else cell.strip() for cell in set(cells)}
    texts = np.empty(len(cells), dtype=object)
    texts[:] = [read[cell] for cell in cells]
    return texts


def _numbers(column: Array) -> NDArray[np.float64]:
    """Read cells as numbers; gaps, what is no number, and infinity become NaN."""
    numbers = _parsed(column)
    return np.where(np.abs(numbers) < _HUGE, numbers, np.nan)


def _parsed(column: Array) -> NDArray[np.float64]:
    pa, pd = arrow(), pandas()
    column = plain(column)
    if not _is_text(column.type):
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    values = pd.to_numeric(pd.Series(_texts(column), dtype=object), errors="coerce")
    return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))


def _days(column: Array) -> NDArray[np.float64]:
    """Read cells as dates and times, as days since 1970; gaps and what is none become NaN."""
    pa, pd = arrow(), pandas()
    column = plain(column)
    if _is_text(column.type):
        texts = pd.Series(_texts(column), dtype=object)
        times = pd.to_datetime(texts, format="ISO8601", errors="coerce", utc=True)
    else:
        moments = column.cast(pa.timestamp("us"), safe=False).to_numpy(zero_copy_only=False)
        times = pd.Series(moments).dt.tz_localize("UTC")
    return np.asarray((times - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1), np.float64)


def _is_text(kind: Any) -> bool:
    types = arrow().types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _encoder(kinds: Mapping[str, str], dense: bool) -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    categories = make_pipeline(
        SimpleImputer(missing_values=None, strategy="constant", fill_value="missing"),
        OneHotEncoder(
            handle_unknown="infrequent_if_exist", min_frequency=2, max_categories=_MAX_CATEGORIES
        ),
    )
    named = [
        ("numbers", numbers, [name for name, kind in kinds.items() if kind != CATEGORY]),
        ("categories", categories, [name for name, kind in kinds.items() if kind == CATEGORY]),
    ]
    return ColumnTransformer(
        [part for part in named if part[2]], sparse_threshold=0.0 if dense else 0.3
    )
