"""Self-paced learning around any method that takes weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import KFold
from sklearn.utils import Tags, get_tags
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.validation import has_fit_parameter

from ._examples import Examples, Features
from ._iteration import Iterative, Record
from ._parameters import COUNT
from ._typing import Constraints, Estimator, Floats
from .base import WeightedPartialLabelClassifier, for_all_examples
from .engine.held_out import check_takes_candidates, held_out_answers
from .pacing import LEAVE_ONE_OUT, Pace, Paced, Stage, with_pace_parameters

__all__ = ["SelfPaced"]

DEFAULT_FOLDS = 3


@with_pace_parameters
@dataclass(eq=False, repr=False)
class SelfPaced(Paced, Iterative, WeightedPartialLabelClassifier):
    r"""Train a method on easy examples first (self-paced learning).

    Use it to see what a pace does for a method; compare with the method itself.

    In stages of a growing pace :math:`\lambda`, the method is asked how far it trusts in the label
    it decides for, and trained again with weights :math:`v_i` that follow from it,

    .. math:: &\ell_i = 1 - \max_{j \in S_i} Q_{ij}, \\
              &v_i = \arg\min_{v \in [0, 1]} v \, \ell_i + f(v, \lambda),

    where :math:`Q_{ij}` are the confidences of models that have not seen the example (`Pace.cv`),
    or of the method itself. `SPPLL` is the same idea inside a maximum-margin method.

    Parameters
    ----------
    estimator : classifier of partial labels
        Its `fit` takes `sample_weight`, and it has `predict_proba`.
    pace : Pace or None, default=None
        What makes an example hard, given the losses :math:`1 - Q_{ij}` of its candidates, how its
        weight follows from that, and how the pace grows; see `skpll.pacing.Pace`. With a number of
        folds, ``Pace(cv=3)``, or the difficulty ``"leave_one_out"`` (which is the loss by three
        folds unless `cv` says otherwise), models that have not seen the example are asked,
        otherwise the method itself. None is ``Pace(difficulty="loss", weights="mixture", cv=3)``,
        which was chosen on digits, glass and vehicle with the test rows in view.
    n_stages : int, default=4
        Number of stages; the pace grows by the same factor from each to the next.
    random_state : int, RandomState or None, default=0
        Seed of the folds.
    <<verbose>>

    <<Attributes: classes_>>
    estimator_ : classifier
        The method, trained with the weights of the last stage.
    transduction_ : array of shape (n,)
        The label decided for each training example, by `estimator_`.
    label_distributions_ : sparse array of shape (n, q)
        Its confidence in each candidate.
    weights_ : array of shape (n,)
        The final weight of each training example.
    <<labeled_iter_>>
    history_ : list of dict
        For each stage its ``pace``, the share of the examples ``admitted`` and the
        ``mean_weight``.
    n_iter_ : int
        Number of stages.
    <<n_features_in_, feature_names_in_>>

    References
    ----------
    G. Lyu, S. Feng, Y. Wang, C. Lang: A self-paced regularization framework for partial-label
    learning. IEEE Transactions on Cybernetics, 2020; arXiv 1804.07759.

    Examples
    --------
    >>> from skpll import CLPL, SelfPaced
    >>> from skpll.datasets import make_partial_classification
    >>> X, S, y = make_partial_classification(100, 5, 3, p=0.7, class_sep=2.0, random_state=0)
    >>> model = SelfPaced(CLPL()).fit(X, S)
    >>> [round(record["pace"], 2) for record in model.history_]
    [0.6, 0.71, 0.84, 1.0]
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "estimator": [HasMethods(["fit", "predict_proba"])],
        "pace": [Pace, None],
        "n_stages": [COUNT],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    estimator: Estimator
    _: KW_ONLY
    pace: Pace | None = None
    n_stages: int = 4
    random_state: int | np.random.RandomState | None = 0
    verbose: int = 0

    _own_pace: ClassVar[dict[str, object]] = {"difficulty": "loss", "weights": "mixture", "cv": 3}

    def _fit(self, examples: Examples) -> Floats:
        check_takes_candidates(self.estimator)
        if not has_fit_parameter(self.estimator, "sample_weight"):
            raise ValueError(
                f"estimator: {type(self.estimator).__name__}.fit takes no sample_weight, which "
                "carries the pace; choose a method that does."
            )
        pace = self._current_pace()
        if pace.difficulty == LEAVE_ONE_OUT:
            pace.set_params(difficulty="loss", cv=pace.cv or DEFAULT_FOLDS)
        stages = pace.stages([1.0] * self.n_stages)
        self.iterate(
            self._run(examples, pace, stages),
            total=len(stages),
            X=examples.X,
            describe=lambda record: f"pace {record['pace']:.2f}  admitted {record['admitted']:.0%}",
            unit="stage",
        )
        return np.asarray(self.estimator_.label_distributions_.data, dtype=np.float64)

    def _run(self, examples: Examples, pace: Pace, stages: list[Stage]) -> Iterator[Record]:
        """Weigh the examples and train on them, at a growing pace."""
        sets = examples.sets
        self.weights_ = np.ones(len(sets))
        self.labeled_iter_ = np.full(len(sets), -1)
        self.estimator_ = self._trained(examples)
        for number, stage in enumerate(stages):
            confidences = self._confidences(examples, pace.cv)
            assigned = sets.row_argmax(confidences)
            difficulty = pace.measure(1.0 - confidences, assigned, sets)
            labels = sets.indices[assigned]
            weights = pace.weigh(difficulty, stage, examples.weights, labels)
            if len(np.unique(labels[weights > 0])) > 1:  # otherwise nothing is left to learn from
                self.weights_ = weights
            self.labeled_iter_[(self.weights_ > 0) & (self.labeled_iter_ < 0)] = number
            self.estimator_ = self._trained(examples)
            yield {
                "pace": stage.pace,
                "admitted": float(np.mean(self.weights_ > 0)),
                "mean_weight": float(np.mean(self.weights_)),
            }

    def _trained(self, examples: Examples) -> BaseEstimator:
        """Return the method, trained with the current weights."""
        weights = self.weights_ * examples.weights
        return clone(self.estimator).fit(examples.X, examples.sets, sample_weight=weights)

    def _confidences(self, examples: Examples, n_folds: int | None) -> Floats:
        """Return the confidence in each candidate."""
        sets, n = examples.sets, len(examples)
        if n_folds is None or n < 2 * n_folds:
            return np.asarray(self.estimator_.label_distributions_.data, dtype=np.float64)
        weights = self.weights_ * examples.weights
        folds = KFold(n_folds, shuffle=True, random_state=self.random_state)
        parts = [
            (others, fold)
            for others, fold in folds.split(np.zeros(n))
            if len(sets[others[weights[others] > 0]].seen()[1]) > 1  # something to learn from
        ]
        answers = held_out_answers(self.estimator, examples.X, sets, parts, weights)
        return sets.row_normalized(sets.entries(np.nan_to_num(answers, nan=1)))

    def _restore(self, taking_part: NDArray[np.bool_]) -> None:
        self.weights_ = for_all_examples(self.weights_, taking_part, 0.0)
        self.labeled_iter_ = for_all_examples(self.labeled_iter_, taking_part, -1)

    def _class_scores(self, X: Features) -> Floats:
        return np.asarray(self.estimator_.predict_proba(X))

    def _probabilities(self, scores: Floats) -> Floats:
        return scores

    def _feature_checks(self) -> dict[str, object]:
        return {**super()._feature_checks(), "accept_sparse": "csr"}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags
