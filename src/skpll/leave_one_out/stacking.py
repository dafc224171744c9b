"""Several methods together, weighted by how well they predict what they have not seen."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import _BaseComposition

from skpll._errors import ArgumentError
from skpll._examples import Examples, Features
from skpll._labels import as_objects
from skpll._temperature import fit_temperature, log_scores, probabilities
from skpll._typing import Estimator
from skpll.base import PartialLabelClassifier
from skpll.candidates import CandidateSets
from skpll.diagnosis import Finding, evidence_of_sets, features_finding, weighed_sums
from skpll.engine.held_out import check_takes_candidates, fit_quietly

from .calibration import cross_fitted

if TYPE_CHECKING:  # scikit-learn has no types

    class _Composition:
        def _get_params(self, name: str, deep: bool) -> dict[str, Any]: ...

        def _set_params(self, name: str, **parameters: Any) -> Any: ...

        def _validate_names(self, names: list[str]) -> None: ...

else:
    _Composition = _BaseComposition

__all__ = ["StackedCandidates", "mixture_weights"]

Floats = NDArray[np.float64]

MIN_SINGLETONS = 20
"""Fewer examples with a single candidate than this give no weights."""

DIFFERENT_WEIGHTS = 0.25
"""Weights by sets and weights by singletons disagree if this share of the weight is elsewhere."""


@dataclass(eq=False, repr=False)
class StackedCandidates(_Composition, PartialLabelClassifier):
    r"""Mix the probabilities of several methods.

    Each method is trained on some folds and asked for probabilities :math:`P^m_{ij}` of the others,
    at the temperature under which the candidate sets are most likely. The mixture
    :math:`\sum_m w_m P^m_{ij}` has the weights that make the candidate sets of held-out examples
    most likely,

    .. math:: \max_w \sum_i \log \sum_m w_m \sum_{j \in S_i} P^m_{ij},
              \qquad w \ge 0, \; \sum_m w_m = 1,

    or the labels of those that have a single candidate. The methods are then trained on all
    examples. Where a label is in almost every set, candidates that are seldom false count more, so
    that a method that predicts nothing but that label gets no weight.

    A mixture is often as good as the best of its methods, or better, except where *sets are more
    predictable than labels*. On MSRCv2, whose sets are what a picture shows, a forest recognizes
    the picture and so the set, and gets most of the weight, though PL-LOO finds more labels
    (see its documentation page). `fit` warns where weights by sets and by singletons disagree;
    take ``final="singletons"`` there, or the best method alone.

    Parameters
    ----------
    estimators : list of (str, estimator)
        Methods of partial labels, or pipelines that end in one, with `predict_proba`, and their
        names. ``CrossFitClassifier(classifier)`` makes one of any classifier.
    final : {"mixture", "singletons", "equal"}, default="mixture"
        Weights by the likelihood of held-out candidate sets; by the likelihood of the labels of
        held-out examples with a single candidate, of which there have to be 20; or equal weights.
    cv : int, default=3
        Number of folds.
    random_state : int, RandomState or None, default=0
        Draws the folds.

    Attributes
    ----------
    classes_ : array of shape (q,)
        The labels, sorted.
    estimators_ : list of classifier
        The methods, trained on all examples.
    weights_ : array of shape (number of methods,)
        The weight of each method.
    temperatures_ : array of shape (number of methods,)
        The temperature of each method.
    <<mixed>>
    label_distributions_ : sparse array of shape (n, q)
        Probabilities of the candidates, from models that were not trained on the example.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : array of str
        Their names, where `X` had any.

    Examples
    --------
    >>> from skpll import CLPL, PLKNN, StackedCandidates
    >>> from skpll.datasets import make_partial_classification
    >>> X, S, y = make_partial_classification(120, 5, 3, p=0.5, class_sep=2.0, random_state=0)
    >>> model = StackedCandidates([("near", PLKNN()), ("linear", CLPL())]).fit(X, S)
    >>> model.weights_.shape, model.score(X, y) > 0.9
    ((2,), True)
    """

    calibrated = diagnosed = True

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimators": [list],
        "final": [StrOptions({"mixture", "singletons", "equal"})],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
    }

    estimators: list[tuple[str, Estimator]]
    final: Literal["mixture", "singletons", "equal"] = "mixture"
    _: KW_ONLY
    cv: int = 3
    random_state: int | np.random.RandomState | None = 0

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, with `deep` also those of the methods.

        Parameters
        ----------
        deep : bool, default=True
            Whether to return the methods and their parameters, too.

        Returns
        -------
        parameters : dict
        """
        return self._get_params("estimators", deep=deep)

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters, methods by their names, or parameters of methods.

        Parameters
        ----------
        **parameters : dict
            Such as ``cv=5``, ``forest=CrossFitClassifier()`` or ``forest__cv=3``.

        Returns
        -------
        self
        """
        self._set_params("estimators", **parameters)
        return self

    def _fit(self, examples: Examples) -> Floats:
        X, sets = examples.X, examples.sets
        methods = self._methods()
        logits = [
            log_scores(cross_fitted(method, X, sets, self.cv, self.random_state))
            for method in methods
        ]
        temperatures = [fit_temperature(sets, each, examples.weights) for each in logits]
        self.temperatures_ = np.array(temperatures)
        shares = np.stack([*map(probabilities, logits, temperatures)])
        evidence = evidence_of_sets(sets, shares.mean(axis=0))
        covered = np.stack([weighed_sums(sets, each, evidence) for each in shares])
        self.weights_ = self._weights(sets, covered)
        mixed = np.tensordot(self.weights_, shares, axes=1)
        self._found = [features_finding(sets, mixed, examples.weights)]
        if self.final == "mixture":
            self._found.append(_disagreement(sets, covered, self.weights_, self._names()))
        self.estimators_ = [fit_quietly(method, X, sets) for method in methods]
        return sets.entries(mixed)

    def _names(self) -> list[str]:
        return [name for name, _ in self.estimators]

    def _methods(self) -> list[Estimator]:
        try:
            pairs = [(str(name), method) for name, method in self.estimators]
        except (TypeError, ValueError):
            pairs = []
        if not pairs:
            raise ArgumentError("estimators", "give a list of pairs of a name and a method.")
        self._validate_names([name for name, _ in pairs])
        for _, method in pairs:
            check_takes_candidates(method)
        return [method for _, method in pairs]

    def _weights(self, sets: CandidateSets, covered: Floats) -> Floats:
        """Weigh the methods by how likely they find the set of each example: (methods, n)."""
        if self.final == "equal":
            return np.full(len(covered), 1 / len(covered))
        if self.final == "mixture":
            return mixture_weights(covered)
        single = sets.sizes == 1
        if single.sum() < MIN_SINGLETONS:
            raise ArgumentError(
                "final",
                f"{single.sum()} examples have a single candidate, {MIN_SINGLETONS} are needed for "
                "weights; use 'mixture' or 'equal'.",
            )
        return mixture_weights(covered[:, single])

    def _class_scores(self, X: Features) -> Floats:
        answers = [np.asarray(method.predict_proba(X)) for method in self.estimators_]
        shares = [*map(probabilities, map(log_scores, answers), self.temperatures_)]
        return np.tensordot(self.weights_, np.stack(shares), axes=1)

    def _probabilities(self, scores: Floats) -> Floats:
        return scores

    def _feature_checks(self) -> dict[str, Any]:
        return {**super()._feature_checks(), "accept_sparse": "csr"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with suppress(TypeError, ValueError):  # estimators that are no pairs: `fit` says so
            sparse = [get_tags(method).input_tags.sparse for _, method in self.estimators]
            tags.input_tags.sparse = all(sparse)
        return tags


def mixture_weights(likelihoods: Floats, max_iter: int = 1000, tol: float = 1e-6) -> Floats:
    r"""Find the weights of a mixture that make its observations most likely.

    The problem :math:`\max_w \sum_i \log \sum_m w_m L_{mi}` is convex; EM steps solve it.

    Parameters
    ----------
    likelihoods : array of shape (number of parts, n)
        How likely each part of the mixture finds each observation.
    max_iter : int, default=1000
        Largest number of steps.
    tol : float, default=1e-6
        Stop when no weight changes by more than this.

    Returns
    -------
    weights : array of shape (number of parts,)
    """
    weights = np.full(len(likelihoods), 1 / len(likelihoods))
    for _ in range(max_iter):
        parts = weights[:, np.newaxis] * likelihoods
        updated = (parts / parts.sum(axis=0)).mean(axis=1)
        change = np.abs(updated - weights).max()
        weights = updated
        if change <= tol:
            break
    return weights


def _disagreement(
    sets: CandidateSets, covered: Floats, weights: Floats, names: list[str]
) -> Finding | None:
    """Return a finding if the singletons want other weights than the sets, beyond chance.

    The weights of the singletons are fitted to them: by chance alone, their gain is half a standard
    error for each standard error that a weight is off. So a gain of one standard error is a
    difference of two.
    """
    rows = np.flatnonzero(sets.sizes == 1)
    if len(rows) < MIN_SINGLETONS or len(rows) == len(sets):
        return None
    labels = covered[:, rows]
    wanted = mixture_weights(labels)
    gains = np.log(wanted @ labels) - np.log(weights @ labels)
    certain = gains.mean() > gains.std() / np.sqrt(len(rows))
    if not certain or np.abs(wanted - weights).sum() / 2 < DIFFERENT_WEIGHTS:
        return None
    shown = [
        ", ".join(f"{name} {weight:.2f}" for name, weight in zip(names, each, strict=True))
        for each in (weights, wanted)
    ]
    return Finding(
        "sets",
        tuple(as_objects(sets.classes)),
        rows,
        f"Candidate sets are more predictable than labels: the sets give the weights {shown[0]}, "
        f"the {len(rows)} examples with a single candidate {shown[1]}.",
        "A method that predicts sets well need not find the label in them, so confidences of the "
        "mixture may be too high.",
        'Use final="singletons", or the method that the singletons prefer.',
    )
