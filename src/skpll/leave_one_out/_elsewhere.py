"""PL-LOO for data that is no array in memory: the one door to `skpll.large`.

Very many rows are worked on in blocks, tensors stay on their device, Dask collections on their
cluster, and rows that come later are added to what is kept of earlier ones. The rounds are those of
`_loop`, whose functions are applied to each block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn import get_config
from sklearn.utils import check_random_state
from sklearn.utils._array_api import get_namespace
from sklearn.utils.validation import check_is_fitted, validate_data

from skpll._errors import ArgumentError
from skpll._examples import Examples, Features
from skpll._iteration import Iterative
from skpll._labels import as_objects, lookup_codes
from skpll._temperature import FLOOR, log_scores, probabilities
from skpll.base import (
    MatrixLike,
    ScoringClassifier,
    WeightedPartialLabelClassifier,
    for_all_examples,
    unchanged_on_failure,
)
from skpll.candidates import CandidatesLike
from skpll.diagnosis import come_apart
from skpll.engine.arrays import (
    as_float64,
    as_numpy,
    beside,
    is_foreign,
    is_tensor,
    place,
    to_namespace,
)
from skpll.engine.blocks import Block, Part, Store
from skpll.engine.kernels import FeatureMap
from skpll.engine.limits import LIMITS, is_large, number_of_landmarks
from skpll.large.blocks import in_blocks, stacked
from skpll.large.dask import Cluster, is_dask, on_partitions

from ._choice import Answers
from ._loop import Loop, Settings, missing, on_given, open_if
from ._regression import AnyRidge, KernelRidge, Ridge, Sums, System

__all__ = ["Elsewhere", "Learned", "check_no_copies"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Learned:
    """What `partial_fit` has to know of the examples of earlier calls.

    Parameters
    ----------
    features : FeatureMap
        The features of the regression.
    unit : float
        The sample weight that counts as one.
    sums : Sums or None
        The sums over the examples.
    targets : sparse array of shape (n, q) or None
        For a kernel of all examples, their confidences, from which the sums can be computed, and
    weights : array of shape (n,) or None
        their weights.
    """

    features: FeatureMap
    unit: float
    sums: Sums | None = None
    targets: sparse.csr_array | None = None
    weights: Floats | None = None

    def added_up(self) -> tuple[FeatureMap, Sums]:
        """Return the features of the regression and the sums over all examples."""
        if self.sums is not None:
            return self.features, self.sums
        assert self.features.kernel is not None
        assert self.targets is not None
        assert self.weights is not None
        return Sums.of_kernel(self.features, self.targets, self.weights)


class Elsewhere(Iterative, WeightedPartialLabelClassifier, ScoringClassifier):
    """Base class of PL-LOO: fits and predictions for data that is no array in memory."""

    group_by: Literal["auto", "candidates"] | None
    n_landmarks: int | Literal["auto"]
    noise: float | Literal["auto"]
    random_state: int | np.random.RandomState | None

    temperature_: float
    missing_: Any
    _coef: Floats
    _intercept: Floats
    _features: FeatureMap
    _learned: Learned | None
    _waiting: Examples | None

    if TYPE_CHECKING:  # what PLLOO adds

        def _fit(self, examples: Examples, keep: bool = False) -> Floats: ...

        def _checked(self, *arguments: Any, **options: Any) -> Examples: ...

        def _grouped(self, examples: Examples) -> Examples: ...

        def _settings(self, store: Store, sample: Examples) -> Settings: ...

        def _solved(
            self, store: Store, sample: Examples, X: Features, random_state: np.random.RandomState
        ) -> tuple[AnyRidge, Loop]: ...

        def _looped(
            self, system: System, settings: Settings, X: Features
        ) -> tuple[AnyRidge, Loop]: ...

    def partial_fit(
        self,
        X: MatrixLike,
        y: CandidatesLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn from more examples, without those of earlier calls.

        All that the regression has to know of earlier examples are sums, which are kept: a call
        takes as long as its own examples do. They are judged with the help of all examples so far;
        what was decided about earlier ones stays. The first call, or the `fit` before it, chooses
        parameters, landmarks and temperature for all: let it have some thousand examples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The features of the new examples.
        y : candidate sets of n examples
            Any format of `skpll.as_candidates`; may have labels that no call before had.
        classes : array-like, optional
            Labels that may come later. With them, the first examples may be of one class; they
            are kept until examples of another class come.
        sample_weight : array-like of shape (n,), optional
            The weight of each example.
        groups : array-like of shape (n,), optional
            Examples that came together, as in `fit`.

        Returns
        -------
        self
            Its `transduction_` and `label_distributions_` are those of the new examples.
        """
        if is_dask(X):
            raise TypeError("X: partial_fit takes rows in memory; fit takes Dask collections.")
        waiting: Examples | None = getattr(self, "_waiting", None)
        if waiting is not None or not hasattr(self, "_features"):
            with unchanged_on_failure(self):
                new = self._checked(X, y, sample_weight, groups, reset=waiting is None)
                return self._begin(new, classes, waiting)._bring_to(X)
        if getattr(self, "_learned", None) is None:
            raise ArgumentError(
                "X",
                "the earlier fit was too large to keep what partial_fit needs; start with "
                "partial_fit in the place of fit.",
            )
        with unchanged_on_failure(self):
            new = self._checked(X, y, sample_weight, groups, reset=False)
            return self._continue(new, classes)._bring_to(X)

    def _begin(self, new: Examples, classes: ArrayLike | None, waiting: Examples | None) -> Self:
        """Learn from the first examples of `partial_fit`.

        Examples of one class tell nothing of the others: they wait for examples of another class,
        from which parameters and landmarks are chosen.
        """
        examples = new if waiting is None else _together(waiting, new)
        examples = self._with_labels(examples, [], classes)
        several = len(examples.sets.classes) > 1 and (classes is not None or waiting is not None)
        known = np.array([], dtype=np.intp) if several else None
        self.inseparable_ = []
        self._learn(examples, learn=partial(self._fit, keep=True), known=known)
        self._waiting = examples if len(self._seen) == 1 else None
        if waiting is not None:
            for name in ("transduction_", "label_distributions_", "missing_"):
                setattr(self, name, getattr(self, name)[-len(new) :])
        return self

    def _continue(self, examples: Examples, classes: ArrayLike | None) -> Self:
        """Learn from the examples of another call of `partial_fit`."""
        labels = as_objects(self.classes_[self._seen])
        examples = self._with_labels(examples, as_objects(self.classes_), classes)
        known = lookup_codes(labels, examples.sets.classes)
        apart = partial(come_apart, examples.sets)
        self.inseparable_ = [each for each in self.inseparable_ if not apart(each)]
        return self._learn(examples, learn=partial(self._grow, labels=labels), known=known)

    def _with_labels(
        self, examples: Examples, labels: list[Any], classes: ArrayLike | None
    ) -> Examples:
        """Add classes that are known, or may come, to those of the examples."""
        labels = labels + ([] if classes is None else as_objects(np.asarray(classes)))
        labels = labels + as_objects(examples.sets.classes)
        return replace(examples, sets=examples.sets.with_classes(dict.fromkeys(labels)))

    def _fit_in_blocks(self, examples: Examples, keep: bool) -> Floats:
        """Fit to many examples, of which each, or a copy of it, has next to no influence."""
        check_no_copies(examples.copies)
        self.group_by_ = None if self.group_by == "auto" else self.group_by
        examples, mean = self._grouped(examples), examples.weights.mean()
        landmarks = number_of_landmarks(len(examples), self.n_landmarks)
        examples = replace(examples, weights=examples.weights / mean)
        store = in_blocks(examples, max(examples.X.shape[1], landmarks))
        ridge, loop = self._solved_by_sample(store, examples.X)
        self._keep(ridge, loop, float(mean), keep)
        return self._at_temperature(loop)

    def _fit_on_cluster(
        self,
        X: MatrixLike,
        y: CandidatesLike,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
    ) -> Self:
        """Fit to the rows of a Dask array or data frame, where they are.

        Few rows are brought to the client and fitted there, since parameters, duplicates and exact
        kernels need all of them in one place.
        """
        self._validate_params()
        if groups is not None or self.group_by == "candidates":
            raise ArgumentError(
                "groups", "not supported for Dask collections; leave groups and group_by out."
            )
        self.group_by_, self.calibrated_by_ = None, "rows"
        cluster = Cluster(X, y, sample_weight)
        if not is_large(len(cluster), self.n_landmarks):
            return self.fit(*cluster.in_memory())
        empty = X._meta if hasattr(X, "columns") else np.empty((0, X.shape[1]))
        validate_data(self, empty, skip_check_array=True)
        self.classes_, self._seen = cluster.classes, cluster.seen
        self.inseparable_: list[tuple[Any, ...]] = []  # too many rows to look for it
        ridge, loop = self._solved_by_sample(cluster.store(self.n_features_in_))
        self._keep(ridge, loop, cluster.mean_weight, keep=False)
        store: Any = loop.store
        given = self._on_given(loop, loop.confidences_at(1 / self.temperature_))
        self.transduction_, self.label_distributions_ = cluster.results(store, given)
        return self

    def _solved_by_sample(self, store: Store, X: Features = None) -> tuple[AnyRidge, Loop]:
        """Choose parameters and temperature on a sample, and go through the rounds on all.

        Among many examples, what one of them has said to the others in earlier rounds is
        negligible: the temperature follows from the regression without it.
        """
        random_state = check_random_state(self.random_state)
        n, n_sample = store.shape[0], min(store.shape[0], LIMITS.choice_rows)
        rows = np.sort(random_state.choice(n, n_sample, replace=False))
        sample, _ = store.sample(rows)
        if is_tensor(X):
            sample = replace(sample, X=X[rows])
        ridge, loop = self._solved(store, sample, X, random_state)
        assert isinstance(ridge, Ridge)
        scores = ridge.ask_everywhere(loop.confidences, rows)
        if is_tensor(X):
            scores = to_namespace(scores, as_float64(X[:0]))
        self.temperature_ = Answers(sample, scores, loop.evidence.share).temperature()
        return ridge, loop

    def _grow(self, new: Examples, labels: list[Any]) -> Floats:
        """Learn from new examples beside the sums over earlier ones."""
        assert self._learned is not None
        new, unit = self._grouped(new), self._learned.unit
        features, sums = self._learned.added_up()
        seen = self.classes_[self._seen]
        sums = sums.on_classes(lookup_codes(labels, seen), len(seen))
        width = max(new.X.shape[1], len(sums.sums))
        store = in_blocks(replace(new, weights=new.weights / unit), width)
        settings = self._settings(store, new)
        system = System.on_features(features, open_if(self.noise, store), before=sums)
        ridge, loop = self._looped(system, settings, new.X)
        self._keep(ridge, loop, unit, keep=True)
        return self._at_temperature(loop)

    def _keep(self, ridge: AnyRidge, loop: Loop, unit: float, keep: bool) -> None:
        """Keep what `partial_fit` needs, unless it is large and not asked for."""
        if isinstance(ridge, KernelRidge):
            targets = ridge.store.sets.to_matrix(loop.confidences)
            weights = ridge.store.weights
            self._learned = Learned(ridge.features, unit, targets=targets, weights=weights)
        elif keep or ridge.sums.gram.size <= LIMITS.kept_numbers:
            self._learned = Learned(ridge.features, unit, ridge.added_up())

    def _at_temperature(self, loop: Loop) -> Floats:
        """Return the confidences in the given candidates at the temperature, as one array."""
        confidences = self._on_given(loop, loop.confidences_at(1 / self.temperature_))
        return np.asarray(loop.store.joined(confidences))

    def _on_given(self, loop: Loop, confidences: Part) -> Part:
        """Return the confidences in the candidates that were given, and keep what is outside."""
        self.noise_ = loop.evidence.share
        self.missing_ = loop.store.joined(loop.store.map(missing, confidences))
        return loop.store.map(on_given, confidences) if self.noise else confidences

    def _restore(self, taking_part: NDArray[np.bool_]) -> None:
        absent = np.nan if self.noise else 0.0
        self.missing_ = for_all_examples(self.missing_, taking_part, absent)

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """Predict the label of each example.

        <<Parameters: X>>

        Returns
        -------
        labels : array of shape (n,)
        """
        if is_dask(X):
            return on_partitions(self.predict, X, self.classes_.dtype)
        self._check_place(X, "predict")
        X = self._validate_features(X)
        rows = X if is_tensor(X) else as_numpy(X)
        best = np.concatenate([as_numpy(scores.argmax(1)) for scores in self._scores(rows)])
        labels = self.classes_[self._seen[best]]
        if is_foreign(X) and get_namespace(X)[1] and labels.dtype.kind in "iufb":
            return beside(labels, X)
        return labels

    def predict_proba(self, X: MatrixLike) -> Any:
        """Return the probability of each class, at the temperature.

        <<Parameters: X>>

        Returns
        -------
        probabilities : array of shape (n, q)
            Rows sum to one; zero for a class that is in no candidate set.
        """
        if is_dask(X):
            return on_partitions(self.predict_proba, X, np.float64, len(self.classes_))
        self._check_place(X, "predict_proba")
        rows = X if is_tensor(X) else self._validated_on_cpu(X)
        return _like(super().predict_proba(rows), X)

    def predict_log_proba(self, X: MatrixLike) -> Any:
        """Return the logarithms of `predict_proba`.

        <<Parameters: X>>

        Returns
        -------
        log_probabilities : array of shape (n, q)
            Minus infinity where a probability is zero.
        """
        self._check_place(X, "predict_log_proba")
        probabilities = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            if is_foreign(probabilities):
                return get_namespace(probabilities)[0].log(probabilities)
            return np.log(probabilities)

    def decision_function(self, X: MatrixLike) -> Any:
        """Score the classes.

        <<Parameters: X>>

        <<decisions>>
        """
        self._check_place(X, "decision_function")
        return _like(super().decision_function(self._validated_on_cpu(X)), X)

    def _scores(self, X: Any) -> Iterator[Any]:
        """Yield the scores of the classes of some rows at a time."""
        size = max(1, LIMITS.predicted_numbers // sum(self._coef.shape))
        for start in range(0, X.shape[0], size):
            rows = X[start : start + size]
            mapped = self._features(as_float64(rows))
            scores = mapped @ to_namespace(self._coef, mapped) + to_namespace(
                self._intercept, mapped
            )
            yield to_namespace(scores, rows) if is_tensor(rows) else scores

    def _class_scores(self, X: Any) -> Any:
        parts = list(self._scores(X))
        return parts[0] if len(parts) == 1 else get_namespace(*parts)[0].concat(parts)

    def _probabilities(self, scores: Any) -> Any:
        if is_tensor(scores):
            return (scores.clip(min=FLOOR).log() / self.temperature_).softmax(1)
        return probabilities(log_scores(scores), self.temperature_)

    def _for_all_classes(self, scores: Any, floor: Floats) -> Any:
        everywhere = super()._for_all_classes(as_numpy(scores), floor)
        return to_namespace(everywhere, scores) if is_tensor(scores) else everywhere

    def _with_others(
        self, examples: Examples, taking_part: NDArray[np.bool_], confidences: Floats
    ) -> Floats:
        examples = replace(examples, X=as_numpy(examples.X))
        return super()._with_others(examples, taking_part, confidences)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags

    @property
    def _seen(self) -> NDArray[np.intp]:
        """The positions are used on the CPU, and stored where `fit` was given its features."""
        return as_numpy(self._columns)

    @_seen.setter
    def _seen(self, positions: NDArray[np.intp]) -> None:
        self._columns = positions

    def _bring_to(self, X: MatrixLike) -> Self:
        """Bring fitted arrays to the library and device of `X` where scikit-learn dispatches."""
        if is_foreign(X) and get_namespace(X)[1]:
            for name, value in list(vars(self).items()):
                numbers = isinstance(value, np.ndarray) and value.dtype.kind in "iufb"
                if numbers and name != "classes_":
                    setattr(self, name, beside(value, X))
        return self

    def _check_place(self, X: MatrixLike, method: str) -> None:
        """Refuse features of another library or device than those of `fit`, as scikit-learn."""
        check_is_fitted(self)
        if get_config()["array_api_dispatch"] and place(X) != place(self._coef):
            raise ArgumentError(
                "X",
                f"{type(self).__name__}.{method}() must use the same namespace and device as fit, "
                f"{' on '.join(place(self._coef))}, not {' on '.join(place(X))}.",
            )

    def _validated_on_cpu(self, X: Any) -> Any:
        return as_numpy(self._validate_features(X)) if is_foreign(X) else X

    def _read_features(self, X: Any, reset: bool = True) -> Any:
        """Leave tensors what they are, where scikit-learn dispatches on the array library."""
        checks = self._feature_checks()
        if is_foreign(X) and get_namespace(X)[1]:
            xp, _ = get_namespace(X)
            checks["dtype"] = [xp.float64, xp.float32]
        return validate_data(self, X, reset=reset, **checks)

    def _validate_features(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._read_features(X, reset=False)


def _like(scores: Any, X: Any) -> Any:
    """Bring scores to the library and device of features, and to their precision."""
    single = isinstance(X, np.ndarray) and X.dtype == np.float32
    return to_namespace(scores, X) if single or is_foreign(X) else scores


def _together(first: Examples, second: Examples) -> Examples:
    """Put examples one after the other; groups of different calls are different groups.

    The first ones are of one class: without groups, each of them is a group of its own.
    """
    if first.groups is None and second.groups is not None:
        first = replace(first, groups=np.arange(len(first)))
    if first.groups is not None and second.groups is not None:
        second = replace(second, groups=first.groups.max() + 1 + second.groups)
    return stacked([(Block.of(first), []), (Block.of(second), [])])[0]


def check_no_copies(copies: object) -> None:
    if copies is not None:
        raise ArgumentError(
            "copies", "not supported for data in blocks; keep one row of each group of copies."
        )
