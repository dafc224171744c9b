"""
Confidence before and after calibration
=======================================

When a method says 90 %, is it right nine times in ten? A bar above the diagonal says that its
confidences are too low, one below that they are too high. `CalibratedCandidatesCV` finds, without
any true label, how far probabilities have to be flattened (T above 1) or sharpened: as far as makes
held-out candidate sets most likely.
"""

# %%
# Gaussian classes that overlap; every training example has two false candidates. The probabilities
# of EM with a weak penalty are too high; those of PL-KNN are too low, and so are those of a model
# trained on a weighted copy of the row for each candidate, which is what people would do instead.

import matplotlib.pyplot as plt
import numpy as np

from skpll import EM, PLKNN, PLLOO, CalibratedCandidatesCV
from skpll.baselines import WeightedCopies
from skpll.datasets import make_partial_classification
from skpll.metrics import expected_calibration_error
from skpll.plotting import COLORS

X, S, y = make_partial_classification(6000, 20, 8, class_sep=0.7, p=1.0, r=2, random_state=0)
train, new = slice(0, 1000), slice(1000, None)


def reliability(model):
    """How sure a model is of its predictions for new examples, and whether they are right."""
    probabilities = model.predict_proba(X[new])
    right = model.classes_[probabilities.argmax(axis=1)] == y[new]
    return probabilities.max(axis=1), right


figure, axes = plt.subplots(2, 3, figsize=(9, 6.8), sharex=True, sharey=True, layout="constrained")
edges = np.linspace(0, 1, 11)
for column, method in enumerate([EM(C=10), PLKNN(), WeightedCopies()]):
    before = method.fit(X[train], S[train])
    after = CalibratedCandidatesCV(method).fit(X[train], S[train])
    for axis, model in zip(axes[:, column], (before, after), strict=True):
        sure, right = reliability(model)
        error = expected_calibration_error(sure, right)
        bins = np.clip(np.digitize(sure, edges) - 1, 0, 9)
        counts = np.bincount(bins, minlength=10)
        seen = counts >= 20
        shares = np.bincount(bins, right, minlength=10)[seen] / counts[seen]
        means = np.bincount(bins, sure, minlength=10)[seen] / counts[seen]
        axis.plot([0, 1], [0, 1], ":", color="0.5")
        axis.bar(edges[:-1][seen], shares, 0.1, align="edge", color=COLORS[5], ec="white")
        axis.vlines(means, shares, means, color=COLORS[1], linewidth=2)
        axis.plot(means, means, "_", color=COLORS[1], ms=9, mew=2)
        state = "before" if model is before else f"after, T = {after.temperature_:.2f}"
        axis.set_title(f"{type(method).__name__}, {state}\nerror {error:.3f}", fontsize=10)
        print(
            f"{type(method).__name__:15} {state:18} accuracy {right.mean():.3f} error {error:.3f}"
        )
axes[0, 0].set(xlim=(0, 1), ylim=(0, 1))
figure.supxlabel("how sure the model is")
figure.supylabel("share of new examples that it gets right")
plt.show()

# %%
# Blue bars: the share of right predictions among those with about the same confidence. Orange: the
# distance to that confidence. The predictions themselves do not change.
# `PLLOO` needs none of this: it sets its own temperature.

sure, right = reliability(PLLOO().fit(X[train], S[train]))
error = expected_calibration_error(sure, right)
print(f"PLLOO as it is: accuracy {right.mean():.3f} error {error:.3f}")
