"""The base class of all methods: what every classifier of partial labels has in common."""

from __future__ import annotations

import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import softmax
from sklearn.utils import Tags, gen_batches
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from ._docs import documented
from ._errors import ArgumentError, DiagnosisWarning
from ._examples import Examples, Features
from ._labels import as_objects, lookup_codes
from ._typing import Array, CandidatesLike, Constraints, Floats, MatrixLike
from .candidates import CandidateSets, scoring_candidates, training_candidates
from .diagnosis import Finding, find_in_sets, share_out
from .engine.arrays import as_numpy, is_foreign, is_tensor, to_namespace
from .metrics import covering_rate
from .solvers.conditioning import MAX_OFFSET, Conditioning, condition

__all__ = [
    "LinearScores",
    "MatrixLike",
    "PartialLabelClassifier",
    "ScoringClassifier",
    "WeightedPartialLabelClassifier",
    "for_all_examples",
    "unchanged_on_failure",
]

MAX_BLOCK_NUMBERS = 2**19
"""Probabilities of examples of weight zero that are computed at a time."""


if TYPE_CHECKING:  # scikit-learn has no types, and what derives from it would take any argument

    class BaseEstimator:
        """What there is in every estimator."""

        def __getattr__(self, name: str) -> Any: ...

        def __sklearn_tags__(self) -> Tags: ...

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Return the parameters by name."""

        def set_params(self, **parameters: Any) -> Self:
            """Change some of the parameters."""

    class ClassifierMixin:
        """What there is in every classifier."""

else:
    from sklearn.base import BaseEstimator, ClassifierMixin


@documented
class PartialLabelClassifier(ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """Base class of the classifiers that learn from candidate sets.

    A method writes `_fit`, which learns from validated input and returns its confidence in each
    candidate of each training example, and `_class_scores`, which scores the classes of new
    examples; everything else is here. Both see only classes that are in a candidate set, and
    examples of positive weight: the others are left out before and put back afterwards. `y` may
    be any format of `skpll.as_candidates`; a plain vector of labels is ordinary supervised
    learning.

    <<Attributes: classes_, n_features_in_, feature_names_in_>>
    transduction_ : array of shape (n,)
        The label decided for each training example, always one of its candidates.
    label_distributions_ : sparse array of shape (n, q)
        The confidence in each candidate of each training example; every row sums to one.

    Examples
    --------
    >>> from skpll import PLKNN, PartialLabelClassifier
    >>> method = PLKNN(n_neighbors=1)
    >>> isinstance(method, PartialLabelClassifier)
    True
    >>> method.fit([[0.0], [0.1], [1.0]], [{"a"}, {"a", "b"}, {"b"}]).transduction_.tolist()
    ['a', 'a', 'b']
    """

    accepts_sparse: ClassVar[bool] = False
    """Whether `X` may be a sparse matrix."""

    calibrated: ClassVar[bool] = False
    """Whether `predict_proba` is calibrated without `CalibratedCandidatesCV`."""

    weighs_candidates: ClassVar[bool] = False
    """Whether the weights of candidates are part of `label_distributions_`."""

    diagnosed: ClassVar[bool] = False
    """Whether `fit` warns of what can't be learned and shares out confidences accordingly."""

    found_parameters: ClassVar[tuple[str, ...]] = ()
    """The parameters that `fit` chooses where they are left open; their values end in ``_``."""

    _parameter_constraints: ClassVar[Constraints] = {}

    classes_: Array
    n_features_in_: int
    transduction_: Array
    label_distributions_: sparse.csr_array[np.float64, tuple[int, int]]

    _seen: NDArray[np.intp]
    """Positions in `classes_` of the labels in a candidate set: the columns of `_class_scores`."""

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        documented(cls)

    @abstractmethod
    def _fit(self, examples: Examples) -> Floats:
        """Learn from validated examples; all weights are positive, every class is a candidate.

        Returns
        -------
        confidences : array of shape (total number of candidates,)
            A non-negative confidence in each candidate, in the order of ``examples.sets.indices``.
            Rows are normalized to a sum of one; a row of zeros becomes uniform. The label with
            the largest confidence is chosen, the first of equals.
        """

    @abstractmethod
    def _class_scores(self, X: Features) -> Array:
        """Score the classes of `_fit` for every row of validated features; the largest wins."""

    def _probabilities(self, scores: Array) -> Floats:
        """Turn rows of `_class_scores` into probabilities, the largest for the largest score."""
        return np.asarray(softmax(np.asarray(scores, dtype=np.float64), axis=1))

    def _restore(self, taking_part: NDArray[np.bool_]) -> None:
        """Bring attributes with an entry for each example of `_fit` to all examples."""

    def fit(self, X: MatrixLike, y: CandidatesLike) -> Self:
        """Learn from examples and their candidate labels.

        An interrupt (Ctrl-C) ends the iterations of an iterative method with a warning.

        <<Parameters: X, y>>

        Returns
        -------
        self
        """
        with unchanged_on_failure(self):
            return self._learn(self._examples(X, y))

    def predict(self, X: MatrixLike) -> Array:
        """Predict the label of each example.

        <<Parameters: X>>

        Returns
        -------
        labels : array of shape (n,)
        """
        best = np.argmax(self._class_scores(self._validate_features(X)), axis=1)
        return self.classes_[self._seen[best]]

    def predict_proba(self, X: MatrixLike) -> Floats:
        """Return a probability for each class.

        They rank the classes as `predict` does. Unless the method says otherwise they are a softmax
        of its scores, and not calibrated: `CalibratedCandidatesCV` sees to that.

        <<Parameters: X>>

        Returns
        -------
        probabilities : array of shape (n, q)
            Rows sum to one; zero for a class in no candidate set.
        """
        probabilities = self._shared_probabilities(self._validate_features(X))
        return self._for_all_classes(probabilities, np.zeros(len(probabilities)))

    def predict_log_proba(self, X: MatrixLike) -> Floats:
        """Return the logarithms of `predict_proba`.

        <<Parameters: X>>

        Returns
        -------
        log_probabilities : array of shape (n, q)
            Minus infinity where a probability is zero.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def score(
        self, X: MatrixLike, y: CandidatesLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Share of the predictions that lie in the given sets.

        This is plain accuracy when `y` holds plain labels, and the covering rate when it holds
        candidate sets, so that parameters can be chosen without true labels.

        <<Parameters: X>>
        y : labels or candidate sets of n examples
            In a format of `skpll.as_candidates`.
        <<sample_weight>>

        Returns
        -------
        share : float
        """
        check_is_fitted(self)
        given, weights = scoring_candidates(_on_cpu(y), self.classes_), _on_cpu(sample_weight)
        check_consistent_length(_on_cpu(X), given, weights)
        return covering_rate(given, _on_cpu(self.predict(X)), sample_weight=weights)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.accepts_sparse
        return tags

    def _examples(
        self, X: MatrixLike, y: CandidatesLike, sample_weight: ArrayLike | None = None
    ) -> Examples:
        """Validate the arguments of `fit`."""
        X, candidates = self._validate_training_data(X, y)
        weights = _check_sample_weight(
            _on_cpu(sample_weight), X, dtype=np.float64, ensure_non_negative=True
        )
        return Examples(X, candidates, weights)

    def _learn(
        self,
        examples: Examples,
        *,
        learn: Callable[[Examples], Floats] | None = None,
        known: NDArray[np.intp] | None = None,
    ) -> Self:
        """Learn from the examples of positive weight, and choose a label for all of them.

        Parameters
        ----------
        examples : Examples
            The validated training data.
        learn : callable, optional
            Used in the place of `_fit`.
        known : int array, optional
            Positions of classes to keep even if they are in no candidate set. Where they are
            given, the candidates may be of one class.
        """
        taking_part = examples.weights > 0
        all_count = bool(taking_part.all())
        training = examples if all_count else examples.take(taking_part)
        sets, seen = training.sets.seen(() if known is None else known)
        if not len(sets):
            raise ArgumentError(
                "sample_weight", "all weights are zero; give some examples a weight."
            )
        if len(seen) < 2 and known is None:
            (label,) = as_objects(examples.sets.classes[seen])
            raise ArgumentError(
                "y",
                f"only one class, {label!r}, is among the candidates of the examples that "
                "count; give examples of two classes at least.",
            )
        with unchanged_on_failure(self):
            self.classes_, self._seen = examples.sets.classes, seen
            confidences = (self._fit if learn is None else learn)(replace(training, sets=sets))
            confidences = sets.row_normalized(confidences)
            found: list[Finding | None] = vars(self).pop("_found", [])
            if self.diagnosed and known is None:
                confidences = self._diagnose(sets, confidences, found)
            if not all_count:
                confidences = self._with_others(examples, taking_part, confidences)
        best = examples.sets.row_argmax(confidences)
        self.transduction_ = self.classes_[examples.sets.indices[best]]
        self.label_distributions_ = examples.sets.to_matrix(confidences)
        self._restore(taking_part)
        return self

    def _diagnose(
        self, sets: CandidateSets, confidences: Floats, of_fit: list[Finding | None]
    ) -> Floats:
        """Warn of what can't be learned; share out confidences in labels that never come apart."""
        found = [*find_in_sets(sets, confidences), *filter(None, of_fit)]
        self.inseparable_ = [each.labels for each in found if each.kind == "together"]
        texts = [str(each) for each in found if each.kind != "dependent"]
        if texts:
            warnings.warn(" ".join(["y:", *texts]), DiagnosisWarning, stacklevel=4)
        return share_out(sets, confidences, self.inseparable_, self._expected_shares())

    def _expected_shares(self) -> Floats:
        """Return the share of the examples that each class of `_fit` is expected to have."""
        return np.ones(len(self._seen))

    def _shared_probabilities(self, X: Features) -> Floats:
        """Return the probabilities of the classes of `_fit`.

        What labels that never come apart have together is shared out among them by the prior.
        """
        probabilities = self._probabilities(self._class_scores(X))
        groups = getattr(self, "inseparable_", ())
        if not groups:
            return probabilities
        shared, prior = as_numpy(probabilities).copy(), self._expected_shares()
        for labels in groups:
            codes = lookup_codes(list(labels), self.classes_[self._seen])
            shares = prior[codes] / prior[codes].sum()
            shared[:, codes] = shared[:, codes].sum(axis=1, keepdims=True) * shares
        return to_namespace(shared, probabilities) if is_tensor(probabilities) else shared

    def _with_others(
        self,
        examples: Examples,
        taking_part: NDArray[np.bool_],
        confidences: Floats,
    ) -> Floats:
        """Let the model decide for the examples of weight zero, some of them at a time."""
        mixed = np.empty(len(examples.sets.indices))
        mixed[examples.sets.spread(taking_part)] = confidences
        others = np.flatnonzero(~taking_part)
        for block in gen_batches(len(others), max(1, MAX_BLOCK_NUMBERS // len(self.classes_))):
            part = examples.take(others[block])
            probabilities = self._shared_probabilities(part.X)
            everywhere = self._for_all_classes(probabilities, np.zeros(len(part)))
            decided = part.sets.row_normalized(part.sets.entries(everywhere))
            mixed[examples.sets.places(others[block])] = decided
        return mixed

    def _for_all_classes(self, scores: Array, floor: Floats) -> Floats:
        """Add columns for the classes that are in no candidate set."""
        if len(self._seen) == len(self.classes_):
            return scores
        everywhere = np.repeat(floor[:, np.newaxis], len(self.classes_), axis=1)
        everywhere[:, self._seen] = scores
        return everywhere

    def _validate_training_data(
        self, X: MatrixLike, y: CandidatesLike, reset: bool = True
    ) -> tuple[Features, CandidateSets]:
        self._validate_params()
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None; give the candidate labels of each example."
            )
        X = self._read_features(X) if reset else self._validate_features(X)
        candidates = training_candidates(_on_cpu(y))
        if len(candidates) != X.shape[0]:
            raise ArgumentError(
                "y",
                f"candidate labels of {len(candidates)} examples for the {X.shape[0]} rows of "
                "X; give one set a row.",
            )
        q = len(candidates.classes)
        if q > 1 and candidates.weights is None and (candidates.sizes == q).all():
            warnings.warn(
                "y: every class is a candidate of every example; there is nothing to learn from.",
                UserWarning,
                stacklevel=4,
            )
        return X, candidates

    def _read_features(self, X: MatrixLike) -> Features:
        return validate_data(self, _on_cpu(X), **self._feature_checks())

    def _validate_features(self, X: MatrixLike) -> Features:
        check_is_fitted(self)
        return validate_data(self, _on_cpu(X), reset=False, **self._feature_checks())

    def _feature_checks(self) -> dict[str, object]:
        return {
            "accept_sparse": "csr" if self.accepts_sparse else False,
            "dtype": [np.float64, np.float32],
            "order": "C",
        }


@contextmanager
def unchanged_on_failure(estimator: PartialLabelClassifier) -> Iterator[None]:
    """Bring an estimator back to what it was if fitting it fails.

    One that was not fitted before has no fitted attributes then, such as `n_features_in_`.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        attributes = vars(estimator)
        attributes.clear()
        attributes.update(before)
        if "classes_" not in before:
            for name in [name for name in before if name.endswith("_")]:
                del attributes[name]
        raise


def for_all_examples(values: Array, taking_part: NDArray[np.bool_], absent: float) -> Array:
    """Bring one value for each example that took part to all of them.

    Parameters
    ----------
    values : array of shape (number of examples that took part,)
        The values.
    taking_part : bool array of shape (n,)
        Which examples took part.
    absent : float
        The value of the others.
    """
    everywhere = np.full(len(taking_part), absent, dtype=values.dtype)
    everywhere[taking_part] = values
    return everywhere


def _on_cpu(X: MatrixLike) -> MatrixLike:
    """Return an array of NumPy for one of another library: methods compute with NumPy."""
    return as_numpy(X) if is_foreign(X) else X


class ScoringClassifier(PartialLabelClassifier):
    """Base class of the methods whose scores are shown as they are, as decisions."""

    def decision_function(self, X: MatrixLike) -> Floats:
        """Score the classes.

        <<Parameters: X>>

        <<decisions>>
        """
        scores = self._class_scores(self._validate_features(X))
        least, most = scores.min(axis=1), scores.max(axis=1)
        scores = self._for_all_classes(scores, least - (most - least) - 1)
        return scores if scores.shape[1] > 2 else scores[:, 1] - scores[:, 0]


class WeightedPartialLabelClassifier(PartialLabelClassifier):
    """Base class of the methods whose `fit` takes `sample_weight`."""

    def fit(self, X: MatrixLike, y: CandidatesLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from examples and their candidate labels.

        An interrupt (Ctrl-C) ends the iterations of an iterative method with a warning.

        <<Parameters: X, y>>
        <<rows>>

        Returns
        -------
        self
        """
        with unchanged_on_failure(self):
            return self._learn(self._examples(X, y, sample_weight))


class LinearScores(WeightedPartialLabelClassifier, ScoringClassifier):
    """Base class of the methods whose scores are ``X @ coef_.T + intercept_``."""

    accepts_sparse = True

    coef_: Floats
    intercept_: Floats

    def _condition(self, X: Features, max_offset: float = MAX_OFFSET) -> Conditioning:
        """Find what the features need to be learned from; warn if that changes the penalty."""
        conditioning = condition(X, max_offset=max_offset)
        if conditioning.scale != 1.0:
            warnings.warn(
                "X: some values are too large for a linear model; to train it, all are divided by "
                f"{conditioning.scale:.0e}. Scale the features, for example with StandardScaler.",
                UserWarning,
                stacklevel=5,
            )
        return conditioning

    def _keep_scores(self, coef: Floats, intercept: Floats, conditioning: Conditioning) -> None:
        """Keep the scores of the classes that have candidates; no other class can win."""
        coef, intercept = conditioning.undo(coef, intercept)
        self.coef_ = np.zeros((len(self.classes_), coef.shape[1]))
        self.intercept_ = np.full(len(self.classes_), -np.inf)
        self.coef_[self._seen], self.intercept_[self._seen] = coef, intercept

    def _class_scores(self, X: Features) -> Floats:
        return np.asarray(X @ self.coef_[self._seen].T) + self.intercept_[self._seen]
