"""Candidate sets: whatever people have goes in, one compressed structure comes out.

A set of candidates is all that is known of the label of an example: one of them is right. `n` such
sets over `q` classes are held as the pattern of an `n × q` sparse matrix in compressed row form:
the candidates of example `i` are ``classes[indices[indptr[i]:indptr[i + 1]]]``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from itertools import chain, pairwise
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from . import _formats
from ._labels import (
    OUTSIDE,
    UNLABELED,
    LabelError,
    as_objects,
    encode_labels,
    is_missing,
    lookup_codes,
    sort_classes,
)

__all__ = ["CandidateSets", "CandidatesLike", "as_candidates"]

CandidatesLike: TypeAlias = Any
"""Whatever `as_candidates` accepts."""


class CandidateSets:
    """The candidate labels of a sequence of examples.

    Immutable. Most people never call the constructor: `as_candidates` and the ``from_…`` class
    methods build candidate sets from what they have. It behaves as the `y` of scikit-learn's
    tools: it has a length and a shape, and rows are taken from it as from an array.

    Parameters
    ----------
    indptr : int array of shape (n + 1,)
        Where the candidates of each example start and end in `indices`.
    indices : int array
        Positions in `classes`, without duplicates inside an example.
    classes : array of shape (q,)
        The distinct labels, sorted. Labels that are nobody's candidate are allowed.

    Attributes
    ----------
    classes : array of shape (q,)
        The sorted labels.
    indptr : int64 array of shape (n + 1,)
        Row starts.
    indices : int32 array
        Positions in `classes`, ascending inside each row.

    Examples
    --------
    >>> from skpll import as_candidates
    >>> S = as_candidates([{"cat", "dog"}, {"cat"}, {"dog", "fox"}])
    >>> S.shape, S.sizes.tolist()
    ((3, 3), [2, 1, 2])
    >>> S[1:].to_lists()
    [['cat'], ['dog', 'fox']]
    >>> S.contains("cat").tolist()
    [True, True, False]
    """

    __slots__ = ("classes", "indices", "indptr")

    classes: NDArray[Any]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]

    def __init__(self, indptr: ArrayLike, indices: ArrayLike, classes: ArrayLike) -> None:
        names = np.asarray(classes)
        kept, order = sort_classes(names)
        if not np.array_equal(order, np.arange(len(names))):
            raise ValueError(
                "classes: the labels are not sorted; sort them, and number `indices` accordingly."
            )
        starts = np.asarray(indptr, dtype=np.int64)
        columns = np.asarray(indices, dtype=np.int64)
        _check_pattern(starts, columns, len(kept))
        self._set(starts, _sorted_rows(starts, columns, len(kept)), kept)
        self._check("indptr")

    def _set(self, indptr: NDArray[Any], indices: NDArray[Any], classes: NDArray[Any]) -> None:
        for name, array in (
            ("indptr", np.ascontiguousarray(indptr, dtype=np.int64)),
            ("indices", np.ascontiguousarray(indices, dtype=np.int32)),
            ("classes", classes),
        ):
            if array.flags.writeable:
                array = array.view()
                array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def _trusted(
        cls, indptr: NDArray[Any], indices: NDArray[Any], classes: NDArray[Any]
    ) -> CandidateSets:
        """Build from arrays that are known to be right, without checking or copying them."""
        self = object.__new__(cls)
        self._set(indptr, indices, classes)
        return self

    def _check(self, argument: str) -> CandidateSets:
        """Refuse what nothing can be learned from: an empty set, fewer than two classes."""
        self._check_rows(argument)
        if len(self.classes) >= 2:
            return self
        if not len(self.classes):
            raise ValueError(f"{argument}: there is no example, so there are no classes.")
        raise ValueError(
            f"{argument}: only one class is present ({as_objects(self.classes)[0]!r}); learning "
            "needs two at least. Name the others with `classes=` if they exist."
        )

    def _check_rows(self, argument: str) -> CandidateSets:
        empty = np.flatnonzero(np.diff(self.indptr) == 0)
        if len(empty):
            raise ValueError(f"{argument}: row {empty[0]} has no candidate; {UNLABELED}.")
        return self

    # -- from what people have -------------------------------------------------------------

    @classmethod
    def from_votes(
        cls,
        items: Iterable[Hashable],
        labels: Iterable[Hashable],
        *,
        order: Iterable[Hashable] | None = None,
        classes: Iterable[Hashable] | None = None,
    ) -> CandidateSets:
        """Candidates from a long table of votes: whatever label an item got from anybody.

        Parameters
        ----------
        items : sequence
            The item that each vote is about.
        labels : sequence of the same length
            The label that the vote gives it.
        order : sequence of items, optional
            Which item each row is about, for instance the ids of a table of features. By default
            the distinct items, sorted, as from :func:`numpy.unique`.
        classes : sequence of labels, optional
            All labels there are; by default those that got a vote.

        Returns
        -------
        CandidateSets
        """
        voted, given = _formats.as_list(items), _formats.as_list(labels)
        if len(voted) != len(given):
            raise ValueError(
                f"labels: {len(given)} labels for {len(voted)} items; give one label a vote."
            )
        names = None if classes is None else sort_classes(classes)[0]
        codes, found = _formats.encode(given, names, np.arange(len(given) + 1), "labels")
        wanted, places = (None, None) if order is None else sort_classes(order)
        try:
            rows, kept = encode_labels(voted, wanted)
        except LabelError as error:
            remedy = "" if order is None else " Every item voted on must stand in `order`."
            raise ValueError(f"items: vote {error.position}: {error}{remedy}") from None
        sets = cls._trusted(*_formats.from_pairs(rows, codes, len(kept), found))
        if places is not None:
            sets = sets[np.argsort(places)]
        return sets._check("items")

    @classmethod
    def from_annotators(
        cls,
        A: ArrayLike,
        *,
        missing: Hashable = -1,
        classes: Iterable[Hashable] | None = None,
    ) -> CandidateSets:
        """Candidates from a matrix with a row an example and a column an annotator.

        Parameters
        ----------
        A : array-like of shape (n, annotators)
            Labels. Gaps are NaN, None or `missing`.
        missing : label, default=-1
            What else stands for a gap.
        classes : sequence of labels, optional
            All labels there are; by default those that somebody gave.

        Returns
        -------
        CandidateSets
        """
        answers = _formats.as_matrix(A, "A", "a row an example and a column an annotator")
        given = _answered(answers, missing)
        flat = answers[given]
        if flat.dtype.kind == "f" and (flat == np.floor(flat)).all():
            flat = flat.astype(np.int64)  # NaN for a gap had turned whole numbers into floats
        names = None if classes is None else sort_classes(classes)[0]
        starts = np.concatenate(([0], np.cumsum(given.sum(axis=1))))
        codes, found = _formats.encode(flat, names, starts, "A")
        rows = np.nonzero(given)[0]
        return cls._trusted(*_formats.from_pairs(rows, codes, len(answers), found))._check("A")

    @classmethod
    def from_excluded(
        cls, E: CandidatesLike, *, classes: Iterable[Hashable], sep: str | None = None
    ) -> CandidateSets:
        """Candidates from labels that are ruled out: all other classes.

        Parameters
        ----------
        E : any format of `as_candidates`
            The labels that each example does *not* have; here a set may be empty.
        classes : sequence of labels
            All labels there are.
        sep : str, optional
            What separates the labels of a string.

        Returns
        -------
        CandidateSets
        """
        excluded = _read(E, classes, sep, "E")
        indptr, indices, names = excluded.indptr, excluded.indices, excluded.classes
        n, q = len(indptr) - 1, len(names)
        possible = np.ones(n * q, dtype=bool)
        possible[_keys(indptr, indices, q)] = False
        left = np.broadcast_to(np.arange(q, dtype=np.int32), (n, q)).ravel()[possible]
        starts = np.concatenate(([0], np.cumsum(q - np.diff(indptr))))
        return cls._trusted(starts, left, names)._check("E")

    @classmethod
    def from_coarse(
        cls,
        labels: Iterable[Hashable],
        *,
        groups: Mapping[Any, Iterable[Hashable]],
        classes: Iterable[Hashable] | None = None,
    ) -> CandidateSets:
        """Candidates from coarse labels, each of which stands for a group of classes.

        Parameters
        ----------
        labels : sequence
            For each example a key of `groups`, or a class itself where it is known.
        groups : mapping from a coarse label to its classes
            For instance ``{"bird": ["eagle", "wren"]}``.
        classes : sequence of labels, optional
            All classes; by default the members of the groups.

        Returns
        -------
        CandidateSets
        """
        given = _formats.as_list(labels)
        sets = {name: tuple(group) for name, group in groups.items()}
        for name, group in sets.items():
            if not group:
                raise ValueError(
                    f"groups: {name!r} has no class; name its classes or leave it out."
                )
        known = dict.fromkeys(chain.from_iterable(sets.values()))
        names = sort_classes(known if classes is None else classes)[0]
        allowed = set(as_objects(names))
        for label in known:
            if label not in allowed:
                raise ValueError(f"groups: {label!r} is not one of `classes`; {OUTSIDE}.")
        sets |= {label: (label,) for label in allowed if label not in sets}
        for row, label in enumerate(given):
            if not isinstance(label, Hashable) or label not in sets:
                raise ValueError(
                    f"labels: row {row} has {label!r}, which is neither a group nor a class; "
                    "add it to `groups` or to `classes`."
                )
        pattern = _formats.from_collections([sets[label] for label in given], names, "labels")
        return cls._trusted(*pattern)._check("labels")

    @classmethod
    def from_scores(
        cls,
        P: ArrayLike,
        *,
        top_k: int | None = None,
        threshold: float | None = None,
        classes: Iterable[Hashable] | None = None,
    ) -> CandidateSets:
        """Candidates from the scores of a model or from soft labels.

        Parameters
        ----------
        P : array-like of shape (n, q)
            A score for each class; the columns of a data frame name the classes.
        top_k : int, optional
            Keep the `top_k` best classes of each example; ties go to the first class.
        threshold : float, optional
            Keep the classes that score at least this much, and the best one in any case.
        classes : sequence of q labels, optional
            What the columns are called; by default 0, 1, ….

        Returns
        -------
        CandidateSets
        """
        if (top_k is None) == (threshold is None):
            raise ValueError("top_k, threshold: give one of the two.")
        if classes is None and hasattr(P, "columns"):
            classes = list(P.columns)
        scores = _formats.as_matrix(P, "P", "a row an example and a column a class").astype(float)
        unknown = np.isnan(scores).any(axis=1)
        if unknown.any():
            raise ValueError(f"P: row {np.argmax(unknown)} has NaN; give every class a score.")
        q = scores.shape[1]
        kept = q if top_k is None else top_k
        if not 1 <= kept <= q:
            raise ValueError(f"top_k: {top_k} is not between 1 and the {q} classes there are.")
        best = np.argsort(-scores, axis=1, kind="stable")[:, :kept]
        chosen = np.zeros(scores.shape, dtype=bool)
        np.put_along_axis(chosen, best, True, axis=1)
        if threshold is not None:
            chosen = scores >= threshold
            np.put_along_axis(chosen, best[:, :1], True, axis=1)
        return cls._trusted(*_formats.from_matrix(chosen, classes, "P"))._check("P")

    # -- as a sequence ---------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """Number of examples and number of classes."""
        return len(self), len(self.classes)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of candidates of each example."""
        return np.diff(self.indptr)

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __iter__(self) -> Iterator[frozenset[Any]]:
        return map(frozenset, self.to_lists())

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):
            if len(key) != 2 or key[1] is not Ellipsis:
                raise IndexError("candidate sets are indexed by row: S[rows].")
            key = key[0]
        if isinstance(key, int | np.integer):
            row = range(len(self))[int(key)]
            return frozenset(self[row : row + 1].to_lists()[0])
        if isinstance(key, slice) and key.step in (None, 1):
            start, stop, _ = key.indices(len(self))
            indptr = self.indptr[start : max(start, stop) + 1]
            indices = self.indices[indptr[0] : indptr[-1]]
            return CandidateSets._trusted(indptr - indptr[0], indices, self.classes)
        rows = np.arange(len(self))[key if isinstance(key, slice) else _row_index(key)]
        sizes = self.sizes[rows]
        indptr = np.concatenate(([0], np.cumsum(sizes)))
        places = np.arange(indptr[-1]) + np.repeat(self.indptr[rows] - indptr[:-1], sizes)
        return CandidateSets._trusted(indptr, self.indices[places], self.classes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CandidateSets):
            return NotImplemented
        return (
            np.array_equal(self.indptr, other.indptr)
            and np.array_equal(self.indices, other.indices)
            and as_objects(self.classes) == as_objects(other.classes)
        )

    __hash__ = None  # type: ignore[assignment]

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"candidate sets can't be changed ({name}); build new ones.")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"candidate sets can't be changed ({name}); build new ones.")

    def __reduce__(self) -> tuple[Any, ...]:
        return CandidateSets._trusted, (self.indptr, self.indices, self.classes)

    def __copy__(self) -> CandidateSets:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> CandidateSets:
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Give the dense 0/1 matrix, which is how scikit-learn's tools look at it."""
        if copy is False:
            raise ValueError("candidate sets can't become an array without a copy.")
        matrix = np.zeros(self.shape, dtype=np.uint8 if dtype is None else dtype)
        matrix.reshape(-1)[_keys(self.indptr, self.indices, len(self.classes))] = 1
        return matrix

    def __repr__(self) -> str:
        n, q = self.shape
        if not n:
            return f"<CandidateSets: no examples, {q} classes>"
        sizes = self.sizes
        head = (
            f"<CandidateSets: {n} examples, {q} classes, "
            f"{sizes.mean():.2f} candidates on average ({sizes.min()} to {sizes.max()})"
        )
        shown = [_braced(labels) for labels in self[:3].to_lists()]
        more = [f"  … {n - 3} more"] if n > 3 else []
        return "\n".join([head, *shown, *more]) + ">"

    # -- questions and other formats -------------------------------------------------------

    def contains(self, labels: Any) -> NDArray[np.bool_]:
        """Whether each example has the given label among its candidates.

        Parameters
        ----------
        labels : one label, or a sequence of one label an example
            A label that is not one of the classes is in no set.

        Returns
        -------
        inside : bool array of shape (n,)
        """
        given = _formats.as_list([labels] if self._is_one_label(labels) else labels)
        if len(given) not in (1, len(self)):
            raise ValueError(
                f"labels: {len(given)} labels for {len(self)} examples; give one label an example, "
                "or one label for all."
            )
        q = len(self.classes)
        codes = np.broadcast_to(lookup_codes(given, self.classes), len(self))
        wanted = np.where(codes < 0, -1, np.arange(len(self)) * q + codes)
        keys = np.append(_keys(self.indptr, self.indices, q), np.iinfo(np.int64).max)
        return keys[np.searchsorted(keys, wanted)] == wanted

    def _is_one_label(self, labels: Any) -> bool:
        if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
            return True
        return isinstance(labels, tuple) and labels in set(as_objects(self.classes))

    def to_matrix(self) -> sparse.csr_array:
        """Give the sparse n × q matrix with a 1 for every candidate."""
        data = np.ones(len(self.indices), dtype=np.int64)
        return sparse.csr_array((data, self.indices.copy(), self.indptr.copy()), shape=self.shape)

    def to_lists(self) -> list[list[Any]]:
        """Give the sorted candidate labels of each example, as Python objects."""
        labels = as_objects(self.classes[self.indices])
        return [labels[start:end] for start, end in pairwise(self.indptr.tolist())]

    def to_strings(self, sep: str = "|") -> list[str]:
        """Give each set as one string, the way it is written to a table."""
        texts = np.empty(len(self.classes), dtype=object)
        texts[:] = [str(label) for label in as_objects(self.classes)]
        for text in texts:
            if sep in text or text != text.strip() or not text:
                raise ValueError(
                    f"sep: the label {text!r} can't be read back from a string with {sep!r} "
                    "between the labels; choose another separator."
                )
        labels = texts[self.indices].tolist()
        return [sep.join(labels[start:end]) for start, end in pairwise(self.indptr.tolist())]

    def with_classes(self, classes: Iterable[Hashable]) -> CandidateSets:
        """Give the same sets over other classes, which have to hold every candidate label."""
        names = sort_classes(classes)[0]
        codes = lookup_codes(as_objects(self.classes), names)[self.indices]
        outside = np.flatnonzero(codes < 0)
        if len(outside):
            row = int(np.searchsorted(self.indptr, outside[0], side="right")) - 1
            label = as_objects(self.classes)[self.indices[outside[0]]]
            raise ValueError(
                f"S: row {row}: the label {label!r} is not one of the classes; {OUTSIDE}."
            )
        return CandidateSets._trusted(self.indptr, codes, names)


def as_candidates(
    S: CandidatesLike,
    *,
    classes: Iterable[Hashable] | None = None,
    sep: str | None = None,
) -> CandidateSets:
    """Turn whatever describes candidate labels into `CandidateSets`.

    Parameters
    ----------
    S : candidate sets in one of these formats
        - `CandidateSets`: taken as they are;
        - a sequence (list, array, pandas or polars column) of sets, lists or tuples of labels;
        - a 0/1 matrix with a column a class: array, scipy sparse matrix, data frame (its columns
          name the classes);
        - a sequence of strings with `sep` between the labels;
        - a plain sequence of labels: every set has one candidate, as in supervised learning.
    classes : sequence of labels, optional
        All labels there are. For a matrix the names of its columns; otherwise labels outside are
        an error, and labels that nobody has as a candidate are kept. Default: those that occur
        (for a matrix 0, 1, …).
    sep : str, optional
        What separates the labels of a string, for instance ``"|"``. Blanks around labels and
        empty labels are dropped.

    Returns
    -------
    CandidateSets

    Raises
    ------
    ValueError
        Says which row is wrong and what to do: no candidate, a missing label, a label outside
        `classes`, matrix entries other than 0 and 1, fewer than two classes.

    Examples
    --------
    >>> from skpll import as_candidates
    >>> as_candidates(["cat|dog", "cat"], sep="|")
    <CandidateSets: 2 examples, 2 classes, 1.50 candidates on average (1 to 2)
      {'cat', 'dog'}
      {'cat'}>
    """
    if isinstance(S, CandidateSets) and classes is None:
        return S
    return _read(S, classes, sep, "S")._check("S")


def training_candidates(y: CandidatesLike) -> CandidateSets:
    """Read the `y` of `fit`; numbers that are no whole numbers are measurements, not labels."""
    if isinstance(y, CandidateSets):
        return y._check("y")
    candidates = _read(y, None, None, "y")._check("y")
    classes = candidates.classes
    if classes.dtype.kind == "f" and (classes != np.floor(classes)).any():
        raise ValueError(
            "y: Unknown label type: the labels are continuous numbers. For regression targets use "
            "a regressor; if these are labels, wrap them: as_candidates(y)."
        )
    return candidates


def scoring_candidates(y: CandidatesLike) -> CandidateSets:
    """Read the `y` of `score`, in which a single class may occur."""
    return _read(y, None, None, "y")._check_rows("y")


def _read(
    S: CandidatesLike, classes: Iterable[Hashable] | None, sep: str | None, argument: str
) -> CandidateSets:
    """Read any format; sets may be empty, and there may be a single class."""
    if not isinstance(S, CandidateSets):
        return CandidateSets._trusted(*_formats.read(S, classes, sep, argument))
    return S if classes is None else S.with_classes(classes)


def _answered(answers: NDArray[Any], missing: Hashable) -> NDArray[np.bool_]:
    """Mark the entries of the annotators' matrix that are labels, not gaps."""
    if answers.dtype.kind in "biu":
        return np.asarray(answers != missing)
    if answers.dtype.kind == "f":
        return ~(np.isnan(answers) | (answers == missing))
    flat = answers.ravel().tolist()
    label = {entry: not (is_missing(entry) or entry == missing) for entry in dict.fromkeys(flat)}
    return np.fromiter(map(label.__getitem__, flat), bool, len(flat)).reshape(answers.shape)


def _braced(labels: list[Any]) -> str:
    shown = [repr(label) for label in labels[:10]]
    if len(labels) > 10:
        shown.append(f"… {len(labels) - 10} more")
    return f"  {{{', '.join(shown)}}}"


def _keys(indptr: NDArray[Any], indices: NDArray[Any], q: int) -> NDArray[np.int64]:
    """Place of every stored entry in the flattened n × q matrix; ascending if rows are sorted."""
    rows = np.repeat(np.arange(len(indptr) - 1, dtype=np.int64), np.diff(indptr))
    return rows * q + indices


def _sorted_rows(
    indptr: NDArray[np.int64], indices: NDArray[np.int64], q: int
) -> NDArray[np.int64]:
    """Sort the columns inside each row; duplicates are an error."""
    keys = np.sort(_keys(indptr, indices, q))
    twice = np.flatnonzero(keys[1:] == keys[:-1])
    if len(twice):
        raise ValueError(f"indices: row {keys[twice[0]] // q} names a class twice.")
    return keys % max(q, 1)


def _check_pattern(indptr: NDArray[np.int64], indices: NDArray[np.int64], q: int) -> None:
    if indptr.ndim != 1 or indices.ndim != 1 or not len(indptr):
        raise ValueError("indptr, indices: expected one-dimensional arrays.")
    if indptr[0] != 0 or indptr[-1] != len(indices) or (np.diff(indptr) < 0).any():
        raise ValueError(
            f"indptr: must rise from 0 to the number of entries of `indices` ({len(indices)})."
        )
    outside = np.flatnonzero((indices < 0) | (indices >= q))
    if len(outside):
        row = int(np.searchsorted(indptr, outside[0], side="right")) - 1
        raise ValueError(
            f"indices: row {row} has class number {indices[outside[0]]}, but there are {q} classes."
        )


def _row_index(key: Any) -> NDArray[Any]:
    rows = np.asarray(key)
    if rows.size == 0 and rows.dtype.kind != "b":
        rows = rows.astype(np.intp)
    if rows.ndim != 1 or rows.dtype.kind not in "biu":
        raise IndexError("candidate sets are indexed by row numbers, a slice or a mask.")
    return rows
