"""Which method, and with which parameters? Inner folds on the candidate sets answer.

Nobody knows the true labels, but everybody can see how often the prediction for a held-out row lies
among its candidates (the covering rate). The setting that covers most wins.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from skpll._iteration import InterruptedFitWarning
from skpll._progress import progress
from skpll.candidates import CandidateSets

__all__ = ["Choice", "Trial", "choose_method", "make_method"]

_SETTINGS: tuple[tuple[str, dict[str, Any]], ...] = (
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
_MAX_ROWS = 3000


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
        Share of the held-out rows whose prediction is one of their candidates.
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
    n_rows : int
        Number of rows they were tried on.
    """

    best: Trial
    trials: tuple[Trial, ...]
    n_rows: int

    @property
    def reason(self) -> str:
        """What was chosen and why, in one sentence."""
        others = [trial for trial in self.trials if trial.method != self.best.method]
        second = max(others, key=lambda trial: trial.covering_rate)
        return (
            f"chose {self.best}: on held-out rows {self.best.covering_rate:.1%} "
            f"(± {self.best.error:.1%}) of its predictions are among the candidates, the most of "
            f"{len(self.trials)} settings in {_FOLDS} folds of {self.n_rows} rows; the best of "
            f"another method is {second}: {second.covering_rate:.1%}."
        )


def make_method(name: str, parameters: Mapping[str, Any], seed: int | None) -> Any:
    """Make the method of a name, with parameters; the seed goes in where there is chance.

    Parameters
    ----------
    name : str
        A name of `skpll.all_methods`.
    parameters : mapping
        Parameters of its constructor.
    seed : int or None
        The seed, unless `parameters` has a ``random_state``.

    Returns
    -------
    method : PartialLabelClassifier
    """
    from difflib import get_close_matches

    from skpll import all_methods

    methods = all_methods()
    if name not in methods:
        near = get_close_matches(name, methods, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(methods)}, auto."
        raise ValueError(f"method: there is no method {name!r}; {hint}")
    method = methods[name]()
    known = method.get_params(deep=False)
    for parameter in parameters:
        if parameter not in known:
            raise ValueError(
                f"parameters: {name} has no {parameter!r}; it has {', '.join(sorted(known))}."
            )
    if "random_state" in known and seed is not None:
        method.set_params(random_state=seed)
    return method.set_params(**parameters)


def choose_method(
    X: Any, candidates: CandidateSets, *, seed: int | None = 0, max_rows: int = _MAX_ROWS
) -> Choice:
    """Choose method and parameters by cross-validation on candidate sets.

    Parameters
    ----------
    X : array or CSR array of shape (n, d)
        The features.
    candidates : CandidateSets
        The candidate sets.
    seed : int, default=0
        Seed of the folds, of the rows where there are too many, and of the methods.
    max_rows : int, default=3000
        So many rows are drawn where there are more.

    Returns
    -------
    Choice
    """
    if len(candidates) < 2 * _FOLDS:
        raise ValueError(
            f"method auto: {len(candidates)} rows are too few to compare methods; name one."
        )
    random = np.random.default_rng(seed)
    if len(candidates) > max_rows:
        rows = np.sort(random.choice(len(candidates), max_rows, replace=False))
        X, candidates = X[rows], candidates[rows]
    folds = list(KFold(_FOLDS, shuffle=True, random_state=seed).split(np.empty(len(candidates))))
    trials = []
    with progress("Comparing methods", len(_SETTINGS), shown=False) as step:
        for name, parameters in _SETTINGS:
            method = make_method(name, parameters, seed)
            if method.accepts_sparse or isinstance(X, np.ndarray):
                trials.append(_try(method, name, parameters, X, candidates, folds))
            step(len(trials), str(trials[-1]))
    best = max(trials, key=lambda trial: trial.covering_rate)
    return Choice(best, tuple(trials), len(candidates))


def _try(
    method: Any,
    name: str,
    parameters: dict[str, Any],
    X: Any,
    candidates: CandidateSets,
    folds: list[Any],
) -> Trial:
    from sklearn.base import clone

    start = time.perf_counter()
    covered = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fold may lack a class, or end before it has converged
        warnings.simplefilter("error", InterruptedFitWarning)
        for training, held_out in folds:
            fitted = clone(method).fit(X[training], candidates[training])
            covered.append(candidates[held_out].contains(fitted.predict(X[held_out])))
    inside = np.concatenate(covered)
    error = float(inside.std() / np.sqrt(len(inside)))
    seconds = time.perf_counter() - start
    return Trial(name, dict(parameters), float(inside.mean()), error, seconds)
