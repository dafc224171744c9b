"""Print the figures of docs/tables.md, after `python make_table.py`.

    python how_well.py

How many labels are right, by the majority of the votes, from the candidates alone, and from the
votes; what the confidences promise; and what is expected, and true, of rows that were held back.
"""

import warnings

import pandas as pd

from skpll import disambiguate
from skpll.tables.labels import LabelSource
from skpll.tables.learning import learn_from_table
from skpll.tables.reading import FrameTable

warnings.simplefilter("ignore")  # columns that are the same everywhere are left out

digits = pd.read_csv("digits.csv", dtype={"candidates": str})
votes = pd.read_csv("votes.csv", dtype=str)
truth = pd.read_csv("truth.csv", dtype=str)["digit"]


def right(labels: pd.Series) -> str:
    return f"{(labels.to_numpy() == truth.to_numpy()).mean():.1%} right"


majority = votes.groupby("item")["label"].agg(lambda given: given.mode().sample(random_state=0))
print(f"majority of the votes: {right(majority.loc[digits['name']])}")

by_candidates = disambiguate(digits, "candidates", id="name", details=True)
expected = by_candidates.mean_confidence
print(f"candidates: {right(by_candidates.frame['label'])}, {expected:.1%} expected")

cells = digits.drop(columns="candidates")
by_votes = disambiguate(cells, votes=votes, id="name", details=True)
print(f"votes: {right(by_votes.frame['label'])}, {by_votes.mean_confidence:.1%} expected")
for person in by_votes.annotators:
    print(f"  {person.name}: estimated to be right in {person.right:.1%} of {person.votes} votes")

mixed = digits.sample(frac=1, random_state=0)
known, new = mixed[:1200], mixed[1200:]
table = FrameTable(known)
learned = learn_from_table(table, LabelSource("candidates", id="name").read(table))
estimate = learned.new_rows()
found = pd.Series(learned.model.predicted_columns(FrameTable(new))["label"].to_pylist())
share = (found.to_numpy() == truth[new.index].to_numpy()).mean()
print(f"new rows: {share:.1%} right, {estimate.accuracy:.1%} ± {estimate.error:.1%} expected")
