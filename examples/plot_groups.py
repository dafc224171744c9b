"""
Groups: which digit of a number is which
========================================

A caption says which four digits a number has, but not in which order: all digits of a number share
one set of candidates, and each candidate is the label of one of them. With `groups`, `PLLOO`
expects different labels within a number. Below are noisy copies of numbers, and the labels found
without groups and with them.
"""

# %%
# Two hundred numbers of four different digits, with noise on their pixels.

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

from skpll import PLLOO, as_candidates
from skpll.baselines import WeightedCopies
from skpll.datasets import load_dataset
from skpll.plotting import COLORS

X, _, y = load_dataset("digits", return_X_S_y=True)
rng = np.random.default_rng(0)
pools = [list(rng.permutation(np.flatnonzero(y == digit))) for digit in range(10)]
numbers = [rng.choice(10, 4, replace=False) for _ in range(200)]
rows = [pools[digit].pop() for number in numbers for digit in number]
X, y = X[rows] / 16 + rng.normal(scale=0.45, size=(800, 64)), y[rows]
groups = np.repeat(np.arange(200), 4)
S = as_candidates([set(number.tolist()) for number in numbers for _ in range(4)])

# %%
# `group_strength` sets how strongly each candidate is expected to be the label of some member. If
# each is certain to occur once, as here, the best assignment can also be computed afterwards; in
# real captions that is rarely certain.


def assigned(confidences):
    """Assign different labels to the digits of a number, maximizing the product of confidences."""
    labels = np.empty_like(y)
    for members in np.split(np.arange(len(y)), len(numbers)):
        candidates = S.indices[S.indptr[members[0]] : S.indptr[members[0] + 1]]
        likelihoods = np.log(confidences[np.ix_(members, candidates)] + 1e-9)
        labels[members] = candidates[linear_sum_assignment(-likelihoods)[1]]
    return labels


copies = WeightedCopies().fit(X, S)
alone = PLLOO().fit(X, S)
results = {
    "weighted copies": copies.transduction_,
    "weighted copies, assigned afterwards": assigned(copies.label_distributions_.toarray()),
    "PL-LOO, no groups": alone.transduction_,
    "PL-LOO, no groups, assigned afterwards": assigned(alone.label_distributions_.toarray()),
}
for strength in 0.25, 0.5, 1.0:
    together = PLLOO(group_strength=strength).fit(X, S, groups=groups)
    results[f"PL-LOO, groups, strength {strength}"] = together.transduction_
last = assigned(together.label_distributions_.toarray())
results[f"PL-LOO, groups, strength {strength}, assigned afterwards"] = last
for name, labels in results.items():
    print(f"{name:52} {(labels == y).mean():.3f}")

# %%
# Blue is right, orange is wrong.

figure = plt.figure(figsize=(9, 6.4), layout="constrained")
above, below = figure.subfigures(2, 1, height_ratios=[1, 0.95])
found = {"no groups": alone.transduction_, "groups": together.transduction_}
mistaken = np.flatnonzero((alone.transduction_ != y).reshape(-1, 4).any(axis=1))[:6]
axes = above.subplots(2, 3)
for axis, number in zip(axes.flat, mistaken, strict=True):
    members = np.flatnonzero(groups == number)
    axis.imshow(np.hstack(X[members].reshape(4, 8, 8)), cmap="gray_r")
    axis.set(xticks=[], yticks=[])
    axis.set_title(f"has {', '.join(map(str, sorted(y[members])))}", fontsize=10)
    for line, (name, labels) in enumerate(found.items()):
        axis.text(-1, 10 + 2.6 * line, name, ha="right", va="center", fontsize=8)
        for place, member in enumerate(members):
            colour = COLORS[0] if labels[member] == y[member] else COLORS[1]
            look = {"color": colour, "fontweight": "bold", "ha": "center", "va": "center"}
            axis.text(3.5 + 8 * place, 10 + 2.6 * line, labels[member], **look)
axis = below.subplots()
shares = [(labels == y).mean() for labels in results.values()]
colours = ["0.6" if "copies" in name else COLORS[0] for name in results]
axis.barh(list(results), shares, color=colours)
axis.bar_label(axis.containers[0], fmt="%.2f", padding=-28, color="white", fontsize=9)
axis.invert_yaxis()
axis.tick_params(axis="y", labelsize=9)
axis.set(xlabel="share of the labels that are right", xlim=(0, 1))
plt.show()
