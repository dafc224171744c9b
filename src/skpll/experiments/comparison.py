"""Is one method better than another? Tests over folds and over data sets.

`compare` takes a table of scores; `compare_pair` and `compare_ranks` are its two parts: two methods
over the folds of one data set, and all methods over several data sets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from skpll.plotting import COLORS, Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Comparison", "CriticalDifferenceDisplay", "PairComparison", "RankComparison"]
__all__ += ["WinTieLoss", "compare", "compare_pair", "compare_ranks", "nemenyi_quantile"]


def __dir__() -> list[str]:
    return __all__


Test: TypeAlias = Literal["t", "wilcoxon"]
Verdict: TypeAlias = Literal["better", "worse", "tie"]

_DIGITS = 12
"""Scores are ratios of counts: differences after this many digits are rounding errors."""


@dataclass(frozen=True, repr=False)
class PairComparison:
    """Two methods on the same folds.

    Attributes
    ----------
    first, second : str
        The two methods.
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
    test : {"t", "wilcoxon"}
        Which test.
    statistic : float
        Its statistic: t, or the smaller of the two sums of signed ranks.
    p_value : float
        Two-sided.
    alpha : float
        The level of the test.
    data : str
        The data set, if it has a name.
    """

    first: str
    second: str
    n: int
    difference: float
    interval: tuple[float, float]
    effect_size: float
    test: Test
    statistic: float
    p_value: float
    alpha: float
    data: str = ""

    @property
    def verdict(self) -> Verdict:
        """Whether the first is ``"better"`` or ``"worse"``, or it is a ``"tie"``."""
        if self.p_value >= self.alpha or self.difference == 0:
            return "tie"
        return "better" if self.difference > 0 else "worse"

    def __repr__(self) -> str:
        where = f" on {self.data}" if self.data else ""
        low, high = self.interval
        return (
            f"<{self.first} vs {self.second}{where}: {self.difference:+.4f} "
            f"[{low:+.4f}, {high:+.4f}], p = {self.p_value:.3g} ({self.test}, n = {self.n}): "
            f"{self.verdict}>"
        )


class WinTieLoss(NamedTuple):
    """Numbers of data sets on which the reference is better, not different, and worse."""

    wins: int
    ties: int
    losses: int

    @classmethod
    def of(cls, verdicts: Iterable[Verdict]) -> Self:
        """Count the verdicts on the reference."""
        found = Counter(verdicts)
        return cls(found["better"], found["tie"], found["worse"])

    def __repr__(self) -> str:
        return f"{self.wins}/{self.ties}/{self.losses}"


@dataclass(frozen=True, repr=False)
class RankComparison:
    """All methods over several data sets: Friedman's test and Nemenyi's critical difference.

    Attributes
    ----------
    average_ranks : dict from method to float
        1 is the best; ordered from best to worst. Ties share the mean of their ranks.
    data : tuple of str
        The data sets that counted: those on which every method has a score.
    chi_square, p_value : float
        Friedman's statistic, corrected for ties, and its p-value; the null hypothesis is
        that all methods perform equally.
    f_statistic, f_p_value : float
        Iman and Davenport's version, which is less conservative.
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
    f_statistic: float
    f_p_value: float
    critical_difference: float
    groups: tuple[tuple[str, ...], ...]
    alpha: float

    def __repr__(self) -> str:
        ranks = ", ".join(f"{method} {rank:.2f}" for method, rank in self.average_ranks.items())
        return (
            f"<ranks over {len(self.data)} data sets: {ranks}; Friedman p = {self.p_value:.3g}, "
            f"critical difference {self.critical_difference:.2f} at {self.alpha:g}>"
        )


@dataclass(frozen=True, repr=False)
class Comparison:
    """A reference against all other methods on all data sets.

    Attributes
    ----------
    reference : str
        The method that the others are compared with.
    pairs : tuple of PairComparison
        The reference against each other method on each data set, over the folds.
    over_data : dict from method to PairComparison
        Wilcoxon's signed-rank test of the reference against the method over the mean scores of the
        data sets; empty for a single data set.
    ranks : RankComparison or None
        All methods over the data sets; None where fewer than two data sets have all methods.
    """

    reference: str
    pairs: tuple[PairComparison, ...]
    over_data: dict[str, PairComparison]
    ranks: RankComparison | None

    def pair(self, method: str, data: str = "") -> PairComparison:
        """Return the comparison of the reference with a method on a data set.

        Parameters
        ----------
        method : str
            The other method.
        data : str, default=""
            The data set; not needed for a single data set without a name.

        Returns
        -------
        PairComparison
        """
        for pair in self.pairs:
            if (pair.second, pair.data) == (method, data):
                return pair
        raise ValueError(
            f"method, data: {self.reference} was not compared with {method!r} on {data!r}."
        )

    @property
    def counts(self) -> dict[str, WinTieLoss]:
        """Numbers of data sets on which the reference is better than each method, or worse."""
        verdicts: dict[str, list[Verdict]] = {}
        for pair in self.pairs:
            verdicts.setdefault(pair.second, []).append(pair.verdict)
        return {method: WinTieLoss.of(found) for method, found in verdicts.items()}

    def __repr__(self) -> str:
        counts = self.counts
        width = max(map(len, counts))
        lines = [f"<{self.reference} wins/ties/losses against"]
        lines += [f"  {method:<{width}}  {count}" for method, count in counts.items()]
        if self.ranks is not None:
            lines.append(f"  {self.ranks!r}")
        return "\n".join(lines) + ">"


def compare(
    scores: Mapping[str, Any],
    *,
    reference: str | None = None,
    test: Test = "t",
    test_train_ratio: float | None = None,
    alpha: float = 0.05,
) -> Comparison:
    """Compare a method with all others.

    Parameters
    ----------
    scores : mapping from data set to (mapping from method to the scores of its folds)
        Higher is better; on one data set all methods have the same folds, in the same order. For a
        single data set the outer mapping may be left out. A method may be missing on a data set.
    reference : str, optional
        The method to compare the others with; by default the first.
    test, test_train_ratio, alpha
        See `compare_pair`.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from skpll.experiments.comparison import compare
    >>> scores = {"ours": [0.81, 0.84, 0.80, 0.86], "theirs": [0.75, 0.79, 0.76, 0.80]}
    >>> compare(scores)
    <ours wins/ties/losses against
      theirs  1/0/0>
    >>> compare(scores).pair("theirs")
    <ours vs theirs: +0.0525 [+0.0373, +0.0677], p = 0.00162 (t, n = 4): better>
    """
    tables = _tables(scores)
    methods = list(dict.fromkeys(method for table in tables.values() for method in table))
    if len(methods) < 2:
        raise ValueError("scores: there is only one method; give at least two to compare.")
    first = methods[0] if reference is None else reference
    if first not in methods:
        raise ValueError(f"reference: {first!r} is not one of {', '.join(methods)}.")
    others = [method for method in methods if method != first]

    def paired(table: Mapping[str, ArrayLike], method: str, **options: Any) -> PairComparison:
        names = (first, method)
        return compare_pair(table[first], table[method], names=names, alpha=alpha, **options)

    pairs = tuple(
        replace(paired(table, method, test=test, test_train_ratio=test_train_ratio), data=data)
        for method in others
        for data, table in tables.items()
        if {first, method} <= table.keys()
    )
    means = {
        data: {method: float(np.mean(folds)) for method, folds in table.items()}
        for data, table in tables.items()
    }
    over_data = {}
    for method in others:
        both = [row for row in means.values() if {first, method} <= row.keys()]
        if len(both) > 1:
            columns = {name: [row[name] for row in both] for name in (first, method)}
            over_data[method] = paired(columns, method, test="wilcoxon")
    complete = {data: row for data, row in means.items() if len(row) == len(methods)}
    ranks = compare_ranks(complete, alpha=alpha) if len(complete) > 1 else None
    return Comparison(first, pairs, over_data, ranks)


def compare_pair(
    first: ArrayLike,
    second: ArrayLike,
    *,
    names: tuple[str, str] = ("first", "second"),
    test: Test = "t",
    test_train_ratio: float | None = None,
    alpha: float = 0.05,
) -> PairComparison:
    r"""Compare two methods on the same folds.

    Parameters
    ----------
    first, second : array-like of shape (n,)
        The scores of the two, fold by fold.
    names : tuple of two str, default=("first", "second")
        Their names.
    test : {"t", "wilcoxon"}, default="t"
        The paired t-test, or Wilcoxon's signed-rank test, which asks for no normal distribution
        but for more folds: below six it never rejects at 0.05.
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
    >>> compare_pair([0.8, 0.9, 0.7], [0.8, 0.8, 0.6])
    <first vs second: +0.0667 [-0.0768, +0.2101], p = 0.184 (t, n = 3): tie>
    """
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if a.ndim != 1 or a.shape != b.shape or len(a) < 2:
        raise ValueError(
            f"first, second: shapes {a.shape} and {b.shape} of {names[0]} and {names[1]}; "
            "give the scores of the same folds, at least two."
        )
    if not np.isfinite(a).all() or not np.isfinite(b).all():
        raise ValueError(f"first, second: the scores of {' or '.join(names)} have NaN or infinity.")
    _check_alpha(alpha)
    if test not in ("t", "wilcoxon"):
        raise ValueError(f'test: {test!r} is neither "t" nor "wilcoxon".')
    if test_train_ratio is not None and not test_train_ratio >= 0:
        raise ValueError(f"test_train_ratio: {test_train_ratio!r} is negative.")
    differences = np.round(a - b, _DIGITS)
    n, mean, spread = len(a), float(differences.mean()), float(differences.std(ddof=1))
    error = spread * np.sqrt(1 / n + (test_train_ratio or 0.0))
    half = float(stats.t.ppf(1 - alpha / 2, n - 1) * error)
    t_statistic = _ratio(mean, error)
    if test == "t":
        statistic, p_value = t_statistic, float(2 * stats.t.sf(abs(t_statistic), n - 1))
    else:
        statistic, p_value = _signed_ranks(differences)
    return PairComparison(
        *names,
        n=n,
        difference=mean,
        interval=(mean - half, mean + half),
        effect_size=_ratio(mean, spread),
        test=test,
        statistic=statistic,
        p_value=p_value,
        alpha=alpha,
    )


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
    >>> table = {"a": {"x": 0.9, "y": 0.8}, "b": {"x": 0.7, "y": 0.6}, "c": {"x": 0.5, "y": 0.5}}
    >>> compare_ranks(table)
    <ranks over 3 data sets: x 1.17, y 1.83; Friedman p = 0.157, critical difference 1.13 at 0.05>
    """
    _check_alpha(alpha)
    data, methods = tuple(scores), list(next(iter(scores.values()), ()))
    if len(data) < 2 or len(methods) < 2:
        raise ValueError("scores: ranks need at least two data sets and two methods.")
    for name, row in scores.items():
        if set(row) != set(methods):
            raise ValueError(f"scores: {name!r} has other methods than {data[0]!r}.")
    table = np.round([[row[method] for method in methods] for row in scores.values()], _DIGITS)
    if not np.isfinite(table).all():
        raise ValueError("scores: there are NaN or infinite scores; leave those data sets out.")
    ranks = stats.rankdata(-table, axis=1)
    average = ranks.mean(axis=0)
    order = sorted(range(len(methods)), key=average.__getitem__)
    ordered = {methods[i]: float(average[i]) for i in order}
    N, k = table.shape
    chi_square = _friedman(ranks)
    room = N * (k - 1) - chi_square
    f_statistic = (N - 1) * chi_square / room if room > 1e-9 else np.inf
    distance = nemenyi_quantile(k, alpha) * np.sqrt(k * (k + 1) / (6 * N))
    return RankComparison(
        average_ranks=ordered,
        data=data,
        chi_square=chi_square,
        p_value=float(stats.chi2.sf(chi_square, k - 1)),
        f_statistic=float(f_statistic),
        f_p_value=float(stats.f.sf(f_statistic, k - 1, (k - 1) * (N - 1))),
        critical_difference=float(distance),
        groups=_groups(ordered, float(distance)),
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


class CriticalDifferenceDisplay(Display):
    """Average ranks of methods over data sets; a bar joins those that do not differ significantly.

    Parameters
    ----------
    ranks : RankComparison
        From `compare_ranks`.

    Examples
    --------
    >>> from skpll.experiments.comparison import CriticalDifferenceDisplay
    >>> table = {"a": {"x": 0.9, "y": 0.8}, "b": {"x": 0.7, "y": 0.6}, "c": {"x": 0.5, "y": 0.4}}
    >>> display = CriticalDifferenceDisplay.from_scores(table).plot()
    >>> display.ranks.groups
    (('x', 'y'),)
    """

    def __init__(self, ranks: RankComparison) -> None:
        self.ranks = ranks

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
        found = self.ranks
        k = len(found.average_ranks)
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
        ax.set_xlim(1 - margin - 0.32 * k, k + margin + 0.32 * k)
        ax.set_ylim(-top - 0.55 * self.rows - 0.1, 2.1)
        ax.set_axis_off()
        return self


def _tables(scores: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Return data set → method → folds, whichever of both shapes `scores` has."""
    nested = {isinstance(value, Mapping) for value in scores.values()}
    if len(nested) > 1:
        raise ValueError("scores: some values are mappings and some are not; give one shape.")
    return scores if True in nested else {"": scores}


def _check_alpha(alpha: float) -> None:
    if not 0 < alpha < 1:
        raise ValueError(f"alpha: {alpha!r} is not between 0 and 1.")


def _ratio(value: float, scale: float) -> float:
    """Return value / scale; infinite for a scale of zero, and 0 for 0 / 0."""
    if scale > 0:
        return value / scale
    return float(np.sign(value) * np.inf) if value else 0.0


def _signed_ranks(differences: NDArray[np.float64]) -> tuple[float, float]:
    """Return Wilcoxon's statistic and p-value; differences of zero are left out."""
    if not differences.any():
        return 0.0, 1.0
    # The exact distribution allows no ties and no zeros; beyond fifty the normal one is as good.
    sizes = np.abs(differences)
    exact = len(sizes) <= 50 and sizes.all() and len(np.unique(sizes)) == len(sizes)
    result = stats.wilcoxon(differences[sizes > 0], method="exact" if exact else "approx")
    return float(result.statistic), float(result.pvalue)


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
