"""Labels to integer codes: what counts as a label, how labels sort, which array holds them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._errors import ArgumentError
from ._typing import Array, Floats, Label

Codes = NDArray[np.int32]

UNLABELED = (
    "an example without candidates is unlabeled: leave it out, or give it all classes as candidates"
)
OUTSIDE = "add it to `classes` or correct the row"


def as_objects(labels: Array) -> list[Label]:
    """List the labels of an array as objects that compare and hash as the array's entries do."""
    return list(labels) if labels.dtype.kind in "mM" else labels.tolist()


def row_of(indptr: Array, entry: int) -> int:
    """Return the row of an entry, from the entries at which rows start."""
    return int(np.searchsorted(indptr, entry, side="right")) - 1


class LabelError(ValueError):
    """A label that can't be used.

    The caller knows which row `position` belongs to, and completes the message with it.

    Parameters
    ----------
    reason : str
        What is wrong.
    remedy : str
        What the user can do about it.
    position : int
        The place of the label in the flat sequence of labels.
    """

    def __init__(self, reason: str, remedy: str, position: int) -> None:
        super().__init__(f"{reason}; {remedy}.")
        self.position = position


def is_missing(label: Label) -> bool:
    """Return whether a value stands for "no label": None, NaN, NaT or a data frame's NA."""
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return True
    try:
        return bool(label != label)
    except (TypeError, ValueError):
        return False


def class_array(labels: Sequence[Label]) -> Array:
    """Hold distinct labels in the plainest array that gives each of them back unchanged."""
    kinds = {bool if isinstance(label, bool | np.bool_) else None for label in labels}
    try:
        array = np.array(labels)
        if array.ndim == 1 and len(kinds) == 1 and as_objects(array) == list(labels):
            return array
    except (ValueError, OverflowError):
        pass
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def sort_classes(classes: Iterable[Label]) -> tuple[Array, NDArray[np.intp]]:
    """Sort the given class names; also return which given name each sorted one was.

    Raises
    ------
    ValueError
        If a name is missing, given twice, or can't be compared with the others.
    """
    names = as_objects(classes) if isinstance(classes, np.ndarray) else list(classes)
    for place, name in enumerate(names):
        if is_missing(name):
            raise ArgumentError("classes", f"entry {place} is {name!r}; give every class a name.")
    try:
        order = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.intp)
        twice = [name for name, count in Counter(names).items() if count > 1]
    except TypeError as error:
        raise ArgumentError(
            "classes", f"the names can't be sorted or hashed ({error}); use names of one type."
        ) from None
    if twice:
        problem = f"{twice[0]!r} is there twice; every class needs a name of its own."
        raise ArgumentError("classes", problem)
    array = classes if isinstance(classes, np.ndarray) else class_array(names)
    return array[order], order


def encode_labels(flat: Sequence[Label] | Array, classes: Array | None) -> tuple[Codes, Array]:
    """Turn labels into positions in the sorted classes.

    Parameters
    ----------
    flat : sequence or 1-D array
        The labels, one after the other.
    classes : sorted array or None
        The labels allowed; None takes those that occur.

    Returns
    -------
    codes : int32 array
        For each label its position in `classes`.
    classes : array
        The sorted classes.

    Raises
    ------
    LabelError
        If a label is missing, infinite, not hashable, not comparable with the others, or not
        one of `classes`.
    """
    if isinstance(flat, np.ndarray):
        if flat.dtype.kind in "biufmM" and np.isfinite(flat).all():
            if classes is None:
                classes, codes = np.unique(flat, return_inverse=True)
                return codes.astype(np.int32), classes
            if flat.dtype.kind in "biuf" and classes.dtype.kind in "biuf":
                codes = np.minimum(np.searchsorted(classes, flat), len(classes) - 1)
                if (classes[codes] == flat).all():
                    return codes.astype(np.int32), classes
        flat = as_objects(flat)
    try:
        distinct = list(dict.fromkeys(flat))
    except TypeError:
        label = next(label for label in flat if not _is_hashable(label))
        reason, remedy = f"{label!r} can't be a label", "use strings or numbers as labels"
        raise LabelError(reason, remedy, _place(flat, label)) from None
    for label in distinct:
        if is_missing(label) or (isinstance(label, float | np.floating) and np.isinf(label)):
            raise LabelError(f"the label is {label}", UNLABELED, _place(flat, label))
    if classes is None:
        classes = _sorted_labels(distinct, flat)
    code_of = {label: code for code, label in enumerate(as_objects(classes))}
    for label in distinct:
        if label not in code_of:
            reason = f"the label {label!r} is not one of the classes"
            raise LabelError(reason, OUTSIDE, _place(flat, label))
    return np.fromiter(map(code_of.__getitem__, flat), np.int32, len(flat)), classes


def lookup_codes(labels: Sequence[Label], classes: Array) -> NDArray[np.int64]:
    """Return the position of each label in the sorted classes, −1 for other labels."""
    place_of = {label: code for code, label in enumerate(as_objects(classes))}
    code_of = {label: place_of.get(label, -1) for label in dict.fromkeys(labels)}
    return np.fromiter(map(code_of.__getitem__, labels), np.int64, len(labels))


def class_shares(
    prior: Mapping[Label, float] | ArrayLike, classes: Array, seen: NDArray[np.intp]
) -> Floats:
    """Check the shares of the classes that a user expects.

    Parameters
    ----------
    prior : mapping from label to share, or array-like of shape (number of classes,)
        The shares, which need not sum to one.
    classes : array
        All labels, sorted.
    seen : int array of shape (q,)
        Positions of the classes that are in a candidate set.

    Returns
    -------
    shares : array of shape (q,)
        Those of the classes that are seen; they sum to one.
    """
    if isinstance(prior, Mapping):
        labels = as_objects(classes)
        odd = sorted(map(repr, set(prior) ^ set(labels)))
        if odd:
            problem = f"{odd[0]} has no share, or is not one of the classes; give one for each."
            raise ArgumentError("class_prior", problem)
        prior = [prior[label] for label in labels]
    shares = np.asarray(prior, dtype=np.float64)
    if shares.shape != classes.shape:
        raise ArgumentError(
            "class_prior",
            f"{shares.size} shares for {len(classes)} classes; give one a class, in "
            "the order of the sorted labels, or a mapping from label to share.",
        )
    shares = shares[seen]
    if not (np.isfinite(shares).all() and (shares >= 0).all() and shares.sum() > 0):
        raise ArgumentError("class_prior", "shares have to be non-negative, and not all zero.")
    return np.asarray(shares / shares.sum())


def _place(labels: Sequence[Label], label: Label) -> int:
    """Return where a label first stands; comparing would fail for some of what is no label."""
    return next(place for place, other in enumerate(labels) if other is label)


def _sorted_labels(distinct: list[Label], labels: Sequence[Label]) -> Array:
    try:
        return class_array(sorted(distinct))
    except TypeError:
        first = distinct[0]
        other = next((label for label in distinct if type(label) is not type(first)), first)
        reason = (
            f"the label {other!r} ({type(other).__name__}) can't be sorted with {first!r} "
            f"({type(first).__name__})"
        )
        raise LabelError(reason, "use labels of one type", _place(labels, other)) from None


def _is_hashable(label: Label) -> bool:
    try:
        hash(label)
    except TypeError:
        return False
    return True
