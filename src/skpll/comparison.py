"""The old place of `skpll.experiments.comparison`, and `compare`, which ends with it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from .experiments.comparison import PairComparison, RankComparison


class Comparison(NamedTuple):
    """A reference against other methods.

    Attributes
    ----------
    pairs : dict from (method, data set) to PairComparison
        The reference against each other method over the folds of each data set.
    ranks : RankComparison or None
        All methods over the data sets, if there are several that have all methods.
    """

    pairs: dict[tuple[str, str], PairComparison]
    ranks: RankComparison | None

    def pair(self, method: str, data: str = "") -> PairComparison:
        """Return the comparison of the reference with a method on a data set."""
        return self.pairs[method, data]

    @property
    def counts(self) -> dict[str, tuple[int, int, int]]:
        """On how many data sets the reference is better than each method, as good, and worse."""
        verdicts: dict[str, list[str]] = {}
        for (method, _), found in self.pairs.items():
            verdicts.setdefault(method, []).append(found.verdict)
        return {
            method: (seen.count("better"), seen.count("tie"), seen.count("worse"))
            for method, seen in verdicts.items()
        }


def compare(
    scores: Mapping[str, Any],
    *,
    reference: str | None = None,
    test: Literal["t", "wilcoxon"] = "t",
    test_train_ratio: float | None = None,
    alpha: float = 0.05,
) -> Comparison:
    """Compare a method with all others, fold by fold and over data sets.

    .. deprecated:: 0.2
        Use `skpll.experiments.comparison.compare_pair` for each data set, and `compare_ranks`.

    Parameters
    ----------
    scores : mapping from data set to (mapping from method to the scores of its folds)
        For a single data set the outer mapping may be left out.
    reference : str, optional
        The method to compare the others with; by default the first.
    test : {"t", "wilcoxon"}, default="t"
        The paired t-test, or Wilcoxon's signed-rank test.
    test_train_ratio, alpha
        See `compare_pair`.

    Returns
    -------
    Comparison
    """
    import numpy as np
    from scipy.stats import wilcoxon

    from .experiments.comparison import compare_pair, compare_ranks

    message = "skpll.comparison.compare ends with 0.3; use compare_pair and compare_ranks."
    warnings.warn(message, FutureWarning, stacklevel=2)
    nested = all(isinstance(folds, Mapping) for folds in scores.values())
    tables: dict[str, Mapping[str, Sequence[float]]] = dict(scores) if nested else {"": scores}
    methods = list(dict.fromkeys(method for table in tables.values() for method in table))
    if test not in ("t", "wilcoxon"):
        raise ValueError(f"test: {test!r} is unknown; choose t or wilcoxon.")
    if not methods or (reference is not None and reference not in methods):
        raise ValueError(f"reference: {reference!r} is not among the methods {methods}.")
    first = methods[0] if reference is None else reference
    pairs = {}
    for data, table in tables.items():
        rivals = [method for method in methods if method in table and method != first]
        for method in rivals if first in table else ():
            a, b = table[first], table[method]
            found = compare_pair(a, b, test_train_ratio=test_train_ratio, alpha=alpha)
            if test == "wilcoxon":
                ranks = wilcoxon(np.round(np.subtract(a, b), 12))
                p_value = float(ranks.pvalue)
                better = "better" if found.difference > 0 else "worse"
                verdict = better if p_value < alpha else "tie"
                found = found._replace(
                    statistic=float(ranks.statistic),
                    p_value=p_value,
                    verdict=verdict,  # type: ignore[arg-type]
                )
            pairs[method, data] = found
    means = {
        data: {method: float(np.mean(folds)) for method, folds in table.items()}
        for data, table in tables.items()
        if len(table) == len(methods)
    }
    return Comparison(pairs, compare_ranks(means, alpha=alpha) if len(means) > 1 else None)


def __getattr__(name: str) -> object:
    from .experiments import comparison

    if name not in comparison.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    message = f"{__name__} has moved to {comparison.__name__}; the old name ends with 0.3."
    warnings.warn(message, FutureWarning, stacklevel=2)
    return getattr(comparison, name)
