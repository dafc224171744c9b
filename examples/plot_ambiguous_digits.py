"""
A crowd of ambiguous digits, before and after
=============================================

Each of 1797 handwritten digits comes with three candidate labels, one of which is right. `PLLOO`
finds the right one for nearly all of them without seeing a single true label. Shown are the digits
that it was least sure about, which is where a person should look: blue is right, orange is wrong.
"""

# %%
# The candidates above each picture are all that the method sees beside the pixels.

import matplotlib.pyplot as plt
import numpy as np

from skpll import PLLOO
from skpll.baselines import RandomCandidate, WeightedCopies
from skpll.datasets import load_dataset, make_partial_labels
from skpll.plotting import COLORS

X, _, y = load_dataset("digits", return_X_S_y=True)
S = make_partial_labels(y, p=1.0, r=2, random_state=0)
model = PLLOO().fit(X / 16, S)
confidence = model.label_distributions_.max(axis=1).toarray().ravel()
doubtful = np.argsort(confidence)[:32]

figure, axes = plt.subplots(4, 8, figsize=(9, 6.6), layout="constrained")
for axis, row in zip(axes.flat, doubtful, strict=True):
    label = model.transduction_[row]
    colour = COLORS[0] if label == y[row] else COLORS[1]
    axis.imshow(X[row].reshape(8, 8), cmap="gray_r")
    axis.set(xticks=[], yticks=[])
    axis.set_title(" or ".join(map(str, S.to_lists()[row])), fontsize=9, color="0.35")
    axis.set_xlabel(f"{label} ({confidence[row]:.0%})", color=colour, fontweight="bold")
    axis.spines[:].set(color=colour, linewidth=2)
plt.show()

# %%
# How many labels each way finds. A random candidate is right one time in three; a logistic
# regression on random candidates, or on a copy of the row for each candidate, does better.

right = model.transduction_ == y
print(f"{'PL-LOO':36} {right.mean():.1%}")
for baseline in WeightedCopies(), RandomCandidate():
    found = (baseline.fit(X / 16, S).transduction_ == y).mean()
    print(f"{type(baseline).__name__:36} {found:.1%}")
checked = right.copy()
checked[doubtful] = True
print(f"{'PL-LOO, these checked by a person':36} {checked.mean():.1%}")
