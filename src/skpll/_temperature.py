r"""How sharp probabilities should be, judged by the candidate sets.

Scores :math:`F_{ij}` of models that have not seen example i become probabilities
:math:`P_{ij} \propto \max(F_{ij}, \varepsilon)^{1/T}`: a temperature above one flattens them, one
below one sharpens them. The temperature that maximizes the likelihood of the candidate sets,

.. math:: \sum_i c_i \log \sum_{j \in S_i} P_{ij},

needs no true label. It is the right one where false candidates are drawn at random given the label.
Where they depend on the features, a set can be easier to predict than its label, and probabilities
at this temperature are too sure. Where labels are known, `match_accuracy` finds the temperature by
them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.special import softmax

from ._typing import Floats
from .candidates import CandidateSets
from .engine.arrays import Matrix, as_float64, as_numpy, is_tensor

__all__ = [
    "FLOOR",
    "at_candidates",
    "fit_temperature",
    "log_scores",
    "match_accuracy",
    "probabilities",
    "set_likelihoods",
]

FLOOR = 1e-4
"""Scores are taken to be at least this."""

MAX_TEMPERATURE = 20.0
"""Temperatures are between this and its inverse."""


def log_scores(scores: Matrix, floor: float = FLOOR) -> Matrix:
    """Logarithm of scores, which are taken to be at least a small positive number."""
    if is_tensor(scores):
        return as_float64(scores.clip(min=floor).log())
    return np.log(np.maximum(scores, floor), dtype=np.float64)


def probabilities(logits: Floats, temperature: float) -> Floats:
    """Turn logarithms of scores into probabilities."""
    return np.asarray(softmax(logits / temperature, axis=1))


def at_candidates(candidates: CandidateSets, logits: Matrix) -> Floats:
    """Return the values of the candidates, from those of all classes."""
    if is_tensor(logits):
        return as_numpy(logits[candidates.rows, candidates.indices.astype(np.int64)])
    return candidates.entries(logits)


def set_likelihoods(
    candidates: CandidateSets, logits: Matrix, temperature: float = 1.0, noise: float = 0.0
) -> Floats:
    """Logarithm of the likelihood of each candidate set, from logarithms of scores: (n,).

    With noise a set of s of the q classes misses the truth with that probability, and is then one
    of the many that do.
    """
    inside = at_candidates(candidates, logits) / temperature
    peaks = candidates.row_max(inside)
    sums = candidates.row_sums(np.exp(inside - candidates.spread(peaks)))
    covered = np.log(sums) + peaks - _log_sums(logits, temperature)
    if not noise:
        return np.asarray(covered)
    sizes, q = candidates.sizes, candidates.shape[1]
    odds = sizes / np.maximum(q - sizes, 0.5)
    share = np.exp(covered)
    return np.asarray(np.log((1 - noise) * share + noise * odds * np.maximum(1 - share, 0.0)))


def _log_sums(logits: Matrix, temperature: float) -> Floats:
    """Return the logarithm of the sum of each row's exponentials, in few passes."""
    if is_tensor(logits):
        return as_numpy((logits / temperature).logsumexp(1))
    peaks = logits.max(axis=1)
    below = logits - peaks[:, np.newaxis]
    below /= temperature
    return np.asarray(np.log(np.exp(below, out=below).sum(axis=1)) + peaks / temperature)


def fit_temperature(
    candidates: CandidateSets, logits: Matrix, weights: Floats, noise: float = 0.0
) -> float:
    """Find the temperature under which the candidate sets are most likely.

    Parameters
    ----------
    candidates : CandidateSets
        The candidate sets.
    logits : array or tensor of shape (n, q)
        Logarithms of the scores of models that have not seen the example.
    weights : array of shape (n,)
        How much each example counts.
    noise : float
        The share of the sets that miss the truth.

    Returns
    -------
    temperature : float
        Between 1/20 and 20.
    """

    def loss(log_power: float) -> float:
        likelihoods = set_likelihoods(candidates, logits, float(np.exp(-log_power)), noise)
        return -float(np.average(likelihoods, weights=weights))

    bound = np.log(MAX_TEMPERATURE)
    found = minimize_scalar(loss, bounds=(-bound, bound), method="bounded", options={"xatol": 1e-2})
    return float(np.exp(-found.x))


def match_accuracy(logits: Floats, labels: NDArray[np.integer]) -> float:
    """Find the temperature at which the mean confidence of predictions is their accuracy.

    It falls as the temperature rises. Unlike the likelihood of the labels, it is not ruled by the
    few rows whose label is given next to no score. With one success and one failure added, so that
    few rows that are all right don't make for certainty.

    Parameters
    ----------
    logits : array of shape (n, q)
        Logarithms of the scores of models that have not seen the example.
    labels : int array of shape (n,)
        The class of each example.

    Returns
    -------
    temperature : float
        Between 1/20 and 20.
    """
    accuracy = (np.sum(logits.argmax(axis=1) == labels) + 1) / (len(labels) + 2)

    def excess(log_temperature: float) -> float:
        shares = probabilities(logits, float(np.exp(log_temperature)))
        return float(shares.max(axis=1).mean() - accuracy)

    bound = float(np.log(MAX_TEMPERATURE))
    if excess(-bound) <= 0:
        return 1 / MAX_TEMPERATURE
    if excess(bound) >= 0:
        return MAX_TEMPERATURE
    return float(np.exp(brentq(excess, -bound, bound, xtol=1e-4)))
