"""Models in files: saved and loaded with skops, which runs no code from the file.

A file is refused unless it is complete, was written by the same versions of skpll and scikit-learn,
and holds nothing but the types that a model of this package consists of.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from dataclasses import asdict
from io import BytesIO
from pathlib import Path

import sklearn
from sklearn.pipeline import Pipeline

from skpll._version import __version__

from ._extra import short, skops
from .columns import Column, FeatureColumns
from .formats import written_whole
from .learning import TableModel
from .trusted import check_nodes, packed, unpacked

_DESCRIPTION = "skpll.json"


def save_model(model: TableModel, path: Path) -> None:
    """Write a model to a file.

    Parameters
    ----------
    model : TableModel
        The model.
    path : Path
        The file, usually ``….skops``.
    """
    steps = [("columns", model.columns.encoder), ("method", packed(model.method))]
    pipeline = Pipeline(steps)
    columns = [asdict(column) for column in model.columns.columns.values()]
    description = {**_versions(), "columns": columns}
    content = BytesIO(skops.dumps(pipeline, compression=zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(content, "a") as archive:
        try:
            check_nodes(archive.read("schema.json"))
        except ValueError as error:
            raise ValueError(f"{path}: such a model can't be saved: {error}") from None
        archive.writestr(_DESCRIPTION, json.dumps(description))
    with written_whole(path) as temporary:
        temporary.write_bytes(content.getvalue())


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
        columns = [Column.described(column) for column in description["columns"]]
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
    try:
        pipeline = unpacked(_load_trusted(content))
        parts = pipeline.named_steps
        return _checked(TableModel(FeatureColumns(columns, parts["columns"]), parts["method"]))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    except (AttributeError, KeyError, TypeError, IndexError, MemoryError) as error:
        raise ValueError(f"{path}: not a complete model ({error}); make it anew.") from None


def _load_trusted(content: bytes) -> Pipeline:
    """Load the pipeline; turn all errors of malformed files into a ValueError."""
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            names = check_nodes(archive.read("schema.json"))
        pipeline = skops.loads(content, trusted=names)
    except ValueError:
        raise
    except Exception as error:
        raise ValueError(f"not a readable model: {error!r}; make it anew.") from None
    if not isinstance(pipeline, Pipeline) or set(pipeline.named_steps) != {"columns", "method"}:
        raise ValueError("refused, it does not hold a model of skpll.")
    return pipeline


def _checked(model: TableModel) -> TableModel:
    """Ask a model about one row of gaps: what it answers has to be a probability of each class."""
    try:
        frame = model.columns.gaps()
        shares = model.method.predict_proba(model.columns.encoder.transform(frame))
        fits = shares.shape == (1, len(model.classes)) and abs(shares.sum() - 1) < 1e-6
    except Exception as error:
        raise ValueError(f"its parts don't fit together ({error}); make it anew.") from None
    if not fits:
        raise ValueError("its answers are no probabilities; make it anew.")
    return model


def _versions() -> dict[str, str]:
    return {"skpll": __version__, "scikit-learn": sklearn.__version__}
