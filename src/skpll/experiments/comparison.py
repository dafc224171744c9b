"""Is one method better than another? Tests over folds and over data sets.

`compare_pair` compares two methods over the folds of one data set, `compare_ranks` all methods over
several data sets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from skpll.plotting import COLORS, Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CriticalDifferenceDisplay", "PairComparison", "RankComparison"]
__all__ += ["compare_pair", "compare_ranks", "nemenyi_quantile"]


Verdict: TypeAlias = Literal["better", "worse", "tie"]

_DIGITS = 12
"""Scores are ratios of counts: differences after this many digits are rounding errors."""


class PairComparison(NamedTuple):
    """Two methods on the same folds.

    Attributes
    ----------
    n : int
        Number of paired scores.
    difference : float
        Mean of first less second.
    interval : tuple of two floats
        Confidence interval of that mean at 1 − `alpha`, from the t distribution, with the
        correction where there was one.
    effect_size : float
        The mean difference in units of the standard deviation of the differences (Cohen's d for
        pairs); infinite where the difference is the same in every fold.
    statistic : float
        The statistic of the test.
    p_value : float
        Two-sided.
    verdict : {"better", "worse", "tie"}
        Whether the first is significantly better or worse than the second.
    """

    n: int
    difference: float
    interval: tuple[float, float]
    effect_size: float
    statistic: float
    p_value: float
    verdict: Verdict


@dataclass(frozen=True)
class RankComparison:
    """All methods over several data sets: Friedman's test and Nemenyi's critical difference.

    Attributes
    ----------
    average_ranks : dict from method to float
        1 is the best; ordered from best to worst. Ties share the mean of their ranks.
    data : tuple of str
        The data sets.
    chi_square, p_value : float
        Friedman's statistic, corrected for ties, and its p-value; the null hypothesis is
        that all methods perform equally.
    critical_difference : float
        Two methods differ at level `alpha` if their average ranks differ by at least this.
    groups : tuple of tuples of str
        The largest sets of methods that do not differ significantly; a diagram joins them.
    alpha : float
        The level.
    """

    average_ranks: dict[str, float]
    data: tuple[str, ...]
    chi_square: float
    p_value: float
    critical_difference: float
    groups: tuple[tuple[str, ...], ...]
    alpha: float


def compare_pair(
    first: ArrayLike,
    second: ArrayLike,
    *,
    test_train_ratio: float | None = None,
    alpha: float = 0.05,
) -> PairComparison:
    r"""Compare two methods on the same folds by a paired t-test.

    Parameters
    ----------
    first, second : array-like of shape (n,)
        The scores of the two, fold by fold.
    test_train_ratio : float, optional
        Number of test examples over number of training examples, 1/9 for ten folds and 1 for
        halves: corrects the t-test for training sets that overlap, after Nadeau and Bengio. The
        variance of the mean is then :math:`(1/n + \text{ratio}) s^2` instead of :math:`s^2 / n`.
        Default: no correction, as in most of the literature, and too many differences found.
    alpha : float, default=0.05
        The level of the test.

    Returns
    -------
    PairComparison

    References
    ----------
    C. Nadeau, Y. Bengio: Inference for the generalization error. Machine Learning 52, 2003.

    Examples
    --------
    >>> from skpll.experiments.comparison import compare_pair
    >>> found = compare_pair([0.8, 0.9, 0.7], [0.8, 0.8, 0.6])
    >>> round(found.difference, 4), round(found.p_value, 3), found.verdict
    (0.0667, 0.184, 'tie')
    """
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if a.ndim != 1 or a.shape != b.shape or len(a) < 2:
        shapes = f"shapes {a.shape} and {b.shape}"
        raise ValueError(f"first, second: {shapes}; give the scores of at least two folds.")
    if not np.isfinite(a).all() or not np.isfinite(b).all():
        raise ValueError("first, second: there are NaN or infinite scores.")
    _check_alpha(alpha)
    if test_train_ratio is not None and not test_train_ratio >= 0:
        raise ValueError(f"test_train_ratio: {test_train_ratio!r} is negative.")
    differences = np.round(a - b, _DIGITS)
    n, mean, spread = len(a), float(differences.mean()), float(differences.std(ddof=1))
    error = spread * np.sqrt(1 / n + (test_train_ratio or 0.0))
    half = float(stats.t.ppf(1 - alpha / 2, n - 1) * error)
    statistic = _ratio(mean, error)
    p_value = float(2 * stats.t.sf(abs(statistic), n - 1))
    verdict: Verdict = "better" if mean > 0 else "worse"
    if p_value >= alpha or mean == 0:
        verdict = "tie"
    interval = (mean - half, mean + half)
    return PairComparison(n, mean, interval, _ratio(mean, spread), statistic, p_value, verdict)


def compare_ranks(
    scores: Mapping[str, Mapping[str, float]], *, alpha: float = 0.05
) -> RankComparison:
    r"""Rank all methods on every data set, and test which average ranks differ.

    With `k` methods and `N` data sets, Friedman's test asks whether all ranks could be random.
    Nemenyi's test says that two methods differ if their average ranks differ by

    .. math:: \mathrm{CD} = q_\alpha \sqrt{\frac{k (k + 1)}{6 N}}.

    Parameters
    ----------
    scores : mapping from data set to (mapping from method to score)
        One score each, higher is better, for instance the mean over folds. Every data set has the
        same methods.
    alpha : float, default=0.05
        The level of the test.

    Returns
    -------
    RankComparison

    References
    ----------
    J. Demšar: Statistical comparisons of classifiers over multiple data sets. Journal of Machine
    Learning Research 7, 2006.

    Examples
    --------
    >>> from skpll.experiments.comparison import compare_ranks
    >>> table = {"a": {"x": 0.9, "y": 0.8}, "b": {"x": 0.7, "y": 0.6}, "c": {"x": 0.5, "y": 0.4}}
    >>> found = compare_ranks(table)
    >>> found.average_ranks, round(found.p_value, 3), round(found.critical_difference, 2)
    ({'x': 1.0, 'y': 2.0}, 0.083, 1.13)
    """
    _check_alpha(alpha)
    methods = list(dict.fromkeys(method for row in scores.values() for method in row))
    if len(scores) < 2 or len(methods) < 2:
        raise ValueError("scores: ranks need at least two data sets and two methods.")
    rows = [[row.get(method, np.nan) for method in methods] for row in scores.values()]
    if not np.isfinite(rows).all():
        raise ValueError("scores: every data set needs a finite score of every method.")
    ranks = stats.rankdata(-np.round(rows, _DIGITS), axis=1)
    average = dict(zip(methods, ranks.mean(axis=0).tolist(), strict=True))
    ordered = dict(sorted(average.items(), key=lambda entry: entry[1]))
    N, k = ranks.shape
    chi_square = _friedman(ranks)
    distance = float(nemenyi_quantile(k, alpha) * np.sqrt(k * (k + 1) / (6 * N)))
    return RankComparison(
        average_ranks=ordered,
        data=tuple(scores),
        chi_square=chi_square,
        p_value=float(stats.chi2.sf(chi_square, k - 1)),
        critical_difference=distance,
        groups=_groups(ordered, distance),
        alpha=alpha,
    )


def nemenyi_quantile(k: int, alpha: float = 0.05) -> float:
    r"""Return the critical value :math:`q_\alpha` of Nemenyi's test for `k` methods.

    The quantile of the studentized range with infinitely many degrees of freedom, over √2.

    Parameters
    ----------
    k : int
        Number of methods.
    alpha : float, default=0.05
        The level of the test.

    Returns
    -------
    q : float

    Examples
    --------
    >>> from skpll.experiments.comparison import nemenyi_quantile
    >>> round(nemenyi_quantile(5), 3)
    2.728
    """
    return float(stats.studentized_range.ppf(1 - alpha, k, np.inf) / np.sqrt(2))


@dataclass(eq=False, repr=False)
class CriticalDifferenceDisplay(Display):
    """Average ranks of methods over data sets; a bar joins those that do not differ significantly.

    Parameters
    ----------
    ranks : RankComparison
        From `compare_ranks`.
    <<title>>

    Examples
    --------
    >>> from skpll.experiments.comparison import CriticalDifferenceDisplay
    >>> table = {"a": {"x": 0.9, "y": 0.8}, "b": {"x": 0.7, "y": 0.6}, "c": {"x": 0.5, "y": 0.4}}
    >>> display = CriticalDifferenceDisplay.from_scores(table).plot()
    >>> display.ranks.groups
    (('x', 'y'),)
    """

    ranks: RankComparison

    @classmethod
    def from_scores(cls, scores: Mapping[str, Mapping[str, float]], *, alpha: float = 0.05) -> Self:
        """Rank the methods on each data set.

        Parameters
        ----------
        scores : mapping from data set to (mapping from method to score)
            Higher is better.
        alpha : float, default=0.05
            The level of the test.

        Returns
        -------
        display
        """
        return cls(compare_ranks(scores, alpha=alpha))

    @property
    def rows(self) -> int:
        """Number of methods listed below each other on one side."""
        return (len(self.ranks.average_ranks) + 1) // 2

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the diagram.

        <<Parameters: ax>>

        Returns
        -------
        self
        """
        ax = self._axes(ax)
        found, k = self.ranks, len(self.ranks.average_ranks)
        line: dict[str, Any] = {"color": ax.xaxis.label.get_color(), "linewidth": 1.0}
        ax.plot([1, k], [0, 0], **line)
        for tick in range(1, k + 1):
            ax.plot([tick, tick], [0, 0.18], **line)
            ax.text(tick, 0.28, str(tick), ha="center", va="bottom")
        ax.plot([1, 1 + found.critical_difference], [1.25, 1.25], **{**line, "linewidth": 2.5})
        ax.text(1, 1.4, f"critical difference {found.critical_difference:.2f}", va="bottom")
        top = 0.35 * (len(found.groups) + 1)
        for level, group in enumerate(found.groups, start=1):
            ends = found.average_ranks[group[0]] - 0.04, found.average_ranks[group[-1]] + 0.04
            ax.plot(ends, [-0.35 * level] * 2, color=COLORS[0], linewidth=3.5)
        margin = 0.08 * k
        for place, (method, rank) in enumerate(found.average_ranks.items()):
            on_left = place < self.rows
            height = -top - 0.55 * (place if on_left else k - 1 - place) - 0.25
            end = 1 - margin if on_left else k + margin
            ax.plot([rank, rank, end], [0, height, height], **line)
            text = f"{method}  {rank:.2f}" if on_left else f"{rank:.2f}  {method}"
            side = "right" if on_left else "left"
            ax.text(end + (-0.03 if on_left else 0.03) * k, height, text, ha=side, va="center")
        ax.set(xlim=(1 - 0.4 * k, 1.4 * k), ylim=(-top - 0.55 * self.rows - 0.1, 2.1))
        ax.set_axis_off()
        return self


def _check_alpha(alpha: float) -> None:
    if not 0 < alpha < 1:
        raise ValueError(f"alpha: {alpha!r} is not between 0 and 1.")


def _ratio(value: float, scale: float) -> float:
    """Return value / scale; infinite for a scale of zero, and 0 for 0 / 0."""
    if scale > 0:
        return value / scale
    return float(np.sign(value) * np.inf) if value else 0.0


def _friedman(ranks: NDArray[np.float64]) -> float:
    """Return Friedman's chi-square of ranks, corrected for ties within a data set."""
    N, k = ranks.shape
    expected = (k + 1) / 2
    between = N * np.sum((ranks.mean(axis=0) - expected) ** 2)
    within = np.sum((ranks - expected) ** 2) / (N * (k - 1))
    return float(between / within) if within > 0 else 0.0


def _groups(average_ranks: dict[str, float], distance: float) -> tuple[tuple[str, ...], ...]:
    """Return the largest runs of methods, best first, whose ends do not differ significantly."""
    names, ranks = list(average_ranks), list(average_ranks.values())
    runs: list[tuple[int, int]] = []
    for start, rank in enumerate(ranks):
        end = max(i for i in range(start, len(ranks)) if i == start or ranks[i] - rank < distance)
        if end > start and not (runs and runs[-1][1] >= end):
            runs.append((start, end))
    return tuple(tuple(names[start : end + 1]) for start, end in runs)
