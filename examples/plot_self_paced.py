"""
A pace around any method
========================

`SelfPaced` first trains a method on the examples whose labels it trusts, and admits the others as
the pace grows. Trust comes from models that have not seen the example. Here it is put around three
methods, on handwritten digits of which nine in ten have three false candidates.
"""

import matplotlib.pyplot as plt
import numpy as np

from skpll import CLPL, EM, PLLOO, SelfPaced
from skpll.baselines import WeightedCopies
from skpll.datasets import load_dataset, make_partial_labels
from skpll.plotting import COLORS

X, _, y = load_dataset("digits", return_X_S_y=True)
X = X / 16
rng = np.random.default_rng(0)

methods = {
    "CLPL": CLPL(),
    "EM": EM(),
    "PL-LOO": PLLOO(kernel="rbf", gamma=1.0, alpha=0.1, prior_strength=0.2),
}
plain, paced, baseline, curriculum = {}, {}, [], None
for repeat in range(2):
    order = rng.permutation(len(y))
    train, test = order[:500], order[500:]
    S = make_partial_labels(y[train], p=0.9, r=3, random_state=repeat)
    baseline.append(WeightedCopies().fit(X[train], S).score(X[test], y[test]))
    for name, method in methods.items():
        plain.setdefault(name, []).append(method.fit(X[train], S).score(X[test], y[test]))
        model = SelfPaced(method).fit(X[train], S)
        paced.setdefault(name, []).append(model.score(X[test], y[test]))
        if name == "EM":
            curriculum = model, y[train]

# %%
# On new digits, the mean of two draws:

print(f"{'weighted copies of each row':30} {np.mean(baseline):.3f}")
for name in methods:
    print(f"{name:10} {np.mean(plain[name]):.3f}   with a pace {np.mean(paced[name]):.3f}")

# %%
# The weights tell right labels from wrong ones, but that does not make these methods better: what
# they doubt are the hard examples as well as the wrong ones, and hard examples are worth learning
# from. `SPPLL`, which has to decide for one label an example, gains a little.

model, truth = curriculum
right = model.transduction_ == truth
figure, axes = plt.subplots(1, 2, figsize=(9, 3.9), layout="constrained")
places = np.arange(len(methods))
means = {"as it is": (plain, COLORS[0], -0.2), "with a pace": (paced, COLORS[4], 0.2)}
for label, (scores, colour, shift) in means.items():
    heights = [np.mean(scores[name]) for name in methods]
    axes[0].bar(places + shift, heights, 0.4, color=colour, label=label)
axes[0].axhline(np.mean(baseline), color="0.3", linestyle="--", label="weighted copies")
axes[0].set(xticks=places, xticklabels=methods, ylabel="accuracy on new digits", ylim=(0.5, 1))
bins = np.linspace(0, 1, 21)
kinds = {"label right": (right, COLORS[5]), "label wrong": (~right, COLORS[1])}
axes[1].hist(
    [model.weights_[rows] for rows, _ in kinds.values()],
    bins,
    stacked=True,
    color=[colour for _, colour in kinds.values()],
    label=list(kinds),
)
axes[1].set(xlabel="weight of the example at the end (EM)", ylabel="training examples")
for axis in axes:
    axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3, frameon=False, fontsize=9)
plt.show()
