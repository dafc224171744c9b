"""Draw which share of the admitted training examples is rightly labeled, along the path of C.

python docs/figures/curriculum.py results.db docs/figures/curriculum.svg
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from skpll.experiments import Store

METHODS = {
    "SP-PLL": ("SP-PLL", "#0072B2"),
    "SP-PLL, loss on a share of all to 1": ("pace by the loss", "#D55E00"),
    "M3PL": ("M3PL", "0.45"),
}
PANELS = {
    ("lost", None): "Lost",
    ("msrcv2", None): "MSRCv2",
    ("birdsong", None): "BirdSong",
    ("fgnet", None): "FG-NET",
    ("glass", 1): "glass, p = 0.7, r = 1",
    ("glass", 3): "glass, p = 0.7, r = 3",
    ("vehicle", 2): "vehicle, p = 0.7, r = 2",
}


def mean_over_folds(traces, measure):
    """Average a figure of each stage over the folds."""
    return np.mean([[measure(stage) for stage in trace] for trace in traces], axis=0)


def purity(stage):
    """Share of the admitted examples that have the right label."""
    return stage["admitted_right"] / (stage["admitted_right"] + stage["admitted_wrong"])


def draw(axis, results):
    """Draw the curves of all methods on one data set."""
    for method, (label, colour) in METHODS.items():
        traces = results.loc[results["method"] == method, "trace"].tolist()
        C = [stage["C"] for stage in traces[0]]
        axis.semilogx(C, mean_over_folds(traces, purity), color=colour, label=f"{label}: admitted")
        if method != "M3PL":  # which admits all
            right = mean_over_folds(traces, lambda stage: stage["labels_right"])
            axis.semilogx(C, right, ":", color=colour, label=f"{label}: all")
    axis.grid(alpha=0.25)
    axis.tick_params(labelsize=8)


def main(store_path, out):
    """Draw all panels."""
    with Store.open(store_path, read_only=True) as store:
        results = store.results("curriculum")
    figure, axes = plt.subplots(2, 4, figsize=(12, 5.6), layout="constrained")
    for axis, ((data, r), title) in zip(axes.flat, PANELS.items(), strict=False):
        own = results["r"].isna() if r is None else results["r"] == r
        draw(axis, results[(results["dataset"] == data) & own])
        axis.set_title(title, fontsize=10)
    for axis in axes[1]:
        axis.set_xlabel("C along the path")
    for axis in axes[:, 0]:
        axis.set_ylabel("share rightly labeled")
    axes[1, 3].axis("off")
    axes[1, 3].legend(*axes[0, 0].get_legend_handles_labels(), loc="center", frameon=False)
    figure.savefig(out, metadata={"Date": None} if out.endswith(".svg") else None)


if __name__ == "__main__":
    main(*sys.argv[1:])
