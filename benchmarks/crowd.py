"""Labels from votes: accuracy of the rules on real and simulated tables, and time beside crowd-kit.

What ``skpll.crowd.aggregate(method="auto")`` does was chosen on five real tables and on other
simulated ones, with other seeds than those used here. Columns of the study: the majority (ties
count by their share), one coin and Dawid–Skene by maximum likelihood, both with shrinkage, the one
of these two or the majority that makes held-out votes most likely, and "auto".

python -m benchmarks.crowd [--quick]

Real tables are read from ``$SKPLL_DATA/crowd`` where they are; crowd-kit is timed where it is
installed.
"""

from __future__ import annotations

import importlib.util
import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.report import Record, main, show
from skpll.crowd import VoteTable, aggregate_votes, fit_dawid_skene, fit_majority, fit_one_coin

TITLE = "Votes: accuracy of rules on real tables and simulated ones"
REAL = ("dog", "web", "CF", "s4_Face_Sentiment_Identification", "rte")
FIRST_SEED = 30_000


@dataclass(frozen=True)
class Crowd:
    """A kind of simulated table; see `simulate`."""

    n_items: int = 500
    n_annotators: int = 50
    n_classes: int = 4
    votes: int = 5
    skill: tuple[float, float] = (6.0, 3.0)
    shares: tuple[float, ...] = ()
    own_confusions: bool = False  # each annotator mixes up other classes
    ordered: bool = False  # classes have an order, annotators a tendency
    spammers: float = 0.0  # share of annotators who vote at random, or always the same
    hard: float = 0.0  # share of items with a wrong label that everyone is drawn to
    drawn: float = 0.6  # how often
    by_class: bool = False  # that label follows from the class


KINDS = {
    "plain": Crowd(),
    "few votes of each": Crowd(300, 450, 5),
    "few votes, two classes": Crowd(1000, 1000, 2, 3),
    "two votes per item": Crowd(n_annotators=60, n_classes=5, votes=2),
    "spammers": Crowd(spammers=0.4),
    "twenty classes": Crowd(1000, 80, 20),
    "own confusions": Crowd(1000, own_confusions=True),
    "ordered classes": Crowd(n_classes=5, ordered=True),
    "ordered, few votes": Crowd(n_annotators=300, n_classes=5, ordered=True),
    "rare classes": Crowd(shares=(0.8, 0.1, 0.06, 0.04)),
    "rare class of two": Crowd(n_classes=2, shares=(0.92, 0.08)),
    "hard items": Crowd(hard=0.35),
    "hard items, few votes": Crowd(n_annotators=300, hard=0.35),
    "hard items of a class": Crowd(n_classes=5, hard=0.3, drawn=0.7, by_class=True),
    "hard, own confusions": Crowd(1000, own_confusions=True, hard=0.25),
    "three annotators": Crowd(n_annotators=3, votes=3),
    "skilled": Crowd(skill=(18.0, 2.0)),
    "unskilled": Crowd(skill=(3.0, 3.5)),
}


def simulate(kind: Crowd, seed: int) -> tuple[VoteTable, np.ndarray]:
    """Draw a table of votes and the true class of each of its items."""
    rng = np.random.default_rng([FIRST_SEED, seed])
    n, q = kind.n_items, kind.n_classes
    truth = rng.choice(q, n, p=kind.shares or None)
    activity = np.log(rng.pareto(1.2, kind.n_annotators) + 0.2)
    keys = activity + rng.gumbel(size=(n, kind.n_annotators))
    chosen = np.argpartition(-keys, kind.votes - 1, axis=1)[:, : kind.votes].ravel()
    item = np.repeat(np.arange(n), kind.votes)
    said = confusions(kind, rng)[chosen, truth[item]].cumsum(axis=1)
    label = (rng.random((len(item), 1)) > said[:, :-1]).sum(axis=1)
    other = 1 if kind.by_class else rng.integers(1, q, n)
    drawn = (rng.random(n) < kind.hard)[item] & (rng.random(len(item)) < kind.drawn)
    label = np.where(drawn, ((truth + other) % q)[item], label)
    return VoteTable.from_long(item, chosen, label), truth


def confusions(kind: Crowd, rng: np.random.Generator) -> np.ndarray:
    """Draw what each annotator says about items of each class."""
    n, q = kind.n_annotators, kind.n_classes
    eye = np.eye(q)
    if kind.ordered:
        bias, spread = rng.normal(0, 0.5, (n, 1, 1)), rng.uniform(0.5, 1.1, (n, 1, 1))
        steps = np.arange(q) - np.arange(q)[:, None]
        rows = np.exp(-(((steps - bias) / spread) ** 2) / 2)
    else:
        skill = 1 / q + (1 - 1 / q) * rng.beta(*kind.skill, (n, 1))
        if kind.own_confusions:
            skill = np.clip(skill + rng.normal(0, 0.18, (n, q)), 0.05, 0.98)
        spread = (
            rng.dirichlet(np.full(q, 0.4), (n, q)) if kind.own_confusions else np.ones((n, q, q))
        )
        off = (spread + 1e-6) * (1 - eye)
        rows = (1 - skill)[:, :, None] * off / off.sum(axis=2, keepdims=True) + skill[
            :, :, None
        ] * eye
    rows /= rows.sum(axis=2, keepdims=True)
    spam = rng.random(n) < kind.spammers
    constant = np.where(
        rng.random((n, 1)) < 0.5, 1 / q, 0.95 * eye[rng.integers(q, size=n)] + 0.05 / q
    )
    rows[spam] = constant[spam, None]
    return rows


def real_table(folder: Path, name: str) -> tuple[VoteTable, np.ndarray]:
    """Read a real table; the truth is −1 where it is not known."""
    tabs = name == "rte"
    cells = np.loadtxt(
        folder / f"{name}_votes.{'tsv' if tabs else 'csv'}",
        str,
        delimiter="\t" if tabs else ",",
        skiprows=1,
        usecols=(2, 1, 3, 4) if tabs else (0, 1, 2),
    )
    if tabs:
        known = dict(zip(cells[:, 0].tolist(), cells[:, 3].astype(int).tolist(), strict=True))
    else:
        rows = np.loadtxt(folder / f"{name}_truth.csv", str, delimiter=",", skiprows=1)
        known = {item: int(label) for item, label in rows.tolist()}
    votes = VoteTable.from_long(cells[:, 0], cells[:, 1], cells[:, 2].astype(int))
    code = {label: code for code, label in enumerate(votes.classes.tolist())}
    truth = [code.get(known[i], -2) if i in known else -1 for i in votes.items.tolist()]
    return votes, np.array(truth)


def accuracies(votes: VoteTable, truth: np.ndarray) -> dict[str, float]:
    """Return the accuracy of each rule; ties of the majority count by their share."""
    known = truth != -1
    top = votes.counts == votes.counts.max(axis=1, keepdims=True)
    shares = np.where(
        truth >= 0, (top / top.sum(axis=1, keepdims=True))[np.arange(len(truth)), truth], 0
    )

    def right(codes: np.ndarray) -> float:
        return float(np.mean(codes[known] == truth[known]))

    def rule(method: str, shrinkage: float = 10.0) -> float:
        return right(aggregate_votes(votes, method, shrinkage=shrinkage).codes)

    auto = aggregate_votes(votes)
    chosen = max(auto.held_out, key=auto.held_out.__getitem__)
    return {
        "majority": float(shares[known].mean()),
        "one coin, ML": rule("one-coin", 0.0),
        "Dawid–Skene, ML": rule("dawid-skene", 0.0),
        "one coin": rule("one-coin"),
        "Dawid–Skene": rule("dawid-skene"),
        "held-out votes": rule(chosen),
        "auto": right(auto.codes),
    }


def study(n_seeds: int) -> list[Record]:
    """Compare the rules on every table; simulated ones are means over the seeds."""
    records: list[Record] = []
    folder = Path(os.environ.get("SKPLL_DATA", ".")) / "crowd"
    if folder.is_dir():
        records += [{"data": name, **accuracies(*real_table(folder, name))} for name in REAL]
    for name, kind in KINDS.items():
        runs = [accuracies(*simulate(kind, seed)) for seed in range(n_seeds)]
        mean = {rule: float(np.mean([run[rule] for run in runs])) for rule in runs[0]}
        records.append({"data": name, **mean})
    rules = [rule for rule in records[0] if rule != "data"]
    records.append({"data": "mean", **{r: float(np.mean([x[r] for x in records])) for r in rules}})
    for record in records:
        record["auto − majority"] = record["auto"] - record["majority"]
    return records


def times() -> list[Record]:
    """Time the models on the real tables beside crowd-kit, for the same number of iterations."""
    folder = Path(os.environ.get("SKPLL_DATA", ".")) / "crowd"
    if importlib.util.find_spec("crowdkit") is None or not folder.is_dir():
        return []
    import pandas as pd
    from crowdkit.aggregation import DawidSkene, MajorityVote, OneCoinDawidSkene

    rounds = 20
    pairs = {
        "majority": (fit_majority, MajorityVote()),
        "one coin": (
            lambda v: fit_one_coin(v, shrinkage=0, max_iter=rounds, tol=-1),
            OneCoinDawidSkene(n_iter=rounds, tol=-1e9),
        ),
        "Dawid–Skene": (
            lambda v: fit_dawid_skene(v, shrinkage=0, max_iter=rounds, tol=-1),
            DawidSkene(n_iter=rounds, tol=-1e9),
        ),
    }
    records = []
    for name in REAL:
        votes, _ = real_table(folder, name)
        columns = (votes.items[votes.item], votes.annotators[votes.annotator], votes.label)
        frame = pd.DataFrame(dict(zip(("task", "worker", "label"), columns, strict=True)))
        for model, (fit, other) in pairs.items():
            ours = seconds(lambda c=columns, f=fit: f(VoteTable.from_long(*c)))
            theirs = seconds(lambda o=other, f=frame: o.fit(f))
            records.append({"data": name, "model": model, "skpll": ours, "crowd-kit": theirs})
    return records


def seconds(work, repeats: int = 3) -> float:
    """Return the shortest processor time of some runs."""
    found = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def large(n_votes: int) -> list[Record]:
    """Measure time and memory on many votes of annotators with very different numbers of votes."""
    rng = np.random.default_rng(0)
    n_annotators, q = n_votes // 100, 5
    item = np.repeat(np.arange(n_votes // 5), 5)
    truth = rng.integers(q, size=n_votes // 5)
    annotator = (rng.beta(1, 3, n_votes) * n_annotators).astype(np.int64)
    right = rng.random(n_votes) < rng.beta(4, 2, n_annotators)[annotator]
    label = np.where(right, truth[item], rng.integers(q, size=n_votes))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, start = time.perf_counter(), time.process_time()
    found = aggregate_votes(VoteTable.from_long(item, annotator, label))
    used = {"cpu s": time.process_time() - start, "wall s": time.perf_counter() - wall}
    peak = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    size = item.nbytes + annotator.nbytes + label.nbytes
    accuracy = float(np.mean(found.codes == truth[found.items]))
    case = f"{n_votes} votes, {n_annotators} annotators"
    return [{"case": case, **used, "memory / votes": peak / size, "accuracy": accuracy}]


def run(quick: bool) -> list[Record]:
    """Measure the large table first, while the process is small; then times; then the study."""
    size = large(100_000 if quick else 1_000_000)
    show("Votes: a large table, method auto", size)
    beside = times()
    if beside:
        show("Votes: processor seconds, twenty iterations, reading included", beside)
    return study(2 if quick else 10)


if __name__ == "__main__":
    main("crowd", TITLE, run)
