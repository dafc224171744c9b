"""Candidate sets: whatever people have goes in, one compressed structure comes out.

A set of candidates is all that is known of the label of an example: one of them is right. `n` such
sets over `q` classes are held as the pattern of an `n × q` sparse matrix in compressed row form:
the candidates of example `i` are ``classes[indices[indptr[i]:indptr[i + 1]]]``. Where there is
evidence for the candidates, such as votes or scores, each of them has a positive weight.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import chain, pairwise
from types import EllipsisType
from typing import TYPE_CHECKING, NoReturn, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse
from scipy.special import entr

from . import _formats
from ._docs import documented
from ._errors import ArgumentError
from ._labels import (
    OUTSIDE,
    UNLABELED,
    LabelError,
    as_objects,
    class_array,
    encode_labels,
    is_missing,
    lookup_codes,
    row_of,
    sort_classes,
)
from ._typing import Array, CandidatesLike, Floats, Label, MatrixLike

if TYPE_CHECKING:
    from .crowd import Aggregation

__all__ = ["CandidateSets", "CandidatesLike", "as_candidates"]

MIN_SCORE = 1e-6
"""Smaller scores count as this share of the best score of their row."""

MIN_LIKELIHOOD = 1e-12
"""Smaller likelihoods of the votes of a row, of which the largest is one, count as this."""

Number = TypeVar("Number", bound=np.generic)

Rows: TypeAlias = slice | Sequence[int] | NDArray[np.integer | np.bool_]
"""Which examples to take: a slice, row numbers or a mask."""


@documented
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
        The distinct labels, sorted. Labels in no candidate set are allowed.
    weights : array, optional
        The evidence for each candidate, in the order of `indices`: positive numbers, which are
        compared inside an example only.

    Attributes
    ----------
    classes : array of shape (q,)
        The sorted labels.
    indptr : int64 array of shape (n + 1,)
        Row starts.
    indices : int32 array
        Positions in `classes`, ascending inside each row.
    weights : float64 array or None
        The evidence for each candidate; None if there is none.

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

    __slots__ = ("classes", "indices", "indptr", "weights")

    classes: Array
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    weights: Floats | None

    def __init__(
        self,
        indptr: ArrayLike,
        indices: ArrayLike,
        classes: ArrayLike,
        weights: ArrayLike | None = None,
    ) -> None:
        names = np.asarray(classes)
        kept, order = sort_classes(names)
        if not np.array_equal(order, np.arange(len(names))):
            raise ArgumentError(
                "classes", "the labels are not sorted; sort them, and number `indices` accordingly."
            )
        starts = np.asarray(indptr, dtype=np.int64)
        columns = np.asarray(indices, dtype=np.int64)
        _check_pattern(starts, columns, len(kept))
        order = _row_order(starts, columns, len(kept))
        evidence = None if weights is None else _checked_weights(weights, starts)[order]
        self._set(starts, columns[order], kept, evidence)
        self._check("indptr")

    def _set(self, indptr: Array, indices: Array, classes: Array, weights: Floats | None) -> None:
        """Set the attributes, as arrays that can't be changed."""
        dtypes = {"indptr": np.int64, "indices": np.int32, "classes": None, "weights": np.float64}
        arrays = (indptr, indices, classes, weights)
        for (name, dtype), array in zip(dtypes.items(), arrays, strict=True):
            array = None if array is None else np.ascontiguousarray(array, dtype=dtype)
            if array is not None and array.flags.writeable:
                array = array.view()
                array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def _trusted(
        cls, indptr: Array, indices: Array, classes: Array, weights: Floats | None = None
    ) -> CandidateSets:
        """Build from arrays that are known to be right, without checking or copying them."""
        self = object.__new__(cls)
        self._set(indptr, indices, classes, weights)
        return self

    def _check(self, argument: str) -> CandidateSets:
        """Refuse what nothing can be learned from: an empty set, fewer than two classes."""
        self._check_rows(argument)
        if len(self.classes) >= 2:
            return self
        if not len(self.classes):
            raise ArgumentError(argument, "there is no example, so there are no classes.")
        raise ArgumentError(
            argument,
            f"only one class is present ({as_objects(self.classes)[0]!r}); learning "
            "needs two at least. Name the others with `classes=` if they exist.",
        )

    def _check_rows(self, argument: str) -> CandidateSets:
        empty = np.flatnonzero(np.diff(self.indptr) == 0)
        if len(empty):
            raise ArgumentError(argument, f"row {empty[0]} has no candidate; {UNLABELED}.")
        return self

    # -- from what people have -------------------------------------------------------------

    @classmethod
    def from_votes(
        cls,
        items: Iterable[Hashable],
        labels: Iterable[Hashable],
        *,
        annotators: Iterable[Hashable] | None = None,
        order: Iterable[Hashable] | None = None,
        classes: Iterable[Hashable] | None = None,
    ) -> CandidateSets:
        """Return the labels that each item got in a long table of votes.

        The number of votes is the weight of a candidate. If it is known whose the votes are, the
        weight is how likely they are if the candidate is right, by what each annotator says about
        items of each class (`skpll.crowd.aggregate`, see `from_aggregation`).

        Parameters
        ----------
        items : sequence
            The item that each vote is about.
        labels : sequence of the same length
            The label that the vote gives it.
        annotators : sequence of the same length, optional
            Whose vote it is. Of several votes of an annotator on an item the last one counts.
        order : sequence of items, optional
            Which item each row is about, for instance the ids of a table of features. By default
            the distinct items, sorted, as from :func:`numpy.unique`.
        classes : sequence of labels, optional
            All labels there are; by default those that got a vote.

        <<candidate_sets>>
        >>> CandidateSets.from_votes(["x", "x", "x", "y"], ["cat", "dog", "cat", "dog"])
        <CandidateSets: 2 examples, 2 classes, 1.50 candidates on average (1 to 2), with weights
          {'cat': 2, 'dog': 1}
          {'dog': 1}>
        """
        voted, given = _formats.as_list(items), _formats.as_list(labels)
        if len(voted) != len(given):
            raise ArgumentError(
                "labels", f"{len(given)} labels for {len(voted)} items; give one label a vote."
            )
        rows, named, places = _encode_items(voted, order)
        names = None if classes is None else sort_classes(classes)[0]
        if annotators is None:
            codes, found = _formats.encode(given, names, np.arange(len(given) + 1), "labels")
            once = np.ones(len(codes))
            sets = cls._trusted(*_formats.from_pairs(rows, codes, len(named), found, once))
        else:
            votes = _aggregated(voted, _formats.as_list(annotators), given)
            sets = cls.from_aggregation(votes)[lookup_codes(as_objects(named), votes.items)]
            sets = sets if names is None else sets.with_classes(names)
        return (sets if places is None else sets[places])._check("items")

    @classmethod
    def from_aggregation(cls, found: Aggregation) -> CandidateSets:
        """Candidates from votes of which `skpll.crowd.aggregate` has made labels.

        The candidates of an item are the labels that it got, and the most probable one if that got
        no vote; all classes where there is no vote. The weight of a candidate is how likely the
        votes are if it is right: evidence for methods that have features, such as `PLLOO` and
        `CrossFitClassifier`.

        Parameters
        ----------
        found : skpll.crowd.Aggregation
            What came of the votes.

        Returns
        -------
        CandidateSets
            One row per item of `found`.

        Examples
        --------
        >>> from skpll import CandidateSets
        >>> from skpll.crowd import aggregate
        >>> found = aggregate([1, 1, 1, 2, 2], list("abcab"), list("xxyyy"))
        >>> CandidateSets.from_aggregation(found).to_lists()
        [['x', 'y'], ['y']]
        """
        counts = found.votes.counts
        named = (counts > 0) | ~counts.any(axis=1, keepdims=True)
        named[np.arange(len(named)), found.codes] = True
        rows, columns = np.nonzero(named)
        starts = np.concatenate(([0], np.cumsum(named.sum(axis=1))))
        weights = np.maximum(found.likelihoods[rows, columns], MIN_LIKELIHOOD)
        return cls._trusted(starts, columns, found.classes, weights)._check("found")

    @classmethod
    def from_annotators(
        cls,
        A: ArrayLike,
        *,
        missing: Hashable = -1,
        classes: Iterable[Hashable] | None = None,
    ) -> CandidateSets:
        """Candidates from a matrix in which each annotator has a column.

        How many annotators named it is the weight of a candidate.

        Parameters
        ----------
        A : array-like of shape (n, annotators)
            Labels. Gaps are NaN, None or `missing`.
        missing : label, default=-1
            What else stands for a gap.
        classes : sequence of labels, optional
            All labels there are; by default those that occur.

        <<candidate_sets>>
        >>> CandidateSets.from_annotators([[0, 1, 0], [2, -1, 2]])
        <CandidateSets: 2 examples, 3 classes, 1.50 candidates on average (1 to 2), with weights
          {0: 2, 1: 1}
          {2: 2}>
        """
        answers = _formats.as_matrix(A, "A", "a row an example and a column an annotator")
        given = _answered(answers, missing)
        flat = answers[given]
        if flat.dtype.kind == "f" and (flat == np.floor(flat)).all():
            flat = flat.astype(np.int64)  # NaN for a gap had turned whole numbers into floats
        names = None if classes is None else sort_classes(classes)[0]
        starts = np.concatenate(([0], np.cumsum(given.sum(axis=1))))
        codes, found = _formats.encode(flat, names, starts, "A")
        rows, once = np.nonzero(given)[0], np.ones(len(codes))
        pattern = _formats.from_pairs(rows, codes, len(answers), found, once)
        return cls._trusted(*pattern)._check("A")

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

        <<candidate_sets>>
        >>> E = [{"cat"}, {"cat", "fox"}]
        >>> CandidateSets.from_excluded(E, classes=["cat", "dog", "fox"]).to_lists()
        [['dog', 'fox'], ['dog']]
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
        groups: Mapping[Label, Iterable[Hashable]],
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

        <<candidate_sets>>
        >>> birds = {"bird": ["eagle", "wren"]}
        >>> CandidateSets.from_coarse(["bird", "wren"], groups=birds).to_lists()
        [['eagle', 'wren'], ['wren']]
        """
        given = _formats.as_list(labels)
        sets = {name: tuple(group) for name, group in groups.items()}
        for name, group in sets.items():
            if not group:
                raise ArgumentError(
                    "groups", f"{name!r} has no class; name its classes or leave it out."
                )
        known = dict.fromkeys(chain.from_iterable(sets.values()))
        names = sort_classes(known if classes is None else classes)[0]
        allowed = set(as_objects(names))
        for label in known:
            if label not in allowed:
                raise ArgumentError("groups", f"{label!r} is not one of `classes`; {OUTSIDE}.")
        sets |= {label: (label,) for label in allowed if label not in sets}
        for row, label in enumerate(given):
            if not isinstance(label, Hashable) or label not in sets:
                raise ArgumentError(
                    "labels",
                    f"row {row} has {label!r}, which is neither a group nor a class; "
                    "add it to `groups` or to `classes`.",
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

        Where no score is negative, the score is the weight of a candidate (at least a millionth of
        the best of its row); scores that may be negative or infinite only say which labels are
        candidates.

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

        <<candidate_sets>>
        >>> CandidateSets.from_scores([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], threshold=0.25)
        <CandidateSets: 2 examples, 3 classes, 1.50 candidates on average (1 to 2), with weights
          {0: 0.5, 1: 0.3}
          {2: 0.8}>
        """
        if (top_k is None) == (threshold is None):
            raise ArgumentError("top_k, threshold", "give one of the two.")
        if classes is None and hasattr(P, "columns"):
            classes = list(P.columns)
        scores = _formats.as_matrix(P, "P", "a row an example and a column a class").astype(float)
        unknown = np.isnan(scores).any(axis=1)
        if unknown.any():
            raise ArgumentError("P", f"row {np.argmax(unknown)} has NaN; give every class a score.")
        q = scores.shape[1]
        kept = 1 if top_k is None else top_k
        if not 1 <= kept <= q:
            raise ArgumentError("top_k", f"{top_k} is not between 1 and the {q} classes there are.")
        best = np.argsort(-scores, axis=1, kind="stable")[:, :kept]
        chosen = np.zeros(scores.shape, bool) if threshold is None else scores >= threshold
        np.put_along_axis(chosen, best, True, axis=1)
        pattern = _formats.from_matrix(chosen, classes, "P")
        sets = cls._trusted(*pattern)._check("P")
        if (scores < 0).any() or np.isinf(scores).any():
            return sets
        positive = np.maximum(scores, MIN_SCORE * scores.max(axis=1, keepdims=True))
        if classes is not None:
            positive = positive[:, sort_classes(classes)[1]]
        weights = sets.entries(positive)
        return sets.with_weights(weights) if (weights > 0).all() else sets  # zeros say nothing

    @classmethod
    def concatenate(cls, parts: Iterable[CandidateSets]) -> CandidateSets:
        """Put candidate sets one after the other.

        Parameters
        ----------
        parts : sequence of CandidateSets
            Their classes may differ. Where some have weights, candidates of the others weigh one.

        Returns
        -------
        CandidateSets
        """
        sets = list(parts)
        if not sets:
            raise ArgumentError("parts", "there is nothing to put together; give one at least.")
        names = dict.fromkeys(chain.from_iterable(as_objects(part.classes) for part in sets))
        try:
            common = class_array(sorted(names))
        except TypeError as error:
            raise ArgumentError(
                "parts", f"the classes can't be sorted together ({error})."
            ) from None
        sets = [part.with_classes(common) for part in sets]
        weights = None
        if any(part.weights is not None for part in sets):
            weights = np.concatenate([_evidence(part) for part in sets])
        sizes = np.concatenate([part.sizes for part in sets])
        indices = np.concatenate([part.indices for part in sets])
        starts = np.concatenate(([0], np.cumsum(sizes)))
        return cls._trusted(starts, indices, common, weights)

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

    def __iter__(self) -> Iterator[frozenset[Label]]:
        return map(frozenset, self.to_lists())

    @overload
    def __getitem__(self, key: int | np.integer) -> frozenset[Label]: ...

    @overload
    def __getitem__(self, key: Rows | tuple[Rows, EllipsisType]) -> CandidateSets: ...

    def __getitem__(
        self, key: int | np.integer | Rows | tuple[Rows, EllipsisType]
    ) -> frozenset[Label] | CandidateSets:
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
            entries = slice(indptr[0], indptr[-1])
            return self._part(indptr - indptr[0], entries)
        rows = np.arange(len(self))[key if isinstance(key, slice) else _row_index(key)]
        return self._part(np.append(0, np.cumsum(self.sizes[rows])), self.places(rows))

    def _part(self, indptr: Array, entries: Array | slice) -> CandidateSets:
        weights = None if self.weights is None else self.weights[entries]
        return CandidateSets._trusted(indptr, self.indices[entries], self.classes, weights)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CandidateSets):
            return NotImplemented
        return (
            np.array_equal(self.indptr, other.indptr)
            and np.array_equal(self.indices, other.indices)
            and as_objects(self.classes) == as_objects(other.classes)
            and (self.weights is None) == (other.weights is None)
            and np.array_equal(_evidence(self), _evidence(other))
        )

    __hash__ = None  # type: ignore[assignment]

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"candidate sets can't be changed ({name}); build new ones.")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"candidate sets can't be changed ({name}); build new ones.")

    def __reduce__(self) -> tuple[object, ...]:
        return CandidateSets._trusted, (self.indptr, self.indices, self.classes, self.weights)

    def __copy__(self) -> CandidateSets:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> CandidateSets:
        return self

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        """Return the dense 0/1 matrix, which is how scikit-learn's tools look at it."""
        if _read_by_metric():
            raise TypeError(
                "y_true: candidate sets where this metric needs one true label for each example. "
                "Leave out `scoring`, or choose a metric of candidate sets, such as "
                'scoring="covering_rate"; for the 0/1 matrix itself use numpy.asarray(S). After '
                "this error, a search has NaN for all scores and keeps its first setting, which "
                'means nothing; error_score="raise" stops it.'
            )
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
            f"{'' if self.weights is None else ', with weights'}"
        )
        shown = [
            f"  {{{', '.join(row[:10] + [f'… {len(row) - 10} more'] * (len(row) > 10))}}}"
            for row in _shown_rows(self[:3])
        ]
        more = [f"  … {n - 3} more"] if n > 3 else []
        return "\n".join([head, *shown, *more]) + ">"

    def _repr_html_(self) -> str:
        """Return the first rows as a table for notebooks."""
        head, *_ = repr(self).strip("<>").splitlines()
        cells = [
            f"<tr><th>{number}</th><td>{escape(', '.join(labels[:10]))}"
            f"{f', … {len(labels) - 10} more' if len(labels) > 10 else ''}</td></tr>"
            for number, labels in enumerate(_shown_rows(self[:5]))
        ]
        more = [f"<tr><th>…</th><td>{len(self) - 5} more</td></tr>"] if len(self) > 5 else []
        return f"<p>{escape(head)}</p><table>{''.join(cells + more)}</table>"

    # -- questions and other formats -------------------------------------------------------

    def contains(self, labels: Label | Iterable[Label]) -> NDArray[np.bool_]:
        """Return whether each example has the given label among its candidates.

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
            raise ArgumentError(
                "labels",
                f"{len(given)} labels for {len(self)} examples; give one label an example, "
                "or one label for all.",
            )
        q = len(self.classes)
        codes = np.broadcast_to(lookup_codes(given, self.classes), len(self))
        wanted = np.where(codes < 0, -1, np.arange(len(self)) * q + codes)
        keys = np.append(_keys(self.indptr, self.indices, q), np.iinfo(np.int64).max)
        return keys[np.searchsorted(keys, wanted)] == wanted

    def _is_one_label(self, labels: Label) -> bool:
        if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
            return True
        return isinstance(labels, tuple) and labels in set(as_objects(self.classes))

    def to_matrix(self, values: ArrayLike | None = None) -> sparse.csr_array:
        """Return a sparse n × q matrix with a 1, or the given value, at every candidate."""
        data = np.ones(len(self.indices), dtype=np.int64) if values is None else np.asarray(values)
        return sparse.csr_array((data, self.indices.copy(), self.indptr.copy()), shape=self.shape)

    def to_lists(self) -> list[list[Label]]:
        """Return the sorted candidate labels of each example, as Python objects."""
        labels = as_objects(self.classes[self.indices])
        return [labels[start:end] for start, end in pairwise(self.indptr.tolist())]

    def to_strings(self, sep: str = "|") -> list[str]:
        """Return each set as one string, as it is written to a table."""
        texts = np.empty(len(self.classes), dtype=object)
        texts[:] = [str(label) for label in as_objects(self.classes)]
        for text in texts:
            if sep in text or text != text.strip() or not text:
                raise ArgumentError(
                    "sep",
                    f"the label {text!r} can't be read back from a string with {sep!r} "
                    "between the labels; choose another separator.",
                )
        labels = texts[self.indices].tolist()
        return [sep.join(labels[start:end]) for start, end in pairwise(self.indptr.tolist())]

    def with_classes(self, classes: Iterable[Hashable]) -> CandidateSets:
        """Return the same sets over other classes, which must include every candidate."""
        names = sort_classes(classes)[0]
        codes = lookup_codes(as_objects(self.classes), names)[self.indices]
        outside = np.flatnonzero(codes < 0)
        if len(outside):
            row = row_of(self.indptr, outside[0])
            label = as_objects(self.classes)[self.indices[outside[0]]]
            raise ArgumentError(
                "S", f"row {row}: the label {label!r} is not one of the classes; {OUTSIDE}."
            )
        return CandidateSets._trusted(self.indptr, codes, names, self.weights)

    # -- one value for each candidate, in the order of `indices` ---------------------------

    @property
    def rows(self) -> NDArray[np.int64]:
        """The example that each candidate belongs to."""
        return self.spread(np.arange(len(self)))

    def places(self, rows: Array) -> NDArray[np.intp]:
        """Return the positions in `indices` of the candidates of some examples, in their order."""
        sizes = self.sizes[rows]
        ends = np.cumsum(sizes)
        return np.arange(ends[-1] if len(ends) else 0) + np.repeat(
            self.indptr[rows] - (ends - sizes), sizes
        )

    def spread(self, values: NDArray[Number]) -> NDArray[Number]:
        """Repeat the value of each example for all of its candidates."""
        return np.repeat(values, self.sizes)

    def entries(self, matrix: MatrixLike) -> Floats:
        """Return the entries of an n × q matrix, dense or sparse, at the candidates."""
        return np.asarray(matrix[self.rows, self.indices], dtype=np.float64).ravel()

    def row_sums(self, values: NDArray[Number]) -> NDArray[Number]:
        """Sum the values of the candidates of each example."""
        return np.asarray(np.add.reduceat(values, self.indptr[:-1]))

    def row_max(self, values: NDArray[Number]) -> NDArray[Number]:
        """Return the largest value among the candidates of each example."""
        return np.asarray(np.maximum.reduceat(values, self.indptr[:-1]))

    def row_argmax(self, values: Array) -> NDArray[np.int64]:
        """Return the position in `indices` of the largest value of each example, the first one."""
        largest = np.flatnonzero(values == self.spread(self.row_max(values)))
        return largest[np.searchsorted(largest, self.indptr[:-1])]

    def row_normalized(self, values: Array) -> Floats:
        """Divide non-negative values by their sum in each example; zeros become uniform."""
        values = np.asarray(values, dtype=np.float64)
        largest = self.row_max(values)
        scaled = self.spread(largest)
        np.divide(values, scaled, out=scaled, where=scaled > 0)
        if not (largest > 0).all():
            scaled[self.spread(~(largest > 0))] = 1.0
        scaled /= self.spread(self.row_sums(scaled))
        return scaled

    def row_softmax(self, values: Floats) -> Floats:
        """Compute the softmax of the values of each example; minus infinities become uniform."""
        largest = self.spread(self.row_max(values))
        below = np.subtract(values, largest, out=np.zeros_like(values), where=np.isfinite(largest))
        return self.row_normalized(np.exp(below))

    def row_entropies(self, confidences: Floats) -> Floats:
        """Compute the entropy of the confidences of each example, which sum to one."""
        return self.row_sums(entr(confidences))

    # -- what methods start from -----------------------------------------------------------

    def seen(self, also: ArrayLike = ()) -> tuple[CandidateSets, NDArray[np.intp]]:
        """Leave out the classes that are in no candidate set; also return which are left.

        Classes whose places are given by `also` are left in any case.
        """
        counts = np.bincount(self.indices, minlength=len(self.classes))
        counts[np.asarray(also, dtype=np.intp)] += 1
        left = np.flatnonzero(counts)
        if len(left) == len(self.classes):
            return self, left
        places = (np.cumsum(counts > 0) - 1)[self.indices]
        return CandidateSets._trusted(self.indptr, places, self.classes[left], self.weights), left

    def initial_confidences(self) -> Floats:
        """Confidence in each candidate before anything is learned: its share of the weights.

        Without weights, all candidates of an example have the same confidence. In the order of
        `indices`; rows sum to one.
        """
        if self.weights is None:
            return self.spread(1 / self.sizes)
        return self.row_normalized(self.weights)

    def expected_counts(self, sample_weight: ArrayLike | None = None) -> Floats:
        """Count how many examples each class has if the initial confidences are right.

        Parameters
        ----------
        sample_weight : array-like of shape (n,), optional
            How much each example counts.

        Returns
        -------
        counts : array of shape (q,)
        """
        confidences = self.initial_confidences()
        if sample_weight is not None:
            confidences = confidences * self.spread(np.asarray(sample_weight, float))
        counts = np.bincount(self.indices, confidences, minlength=len(self.classes))
        return np.asarray(counts, dtype=np.float64)

    def with_weights(self, weights: MatrixLike | None) -> CandidateSets:
        """Return the same sets with evidence for each candidate.

        Parameters
        ----------
        weights : array-like or None
            Positive numbers: one for each candidate in the order of `indices`, or an n × q matrix
            (array, sparse matrix or data frame) with a column for each of the sorted `classes`, of
            which the entries of the candidates are taken. None drops the evidence.

        Returns
        -------
        CandidateSets
        """
        if weights is None:
            return CandidateSets._trusted(self.indptr, self.indices, self.classes)
        if hasattr(weights, "columns"):
            weights = weights[as_objects(self.classes)].to_numpy()
        matrix: MatrixLike = weights if sparse.issparse(weights) else np.asarray(weights)
        matrix = matrix.tocsr() if hasattr(matrix, "tocsr") else matrix
        if matrix.ndim == 2:
            if matrix.shape != self.shape:
                raise ArgumentError(
                    "weights",
                    f"a matrix of shape {matrix.shape} for {self.shape[0]} examples and "
                    f"{self.shape[1]} classes; give a column for each class, in sorted order.",
                )
            weights = self.entries(matrix)
        evidence = _checked_weights(weights, self.indptr)
        return CandidateSets._trusted(self.indptr, self.indices, self.classes, evidence)


def as_candidates(
    S: CandidatesLike,
    *,
    classes: Iterable[Hashable] | None = None,
    sep: str | None = None,
    weights: MatrixLike | None = None,
) -> CandidateSets:
    """Turn whatever describes candidate labels into `CandidateSets`.

    Parameters
    ----------
    S : candidate sets in one of these formats
        - `CandidateSets`: taken as they are;
        - a sequence (list, array, pandas or polars column) of sets, lists or tuples of labels;
        - a sequence of mappings from label to weight, such as ``{"cat": 3, "dog": 1}``;
        - a 0/1 matrix with a column a class: array, scipy sparse matrix, data frame (its columns
          name the classes); or a matrix of soft labels, whose rows sum to one: every positive entry
          is a candidate, and its weight;
        - a sequence of strings with `sep` between the labels;
        - a plain sequence of labels: every set has one candidate, as in supervised learning.
    classes : sequence of labels, optional
        All labels there are. For a matrix the names of its columns; otherwise labels outside are
        an error, and labels in no candidate set are kept. Default: those that occur
        (for a matrix 0, 1, …).
    sep : str, optional
        What separates the labels of a string, for instance ``"|"``. Blanks around labels and
        empty labels are dropped.
    weights : array-like, optional
        The evidence for each candidate, as in `CandidateSets.with_weights`.

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
        candidates = S
    else:
        candidates = _read(S, classes, sep, "S")._check("S")
    return candidates if weights is None else candidates.with_weights(weights)


def training_candidates(y: CandidatesLike) -> CandidateSets:
    """Read the `y` of `fit`; numbers that are no whole numbers are measurements, not labels."""
    candidates = _read(y, None, None, "y")._check_rows("y")
    if isinstance(y, CandidateSets):
        return candidates
    classes = candidates.classes
    if classes.dtype.kind == "f" and (classes != np.floor(classes)).any():
        raise ArgumentError(
            "y",
            "Unknown label type: the labels are continuous numbers. For regression targets use "
            "a regressor; if these are labels, wrap them: as_candidates(y).",
        )
    return candidates


def scoring_candidates(
    y: CandidatesLike, classes: Array | None = None, argument: str = "y"
) -> CandidateSets:
    """Read the `y` of `score`, in which a single class may occur.

    The classes of the model tell labels of another kind, which could only ever score zero.
    """
    given = _read(y, None, None, argument)._check_rows(argument)
    if classes is None:
        return given
    unnamed = getattr(y, "ndim", 1) == 2 and not hasattr(y, "columns")
    if unnamed and as_objects(given.classes) != as_objects(classes):
        raise ArgumentError(
            "y",
            f"a matrix without names for a model with {len(classes)} classes called otherwise "
            "than its columns; use as_candidates(y, classes=…).",
        )
    mine, theirs = _kind_of_labels(classes), _kind_of_labels(given.classes)
    if mine != theirs and len(given):
        raise ArgumentError(
            "y",
            f"the labels are {theirs}, such as {as_objects(given.classes)[0]!r}, but the model "
            f"learned {mine}, such as {as_objects(classes)[0]!r}; give labels of the same type.",
        )
    return given


def _read_by_metric() -> bool:
    """Return whether a metric of scikit-learn, which compares labels, is reading candidate sets."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals["__name__"].startswith(_CONVERSIONS):
        frame = frame.f_back
    return str(frame.f_globals["__name__"]).startswith(_LABEL_METRICS)


_CONVERSIONS = ("sklearn.utils", "sklearn.preprocessing")
_LABEL_METRICS = ("sklearn.metrics._classification", "sklearn.metrics._ranking")


def _kind_of_labels(classes: Array) -> str:
    first = as_objects(classes)[0] if len(classes) else None
    if isinstance(first, str | bytes):
        return "strings"
    return "numbers" if np.isscalar(first) else "objects"


def _read(
    S: CandidatesLike, classes: Iterable[Hashable] | None, sep: str | None, argument: str
) -> CandidateSets:
    """Read any format; sets may be empty, and there may be a single class."""
    if not isinstance(S, CandidateSets):
        return CandidateSets._trusted(*_formats.read(S, classes, sep, argument))
    return S if classes is None else S.with_classes(classes)


def _encode_items(
    voted: Sequence[Label], order: Iterable[Hashable] | None
) -> tuple[Array, Array, Array | None]:
    """Return the row of each vote, the sorted items, and their places in the order asked for."""
    wanted, places = (None, None) if order is None else sort_classes(order)
    try:
        rows, items = encode_labels(voted, wanted)
    except LabelError as error:
        reason = str(error)
        if order is not None:
            item = voted[error.position]
            reason = f"{item!r} is not in `order`; every item voted on must stand there."
        raise ArgumentError("items", f"vote {error.position}: {reason}") from None
    without = np.bincount(rows, minlength=len(items)) == 0
    if without.any():
        item = as_objects(items)[int(np.argmax(without))]
        raise ArgumentError("items", f"{item!r} of `order` has no vote; {UNLABELED}.")
    return rows, items, None if places is None else np.argsort(places)


def _aggregated(
    items: Sequence[Label], annotators: Sequence[Label], labels: Sequence[Label]
) -> Aggregation:
    """Return what comes of the votes of annotators."""
    from .crowd import VoteTable, aggregate_votes

    if len(annotators) != len(items):
        raise ArgumentError(
            "annotators",
            f"{len(annotators)} annotators for {len(items)} votes; give one of each vote.",
        )
    try:
        return aggregate_votes(VoteTable.from_long(items, annotators, labels, missing=()))
    except ValueError as error:
        raise ArgumentError("labels", str(error).removeprefix("labels: ")) from None


def _answered(answers: Array, missing: Hashable) -> NDArray[np.bool_]:
    """Mark the entries of the annotators' matrix that are labels, not gaps."""
    if answers.dtype.kind in "biu":
        return np.asarray(answers != missing)
    if answers.dtype.kind == "f":
        return ~(np.isnan(answers) | (answers == missing))
    flat = answers.ravel().tolist()
    label = {entry: not (is_missing(entry) or entry == missing) for entry in dict.fromkeys(flat)}
    return np.fromiter(map(label.__getitem__, flat), bool, len(flat)).reshape(answers.shape)


def _shown_rows(sets: CandidateSets) -> list[list[str]]:
    rows = [[repr(label) for label in labels] for labels in sets.to_lists()]
    if sets.weights is None:
        return rows
    ends = pairwise(sets.indptr.tolist())
    weights = [sets.weights[start:end].tolist() for start, end in ends]
    return [
        [f"{label}: {weight:.4g}" for label, weight in zip(*row, strict=True)]
        for row in zip(rows, weights, strict=True)
    ]


def _evidence(sets: CandidateSets) -> Floats:
    """Return the weights; ones if there are none."""
    return np.ones(len(sets.indices)) if sets.weights is None else sets.weights


def _keys(indptr: Array, indices: Array, q: int) -> NDArray[np.int64]:
    """Return the place of each candidate in the flattened n × q matrix."""
    rows = np.repeat(np.arange(len(indptr) - 1, dtype=np.int64), np.diff(indptr))
    return rows * q + indices


def _row_order(indptr: NDArray[np.int64], indices: NDArray[np.int64], q: int) -> NDArray[np.int64]:
    """Find the order in which columns rise inside each row; duplicates are an error."""
    keys = _keys(indptr, indices, q)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    twice = np.flatnonzero(keys[1:] == keys[:-1])
    if len(twice):
        raise ArgumentError("indices", f"row {keys[twice[0]] // q} names a class twice.")
    return order


def _checked_weights(weights: ArrayLike, indptr: NDArray[np.int64]) -> Floats:
    evidence = np.asarray(weights, dtype=np.float64)
    if evidence.shape != (indptr[-1],):
        raise ArgumentError(
            "weights", f"{evidence.size} weights for {indptr[-1]} candidates; give one a candidate."
        )
    return _formats.check_positive(evidence, indptr, "weights")


def _check_pattern(indptr: NDArray[np.int64], indices: NDArray[np.int64], q: int) -> None:
    if indptr.ndim != 1 or indices.ndim != 1 or not len(indptr):
        raise ArgumentError("indptr, indices", "expected one-dimensional arrays.")
    if indptr[0] != 0 or indptr[-1] != len(indices) or (np.diff(indptr) < 0).any():
        raise ArgumentError(
            "indptr", f"must rise from 0 to the number of entries of `indices` ({len(indices)})."
        )
    outside = np.flatnonzero((indices < 0) | (indices >= q))
    if len(outside):
        row = row_of(indptr, outside[0])
        raise ArgumentError(
            "indices",
            f"row {row} has class number {indices[outside[0]]}, but there are {q} classes.",
        )


def _row_index(key: Rows) -> Array:
    rows = np.asarray(key)
    if rows.size == 0 and rows.dtype.kind != "b":
        rows = rows.astype(np.intp)
    if rows.ndim != 1 or rows.dtype.kind not in "biu":
        raise IndexError("candidate sets are indexed by row numbers, a slice or a mask.")
    return rows
