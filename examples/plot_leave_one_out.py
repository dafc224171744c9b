"""
Why methods believe themselves
==============================

A model that was trained on a label finds that label right, whether it is or not. Here one ridge
regression labels digits and learns from its labels in turn. Asked about examples that it was
trained on, it is confident even where most of its labels are wrong. Asked only about examples that
it has not seen (`PLLOO`), it finds more right labels, and is less confident where it is wrong.
"""

# %%
# Eight hundred digits, each with six false candidates. The smaller the ridge, the more the
# regression bends to each single label. Everything else is fixed, and there is no class
# prior.

import matplotlib.pyplot as plt
import numpy as np

from skpll import PLLOO
from skpll.baselines import WeightedCopies
from skpll.datasets import load_dataset, make_partial_labels
from skpll.plotting import COLORS

X, _, y = load_dataset("digits", return_X_S_y=True)
rows = np.random.default_rng(0).choice(len(y), 800, replace=False)
X, y = X[rows] / 16, y[rows]
S = make_partial_labels(y, p=1.0, r=6, random_state=0)

ridges = np.geomspace(0.001, 1, 7)
ways = {"asked about what it was trained on": False, "asked about what it has not seen": True}
found, sure = {}, {}
for way, leave_one_out in ways.items():
    for alpha in ridges:
        model = PLLOO(
            kernel="rbf", gamma=1.0, alpha=alpha, prior_strength=0, leave_one_out=leave_one_out
        ).fit(X, S)
        found.setdefault(way, []).append((model.transduction_ == y).mean())
        sure.setdefault(way, []).append(model.history_[-1]["confidence"])
baseline = (WeightedCopies().fit(X, S).transduction_ == y).mean()

# %%
# The mean confidence of the last round, before any calibration, and the share of labels that are
# right. What is shaded is trust in its own mistakes.

for way in ways:
    print(way)
    for alpha, right, confidence in zip(ridges, found[way], sure[way], strict=True):
        print(f"    ridge {alpha:.3f}: confidence {confidence:.2f}, right {right:.2f}")
print(f"weighted copies of each row, logistic regression: right {baseline:.2f}")

figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
for axis, way in zip(axes, ways, strict=True):
    axis.plot(ridges, sure[way], "s--", color=COLORS[1], label="how sure it is")
    axis.plot(ridges, found[way], "o-", color=COLORS[0], label="how many labels are right")
    low, high = np.array(found[way]), np.array(sure[way])
    shade = {"color": COLORS[1], "alpha": 0.15, "linewidth": 0}
    axis.fill_between(ridges, low, high, where=high > low, interpolate=True, **shade)
    axis.axhline(baseline, color="0.5", linestyle=":", label="right with weighted copies")
    axis.set(title=way, xlabel="ridge (small: bends to every label)", xscale="log", ylim=(0, 1.02))
    axis.grid(alpha=0.25)
axes[0].set_ylabel("share of the examples")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()

# %%
# With a large ridge no single label has much influence, and both ways agree. `PLLOO` chooses its
# ridge itself, and calibrates its confidences on top.

model = PLLOO().fit(X, S)
print(f"PLLOO() chose the {model.kernel_} kernel and the ridge {model.alpha_}")
print(f"labels right: {(model.transduction_ == y).mean():.3f}")
print(f"mean confidence: {model.label_distributions_.max(axis=1).mean():.3f}")
