"""Which method, and with which parameters? Inner folds on the candidate sets answer.

Nobody knows the true labels, but everybody can see how often the prediction for a held-out example
lies among its candidates (the covering rate). The setting that covers most wins.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.model_selection import cross_validate

from skpll._iteration import InterruptedFitWarning
from skpll._progress import progress
from skpll.base import MatrixLike, PartialLabelClassifier
from skpll.candidates import CandidatesLike, as_candidates
from skpll.registry import make_method

from ._splitting import StratifiedCandidateKFold

__all__ = ["Choice", "Trial", "choose_method"]

SETTINGS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("sppll", {"C": 1.0}),
    ("sppll", {"C": 0.1}),
    ("sppll", {"C": 10.0}),
    ("clpl", {}),
    ("plknn", {"n_neighbors": 10}),
    ("plknn", {"n_neighbors": 5}),
    ("plknn", {"n_neighbors": 20}),
    ("ipal", {"n_neighbors": 10}),
)
"""What is tried, the preferred one first: it wins ties."""

_FOLDS = 3


@dataclass(frozen=True)
class Trial:
    """How one setting fared.

    Parameters
    ----------
    method : str
        The method.
    parameters : dict
        Its parameters, where they are not the defaults.
    covering_rate : float
        Share of the held-out examples whose prediction is one of their candidates.
    error : float
        Standard error of that share.
    seconds : float
        What the folds took.
    """

    method: str
    parameters: dict[str, Any]
    covering_rate: float
    error: float
    seconds: float

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in self.parameters.items())
        return f"{self.method} ({shown})" if shown else self.method


@dataclass(frozen=True)
class Choice:
    """The chosen setting and all that were tried.

    Parameters
    ----------
    best : Trial
        The winner.
    trials : tuple of Trial
        All settings in the order in which they were tried.
    n_examples : int
        Number of examples they were tried on.
    """

    best: Trial
    trials: tuple[Trial, ...]
    n_examples: int

    @property
    def reason(self) -> str:
        """What was chosen and why, in one sentence."""
        others = [trial for trial in self.trials if trial.method != self.best.method]
        second = max(others, key=lambda trial: trial.covering_rate)
        return (
            f"chose {self.best}: on held-out rows {self.best.covering_rate:.1%} "
            f"(± {self.best.error:.1%}) of its predictions are among the candidates, the most of "
            f"{len(self.trials)} settings in {_FOLDS} folds of {self.n_examples} rows; the best of "
            f"another method is {second}: {second.covering_rate:.1%}."
        )


def choose_method(
    X: MatrixLike, y: CandidatesLike, *, seed: int | None = 0, max_examples: int = 3000
) -> Choice:
    """Choose method and parameters by cross-validation on candidate sets.

    Parameters
    ----------
    X : array or CSR array of shape (n, d)
        The features, scaled.
    y : candidate sets of n examples
        Any format of `skpll.as_candidates`.
    seed : int, default=0
        Seed of the folds, of the examples where there are too many, and of the methods.
    max_examples : int, default=3000
        So many examples are drawn where there are more.

    Returns
    -------
    Choice

    Examples
    --------
    >>> from skpll.datasets import make_partial_classification
    >>> from skpll.model_selection import choose_method
    >>> X, S, y = make_partial_classification(60, 4, 3, class_sep=2, p=0.5, random_state=0)
    >>> choice = choose_method(X, S)
    >>> len(choice.trials), choice.best.covering_rate > 0.9
    (8, True)
    """
    candidates = as_candidates(y)
    if len(candidates) < 2 * _FOLDS:
        raise ValueError(f"y: {len(candidates)} examples are too few to compare methods; name one.")
    if len(candidates) > max_examples:
        random = np.random.default_rng(seed)
        rows = np.sort(random.choice(len(candidates), max_examples, replace=False))
        X, candidates = X[rows], candidates[rows]
    folds = list(StratifiedCandidateKFold(_FOLDS, random_state=seed).split(X, candidates))
    trials = []
    with progress("Comparing methods", len(SETTINGS), shown=False) as step:
        for place, (name, parameters) in enumerate(SETTINGS, start=1):
            method = make_method(name, parameters, seed)
            if method.accepts_sparse or not sparse.issparse(X):
                trials.append(Trial(name, parameters, *_try(method, X, candidates, folds)))
            step(place, "")
    best = max(trials, key=lambda trial: trial.covering_rate)
    return Choice(best, tuple(trials), len(candidates))


def _try(
    method: PartialLabelClassifier, X: MatrixLike, y: CandidatesLike, folds: Sequence[Any]
) -> tuple[float, float, float]:
    """Give covering rate, its standard error, and the seconds that the folds took."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fold may lack a class, or end before it has converged
        warnings.simplefilter("error", InterruptedFitWarning)
        found = cross_validate(method, X, y, cv=folds, error_score="raise")
    sizes = [len(held_out) for _, held_out in folds]
    rate = float(np.average(found["test_score"], weights=sizes))
    error = float(np.sqrt(rate * (1 - rate) / sum(sizes)))
    return rate, error, float((found["fit_time"] + found["score_time"]).sum())
