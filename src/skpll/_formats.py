"""Reading the formats in which people keep candidate labels.

Every reader returns a `Pattern`: the compressed rows of a 0/1 matrix, with the class names. Readers
name the argument, the first bad row and the remedy when they refuse an input. Whether a set may be
empty is for the caller to say.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from numbers import Real
from operator import methodcaller
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ._errors import ArgumentError
from ._labels import (
    UNLABELED,
    Codes,
    LabelError,
    as_objects,
    encode_labels,
    is_missing,
    row_of,
    sort_classes,
)
from ._typing import Array, CandidatesLike, Floats, Label, MatrixLike

_INDICATOR = (
    "a matrix holds 0 and 1 only, or soft labels, whose rows sum to one. For scores use "
    "CandidateSets.from_scores, for annotators' labels CandidateSets.from_annotators, for counts "
    "`weights`"
)


SOFT_LABEL_TOLERANCE = 1e-3
"""Soft labels of a row sum to one up to this error."""


class Pattern(NamedTuple):
    """An n × q matrix in compressed rows, and the names of its columns.

    Without weights only the pattern matters.
    """

    indptr: Array
    indices: Array
    classes: Array
    weights: Floats | None = None


def from_pairs(
    rows: Array, codes: Array, n: int, classes: Array, weights: Floats | None = None
) -> Pattern:
    """Collect (row, class) pairs, which may come in any order; weights of repeated ones add up."""
    q = max(len(classes), 1)
    keys = rows.astype(np.int64) * q + codes
    if (keys[1:] <= keys[:-1]).any():
        if weights is None:
            keys = np.sort(keys)
            keys = keys[np.append(True, keys[1:] > keys[:-1])]
        else:
            keys, place = np.unique(keys, return_inverse=True)
            weights = np.bincount(place, weights, len(keys)).astype(np.float64)
    found = keys // q
    return Pattern(np.searchsorted(found, np.arange(n + 1)), keys - found * q, classes, weights)


def read(
    S: CandidatesLike, classes: Iterable[Hashable] | None, sep: str | None, argument: str
) -> Pattern:
    """Recognise the format of `S` and read it."""
    if not isinstance(S, Iterable) and hasattr(S, "__array__"):
        S = np.asarray(S)
    if isinstance(S, str | bytes | Mapping) or not isinstance(S, Iterable):
        kind = "None" if S is None else f"a {type(S).__name__}"
        raise ArgumentError(
            argument,
            f"got {kind}; give a sequence with the candidates of each example, or a 0/1 matrix.",
        )
    if sparse.issparse(S):
        return from_matrix(S, classes, argument)
    if hasattr(S, "columns"):
        return from_frame(S, classes, argument)
    if isinstance(S, np.ndarray) and S.ndim != 1:
        if S.ndim != 2 or S.shape[1] != 1:
            return from_matrix(S, classes, argument)
        S = _one_column(S)
    names = None if classes is None else sort_classes(classes)[0]
    if isinstance(S, np.ndarray) and S.dtype.kind in "biufmM" and sep is None:
        return from_vector(S, names, argument)
    entries = as_list(S)
    if sep is not None:
        return from_strings(entries, sep, names, argument)
    if _are_collections(entries, argument):
        return from_collections(entries, names, argument)
    return from_vector(entries, names, argument)


def _one_column(S: Array) -> Array:
    from sklearn.exceptions import DataConversionWarning

    warnings.warn(
        "A column-vector y was passed when a 1d array was expected; "
        "use y.ravel() for plain labels, or a 0/1 matrix with a column for each class.",
        DataConversionWarning,
        stacklevel=_user_level(),
    )
    return S[:, 0]


def from_matrix(M: MatrixLike, classes: Iterable[Hashable] | None, argument: str) -> Pattern:
    """Read a 0/1 matrix, dense or sparse, whose columns are the classes."""
    if M.ndim != 2:
        problem = f"expected a vector or a 0/1 matrix, got {M.ndim} dimensions."
        raise ArgumentError(argument, problem)
    n, q = M.shape
    if hasattr(M, "tocoo"):
        entries: MatrixLike = sparse.coo_array(M)
        entries.sum_duplicates()
        entries.eliminate_zeros()
        (rows, columns), values = entries.coords, entries.data
    else:
        M = M if M.dtype.kind in "biuf" else _as_numbers(M, argument)
        rows, columns = np.nonzero(M)
        values = M[rows, columns]
    wrong = np.flatnonzero(values != 1)
    soft = len(wrong) > 0 and _are_soft_labels(rows, values, n)
    if len(wrong) and not soft:
        first = wrong[np.argmin(rows[wrong])]
        raise _no_indicator(rows[first], columns[first], values[first], argument)
    weights = values.astype(np.float64) if soft else None
    if classes is None:
        return from_pairs(rows, columns, n, np.arange(q), weights)
    names, order = sort_classes(classes)
    if len(names) != q:
        raise ArgumentError(
            "classes", f"{len(names)} names for the {q} columns of {argument}; name each column."
        )
    return from_pairs(rows, np.argsort(order)[columns], n, names, weights)


def _are_soft_labels(rows: Array, values: Array, n: int) -> bool:
    """Return whether the entries of every row are positive and sum to one."""
    if values.dtype.kind != "f" or not (values > 0).all():
        return False
    return bool(np.abs(np.bincount(rows, values, n) - 1).max() < SOFT_LABEL_TOLERANCE)


def _as_numbers(M: Array, argument: str) -> Array:
    """Read the entries of a matrix of objects as numbers."""
    numbers = np.empty(M.shape)
    for (row, column), entry in np.ndenumerate(M):
        if not (is_missing(entry) or isinstance(entry, Real | Decimal | np.bool_)):
            raise _no_indicator(row, column, repr(entry), argument)
        numbers[row, column] = np.nan if is_missing(entry) else entry
    return numbers


def _no_indicator(row: int, column: int, entry: object, argument: str) -> ArgumentError:
    return ArgumentError(argument, f"row {row} has {entry} in column {column}; {_INDICATOR}.")


def from_frame(frame: MatrixLike, classes: Iterable[Hashable] | None, argument: str) -> Pattern:
    """Read a data frame of 0/1 columns, which name the classes."""
    names = list(frame.columns)
    if len(names) == 1:
        raise ArgumentError(
            argument,
            f"the data frame has one column; pass the column itself ({argument}[{names[0]!r}]), "
            "or one 0/1 column a class.",
        )
    if classes is not None and (odd := set(names) ^ set(as_objects(sort_classes(classes)[0]))):
        problem = f"{min(odd, key=repr)!r} is not both a name here and a column of {argument}."
        raise ArgumentError("classes", problem)
    return from_matrix(frame.to_numpy(), names, argument)


def from_vector(labels: Label, names: Array | None, argument: str) -> Pattern:
    """Read plain labels: every set has one candidate."""
    starts = np.arange(len(labels) + 1)
    codes, found = encode(labels, names, starts, argument)
    if names is None:
        _warn_of_joined_labels(codes, found, argument)
    return Pattern(starts, codes, found)


_SEPARATORS = "|;,/"
"""What may stand between the labels of a string; the first one stands in hardly any name."""


def _warn_of_joined_labels(codes: Codes, classes: Array, argument: str) -> None:
    """Warn where plain labels look like several ones joined by a separator."""
    labels = classes.tolist()
    if not all(isinstance(label, str) for label in labels):
        return
    for sep in _SEPARATORS:
        parts = {label: set(map(str.strip, label.split(sep))) - {""} for label in labels}
        joined = {label for label in labels if len(parts[label]) > 1}
        if joined and (sep == "|" or _parts_recur(parts, joined)):
            row = next(row for row, code in enumerate(codes.tolist()) if labels[code] in joined)
            n_parts = len(set().union(*parts.values()))
            warnings.warn(
                f"{argument}: row {row} has {labels[codes[row]]!r}, which is taken as one label. "
                f"If {sep!r} separates candidates, use as_candidates({argument}, sep={sep!r}): "
                f"there are {n_parts} labels then, not {len(labels)}. If not, give each label as "
                "a set.",
                UserWarning,
                stacklevel=_user_level(),
            )
            return


def _parts_recur(parts: dict[str, set[str]], joined: set[str]) -> bool:
    """Return whether the parts of joined labels are labels themselves, or few in all."""
    plain = parts.keys() - joined
    if any(parts[label] <= plain for label in joined):
        return True
    return 2 * len(joined) > len(parts) and 2 * len(set().union(*parts.values())) <= len(parts)


def _user_level() -> int:
    """Return the `stacklevel` of a warning that points at the first caller outside the package."""
    package = __name__.partition(".")[0]
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals["__name__"].partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    return level


def from_strings(entries: list[Label], sep: str, names: Array | None, argument: str) -> Pattern:
    """Read strings such as ``"cat|dog"``."""
    if not sep:
        raise ArgumentError("sep", 'an empty separator; give for instance sep="|".')
    for row, entry in enumerate(entries):
        if not isinstance(entry, str):
            problem = f"row {row} is a {type(entry).__name__}, not a string; leave out `sep`."
            if is_missing(entry):
                problem = f"row {row} is {entry!r}; {UNLABELED}."
            raise ArgumentError(argument, problem)
    parts = list(map(methodcaller("split", sep), entries))
    sizes = np.fromiter(map(len, parts), np.int64, len(parts))
    flat = list(map(str.strip, chain.from_iterable(parts)))
    if "" in flat:
        filled = np.fromiter(map(bool, flat), bool, len(flat))
        sizes = np.bincount(np.repeat(np.arange(len(parts)), sizes)[filled], minlength=len(parts))
        flat = list(filter(None, flat))
    return _from_flat(flat, sizes, names, argument)


def from_collections(entries: Sequence[Label], names: Array | None, argument: str) -> Pattern:
    """Read a sequence of sets, lists, tuples or arrays of labels, or of weights by label."""
    sizes = np.fromiter(map(len, entries), np.int64, len(entries))
    members = (entry.tolist() if hasattr(entry, "tolist") else entry for entry in entries)
    flat = list(chain.from_iterable(members))
    weights = _weights_of(entries, sizes, argument)
    pattern = _from_flat(flat, sizes, names, argument, weights)
    if names is None and _are_equally_long_lists(entries, sizes):
        _refuse_matrix_rows(sizes, pattern, argument)
    return pattern


def _from_flat(
    flat: list[Label],
    sizes: NDArray[np.int64],
    names: Array | None,
    argument: str,
    weights: Floats | None = None,
) -> Pattern:
    """Read the labels of all examples, one after the other, and their number in each example."""
    codes, found = encode(flat, names, np.concatenate(([0], np.cumsum(sizes))), argument)
    rows = np.repeat(np.arange(len(sizes)), sizes)
    return from_pairs(rows, codes, len(sizes), found, weights)


def encode(
    flat: Sequence[Label] | Array, names: Array | None, starts: Array, argument: str
) -> tuple[Codes, Array]:
    """Encode labels, and name the row in the message if one of them is bad."""
    try:
        return encode_labels(flat, names)
    except LabelError as error:
        row = row_of(starts, error.position)
        raise ArgumentError(argument, f"row {row}: {error}") from None


def as_list(values: Iterable[Label]) -> list[Label]:
    """Make a list of a column, an array or any other iterable."""
    if isinstance(values, np.ndarray):
        return as_objects(values)
    for method in ("to_list", "tolist"):
        if hasattr(values, method):
            return list(getattr(values, method)())
    return list(values)


def as_matrix(values: MatrixLike, argument: str, what: str) -> Array:
    """Make an array of a frame or of nested sequences, which has to have two dimensions."""
    matrix = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    if matrix.ndim != 2:
        raise ArgumentError(argument, f"expected {what}, got {matrix.ndim} dimension(s).")
    return matrix


def _weights_of(entries: Sequence[Label], sizes: NDArray[np.int64], argument: str) -> Floats | None:
    """Read the weights where the entries map labels to weights."""
    if not entries or not all(isinstance(entry, Mapping) for entry in entries):
        return None
    try:
        weights = np.array([value for entry in entries for value in entry.values()], dtype=float)
    except (TypeError, ValueError):
        problem = "a mapping gives each candidate a positive number, its weight."
        raise ArgumentError(argument, problem) from None
    return check_positive(weights, np.concatenate(([0], np.cumsum(sizes))), argument)


def check_positive(weights: Floats, starts: Array, argument: str) -> Floats:
    """Return the weights of candidates; refuse those that are not positive and finite."""
    wrong = np.flatnonzero(~((weights > 0) & np.isfinite(weights)))
    if len(wrong):
        raise ArgumentError(
            argument,
            f"row {row_of(starts, wrong[0])} has the weight {weights[wrong[0]]:g}; weights are "
            "positive numbers: leave out the labels that are no candidates.",
        )
    return weights


def _are_equally_long_lists(entries: Sequence[Label], sizes: NDArray[np.int64]) -> bool:
    """Return whether the entries could be the rows of a matrix."""
    ordered = all(issubclass(kind, list | tuple | np.ndarray) for kind in set(map(type, entries)))
    return bool(ordered and len(sizes) and sizes[0] > 1 and (sizes == sizes[0]).all())


def _refuse_matrix_rows(sizes: NDArray[np.int64], pattern: Pattern, argument: str) -> None:
    """Refuse lists whose numbers are more likely the entries of a matrix than labels."""
    labels = pattern.classes
    if labels.dtype.kind not in "biuf":
        return
    if set(labels.tolist()) <= {0, 1} and (np.diff(pattern.indptr) < sizes).any():
        raise ArgumentError(
            argument,
            "a list of equally long lists of 0 and 1 could be an indicator matrix or lists of "
            "labels; wrap it in numpy.array for the first, in sets for the second.",
        )
    fractions = labels != np.floor(labels)
    if fractions.any() and ((labels >= 0) & (labels <= 1)).all():
        entry = int(np.argmax(fractions[pattern.indices]))
        raise ArgumentError(
            argument,
            f"row {row_of(pattern.indptr, entry)} has {labels[pattern.indices[entry]]:g}: equally "
            "long lists of numbers between 0 and 1 could be probabilities or lists of labels; use "
            "CandidateSets.from_scores for the first, wrap them in sets for the second.",
        )


def _are_collections(entries: list[Label], argument: str) -> bool:
    """Return whether the entries are sets of labels, not labels; a mixture is an error."""
    kinds = set(map(type, entries))
    single = str | bytes | np.generic
    sets = {kind for kind in kinds if issubclass(kind, Iterable) and not issubclass(kind, single)}
    mappings = {kind for kind in sets if issubclass(kind, Mapping)}
    odd = kinds - sets
    if mappings != sets:
        odd |= mappings
    if not sets or not odd:
        return bool(sets)
    row, entry = next((i, entry) for i, entry in enumerate(entries) if type(entry) in odd)
    if type(entry) in mappings:
        problem = f"a {type(entry).__name__} among sets of labels; give all rows weights, or none"
    elif is_missing(entry):
        problem = f"{entry!r}; {UNLABELED}"
    else:
        problem = f"the single label {entry!r} among sets of labels; write {{{entry!r}}}"
    raise ArgumentError(argument, f"row {row} is {problem}.")
