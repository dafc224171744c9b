"""What the margin methods take over from PL-LOO: first labels, class sizes, and a kernel."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from typing import Any, NamedTuple

import joblib
import numpy as np
from numpy.typing import NDArray

from skpll._iteration import InterruptedFitWarning
from skpll._rows import on_candidates, row_normalized
from skpll.candidates import CandidateSets
from skpll.leave_one_out.plloo import PLLOO

__all__ = ["Doubt", "Start", "leave_one_out_start", "needs_all"]

Floats = NDArray[np.float64]

_MOST = 5000
"""With a kernel, PL-LOO learns from at most so many examples, and is asked about all others."""

_MANY_CLASSES = 100
"""Among more classes than this, so many examples are too few of each."""

_REMEMBERED = 32
_remembered: OrderedDict[str, Start] = OrderedDict()


def needs_all(candidates: CandidateSets) -> bool:
    """Whether some of the examples are too few to learn all classes from."""
    n, q = candidates.shape
    return n > _MOST and q > _MANY_CLASSES


class Start(NamedTuple):
    """What PL-LOO says of the training examples.

    Parameters
    ----------
    confidences : array of shape (number of candidates in all,)
        The confidence in each candidate, by models that have not seen the example.
    kernel : str
        The kernel it has chosen.
    gamma : float
        How fast that falls with the distance.
    """

    confidences: Floats
    kernel: str
    gamma: float


def leave_one_out_start(
    model: PLLOO, X: Any, candidates: CandidateSets, weights: Floats, seed: int
) -> Start:
    """Ask PL-LOO about the training examples.

    Its answers are remembered: a search over C fits to the same examples again and again.

    Parameters
    ----------
    model : PLLOO
        PL-LOO with its parameters; it is fitted.
    X : array or CSR matrix of shape (n, d)
        The features.
    candidates : CandidateSets
        The candidate sets.
    weights : array of shape (n,)
        How much each example counts.
    seed : int
        Draws the examples that are learned from, where there are many.
    """
    model.set_params(random_state=seed)
    asked = (model.kernel, model.gamma, seed, X, weights)
    key = joblib.hash((*asked, candidates.indptr, candidates.indices, candidates.weights))
    start = _remembered.pop(key, None) or _ask(model, X, candidates, weights, seed)
    _remembered[key] = start
    while len(_remembered) > _REMEMBERED:
        _remembered.popitem(last=False)
    return start


def _ask(model: PLLOO, X: Any, candidates: CandidateSets, weights: Floats, seed: int) -> Start:
    taught = np.ones(len(candidates), dtype=bool)
    if len(candidates) > _MOST and model.kernel != "linear":
        taught[np.random.default_rng(seed).permutation(len(candidates))[_MOST:]] = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", InterruptedFitWarning)
        try:
            model.fit(X[taught], candidates[taught], sample_weight=weights[taught])
        except InterruptedFitWarning:
            raise KeyboardInterrupt from None
    confidences = np.empty(len(candidates.indices))
    mine = np.repeat(taught, candidates.sizes)
    confidences[mine] = model.label_distributions_.data
    if not taught.all():
        others = candidates[~taught]
        answers = on_candidates(others, model.predict_proba(X[~taught]))
        confidences[~mine] = row_normalized(others, answers)
    return Start(confidences, model.kernel_, model.gamma_)


class Doubt:
    """A difficulty (see `skpll.pacing`): how little PL-LOO trusts in the assigned label.

    PL-LOO has not seen the example that it judges, so that its doubt is not talked away by
    training.

    Parameters
    ----------
    confidences : array of shape (number of candidates in all,)
        The confidence in each candidate.
    """

    def __init__(self, confidences: Floats) -> None:
        self._confidences = confidences

    def __call__(
        self, losses: Floats, assigned: NDArray[np.int64], candidates: CandidateSets
    ) -> Floats:
        """Give one less the confidence in the assigned label."""
        del losses, candidates
        return 1.0 - self._confidences[assigned]
