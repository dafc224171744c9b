"""The paper's figures beside those of its experiments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np
import pandas as pd

from skpll.datasets import dataset_info
from skpll.experiments import tables
from skpll.experiments.store import Experiment
from skpll.experiments.tables import Content, Frame

from . import CLAIMS, DATA, PUBLISHED, TABLE4, Claim, printed

_NAME = __package__.rpartition(".")[2]
_of_store = partial(tables.report_table, collection=_NAME, kinds=("store",), in_results=("store",))
_OURS, _RIVAL = "SP-PLL, our pace", "M3PL as published"
_SIZES = ["examples", "features", "classes", "candidates"]


tables.PRINTED_FIGURES[_NAME] = (
    lambda row: printed(row.dataset, row.method),
    "In small print the paper's figure, said to be from ten folds, and by how much the figure here "
    "is higher (+) or lower (−).",
)


@tables.report_table("field", collection=_NAME, kinds=("table",), in_results=("table",))
def field(results: Frame, experiment: Experiment) -> Frame | None:
    """Rank the methods over the real data sets, beside the best that was published."""
    published = PUBLISHED.get(experiment.name)
    if published is None:
        return None
    means, titles = tables.mean_accuracies(results, "dataset"), experiment.titles
    frame = means.rename(columns=titles)
    if "within_three" in results:
        frame["within three years"] = results.groupby("method")["within_three"].mean()
    known = {titles[name]: published[name] for name in means if name in published}
    best = {title: accuracy for title, (accuracy, _) in known.items()}
    frame = _with_ranks(frame, means, results)
    frame = pd.concat([frame, pd.DataFrame([{"method": "Best published", **best}])])
    sources = "; ".join(f"{title}: {source}" for title, (_, source) in known.items())
    return tables.titled(
        frame,
        f"{experiment.title}: ranks",
        notes=[
            "Mean accuracy; on FG-NET also the share of the ages that are at most three years off. "
            "Ranks are among the methods that ran on all sets.",
            f"Best published: {sources}.",
        ],
    )


def _with_ranks(frame: Frame, means: Frame, results: Frame) -> Frame:
    """Add average ranks, by which rows are sorted then, and the number of folds in words.

    Ranks are among the methods that have a mean everywhere.
    """
    folds = results.groupby(["method", "case"]).size().groupby("method").agg(["min", "max"])
    frame["average_rank"] = means.dropna().rank(ascending=False).mean(axis=1)
    frame["from"] = [tables.number_of_folds(*folds.loc[method]) for method in frame.index]
    return frame.sort_values("average_rank", kind="stable").reset_index()


@_of_store("ranks")
def ranks(content: Content) -> Frame:
    """Figures 2 to 4 together: mean accuracy by data set, and average rank over all cases.

    Ranks are among the methods that ran on all cases. A case is a data set with one p and one r.
    """
    curves = [entry for entry in content.experiments if entry.kind == "curves"]
    results = content.of(*curves).results.drop_duplicates(["key", "method"])
    if results.empty:
        return pd.DataFrame()
    means = tables.mean_accuracies(results, ["data", "case"])
    frame = _with_ranks(means.T.groupby("data", sort=False).mean().T, means, results)
    return tables.titled(frame, formats={"average_rank": "{:.2f}"})


@_of_store("data")
def data_sets(content: Content) -> Frame:
    """Tables 1 and 2: the data sets.

    What the files have; in brackets what the paper says, where that is something else. Of letter
    the paper, and these experiments, take 5000 examples. FG-NET's file has 78 ages, of which 63 are
    the true age of an example.
    """
    rows = []
    for name, said in DATA.items():
        info = dataset_info(name)
        found = [info.n_samples, info.n_features, info.n_classes, info.mean_candidates]
        row = {"data": info.title}
        for head, there, here in zip_longest(_SIZES, found, said):
            if there is not None:
                row[head] = f"{there:g}" + ("" if here in (there, None) else f" ({here:g})")
        rows.append(row)
    return pd.DataFrame(rows, columns=["data", *_SIZES]) if len(content.results) else pd.DataFrame()


_FIGURES = ("figure2", "figure3", "figure4")
_PACES = {
    "As printed, linear": ("SP-PLL as printed", _FIGURES),
    "Our pace, linear": ("SP-PLL, our pace, linear", ("pace-uci",)),
    "Our pace, start and kernel": (_OURS, _FIGURES),
}


@_of_store("pace")
def pace(content: Content) -> Frame:
    """The gain of the pace over M3PL as published, in points.

    M3PL as published is linear and has arbitrary first labels. As printed differs by the pace
    alone; our pace, linear, also starts from PL-LOO; the last column has a kernel as well. The last
    row is the share of the cases won, in percent.
    """
    gains = [claim for claim in CLAIMS if claim.quantity == "mean difference" and claim.dataset]
    wins = next(claim for claim in CLAIMS if claim.name == "wins-over-m3pl")
    rows = []
    for claim in [*gains, wins]:
        row: dict[str, Any] = {"data": claim.dataset or "cases won", "paper": 100 * claim.value}
        for name, (method, experiments) in _PACES.items():
            there = [entry for entry in content.experiments if entry.name in experiments]
            of_pace = replace(claim, method=method, rival=_RIVAL)
            found, _ = check_claim(of_pace, content.of(*there).results) if there else (None, 0)
            row[name] = np.nan if found is None else 100 * found
        rows.append(row)
    frame = pd.DataFrame(rows)
    if frame[[*_PACES]].isna().all(axis=None):
        return pd.DataFrame()
    return tables.titled(frame, formats=dict.fromkeys(("paper", *_PACES), "{:+.2f}"))


def _shown(name: str) -> Callable[[Mapping[str, Any]], str]:
    """Return how a figure of a row of claims is written."""

    def text(row: Mapping[str, Any]) -> str:
        sign = "+" if name == "gap" and row["gap"] > 0 else ""
        of = f" of {row['cases']}" if name == "measured" and "lost" in row["quantity"] else ""
        pattern = _PATTERNS.get(row["quantity"], "{:.4f}")
        return sign + pattern.format(row[name]).replace("-", "−") + of

    return text


_PATTERNS = dict.fromkeys(("share of cases won", "relative difference"), "{:.1%}")
_PATTERNS |= dict.fromkeys(("cases lost", "best value"), "{:.3g}")


@_of_store("claims")
def claims(content: Content) -> Frame:
    """What the paper's text says, and what was found.

    "SP-PLL" is our pace here, with a start and a kernel that M3PL as published does not have; the
    table before this one compares like with like. A case is a data set with one p and one r, or a
    real data set. Where fewer cases were run than in the paper, the figure is about those.
    """
    rows = []
    for claim in CLAIMS:
        there = [entry for entry in content.experiments if entry.name in claim.experiments]
        there = [entry for entry in there if len(content.of(entry).results)]
        if not there:
            continue
        results = content.of(*there).results
        measured, cases = check_claim(claim, results, over=there[0].over)
        gap = None if measured is None else measured - claim.value
        places = [", ".join(entry.name for entry in there), *{e.protocol: 0 for e in there}]
        row: dict[str, Any] = {"name": claim.name, "claim": claim.statement}
        row |= {"quantity": claim.quantity, "paper": claim.value, "measured": measured, "gap": gap}
        rows.append(row | {"cases": cases, "where": "; ".join(places)})
    return tables.titled(
        pd.DataFrame(rows),
        shown=["claim", "paper", "measured", "gap", "cases", "where"],
        heads={"measured": "Here", "gap": "Difference"},
        formats={name: _shown(name) for name in ("paper", "measured", "gap")},
    )


def check_claim(
    claim: Claim, results: Frame, *, over: str | None = None
) -> tuple[float | None, int]:
    """Measure what a claim is about.

    Parameters
    ----------
    claim : Claim
        A figure in the paper's text.
    results : DataFrame
        Results of the experiments that it is about.
    over : str, optional
        The parameter that they vary.

    Returns
    -------
    measured : float or None
        None where the results don't have what it is about.
    cases : int
        The number of cases it was measured on.
    """
    if claim.dataset is not None:
        results = results[results["dataset"] == claim.dataset]
    if results.empty:
        return None, 0
    if claim.quantity == "best value":
        return _best_value(results, over)
    folds = tables.by_fold(results)
    wanted = [claim.method] if claim.rival is None else [claim.method, claim.rival]
    if not set(wanted) <= set(folds.columns):
        return None, 0
    own = folds[wanted].dropna().groupby("case", sort=False).mean().to_numpy().T
    if own.shape[1] < (2 if claim.rival is None else 1):
        return None, 0
    span, deviation = np.ptp, partial(np.std, ddof=1)
    quantities: dict[str, Callable[..., Any]] = {
        "range": span,
        "deviation": deviation,
        "share of cases won": lambda a, b: np.mean(a > b),
        "cases lost": lambda a, b: np.sum(a < b),
        "mean difference": lambda a, b: np.mean(a - b),
        "relative difference": lambda a, b: np.mean(a) / np.mean(b) - 1,
        "difference of ranges": lambda a, b: span(a) - span(b),
        "difference of deviations": lambda a, b: deviation(a) - deviation(b),
    }
    return float(quantities[claim.quantity](*own)), own.shape[1]


def _best_value(results: Frame, over: str | None) -> tuple[float | None, int]:
    """Find the value at which the accuracy is best, on average over the data sets."""
    value = results["parameters"].map(lambda given: given.get(over, np.nan)).astype(float)
    means = results.assign(value=value).pivot_table("accuracy", "case", "value")
    full: Any = means.dropna(axis=1).mean()
    return (None, 0) if full.empty else (float(full.idxmax()), len(means))


@_of_store("table4")
def table4(content: Content) -> Frame:
    """The C that is chosen for SP-PLL as printed, beside the paper's Table 4.

    Chosen inside each training part on candidate sets alone; the paper does not say how its values
    were chosen.
    """
    results = content.results.drop_duplicates("key")  # experiments share tasks
    as_printed = (results["estimator"] == "sppll") & results["dataset"].isin(TABLE4)
    as_printed &= ~results["series"].str.contains("our pace")
    chosen = tables.chosen_values(results[as_printed])
    groups = chosen[chosen["parameter"] == "C"].groupby(["dataset", "data"], sort=False)
    frame = groups.agg(
        most_often=("value", tables.most_often),
        all_choices=("value", tables.tally),
        protocol=("protocol", lambda found: ", ".join(sorted(set(found)))),
    ).reset_index()
    frame["paper"] = [f"{TABLE4[name]:g}" for name in frame.pop("dataset")]
    shown = ["data", "most_often", "paper", "all_choices", "protocol"]
    return tables.titled(frame, shown=shown, heads={"most_often": "Chosen most often"})
