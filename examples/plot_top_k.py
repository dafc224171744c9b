"""
The best guesses of a model as candidates
=========================================

An old model sees of each digit only how dark its columns are. Its best guess is often wrong, but
the truth is nearly always among its best few. `PLLOO` takes those few as candidates and looks at
the whole picture. With three to five candidates, scores ignored, it finds more right labels than a
classifier trained on the best guesses. With two it is behind, and with seven of ten labels it
fails: the sets rule out hardly anything.
"""

# %%
# The old model was trained on some digits with known labels, which were not kept. It guesses the
# labels of five hundred others.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.svm import SVC

from skpll import PLLOO, CandidateSets
from skpll.datasets import load_dataset
from skpll.plotting import COLORS

X, _, y = load_dataset("digits", return_X_S_y=True)
X = X / 16
columns = X.reshape(-1, 8, 8).mean(axis=1)
old, rows = np.split(np.random.default_rng(0).permutation(len(y))[:1000], 2)
guesses = (
    LogisticRegression(C=10, max_iter=1000).fit(columns[old], y[old]).predict_proba(columns[rows])
)
X, y = X[rows], y[rows]
best = guesses.argmax(axis=1)
print(CandidateSets.from_scores(guesses.round(3), top_k=5))

# %%
# Few candidates often miss the truth (dotted), and no choice among them can correct that.
# The probabilities can be taken as evidence, or left out: a wrong model is often confident, and
# here its probabilities do more harm than good.

numbers = 2, 3, 5, 7
learned = cross_val_predict(SVC(), X, best, cv=5)
records = []
for number in numbers:
    S = CandidateSets.from_scores(guesses, top_k=number)
    labels = {
        "PL-LOO, probabilities as evidence": PLLOO().fit(X, S).transduction_,
        "PL-LOO, scores ignored": PLLOO().fit(X, S.with_weights(None)).transduction_,
        "classifier trained on best guesses": learned,
        "best guess of the old model": best,
    }
    shares = {name: np.mean(label == y) for name, label in labels.items()}
    records.append(shares | {"among the candidates": S.contains(y).mean()})
found = pd.DataFrame(records, index=pd.Index(numbers, name="candidates for each digit"))
print(found.T.round(2))

figure = plt.figure(figsize=(10, 4.8), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=[1, 1.7])
doubtful = np.argsort(guesses.max(axis=1))[40:240:40]
for (picture, bars), row in zip(left.subplots(5, 2), doubtful, strict=True):
    picture.imshow(X[row].reshape(8, 8), cmap="gray_r")
    picture.set(xticks=[], yticks=[])
    picture.set_ylabel(f"a {y[row]}", rotation=0, labelpad=14, va="center")
    top = np.argsort(-guesses[row])[:3]
    colours = [COLORS[0] if label == y[row] else "0.7" for label in top]
    bars.barh([str(label) for label in top], guesses[row, top], color=colours)
    bars.invert_yaxis()
    bars.set(xlim=(0, 1), xticks=[])
    bars.spines[["top", "right", "bottom"]].set_visible(False)
left.suptitle("its three best guesses (blue: right)", fontsize=10)
axis = right.subplots()
looks = (COLORS[0], "o-"), (COLORS[5], "^-"), (COLORS[2], "--"), (COLORS[1], "-."), ("0.5", ":")
for (name, shares), (colour, style) in zip(found.items(), looks, strict=True):
    axis.plot(numbers, shares, style, color=colour, label=name)
axis.set(xlabel="best guesses taken as candidates", ylabel="share of the labels that are right")
axis.grid(alpha=0.25)
right.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
plt.show()
