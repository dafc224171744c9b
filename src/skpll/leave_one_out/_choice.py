"""How PL-LOO is fitted to some examples, and how its parameters are chosen without the truth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, product, repeat
from operator import attrgetter
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.model_selection import GroupKFold, KFold

from skpll._examples import Examples
from skpll._temperature import at_candidates, fit_temperature, log_scores, set_likelihoods
from skpll._threads import threaded, threads_for
from skpll.engine.arrays import Matrix, as_float64, as_numpy, is_sparse, is_tensor, to_namespace
from skpll.engine.blocks import Block, Part
from skpll.engine.kernels import KernelMap
from skpll.engine.limits import LIMITS

from ._loop import Loop, Settings, open_if
from ._regression import AnyRidge, Predict, System
from ._repeated import n_independent
from ._set_model import SetModel
from ._start import convex_start

__all__ = [
    "Answers",
    "Choice",
    "HeldOutFits",
    "Trial",
    "begin",
    "choose",
]

Floats = NDArray[np.float64]
Fold: TypeAlias = tuple[NDArray[np.intp], NDArray[np.intp]]
"""The examples to train on and those to ask about."""

WIDTHS = {"laplacian": (0.5, 0.25, 1.0), "rbf": (1.0, 0.5, 0.25, 2.0), "linear": (1.0,)}
"""Values of gamma that are tried, the first one first."""

RIDGES = (0.1, 0.03, 0.01)
"""Values of alpha that are tried, from smooth to rough: each starts where the last one ended."""

LINEAR_RIDGES = (100.0, 10.0, 1.0, *RIDGES)
"""Values of alpha that are tried with linear features, if there are not very many examples."""

STRENGTHS = (0.2, 0.0, 0.5, 1.0)
"""Strengths of the class prior that are tried. The first one is nowhere far from the best."""

MIN_IMPROVEMENT = 0.08
"""By how much a stronger prior than the first one has to raise the joint log-likelihood,"""

MIN_ERRORS = 3.0
"""and by how many standard errors."""

CHOICE_FOLDS = 3


def begin(ridge: AnyRidge, settings: Settings, start: Part | None = None) -> Loop:
    """Return the loop on the examples of a regression, with confidences to begin with."""
    if start is None and settings.start == "convex":
        with threads_for(ridge.operations):
            start = convex_start(ridge.store, ridge.descended)
    return Loop(ridge.store, ridge.fitted if settings.in_sample else ridge.ask, settings, start)


@dataclass(frozen=True)
class Trial:
    """A kernel and a ridge that were tried.

    Parameters
    ----------
    kernel, gamma, alpha : str, float, float
        The kernel, how fast it falls with the distance, and the ridge.
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
    kernel, gamma, alpha, strength : str and floats
        The kernel, how fast it falls with the distance, the ridge, and the strength of the class
        prior.
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
    fits: HeldOutFits,
    examples: Examples,
    unit: float,
    widths: Mapping[str, Sequence[float]],
    alphas: Sequence[float],
    strengths: Sequence[float],
) -> Choice:
    """Choose the kernel, its width, the ridge, and the strength of the class prior.

    Everything is judged by loops that an example took no part in, on some of the examples if there
    are many. The kernels are compared at their first widths, then the widths of the best one, by
    the likelihood of the candidate sets in loops that start from candidates that are alike.

    That can't tell how strong the prior should be: a prior makes sets less likely even where it
    helps. The strengths are compared by the joint likelihood of labels and sets (`Answers.joint`),
    and a weaker one than the first has to be better by more than the error of the difference, a
    stronger one by far (`MIN_IMPROVEMENT`, `MIN_ERRORS`): where examples with the same set are
    alike, the error is underestimated.

    Parameters
    ----------
    fits : HeldOutFits
        The loops.
    examples : Examples
        The examples.
    unit : float
        The unit of distances.
    widths : mapping from str to sequence of float
        The kernels to choose from, and the widths of each.
    alphas, strengths : sequences of float
        The ridges, and the strengths of the class prior.
    """
    if len(examples) > LIMITS.choice_rows:
        rows = fits.random_state.choice(len(examples), LIMITS.choice_rows, replace=False)
        examples = examples.take(np.sort(rows))
    examples, unit = _in_single_precision(examples, unit)
    kernels = [KernelMap(name, gammas[0], unit) for name, gammas in widths.items()]
    n_trials = len(kernels) * len(alphas) * len(widths[kernels[0].kernel])
    if n_trials == 1 or n_independent(examples) < CHOICE_FOLDS:
        kernel = kernels[0]
        trials = [Trial(kernel.kernel, kernel.gamma, alphas[0], np.nan)]
    else:
        plain = replace(fits, settings=replace(fits.settings, start="evidence", set_model=0.0))
        parameters = [*product(alphas, strengths[:1])]
        trials = plain.compared(examples, kernels, parameters)
        name = max(trials, key=attrgetter("likelihood")).kernel
        kernels = [KernelMap(name, gamma, unit) for gamma in widths[name][1:]]
        trials += plain.compared(examples, kernels, parameters)
    best = max(trials, key=attrgetter("likelihood"))
    choice = Choice(best.kernel, best.gamma, best.alpha, strengths[0], tuple(trials))
    if len(strengths) == 1 or n_independent(examples) < 2 * CHOICE_FOLDS:
        return choice
    parameters = [*product([best.alpha], strengths)]
    answers = fits.answers(examples, KernelMap(best.kernel, best.gamma, unit), parameters)
    joint = np.array([answer.joint() for answer in answers])
    asked = answers[0].examples
    means = np.average(joint, axis=1, weights=asked.weights)
    place = int(np.argmax(means))
    needed = _standard_error(joint[place] - joint[0], asked)
    if strengths[place] > strengths[0]:
        needed = max(MIN_ERRORS * needed, MIN_IMPROVEMENT)
    if means[place] - means[0] > needed:
        choice = replace(choice, strength=strengths[place])
    return replace(choice, merits=dict(zip(strengths, means.tolist(), strict=True)))


def _standard_error(values: Floats, examples: Examples) -> float:
    """Compute the standard error of the weighted mean of one value for each example."""
    mean = np.average(values, weights=examples.weights)
    variance = np.average((values - mean) ** 2, weights=examples.weights)
    return float(np.sqrt(variance / n_independent(examples)))


def _in_single_precision(examples: Examples, unit: float) -> tuple[Examples, float]:
    """Return the features and their unit in single precision, which holds no extreme numbers."""
    scale = 2.0 ** round(np.log2(unit))
    X = examples.X if is_sparse(examples.X) else examples.X - examples.X.mean(axis=0)
    X = X / scale
    X = X.float() if is_tensor(X) else X.astype(np.float32)
    return replace(examples, X=X), unit / scale


class Answers(NamedTuple):
    """What loops said of examples that took no part in them.

    Parameters
    ----------
    examples : Examples
        Those that were asked about.
    scores : array or tensor of shape (n, q)
        Scores of all classes.
    noise : float
        The share of the sets that miss the truth, as the last of the loops has it.
    sets : array of shape (total number of candidates,) or None
        Logarithms of the likelihood of the set of each example, given each of its candidates.
    rows : int array of shape (n,)
        The positions of the examples among all.
    """

    examples: Examples
    scores: Matrix
    noise: float
    sets: Floats | None = None
    rows: NDArray[np.intp] | None = None

    def temperature(self) -> float:
        """Find the temperature under which the candidate sets are most likely."""
        sets, weights = self.examples.sets, self.examples.weights
        return fit_temperature(sets, log_scores(self.scores), weights, self.noise)

    def likelihood(self) -> float:
        """Mean logarithm of the likelihood of the candidate sets, at the best temperature."""
        sets, logits = self.examples.sets, log_scores(self.scores)
        likelihoods = set_likelihoods(sets, logits, self.temperature(), self.noise)
        return float(np.average(likelihoods, weights=self.examples.weights))

    def joint(self) -> Floats:
        r"""Compute the logarithm of the joint likelihood of the label and the set of each example.

        .. math:: \log \sum_{j \in S_i} P_{ij} \, P(S_i \mid j)

        The first factor is that of the scores at the best temperature.
        """
        assert self.sets is not None
        sets, logits = self.examples.sets, log_scores(self.scores) / self.temperature()
        logs = logits.log_softmax(1) if is_tensor(logits) else log_softmax(logits, axis=1)
        values = at_candidates(sets, logs) + self.sets
        peaks = sets.row_max(values)
        return np.asarray(peaks + np.log(sets.row_sums(np.exp(values - sets.spread(peaks)))))


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
        self,
        examples: Examples,
        kernels: Sequence[KernelMap],
        parameters: Sequence[tuple[float, float]],
    ) -> list[Trial]:
        """Try out parameters with some kernels."""
        return [
            Trial(kernel.kernel, kernel.gamma, alpha, answer.likelihood())
            for kernel in kernels
            for (alpha, _), answer in zip(
                parameters, self.answers(examples, kernel, parameters), strict=True
            )
        ]

    def answers(
        self,
        examples: Examples,
        kernel: KernelMap,
        parameters: Sequence[tuple[float, float]],
        whole: AnyRidge | None = None,
    ) -> list[Answers]:
        """Score all classes of every example by loops that it took no part in.

        Parameters
        ----------
        examples : Examples
            The examples.
        kernel : KernelMap
            The kernel.
        parameters : sequence of pairs
            Ridges and strengths of the prior: several ridges or several strengths. With another
            ridge, a loop begins where the one before has ended.
        whole : Ridge or KernelRidge, optional
            The regression on all examples, from which those on parts of them follow.

        Returns
        -------
        answers : list of Answers
            One for each pair.
        """
        n, q = examples.sets.shape
        only_one = n > self.max_rows or n * q > LIMITS.cross_fitted_scores
        folds = self._folds(examples)[: 1 if only_one else None]
        asked = np.sort(np.concatenate([test for _, test in folds]))
        about = examples if len(asked) == n else examples.take(asked)
        shape, noise = (len(parameters), len(asked), q), [0.0] * len(parameters)
        scores: Matrix = np.empty(shape)
        if is_tensor(examples.X):
            scores = as_float64(examples.X[:0]).new_empty(shape)
        alphas, strengths = zip(*parameters, strict=True)
        said = np.zeros((len(parameters), len(about.sets.indices)))

        def hold_out(fold: Fold) -> None:
            places = np.searchsorted(asked, fold[1])
            start = first = None
            regressions = self._regressions(examples, fold, kernel, whole, alphas)
            for place, (ridge, predict) in enumerate(regressions):
                if place and strengths[place] != strengths[place - 1]:
                    start = first
                settings = replace(self.settings, prior_strength=strengths[place])
                loop = begin(ridge, settings, start)
                first = loop.confidences if first is None else first
                with threads_for(ridge.operations):
                    for _ in loop.rounds():
                        pass
                start = loop.confidences
                scores[place, places] = to_namespace(predict(start), scores)
                noise[place] = loop.evidence.share
                if len(set(strengths)) > 1:  # which the likelihood of the sets tells apart
                    others = Block.of(about.take(places))
                    nothing = np.zeros(len(others.sets.indices))
                    likelihoods = SetModel.of(loop.store, start).log_likelihoods(others, nothing)
                    said[place, about.sets.places(places)] = likelihoods

        draws_landmarks = whole is None and len(folds[0][0]) > 2 * self.n_landmarks
        in_order = only_one or draws_landmarks  # landmarks are drawn in the order of the folds
        for _ in map(hold_out, folds) if in_order else threaded(hold_out, folds):
            pass
        answers = zip(scores, noise, said, strict=True)
        return [Answers(about, *answer, rows=asked) for answer in answers]

    def _folds(self, examples: Examples) -> list[Fold]:
        """Divide examples; near copies stay together."""
        kind = KFold if examples.copies is None else GroupKFold
        splitter = kind(self.n_folds, shuffle=True, random_state=self.random_state)
        return list(splitter.split(np.zeros(len(examples)), groups=examples.copies))

    def _regressions(
        self,
        examples: Examples,
        fold: Fold,
        kernel: KernelMap,
        whole: AnyRidge | None,
        alphas: Sequence[float],
    ) -> Iterator[tuple[AnyRidge, Predict]]:
        """Yield a regression on a part of the examples for each ridge, and what predicts others."""
        train, test = fold
        if whole is not None:
            yield from repeat(whole.without(np.isin(np.arange(len(examples)), test)), len(alphas))
            return
        if len(train) > 2 * self.n_landmarks:
            examples = replace(examples, X=as_numpy(examples.X))  # only kernels stay on a device
        store = open_if(self.settings.noise, Block.of(examples.take(train)))
        system = System.of(store, kernel, self.n_landmarks, self.random_state)
        mapped = replace(system.features, whitening=None)(examples.X[test])
        for alpha, same in groupby(alphas):
            ridge = system.ridge(alpha)
            for _ in same:
                yield ridge, partial(_predictions, ridge, mapped)


def _predictions(ridge: AnyRidge, mapped: Matrix, confidences: Floats) -> Matrix:
    coef, intercept = ridge.coefficients(confidences)
    return mapped @ coef + to_namespace(intercept, coef)
