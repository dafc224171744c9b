"""The same in a few lines of Python, after `python make_table.py`."""

import pandas as pd

from skpll import disambiguate

digits = pd.read_csv("digits.csv", dtype={"candidates": str})
truth = pd.read_csv("truth.csv", dtype=str)["digit"]
resolved = disambiguate(digits, candidates="candidates", id="name")
unsure = resolved[~resolved["unanimous"]].sort_values("confidence")
print(f"{(resolved['label'] == truth).mean():.1%} of the labels are right.")
print(unsure[["name", "candidates", "label", "confidence"]].head())
