"""Accuracy over the time of a fit, all methods of Table 3: the picture, from a store of results.

skpll run table3 --store results.db
python docs/figures/times.py results.db times.svg
"""

import sys

import matplotlib.pyplot as plt

from skpll.experiments import Store
from skpll.plotting import AccuracyOverTimeDisplay

if __name__ == "__main__":
    store, path = sys.argv[1:]
    plt.rcParams["svg.hashsalt"] = "skpll"
    figure, axes = plt.subplots(figsize=(7, 5), layout="constrained")
    with Store.open(store, read_only=True) as opened:
        display = AccuracyOverTimeDisplay.from_results(opened.results("table3"))
    display.plot(axes, highlight="PL-LOO")
    figure.patch.set_facecolor("white")
    figure.savefig(path, metadata={"Date": None})
