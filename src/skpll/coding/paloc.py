"""PALOC: a model for each pair of labels, and one for each label on top of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skpll._examples import Examples, Features
from skpll._parameters import NON_NEGATIVE
from skpll._progress import warn_of_long_fit
from skpll._typing import Constraints, Floats

from ._models import BinaryDecomposition, fit_models

SECONDS_PER_PAIR = 3e-3
SECONDS_PER_PRODUCT = 3e-11
"""Time of a model of a pair, and of a product of two features in the models of the labels."""


@dataclass(eq=False, repr=False)
class PALOC(BinaryDecomposition):
    r"""Partial-label learning by one-vs-one decomposition (PALOC).

    Use it for few classes with curved boundaries between them.

    For each pair of labels :math:`j < k` a model :math:`f_{jk}` learns to tell the examples that
    have :math:`j` among their candidates, but not :math:`k`, from those that have :math:`k`, but
    not :math:`j`; the others say nothing about the pair. It votes for :math:`j` where it is
    positive and for :math:`k` where it is negative; :math:`v_j(x)` counts the votes for
    :math:`j`. Where the winner of the vote on a training example is one of its candidates, it
    becomes the only one.

    On these refined sets, models :math:`h_j` learn to tell each label from the rest. Their
    features are those of the examples and the outputs of the models of the pairs,
    :math:`\tilde x = [x;\ f(x)]`. A new example gets the label

    .. math:: \hat y = \arg\max_j\ v_j(x) + \mu\, [h_j(\tilde x) > 0].

    These are the scores of `decision_function`; the confidences in the candidates of a training
    example are their shares of the same scores. Ties go to the first label.

    There are :math:`q (q - 1) / 2` models for pairs, and as many new features: with hundreds of
    labels the method is slow, and a warning gives the expected time beforehand. `PLECOC` then takes
    a small part of the time. Evidence (weights of the candidates) is ignored.

    Parameters
    ----------
    mu : float, default=10.0
        How many votes of pairs the model of a label is worth.
    <<binary.svm>>
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of the kernel: one over the number of features that a model sees times their
        variance, or over that number alone (for standardized features the same), or a number.
    <<binary.estimator>>

    <<Attributes: classes_>>
    pairs_ : int array of shape (number of pairs, 2)
        The two labels of each pair, as places in `classes_`; labels that are no candidate
        are in none.
    pair_estimators_ : list of classifiers
        The model of each pair; None where no example has only one label of the pair.
    label_estimators_ : list of q classifiers
        The model of each label; None where all examples are on one side.
    transduction_ : array of shape (n,)
        The label decided for each training example: the candidate with the largest score.
    label_distributions_ : sparse array of shape (n, q)
        The share of the scores that each candidate of each training example got.
    <<n_features_in_, feature_names_in_>>

    References
    ----------
    X. Wu, M.-L. Zhang: Towards enabling binary decomposition for partial label learning.
    Proceedings of the 27th International Joint Conference on Artificial Intelligence, 2018.

    <<example>>
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **BinaryDecomposition._parameter_constraints,
        "mu": [NON_NEGATIVE],
    }

    mu: float = 10.0

    def _fit(self, examples: Examples) -> Floats:
        X, candidates = examples.X, examples.sets
        _warn_of_long_fit(X.shape[0], X.shape[1], candidates.shape[1])
        X = self._learn_offset(X)
        has = candidates.to_matrix().toarray() > 0
        self._pairs = np.column_stack(np.triu_indices(candidates.shape[1], 1))
        self.pairs_ = self._seen[self._pairs]
        pairs = ((has[:, j] & ~has[:, k], has[:, k] & ~has[:, j]) for j, k in self._pairs)
        self._pair_models = fit_models(self._model(X), X, pairs, self.n_jobs)
        self.pair_estimators_ = self._pair_models.estimators
        outputs = self._pair_models.outputs(X)
        stacked = _stacked(X, outputs)
        refined = _refined(has, self._votes(outputs))
        labels = ((column, ~column) for column in refined.T)
        self._label_models = fit_models(self._model(stacked), stacked, labels, self.n_jobs)
        self.label_estimators_ = self._label_models.estimators
        return candidates.entries(self._scores(X, outputs))

    def _class_scores(self, X: Features) -> Floats:
        X = self._without_offset(X)
        return self._scores(X, self._pair_models.outputs(X))

    def _scores(self, X: Features, outputs: Floats) -> Floats:
        """Add the votes of the models of the labels to those of the pairs."""
        confirmed = self._label_models.outputs(_stacked(X, outputs)) > 0
        return self._votes(outputs) + self.mu * confirmed

    def _votes(self, outputs: Floats) -> Floats:
        """Count the votes for each label: the sign of an output decides between its two labels."""
        votes = sparse.eye_array(len(self._seen), format="csr")
        first, second = self._pairs.T
        return np.asarray((outputs > 0) @ votes[first] + (outputs < 0) @ votes[second])


def _warn_of_long_fit(n: int, d: int, q: int) -> None:
    """Warn if the models of the pairs, and those of the labels, are expected to take long."""
    n_pairs = q * (q - 1) // 2
    seconds = n_pairs * SECONDS_PER_PAIR + q * n**2 * (d + n_pairs) * SECONDS_PER_PRODUCT
    memory = 2 * n * (d + n_pairs) * np.dtype(float).itemsize / 2**30
    warn_of_long_fit(
        seconds,
        f"PALOC: {n_pairs} models for the pairs of {q} labels, and {q} models on {d + n_pairs} "
        f"features for {n} examples, will take {memory:.1f} GiB and of the order of "
        f"{seconds / 60:.0f} minutes on one core. PLECOC does with {q} labels in a small part of "
        "that.",
        stacklevel=5,
    )


def _refined(has: NDArray[np.bool_], votes: Floats) -> NDArray[np.bool_]:
    """Leave only the winner of the vote where it is a candidate; leave other sets as they are."""
    winner = np.arange(votes.shape[1]) == votes.argmax(axis=1, keepdims=True)
    decided = (winner & has).any(axis=1, keepdims=True)
    return np.where(decided, winner, has)


def _stacked(X: Features, outputs: Floats) -> Features:
    """Append the outputs of the models of the pairs to the features."""
    if not sparse.issparse(X):
        return np.hstack([X, outputs])
    blocks: list[Features] = [X, sparse.csr_array(outputs)]
    return sparse.hstack(blocks, format="csr")
