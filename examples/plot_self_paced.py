"""
A pace around any method
========================

`SelfPaced` trains a method on the examples first whose labels it trusts, and lets the others in as
the pace grows. Trust comes from models that have not seen the example. Here it is put around three
methods, on handwritten digits of which nine in ten have three false candidates.
"""

import matplotlib.pyplot as plt
import numpy as np

from skpll import CLPL, EM, PLLOO, SelfPaced
from skpll.baselines import WeightedCopies
from skpll.datasets import load_dataset, make_partial_labels

X, _, y = load_dataset("digits", return_X_S_y=True)
X = X / 16
rng = np.random.default_rng(0)

methods = {
    "CLPL": CLPL(),
    "EM": EM(),
    "PL-LOO": PLLOO(kernel="rbf", gamma=1.0, alpha=0.1, prior_strength=0.2),
}
plain, paced, baseline, curriculum = {}, {}, [], None
for repeat in range(3):
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
# On new digits, the mean of three draws:

print(f"{'weighted copies of each row':30} {np.mean(baseline):.3f}")
for name in methods:
    print(f"{name:10} {np.mean(plain[name]):.3f}   with a pace {np.mean(paced[name]):.3f}")

# %%
# The weights tell right labels from wrong ones, but that does not make these methods better: what
# they doubt are the hard examples as well as the wrong ones, and hard examples are worth learning
# from. `SPPLL`, which has to decide for one label an example, gains a little.

model, truth = curriculum
right = model.transduction_ == truth
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
places = np.arange(len(methods))
axes[0].bar(places - 0.2, [np.mean(plain[name]) for name in methods], 0.4, label="as it is")
axes[0].bar(places + 0.2, [np.mean(paced[name]) for name in methods], 0.4, label="with a pace")
axes[0].axhline(np.mean(baseline), color="gray", linestyle="--", label="weighted copies")
axes[0].set(
    xticks=places, xticklabels=list(methods), ylabel="accuracy on new digits", ylim=(0.5, 1)
)
axes[0].legend(loc="lower right")
bins = np.linspace(0, 1, 21)
axes[1].hist([model.weights_[right], model.weights_[~right]], bins, stacked=True)
axes[1].set(xlabel="weight of the example at the end (EM)", ylabel="training examples")
axes[1].legend(["label right", "label wrong"])
plt.show()
