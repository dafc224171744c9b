"""Probabilities and prediction sets of any method, calibrated by candidate sets or known labels."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import KFold
from sklearn.utils import check_consistent_length, get_tags
from sklearn.utils._param_validation import HasMethods, Interval

from skpll._errors import ArgumentError
from skpll._examples import Examples, Features, are_missing
from skpll._labels import as_objects, lookup_codes
from skpll._temperature import fit_temperature, log_scores, match_accuracy, probabilities
from skpll._typing import CandidatesLike, Estimator, MatrixLike
from skpll.base import PartialLabelClassifier, unchanged_on_failure
from skpll.candidates import CandidateSets
from skpll.diagnosis import features_finding
from skpll.engine.held_out import Model, check_takes_candidates, fit_quietly, held_out_answers

__all__ = ["CalibratedCandidatesCV", "cross_fitted"]

Floats = NDArray[np.float64]

MIN_KNOWN = 30
"""With fewer known labels than this, the temperature is found by all candidate sets."""

ASSUMPTIONS = {
    "truth": "the rows with a known label are a random sample of all rows",
    "singletons": "the rows with a single candidate are like all other rows, and it is right",
}
"""What the coverage of prediction sets rests on."""


@dataclass(eq=False, repr=False)
class CalibratedCandidatesCV(PartialLabelClassifier):
    r"""Calibrate the probabilities of a method by the candidate sets, or by known labels.

    The method is trained on some folds and asked for probabilities :math:`P_{ij}` of the others.
    The temperature T under which :math:`P_{ij}^{1/T}`, normalized, makes the candidate sets most
    likely,

    .. math:: \max_T \sum_i \log \frac{\sum_{j \in S_i} P_{ij}^{1/T}}{\sum_j P_{ij}^{1/T}},

    sharpens or flattens the probabilities of the method trained on everything.

    Without a known label this is right where candidates are at random given the label: where
    false ones are drawn without regard to the features. Where they depend on the features, the
    probabilities are too sure. Give `fit` the labels that are known, as its `truth`: the
    temperature is then the one at which the mean probability of held-out predictions is the share
    of them that is right.

    Parameters
    ----------
    estimator : classifier of partial labels, or a pipeline that ends in one
        It has `predict_proba`.
    cv : int, default=5
        Number of folds.
    random_state : int, RandomState or None, default=0
        Draws the folds.

    Attributes
    ----------
    classes_ : array of shape (q,)
        The labels, sorted.
    estimator_ : classifier
        The method, trained on all examples.
    temperature_ : float
        Above one where the method was too sure, below one where it was too cautious.
    calibrated_by_ : {"truth", "candidates"}
        Whether the temperature was found by known labels, of which there have to be 30, or by the
        candidate sets.
    nonconformity_ : array
        For each row with a known label, or, where there is none, with a single candidate: one less
        the probability of this label, by a model without the row; sorted.
    coverage_assumption_ : str
        What the coverage of `predict_sets` rests on.
    <<mixed>>
    label_distributions_ : sparse array of shape (n, q)
        Calibrated probabilities of the candidates, from a model that was not trained on the
        example. Where the truth is known it is the only candidate.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : array of str
        Their names, where `X` had any.

    References
    ----------
    V. Vovk, A. Gammerman, G. Shafer: Algorithmic learning in a random world. Springer, 2005
    (conformal prediction).

    Examples
    --------
    >>> from skpll import PLKNN, CalibratedCandidatesCV
    >>> X = [[0.0], [0.1], [0.2], [0.3], [1.0], [1.1], [1.2], [1.3]]
    >>> S = [{"a"}, {"a", "b"}, {"a"}, {"a"}, {"b"}, {"a", "b"}, {"b"}, {"b"}]
    >>> model = CalibratedCandidatesCV(PLKNN(n_neighbors=3), cv=4).fit(X, S)
    >>> model.predict([[0.05], [1.05]]).tolist()
    ['a', 'b']
    >>> model.predict_sets([[0.05], [1.05]], coverage=0.8).to_lists()
    [['a'], ['b']]
    """

    calibrated = diagnosed = True

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict_proba"])],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
    }

    estimator: Estimator
    cv: int = 5
    _: KW_ONLY
    random_state: int | np.random.RandomState | None = 0

    def fit(self, X: MatrixLike, y: CandidatesLike, truth: ArrayLike | None = None) -> Self:
        """Learn from examples and their candidate labels.

        Parameters
        ----------
        X : array-like of shape (n, d)
            The features.
        y : candidate sets of n examples
            In a format of `skpll.as_candidates`.
        truth : array-like of shape (n,), optional
            The label of each example where it is known, and None or NaN where it is not. A known
            label takes the place of the candidates. The rows should be a random sample: they are
            what probabilities and prediction sets are calibrated by.

        Returns
        -------
        self
        """
        with unchanged_on_failure(self):
            examples = self._examples(X, y)
            known = np.zeros(len(examples), dtype=bool)
            if truth is not None:
                sets, known = with_truth(examples.sets, truth)
                examples = replace(examples, sets=sets)
            self._known = known
            return self._learn(examples)

    def _fit(self, examples: Examples) -> Floats:
        X, sets, known = examples.X, examples.sets, vars(self).pop("_known")
        check_takes_candidates(self.estimator)
        scores = cross_fitted(self.estimator, X, sets, self.cv, self.random_state)
        logits = log_scores(scores)
        self.calibrated_by_ = "truth" if known.sum() >= MIN_KNOWN else "candidates"
        if self.calibrated_by_ == "truth":
            labels = sets.indices[sets.indptr[:-1]][known]
            self.temperature_ = match_accuracy(logits[known], labels)
        else:
            self.temperature_ = fit_temperature(sets, logits, examples.weights)
        shares = probabilities(logits, self.temperature_)
        self.coverage_assumption_ = ASSUMPTIONS["truth" if known.any() else "singletons"]
        rows = np.flatnonzero(known if known.any() else sets.sizes == 1)
        self.nonconformity_ = np.sort(1 - shares[rows, sets.indices[sets.indptr[rows]]])
        self._found = [features_finding(sets, scores, examples.weights)]
        self.estimator_ = fit_quietly(self.estimator, X, sets)
        return sets.entries(shares)

    def predict_sets(self, X: MatrixLike, coverage: float = 0.9) -> CandidateSets:
        """Return for each example a set of labels that has the right one as often as asked for.

        A set has the labels whose probability is not lower than that of the right label is in the
        given share of the rows whose label is known, by models without the row (split-conformal
        calibration, in folds). The coverage is right on average over examples like those, not for
        every class or kind of example, and rests on an assumption: with `truth`, that rows with a
        known label are a random sample; without, that examples with a single candidate are like
        all others, which is often not so. The models of the folds have seen fewer examples than
        the final one, so that sets are rather too large than too small.

        Parameters
        ----------
        X : array-like of shape (n, d)
            The features.
        coverage : float, default=0.9
            The share of the sets that should have the right label, between 0 and 1.

        Returns
        -------
        sets : CandidateSets
            The label of `predict` is in each of them. Where fewer labels are known than
            ``coverage / (1 - coverage)``, all labels are.
        """
        if not 0 < coverage < 1:
            raise ArgumentError("coverage", f"{coverage!r} is no share between 0 and 1.")
        P = self.predict_proba(X)
        n = len(self.nonconformity_)
        if not n:
            raise ArgumentError(
                "coverage",
                "no label of a training row is known; fit with truth=, or with examples that have "
                "a single candidate.",
            )
        rank = int(np.ceil((n + 1) * coverage - 1e-9))
        limit = self.nonconformity_[rank - 1] if rank <= n else 1.0
        inside = limit + 1e-12 >= 1 - P
        inside[np.arange(len(P)), P.argmax(axis=1)] = True
        ends = np.append(0, np.cumsum(inside.sum(axis=1)))
        return CandidateSets(ends, np.nonzero(inside)[1], self.classes_)

    def _class_scores(self, X: Features) -> Floats:
        model: Model = self.estimator_
        return np.asarray(model.predict_proba(X))

    def _probabilities(self, scores: Floats) -> Floats:
        return probabilities(log_scores(scores), self.temperature_)

    def _feature_checks(self) -> dict[str, Any]:
        return {**super()._feature_checks(), "accept_sparse": "csr"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags


def cross_fitted(
    estimator: Estimator,
    X: Features,
    sets: CandidateSets,
    cv: int,
    random_state: int | np.random.RandomState | None,
) -> Floats:
    """Return the probabilities of the classes by models that were trained on other folds."""
    n_folds = min(cv, len(sets))
    if n_folds < 2:
        return np.ones(sets.shape)
    folds = KFold(n_folds, shuffle=True, random_state=random_state)
    return held_out_answers(estimator, X, sets, folds.split(np.zeros(len(sets))))


def with_truth(sets: CandidateSets, truth: ArrayLike) -> tuple[CandidateSets, NDArray[np.bool_]]:
    """Put known labels in the place of candidate sets.

    Parameters
    ----------
    sets : CandidateSets
        The candidate sets.
    truth : array-like of shape (n,)
        Labels, or None or NaN where they are not known.

    Returns
    -------
    sets : CandidateSets
        With one candidate in the rows whose label is known.
    known : bool array of shape (n,)
        Which rows that are.
    """
    values = np.asarray(truth)
    if values.ndim != 1:
        raise ArgumentError("truth", "pass one label per example, in one dimension.")
    check_consistent_length(sets, values)
    known = ~are_missing(values)
    codes = lookup_codes(as_objects(values[known]), sets.classes)
    if (codes < 0).any():
        row = int(np.flatnonzero(known)[codes < 0][0])
        raise ArgumentError(
            "truth",
            f"row {row}: the label {values[row]!r} is in no candidate set; add it to the classes "
            "of y, or leave it out.",
        )
    certain = CandidateSets._trusted(np.arange(len(codes) + 1), codes, sets.classes)
    rows = np.arange(len(sets))
    rows[known] = len(sets) + np.arange(len(codes))
    return CandidateSets.concatenate([sets, certain])[rows], known
