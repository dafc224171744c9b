"""The choice of a method by held-out examples and their candidate sets.

Without true labels, methods can still be compared by the probability that they give to the
candidate sets of examples they have not seen. The method with the largest likelihood is chosen,
unless the difference is within its standard error.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing

from skpll._errors import ArgumentError
from skpll._iteration import InterruptedFitWarning
from skpll._progress import tracked
from skpll._typing import CandidatesLike, Estimator, Floats, MatrixLike
from skpll.candidates import CandidateSets, as_candidates
from skpll.diagnosis import evidence_of_sets, tempered_likelihoods
from skpll.engine.held_out import held_out_answers
from skpll.registry import make_method

from ._splitting import StratifiedCandidateKFold


@dataclass(frozen=True)
class Trial:
    """The result of one setting.

    Parameters
    ----------
    method : str
        The method.
    parameters : dict
        Its parameters, where they are not the defaults.
    likelihood : float
        Mean logarithm of the probability that the method gives to the candidate sets of held-out
        examples, at its best temperature.
    error : float
        Standard error of the difference to the preferred setting; zero for that one.
    covering_rate : float
        Share of the held-out examples whose prediction is one of their candidates.
    seconds : float
        What the folds took.
    """

    method: str
    parameters: dict[str, object]
    likelihood: float
    error: float
    covering_rate: float
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
        others = [trial for trial in self.trials if trial is not self.best]
        second = max(others, key=lambda trial: trial.likelihood)
        verdict = "the most"
        if second.likelihood > self.best.likelihood:
            verdict = f"no less, beyond chance (± {second.error:.3f}),"
        return (
            f"chose {self.best}: its mean log-likelihood of the candidate sets of held-out rows is "
            f"{self.best.likelihood:.3f}, {verdict} of {len(self.trials)} methods in {N_FOLDS} "
            f"folds of {self.n_examples} rows; the next is {second}: {second.likelihood:.3f}."
        )


SETTINGS: tuple[tuple[str, dict[str, object]], ...] = (
    ("plloo", {}),
    ("crossfitclassifier", {}),
    ("sppll", {}),
)
"""What is tried, the preferred one first."""

N_FOLDS = 3
"""Number of folds that methods are compared in."""


def choose_method(
    X: MatrixLike, y: CandidatesLike, *, seed: int | None = 0, max_examples: int = 3000
) -> Choice:
    """Choose among PL-LOO, a cross-fitted forest and SP-PLL by the likelihood of held-out sets.

    Where a label is in almost every set, a candidate counts more the less often it is a false one:
    otherwise a method that predicts nothing but that label would be chosen.

    Parameters
    ----------
    X : array or CSR array of shape (n, d)
        The features, scaled.
    y : candidate sets of n examples
        In a format of `skpll.as_candidates`.
    seed : int, default=0
        Seed of the folds, of the examples where there are too many, and of the methods.
    max_examples : int, default=3000
        Larger data are sampled down to this number of examples.

    Returns
    -------
    choice : Choice
        The one that makes held-out candidate sets most likely, and all that were tried.

    Examples
    --------
    >>> from skpll.datasets import make_partial_classification
    >>> from skpll.model_selection import choose_method
    >>> X, S, y = make_partial_classification(60, 4, 3, class_sep=2, p=0.5, random_state=0)
    >>> choice = choose_method(X, S)
    >>> len(choice.trials), choice.best.covering_rate > 0.8
    (3, True)
    """
    candidates = as_candidates(y)
    if len(candidates) < 2 * N_FOLDS:
        problem = f"{len(candidates)} examples are too few to compare methods; name one."
        raise ArgumentError("y", problem)
    if len(candidates) > max_examples:
        random = np.random.default_rng(seed)
        rows = np.sort(random.choice(len(candidates), max_examples, replace=False))
        X, candidates = _safe_indexing(X, rows), candidates[rows]
    answers: list[tuple[str, dict[str, object], Floats, float]] = []
    for name, parameters in tracked(SETTINGS, "Comparing methods", len(SETTINGS)):
        method = make_method(name, parameters, seed)
        if sparse.issparse(X) and not method.accepts_sparse:
            continue
        started = time.process_time()
        probabilities = held_out_probabilities(method, X, candidates, seed=seed)
        answers.append((name, parameters, probabilities, time.process_time() - started))
    trials = _trials(candidates, answers)
    best = max(trials, key=lambda trial: trial.likelihood)
    if best.likelihood - trials[0].likelihood <= best.error:
        best = trials[0]
    return Choice(best, tuple(trials), len(candidates))


def _trials(
    candidates: CandidateSets, answers: list[tuple[str, dict[str, object], Floats, float]]
) -> list[Trial]:
    evidence = evidence_of_sets(candidates, np.mean([each[2] for each in answers], axis=0))
    ones = np.ones(len(candidates))
    usual: Floats | None = None
    trials = []
    for name, parameters, probabilities, spent in answers:
        likelihoods = tempered_likelihoods(candidates, probabilities, ones, evidence)
        usual = likelihoods if usual is None else usual
        error = float(np.std(likelihoods - usual) / np.sqrt(len(likelihoods)))
        inside = candidates.contains(candidates.classes[probabilities.argmax(axis=1)])
        rates = float(likelihoods.mean()), error, float(inside.mean())
        trials.append(Trial(name, parameters, *rates, spent))
    return trials


def held_out_probabilities(
    method: Estimator,
    X: MatrixLike,
    y: CandidatesLike,
    *,
    folds: int = N_FOLDS,
    only_one: bool = False,
    seed: int | None = 0,
) -> Floats:
    """Return the probabilities of the classes from models trained without the example.

    Parameters
    ----------
    method : classifier of partial labels
        It is cloned.
    X : array or CSR array of shape (n, d)
        The features.
    y : candidate sets of n examples
        In a format of `skpll.as_candidates`.
    folds : int, default=3
        Number of parts that are held out in turn.
    only_one : bool, default=False
        Hold out one of the parts only; the other examples get NaN.
    seed : int, default=0
        Draws the folds.

    Returns
    -------
    probabilities : array of shape (n, q)

    Examples
    --------
    >>> from skpll import PLKNN
    >>> from skpll.model_selection import held_out_probabilities
    >>> X = [[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]]
    >>> S = [{"a"}, {"a", "b"}, {"a"}, {"b"}, {"a", "b"}, {"b"}]
    >>> held_out_probabilities(PLKNN(n_neighbors=2), np.array(X), S).argmax(axis=1).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    candidates = as_candidates(y)
    parts = list(StratifiedCandidateKFold(folds, random_state=seed).split(X, candidates))
    parts = parts[:1] if only_one else parts
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fold may lack a class, or end before it has converged
        warnings.simplefilter("error", InterruptedFitWarning)
        held_out = tracked(parts, "Holding out rows", folds)
        return held_out_answers(method, X, candidates, held_out)
