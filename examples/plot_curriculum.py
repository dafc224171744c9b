"""
From easy to hard: a self-paced curriculum in the plane
=======================================================

`SPPLL` learns from the examples first whose labels it can trust, and admits the others as its pace
grows. Filled dots take part in a stage, in the colour of the label they are trained with; hollow
ones wait; a cross marks a wrong label. Those that wait longest lie where the classes meet.
"""

# %%
# Three classes that overlap. Every example has a false candidate beside the true label.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline

from skpll import M3PL, SPPLL
from skpll.baselines import WeightedCopies
from skpll.datasets import make_partial_labels
from skpll.pacing import Pace
from skpll.plotting import COLORS

rng = np.random.default_rng(1)


def arms(n):
    """Draw three arms of a spiral."""
    y = np.arange(n) % 3
    along = np.sqrt(rng.uniform(0.05, 1, size=n))
    angle = 3.2 * along + 2 * np.pi * y / 3
    X = along[:, np.newaxis] * np.column_stack([np.cos(angle), np.sin(angle)])
    return X + rng.normal(scale=0.17, size=X.shape), y


X, y = arms(300)
X_new, y_new = arms(3000)
S = make_partial_labels(y, p=1.0, r=1, random_state=0)

# %%
# A callback (scikit-learn 1.9 or newer) sees the model after every stage. The pace here is one that
# can be watched: it begins with the fifth of each class that PL-LOO trusts most. The default
# admits nearly all examples at once, with weights.

GRID = np.stack(np.meshgrid(np.linspace(-1.35, 1.35, 200), np.linspace(-1.35, 1.35, 200)), axis=-1)


class Watch:
    """Keeps what the model predicts, its labels and its weights after every stage."""

    def __init__(self):
        self.stages = []

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        if context.task_name == "stage":
            regions = estimator.predict(GRID.reshape(-1, 2)).reshape(GRID.shape[:2])
            labels, weights = estimator.training_labels_.copy(), estimator.weights_.copy()
            self.stages.append((regions, labels, weights > 0))

    def teardown(self, estimator, context):
        pass


watch = Watch()
pace = Pace(scale="class_share", weights="hard", start=0.2)
model = SPPLL(pace=pace).set_callbacks(watch).fit(X, S)
for number in range(model.n_iter_):
    regions, labels, admitted = watch.stages[number]
    wrong = (labels != y)[admitted].mean()
    print(
        f"stage {number}: {admitted.mean():4.0%} admitted, {wrong:4.1%} of them with a wrong label"
    )

# %%
# The boundary is found early, by few examples, and moves little when doubtful ones are admitted.

shown = 0, 2, 4, model.n_iter_ - 1
colours = COLORS[0], COLORS[4], COLORS[2]
figure, axes = plt.subplots(2, 2, figsize=(8, 8.7), sharex=True, sharey=True, layout="constrained")
for axis, number in zip(axes.flat, shown, strict=True):
    regions, labels, admitted = watch.stages[number]
    axis.pcolormesh(*GRID.transpose(2, 0, 1), regions, cmap=ListedColormap(colours), alpha=0.25)
    axis.plot(*X[~admitted].T, "o", mfc="white", mec="0.5", ms=4, mew=0.7, label="waits")
    for label in range(3):
        members, colour = X[admitted & (labels == label)], colours[label]
        axis.plot(*members.T, "o", color=colour, ms=4.5, label=f"label {label}")
    axis.plot(*X[admitted & (labels != y)].T, "x", color="black", ms=7, mew=1.4, label="wrong")
    axis.set_title(f"stage {number}: {admitted.mean():.0%} admitted")
    axis.set(aspect="equal", xlim=(-1.35, 1.35), ylim=(-1.35, 1.35), xticks=[], yticks=[])
figure.legend(*axes[1, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
plt.show()

# %%
# Does the order matter? Here it does not: the same model without a pace (`M3PL`) is as good. What
# one would do instead, a copy of the row for each candidate, is behind both.

kernel = Nystroem(gamma=5, n_components=100, random_state=0)
models = {
    "SPPLL, this pace": model,
    "SPPLL, default": SPPLL().fit(X, S),
    "M3PL, no pace": M3PL().fit(X, S),
    "weighted copies": make_pipeline(kernel, WeightedCopies()).fit(X, S),
}
for name, fitted in models.items():
    print(f"{name:18} {fitted.score(X_new, y_new):.3f} of new points right")
