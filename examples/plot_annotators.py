"""
Votes of annotators, weighed against the pictures
=================================================

Several people have labelled each of these noisy digits, and each of them is right half of the time.
Counting votes ignores the pictures; a classifier alone ignores the votes. `PLLOO` takes votes as
evidence: it weighs both against each other, and estimates how reliable a vote is.
"""

# %%
# Simulated votes for four hundred digits with noise on their pixels. A wrong vote may be for any of
# the other nine. Every label with a vote is a candidate; the number of votes is its weight.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_predict
from sklearn.svm import SVC

from skpll import PLLOO, CandidateSets
from skpll.datasets import load_dataset
from skpll.plotting import COLORS

X, _, y = load_dataset("digits", return_X_S_y=True)
rng = np.random.default_rng(0)
rows = rng.choice(len(y), 400, replace=False)
X, y = X[rows] / 16 + rng.normal(scale=0.5, size=(400, 64)), y[rows]
right = rng.random((400, 7)) < 0.5
others = (y[:, np.newaxis] + rng.integers(1, 10, size=right.shape)) % 10
votes = np.where(right, y[:, np.newaxis], others)
print(CandidateSets.from_annotators(votes[:, :5]))

# %%
# What people would do instead: take the label with the most votes (the first among equals), or
# train a classifier on those labels and let it label each digit that it was not trained on.

numbers = 2, 3, 5, 7
found = {}
for number in numbers:
    S = CandidateSets.from_annotators(votes[:, :number], classes=range(10))
    counts = np.stack([(votes[:, :number] == label).sum(axis=1) for label in range(10)], axis=1)
    majority = counts.argmax(axis=1)
    labels = {
        "PL-LOO, votes as evidence": PLLOO().fit(X, S).transduction_,
        "PL-LOO, votes ignored": PLLOO().fit(X, S.with_weights(None)).transduction_,
        "majority of the votes": majority,
        "classifier trained on majorities": cross_val_predict(SVC(), X, majority, cv=5),
    }
    for name, label in labels.items():
        found.setdefault(name, []).append((label == y).mean())
    found.setdefault("truth has a vote", []).append(S.contains(y).mean())

print(f"{'votes for each digit':34}", *(f"{number:4}" for number in numbers))
for name, shares in found.items():
    print(f"{name:34}", *(f"{share:.2f}" for share in shares))

# %%
# No method that chooses among candidates can be right where the truth has no vote: that is
# the dotted line.

figure = plt.figure(figsize=(10, 4.6), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=[1, 2.1])
axes = left.subplots(3, 2)
for axis, row in zip(axes.flat, range(len(axes.flat)), strict=True):
    axis.imshow(X[row].reshape(8, 8), cmap="gray_r")
    axis.set(xticks=[], yticks=[])
    axis.set_title(f"a {y[row]}, votes {' '.join(map(str, votes[row, :5]))}", fontsize=8)
axis = right.subplots()
for (name, shares), colour, style in zip(
    found.items(),
    (COLORS[0], COLORS[5], COLORS[1], COLORS[2], "0.5"),
    ("o-", "^-", "s-", "D-", ":"),
    strict=True,
):
    axis.plot(numbers, shares, style, color=colour, label=name)
axis.set(xlabel="votes for each digit", ylabel="share of the labels that are right")
axis.grid(alpha=0.25)
right.legend(loc="outside lower center", ncols=2, frameon=False)
plt.show()
