"""Models in files: saved and loaded with skops, which runs no code from the file.

A file is refused unless it is complete, was written by the same versions of skpll and scikit-learn,
and holds nothing but the types that a model of this package consists of.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpll._labels import as_objects
from skpll._progress import progress

from ._extra import arrow, short, skops
from .columns import FeatureColumns
from .disambiguate import free_names, label_column
from .reading import Array, Table
from .writing import written_whole

__all__ = ["TableModel", "load_model", "save_model"]

_DESCRIPTION = "skpll.json"
_TRUSTED = frozenset(
    {
        "numpy.dtype",
        "scipy.sparse._csc.csc_array",
        "scipy.sparse._csr.csr_array",
        "sklearn.metrics._dist_metrics.EuclideanDistance32",
        "sklearn.metrics._dist_metrics.EuclideanDistance64",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.neighbors._ball_tree.BallTree",
        "skpll.coding._machines.KernelMachines",
        "skpll.neighbors.graph.NeighborSearch",
    }
)


@dataclass(frozen=True)
class TableModel:
    """A method that has learned from a table, with all that turns rows into its features.

    Parameters
    ----------
    columns : FeatureColumns
        From rows to features.
    method : PartialLabelClassifier
        The fitted method.
    name : str
        What the method is called on the command line.
    """

    columns: FeatureColumns
    method: Any
    name: str

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

        They are those of the method where it has any, and else a softmax of its scores.

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


def save_model(model: TableModel, path: Path) -> None:
    """Write a model to a file.

    Parameters
    ----------
    model : TableModel
        The model.
    path : Path
        The file, by custom ``….skops``.
    """
    from sklearn.pipeline import Pipeline

    pipeline = Pipeline([("columns", model.columns.encoder), ("method", model.method)])
    description = {**_versions(), "method": model.name, "columns": model.columns.kinds}
    content = BytesIO(skops().dumps(pipeline))
    with zipfile.ZipFile(content, "a") as archive:
        archive.writestr(_DESCRIPTION, json.dumps(description))
    with written_whole(path) as beside:
        beside.write_bytes(content.getvalue())


def load_model(path: Path) -> TableModel:
    """Read a model from a file.

    Parameters
    ----------
    path : Path
        What `save_model` has written.

    Returns
    -------
    TableModel

    Raises
    ------
    ValueError
        If the file is damaged, from another version, or holds types that are not trusted.
    """
    try:
        content = path.read_bytes()
        with zipfile.ZipFile(BytesIO(content)) as archive:
            damaged = archive.testzip()
            description = json.loads(archive.read(_DESCRIPTION))
        kinds, name = description["columns"], description["method"]
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, EOFError, NotImplementedError):
        raise ValueError(f"{path}: not a complete model of skpll fit; make it anew.") from None
    if damaged is not None:
        raise ValueError(f"{path}: the model is damaged ({short(damaged)}); make it anew.")
    for package, version in _versions().items():
        if description.get(package) != version:
            raise ValueError(
                f"{path}: made with {package} {description.get(package)}, but this is {version}; "
                "install that version, or fit the model anew."
            )
    pipeline = _load_trusted(content, path)
    method = pipeline.named_steps["method"]
    return TableModel(FeatureColumns(kinds, pipeline.named_steps["columns"]), method, name)


def _load_trusted(content: bytes, path: Path) -> Any:
    from sklearn.pipeline import Pipeline

    try:
        unknown = set(skops().get_untrusted_types(data=content))
    except Exception as error:  # whatever a malformed schema makes the reader stumble over
        raise ValueError(f"{path}: not a readable model: {error}") from None
    foreign = sorted(unknown - _trusted_types())
    if foreign:
        raise ValueError(
            f"{path}: refused, it holds types that are not trusted: {', '.join(foreign[:5])}."
        )
    try:
        pipeline = skops().loads(content, trusted=sorted(unknown))
    except Exception as error:
        raise ValueError(f"{path}: not a readable model: {error}") from None
    if not isinstance(pipeline, Pipeline) or set(pipeline.named_steps) != {"columns", "method"}:
        raise ValueError(f"{path}: refused, it does not hold a model of skpll fit.")
    return pipeline


def _trusted_types() -> frozenset[str]:
    from skpll import all_methods

    own = {f"{method.__module__}.{method.__qualname__}" for method in all_methods().values()}
    return _TRUSTED | own


def _versions() -> dict[str, str]:
    import sklearn

    import skpll

    return {"skpll": skpll.__version__, "scikit-learn": sklearn.__version__}
