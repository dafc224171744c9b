"""Learning from a table: its columns become features, its candidates a model and labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skpll._labels import as_objects
from skpll._progress import progress
from skpll.base import PartialLabelClassifier
from skpll.candidates import CandidateSets
from skpll.model_selection import Choice, choose_method
from skpll.registry import make_method

from ._extra import arrow
from .columns import FeatureColumns
from .reading import Array, Table
from .resolution import Resolution, free_names, label_column

__all__ = ["Learned", "TableModel", "learn_from_table"]


@dataclass(frozen=True)
class TableModel:
    """A method that has learned from a table, with all that turns rows into its features.

    Parameters
    ----------
    columns : FeatureColumns
        From rows to features.
    method : PartialLabelClassifier
        The fitted method.
    """

    columns: FeatureColumns
    method: PartialLabelClassifier

    @property
    def name(self) -> str:
        """The name of the method in the registry."""
        return type(self.method).__name__.lower()

    @property
    def classes(self) -> NDArray[Any]:
        """The labels, sorted."""
        return np.asarray(self.method.classes_)

    def changed_parameters(self) -> dict[str, Any]:
        """Give the parameters of the method that are not its defaults."""
        defaults = type(self.method)().get_params(deep=False)
        given = self.method.get_params(deep=False)
        return {name: value for name, value in given.items() if value != defaults[name]}

    def predicted_columns(self, table: Table, *, probabilities: bool = False) -> dict[str, Array]:
        """Label the rows of a table.

        Parameters
        ----------
        table : Table
            A table with the columns that the model has learned from.
        probabilities : bool, default=False
            Whether to give the probability of every class too.

        Returns
        -------
        columns : dict of Arrow arrays
            ``label``, ``confidence`` and, if wanted, ``probability_…`` for every class.
        """
        pa = arrow()
        labels, confidences, all_shares = [], [], []
        with progress("Predicting", table.n_rows, shown=False) as step:
            for shares in self.probabilities(table):
                labels.append(shares.argmax(axis=1))
                confidences.append(shares.max(axis=1))
                if probabilities:
                    all_shares.append(shares)
                step(sum(map(len, labels)), "")
        if not labels:
            raise ValueError("the table has no rows.")
        columns = {
            "label": label_column(self.classes, np.concatenate(labels)),
            "confidence": pa.array(np.concatenate(confidences)),
        }
        if probabilities:
            matrix = np.concatenate(all_shares)
            for code, label in enumerate(as_objects(self.classes)):
                columns[f"probability_{label}"] = pa.array(matrix[:, code].copy())
        return free_names(columns, table.names)

    def probabilities(self, table: Table) -> Iterator[NDArray[np.float64]]:
        """Give the probability of every class for every row, a batch of rows at a time.

        Parameters
        ----------
        table : Table
            A table with the columns that the model has learned from.

        Yields
        ------
        probabilities : array of shape (rows of the batch, q)
        """
        for frame in self.columns.frames(table):
            yield self.method.predict_proba(self.columns.encoder.transform(frame))


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
    automatic = isinstance(method, str) and method == "auto"
    if automatic and parameters:
        raise ValueError("parameters: with the method auto they are chosen too; leave it out.")
    if not isinstance(method, str):
        method = clone(method)
    elif not automatic:
        method = make_method(method, parameters or {}, seed)
    dense = not automatic and not method.accepts_sparse
    columns = FeatureColumns.learn(table, features=features, exclude=exclude, dense=dense)
    X = columns.transform(table)
    choice = choose_method(X, candidates, seed=seed) if automatic else None
    if choice is not None:
        method = make_method(choice.best.method, choice.best.parameters, seed)
    method.fit(X, candidates)
    return Learned(TableModel(columns, method), Resolution.of(method, candidates), choice)
