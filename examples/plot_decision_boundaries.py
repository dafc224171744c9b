"""
Decision boundaries of all methods
==================================

Every method of the package on the same data in the plane, drawn by what it predicts; in the last
three panels (slanted titles), what people would do instead. Three classes wind around each other,
so that no straight line separates them; four examples in five have a false candidate beside the
true label.
"""

# %%
# The data. The methods see two candidates for most examples; the true labels are for drawing.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline

from skpll import all_methods
from skpll.baselines import NeighborMajority, RandomCandidate, WeightedCopies
from skpll.datasets import make_partial_labels
from skpll.plotting import COLORS


def spirals(n_per_class, rng):
    """Draw three arms of a spiral."""
    along = np.sqrt(rng.uniform(0.05, 1, size=(3, n_per_class)))
    angle = 3.5 * along + 2 * np.pi * np.arange(3)[:, np.newaxis] / 3
    points = along[..., np.newaxis] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    points += rng.normal(scale=0.12, size=points.shape)
    return points.reshape(-1, 2), np.repeat(np.arange(3), n_per_class)


rng = np.random.default_rng(0)
X, y = spirals(120, rng)
X_new, y_new = spirals(1000, rng)
S = make_partial_labels(y, p=0.8, r=1, random_state=0)
print(S)

# %%
# Methods whose scores are linear in the features get features of a kernel in front (marked with a
# k), as anyone would do here; the others bend by themselves. The titles say how many new points
# each gets right.

LINEAR = {"CLPL", "EM", "PLSVM", "RandomCandidate", "WeightedCopies"}
BASELINES = RandomCandidate, WeightedCopies, NeighborMajority
colours = [COLORS[0], COLORS[4], COLORS[2]]


def boundary(axis, title, model):
    """Draw what a fitted model predicts, and the training examples by their true labels."""
    DecisionBoundaryDisplay.from_estimator(
        model,
        X,
        response_method="predict",
        plot_method="pcolormesh",
        grid_resolution=150,
        eps=0.15,
        multiclass_colors=colours,
        alpha=0.3,
        ax=axis,
    )
    for label in range(3):
        axis.plot(*X[y == label].T, ".", color=colours[label], ms=3)
    axis.set_title(f"{title} {model.score(X_new, y_new):.1%}", fontsize=9)
    axis.set(aspect="equal", xticks=[], yticks=[], xlabel=None, ylabel=None)


methods = [*(method for _, method in sorted(all_methods().items())), *BASELINES]
rows = -(-len(methods) // 5)
figure, axes = plt.subplots(rows, 5, figsize=(10, 2.2 * rows), layout="constrained")
for axis in axes.flat[len(methods) :]:
    axis.remove()
for axis, method in zip(axes.flat, methods, strict=False):
    name = method.__name__.removesuffix("Classifier")
    features = [Nystroem(gamma=10, n_components=100, random_state=0)] if name in LINEAR else []
    model = make_pipeline(*features, method()).fit(X, S)
    boundary(axis, name + (" (k)" if features else ""), model)
    if method in BASELINES:
        axis.title.set_style("italic")
plt.show()

# %%
# Most methods find the spiral. So do weighted copies of the rows and the majority of the
# neighbours: with many examples of few classes, false candidates average out. IPAL scales every
# example to unit length, as its paper does. In the plane that leaves only the direction; with more
# features little is lost. LSB-CMM has three components here, one for each class; each is cut off
# by straight lines.
#
# Without features of a kernel a linear method can do no more than cut the plane into three wedges.

figure, axes = plt.subplots(1, 3, figsize=(8.6, 3.1), layout="constrained")
for axis, name in zip(axes.flat, ("clpl", "em", "plsvm"), strict=True):
    method = all_methods()[name]
    boundary(axis, method.__name__, method().fit(X, S))
plt.show()
