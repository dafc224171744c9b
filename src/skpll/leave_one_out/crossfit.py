"""Any scikit-learn classifier, asked only about examples that it has not been trained on."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.model_selection import GroupKFold, KFold, check_cv
from sklearn.utils import check_array, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from skpll._errors import ArgumentError
from skpll._examples import Examples, Features, group_numbers
from skpll._iteration import Iterative
from skpll._temperature import fit_temperature, log_scores, probabilities
from skpll.base import MatrixLike, WeightedPartialLabelClassifier, unchanged_on_failure
from skpll.candidates import CandidatesLike
from skpll.diagnosis import features_finding
from skpll.engine.blocks import Block
from skpll.engine.held_out import HeldOutFolds, Model, Trained

from ._loop import Loop, Settings

__all__ = ["CrossFitClassifier"]

Floats = NDArray[np.float64]

_FORESTS: dict[type, type] = {
    RandomForestClassifier: RandomForestRegressor,
    ExtraTreesClassifier: ExtraTreesRegressor,
}


@dataclass(eq=False, repr=False)
class CrossFitClassifier(Iterative, WeightedPartialLabelClassifier):
    r"""Any classifier, asked about examples that it has not been trained on (cross-fitting).

    Use it on tables with categories and gaps, for classes that trees tell apart best.

    The loop of `PLLOO` with another model: confidences in the candidates become weighted copies of
    the rows, the classifier is trained on some folds and asked about the others, and its answers
    :math:`P_{ij}` become the new confidences,

    .. math:: Q_{ij} \propto P_{ij}^p \; e_{ij} \; u_j^\tau, \qquad j \in S_i.

    A forest of trees on bootstrap samples needs no folds: each example is asked of the trees that
    have not drawn it. It is grown on the confidences themselves, as a regression with one output
    for each class, which is the Gini criterion on soft labels.

    Features may be whatever the classifier takes: a data frame with categories and gaps for
    `HistGradientBoostingClassifier`, or anything for a pipeline.

    Parameters
    ----------
    estimator : classifier with `predict_proba`, optional
        Its `fit` has to take `sample_weight`. Default: a random forest of 100 trees; more make it
        steadier.
    cv : int, splitter or list of splits, default=5
        Number of shuffled folds, or a splitter such as `GroupKFold`; a forest needs none, unless
        `fit` is given groups.
    class_prior : {"candidates"} or None, default="candidates"
        Whether as many examples of each class are expected as the candidates suggest.
    prior_strength : float, default=0.0
        How much that counts, from 0 to 1.
    power : float, default=1.5
        By how much the answers are sharpened in a round.
    max_iter : int, default=5
        Largest number of rounds.
    tol : float, default=1e-3
        Stop when less than this share of the confidence moves in a round.
    random_state : int, RandomState or None, default=0
        Draws the folds, and the trees of the default forest.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    classes_ : array of shape (q,)
        The labels, sorted.
    estimator_ : classifier or regressor
        The final model, trained on all examples.
    <<loop>>
    temperature_ : float
        The answers to the power of ``1 / temperature_`` are the probabilities: above one flattens
        them. The candidate sets are most likely at this one.
    inseparable_ : list of tuple
        Labels that never come apart, see `skpll.diagnose`: confidences and probabilities share out
        evenly what they have together.

    References
    ----------
    The developers of skpll: Leave-one-out disambiguation. A method of this package, described in
    its documentation, 2026.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skpll import CrossFitClassifier
    >>> X = [[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]]
    >>> S = [{"a"}, {"a", "b"}, {"a"}, {"b"}, {"a", "b"}, {"b"}]
    >>> model = CrossFitClassifier(LogisticRegression(), cv=3).fit(X, S)
    >>> model.transduction_.tolist()
    ['a', 'a', 'a', 'b', 'b', 'b']
    """

    accepts_sparse = calibrated = diagnosed = weighs_candidates = True

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict_proba"]), None],
        "cv": ["cv_object"],
        "class_prior": [StrOptions({"candidates"}), None],
        "prior_strength": [Interval(Real, 0, 1, closed="both")],
        "power": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        **Iterative.parameter_constraints,
    }

    estimator: BaseEstimator | None = None
    cv: Any = 5
    _: KW_ONLY
    class_prior: str | None = "candidates"
    prior_strength: float = 0.0
    power: float = 1.5
    max_iter: int = 5
    tol: float = 1e-3
    random_state: int | np.random.RandomState | None = 0
    verbose: int = 0

    def fit(
        self,
        X: MatrixLike,
        y: CandidatesLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn from examples and their candidate labels.

        An interrupt (Ctrl-C) ends the rounds early with a warning.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, d)
            The features, as the classifier takes them.
        y : candidate sets of n examples
            Any format of `skpll.as_candidates`.
        <<rows>>
        groups : array-like of shape (n,), optional
            Examples of the same group are held out together: `cv` splits the groups, and a forest
            is asked about folds instead of out of bag.

        Returns
        -------
        self
        """
        with unchanged_on_failure(self):
            examples = self._examples(X, y, sample_weight)
            if groups is not None:
                examples = replace(examples, groups=group_numbers(groups, examples.sets))
            return self._learn(examples)

    def _fit(self, examples: Examples) -> Floats:
        X, candidates, sample_weight = examples.X, examples.sets, examples.weights
        asked = self._questions(examples)
        block = Block.of(replace(examples, weights=sample_weight / sample_weight.mean()))
        strength = 0.0 if self.class_prior is None else self.prior_strength
        settings = Settings(self.max_iter, self.tol, self.power, strength)
        loop = Loop(block, lambda q: candidates.entries(asked.ask(q)), settings)
        self.iterate(loop.rounds(), X=X)
        logits = log_scores(asked.ask(loop.confidences))
        self.temperature_ = fit_temperature(candidates, logits, sample_weight)
        self._found = [features_finding(candidates, np.exp(logits), sample_weight)]
        self._final = asked.final()
        self.estimator_ = self._final.model
        loop.scores = candidates.entries(np.exp(logits))
        return np.asarray(loop.confidences_at(1 / self.temperature_))

    def _questions(self, examples: Examples) -> _Forest | HeldOutFolds:
        estimator: Model = self.estimator
        if estimator is None:
            estimator = RandomForestClassifier(random_state=self.random_state)
        forest = _FORESTS.get(type(estimator))
        if forest is not None and estimator.bootstrap and examples.groups is None:
            return _Forest(_as_regressor(estimator, forest), examples)
        n, folds = len(examples), self.cv
        if isinstance(folds, Integral):
            n_units = n if examples.groups is None else len(np.unique(examples.groups))
            splitter: type = KFold if examples.groups is None else GroupKFold
            n_folds = min(int(folds), n_units)
            folds = splitter(n_folds, shuffle=True, random_state=self.random_state)
        parts = list(check_cv(folds).split(np.zeros(n), groups=examples.groups))
        held_out = np.sort(np.concatenate([test for _, test in parts]))
        if not np.array_equal(held_out, np.arange(n)):
            raise ArgumentError(
                "cv",
                f"the test parts don't hold each of the {n} examples of positive weight once; "
                "give folds that do.",
            )
        return HeldOutFolds(estimator, parts, examples)

    def _class_scores(self, X: Features) -> Floats:
        return self._final.answers(X, len(self._seen))

    def _probabilities(self, scores: Floats) -> Floats:
        return probabilities(log_scores(scores), self.temperature_)

    def _read_features(self, X: Features, reset: bool = True) -> Features:
        """Leave the features to the classifier; look at their number and names only."""
        if not hasattr(X, "iloc"):
            X = check_array(
                X, accept_sparse="csr", dtype=None, ensure_all_finite=False, estimator=self
            )
        validate_data(self, X, reset=reset, skip_check_array=True)
        return X

    def _validate_features(self, X: Features) -> Features:
        check_is_fitted(self)
        return self._read_features(X, reset=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        estimator = RandomForestClassifier() if self.estimator is None else self.estimator
        inner = get_tags(estimator).input_tags
        tags.input_tags.allow_nan, tags.input_tags.sparse = inner.allow_nan, inner.sparse
        return tags


class _Forest:
    """A forest that is asked by the trees that have not drawn the example."""

    def __init__(self, forest: Model, examples: Examples) -> None:
        self.forest, self.examples = forest, examples

    def ask(self, confidences: Floats) -> Floats:
        X, sets, weights = self.examples.X, self.examples.sets, self.examples.weights
        targets = sets.to_matrix(confidences).toarray()
        self.grown = clone(self.forest).fit(X, targets, sample_weight=weights)
        return np.asarray(self.grown.oob_prediction_)

    def final(self) -> Trained:
        return Trained(self.grown, None)


def _as_regressor(forest: Model, kind: type) -> Model:
    """Return the forest that grows the same trees on soft labels."""
    shared = set(kind().get_params()) - {"criterion", "oob_score"}
    parameters = {name: value for name, value in forest.get_params().items() if name in shared}
    return kind(oob_score=True, **parameters)
