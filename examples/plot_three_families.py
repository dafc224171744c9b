"""
Averaging, identification, mixtures
===================================

Three ways to deal with candidate labels, on data in the plane. One class lies in two places, and
the false candidates are not random: an example of one class often has the same wrong companion.

*Averaging* (CLPL, PL-KNN) treats all candidates of an example equally. *Identification* (PL-SVM,
M3PL) decides for one of them and learns from that. A *mixture* (LSB-CMM) explains the plane by
components, each with its own distribution of labels, so that a class may be in several places.
"""

# %%
# The data: three classes in four clouds. Small dots are the training examples in the colour of
# their true label, which the methods never see; they see two candidates for nine examples in ten.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

from skpll import CLPL, LSBCMM, M3PL, PLKNN, PLSVM
from skpll.datasets import make_partial_labels
from skpll.plotting import COLORS

rng = np.random.default_rng(0)
centers = np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, 2.2], [0.0, -2.2]])
cloud = np.repeat(np.arange(4), 80)
X = centers[cloud] + rng.normal(scale=0.7, size=(320, 2))
y = np.array([0, 0, 1, 2])[cloud]
S = make_partial_labels(y, p=0.9, r=1, epsilon=0.7, random_state=0)

# %%
# Each method learns from the same candidates. The background shows what it predicts; the titles say
# how many labels of training examples it found, and how many new points it gets right.

grid = np.stack(np.meshgrid(np.linspace(-4.5, 4.5, 200), np.linspace(-4.5, 4.5, 200)), axis=-1)
X_new = centers[cloud] + rng.normal(scale=0.7, size=(320, 2))
methods = {
    "CLPL: averaging": CLPL(C=0.1),
    "PL-KNN: averaging, local": PLKNN(),
    "PL-SVM: identification": PLSVM(alpha=0.01),
    "M3PL: identification": M3PL.as_published(C=1.0),
    "LSB-CMM: mixture, 3 components": LSBCMM(max_iter=150),
    "LSB-CMM: mixture, 12 components": LSBCMM(n_components=12, max_iter=150),
}
colours = COLORS[0], COLORS[4], COLORS[2]

figure, axes = plt.subplots(2, 3, figsize=(9.6, 7), sharex=True, sharey=True, layout="constrained")
for axis, (title, method) in zip(axes.flat, methods.items(), strict=True):
    method.fit(X, S)
    regions = method.predict(grid.reshape(-1, 2)).reshape(200, 200)
    axis.pcolormesh(grid[..., 0], grid[..., 1], regions, cmap=ListedColormap(colours), alpha=0.3)
    for label in range(3):
        axis.plot(*X[y == label].T, ".", color=colours[label], ms=4)
    found = (method.transduction_ == y).mean()
    axis.set_title(f"{title}\n{found:.0%} found, {method.score(X_new, y):.0%} right", fontsize=10)
    axis.set(aspect="equal", xticks=[], yticks=[])
plt.show()

# %%
# Averaging globally, CLPL follows the false candidates and loses the class that lies
# in two places. Of the methods that decide for one candidate, PL-SVM finds the band in the middle,
# and M3PL most of it. Local votes average too, but near one cloud only, where the truth outvotes
# the companions; their borders are ragged. A mixture with as many components as classes runs out of
# them; with more it does about as well as the votes.
