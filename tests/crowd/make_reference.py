"""Compute reference results with crowd-kit and krippendorff, where these are installed.

Run ``SKPLL_DATA=… python tests/crowd/make_reference.py``; writes reference.json beside this file.
crowd-kit's own stopping rule looks at a bound that counts the class prior once per vote, so it may
stop long before convergence: a fixed number of iterations is compared instead.
"""

import json
import os
from pathlib import Path

import krippendorff
import numpy as np
import pandas as pd
from crowdkit.aggregation import DawidSkene, MajorityVote, OneCoinDawidSkene

N_ITER = 20
MODELS = {
    "majority": MajorityVote,
    "one-coin": lambda: OneCoinDawidSkene(n_iter=N_ITER, tol=-1e9),
    "dawid-skene": lambda: DawidSkene(n_iter=N_ITER, tol=-1e9),
}


def made_up():
    rng = np.random.default_rng(7)
    truth = rng.integers(3, size=60)
    skill = rng.uniform(0.4, 0.95, size=9)
    rows = [
        (i, a, int(truth[i] if rng.random() < skill[a] else rng.integers(3)))
        for i in range(60)
        for a in rng.choice(9, size=4, replace=False).tolist()
    ]
    return pd.DataFrame(rows, columns=["task", "worker", "label"])


def read(folder, name):
    if name == "rte":
        votes = pd.read_csv(folder / "rte_votes.tsv", sep="\t")
        votes = votes[["orig_id", "!amt_worker_ids", "response"]]
    else:
        votes = pd.read_csv(folder / f"{name}_votes.csv")
    votes.columns = ["task", "worker", "label"]
    return votes


def alpha(votes):
    wide = votes.pivot(index="worker", columns="task", values="label").to_numpy(float)
    return krippendorff.alpha(reliability_data=wide, level_of_measurement="nominal")


def results(votes, n_items):
    found = {"alpha": alpha(votes)}
    for name, model in MODELS.items():
        probabilities = model().fit_predict_proba(votes).sort_index().sort_index(axis=1)
        found[name] = {
            "class_shares": probabilities.mean().tolist(),
            "first_items": probabilities.iloc[:n_items].round(9).to_numpy().tolist(),
        }
    return found


if __name__ == "__main__":
    votes = made_up()
    reference = {"made up": {"votes": votes.to_numpy().tolist(), **results(votes, 60)}}
    folder = Path(os.environ["SKPLL_DATA"]) / "crowd"
    for name in ("dog", "web", "CF", "s4_Face_Sentiment_Identification", "rte"):
        reference[name] = results(read(folder, name), 10)
    target = Path(__file__).parent / "reference.json"
    target.write_text(json.dumps(reference) + "\n")
