"""Labels from votes: accuracy of the rules on real and simulated tables.

What ``skpll.crowd.aggregate(method="auto")`` does was chosen on five real tables and on other
simulated ones, with other seeds than those used here. Columns of the study: the majority (ties
count by their share), one coin and Dawid–Skene by maximum likelihood, both with shrinkage, the one
of these two or the majority that makes held-out votes most likely, and "auto".

python -m benchmarks.crowd [--quick]

Besides: what confidences say beside what is right; labels of `skpll.disambiguate`, which learns
from features and votes, beside `aggregate`; how often intervals of audits contain the accuracy.

Real tables are read from ``$SKPLL_DATA/crowd`` where they are.
"""

from __future__ import annotations

import os
import resource
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, make_classification

from benchmarks.report import Record, main, show
from skpll.crowd import VoteTable, aggregate_votes, draw_audit
from skpll.crowd._audit import StratifiedTest

TITLE = "Votes: accuracy of rules on real tables and simulated ones"
REAL = ("dog", "web", "CF", "s4_Face_Sentiment_Identification", "rte")
FIRST_SEED = 30_000
CONFIDENCES = {0: "say nothing", 1: "calibrated", 3: "too cautious"}


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


def simulate(
    kind: Crowd, seed: int, truth: np.ndarray | None = None
) -> tuple[VoteTable, np.ndarray]:
    """Draw a table of votes and, if it is not given, the true class of each of its items."""
    rng = np.random.default_rng([FIRST_SEED, seed])
    n, q = kind.n_items, kind.n_classes
    if truth is None:
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


def beliefs() -> list[Record]:
    """Compare mean confidences with the share of right labels on the real tables."""
    records: list[Record] = []
    folder = Path(os.environ.get("SKPLL_DATA", ".")) / "crowd"
    for name in REAL if folder.is_dir() else ():
        votes, truth = real_table(folder, name)
        known = truth != -1
        for method in ("auto", "one-coin", "dawid-skene"):
            found = aggregate_votes(votes, method)
            right, said = found.codes[known] == truth[known], found.confidence[known]
            record = {"data": name, "method": method, "said": said.mean(), "right": right.mean()}
            top = said > 0.99
            above = {"share above .99": top.mean(), "right of these": right[top].mean()}
            records.append({**record, "too high by": said.mean() - right.mean(), **above})
    return records


def features(name: str, seed: int, n: int = 500) -> tuple[np.ndarray, np.ndarray]:
    """Draw features and true classes: none that help, some, or good ones."""
    rng = np.random.default_rng([FIRST_SEED, seed])
    if name == "noise":
        return rng.normal(size=(n, 8)), rng.integers(4, size=n)
    if name == "digits":
        X, truth = load_digits(return_X_y=True)
        chosen = rng.permutation(len(truth))[:n]
        return X[chosen], truth[chosen]
    return make_classification(
        n, 10, n_informative=5, n_classes=4, class_sep=0.8, flip_y=0.02, random_state=seed
    )


def beside_features(quick: bool) -> list[Record]:
    """Compare labels from features and votes with those from votes alone."""
    records: list[Record] = []
    names = ["plain", "few votes of each", "two votes per item", "spammers", "own confusions"]
    names += ["hard items", "hard items of a class", "unskilled"]
    for data in ("noise", "some", "digits"):
        for name in names[:1] if quick else names:
            X, truth = features(data, 0)
            kind = replace(KINDS[name], n_items=len(truth), n_classes=len(set(truth)))
            votes, _ = simulate(kind, 0, truth)
            table = {f"x{column}": values for column, values in enumerate(X.T)}
            records.append({"data": f"{data}, {name}", **both_ways(table, votes, truth)})
    folder = Path(os.environ.get("SKPLL_DATA", ".")) / "crowd"
    for name in (REAL[:1] if quick else REAL) if folder.is_dir() else ():
        votes, truth = real_table(folder, name)
        noise = np.random.default_rng([FIRST_SEED, 0]).normal(size=(8, len(votes.items)))
        table = {f"x{column}": values for column, values in enumerate(noise)}
        records.append({"data": f"noise, {name}", **both_ways(table, votes, truth, named=True)})
    if folder.is_dir():
        votes, truth = real_table(folder, "rte")
        rows = (folder / "rte_items_with_truth.tsv").read_text("utf-8").splitlines()[1:]
        cells = {row.split("\t")[0]: row.split("\t")[2:] for row in rows}
        texts = zip(*(cells[item] for item in votes.items.tolist()), strict=True)
        table = dict(zip(("task", "text", "hypothesis"), texts, strict=True))
        records.append({"data": "rte, texts", **both_ways(table, votes, truth, named=True)})
    for record in records:
        record["gain"] = record["with features"] - record["aggregate"]
    return records


def both_ways(table: dict, votes: VoteTable, truth: np.ndarray, *, named: bool = False) -> Record:
    """Return the accuracy of labels with and without the features of a table.

    Its rows are the items in the order of the votes if these have names, or of their numbers.
    """
    import pandas as pd

    from skpll import disambiguate

    order = votes.items.astype(str)
    frame = pd.DataFrame(table).assign(id=order if named else np.arange(len(truth)).astype(str))
    cast = {
        "item": order[votes.item],
        "annotator": votes.annotators[votes.annotator].astype(str),
        "label": np.array([f"c{label}" for label in votes.label]),
    }
    right = truth if named else truth[votes.items]
    alone = float(np.mean(aggregate_votes(votes).codes[right != -1] == right[right != -1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = disambiguate(frame, votes=pd.DataFrame(cast), id="id")
    labels = found["label"].map({f"c{label}": code for code, label in enumerate(votes.classes)})
    known = truth != -1
    with_features = float(np.mean(labels.to_numpy()[known] == truth[known]))
    return {"aggregate": alone, "with features": with_features}


def audits(n_audits: int) -> list[Record]:
    """Count how often the interval of an audit of 100 rows contains the accuracy."""
    accuracies = (0.6, 0.65, 0.7, 0.8, 0.9, 0.93, 0.95, 0.96, 0.97, 0.98)
    cases = [(n, a, slope) for n in (300, 2000) for slope in (0, 1, 3) for a in accuracies]
    records: list[Record] = []
    for place, (n, accuracy, slope) in enumerate(cases):
        rng = np.random.default_rng([FIRST_SEED, place])
        z = rng.normal(0, 1.5, n)
        right = np.ones(n, bool)
        right[np.argsort(slope * z + rng.logistic(size=n))[: round((1 - accuracy) * n)]] = False
        confidence = 1 / (1 + np.exp(-z))
        known: dict[tuple[int, ...], bool] = {}
        hits = [covers(confidence, right, seed, known) for seed in range(n_audits)]
        record = {"rows": n, "accuracy": right.mean(), "confidences": CONFIDENCES[slope]}
        records.append({**record, "covered": np.mean(hits)})
    return records


def covers(confidence: np.ndarray, right: np.ndarray, seed: int, known: dict) -> bool:
    """Return whether the interval of one audit contains the accuracy, without finding its ends."""
    sample = draw_audit(confidence, 100, seed=seed)
    drawn = np.bincount(sample.stratum)
    counts = np.bincount(sample.stratum, right[sample.rows]).astype(np.int64)
    case = (*drawn.tolist(), *counts.tolist())
    if case not in known:
        sizes = np.rint(np.bincount(sample.stratum, sample.weight)).astype(np.int64)
        known[case] = StratifiedTest(counts, drawn, sizes).p_value(right.mean()) >= 0.05
    return known[case]


def run(quick: bool) -> list[Record]:
    """Measure the large table first, while the process is small; the study is last."""
    size = large(100_000 if quick else 1_000_000)
    show("Votes: a large table, method auto", size)
    show("Votes: what confidences say, and what is right", beliefs())
    show("Votes: labels with features beside aggregate", beside_features(quick))
    show("Votes: intervals of audits of 100 rows", audits(50 if quick else 2000))
    return study(2 if quick else 10)


if __name__ == "__main__":
    main("crowd", TITLE, run)
