"""Draw ambiguous digits with their candidates and the label that PL-LOO found for each.

python docs/figures/digits.py docs/figures/digits.svg
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from skpll import PLLOO
from skpll.datasets import load_dataset, make_partial_labels

COLUMNS, ROWS = 10, 3
RIGHT, WRONG, REST = "#1f8fd6", "#d55e00", "#8a8a8a"  # readable on white and on black


def main(path: str) -> None:
    """Learn from digits with three candidates each, and draw some of them."""
    X, _, y = load_dataset("digits", return_X_S_y=True)
    S = make_partial_labels(y, p=1.0, r=2, random_state=0)
    model = PLLOO().fit(X / 16, S)
    found, confidences = model.transduction_, model.label_distributions_
    print(f"{(found == y).mean():.1%} of {len(y)} labels found; chance is 33.3%")
    shown = np.random.default_rng(3).choice(len(y), COLUMNS * ROWS, replace=False)
    plt.rcParams["svg.hashsalt"] = "digits"
    figure, axes = plt.subplots(ROWS, COLUMNS, figsize=(9, 4.1), layout="constrained")
    for axis, row in zip(axes.flat, shown, strict=True):
        axis.imshow(X[row].reshape(8, 8), cmap="gray_r", interpolation="nearest")
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set_color(REST)
        for place, label in enumerate(S.to_lists()[row]):
            is_found = label == found[row]
            axis.text(
                0.2 + 0.3 * place,
                1.06,
                str(label),
                transform=axis.transAxes,
                ha="center",
                fontsize=12 if is_found else 10,
                fontweight="bold" if is_found else "normal",
                color=(RIGHT if label == y[row] else WRONG) if is_found else REST,
            )
        trust = confidences[[row]].toarray().max()
        axis.set_xlabel(f"{trust:.0%}", fontsize=9, color=REST, labelpad=2)
    figure.savefig(path, transparent=True, metadata={"Date": None})


if __name__ == "__main__":
    main(sys.argv[1])
