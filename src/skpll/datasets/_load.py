"""Load a data set by name."""

from __future__ import annotations

import os
import textwrap
from typing import TYPE_CHECKING, Literal, overload

import numpy as np

from skpll._typing import Array, MatrixLike

from ._download import fetch_files
from ._readers import Record, read_file
from ._registry import DatasetInfo, dataset_info

if TYPE_CHECKING:
    from sklearn.utils import Bunch

    from skpll.candidates import CandidateSets


@overload
def load_dataset(
    name: str, *, data_home: str | os.PathLike[str] | None = ..., return_X_S_y: Literal[False] = ...
) -> Bunch: ...


@overload
def load_dataset(
    name: str, *, data_home: str | os.PathLike[str] | None = ..., return_X_S_y: Literal[True]
) -> tuple[MatrixLike, CandidateSets | None, Array]: ...


def load_dataset(
    name: str, *, data_home: str | os.PathLike[str] | None = None, return_X_S_y: bool = False
) -> Bunch | tuple[MatrixLike, CandidateSets | None, Array]:
    """Load a data set by name, downloading its file if need be.

    The file is looked for in ``data_home``, in the directory that the environment variable
    ``SKPLL_DATA`` names, and in the user's cache; see :func:`fetch_dataset`. Features come as
    they are in the file: nothing is scaled.

    Parameters
    ----------
    name : str
        A name out of :func:`list_datasets`. Case, blanks and punctuation do not matter.
    data_home : path-like, optional
        A directory to look in first, and to download to.
    return_X_S_y : bool, default=False
        Return ``(X, candidates, y)`` instead of a Bunch.

    Returns
    -------
    sklearn.utils.Bunch or tuple
        With the fields

        X : ndarray or csr_array of shape (n_samples, n_features)
            The features.
        candidates : CandidateSets or None
            The candidate labels. None for a data set with ordinary labels: make candidates from
            its ``y`` with :func:`make_partial_labels`.
        y : ndarray of shape (n_samples,)
            The true labels, as they appear in ``classes``.
        classes : ndarray of shape (n_classes,)
            All labels, sorted; where there are candidates, also those that are never true.
        feature_names : list of str
            Names of the columns of ``X``.
        DESCR : str
            What the data are, where they come from, and under which terms.

    Raises
    ------
    ValueError
        If there is no data set of that name, or a file is not the one that was expected.
    FileNotFoundError
        If the file is not here and cannot be downloaded.

    Examples
    --------
    >>> from skpll.datasets import load_dataset, make_partial_labels
    >>> X, _, y = load_dataset("iris", return_X_S_y=True)
    >>> S = make_partial_labels(y, p=0.5, random_state=0)
    >>> X.shape, S.shape
    ((150, 4), (150, 3))
    """
    info = dataset_info(name)
    if info.file_name is None:
        record = _load_embedded(info)
    else:
        path, *others = fetch_files(info.name, data_home=data_home)
        record = read_file(path, info, others)
    if return_X_S_y:
        return record.X, record.candidates, record.y
    from sklearn.utils import Bunch

    return Bunch(**vars(record), DESCR=describe_dataset(info.name))


def _load_embedded(info: DatasetInfo) -> Record:
    """Take a data set from scikit-learn, with the names of the classes as labels."""
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{info.name}")()
    classes, codes = np.unique(bunch.target_names[bunch.target], return_inverse=True)
    return Record(
        X=bunch.data,
        y=classes[codes],
        classes=classes,
        feature_names=[str(name) for name in bunch.feature_names],
    )


def describe_dataset(name: str) -> str:
    """Write up what the registry knows about a data set.

    Parameters
    ----------
    name : str
        A name out of :func:`list_datasets`.

    Returns
    -------
    str
        A heading, a description, and sections of characteristics, notes, origin and citation.

    Examples
    --------
    >>> from skpll.datasets import describe_dataset
    >>> print(describe_dataset("iris").splitlines()[0])
    Iris: botany
    """
    info = dataset_info(name)
    heading = f"{info.title}: {info.task}"
    notes = [_paragraph(note, "  - ", "    ") for note in info.notes]
    parts = [
        f"{heading}\n{'=' * len(heading)}",
        _paragraph(info.description),
        "\n".join(["Characteristics", *(f"  {line}" for line in _characteristics(info))]),
        "\n".join(["Notes", *notes]) if notes else "",
        _paragraph(f"Origin: {info.collection.origin}"),
        _paragraph(f"Licence: {info.collection.licence}"),
        _paragraph(f"Please cite: {info.citation}"),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _characteristics(info: DatasetInfo) -> list[str]:
    lines = [
        f"examples          {info.n_samples}",
        f"features          {info.n_features}",
        f"classes           {info.n_classes}",
    ]
    if info.n_true_classes not in (None, info.n_classes):
        lines[-1] += f", of which {info.n_true_classes} have a true example"
    if not info.has_candidates:
        return [*lines, "candidates        none, ordinary labels only"]
    lines.append(f"mean candidates   {info.mean_candidates:.2f}")
    if info.candidate_range is not None:
        smallest, largest = info.candidate_range
        lines[-1] += f" ({smallest} to {largest})"
    if info.n_singletons is not None:
        lines.append(f"single candidate  {info.n_singletons} examples")
    return lines


def _paragraph(text: str, first: str = "", indent: str = "") -> str:
    wrapper = textwrap.TextWrapper(80, first, indent, break_on_hyphens=False)
    return wrapper.fill(text)
