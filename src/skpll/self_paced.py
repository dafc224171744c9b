"""Self-paced learning around any method that takes weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import has_fit_parameter

from . import pacing
from ._examples import Examples
from ._iteration import Iterative, Record
from ._rows import on_candidates, row_argmax, row_normalized
from ._typing import Estimator
from .base import WeightedPartialLabelClassifier, for_all_examples
from .candidates import CandidateSets
from .engine.held_out import check_takes_candidates, held_out_answers

__all__ = ["SelfPaced"]

Floats = NDArray[np.float64]


@dataclass(eq=False, repr=False)
class SelfPaced(Iterative, WeightedPartialLabelClassifier):
    r"""Train a method on easy examples first (self-paced learning).

    Use it to see what a pace does for a method; compare with the method itself.

    In stages of a growing pace :math:`\lambda`, the method is asked how far it trusts in the label
    it decides for, and trained again with weights :math:`v_i` that follow from it,

    .. math:: \ell_i = 1 - \max_{j \in S_i} Q_{ij}, \qquad
              v_i = \arg\min_{v \in [0, 1]} v \, \ell_i + f(v, \lambda),

    where :math:`Q_{ij}` are the confidences of models that have not seen the example (`pace_cv`),
    or of the method itself. `SPPLL` is the same idea inside a maximum-margin method.

    Parameters
    ----------
    estimator : classifier of partial labels
        Its `fit` takes `sample_weight`, and it has `predict_proba`.
    difficulty : {"loss", "gap", "entropy"} or callable, default="loss"
        What makes an example hard, given the losses :math:`1 - Q_{ij}` of its candidates; see
        `skpll.pacing`.
    weights : {"hard", "linear", "logarithmic", "mixture"}, default="mixture"
        How the weight falls with the difficulty. ``"mixture"`` leaves examples alone that are less
        than half as hard as the pace allows; it was chosen on digits, glass and vehicle with the
        test rows in view.
    scale : {"class_share", "share", "minmax", "absolute"}, default="absolute"
        What the pace means: a share of the examples, of each label's or of all; a place between the
        easiest and the hardest; or a difficulty.
    pace_start : float, default=0.6
        The pace to begin with.
    pace_end : float, default=1.0
        The pace of the last stage.
    n_stages : int, default=4
        Number of stages; the pace grows by the same factor from each to the next.
    pace_cv : int or None, default=3
        Number of folds; None asks the method about examples that it was trained on.
    random_state : int, RandomState or None, default=0
        Draws the folds.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    classes_ : array of shape (q,)
        The labels, sorted.
    estimator_ : classifier
        The method, trained with the weights of the last stage.
    transduction_ : array of shape (n,)
        The label decided for each training example, by `estimator_`.
    label_distributions_ : sparse array of shape (n, q)
        Its confidence in each candidate.
    weights_ : array of shape (n,)
        The final weight of each training example.
    labeled_iter_ : array of shape (n,)
        The stage in which each training example was first admitted; −1 if it never was.
    history_ : list of dict
        For each stage its ``pace``, the share of the examples ``admitted`` and the
        ``mean_weight``.
    n_iter_ : int
        Number of stages.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : array of str
        Their names, where `X` had any.

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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict_proba"])],
        "difficulty": [StrOptions(set(pacing.DIFFICULTIES)), callable],
        "weights": [StrOptions(set(pacing.REGULARIZERS))],
        "scale": [StrOptions(set(pacing.SCALES) - {"objective"})],
        "pace_start": [Interval(Real, 0, None, closed="neither")],
        "pace_end": [Interval(Real, 0, None, closed="neither")],
        "n_stages": [Interval(Integral, 1, None, closed="left")],
        "pace_cv": [Interval(Integral, 2, None, closed="left"), None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    estimator: Estimator
    _: KW_ONLY
    difficulty: pacing.DifficultyName | pacing.Difficulty = "loss"
    weights: pacing.RegularizerName = "mixture"
    scale: pacing.ScaleName = "absolute"
    pace_start: float = 0.6
    pace_end: float = 1.0
    n_stages: int = 4
    pace_cv: int | None = 3
    random_state: int | np.random.RandomState | None = 0
    verbose: int = 0

    def _fit(self, examples: Examples) -> Floats:
        X, candidates, sample_weight = examples.X, examples.sets, examples.weights
        check_takes_candidates(self.estimator)
        if not has_fit_parameter(self.estimator, "sample_weight"):
            raise ValueError(
                f"estimator: {type(self.estimator).__name__}.fit takes no sample_weight, and "
                "nothing can be paced without; choose a method that does."
            )
        pace = pacing.Pace(
            difficulty=self.difficulty,
            weights=self.weights,
            scale=self.scale,
            start=self.pace_start,
            end=self.pace_end,
        )
        self.iterate(
            self._stages(X, candidates, sample_weight, pace),
            total=self.n_stages,
            X=X,
            describe=lambda record: f"pace {record['pace']:.2f}  admitted {record['admitted']:.0%}",
            unit="stage",
        )
        model: Any = self.estimator_
        return np.asarray(model.label_distributions_.data, dtype=np.float64)

    def _stages(
        self, X: Any, candidates: CandidateSets, importance: Floats, pace: pacing.Pace
    ) -> Iterator[Record]:
        """Weigh the examples and train on them, at a growing pace."""
        self.weights_ = np.ones(len(candidates))
        self.labeled_iter_ = np.full(len(candidates), -1)
        self.estimator_ = self._trained(X, candidates, importance)
        for number, stage in enumerate(pace.stages([1.0] * self.n_stages)):
            confidences = self._ask(X, candidates, importance)
            assigned = row_argmax(candidates, confidences)
            difficulty = pace.measure(1.0 - confidences, assigned, candidates)
            labels = candidates.indices[assigned]
            weights = pace.weigh(difficulty, pacing.Stage(1.0, stage.pace), importance, labels)
            if len(np.unique(labels[weights > 0])) > 1:  # otherwise nothing is left to learn from
                self.weights_ = weights
            self.labeled_iter_[(self.weights_ > 0) & (self.labeled_iter_ < 0)] = number
            self.estimator_ = self._trained(X, candidates, self.weights_ * importance)
            yield {
                "pace": stage.pace,
                "admitted": float(np.mean(self.weights_ > 0)),
                "mean_weight": float(np.mean(self.weights_)),
            }

    def _trained(self, X: Any, candidates: CandidateSets, weights: Floats) -> Estimator:
        model: Any = clone(self.estimator)
        return model.fit(X, candidates, sample_weight=weights)

    def _ask(self, X: Any, candidates: CandidateSets, importance: Floats) -> Floats:
        """Give the confidence in each candidate."""
        n = len(candidates)
        if self.pace_cv is None or n < 2 * self.pace_cv:
            model: Any = self.estimator_
            return np.asarray(model.label_distributions_.data, dtype=np.float64)
        weights = self.weights_ * importance
        folds = KFold(self.pace_cv, shuffle=True, random_state=self.random_state)
        parts = [
            (others, fold)
            for others, fold in folds.split(np.zeros(n))
            if len(candidates[others[weights[others] > 0]].seen()[1]) > 1  # something to learn from
        ]
        answers = held_out_answers(self.estimator, X, candidates, parts, weights)
        return row_normalized(candidates, on_candidates(candidates, np.nan_to_num(answers, nan=1)))

    def _restore(self, taking_part: NDArray[np.bool_]) -> None:
        self.weights_ = for_all_examples(self.weights_, taking_part, 0.0)
        self.labeled_iter_ = for_all_examples(self.labeled_iter_, taking_part, -1)

    def _class_scores(self, X: Any) -> Floats:
        model: Any = self.estimator_
        return np.asarray(model.predict_proba(X))

    def _probabilities(self, scores: Floats) -> Floats:
        return scores

    def _feature_checks(self) -> dict[str, Any]:
        return {**super()._feature_checks(), "accept_sparse": "csr"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags
