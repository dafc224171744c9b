"""The labels of a data frame, in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from skpll.base import PartialLabelClassifier
from skpll.candidates import CandidateSets, CandidatesLike, as_candidates

from .columns import check_column
from .labels import column_candidates
from .learning import learn_from_table
from .reading import Array, FrameTable, arrow_column

__all__ = ["disambiguate"]


class DataFrame(Protocol):
    """A pandas or a polars frame."""

    @property
    def columns(self) -> Any:
        """The names of the columns."""

    def __len__(self) -> int: ...

    def __getitem__(self, name: Any, /) -> Any: ...


Frame = TypeVar("Frame", bound=DataFrame)


def disambiguate(
    frame: Frame,
    candidates: str | CandidatesLike,
    *,
    sep: str = "|",
    id: str | None = None,
    features: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    method: str | PartialLabelClassifier = "sppll",
    parameters: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Frame:
    """Decide for one of the candidate labels in each row of a data frame.

    Columns are prepared as people would do it by hand: gaps in numbers are filled and numbers
    scaled, dates become days, text is one-hot encoded; columns that are the same in every row or
    merely name the rows are left out, with a warning.

    Parameters
    ----------
    frame : pandas.DataFrame or polars.DataFrame
        The table.
    candidates : str or candidate sets
        The column with the candidates of each row, as sets, lists or delimited strings; or the
        candidates themselves, in any format of `skpll.as_candidates`.
    sep : str, default="|"
        What separates the labels of a string.
    id : str, optional
        A column that names the rows; it is no feature.
    features : sequence of str, optional
        The columns to learn from; by default all others.
    exclude : sequence of str
        Columns not to learn from.
    method : str or estimator, default="sppll"
        A name of `skpll.all_methods`, ``"auto"`` to choose by inner folds, or a method with its
        parameters.
    parameters : mapping, optional
        Parameters of a method that is given by name.
    seed : int, default=0
        Seed of everything that is random.

    Returns
    -------
    frame : of the type given
        The rows in the same order with these columns added: ``label``, ``confidence`` (between 0
        and 1), ``runner_up`` (missing where there was one candidate) and ``certain`` (whether
        there was). Where a column is so called already, all four begin with ``skpll_``.

    Examples
    --------
    >>> import pandas as pd
    >>> from skpll import disambiguate
    >>> people = pd.DataFrame({
    ...     "height": [1.1, 1.2, 1.15, 1.8, 1.75, 1.85],
    ...     "who": ["child", "child|adult", "child", "adult", "adult|child", "adult"],
    ... })
    >>> disambiguate(people, candidates="who")["label"].tolist()
    ['child', 'child', 'child', 'adult', 'adult', 'adult']
    """
    if not hasattr(frame, "columns"):
        raise ValueError(f"frame: expected a pandas or polars frame, got a {type(frame).__name__}.")
    table = FrameTable(frame)
    left_out = list(exclude)
    if isinstance(candidates, str):
        left_out.append(check_column(table, candidates, "candidates"))
        sets = _frame_candidates(frame[candidates], sep, candidates)
    else:
        sets = as_candidates(candidates)
    if len(sets) != len(frame):
        raise ValueError(f"candidates: {len(sets)} sets for the {len(frame)} rows of the frame.")
    if id is not None:
        left_out.append(id)
    learned = learn_from_table(
        table,
        sets,
        features=features,
        exclude=left_out,
        method=method,
        parameters=parameters or {},
        seed=seed,
    )
    return _with_columns(frame, learned.resolution.columns(table.names))


def _with_columns(frame: Any, added: Mapping[str, Array]) -> Any:
    """Add columns to a frame of either library."""
    if hasattr(frame, "with_columns"):
        import polars

        return frame.with_columns(
            polars.Series(name, column.to_pylist()) for name, column in added.items()
        )
    return frame.assign(**{name: column.to_pandas().values for name, column in added.items()})


def _frame_candidates(column: Any, sep: str, name: str) -> CandidateSets:
    """Read a column of sets, lists, delimited strings or plain labels."""
    cells = column.to_list() if hasattr(column, "to_list") else list(column)
    if any(isinstance(cell, set | frozenset) for cell in cells):
        return as_candidates(cells)
    return column_candidates(arrow_column(column), sep=sep, name=name)
