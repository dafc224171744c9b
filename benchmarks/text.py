"""Tables with one column of text and candidate classes: accuracy on new rows and ambiguous ones.

python -m benchmarks.text [--quick]

TREC questions (`trec_train.txt` and `trec_test.txt`, in the folder ``text`` of SKPLL_DATA)
get false candidates, at random and where a model confuses classes. A table is learned from as
`skpll fit` does. Beside it stands logistic regression on TF-IDF weights of words and pairs of them,
trained on a copy of a row for each of its candidates, each with an equal share of the weight.
"""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from benchmarks.report import Record, main
from skpll.candidates import CandidateSets
from skpll.datasets import make_partial_labels
from skpll.tables.learning import learn_from_table
from skpll.tables.reading import FrameTable

TITLE = "TREC questions with candidate classes: accuracy and processor seconds"
KINDS = {"two at random": {"p": 0.8, "r": 2}, "one confused": {"p": 0.8, "r": 1, "kind": "feature"}}
SEEDS = 3


def read(folder: Path, part: str) -> pd.DataFrame:
    """Read one question a line, after the number of its class."""
    lines = (folder / f"trec_{part}.txt").read_text("latin-1").splitlines()
    return pd.DataFrame([line.split(" ", 1) for line in lines], columns=["label", "question"])


def by_skpll(train: pd.DataFrame, sets: CandidateSets, test: pd.DataFrame) -> tuple:
    """Return the labels of new rows and of the training rows, by a model of a table."""
    learned = learn_from_table(FrameTable(train[["question"]]), sets)
    new = learned.model.predicted_columns(FrameTable(test[["question"]]))["label"]
    return np.array(new.to_pylist()), sets.classes[learned.resolution.labels]


def by_copies(train: pd.DataFrame, sets: CandidateSets, test: pd.DataFrame) -> tuple:
    """Return the same by logistic regression on weighted copies."""
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2)
    X, new = words.fit_transform(train["question"]), words.transform(test["question"])
    rows = np.repeat(np.arange(len(sets)), sets.sizes)
    weights = 1 / np.repeat(sets.sizes, sets.sizes)
    model = LogisticRegression(max_iter=1000)
    model.fit(X[rows], sets.classes[sets.indices], sample_weight=weights)
    shares = model.predict_proba(X) * np.asarray(sets)
    return model.predict(new), model.classes_[shares.argmax(axis=1)]


def run(quick: bool) -> list[Record]:
    """Compare both on parts of the training questions."""
    folder = Path(os.environ["SKPLL_DATA"]) / "text"
    train, test = read(folder, "train"), read(folder, "test")
    confusing = make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=1000))
    records = []
    for n in (500,) if quick else (500, 2000, len(train)):
        for kind, options in KINDS.items():
            found: dict[str, list] = {"skpll": [], "copies": []}
            for seed in range(1 if quick or n == len(train) else SEEDS):
                part = train.sample(n, random_state=seed).reset_index(drop=True)
                confused = (
                    {"X": part["question"].to_numpy(), "estimator": confusing}
                    if "kind" in options
                    else {}
                )
                truth = part["label"].to_numpy(dtype=str)
                sets = make_partial_labels(truth, **options, **confused, random_state=seed)
                ambiguous = sets.sizes > 1
                for name, method in (("skpll", by_skpll), ("copies", by_copies)):
                    started = time.process_time()
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", UserWarning)
                        new, own = method(part, sets, test)
                    found[name].append(
                        (
                            np.mean(new == test["label"]),
                            np.mean(own[ambiguous] == truth[ambiguous]),
                            time.process_time() - started,
                        )
                    )
            ours, theirs = (np.mean(values, axis=0).tolist() for values in found.values())
            records.append(
                {
                    "case": f"{n} rows, {kind}",
                    "new rows": ours[0],
                    "(copies)": theirs[0],
                    "ambiguous rows": ours[1],
                    "(copies) ": theirs[1],
                    "seconds": ours[2],
                    "(copies)  ": theirs[2],
                }
            )
    return records


if __name__ == "__main__":
    main("text", TITLE, run)
