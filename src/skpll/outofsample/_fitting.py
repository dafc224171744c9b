"""How PL-LOO is fitted to some examples, and how its parameters are chosen without the truth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.model_selection import KFold

from skpll._iteration import Record
from skpll._rows import row_sums
from skpll._temperature import fit_temperature, log_scores, set_likelihoods
from skpll._threads import threaded, threads_for

from ._blocks import Parts
from ._loop import Evidence, Loop, class_prior, group_prior
from ._noise import OpenSets, opened
from ._ridge import Examples, System

__all__ = ["Answers", "Choice", "Recipe", "Solution", "Trial", "choose", "cross_fit"]

Floats = NDArray[np.float64]

WIDTHS = {"laplacian": (0.5, 0.25, 1.0), "rbf": (1.0, 0.5, 0.25, 2.0), "linear": (1.0,)}
"""Values of gamma that are tried, the first one first."""

RIDGES = (0.1, 0.03, 0.01)
"""Values of alpha that are tried, from smooth to rough: each goes on where the last one ended."""

STRENGTHS = (0.2, 0.0, 0.5, 1.0)
"""Strengths of the class prior that are tried. The first one is nowhere far from the best; it stays
where no example has a single candidate, since nothing tells then."""

MUCH = 0.03
"""How much better than the first strength another one has to be."""

MOST_ROWS, MOST_LANDMARKS = 2000, 800
"""Parameters are chosen on at most so many examples, and compared with so many landmarks."""

MANY_SCORES = 2**19
"""Beyond so many scores of examples, one of the folds is left out instead of all in turn."""


@dataclass(frozen=True)
class Recipe:
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
        By how much scores are sharpened.
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
    recipe : Recipe
        What is not chosen.
    system : System
        The examples and their features.
    alpha : float
        The ridge.
    strength : float
        The strength of the class prior.
    start : parts, optional
        Confidences to begin with.
    groups : int array of shape (n,), optional
        The group of each example.
    """

    def __init__(
        self,
        recipe: Recipe,
        system: System,
        alpha: float,
        strength: float,
        start: Parts | None = None,
        groups: NDArray[np.intp] | None = None,
    ) -> None:
        self.recipe = recipe
        if recipe.noise:
            system = replace(system, blocks=system.blocks.changed(opened))
            noise = None if recipe.noise == "auto" else float(recipe.noise)
            self.evidence: Evidence = OpenSets(system.blocks, noise)
        else:
            self.evidence = Evidence(system.blocks)
        self.ridge = system.ridge(alpha, recipe.in_sample)
        priors = [class_prior(system.blocks, recipe.shares, strength)]
        if groups is not None:
            priors.append(group_prior(system.blocks, groups, recipe.group_strength))
        self.loop = Loop(
            system.blocks,
            self.ridge.ask,
            priors=priors,
            power=recipe.power,
            start=start,
            evidence=self.evidence,
        )

    def rounds(self) -> Iterator[Record]:
        """Go through the rounds."""
        return self.loop.rounds(self.recipe.max_iter, self.recipe.tol)

    def solve(self) -> Solution:
        """Go through the rounds in one go."""
        with threads_for(self.operations):
            for _ in self.rounds():
                pass
        return self

    @property
    def operations(self) -> float:
        """Number of multiplications in the largest product of a round."""
        gram, (n, q) = self.ridge.system.gram, self.loop.blocks.shape
        return float(n) * (n if gram is None else len(gram)) * q

    def coefficients(self) -> tuple[Floats, Floats]:
        """Give the coefficients and intercepts of the regression on mapped features."""
        return self.ridge.coefficients(self.loop.confidences)

    def predict(self, X: Any) -> Floats:
        """Score all classes of other examples."""
        coef, intercept = self.coefficients()
        return np.asarray(self.ridge.system.features(X) @ coef + intercept)


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


def choose(
    recipe: Recipe,
    examples: Examples,
    unit: float,
    kernels: Sequence[str],
    gammas: Sequence[float] | None,
    alphas: Sequence[float],
    strengths: Sequence[float],
    random_state: np.random.RandomState,
) -> Choice:
    """Choose the kernel, its width, the ridge, and the strength of the class prior.

    Everything is judged by loops that an example took no part in (`cross_fit`). The kernels are
    compared at their first widths, then the widths of the best one, all at the first strength, by
    the likelihood of the candidate sets. That can't tell how strong the prior should be: a prior
    makes sets less likely even where it helps. So strengths are compared by how often predictions
    are covered, corrected for chance, and by the labels of the examples with one candidate. With
    very many classes a third of the examples judges.
    """
    if len(examples.sets) > MOST_ROWS:
        rows = random_state.choice(len(examples.sets), MOST_ROWS, replace=False)
        examples = examples.part(np.sort(rows))
    scale = 2.0 ** round(np.log2(unit))  # single precision holds no very large or small features
    X = examples.X if sparse.issparse(examples.X) else examples.X - examples.X.mean(axis=0)
    examples, unit = replace(examples, X=(X / scale).astype(np.float32)), unit / scale
    widths = {kernel: WIDTHS[kernel] if gammas is None else tuple(gammas) for kernel in kernels}
    trials: list[Trial] = []

    def answers_with(
        kernel: str, gamma: float, settings: Sequence[tuple[float, float]]
    ) -> list[Answers]:
        n, q = examples.sets.shape
        landmarks, one = MOST_LANDMARKS, n * q > MANY_SCORES
        return cross_fit(
            recipe,
            examples,
            kernel,
            gamma,
            unit,
            settings,
            3,
            landmarks,
            random_state,
            only_one=one,
        )

    def try_out(kernel: str, gamma: float) -> None:
        answers = answers_with(kernel, gamma, [(alpha, strengths[0]) for alpha in alphas])
        for alpha, answer in zip(alphas, answers, strict=True):
            trials.append(Trial(kernel, gamma, alpha, answer.likelihood()))

    def best() -> Trial:
        return max(trials, key=lambda trial: trial.likelihood)

    if len(kernels) * len(alphas) * len(widths[kernels[0]]) == 1 or len(examples.sets) < 3:
        trials.append(Trial(kernels[0], widths[kernels[0]][0], alphas[0], np.nan))
    else:
        for kernel in kernels:
            try_out(kernel, widths[kernel][0])
        for gamma in widths[best().kernel][1:]:
            try_out(best().kernel, gamma)
    winner = best()
    choice = Choice(winner.kernel, winner.gamma, winner.alpha, strengths[0], tuple(trials))
    told = (examples.sets.sizes == 1).any() and len(examples.sets) >= 6
    if len(strengths) == 1 or not told:
        return choice
    settings = [(winner.alpha, strength) for strength in strengths]
    answers = answers_with(winner.kernel, winner.gamma, settings)
    merits = [_Merit.of(answer) for answer in answers]
    usual = merits[0]
    place, finest = max(enumerate(merits), key=lambda entry: entry[1].value)
    if finest.value > usual.value + max(MUCH, finest.error_of_difference(usual)):
        choice = replace(choice, strength=strengths[place])
    return replace(
        choice, merits={s: merit.value for s, merit in zip(strengths, merits, strict=True)}
    )


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


def cross_fit(
    recipe: Recipe,
    examples: Examples,
    kernel: str,
    gamma: float,
    unit: float,
    settings: Sequence[tuple[float, float]],
    n_folds: int,
    n_landmarks: int,
    random_state: np.random.RandomState,
    *,
    only_one: bool = False,
) -> list[Answers]:
    """Score all classes of every example by loops that it took no part in.

    What the leave-one-out regression says of an example is not quite independent of it: the
    confidences in other examples, which the regression is trained on, have heard of it in earlier
    rounds.

    Parameters
    ----------
    recipe : Recipe
        What is not chosen.
    examples : Examples
        The examples.
    kernel, gamma, unit : str and floats
        The kernel.
    settings : sequence of pairs
        Ridges and strengths of the prior. A loop begins where the one before has ended if the
        strength is the same.
    n_folds : int
        Number of parts that are left out in turn.
    n_landmarks : int
        As in `System.of`.
    random_state : RandomState
        Draws the folds and the landmarks.
    only_one : bool
        Leave out one of the parts only.

    Returns
    -------
    answers : list of Answers
        One for each setting.
    """
    n, q = examples.sets.shape
    folds = list(KFold(n_folds, shuffle=True, random_state=random_state).split(np.zeros(n)))
    folds = folds[:1] if only_one else folds
    asked = np.sort(np.concatenate([test for _, test in folds]))
    scores, noise = np.empty((len(settings), len(asked), q)), [0.0] * len(settings)

    def leave_out(fold: tuple[NDArray[np.intp], NDArray[np.intp]]) -> None:
        train, test = fold
        part, start, before = examples.part(train), None, None
        system = System.of(part.blocks(), kernel, gamma, unit, n_landmarks, random_state)
        for place, (alpha, strength) in enumerate(settings):
            start = start if strength == before else None
            solution = Solution(recipe, system, alpha, strength, start, part.groups).solve()
            start, before = solution.loop.confidences, strength
            scores[place, np.searchsorted(asked, test)] = solution.predict(examples.X[test])
            noise[place] = solution.evidence.share

    draws = len(folds[0][0]) > 2 * n_landmarks  # landmarks, in the order of the folds
    if only_one or draws:
        for fold in folds:
            leave_out(fold)
    else:
        list(threaded(leave_out, folds))
    about = examples if len(asked) == n else examples.part(asked)
    return [Answers(about, *answer) for answer in zip(scores, noise, strict=True)]


class _Merit(NamedTuple):
    """How well honest scores agree with what is known.

    Parameters
    ----------
    covered : array of shape (n,)
        Whether the prediction is a candidate.
    chance : float
        The share of the predictions that would be by chance.
    singletons : array
        Log-likelihoods of the labels of examples with one candidate.
    """

    covered: Floats
    chance: float
    singletons: Floats

    @classmethod
    def of(cls, answers: Answers) -> _Merit:
        sets, weights = answers.examples.sets, answers.examples.weights
        logits = log_scores(answers.scores)
        temperature = fit_temperature(sets, logits, weights)
        predicted = logits.argmax(axis=1)
        hits = sets.indices == np.repeat(predicted, sets.sizes)
        shares = sets.to_matrix().T @ (weights / weights.sum())
        likelihoods = set_likelihoods(sets, logits, temperature)
        return cls(
            covered=row_sums(sets, hits.astype(float)),
            chance=min(float(np.average(shares[predicted], weights=weights)), 1 - 1e-6),
            singletons=likelihoods[sets.sizes == 1],
        )

    @property
    def value(self) -> float:
        """Covering rate, corrected for chance, plus the likelihood of the singletons."""
        kappa = (float(self.covered.mean()) - self.chance) / (1 - self.chance)
        return kappa + float(self.singletons.mean())

    def error_of_difference(self, other: _Merit) -> float:
        """Give the standard error of the difference to another one on the same examples."""
        covering = _standard_error(self.covered - other.covered) / (1 - self.chance)
        return float(np.hypot(covering, _standard_error(self.singletons - other.singletons)))


def _standard_error(values: Floats) -> float:
    return float(np.std(values) / np.sqrt(len(values)))
