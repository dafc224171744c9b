"""How PL-LOO is fitted to some examples, and how its parameters are chosen without the truth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.model_selection import KFold

from skpll._examples import Examples, Features
from skpll._iteration import Record
from skpll._temperature import fit_temperature, log_scores, set_likelihoods
from skpll._threads import threaded, threads_for
from skpll.engine.arrays import is_sparse
from skpll.engine.blocks import Block, Part
from skpll.engine.limits import LIMITS

from ._loop import Evidence, Loop, class_prior, group_prior
from ._noise import OpenSets, opened
from ._regression import Kernel, System

__all__ = [
    "Answers",
    "Choice",
    "HeldOutFits",
    "Options",
    "Settings",
    "Solution",
    "Trial",
    "choose",
    "in_memory",
    "merge_duplicates",
]

Floats = NDArray[np.float64]

WIDTHS = {"laplacian": (0.5, 0.25, 1.0), "rbf": (1.0, 0.5, 0.25, 2.0), "linear": (1.0,)}
"""Values of gamma that are tried, the first one first."""

RIDGES = (0.1, 0.03, 0.01)
"""Values of alpha that are tried, from smooth to rough: each starts where the last one ended."""

STRENGTHS = (0.2, 0.0, 0.5, 1.0)
"""Strengths of the class prior that are tried. The first one is nowhere far from the best; it stays
if no example has a single candidate, since nothing distinguishes them then."""

MIN_IMPROVEMENT = 0.03
"""By how much another strength has to be better than the first one."""

CHOICE_FOLDS = 3


@dataclass(frozen=True)
class Settings:
    """What is not chosen by the data.

    Parameters
    ----------
    shares : array of shape (q,) or None
        The shares of the classes that the user expects; None takes what the candidates suggest.
    group_strength : float
        The strength of the prior within groups.
    noise : float or "auto"
        The share of the sets that miss the truth.
    power : float
        The exponent of the scores in a round.
    max_iter : int
        Largest number of rounds.
    tol : float
        Stop when confidences change by less than this.
    in_sample : bool
        Whether rounds ask the regression about examples that it was trained on.
    """

    shares: Floats | None
    group_strength: float
    noise: float | str
    power: float
    max_iter: int
    tol: float
    in_sample: bool = False


class Solution:
    """The loop on some examples, with given parameters.

    Parameters
    ----------
    settings : Settings
        What is not chosen.
    system : System
        The examples and their features.
    alpha, strength : float
        The ridge, and the strength of the class prior.
    start : part, optional
        Confidences to begin with.
    groups : int array of shape (n,), optional
        The group of each example.
    """

    def __init__(
        self,
        settings: Settings,
        system: System,
        parameters: tuple[float, float],
        start: Part | None = None,
        groups: NDArray[np.intp] | None = None,
    ) -> None:
        alpha, strength = parameters
        self.settings, self.features = settings, replace(system.features, whitening=None)
        evidence: Evidence | None = None
        if settings.noise:
            system = replace(system, store=system.store.changed(opened))
            noise = None if settings.noise == "auto" else float(settings.noise)
            evidence = OpenSets(system.store, noise)
        self.ridge = system.ridge(alpha, settings.in_sample)
        priors = [class_prior(system.store, settings.shares, strength)]
        if groups is not None:
            priors.append(group_prior(system.store, groups, settings.group_strength))
        self.loop = Loop(
            system.store,
            self.ridge.ask,
            priors=priors,
            power=settings.power,
            start=start,
            evidence=evidence,
        )
        n, q = system.store.shape
        self.operations = float(n) * self.ridge.size * q  # in the largest product of a round

    def rounds(self) -> Iterator[Record]:
        """Go through the rounds."""
        return self.loop.rounds(self.settings.max_iter, self.settings.tol)

    def coefficients(self) -> tuple[Floats, Floats]:
        """Compute the coefficients and intercepts of the regression on `features`."""
        return self.ridge.coefficients(self.loop.confidences)


@dataclass(frozen=True)
class Trial:
    """A kernel and a ridge that were tried.

    Parameters
    ----------
    kernel : str
        The kernel.
    gamma : float
        How fast it falls with the distance.
    alpha : float
        The ridge.
    likelihood : float
        Mean logarithm of the likelihood of the candidate sets, by loops without the example.
    """

    kernel: str
    gamma: float
    alpha: float
    likelihood: float


@dataclass(frozen=True)
class Choice:
    """The parameters chosen, and how the choice was made.

    Parameters
    ----------
    kernel : str
        The kernel.
    gamma : float
        How fast it falls with the distance.
    alpha : float
        The ridge.
    strength : float
        The strength of the class prior.
    trials : tuple of Trial
        The kernels and ridges that were tried.
    merits : dict
        From the strengths that were tried to how well they did.
    """

    kernel: str
    gamma: float
    alpha: float
    strength: float
    trials: tuple[Trial, ...] = ()
    merits: dict[float, float] | None = None


@dataclass(frozen=True)
class Options:
    """The parameters that are chosen from.

    Parameters
    ----------
    kernels : sequence of str
        The kernels.
    gammas : sequence of float or None
        Their widths; None takes those of each kernel.
    alphas, strengths : sequences of float
        The ridges, and the strengths of the class prior.
    """

    kernels: Sequence[str]
    gammas: Sequence[float] | None
    alphas: Sequence[float]
    strengths: Sequence[float]

    def widths(self, kernel: str) -> Sequence[float]:
        """Return the widths of a kernel."""
        return WIDTHS[kernel] if self.gammas is None else self.gammas


def choose(fits: HeldOutFits, examples: Examples, unit: float, options: Options) -> Choice:
    """Choose the kernel, its width, the ridge, and the strength of the class prior.

    Everything is judged by loops that an example took no part in. The kernels are
    compared at their first widths, then the widths of the best one, all at the first strength, by
    the likelihood of the candidate sets. That can't tell how strong the prior should be: a prior
    makes sets less likely even where it helps. So strengths are compared by how often predictions
    are covered, corrected for chance, and by the labels of the examples with one candidate. With
    very many classes a third of the examples judges.
    """
    if len(examples) > LIMITS.choice_rows:
        rows = fits.random_state.choice(len(examples), LIMITS.choice_rows, replace=False)
        examples = examples.take(np.sort(rows))
    examples, unit = _in_single_precision(examples, unit)
    first, strengths, trials = options.kernels[0], options.strengths, list[Trial]()
    n_trials = len(options.kernels) * len(options.alphas) * len(options.widths(first))
    if n_trials == 1 or len(examples) < CHOICE_FOLDS:
        trials.append(Trial(first, options.widths(first)[0], options.alphas[0], np.nan))
    else:
        parameters = [(alpha, strengths[0]) for alpha in options.alphas]
        for kernel in options.kernels:
            gamma = options.widths(kernel)[0]
            trials += fits.compared(examples, Kernel(kernel, gamma, unit), parameters)
        kernel = max(trials, key=_likelihood).kernel
        for gamma in options.widths(kernel)[1:]:
            trials += fits.compared(examples, Kernel(kernel, gamma, unit), parameters)
    best = max(trials, key=_likelihood)
    choice = Choice(best.kernel, best.gamma, best.alpha, strengths[0], tuple(trials))
    has_labels = (examples.sets.sizes == 1).any() and len(examples) >= 2 * CHOICE_FOLDS
    if len(strengths) == 1 or not has_labels:
        return choice
    parameters = [(best.alpha, strength) for strength in strengths]
    answers = fits.answers(examples, Kernel(best.kernel, best.gamma, unit), parameters)
    merits = [_Merit.of(answer) for answer in answers]
    values = [merit.value for merit in merits]
    place = int(np.argmax(values))
    needed = max(MIN_IMPROVEMENT, merits[place].error_of_difference(merits[0]))
    if values[place] > values[0] + needed:
        choice = replace(choice, strength=strengths[place])
    return replace(choice, merits=dict(zip(strengths, values, strict=True)))


def _likelihood(trial: Trial) -> float:
    return trial.likelihood


def _in_single_precision(examples: Examples, unit: float) -> tuple[Examples, float]:
    """Return the features and their unit in single precision, which holds no extreme numbers."""
    scale = 2.0 ** round(np.log2(unit))
    X = examples.X if is_sparse(examples.X) else examples.X - examples.X.mean(axis=0)
    return replace(examples, X=(X / scale).astype(np.float32)), unit / scale


class Answers(NamedTuple):
    """What loops said of examples that took no part in them.

    Parameters
    ----------
    examples : Examples
        Those that were asked about.
    scores : array of shape (n, q)
        Scores of all classes.
    noise : float
        The share of the sets that miss the truth, as the last of the loops has it.
    """

    examples: Examples
    scores: Floats
    noise: float

    def temperature(self) -> float:
        """Find the temperature under which the candidate sets are most likely."""
        sets, weights = self.examples.sets, self.examples.weights
        return fit_temperature(sets, log_scores(self.scores), weights, self.noise)

    def likelihood(self) -> float:
        """Mean logarithm of the likelihood of the candidate sets, at the best temperature."""
        sets, logits = self.examples.sets, log_scores(self.scores)
        likelihoods = set_likelihoods(sets, logits, self.temperature(), self.noise)
        return float(np.average(likelihoods, weights=self.examples.weights))


@dataclass(frozen=True)
class HeldOutFits:
    """Loops that are asked about examples which took no part in them.

    What the leave-one-out regression says of an example is not quite independent of it: the
    confidences in other examples, which the regression is trained on, depend on it since earlier
    rounds.

    Parameters
    ----------
    settings : Settings
        What is not chosen.
    n_folds : int
        Number of parts that are held out in turn.
    n_landmarks : int
        As in `System.of`.
    max_rows : int
        For more examples, or too many scores, only one of the parts is held out.
    random_state : RandomState
        Draws the folds and the landmarks.
    """

    settings: Settings
    n_folds: int
    n_landmarks: int
    max_rows: int
    random_state: np.random.RandomState

    def compared(
        self, examples: Examples, kernel: Kernel, parameters: Sequence[tuple[float, float]]
    ) -> list[Trial]:
        """Try out parameters with a kernel."""
        answers = self.answers(examples, kernel, parameters)
        return [
            Trial(kernel.name, kernel.gamma, alpha, answer.likelihood())
            for (alpha, _), answer in zip(parameters, answers, strict=True)
        ]

    def answers(
        self, examples: Examples, kernel: Kernel, parameters: Sequence[tuple[float, float]]
    ) -> list[Answers]:
        """Score all classes of every example by loops that it took no part in.

        Parameters
        ----------
        examples : Examples
            The examples.
        kernel : Kernel
            The kernel.
        parameters : sequence of pairs
            Ridges and strengths of the prior. A loop begins where the one before has ended if the
            strength is the same.

        Returns
        -------
        answers : list of Answers
            One for each pair.
        """
        n, q = examples.sets.shape
        only_one = n > self.max_rows or n * q > LIMITS.cross_fitted_scores
        splitter = KFold(self.n_folds, shuffle=True, random_state=self.random_state)
        folds = list(splitter.split(np.zeros(n)))[: 1 if only_one else None]
        asked = np.sort(np.concatenate([test for _, test in folds]))
        scores, noise = np.empty((len(parameters), len(asked), q)), [0.0] * len(parameters)

        def hold_out(fold: tuple[NDArray[np.intp], NDArray[np.intp]]) -> None:
            train, test = fold
            part, start, before = examples.take(train), None, None
            system = System.of(in_memory(part), kernel, self.n_landmarks, self.random_state)
            for place, pair in enumerate(parameters):
                start = start if pair[1] == before else None
                solution = Solution(self.settings, system, pair, start, part.groups)
                with threads_for(solution.operations):
                    for _ in solution.rounds():
                        pass
                start, before = solution.loop.confidences, pair[1]
                coef, intercept = solution.coefficients()
                mapped = solution.features(examples.X[test])
                scores[place, np.searchsorted(asked, test)] = mapped @ coef + intercept
                noise[place] = solution.loop.evidence.share

        draws_landmarks = len(folds[0][0]) > 2 * self.n_landmarks  # in the order of the folds
        for _ in map(hold_out, folds) if only_one or draws_landmarks else threaded(hold_out, folds):
            pass
        about = examples if len(asked) == n else examples.take(asked)
        return [Answers(about, *answer) for answer in zip(scores, noise, strict=True)]


class _Merit(NamedTuple):
    """How well held-out scores agree with what is known.

    Parameters
    ----------
    covered : array of shape (n,)
        Whether the prediction is a candidate.
    chance : float
        The share of the predictions that would be by chance.
    singletons : array
        Log-likelihoods of the labels of examples with one candidate.
    value : float
        Covering rate, corrected for chance, plus the likelihood of the singletons.
    """

    covered: Floats
    chance: float
    singletons: Floats
    value: float

    @classmethod
    def of(cls, answers: Answers) -> _Merit:
        sets, weights = answers.examples.sets, answers.examples.weights
        logits = log_scores(answers.scores)
        temperature = fit_temperature(sets, logits, weights)
        predicted = logits.argmax(axis=1)
        hits = sets.indices == np.repeat(predicted, sets.sizes)
        shares = sets.to_matrix().T @ (weights / weights.sum())
        chance = min(float(np.average(shares[predicted], weights=weights)), 1 - 1e-6)
        covered = sets.row_sums(hits.astype(float))
        singletons = set_likelihoods(sets, logits, temperature)[sets.sizes == 1]
        kappa = (float(covered.mean()) - chance) / (1 - chance)
        return cls(covered, chance, singletons, kappa + float(singletons.mean()))

    def error_of_difference(self, other: _Merit) -> float:
        """Compute the standard error of the difference to another one on the same examples."""
        covering = (self.covered - other.covered) / (1 - self.chance)
        singletons = self.singletons - other.singletons
        variances = (np.var(values) / len(values) for values in (covering, singletons))
        return float(np.sqrt(sum(variances)))


def in_memory(examples: Examples) -> Block:
    """Return examples as one block in memory."""
    return Block(examples.X, examples.sets, examples.weights)


def merge_duplicates(examples: Examples) -> tuple[Examples, NDArray[np.intp]]:
    """Merge examples that agree in everything, and add up their weights.

    Two copies of an example would confirm each other: neither would be judged by a model that has
    not seen it.

    Returns
    -------
    merged : Examples
        The distinct examples, in an order that does not depend on that of the rows; weights are one
        on average.
    where : int array of shape (n,)
        The position of each example among them.
    """
    n = len(examples)
    if is_sparse(examples.X):
        examples = replace(examples, X=_canonical(examples.X))
    marks = _marks(examples.X)
    order = np.argsort(marks, kind="stable")
    new = np.append(True, marks[order[1:]] != marks[order[:-1]])
    starts = np.flatnonzero(new)
    ends = np.append(starts[1:], n)
    for start, end in zip(starts[ends - starts > 1], ends[ends - starts > 1], strict=True):
        identities = [_identity(examples, row) for row in order[start:end].tolist()]
        arranged = sorted(range(end - start), key=identities.__getitem__)
        order[start:end] = order[start:end][arranged]
        new[start + 1 : end] = [identities[a] != identities[b] for a, b in pairwise(arranged)]
    first, where = order[new], np.empty(n, dtype=np.intp)
    where[order] = np.cumsum(new) - 1
    weights = np.bincount(where, examples.weights)
    return replace(examples.take(first), weights=weights / weights.mean()), where


def _canonical(X: sparse.csr_array) -> sparse.csr_array:
    """Return a CSR matrix with sorted indices, no duplicates and no explicit zeros."""
    if X.has_canonical_format and np.count_nonzero(X.data) == X.nnz:
        return X
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def _marks(X: Features) -> Floats:
    """Return a number for each row that depends on nothing but its features."""
    factors = np.cos(np.arange(1.0, X.shape[1] + 1))
    if is_sparse(X):
        return np.asarray(X @ factors)
    marks, size = np.empty(X.shape[0]), max(1, 2**20 // X.shape[1])
    for start in range(0, len(marks), size):
        marks[start : start + size] = (X[start : start + size] * factors).sum(axis=1)
    return marks


def _identity(examples: Examples, row: int) -> bytes:
    """Return all that describes an example but its weight, as bytes."""
    x, sets = examples.X[[row]], examples.sets
    ends = slice(sets.indptr[row], sets.indptr[row + 1])
    parts = [x.data, x.indices] if is_sparse(x) else [x + 0.0]
    parts.append(sets.indices[ends])
    if sets.weights is not None:
        parts.append(sets.weights[ends])
    if examples.groups is not None:
        parts.append(examples.groups[[row]])
    return b"|".join(part.tobytes() for part in parts)
