"""Tables that are larger than memory: Parquet files, of which Dask reads some rows at a time.

What the columns are, and how gaps are filled and text is encoded, is learned from 50 000 rows, as
for all long tables. PL-LOO then goes over the groups of rows of the files, here or on a cluster.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from skpll._extra import Package
from skpll.candidates import CandidateSets
from skpll.engine.limits import is_large

from .columns import ColumnOptions, FeatureColumns, check_columns, excluding
from .formats import ParquetTable
from .labels import column_candidates
from .learning import TableModel, named_method, set_landmarks
from .reading import Array, Table

__all__ = ["LargeFit", "is_beyond_memory", "learn_beyond_memory"]

_SHARE = 0.25
"""Features that take more than this share of the computer's memory are not brought into it."""

_FOR = "tables that are larger than memory need one more package"
dask = Package("dask", _FOR, "dask")
array = Package("dask.array", _FOR, "dask")
distributed = Package("distributed", _FOR, "dask")

_PATIENCE = 15  # seconds to wait for the scheduler


class LargeFit(NamedTuple):
    """What came of learning from a table that is larger than memory.

    Parameters
    ----------
    model : TableModel
        Columns and method, for new rows.
    rows : int
        The number of rows.
    partitions : int
        In how many groups they were read.
    mean_confidence : float
        The mean confidence in the labels decided for.
    """

    model: TableModel
    rows: int
    partitions: int
    mean_confidence: float


def is_beyond_memory(table: Table) -> bool:
    """Return whether the features of a table would take much of the memory of this computer."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not every system says
        return False
    return 4 * table.n_rows * len(table.names) > _SHARE * memory


def learn_beyond_memory(
    paths: Sequence[Path],
    candidates: str,
    *,
    sep: str | None = None,
    gaps: Sequence[str] | None = None,
    parameters: Mapping[str, object] | None = None,
    seed: int | None = 0,
    scheduler: str | None = None,
    **options: Unpack[ColumnOptions],
) -> LargeFit:
    """Learn with PL-LOO from Parquet files, of which a group of rows at a time is in memory.

    Parameters
    ----------
    paths : sequence of Path
        The files, or a folder of them.
    candidates : str
        The column of candidate labels: lists, or text with `sep` between the labels.
    sep : str, optional
        What separates labels in text; found in the first group of rows by default.
    gaps : sequence of str, optional
        Words that stand for an empty cell, instead of the usual ones.
    parameters : mapping, optional
        Parameters of PL-LOO.
    seed : int, default=0
        Seed of everything that is random.
    scheduler : str, optional
        Address of a Dask scheduler, whose workers find the files under the same names; by default
        the threads of this computer.
    **options : ColumnOptions
        Which columns are features; by default all.

    Returns
    -------
    LargeFit
    """
    table = ParquetTable(*paths)
    check_columns(table, [candidates], "candidates")
    method = named_method("plloo", parameters or {}, seed)
    set_landmarks(method, parameters or {}, table.n_rows)
    if not is_large(table.n_rows, method.n_landmarks):
        raise ValueError(
            f"the table has only {table.n_rows} rows, which is no work for a cluster; leave "
            "scheduler out."
        )
    columns = FeatureColumns.learn(table, **excluding(options, [candidates]), max_dense=np.inf)
    groups = table.groups()
    how: dict[str, Any] = {"name": candidates, "gaps": gaps}
    _, found = column_candidates(groups[0].column(candidates), sep=sep, **how)
    width = columns.encoder.transform(next(columns.frames(table))).shape[1]

    def joined(parts: list[object], dtype: DTypeLike, *shape: int) -> Array:
        pieces = [
            array.from_delayed(part, (group.n_rows, *shape), dtype=dtype)
            for part, group in zip(parts, groups, strict=True)
        ]
        return array.concatenate(pieces)

    encoder = dask.delayed(columns, traverse=False)
    X = [dask.delayed(_features)(group, encoder) for group in groups]
    sets = [dask.delayed(_sets)(group, {"sep": found or sep, **how}) for group in groups]
    with _workers(scheduler):
        method.fit(joined(X, np.float32, width), joined(sets, object))
        peaks = dask.compute(*map(dask.delayed(_sum_of_peaks), _parts(method.label_distributions_)))
    model = TableModel(columns, method)
    return LargeFit(model, table.n_rows, len(groups), sum(peaks) / table.n_rows)


def _features(group: Table, columns: FeatureColumns) -> NDArray[np.float32]:
    return np.asarray(columns.transform(group), dtype=np.float32)


def _sets(group: Table, how: dict[str, Any]) -> CandidateSets:
    return column_candidates(group.column(how["name"]), **how)[0]


def _parts(confidences: Array) -> list[object]:
    return list(np.ravel(np.asarray(confidences.to_delayed(), dtype=object)))


def _sum_of_peaks(confidences: sparse.csr_array) -> float:
    return float(confidences.max(axis=1).sum())


@contextmanager
def _workers(scheduler: str | None) -> Iterator[None]:
    """Compute with the threads of this computer, or on a cluster."""
    if scheduler is None:
        with dask.config.set(scheduler="threads"):
            yield
        return
    try:
        client = distributed.Client(scheduler, timeout=_PATIENCE)
    except (OSError, ValueError) as error:
        raise OSError(f"there is no Dask scheduler at {scheduler}: {error}.") from None
    with client:
        yield
