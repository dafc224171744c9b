"""
Accuracy as ambiguity grows
===========================

The more false candidates a training example has, the less it says. `PLLOO` and `SURE` stay near
what training on the truth reaches until most of the ten digits are candidates. The simple baselines
are in gray: a random candidate is soon useless, weighted copies of each row fall slowly. Not every
method stays above them: `EM` does not, with many candidates.
"""

# %%
# Three hundred digits to learn from, each with the same number of false candidates; accuracy on the
# others, the mean of two draws.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from skpll import CLPL, EM, PLKNN, PLLOO, SURE
from skpll.baselines import KnownTruth, RandomCandidate, WeightedCopies
from skpll.datasets import load_dataset, make_partial_labels
from skpll.plotting import Curve, method_styles

X, _, y = load_dataset("digits", return_X_S_y=True)
X = X / 16
methods = [PLLOO(), SURE(), EM(tol=1e-3), CLPL(), PLKNN(), WeightedCopies(), RandomCandidate()]
numbers = np.array([1, 3, 5, 7, 8])
scores = {type(method).__name__: [] for method in methods}
known = []
for draw in range(2):
    X_train, X_new, y_train, y_new = train_test_split(X, y, train_size=300, random_state=draw)
    known.append(KnownTruth().fit(X_train, y_train).score(X_new, y_new))
    for number in numbers:
        S = make_partial_labels(y_train, p=1.0, r=number, random_state=draw)
        for method in methods:
            score = method.fit(X_train, S).score(X_new, y_new)
            scores[type(method).__name__].append(score)

# %%
# A name, and its accuracy with that many false candidates:

print(f"{'':16}", *(f"{number:5}" for number in numbers))
curves = []
for name, values in scores.items():
    draws = np.reshape(values, (2, len(numbers)))
    curves.append(Curve(name, numbers, draws.mean(axis=0), draws.std(axis=0)))
    print(f"{name:16}", *(f"{value:.3f}" for value in curves[-1].mean))
print(f"{'KnownTruth':16} {np.mean(known):.3f}")

# %%
# Shaded is a standard deviation over the draws. The dotted line is logistic regression on the true
# labels; methods with a kernel can be above it.

figure, axis = plt.subplots(figsize=(8.5, 4.6), layout="constrained")
looks = method_styles(scores)
looks["WeightedCopies"] = {"color": "0.45", "marker": "P", "linestyle": "-"}
looks["RandomCandidate"] = {"color": "0.45", "marker": "X", "linestyle": "--"}
for curve in curves:
    axis.plot(curve.x, curve.mean, label=curve.label, **looks[curve.label])
    low, high = curve.mean - curve.std, curve.mean + curve.std
    axis.fill_between(curve.x, low, high, color=looks[curve.label]["color"], alpha=0.12, lw=0)
axis.axhline(np.mean(known), color="0.45", linestyle=":", label="KnownTruth")
axis.set(xlabel="false candidates of each training example", ylabel="accuracy on new digits")
axis.grid(alpha=0.25)
axis.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
plt.show()
