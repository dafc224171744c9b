"""Draw questions with their candidate classes and the class that was found for each.

python docs/figures/questions.py docs/figures/questions.svg

The questions are those of TREC (`trec_train.txt` in the folder ``text`` of SKPLL_DATA).
"""

import os
import sys
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from skpll import disambiguate
from skpll.datasets import make_partial_labels

CLASSES = "description", "thing", "abbreviation", "person", "place", "number"
RIGHT, WRONG, REST = "#1f8fd6", "#d55e00", "#8a8a8a"  # readable on white and on black
ROWS, LENGTH = 6, 62


def main(path: str) -> None:
    """Learn from a thousand questions with three candidates each, and draw some of them."""
    file = Path(os.environ["SKPLL_DATA"], "text", "trec_train.txt")
    lines = [line.split(" ", 1) for line in file.read_text("latin-1").splitlines()]
    table = pd.DataFrame(lines, columns=["class", "question"]).sample(1000, random_state=0)
    truth = table.pop("class").map(lambda number: CLASSES[int(number)]).to_numpy(dtype=str)
    sets = make_partial_labels(truth, p=1.0, r=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it says that the column is read as text
        found = disambiguate(table.reset_index(drop=True), sets)
    print(f"{(found['label'] == truth).mean():.1%} of {len(truth)} labels found; chance is 33.3%")
    short = [row for row, text in enumerate(found["question"]) if len(text) < LENGTH][:ROWS]
    plt.rcParams["svg.hashsalt"] = "questions"
    figure = plt.figure(figsize=(5, 3.4))
    for place, row in enumerate(short):
        height = 1 - (place + 0.45) / ROWS
        question = found["question"][row].removesuffix(" ?") + "?"
        figure.text(0.01, height, question, fontsize=11, color=REST)
        height -= 0.42 / ROWS
        for position, label in enumerate(sets.to_lists()[row]):
            is_found = label == found["label"][row]
            color = (RIGHT if label == truth[row] else WRONG) if is_found else REST
            weight = "bold" if is_found else "normal"
            left = 0.05 + 0.28 * position
            figure.text(left, height, label, fontsize=11, color=color, fontweight=weight)
        confidence = f"{found['confidence'][row]:.0%}"
        figure.text(0.99, height, confidence, fontsize=11, color=REST, ha="right")
    figure.savefig(path, transparent=True, metadata={"Date": None})


if __name__ == "__main__":
    main(sys.argv[1])
