"""Draw a crowd of ambiguous digits before and after PL-LOO.

python docs/figures/digits.py docs/figures/digits.svg
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from skpll import PLLOO
from skpll.datasets import load_dataset, make_partial_labels

COLUMNS, ROWS = 10, 3
RIGHT, WRONG = "#0072B2", "#D55E00"


def main(path: str) -> None:
    """Learn from digits of which each has three candidates, and show some of them."""
    X, _, y = load_dataset("digits", return_X_S_y=True)
    S = make_partial_labels(y, p=1.0, r=2, random_state=0)
    model = PLLOO().fit(X / 16, S)
    found, confidences = model.transduction_, model.label_distributions_
    print(f"{(found == y).mean():.1%} of {len(y)} labels found; chance is 33.3%")
    shown = np.random.default_rng(3).choice(len(y), COLUMNS * ROWS, replace=False)
    plt.rcParams["svg.hashsalt"] = "digits"
    figure, axes = plt.subplots(2 * ROWS, COLUMNS, figsize=(9, 6.4), layout="constrained")
    figure.patch.set_facecolor("white")
    for place, row in enumerate(shown):
        line, column = divmod(place, COLUMNS)
        before, after = axes[line, column], axes[ROWS + line, column]
        for axis in (before, after):
            axis.imshow(X[row].reshape(8, 8), cmap="gray_r", interpolation="nearest")
            axis.set(xticks=[], yticks=[])
        before.set_title(" ".join(map(str, S.to_lists()[row])), fontsize=9, color="0.35")
        color = RIGHT if found[row] == y[row] else WRONG
        after.set_title(f"{found[row]}", fontsize=11, color=color, fontweight="bold")
        trust = confidences[[row]].toarray().max()
        after.set_xlabel(f"{trust:.0%}", fontsize=8, color="0.35", labelpad=1)
    axes[0, 0].set_ylabel("candidates", fontsize=9)
    axes[ROWS, 0].set_ylabel("found", fontsize=9)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main(sys.argv[1])
