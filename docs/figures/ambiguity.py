"""Which method for which ambiguity: the picture, and its figures as text, from a store of results.

skpll run ambiguity --store results.db
python docs/figures/ambiguity.py results.db ambiguity.svg
"""

import sys

import matplotlib.pyplot as plt

from skpll.experiments import Store

KINDS = {
    "by chance": "kind == 'uniform' and noise == 0",
    "by pairs\nof classes": "kind == 'pairs'",
    "by the\nfeatures": "kind == 'feature'",
    "words of a\ndictionary": "kind == 'dictionary'",
    "a label in\nevery set": "kind == 'constant'",
    "10 % miss\nthe truth": "noise == 0.1",
    "30 % miss\nthe truth": "noise == 0.3",
}

FAR = -25
"""Methods that are further behind are all as dark."""


def behind(results):
    """Points behind the best method of a case that does not use the truth, by kind and method."""
    results = results[results["method"] != "Truth known"]
    means = results.pivot_table(
        index=["case", "kind", "noise"], columns="method", values="accuracy"
    )
    gaps = means.dropna().sub(means.max(axis=1), axis=0).mul(100).reset_index()
    columns = {name: gaps.query(wanted)[means.columns].mean() for name, wanted in KINDS.items()}
    frame = gaps[[]].from_dict(columns)
    order = frame.clip(lower=FAR).mean(axis=1).sort_values(ascending=False).index
    return frame.loc[order]


def draw(frame, path):
    figure, axes = plt.subplots(figsize=(7.6, 0.32 * len(frame) + 0.9), layout="constrained")
    axes.imshow(frame.clip(lower=FAR), cmap="cividis", vmin=FAR, vmax=0, aspect="auto")
    for row, line in enumerate(frame.to_numpy()):
        for column, value in enumerate(line):
            text = f"{value:.1f}".replace("-", "−")
            shade = "black" if value > -12 else "white"
            axes.text(column, row, text, ha="center", va="center", color=shade, fontsize=9)
    axes.set_xticks(range(len(frame.columns)), frame.columns, fontsize=9)
    axes.set_yticks(range(len(frame)), frame.index, fontsize=9)
    axes.tick_params(length=0)
    axes.xaxis.tick_top()
    axes.spines[:].set_visible(False)
    figure.patch.set_facecolor("white")
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    store, path = sys.argv[1:]
    plt.rcParams["svg.hashsalt"] = "skpll"
    with Store.open(store, read_only=True) as opened:
        found = behind(opened.results("ambiguity"))
    draw(found, path)
    print(found.round(1).rename(columns=lambda name: name.replace("\n", " ")).to_string())
