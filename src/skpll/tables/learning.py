"""Learning from a table: its columns become features, its candidates a model and labels."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse
from sklearn.base import clone

from skpll._errors import ArgumentError
from skpll._extra import Package
from skpll._labels import as_objects, lookup_codes
from skpll._progress import tracked
from skpll._temperature import fit_temperature, log_scores, probabilities, set_likelihoods
from skpll._typing import Array as LabelArray
from skpll.base import PartialLabelClassifier
from skpll.candidates import CandidateSets
from skpll.engine.limits import LIMITS, is_large
from skpll.leave_one_out.calibration import CalibratedCandidatesCV
from skpll.model_selection import Choice, choose_method, held_out_probabilities
from skpll.registry import make_method

from ._extra import Plain, note, pa
from .blocks import TEXT
from .columns import (
    VECTOR,
    Column,
    ColumnOptions,
    FeatureColumns,
    Matrix,
    check_columns,
    excluding,
    look,
)
from .labels import Labels, column_candidates, note_copied_votes
from .reading import Array, Table, free_names, label_column
from .votes import Annotator

Floats = NDArray[np.float64]

ALL_COMPARED = 5000
"""In tables with at most this number of rows, all rows are compared with each other."""

FEW_LANDMARKS = 500
"""The number of rows that those of longer tables without text and vectors are compared with."""

_MAX_DENSE_ENTRIES = 2 * 10**7
"""Feature matrices with at most this number of entries are dense."""

_MAX_FIVE_FOLD_ROWS = 2000
"""Up to this number of rows there are five folds of held-out rows, beyond it three."""

_MIN_HELD_OUT_ROWS = 10
"""In shorter tables no rows are held out, and nothing is calibrated."""

_TINY = 1e-12
_SLIP = 0.02
"""The share of wrong answers that is assumed of any model when its answers meet votes."""

_MAX_COMPARED_ROWS = 1500
"""Square roots of histograms are compared with the numbers themselves on this number of rows."""

_FIXED = {"kernel": "laplacian", "gamma": 0.5, "alpha": 0.1, "prior_strength": 0.0}
"""Parameters of the model that compares them, which has to be fast."""

_LONG = 5000
"""Longer tables are calibrated with two folds, and judged by one part in three."""

_MEMORY_SHARE = 0.25
"""Features that take more than this share of the computer's memory are not brought into it."""

_PATIENCE = 15  # seconds to wait for the scheduler of a cluster
_FOR = "tables that are larger than memory need one more package"
dask = Package("dask", _FOR, "dask")
array = Package("dask.array", _FOR, "dask")
distributed = Package("distributed", _FOR, "dask")


@dataclass(frozen=True)
class Resolution:
    """What was decided for each row.

    Parameters
    ----------
    candidates : CandidateSets
        What could be chosen from.
    confidences : array of shape (number of candidates in all,)
        The confidence in each candidate, in the order of ``candidates.indices``; the sum over a
        row is one, or less where votes leave a share to labels without votes.
    chosen : int array of shape (n,)
        The place of the chosen label among all candidates.
    decided : bool array of shape (n,)
        Which rows a person has decided.
    """

    candidates: CandidateSets
    confidences: NDArray[np.float64]
    chosen: NDArray[np.int64]
    decided: NDArray[np.bool_]

    @property
    def labels(self) -> NDArray[np.int32]:
        """The chosen classes, by number."""
        return self.candidates.indices[self.chosen]

    @property
    def confidence(self) -> NDArray[np.float64]:
        """The confidence in the chosen labels."""
        return self.confidences[self.chosen]

    @property
    def unanimous(self) -> NDArray[np.bool_]:
        """Whether there was one candidate from the start: all votes, or the only label given."""
        return (self.candidates.sizes == 1) & ~self.decided

    @property
    def runner_up(self) -> NDArray[np.int64]:
        """The place of the second-best label among all candidates; −1 where there is none."""
        others = self.confidences.copy()
        others[self.chosen] = -1.0
        single = self.candidates.sizes == 1
        return np.where(single, -1, self.candidates.row_argmax(others))

    @property
    def runner_up_labels(self) -> NDArray[np.int64]:
        """The second-best classes, by number; −1 where there is none."""
        runner_up = self.runner_up
        return np.where(runner_up < 0, -1, self.candidates.indices[runner_up])

    def columns(
        self, taken: Sequence[str], more: Mapping[str, Array] | None = None
    ) -> dict[str, Array]:
        """Return the columns to add to a table, under names that are free.

        Parameters
        ----------
        taken : sequence of str
            Names of columns that there are.
        more : mapping from names to Arrow arrays, optional
            Further columns.

        Returns
        -------
        columns : dict of Arrow arrays
        """
        found = {
            "label": label_column(self.candidates.classes, self.labels),
            "confidence": pa.array(self.confidence),
            "runner_up": label_column(self.candidates.classes, self.runner_up_labels),
            "unanimous": pa.array(self.unanimous),
        }
        if self.decided.any():
            found["decided"] = pa.array(self.decided)
        return free_names(found | dict(more or {}), taken)

    def summary(self) -> Plain:
        """Count what there was and what came out."""
        n, q = self.candidates.shape
        sizes = self.candidates.sizes
        entropy = self.candidates.row_entropies(self.candidates.row_normalized(self.confidences))
        return {
            "rows": n,
            "classes": q,
            "unanimous": int(self.unanimous.sum()),
            "decided": int(self.decided.sum()),
            "candidates_before": float(sizes.mean()),
            "candidates_after": float(np.exp(entropy).mean()),
            "mean_confidence": float(self.confidence.mean()),
        }


@dataclass(frozen=True)
class TableModel:
    """A method that has learned from a table, with all that turns rows into its features.

    Parameters
    ----------
    columns : FeatureColumns
        From rows to features.
    method : PartialLabelClassifier
        The fitted method; its probabilities are calibrated.
    """

    columns: FeatureColumns
    method: PartialLabelClassifier

    @property
    def own_method(self) -> Any:
        """The method itself, without what calibrates it."""
        calibrated = isinstance(self.method, CalibratedCandidatesCV)
        return self.method.estimator_ if calibrated else self.method

    @property
    def name(self) -> str:
        """The name of the method in the registry."""
        return type(self.own_method).__name__.lower()

    @property
    def classes(self) -> LabelArray:
        """The labels, sorted."""
        return np.asarray(self.method.classes_)

    def summary(self) -> Plain:
        """Return in plain values what the model is, and the parameters that are not defaults."""
        defaults = type(self.own_method)().get_params(deep=False)
        given = self.own_method.get_params(deep=False)
        changed = {name: value for name, value in given.items() if value != defaults[name]}
        return {
            "classes": len(self.classes),
            "method": self.name,
            "parameters": changed,
            "features": self.columns.kinds,
        }

    def predicted_columns(
        self, table: Table, *, probabilities: bool = False, force: bool = False
    ) -> dict[str, Array]:
        """Label the rows of a table.

        Parameters
        ----------
        table : Table
            A table with the columns that the model has learned from.
        probabilities : bool, default=False
            Whether to give the probability of every class too.
        force : bool, default=False
            Whether to go on where most of what was learned from is gone.

        Returns
        -------
        columns : dict of Arrow arrays
            ``label``, ``confidence`` and, if wanted, ``probability_…`` for every class.
        """
        columns = self.columns.compared_with(table, force=force)
        labels, confidences, all_shares = [], [], []
        for frame in tracked(columns.frames(table), "Predicting", table.n_rows, len):
            shares = self.method.predict_proba(columns.encoder.transform(frame))
            labels.append(shares.argmax(axis=1))
            confidences.append(shares.max(axis=1))
            if probabilities:
                all_shares.append(shares)
        if not labels:
            raise ValueError("the table has no rows.")
        found = {
            "label": label_column(self.classes, np.concatenate(labels)),
            "confidence": pa.array(np.concatenate(confidences)),
        }
        if probabilities:
            matrix = np.concatenate(all_shares)
            for code, label in enumerate(as_objects(self.classes)):
                found[f"probability_{label}"] = pa.array(matrix[:, code].copy())
        return free_names(found, table.names)


@dataclass(frozen=True)
class NewRows:
    """What to expect of labels for rows that were not learned from.

    Parameters
    ----------
    accuracy : float
        The share that will be right.
    error : float
        Its standard error.
    confidence : float
        How sure the model is of them, on average.
    rows : int
        The number of held-out rows it was estimated on.
    """

    accuracy: float
    error: float
    confidence: float
    rows: int


@dataclass(frozen=True)
class Learned:
    """What came of learning from a table.

    Parameters
    ----------
    model : TableModel
        Columns and method, for new rows.
    resolution : Resolution
        The labels of the rows it has learned from.
    labels : Labels
        What was known of them.
    X : array or CSR array of shape (n, d)
        The features of these rows.
    choice : Choice or None
        How the method was chosen, if it was.
    votes_alone : bool, default=False
        Whether the labels are those of the votes, because the features say nothing of other rows.
    """

    model: TableModel
    resolution: Resolution
    labels: Labels
    X: Matrix
    choice: Choice | None = None
    votes_alone: bool = False
    _held_out: list[Floats] = field(default_factory=list, repr=False, compare=False)

    def annotators(self) -> list[Annotator]:
        """Return how each annotator did; an empty list if there were no votes."""
        votes = self.labels.votes
        return [] if votes is None else votes.report(self.resolution.labels)

    def origin(self) -> str:
        """Return where the labels come from, as the end of "labels found …"."""
        if self.votes_alone:
            return "from the votes alone"
        cls = type(self.model.own_method)
        name = re.match(r".*\((.+)\)\.", cls.__doc__ or "")  # as the documentation prints it
        method = name[1] if name else cls.__name__
        return f"with {method}" if self.labels.votes is None else f"from the votes and {method}"

    def held_out(self) -> Floats:
        """Return the probabilities of all classes by models that have not seen the row: (n, q)."""
        if not self._held_out:
            self._held_out.append(_held_out(self.model, self.X, self.labels.candidates))
        return self._held_out[0]

    def new_rows(self) -> NewRows:
        """Estimate how often a label will be right for rows that were not learned from.

        Rows are held out in turn. A prediction that is none of the candidates is wrong; one that
        is has the confidence that was found for it, with all that is known of the row.
        """
        candidates = self.labels.candidates
        if len(candidates) > _LONG and not self._held_out:
            shares = _held_out(self.model, self.X, candidates, only_one=True)
        else:
            shares = self.held_out()
        rows = np.flatnonzero(~np.isnan(shares[:, 0]))
        predicted = shares[rows].argmax(axis=1)
        found = self.resolution.candidates.to_matrix(self.resolution.confidences)
        right = np.asarray(found[rows, predicted]).ravel()
        return NewRows(
            float(right.mean()),
            float(np.std(right) / np.sqrt(len(right))),
            float(shares[rows].max(axis=1).mean()),
            len(rows),
        )

    def missing(self) -> Floats:
        """Return for each row the probability that its truth is none of the candidates.

        It follows from what models that have not seen the row say, and from the votes, or from the
        share of such rows in all, which is estimated. Where the labels are those of the votes
        alone, so is this.
        """
        sets, votes = self.labels.candidates, self.labels.votes
        if self.votes_alone:
            return np.clip(1 - sets.row_sums(self.resolution.confidences), 0.0, 1.0)
        shares = self.held_out()
        if votes is not None:
            both = ((1 - _SLIP) * shares + _SLIP / sets.shape[1]) * votes.found.likelihoods
            for_them = sets.row_sums(sets.entries(both))
            found = 1 - for_them / np.maximum(both.sum(axis=1), _TINY)
            return np.where(self.labels.decided, 0.0, np.clip(found, 0.0, 1.0))
        sizes = sets.sizes
        logits, ones, share = log_scores(shares), np.ones(len(sets)), 0.1
        for _ in range(10):
            # Sets that miss the truth made the probabilities more cautious than they need be.
            sharp = probabilities(logits, fit_temperature(sets, logits, ones, share))
            covered = np.clip(sets.row_sums(sets.entries(sharp)), _TINY, 1.0)
            odds = sizes / np.maximum(sets.shape[1] - sizes, 0.5) * (1 - covered)
            found = share * odds / (share * odds + (1 - share) * covered)
            share = float(np.clip(found.mean(), 1e-3, 0.5))
        return np.where(self.labels.decided, 0.0, found)


def learn_from_table(
    table: Table,
    labels: Labels | CandidateSets,
    *,
    method: str | PartialLabelClassifier = "plloo",
    parameters: Mapping[str, object] | None = None,
    seed: int | None = 0,
    inspected: Callable[[Plain], None] | None = None,
    **options: Unpack[ColumnOptions],
) -> Learned:
    """Learn from the rows of a table and what is known of their labels.

    Parameters
    ----------
    table : Table
        The table.
    labels : Labels or CandidateSets
        What is known of the label of each row.
    method : str or estimator, default="plloo"
        A name of `skpll.all_methods`, ``"auto"``, or a method.
    parameters : mapping, optional
        Parameters of a method that is given by name.
    seed : int, default=0
        Seed of everything that is random.
    inspected : callable, optional
        Called with the `inspection` of the table, before the work begins.
    **options : ColumnOptions
        Which columns are features; by default all.

    Returns
    -------
    Learned
    """
    if isinstance(labels, CandidateSets):
        labels = Labels(labels, np.zeros(len(labels), dtype=bool))
    chosen: PartialLabelClassifier | None = None
    if not isinstance(method, str):
        chosen = clone(method)
    elif method != "auto":
        chosen = named_method(method, parameters or {}, seed)
    elif parameters:
        raise ArgumentError("parameters", "the method auto chooses them, too; leave them out.")
    columns = FeatureColumns.learn(
        table,
        **excluding(options, labels.columns),
        max_dense=_MAX_DENSE_ENTRIES if chosen is None or chosen.accepts_sparse else np.inf,
    )
    if inspected is not None:
        seen = [*columns.columns.values(), *columns.left_out]
        inspected(inspection(table.n_rows, seen, labels))
    note_copied_votes(table, columns.columns, labels)
    candidates = labels.candidates
    columns, X = _with_or_without_roots(columns, table, candidates)
    choice = None
    if chosen is None:
        choice = choose_method(X, candidates, seed=seed)
        parameters = choice.best.parameters
        chosen = named_method(choice.best.method, parameters, seed)
    if isinstance(method, str) and not {TEXT, VECTOR} & set(columns.kinds.values()):
        set_landmarks(chosen, parameters or {}, table.n_rows)
    if not chosen.calibrated and len(candidates) >= _MIN_HELD_OUT_ROWS:
        folds = 5 if len(candidates) <= _LONG else 2
        chosen = CalibratedCandidatesCV(chosen, cv=folds, random_state=seed)
    model = TableModel(columns, chosen.fit(X, candidates))
    shares = None
    if labels.votes is not None and len(candidates) >= _MIN_HELD_OUT_ROWS:
        shares = _held_out(model, X, candidates, only_one=len(candidates) > _LONG)
    resolved, resolution = _resolved(model, labels, shares)
    known = [] if shares is None or np.isnan(shares).any() else [shares]
    alone = labels.votes is not None and resolved.votes is labels.votes
    return Learned(model, resolution, resolved, X, choice, alone, known)


def inspection(n_rows: int, columns: Sequence[Column], labels: Labels | None) -> Plain:
    """Return in plain values what a table was taken for: its columns and labels, and the time."""
    used = [column for column in columns if column.used]
    width = sum(column.width for column in used)
    blocks = any(column.kind in (TEXT, VECTOR) for column in used)
    found = None if labels is None else labels.summary()
    landmarks = LIMITS.landmarks if blocks else FEW_LANDMARKS
    return {
        "rows": n_rows,
        "features": len(used),
        "columns": [
            {
                "name": column.name,
                "kind": column.kind,
                "used": column.used,
                "becomes": column.becomes(),
                "why": column.reason,
                "missing": round(column.missing, 4),
                "values": column.summary(),
            }
            for column in columns
        ],
        "labels": found,
        "seconds": found and seconds_needed(n_rows, width, found["labels"], landmarks),
    }


def inspect_table(table: Table, labels: Labels | None, **options: Unpack[ColumnOptions]) -> Plain:
    """Look at the columns of a table and the labels of its rows, see `inspection`."""
    columns, _ = look(table, excluding(options, () if labels is None else labels.columns))
    if labels is not None:
        note_copied_votes(table, [column.name for column in columns if column.used], labels)
    return inspection(table.n_rows, columns, labels)


def seconds_needed(n: int, d: int, q: int, n_landmarks: int = FEW_LANDMARKS) -> float:
    """Estimate how long PL-LOO takes for n rows, d features and q labels, in seconds of one core.

    `python -m benchmarks.tables` compares it with what it takes; it is good to a factor of two.
    """
    rows = min(n, 2000)
    choosing = 1.1e-6 * rows**2 + 2e-9 * rows * q * 800
    compared = n if n <= ALL_COMPARED else n_landmarks
    comparing = 8e-11 * n * compared**2
    return 2.5 + choosing + comparing + 1.2e-4 * n + 2e-6 * n * d + 1.5e-8 * n * q * 15


def named_method(
    name: str, parameters: Mapping[str, object], seed: int | None
) -> PartialLabelClassifier:
    """Make a method by its name, and check its parameters."""
    method = make_method(name, parameters, seed)
    method._validate_params()
    return method


def resolved_by_votes(labels: Labels) -> Resolution:
    """Return the labels that votes alone give, for tables without features.

    Parameters
    ----------
    labels : Labels
        What is known of the labels, with votes.

    Returns
    -------
    Resolution
    """
    note("no column is left to learn from, so the labels are those of the votes alone.")
    return _by_votes(labels)


def _by_votes(labels: Labels) -> Resolution:
    """Return the labels that votes give, with what else is known of the rows."""
    votes = labels.votes
    assert votes is not None
    return Resolution(votes.candidates, votes.confidences(), votes.chosen(), labels.decided)


def set_landmarks(
    method: PartialLabelClassifier, parameters: Mapping[str, object], n_rows: int
) -> None:
    """Let a method compare the rows of a long table with fewer landmarks than by default.

    For the kernels of text and of vectors this would cost too much accuracy.
    """
    landmarks = "n_landmarks" in method.get_params(deep=False) and "n_landmarks" not in parameters
    if landmarks and n_rows > ALL_COMPARED:
        method.set_params(n_landmarks=FEW_LANDMARKS)


def _with_or_without_roots(
    columns: FeatureColumns, table: Table, candidates: CandidateSets
) -> tuple[FeatureColumns, Matrix]:
    """Take square roots of histograms if they make the sets of held-out rows more likely."""
    X, rooted = columns.transform(table), columns.with_roots(table)
    if rooted is None or len(candidates) < _MIN_HELD_OUT_ROWS:
        return columns, X
    Z = rooted.transform(table)
    rows = np.random.default_rng(0).permutation(len(candidates))[:_MAX_COMPARED_ROWS]
    given, likelihoods = candidates[rows], []
    method = named_method("plloo", _FIXED, 0)
    for features in (X, Z):
        logits = log_scores(held_out_probabilities(method, features[rows], given, folds=3))
        temperature = fit_temperature(given, logits, np.ones(len(rows)))
        likelihoods.append(set_likelihoods(given, logits, temperature))
    gain = likelihoods[1] - likelihoods[0]
    if gain.mean() <= 2 * gain.std() / np.sqrt(len(rows)):
        return columns, X
    note("the numbers look like histograms: square roots of them fit held-out rows better.")
    return rooted, Z


def _resolved(
    model: TableModel, labels: Labels, held_out: Floats | None
) -> tuple[Labels, Resolution]:
    """Decide for one candidate in each row, with votes by what they and the model say together."""
    candidates = labels.candidates
    confidences = candidates.entries(model.method.label_distributions_)
    if labels.votes is None:
        transduction = as_objects(np.asarray(model.own_method.transduction_))
        decided = lookup_codes(transduction, candidates.classes)
        at = candidates.indices == np.repeat(decided, candidates.sizes)
        return labels, Resolution(candidates, confidences, np.flatnonzero(at), labels.decided)
    if model.method.weighs_candidates:  # its confidences have taken in the votes
        assert candidates.weights is not None
        confidences = confidences / candidates.weights
    opinion = candidates.row_normalized(confidences)
    opinion = (1 - _SLIP) * opinion + _SLIP / np.repeat(candidates.sizes, candidates.sizes)
    if held_out is not None:
        held_out = (1 - _SLIP) * held_out + _SLIP / candidates.shape[1]
    votes = labels.votes.judged(opinion, held_out)
    if votes is labels.votes:
        note("features say nothing of other rows, so the labels are those of the votes alone.")
    labels = replace(labels, votes=votes)
    return labels, _by_votes(labels)


def _held_out(
    model: TableModel, X: Matrix, candidates: CandidateSets, *, only_one: bool = False
) -> Floats:
    """Return the probabilities of all classes by models that have not seen the row: (n, q)."""
    if len(candidates) < _MIN_HELD_OUT_ROWS:
        return np.full(candidates.shape, 1 / candidates.shape[1])
    folds = 5 if len(candidates) <= _MAX_FIVE_FOLD_ROWS else 3
    own = model.own_method
    found = {name: getattr(own, f"{name}_") for name in own.found_parameters}
    method = clone(own).set_params(**found)  # with the parameters that it has found by itself
    shares = held_out_probabilities(method, X, candidates, folds=folds, only_one=only_one)
    if model.method is own:
        return shares
    return probabilities(log_scores(shares), model.method.temperature_)


def is_beyond_memory(table: Table) -> bool:
    """Return whether the features of a table would take much of the memory of this computer."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not every system says
        return False
    return 4 * table.n_rows * len(table.names) > _MEMORY_SHARE * memory


def learn_beyond_memory(
    table: Table,
    candidates: str,
    *,
    sep: str | None = None,
    gaps: Sequence[str] | None = None,
    parameters: Mapping[str, object] | None = None,
    seed: int | None = 0,
    scheduler: str | None = None,
    **options: Unpack[ColumnOptions],
) -> tuple[TableModel, Plain]:
    """Learn with PL-LOO from a table, of which a group of rows at a time is in memory.

    What the columns are, and how gaps are filled and text is encoded, is learned from 50 000 rows,
    as for all long tables.

    Parameters
    ----------
    table : Table
        The table, usually of Parquet files.
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
    model : TableModel
        Columns and method, for new rows.
    summary : dict
        The main facts in plain values.
    """
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
    how["sep"] = column_candidates(groups[0].column(candidates), sep=sep, **how)[1] or sep
    width = columns.encoder.transform(next(columns.frames(table))).shape[1]

    def joined(parts: list[object], dtype: DTypeLike, *shape: int) -> Array:
        pieces = [
            array.from_delayed(part, (group.n_rows, *shape), dtype=dtype)
            for part, group in zip(parts, groups, strict=True)
        ]
        return array.concatenate(pieces)

    encoder = dask.delayed(columns, traverse=False)
    X = [dask.delayed(_features)(group, encoder) for group in groups]
    sets = [dask.delayed(_sets)(group, how) for group in groups]
    with _workers(scheduler):
        method.fit(joined(X, np.float32, width), joined(sets, object))
        confidences: Any = method.label_distributions_
        found = np.ravel(np.asarray(confidences.to_delayed(), dtype=object)).tolist()
        peaks = dask.compute(*map(dask.delayed(_sum_of_peaks), found))
    model = TableModel(columns, method)
    return model, {
        "rows": table.n_rows,
        "partitions": len(groups),
        **model.summary(),
        "mean_confidence": sum(peaks) / table.n_rows,
    }


def _features(group: Table, columns: FeatureColumns) -> NDArray[np.float32]:
    return np.asarray(columns.transform(group), dtype=np.float32)


def _sets(group: Table, how: dict[str, Any]) -> CandidateSets:
    return column_candidates(group.column(how["name"]), **how)[0]


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
