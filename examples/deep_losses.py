"""
What each loss of a network does to the candidates of a digit
=============================================================

A network that is trained on candidate sets has to decide, epoch by epoch, how much to believe each
candidate. The losses of `skpll.deep` differ in how it does that, and how soon.

.. image:: /figures/deep-losses.png
   :alt: Confidence in each candidate of three handwritten digits over 30 epochs, for nine losses

The script needs PyTorch and skorch (``pip install 'skpll[deep]'``), which the documentation does
without: it was run before, by ``python examples/deep_losses.py docs/figures/deep-losses.png``.
"""

# %%
# All 1797 digits of scikit-learn. Every one has three candidates; the two false ones are drawn from
# those that a classifier confuses with the truth, so that mistakes are worth making.

import sys

import matplotlib.pyplot as plt
import numpy as np
import torch
from skorch.callbacks import Callback

from skpll.datasets import load_dataset, make_partial_labels
from skpll.deep import DeepPartialLabelClassifier, crop
from skpll.deep.losses import LOSSES
from skpll.plotting import COLORS

X, _, y = load_dataset("digits", return_X_S_y=True)
X = (X / 16).astype(np.float32)
S = make_partial_labels(y, p=1.0, r=2, kind="feature", X=X, random_state=0)
candidates = S.to_matrix().toarray().astype(bool)

# %%
# A callback of skorch asks the network after each epoch how probable each candidate is.


class Watch(Callback):
    """Keep the network's confidence in the candidates of all examples, epoch by epoch."""

    def on_train_begin(self, _, **__):
        self.confidences = []

    def on_epoch_end(self, net, **_):
        with torch.no_grad():
            scores = net.module_.eval()(torch.from_numpy(X)).numpy()
        inside = np.where(candidates, np.exp(scores - scores.max(axis=1, keepdims=True)), 0)
        self.confidences.append(inside / inside.sum(axis=1, keepdims=True))


PARAMETERS = {"cavl": {"warm_up": 5}, "pop": {"warm_up": 5}, "crdpll": {"ramp": 15}}
NAMES = {"cc": "CC", "rc": "RC", "proden": "PRODEN", "lws": "LWS", "cavl": "CAVL", "pop": "POP"}
NAMES |= {"crdpll": "CR-DPLL"}

seen, found = {}, {}
for loss in LOSSES:
    watch = Watch()
    model = DeepPartialLabelClassifier(
        "mlp",
        loss,
        max_epochs=30,
        batch_size=64,
        module_params={"hidden": (100,)},
        loss_params=PARAMETERS.get(loss),
        augment=crop(1) if loss == "crdpll" else None,
        callbacks=[watch],
        device="cpu",
    ).fit(X, S)
    seen[loss] = np.array(watch.confidences)
    found[loss] = (model.transduction_ == y).mean()
    print(f"{NAMES.get(loss, loss):8} {found[loss]:.1%} of the labels found")

# %%
# Three digits: one that most losses get wrong, one over which they disagree most, and one that all
# get right although it was doubtful after the first epoch.

truth = np.array([epochs[-1][np.arange(len(y)), y] for epochs in seen.values()])
early = np.mean([epochs[0][np.arange(len(y)), y] for epochs in seen.values()], axis=0)
shown = [truth.mean(axis=0).argmin(), truth.std(axis=0).argmax()]
shown.append(np.where(truth.min(axis=0) > 0.5, early, 1.0).argmin())

figure, axes = plt.subplots(
    len(shown), 1 + len(LOSSES), figsize=(13, 4.4), sharex="col", layout="constrained"
)
for line, row in zip(axes, shown, strict=True):
    line[0].imshow(X[row].reshape(8, 8), cmap="gray_r", interpolation="nearest")
    line[0].set(xticks=[], yticks=[])
    line[0].set_xlabel(f"truth {y[row]}", color=COLORS[0])
    for axis, epochs in zip(line[1:], seen.values(), strict=True):
        others = iter((COLORS[1], COLORS[2]))
        for label in np.flatnonzero(candidates[row]):
            color = COLORS[0] if label == y[row] else next(others)
            values = epochs[:, row, label]
            axis.plot(np.arange(1, len(values) + 1), values, color=color, label=str(label))
        axis.set(ylim=(-0.05, 1.05), yticks=[0, 0.5, 1], yticklabels=[])
        axis.spines[["top", "right"]].set_visible(False)
    line[1].set_yticks([0, 0.5, 1], ["0", "½", "1"])
    line[-1].legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
for axis, loss in zip(axes[0, 1:], seen, strict=True):
    axis.set_title(f"{NAMES.get(loss, loss)}\n{found[loss]:.1%}", fontsize=10)
figure.supxlabel("epoch")
axes[1, 1].set_ylabel("confidence")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=120)

# sphinx_gallery_thumbnail_path = 'figures/deep-losses.png'
