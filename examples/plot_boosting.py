"""
Boosting on a table with gaps
=============================

A simulated table of customers with numbers, a category and gaps, in which rules decide the class,
as trees do. With `CrossFitClassifier`, gradient boosting learns from candidate sets; nothing has to
be filled in or scaled. The more gaps there are, the harder it is for all methods.
"""

# %%
# Four classes; every row has two false candidates.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpll import PLLOO, CrossFitClassifier
from skpll.datasets import make_partial_labels
from skpll.plotting import COLORS

rng = np.random.default_rng(0)
COLUMNS = ["age", "income", "region", "visits", "noise 1", "noise 2"]


def customers(n):
    """Draw a table and the classes that follow from it."""
    age, visits, region = rng.integers(18, 80, n), rng.poisson(3, n), rng.integers(0, 6, n)
    income = rng.lognormal(10, 0.6, n)
    rules = [(region % 2 == 0) & (age > 45), (income > 25000) & (visits < 4), region > 2]
    table = np.column_stack([age, income, region, visits, rng.normal(size=(n, 2))])
    return table, np.select(rules, [0, 1, 2], 3)


def with_gaps(table, share):
    """Forget cells of all columns but the region."""
    gaps = rng.random(table.shape) < share
    gaps[:, COLUMNS.index("region")] = False
    return np.where(gaps, np.nan, table)


table, y = customers(900)
table_new, y_new = customers(4000)
S = make_partial_labels(y, p=1.0, r=2, random_state=0)

# %%
# What people would do instead: a copy of the row for each candidate, and the same boosting. `PLLOO`
# is a smooth model; it needs the gaps filled, and is the wrong tool here.

boosting = HistGradientBoostingClassifier(
    learning_rate=0.2,
    max_iter=20,
    max_leaf_nodes=8,
    max_bins=32,
    categorical_features=[COLUMNS.index("region")],
    random_state=0,
)
scaled = make_pipeline(SimpleImputer(strategy="median"), StandardScaler(), PLLOO())
copies = S.rows
gap_shares = 0, 0.15, 0.3
scores = {}
for share in gap_shares:
    X, X_new = with_gaps(table, share), with_gaps(table_new, share)
    crossfit = CrossFitClassifier(boosting, cv=3, max_iter=3).fit(X, S)
    right = {
        "boosting, truth known": boosting.fit(X, y).score(X_new, y_new),
        "boosting, cross-fitted": crossfit.score(X_new, y_new),
        "boosting, a copy for each candidate": boosting.fit(X[copies], S.indices).score(
            X_new, y_new
        ),
        "PL-LOO, gaps filled": scaled.fit(X, S).score(X_new, y_new),
    }
    for name, score in right.items():
        scores.setdefault(name, []).append(score)

print(f"{'share of gaps':38}", *(f"{share:4}" for share in gap_shares))
for name, values in scores.items():
    print(f"{name:38}", *(f"{value:.2f}" for value in values))

# %%
# On the left the first rows of the table (dark: large, hatched: a gap), on the right the share of
# new rows that each gets right.

figure, (left, right) = plt.subplots(
    1, 2, figsize=(10, 4.2), layout="constrained", width_ratios=[1, 1.7]
)
shown = X[:18]
ranks = (shown - np.nanmin(X, axis=0)) / (np.nanmax(X, axis=0) - np.nanmin(X, axis=0))
left.set_facecolor("white")
left.pcolormesh(np.ma.masked_invalid(ranks), cmap="Blues", edgecolor="white", vmin=-0.2)
for row, column in np.argwhere(np.isnan(shown)):
    left.add_patch(plt.Rectangle((column, row), 1, 1, fill=False, hatch="////", edgecolor="0.7"))
left.set_xticks(np.arange(len(COLUMNS)) + 0.5, COLUMNS, rotation=40, ha="right")
left.set(yticks=[], ylabel="rows", title=f"{gap_shares[-1]:.0%} of the cells are gaps")
left.invert_yaxis()
for (name, values), colour, style in zip(
    scores.items(), ("0.4", *COLORS[:3]), (":", "o-", "s-", "^-"), strict=True
):
    right.plot(gap_shares, values, style, color=colour, label=name)
right.set(xlabel="share of the cells that are gaps", ylabel="accuracy on new rows")
right.grid(alpha=0.25)
figure.legend(loc="outside lower right", ncols=2, frameon=False)
plt.show()
