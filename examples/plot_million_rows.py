"""
A million rows on one processor
===============================

The time of `PLLOO(kernel="linear")` grows in proportion to the rows, and nothing of the size of the
features is copied: a million rows take seconds. A logistic regression on weighted copies of the
rows, which is what people would do instead, takes about as long, but is misled here: most rows of
a class have the same false candidate, and it counts both equally.
"""

# %%
# Gaussian classes in single precision; every row has a false candidate, which is a companion of its
# class seven times in ten. Five rounds are enough for a first look. Times are processor seconds on
# the computer that built this page.

import time

import matplotlib.pyplot as plt
import numpy as np

from skpll import PLLOO
from skpll.baselines import WeightedCopies
from skpll.datasets import make_partial_classification
from skpll.plotting import COLORS

X, S, y = make_partial_classification(
    1_000_000, 20, 10, class_sep=0.6, p=1.0, r=1, epsilon=0.7, dtype=np.float32, random_state=0
)
print(f"features: {X.nbytes / 1e6:.0f} MB, candidates: {S.indices.nbytes / 1e6:.0f} MB")

methods = {
    'PLLOO(kernel="linear")': (PLLOO(kernel="linear", max_iter=5), 1_000_000),
    "weighted copies": (WeightedCopies(), 100_000),
}
sizes, seconds, found = {}, {}, {}
for name, (method, most) in methods.items():
    sizes[name] = [n for n in (3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000) if n <= most]
    for n in sizes[name]:
        start = time.process_time()
        labels = method.fit(X[:n], S[:n]).transduction_
        seconds.setdefault(name, []).append(time.process_time() - start)
        found.setdefault(name, []).append((labels == y[:n]).mean())
        print(f"{name:24} {n:9,} rows {seconds[name][-1]:6.1f} s, {found[name][-1]:.3f} found")

# %%
# The choice of the ridge takes at most 2 000 rows and is most of the time at first. Where false
# candidates come by chance, weighted copies find as many labels: with a million rows they average
# out.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for (name, values), colour, marker in zip(seconds.items(), (COLORS[0], "0.5"), "os", strict=True):
    left.plot(sizes[name], values, marker=marker, color=colour, label=name)
    right.plot(sizes[name], found[name], marker=marker, color=colour)
right.axhline(0.5, color="0.7", linestyle=":")
right.annotate("a random candidate", (sizes[name][0], 0.51), color="0.4")
left.set(xscale="log", yscale="log", xlabel="rows", ylabel="processor seconds")
right.set(xscale="log", xlabel="rows", ylabel="share of the labels found", ylim=(0.4, 1))
for axis in (left, right):
    axis.grid(alpha=0.25)
figure.legend(loc="outside lower center", ncols=2, frameon=False)
plt.show()
