"""What the alternating optimization starts from: first labels, class sizes, and a kernel.

The first labels come from the assignment of least cost. The paper's cost is the same for all
candidates of an example, so that its first labels are arbitrary; the others use the features.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import Ridge

from skpll._examples import Examples, Features
from skpll._iteration import InterruptedFitWarning
from skpll._typing import Floats
from skpll.candidates import CandidateSets
from skpll.engine.kernels import FeatureMap, KernelMap, median_distance
from skpll.engine.ridge import fit_ridge
from skpll.leave_one_out.plloo import PLLOO
from skpll.solvers.margins import ScoreBlocks

Bounds: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]

MAX_START_EXAMPLES = 5000
"""With a kernel, PL-LOO learns from at most this number of examples, and predicts the others."""

MAX_START_CLASSES = 100
"""With more classes, `MAX_START_EXAMPLES` are too few examples of each class."""

MAX_DENSE_GRAM = 2000
"""With more features, ridge regression is solved by conjugate gradients."""

LANDMARK_POOL = 20
"""Landmarks are drawn from a pool of `LANDMARK_POOL * n_landmarks` rows."""

ROUNDING = 1e-6
"""Sums of shares that differ from a whole number by less than this are that number."""


# -- PL-LOO --------------------------------------------------------------------------------


class Start(NamedTuple):
    """The answers of PL-LOO for the training examples.

    Attributes
    ----------
    confidences : array of shape (total number of candidates,)
        The confidence in each candidate, by models that have not seen the example.
    kernel : str
        The kernel that it has chosen.
    gamma : float
        How fast the kernel falls with the distance.
    """

    confidences: Floats
    kernel: str
    gamma: float

    def doubt(
        self, losses: Floats, assigned: NDArray[np.int64], candidates: CandidateSets
    ) -> Floats:
        """Return one minus the confidence in each assigned label: a difficulty of `skpll.pacing`.

        PL-LOO has not seen the example that it judges, so that training can't remove its doubt.
        """
        del losses, candidates
        return 1.0 - self.confidences[assigned]


def needs_all_examples(sets: CandidateSets) -> bool:
    """Return True if a part of the examples is too small to learn all classes from."""
    n, q = sets.shape
    return n > MAX_START_EXAMPLES and q > MAX_START_CLASSES


def leave_one_out_start(model: PLLOO, examples: Examples, seed: int) -> Start:
    """Fit PL-LOO to the training examples.

    Parameters
    ----------
    model : PLLOO
        PL-LOO with its parameters; it is fitted.
    examples : Examples
        The examples.
    seed : int
        Seed of PL-LOO, and of the part of the examples that a large problem is learned from.
    """
    model.set_params(random_state=seed)
    weights = examples.weights.copy()
    if len(weights) > MAX_START_EXAMPLES and model.kernel != "linear":
        order = np.random.default_rng(seed).permutation(len(weights))
        weights[order[MAX_START_EXAMPLES:]] = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", InterruptedFitWarning)
        try:
            model.fit(examples.X, examples.sets, sample_weight=weights)
        except InterruptedFitWarning:
            raise KeyboardInterrupt from None
    return Start(model.label_distributions_.data, model.kernel_, model.gamma_)


# -- first labels without PL-LOO -----------------------------------------------------------


def uniform_costs(examples: Examples) -> Floats:
    """Return no costs, as the paper's 1/|S| for all candidates; with evidence, its negative."""
    sets = examples.sets
    return np.zeros(len(sets.indices)) if sets.weights is None else -sets.initial_confidences()


def ridge_costs(examples: Examples) -> Floats:
    """Return the negative predictions of a regression of the initial confidences on features."""
    X, sets = examples.X, examples.sets
    confidences = sets.to_matrix(sets.initial_confidences())
    if X.shape[1] <= MAX_DENSE_GRAM:
        coef, intercept = fit_ridge(X, confidences, examples.weights)
    else:
        model = Ridge(solver="sparse_cg", tol=1e-2, max_iter=50)
        model.fit(X, confidences.toarray(), sample_weight=examples.weights)
        coef, intercept = model.coef_, model.intercept_
    blocks = ScoreBlocks(X, coef, intercept)
    return -np.concatenate([sets[i : i + len(scores)].entries(scores) for i, scores in blocks])


INITIAL_COSTS: dict[str, Callable[[Examples], Floats]] = {
    "uniform": uniform_costs,
    "ridge": ridge_costs,
}


# -- class sizes ---------------------------------------------------------------------------


def rounded_counts(expected: Floats) -> Floats:
    """Round expected counts down, and add what is missing to the labels expected least."""
    counts = np.floor(expected + ROUNDING)
    rarest = np.argsort(expected, kind="stable")
    counts[rarest[: int(np.rint(expected.sum() - counts.sum()))]] += 1
    return counts


def class_bounds(counts: Floats, n: int, slack: float) -> Bounds:
    """Return lower and upper bounds on the number of examples of each label.

    Parameters
    ----------
    counts : array of shape (q,)
        The expected counts; the bounds are the next whole numbers.
    n : int
        The number of examples.
    slack : float
        The share of the expected count by which the bounds are wider.
    """
    lower = np.floor((1 - slack) * counts + ROUNDING)
    upper = np.ceil((1 + slack) * counts - ROUNDING)
    return np.maximum(lower, 0).astype(np.int64), np.minimum(upper, n).astype(np.int64)


# -- kernel --------------------------------------------------------------------------------


def kernel_features(
    X: Features, kernel: str, gamma: float, n_landmarks: int, seed: int
) -> FeatureMap:
    """Choose landmarks among the distinct rows; return the map to features of the kernel.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        The features.
    kernel : {"laplacian", "rbf"}
        The kernel.
    gamma : float
        How fast it falls with the distance, in units of the median distance.
    n_landmarks : int
        Number of landmarks; all rows if there are fewer.
    seed : int
        Seed of the draw.
    """
    random_state = np.random.RandomState(seed)
    if X.shape[0] > LANDMARK_POOL * n_landmarks:
        X = X[random_state.choice(X.shape[0], LANDMARK_POOL * n_landmarks, replace=False)]
    X = _distinct_rows(X)
    unit = median_distance(X, random_state)
    if X.shape[0] > n_landmarks:
        X = X[random_state.choice(X.shape[0], n_landmarks, replace=False)]
    landmarks = KernelMap(kernel, gamma, unit, X)
    return FeatureMap(landmarks, whitening=landmarks.whitening())


def _distinct_rows(X: Features) -> Features:
    """Return each row once, in an order that does not depend on the order of the rows."""
    if isinstance(X, np.ndarray):
        return np.unique(X, axis=0)
    X = X.tocsr(copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    last = {
        (X.indices[start:stop].tobytes(), X.data[start:stop].tobytes()): row
        for row, (start, stop) in enumerate(pairwise(X.indptr))
    }
    return X[[row for _, row in sorted(last.items())]]
