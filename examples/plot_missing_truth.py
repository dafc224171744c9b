"""
Sets that miss the truth
========================

Some candidate sets are wrong altogether: the true label is not in them. `PLLOO(noise="auto")`
estimates how many, and for every set the probability that it is one of them (`missing_`). Shown are
the sets with the highest; blue ones do miss the truth. The estimate of their number is far too low,
but the most suspected sets are the right ones to look at.
"""

# %%
# Four hundred digits with three candidates each; in a fifth of the sets the true label has given
# its place to a false one.

import matplotlib.pyplot as plt
import numpy as np

from skpll import PLLOO
from skpll.baselines import WeightedCopies
from skpll.datasets import load_dataset, make_partial_labels
from skpll.plotting import COLORS

X, _, y = load_dataset("digits", return_X_S_y=True)
train, new = np.split(np.random.default_rng(0).permutation(len(y)), [400])
X_new, y_new = X[new] / 16, y[new]
X, y = X[train] / 16, y[train]
S = make_partial_labels(y, p=1.0, r=2, noise=0.2, random_state=0)
model = PLLOO(noise="auto").fit(X, S)
misses = ~S.contains(y)
suspected = np.argsort(-model.missing_)
print(f"sets that miss the truth: {misses.mean():.3f}, estimated {model.noise_:.3f}")
for many in 20, 40, 80:
    print(f"of the {many} most suspected sets {misses[suspected[:many]].mean():.0%} miss the truth")

# %%
# Does it help on new digits? Yes, and giving the share, where it is known, helps more.

shares = 0, 0.15, 0.3
scores = {}
for share in shares:
    noisy = make_partial_labels(y, p=1.0, r=2, noise=share, random_state=0)
    models = {
        "noise given": PLLOO(noise=share),
        'noise="auto"': PLLOO(noise="auto"),
        "noise=0": PLLOO(),
        "weighted copies": WeightedCopies(),
    }
    for name, method in models.items():
        scores.setdefault(name, []).append(method.fit(X, noisy).score(X_new, y_new))
print(f"{'sets that miss the truth':26}", *(f"{share:5}" for share in shares))
for name, values in scores.items():
    print(f"{name:26}", *(f"{value:.3f}" for value in values))

# %%
# Left, the most suspected sets; right, accuracy on new digits.

figure = plt.figure(figsize=(10, 4.8), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=[1.3, 1])
for axis, row in zip(left.subplots(4, 6).flat, suspected, strict=False):
    colour = COLORS[0] if misses[row] else COLORS[1]
    axis.imshow(X[row].reshape(8, 8), cmap="gray_r")
    axis.set(xticks=[], yticks=[])
    axis.set_title(" or ".join(map(str, S.to_lists()[row])), fontsize=9)
    axis.set_xlabel(f"it is {y[row]}", color=colour, fontsize=9)
    axis.spines[:].set(color=colour, linewidth=2)
axis = right.subplots()
looks = (COLORS[2], "D-"), (COLORS[0], "o-"), (COLORS[5], "^-"), ("0.5", "s-")
for (name, values), (colour, style) in zip(scores.items(), looks, strict=True):
    axis.plot(shares, values, style, color=colour, label=name)
axis.set(xlabel="share of the sets that miss the truth", ylabel="accuracy on new digits")
axis.grid(alpha=0.25)
right.legend(loc="outside lower center", ncols=2, frameon=False)
plt.show()
