"""Models in files: saved and loaded with skops, which runs no code from the file.

A file is refused unless it is complete, was written by the same versions of skpll and scikit-learn,
and holds nothing but the types that a model of this package consists of.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from copy import copy
from io import BytesIO
from pathlib import Path
from typing import Any

import sklearn
from sklearn.pipeline import Pipeline

from skpll._version import __version__
from skpll.registry import all_methods

from ._extra import short, skops
from .columns import Column, FeatureColumns
from .learning import TableModel
from .writing import written_whole

_DESCRIPTION = "skpll.json"
_OF_TRAINING_ROWS = frozenset(
    {
        "transduction_",
        "label_distributions_",
        "missing_",
        "weights_",
        "training_labels_",
        "labeled_iter_",
    }
)
_TRUSTED = frozenset(
    {
        "numpy.dtype",
        "scipy.sparse._csc.csc_array",
        "scipy.sparse._csr.csr_array",
        "sklearn.compose._column_transformer._RemainderColsList",  # scikit-learn 1.6
        "sklearn.metrics._dist_metrics.EuclideanDistance32",
        "sklearn.metrics._dist_metrics.EuclideanDistance64",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.neighbors._ball_tree.BallTree",
        "sklearn.tree._tree.Tree",
    }
)


def save_model(model: TableModel, path: Path) -> None:
    """Write a model to a file.

    Parameters
    ----------
    model : TableModel
        The model.
    path : Path
        The file, by custom ``….skops``.
    """
    pipeline = Pipeline([("columns", model.columns.encoder), ("method", _bare(model.method))])
    description = {**_versions(), "columns": model.columns.described()}
    content = BytesIO(skops().dumps(pipeline, compression=zipfile.ZIP_DEFLATED))
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
        columns = [
            Column(**{**column, "categories": tuple(column["categories"])})
            for column in description["columns"]
        ]
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, EOFError, NotImplementedError):
        raise ValueError(f"{path}: not a complete model of skpll; make it anew.") from None
    except zlib.error as error:
        raise ValueError(f"{path}: the model is damaged ({error}); make it anew.") from None
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
    return TableModel(FeatureColumns(columns, pipeline.named_steps["columns"]), method)


def _bare(method: Any) -> Any:
    """Give a method without what it has kept of its training rows beside the model."""
    bare = copy(method)
    for name in _OF_TRAINING_ROWS & set(vars(bare)):
        delattr(bare, name)
    if "estimator_" in vars(bare):
        bare.estimator_ = _bare(bare.estimator_)
    return bare


def _load_trusted(content: bytes, path: Path) -> Any:
    try:
        unknown = set(skops().get_untrusted_types(data=content))
        foreign = sorted(name for name in unknown if not _is_trusted(name))
        pipeline = None if foreign else skops().loads(content, trusted=sorted(unknown))
    except Exception as error:  # whatever a malformed schema makes the reader stumble over
        raise ValueError(f"{path}: not a readable model: {error}") from None
    if foreign:
        raise ValueError(
            f"{path}: refused, it holds types that are not trusted: {', '.join(foreign[:5])}."
        )
    if not isinstance(pipeline, Pipeline) or set(pipeline.named_steps) != {"columns", "method"}:
        raise ValueError(f"{path}: refused, it does not hold a model of skpll.")
    return pipeline


def _is_trusted(name: str) -> bool:
    """Whether a type may be part of a model: what comes with a registered method is.

    A method is trusted with all types of its module, and those of its family with all of the
    family: their packages hold methods and nothing else.
    """
    homes = {method.__module__ for method in all_methods().values()}
    families = {home.rpartition(".")[0] for home in homes} - {"", "skpll"}
    return name in _TRUSTED or name.startswith(tuple(f"{home}." for home in homes | families))


def _versions() -> dict[str, str]:
    return {"skpll": __version__, "scikit-learn": sklearn.__version__}
