"""The labels of a data frame, in one call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar, Unpack, overload

from numpy.typing import ArrayLike

from skpll._errors import ArgumentError
from skpll.base import PartialLabelClassifier
from skpll.candidates import CandidatesLike

from .columns import ColumnOptions, NoFeaturesError
from .labels import VOTE_COLUMNS, Empty, LabelSource
from .learning import Learned, NewRows, learn_from_table, resolved_by_votes
from .reading import Array, FrameTable, Table, embedded
from .reading import Frame as AnyFrame
from .votes import Annotator


class DataFrame(Protocol):
    """A pandas or a polars frame."""

    @property
    def columns(self) -> Iterable[object]:
        """The names of the columns."""

    def __len__(self) -> int: ...

    def __getitem__(self, name: Any, /) -> Any: ...


Frame = TypeVar("Frame", bound=DataFrame)


@dataclass(frozen=True)
class Disambiguation(Generic[Frame]):
    """What came of `disambiguate`.

    Parameters
    ----------
    frame : pandas.DataFrame or polars.DataFrame
        The rows in the same order, with columns added.
    annotators : list of Annotator
        How each annotator did; empty where there were no votes.
    learned : Learned
        The model, the labels and what they rest on.
    """

    frame: Frame
    annotators: list[Annotator]
    learned: Learned

    @property
    def mean_confidence(self) -> float:
        """The mean confidence in the labels: what the model believes, not a checked accuracy."""
        return float(self.learned.resolution.confidence.mean())

    def new_rows(self) -> NewRows:
        """Estimate how often the model will be right for rows that were not learned from."""
        return self.learned.new_rows()


class _Options(ColumnOptions, total=False):
    sep: str | None
    votes: DataFrame | None
    vote_columns: Sequence[str]
    annotators: Sequence[str]
    counts: Sequence[str]
    probabilities: Sequence[str]
    skip_unknown: bool
    decisions: DataFrame | None
    id: str | None
    embeddings: ArrayLike | Path | None
    method: str | PartialLabelClassifier
    parameters: Mapping[str, object] | None
    empty: Empty
    gaps: Iterable[str] | None
    merge: Mapping[str, str] | None
    explain: bool
    report: str | Path | None
    seed: int


@overload
def disambiguate(
    frame: Frame,
    candidates: str | CandidatesLike | None = None,
    *,
    details: Literal[False] = False,
    **options: Unpack[_Options],
) -> Frame: ...


@overload
def disambiguate(
    frame: Frame,
    candidates: str | CandidatesLike | None = None,
    *,
    details: Literal[True],
    **options: Unpack[_Options],
) -> Disambiguation[Frame]: ...


def disambiguate(
    frame: Frame,
    candidates: str | CandidatesLike | None = None,
    *,
    sep: str | None = None,
    votes: DataFrame | None = None,
    vote_columns: Sequence[str] = VOTE_COLUMNS,
    annotators: Sequence[str] = (),
    counts: Sequence[str] = (),
    probabilities: Sequence[str] = (),
    skip_unknown: bool = False,
    decisions: DataFrame | None = None,
    id: str | None = None,
    features: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    text: Sequence[str] = (),
    embeddings: ArrayLike | Path | None = None,
    method: str | PartialLabelClassifier = "plloo",
    parameters: Mapping[str, object] | None = None,
    empty: Empty = "error",
    gaps: Iterable[str] | None = None,
    merge: Mapping[str, str] | None = None,
    explain: bool = False,
    report: str | Path | None = None,
    seed: int = 0,
    details: bool = False,
) -> Frame | Disambiguation[Frame]:
    """Decide for one of the candidate labels in each row of a data frame.

    Columns are prepared as people would do it by hand: gaps in numbers are filled and numbers
    scaled, dates become days, categories are one-hot encoded, and free text becomes the weights of
    its words, with a warning that says so; columns that are the same in every row or merely name
    the rows are left out, with a warning. If no column is left and there are votes, the labels are
    those of the votes alone (see `skpll.crowd.aggregate`), with a warning.

    Parameters
    ----------
    frame : pandas.DataFrame or polars.DataFrame
        The table.
    candidates : str or candidate sets
        The column with the candidates of each row, as sets, lists or delimited strings; or the
        candidates themselves, in any format of `skpll.as_candidates`.
    sep : str, optional
        What separates the labels of a string; found out by default.
    votes : pandas.DataFrame or polars.DataFrame, optional
        Instead of candidates: a long table with an item, an annotator and a label in each row.
    vote_columns : three str
        What its columns are called. The items are those of the column `id`.
    annotators : sequence of str
        Instead of both: columns of the frame, one for each annotator.
    counts, probabilities : sequence of str
        Instead of these: columns of the frame with the number of votes for each class, or with its
        probability.
    skip_unknown : bool, default=False
        Whether to skip votes on items that are not in the frame.
    decisions : pandas.DataFrame or polars.DataFrame, optional
        Labels that are known, with the columns ``label`` and ``id`` (or ``row``, from 1 on).
    id : str, optional
        A column that names the rows; it is no feature.
    features : sequence of str, optional
        The columns to learn from; by default all others.
    exclude : sequence of str
        Columns not to learn from.
    text : sequence of str
        Columns to learn from as free text; others are detected.
    embeddings : array of shape (n, d) or path of a ``.npy`` file, optional
        A vector for each row, to learn from beside the columns, or instead of them with
        ``features=["embeddings"]``.
    method : str or estimator, default="plloo"
        A name of `skpll.all_methods`, ``"auto"`` to choose by held-out rows, or a method with its
        parameters.
    parameters : mapping, optional
        Parameters of a method that is given by name.
    empty : {"error", "any"}, default="error"
        Whether a row without candidates is an error, or may have any label.
    gaps : sequence of str, optional
        Words that are no labels but stand for an empty cell, instead of `skpll.tables.reading.GAPS`
        (of which "none", "unknown" and "missing" are labels among votes).
    merge : mapping from str to str, optional
        Other spellings of labels, with the label that each of them means.
    explain : bool, default=False
        Whether to add columns that say why.
    report : path, optional
        Where to write a page (HTML) for reviewing the rows.
    seed : int, default=0
        Seed of everything that is random.
    details : bool, default=False
        Whether to give a `Disambiguation`, with the frame, the annotators and the model.

    Returns
    -------
    frame : of the type given
        The rows in the same order with these columns added: ``label``, ``confidence`` (between 0
        and 1, calibrated), ``runner_up`` (missing where there was one candidate), ``unanimous``
        (whether there was) and, with decisions, ``decided``. Where a column is so called already,
        all begin with ``skpll_``.

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
    table = embedded(_table(frame, "frame"), embeddings)
    source = LabelSource(
        candidates,
        sep=sep,
        votes=None if votes is None else _table(votes, "votes"),
        vote_columns=vote_columns,
        annotators=annotators,
        decisions=None if decisions is None else _table(decisions, "decisions"),
        id=id,
        empty=empty,
        gaps=gaps,
        counts=counts,
        probabilities=probabilities,
        skip_unknown=skip_unknown,
        merge=merge,
    )
    labels = source.read(table)
    try:
        learned = learn_from_table(
            table,
            labels,
            features=features,
            exclude=exclude,
            text=text,
            method=method,
            parameters=parameters,
            seed=seed,
        )
    except NoFeaturesError:
        if labels.votes is None or explain or details or report is not None:
            raise
        return _with_columns(frame, resolved_by_votes(labels).columns(table.names))
    explanations = None
    if explain:
        from .explaining import Explanations

        explanations = Explanations.of(table, learned)
    if report is not None:
        from .review import write_review

        write_review(Path(report), table, learned, explanations=explanations)
    more = None if explanations is None else explanations.columns()
    resolved = _with_columns(frame, learned.resolution.columns(table.names, more))
    return Disambiguation(resolved, learned.annotators(), learned) if details else resolved


def _table(frame: DataFrame, name: str) -> Table:
    if not hasattr(frame, "columns"):
        raise ArgumentError(
            name, f"expected a pandas or polars frame, got a {type(frame).__name__}."
        )
    return FrameTable(frame)


def _with_columns(frame: AnyFrame, added: Mapping[str, Array]) -> AnyFrame:
    """Add columns to a frame of either library."""
    if hasattr(frame, "with_columns"):
        import polars

        return frame.with_columns(
            polars.Series(name, column.to_pylist()) for name, column in added.items()
        )
    return frame.assign(**{name: column.to_pandas().values for name, column in added.items()})
