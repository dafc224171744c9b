"""From ambiguous rows to labels: the function for frames, and the core behind the commands."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skpll._rows import on_candidates, row_argmax, row_entropies
from skpll.candidates import CandidateSets, as_candidates

if TYPE_CHECKING:
    from .choosing import Choice
    from .models import TableModel
    from .reading import Array, Table

__all__ = ["Resolution", "disambiguate", "learn_from_table"]

PREFIX = "skpll_"


def disambiguate(
    frame: Any,
    candidates: Any,
    *,
    sep: str = "|",
    id: str | None = None,
    features: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    method: Any = "sppll",
    parameters: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Any:
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
    from .reading import FrameTable

    if not hasattr(frame, "columns"):
        raise ValueError(f"frame: expected a pandas or polars frame, got a {type(frame).__name__}.")
    table = FrameTable(frame)
    left_out = list(exclude)
    if isinstance(candidates, str):
        from .columns import check_column

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
    added = learned.resolution.columns(table.names)
    if hasattr(frame, "with_columns"):
        import polars

        return frame.with_columns(
            polars.Series(name, column.to_pylist()) for name, column in added.items()
        )
    return frame.assign(**{name: column.to_pandas().values for name, column in added.items()})


def _frame_candidates(column: Any, sep: str, name: str) -> CandidateSets:
    """Read a column of sets, lists, delimited strings or plain labels."""
    from .labels import column_candidates
    from .reading import arrow_column

    cells = column.to_list() if hasattr(column, "to_list") else list(column)
    if any(isinstance(cell, set | frozenset) for cell in cells):
        return as_candidates(cells)
    return column_candidates(arrow_column(column), sep=sep, name=name)


@dataclass(frozen=True)
class Resolution:
    """What was decided for each row.

    Parameters
    ----------
    candidates : CandidateSets
        What could be chosen from.
    confidences : array of shape (number of candidates in all,)
        The confidence in each candidate, in the order of ``candidates.indices``; the sum over a
        row is one.
    chosen : int array of shape (n,)
        The place of the chosen label among all candidates.
    """

    candidates: CandidateSets
    confidences: NDArray[np.float64]
    chosen: NDArray[np.int64]

    @classmethod
    def of(cls, method: Any, candidates: CandidateSets) -> Resolution:
        """Read off a method what it has decided for its training examples."""
        classes = candidates.classes
        labels = np.searchsorted(classes, method.transduction_)
        picked = np.repeat(labels, candidates.sizes) == candidates.indices
        confidences = on_candidates(candidates, method.label_distributions_)
        return cls(candidates, confidences, row_argmax(candidates, picked))

    @property
    def labels(self) -> NDArray[np.int32]:
        """The chosen classes, by number."""
        return self.candidates.indices[self.chosen]

    @property
    def confidence(self) -> NDArray[np.float64]:
        """The confidence in the chosen labels."""
        return self.confidences[self.chosen]

    @property
    def certain(self) -> NDArray[np.bool_]:
        """Whether there was nothing to choose."""
        return self.candidates.sizes == 1

    @property
    def runner_up(self) -> NDArray[np.int64]:
        """The place of the second-best label among all candidates; −1 where there is none."""
        others = self.confidences.copy()
        others[self.chosen] = -1.0
        return np.where(self.certain, -1, row_argmax(self.candidates, others))

    def columns(self, taken: Sequence[str]) -> dict[str, Array]:
        """Give the columns to add to a table, under names that are free.

        Parameters
        ----------
        taken : sequence of str
            Names of columns that there are.

        Returns
        -------
        columns : dict of Arrow arrays
        """
        from ._extra import arrow

        pa = arrow()
        runner_up = self.runner_up
        second = np.where(runner_up < 0, 0, self.candidates.indices[runner_up])
        found = {
            "label": label_column(self.candidates.classes, self.labels),
            "confidence": pa.array(self.confidence),
            "runner_up": label_column(self.candidates.classes, second, runner_up < 0),
            "certain": pa.array(self.certain),
        }
        return free_names(found, taken)

    def summary(self) -> dict[str, Any]:
        """Count what there was and what came out."""
        n, q = self.candidates.shape
        sizes = self.candidates.sizes
        entropy = row_entropies(self.candidates, self.confidences)
        return {
            "rows": n,
            "classes": q,
            "certain_from_the_start": int(self.certain.sum()),
            "candidates_before": float(sizes.mean()),
            "candidates_after": float(np.exp(entropy).mean()),
            "expected_accuracy": float(self.confidence.mean()),
        }


def free_names(columns: Mapping[str, Any], taken: Sequence[str]) -> dict[str, Any]:
    """Give columns a prefix if the name of any is taken, and a longer one while that is."""
    from ._extra import TableWarning

    prefix = ""
    while any(f"{prefix}{name}" in set(taken) for name in columns):
        prefix += PREFIX
    if prefix:
        warnings.warn(
            f"names are taken, so the new columns are called {prefix}label and so on.",
            TableWarning,
            stacklevel=4,
        )
    return {f"{prefix}{name}": column for name, column in columns.items()}


def label_column(
    classes: NDArray[Any], codes: NDArray[Any], missing: NDArray[np.bool_] | None = None
) -> Array:
    """Turn class numbers into a column of labels."""
    from skpll._labels import as_objects

    from ._extra import arrow

    pa = arrow()
    return pa.array(as_objects(classes)).take(pa.array(codes, mask=missing))


@dataclass(frozen=True)
class Learned:
    """What came of learning from a table.

    Parameters
    ----------
    model : TableModel
        Columns and method, for new rows.
    resolution : Resolution
        The labels of the rows it has learned from.
    choice : Choice or None
        How the method was chosen, if it was.
    """

    model: TableModel
    resolution: Resolution
    choice: Choice | None


def learn_from_table(
    table: Table,
    candidates: CandidateSets,
    *,
    features: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    method: Any = "sppll",
    parameters: Mapping[str, Any] | None = None,
    seed: int | None = 0,
) -> Learned:
    """Learn from the rows of a table and their candidate labels.

    Parameters
    ----------
    table : Table
        The table.
    candidates : CandidateSets
        The candidates of each row.
    features : sequence of str, optional
        The columns to learn from; by default all but `exclude`.
    exclude : sequence of str
        Columns that are no features.
    method : str or estimator, default="sppll"
        A name of `skpll.all_methods`, ``"auto"``, or a method.
    parameters : mapping, optional
        Parameters of a method that is given by name.
    seed : int, default=0
        Seed of everything that is random.

    Returns
    -------
    Learned
    """
    from sklearn.base import clone

    from .choosing import choose_method, make_method
    from .columns import FeatureColumns
    from .models import TableModel

    automatic = isinstance(method, str) and method == "auto"
    if automatic and parameters:
        raise ValueError("parameters: with the method auto they are chosen too; leave it out.")
    if isinstance(method, str):
        name = method
        learner = None if automatic else make_method(name, parameters or {}, seed)
    else:
        name, learner = type(method).__name__.lower(), clone(method)
    dense = learner is not None and not learner.accepts_sparse
    columns = FeatureColumns.learn(table, features=features, exclude=exclude, dense=dense)
    X = columns.transform(table)
    choice = None
    if learner is None:
        choice = choose_method(X, candidates, seed=seed)
        name = choice.best.method
        learner = make_method(name, choice.best.parameters, seed)
    learner.fit(X, candidates)
    resolution = Resolution.of(learner, candidates)
    return Learned(TableModel(columns, learner, name), resolution, choice)
