"""Metrics of classifiers of partial labels, with the true labels and without them.

With the truth: `transductive_accuracy` for the labels that a method decided for its own training
examples, and `expected_calibration_error` for how far confidences can be trusted. For predictions
use scikit-learn's own metrics.

Without it, from candidate sets alone: `covering_rate`, `covering_kappa` and
`approximated_accuracy`. All three are also scorers of scikit-learn's tools, by name:
``scoring="covering_rate"``. None is the accuracy; the notes of each say when it misleads.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Set
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score, balanced_accuracy_score, classification_report
from sklearn.metrics._scorer import _SCORERS
from sklearn.utils import deprecated
from sklearn.utils._param_validation import StrOptions

from ._docs import documented
from ._errors import ArgumentError
from ._formats import as_list
from ._labels import as_objects, lookup_codes, sort_classes
from ._parameters import COUNT
from ._typing import Array, Floats, Label, MatrixLike
from .candidates import CandidatesLike, scoring_candidates

__all__ = [
    "approximated_accuracy",
    "approximated_accuracy_scorer",
    "covering_kappa",
    "covering_kappa_scorer",
    "covering_rate",
    "covering_rate_scorer",
    "expected_calibration_error",
    "transductive_accuracy",
]


def __dir__() -> list[str]:
    return __all__


# -- with the truth ------------------------------------------------------------------------


@documented
def transductive_accuracy(
    y_true: ArrayLike,
    transduction: ArrayLike | BaseEstimator,
    *,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Share of the training examples whose label was found among their candidates.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The true labels of the training examples.
    transduction : array-like of shape (n,) or fitted estimator
        The labels decided for them, or what decided them: a method of this package, a pipeline
        that ends in one, or a search that fitted one.
    <<sample_weight>>

    Returns
    -------
    share : float

    Examples
    --------
    >>> from skpll import PLKNN
    >>> from skpll.metrics import transductive_accuracy
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> S = [{"a", "b"}, {"a"}, {"a"}, {"b"}, {"b"}, {"a", "b"}]
    >>> transductive_accuracy(list("aaabbb"), PLKNN(n_neighbors=2).fit(X, S))
    1.0
    """
    truth = np.asarray(y_true)
    decided = _of_length(_decided_labels(transduction), len(truth), "transduction")
    return _average(truth == decided, sample_weight)


@documented
def expected_calibration_error(
    confidences: ArrayLike,
    right: ArrayLike,
    *,
    n_bins: int = 10,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return the mean distance of confidences from the share of right decisions.

    The examples are put into bins of equal width by their confidence, and

    .. math:: \sum_b \frac{n_b}{n} \, |\bar c_b - \bar r_b|,

    where :math:`\bar c_b` is the mean confidence in bin :math:`b`, :math:`\bar r_b` the share of
    right decisions and :math:`n_b` the number of examples there. 0 is perfect.

    Parameters
    ----------
    confidences : array-like of shape (n,)
        The confidence in each decision, from 0 to 1: the largest of ``predict_proba`` or of a row
        of ``label_distributions_``.
    right : array-like of shape (n,)
        Whether each decision is right.
    n_bins : int, default=10
        Number of bins.
    <<sample_weight>>

    Returns
    -------
    error : float

    Notes
    -----
    It says nothing about accuracy: a model that is sure of as much as the frequent class is
    frequent, and predicts nothing else, has an error of 0. On few examples it is too large, since
    chance alone moves the share of right decisions in a bin.

    Examples
    --------
    >>> from skpll.metrics import expected_calibration_error
    >>> expected_calibration_error([0.75, 0.75, 0.75, 0.75], [True, True, True, False])
    0.0
    >>> expected_calibration_error([1.0, 1.0, 0.5, 0.5], [True, False, True, False])
    0.25
    """
    sure = np.asarray(confidences, dtype=float)
    if sure.ndim != 1 or not len(sure):
        raise ArgumentError("confidences", f"shape {sure.shape}; give one for each example.")
    if not ((sure >= 0) & (sure <= 1 + 1e-9)).all():
        raise ArgumentError("confidences", "some are not between 0 and 1; give probabilities.")
    if not COUNT.is_satisfied_by(n_bins):
        raise ArgumentError("n_bins", f"{n_bins!r} is not a whole number of at least 1.")
    gaps = sure - _of_length(np.asarray(right, dtype=float), len(sure), "right")
    weights = _weights(sample_weight, len(sure))
    bins = np.minimum((sure * n_bins).astype(int), n_bins - 1)
    return float(np.abs(np.bincount(bins, weights * gaps)).sum() / weights.sum())


# -- without the truth ---------------------------------------------------------------------


@documented
def covering_rate(
    S: CandidatesLike, y_pred: Iterable[Hashable], *, sample_weight: ArrayLike | None = None
) -> float:
    """Share of the predictions that are candidates of their example.

    Where the true label is always a candidate, this is an upper bound of the accuracy.

    <<Parameters: S, y_pred, sample_weight>>

    Returns
    -------
    share : float

    Notes
    -----
    It can't tell a true candidate from a false one. It misleads where false candidates are not
    random: a label that stands in most sets (a background, the most famous name) is a safe guess
    that earns a high rate and a low accuracy. It says little where sets are large: guessing at
    random already covers mean(abs(S)) / q of the examples.

    Examples
    --------
    >>> from skpll.metrics import covering_rate
    >>> S = [{"cat", "dog"}, {"cat"}, {"dog", "fox"}, {"fox"}]
    >>> covering_rate(S, ["dog", "cat", "fox", "cat"])
    0.75
    """
    sets = scoring_candidates(S, argument="S")
    return _average(sets.contains(_predicted_labels(y_pred, len(sets))), sample_weight)


@documented
def covering_kappa(
    S: CandidatesLike, y_pred: Iterable[Hashable], *, sample_weight: ArrayLike | None = None
) -> float:
    r"""Covering rate, corrected for what the same predictions would cover by chance.

    .. math:: \kappa = \frac{o - e}{1 - e},

    where :math:`o` is the covering rate and :math:`e` what it would be on average if the
    predictions were assigned to the examples at random: the sum over the labels of the share of
    predictions times the share of candidate sets that have it. 1 is perfect, 0 no better than
    chance. On single labels it is Cohen's kappa.

    <<Parameters: S, y_pred, sample_weight>>

    Returns
    -------
    kappa : float
        0 if every prediction is a candidate of every example.

    See Also
    --------
    covering_rate : Without the correction.

    Notes
    -----
    It does not reward the safe guess, a label that stands in most sets. So it is the better choice
    between models that differ in how often they predict the frequent labels. Like the covering
    rate it can't tell a true candidate from a false one.

    Examples
    --------
    >>> from skpll.metrics import covering_kappa, covering_rate
    >>> S = [{"sky", "cow"}, {"sky", "dog"}, {"sky", "fox"}, {"sky"}]
    >>> covering_rate(S, ["sky"] * 4), covering_kappa(S, ["sky"] * 4)
    (1.0, 0.0)
    >>> covering_kappa(S, ["cow", "dog", "fox", "sky"])
    1.0
    """
    sets = scoring_candidates(S, argument="S")
    observed = covering_rate(sets, y_pred, sample_weight=sample_weight)
    weights = _weights(sample_weight, len(sets))
    occurrence = np.bincount(sets.indices, sets.spread(weights), minlength=len(sets.classes))
    # A prediction that no example has as a candidate is number -1: the last entry, which is zero.
    codes = lookup_codes(as_list(y_pred), sets.classes)
    chance = _average(np.append(occurrence, 0.0)[codes], sample_weight) / float(weights.sum())
    return (observed - chance) / (1 - chance) if chance < 1 else 0.0


@documented
def approximated_accuracy(
    S: CandidatesLike,
    probabilities: ArrayLike,
    *,
    classes: Iterable[Hashable] | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Accuracy that the predictions would have if the model's own probabilities were right.

    The model's probabilities are restricted to the candidates and brought to a sum of one,

    .. math:: c_{ik} = \frac{P_{ik}}{\sum_{l \in S_i} P_{il}} \quad (k \in S_i), \qquad c_{ik} = 0
              \quad (k \notin S_i),

    and the result is the mean over the examples of the confidence in what is predicted,
    :math:`c_{i \hat y_i}` with :math:`\hat y_i = \arg\max_k P_{ik}`. A prediction outside the set
    earns 0; one inside earns less than 1 as far as other candidates are likely too. It never
    exceeds the covering rate, and on sets of one candidate both are the accuracy.

    <<Parameters: S>>
    probabilities : array-like of shape (n, q)
        How probable the model finds each class; non-negative, no row all zeros. Only ratios
        within a row matter.
    classes : sequence of q labels, optional
        What the columns are, for instance ``estimator.classes_``; by default the classes of `S`.
        A candidate that has no column has probability zero.
    <<sample_weight>>

    Returns
    -------
    share : float

    Notes
    -----
    It misleads as far as the probabilities do: an overconfident model earns its whole covering
    rate, a cautious one that predicts the same labels earns less. Compare with it only models
    whose probabilities mean the same; it favours whatever sharpens them.

    Examples
    --------
    >>> from skpll.metrics import approximated_accuracy
    >>> P = [[0.75, 0.25, 0.0], [0.25, 0.5, 0.25]]
    >>> approximated_accuracy([{"cat", "dog"}, {"cat", "fox"}], P, classes=["cat", "dog", "fox"])
    0.375
    """
    sets = scoring_candidates(S, argument="S")
    names, order = sort_classes(sets.classes if classes is None else classes)
    P = _checked_probabilities(probabilities, len(sets), len(names))
    # A candidate without a column is number -1: the last column, which is all zeros.
    columns = lookup_codes(as_objects(sets.classes), names)
    P = np.column_stack([P[:, order], np.zeros(len(P))])
    mass = sets.row_sums(P[sets.rows, columns[sets.indices]])
    best = np.argmax(P, axis=1)
    covered = sets.contains(names[best])
    confidence = np.divide(P[np.arange(len(P)), best], mass, out=np.zeros(len(P)), where=covered)
    return _average(confidence, sample_weight)


# -- as scorers of scikit-learn's tools ----------------------------------------------------


@documented
def covering_rate_scorer(estimator: BaseEstimator, X: MatrixLike, y: CandidatesLike) -> float:
    """Score a fitted classifier by its `covering_rate`, as ``scoring="covering_rate"`` does.

    The same as the `score` of this package's methods, for any classifier.

    <<Parameters: estimator, X, y>>

    <<scorer>>
    >>> covering_rate_scorer(PLKNN(n_neighbors=2).fit(X, S), [[0.0], [1.0]], [{"a", "c"}, {"a"}])
    0.5
    """
    return covering_rate(y, estimator.predict(X))


@documented
def covering_kappa_scorer(estimator: BaseEstimator, X: MatrixLike, y: CandidatesLike) -> float:
    """Score a fitted classifier by its `covering_kappa`, as ``scoring="covering_kappa"`` does.

    <<Parameters: estimator, X, y>>

    <<scorer>>
    >>> round(covering_kappa_scorer(PLKNN(n_neighbors=2).fit(X, S), X, S), 3)
    1.0
    """
    return covering_kappa(y, estimator.predict(X))


@documented
def approximated_accuracy_scorer(
    estimator: BaseEstimator, X: MatrixLike, y: CandidatesLike
) -> float:
    """Score a fitted classifier by its `approximated_accuracy`.

    ``scoring="approximated_accuracy"`` does the same.

    <<Parameters: estimator, X, y>>

    Notes
    -----
    Where there is no `predict_proba`, a softmax of the decision function stands in for it. Such
    probabilities are not calibrated: their sharpness goes with the scale of the decisions. With
    margins that grow with a parameter (C of a support vector machine) the choice leans towards
    large values; the covering rate has no such lean.

    <<scorer>>
    >>> round(approximated_accuracy_scorer(PLKNN(n_neighbors=2).fit(X, S), X, S), 3)
    0.75
    """
    if hasattr(estimator, "predict_proba"):
        P = estimator.predict_proba(X)
    elif hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X), dtype=np.float64)
        if scores.ndim == 1:  # two classes: the score of the second less that of the first
            scores = np.column_stack([np.zeros(len(scores)), scores])
        P = softmax(scores, axis=1)
    else:
        problem = "has neither predict_proba nor decision_function; use covering_rate_scorer."
        raise ArgumentError("estimator", f"{type(estimator).__name__} {problem}")
    return approximated_accuracy(y, P, classes=estimator.classes_)


def _register_scorers() -> None:
    """Let scikit-learn find the scorers by name.

    It has no public way to do so. Tools imported before have copied the names that they accept.
    """
    scorers = {
        "covering_rate": covering_rate_scorer,
        "covering_kappa": covering_kappa_scorer,
        "approximated_accuracy": approximated_accuracy_scorer,
    }
    _SCORERS.update(scorers)
    modules = [module for name, module in sys.modules.items() if name.startswith("sklearn.")]
    for tool in chain.from_iterable(vars(module).values() for module in modules):
        for place in ("_parameter_constraints", "_skl_parameter_constraints"):
            constraints = getattr(tool, place, None)
            scoring = constraints.get("scoring", ()) if isinstance(constraints, dict) else ()
            for option in scoring if isinstance(scoring, list) else ():
                if isinstance(option, StrOptions):
                    option.options |= scorers.keys()


_register_scorers()


def _decided_labels(transduction: Any) -> Array:
    """Find the labels in an array, a method, a pipeline or a search."""
    found = getattr(transduction, "best_estimator_", transduction)
    if hasattr(found, "named_steps"):
        found = found[-1]
    if hasattr(found, "get_params") and not hasattr(found, "transduction_"):
        problem = f"{type(found).__name__} has no transduction_; give a fitted method, or labels."
        raise ArgumentError("transduction", problem)
    return np.asarray(getattr(found, "transduction_", found))


def _predicted_labels(y_pred: Iterable[Hashable], n: int) -> list[Label]:
    """Return one predicted label for each example; candidate sets are out of place here."""
    labels = as_list(y_pred)
    if any(isinstance(label, Set | list) for label in labels):
        problem = "candidate sets in place of labels; the order is covering_rate(S, y_pred)."
        raise ArgumentError("y_pred", problem)
    if len(labels) != n:
        raise ArgumentError("y_pred", f"{len(labels)} labels for {n} examples; give one each.")
    return labels


def _checked_probabilities(probabilities: ArrayLike, n: int, q: int) -> Floats:
    try:
        P = np.asarray(probabilities, dtype=float)
    except (TypeError, ValueError):
        problem = "these are no numbers; the order is approximated_accuracy(S, probabilities)."
        raise ArgumentError("probabilities", problem) from None
    if P.shape != (n, q):
        problem = f"shape {P.shape} for {n} examples and {q} classes; name columns with `classes`."
        raise ArgumentError("probabilities", problem)
    wrong = ~((P >= 0).all(axis=1) & (P.sum(axis=1) > 0))
    if wrong.any():
        problem = f"row {np.argmax(wrong)} is negative somewhere, NaN or all zeros."
        raise ArgumentError("probabilities", problem)
    return P


def _average(values: ArrayLike, sample_weight: ArrayLike | None) -> float:
    values = np.asarray(values, dtype=float)
    return float(np.average(values, weights=_weights(sample_weight, len(values))))


def _weights(sample_weight: ArrayLike | None, n: int) -> Floats:
    if sample_weight is None:
        return np.ones(n)
    return _of_length(np.asarray(sample_weight, dtype=float), n, "sample_weight")


def _of_length(values: Array, n: int, argument: str) -> Array:
    if values.shape != (n,):
        raise ArgumentError(argument, f"shape {values.shape} for {n} examples; give one each.")
    return values


# -- deprecated ----------------------------------------------------------------------------


@deprecated("use sklearn.metrics.classification_report.")
def class_report(y_true: ArrayLike, y_pred: ArrayLike) -> str:
    """Return a table of the precision, recall and F1 of each class."""
    return str(classification_report(y_true, y_pred, zero_division=0))


@deprecated("use sklearn.metrics.accuracy_score.")
def accuracy(
    y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Return the share of the predictions that are right."""
    return float(accuracy_score(y_true, y_pred, sample_weight=sample_weight))


@deprecated("use sklearn.metrics.balanced_accuracy_score.")
def balanced_accuracy(
    y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Return the mean share of right predictions over the classes."""
    return float(balanced_accuracy_score(y_true, y_pred, sample_weight=sample_weight))
