"""Read the three file formats of the registry into one checked record.

Readers trust nothing: whatever a damaged, truncated or mistaken file makes the parsers do, the
caller gets a ``ValueError`` that names the file and what was found in it.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skpll._typing import Array, MatrixLike
from skpll.candidates import CandidateSets

from ._registry import DatasetInfo

Content = TypeVar("Content")

_NO_DATA = {
    (b"<!doctype", b"<html", b"<head", b"<body", b"<?xml", b"<!--"): (
        "is a web page (HTML), not data: the download returned an error or log-in page."
    ),
    (b"version https://git-lfs",): (
        "is a Git LFS pointer, not the data: run `git lfs pull` where it came from."
    ),
    (b"matlab 7.3", b"\x89hdf"): (
        "is in MATLAB's version 7.3 format (HDF5), which cannot be read here. Open it in MATLAB "
        "and save it again with save('{name}', '-v7')."
    ),
}
"""How files begin that cannot hold data, and what they are instead."""


@dataclass(frozen=True)
class Record:
    """The content of a data set.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, d)
        The features, finite.
    y : ndarray of shape (n,)
        The true labels, each one of ``classes``.
    classes : ndarray of shape (q,)
        The sorted labels.
    feature_names : list of str
        One name per column of X.
    candidates : CandidateSets or None
        The candidate labels, which contain the true one; None where there are only true labels.
    """

    X: MatrixLike
    y: Array
    classes: Array
    feature_names: list[str]
    candidates: CandidateSets | None = None


def read_file(path: Path, info: DatasetInfo, others: Sequence[Path] = ()) -> Record:
    """Read a data set's files; raise ValueError if they are not what ``info`` describes.

    `path` is a ``.mat`` or ``.arff`` file, or the first of several idx files.
    """
    check_beginning(path)
    if others:
        record = read_idx(path, *others)
    else:
        record = read_mat(path) if (info.file_name or "").endswith(".mat") else read_arff(path)
    shape = "{} × {} features and {} classes".format
    expected = shape(info.n_samples, info.n_features, info.n_classes)
    found = shape(*record.X.shape, len(record.classes))
    if found != expected:
        raise ValueError(
            f"{path} is not the data set {info.title}: it holds {found}, where {expected} are "
            "expected."
        )
    return record


def check_beginning(path: Path) -> None:
    """Recognize by its first bytes a file that cannot hold data, and say what it is instead."""
    with path.open("rb") as file:
        beginning = file.read(512).lstrip().lower()
    if not beginning:
        raise ValueError(f"{path} is empty.")
    for beginnings, what in _NO_DATA.items():
        if beginning.startswith(beginnings):
            raise ValueError(f"{path} {what.format(name=path.name)}")


def read_mat(path: Path) -> Record:
    """Read a MATLAB file with the variables ``data``, ``target`` and ``partial_target``.

    ``target`` and ``partial_target`` are 0/1 matrices, sparse or dense, with a row per class and a
    column per example or the other way round; ``data`` has a row per example or a column per
    example. The class axis is the one along which ``target`` sums to one for every example. Where
    the shapes leave a doubt, the layout of the published files (``data`` n × d, targets q × n)
    decides. The classes are numbered 0 … q−1, whether or not all of them have a true example.
    The file is in MATLAB's version 4 to 7 formats.
    """
    from scipy.io import loadmat

    variables = _parsed(lambda: loadmat(path, spmatrix=False), path, "MATLAB")
    missing = [name for name in ("data", "target", "partial_target") if name not in variables]
    if missing:
        found = ", ".join(sorted(name for name in variables if not name.startswith("__")))
        raise ValueError(f"{path} lacks the variable {missing[0]!r}; it holds {found}.")
    truth = _as_indicator(variables["target"], "target", path)
    partial = _as_indicator(variables["partial_target"], "partial_target", path)
    if truth.shape != partial.shape:
        raise ValueError(
            f"{path}: target is {truth.shape[0]} × {truth.shape[1]}, but partial_target is "
            f"{partial.shape[0]} × {partial.shape[1]}."
        )
    if np.all(truth.sum(axis=0) == 1):  # the rows are classes
        truth, partial = truth.T.tocsr(), partial.T.tocsr()
    elif not np.all(truth.sum(axis=1) == 1):
        raise ValueError(f"{path}: target must mark exactly one true label for every example.")
    n_samples, n_classes = truth.shape
    _check_candidates(truth, partial, path)
    X = _features(variables["data"], n_samples, path)
    classes = np.arange(n_classes)
    return Record(
        X=X,
        y=truth.indices.astype(np.intp),
        classes=classes,
        feature_names=[f"x{j}" for j in range(X.shape[1])],
        candidates=CandidateSets(partial.indptr, partial.indices, classes),
    )


def read_arff(path: Path) -> Record:
    """Read an ARFF file of numeric attributes whose last attribute is the nominal class.

    The classes are those that occur, sorted: a value that the header declares but no example has
    is left out. There are no candidates.
    """
    from scipy.io import arff

    def load() -> tuple[Array, Any]:
        with path.open(encoding="utf-8") as file:
            return arff.loadarff(file)

    table, header = _parsed(load, path, "ARFF")
    names, types = header.names(), header.types()
    if len(names) < 2 or types[-1] != "nominal":
        raise ValueError(f"{path}: the last attribute must be the class, a nominal attribute.")
    if "nominal" in types[:-1]:
        column = names[types.index("nominal")]
        raise ValueError(f"{path}: the attribute {column!r} is not numeric.")
    if not len(table):
        raise ValueError(f"{path} has a header but no examples: it may have been cut off.")
    X = np.column_stack([table[name] for name in names[:-1]]).astype(np.float64)
    _check_finite(X, path)
    labels = table[names[-1]].astype(str)
    return Record(
        X=X,
        y=labels,
        classes=np.unique(labels),
        feature_names=[name.strip("'\"") for name in names[:-1]],
    )


def read_idx(*paths: Path) -> Record:
    """Read pictures and labels from compressed files in the idx format of MNIST.

    Files of pictures and of labels come in turn; their rows are put one after the other. Pixels go
    from 0 to 255, in flat rows. There are no candidates.
    """
    arrays = [_load_idx(path) for path in paths]
    for path, pictures, labels in zip(paths[1::2], arrays[::2], arrays[1::2], strict=True):
        if len(pictures) != len(labels):
            raise ValueError(f"{path} has {len(labels)} labels for {len(pictures)} pictures.")
    X = np.concatenate([pictures.reshape(len(pictures), -1) for pictures in arrays[::2]])
    y = np.concatenate(arrays[1::2]).astype(np.intp)
    names = [f"pixel{place}" for place in range(X.shape[1])]
    return Record(X=X, y=y, classes=np.unique(y), feature_names=names)


def _load_idx(path: Path) -> NDArray[np.uint8]:
    """Read a compressed idx file of bytes: two zeros, type 8, number of dimensions, sizes, data."""
    content = _parsed(lambda: gzip.decompress(path.read_bytes()), path, "gzip")
    n_dimensions = content[3] if len(content) > 3 else 0
    start = 4 + 4 * n_dimensions
    if content[:3] != b"\0\0\x08" or not n_dimensions or len(content) < start:
        raise ValueError(f"{path} is not an idx file of bytes.")
    shape = np.frombuffer(content, ">u4", n_dimensions, 4).astype(int)
    if len(content) != start + shape.prod():
        raise ValueError(
            f"{path} has {len(content) - start} bytes of data, where its header says "
            f"{shape.prod()}: it may have been cut off."
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def _parsed(load: Callable[[], Content], path: Path, kind: str) -> Content:
    """Return what a parser makes of a file, or say that the file is not readable."""
    try:
        return load()
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f"{path} is not a readable {kind} file: {reason}") from error


def _as_indicator(matrix: MatrixLike, name: str, path: Path) -> sparse.csr_array:
    """Bring a 0/1 matrix, dense or sparse, into CSR form with sorted indices."""
    if matrix.ndim != 2 or matrix.dtype.kind not in "buif":
        raise ValueError(f"{path}: {name} must be a matrix of zeros and ones.")
    indicator: MatrixLike = sparse.csr_array(matrix, dtype=np.float64)
    indicator.sum_duplicates()
    indicator.eliminate_zeros()
    odd = indicator.data[indicator.data != 1]
    if len(odd):
        raise ValueError(f"{path}: {name} must hold zeros and ones, but has the value {odd[0]}.")
    return indicator


def _features(data: MatrixLike, n_samples: int, path: Path) -> MatrixLike:
    """Bring the features into the form n × d: C-contiguous float64, or CSR where sparse."""
    if data.ndim != 2 or data.dtype.kind not in "buif":
        raise ValueError(f"{path}: data must be a numeric matrix.")
    if n_samples not in data.shape:
        raise ValueError(
            f"{path}: data has shape {data.shape}, which fits no {n_samples} examples."
        )
    rows = data if data.shape[0] == n_samples else data.T
    as_matrix = sparse.csr_array if sparse.issparse(data) else np.ascontiguousarray
    X: MatrixLike = as_matrix(rows, dtype=np.float64)
    _check_finite(X, path)
    return X


def _check_finite(X: MatrixLike, path: Path) -> None:
    """Refuse missing or infinite features, naming the first."""
    if np.isfinite(X.data if hasattr(X, "tocoo") else X).all():
        return
    entries: MatrixLike = sparse.coo_array(X)
    first = np.argmin(np.isfinite(entries.data))
    row, column = entries.row[first], entries.col[first]
    raise ValueError(f"{path}: row {row}, column {column} of the features is missing or infinite.")


def _check_candidates(truth: sparse.csr_array, partial: sparse.csr_array, path: Path) -> None:
    """Refuse empty candidate sets, and sets without the true label, naming the first."""
    empty = np.flatnonzero(np.diff(partial.indptr) == 0)
    if len(empty):
        raise ValueError(f"{path}: example {empty[0]} has no candidate label.")
    outside = np.flatnonzero(truth.multiply(partial).sum(axis=1) == 0)
    if len(outside):
        raise ValueError(
            f"{path}: the true label {truth.indices[outside[0]]} of example {outside[0]} is not "
            f"among its candidates ({len(outside)} such examples in all)."
        )
