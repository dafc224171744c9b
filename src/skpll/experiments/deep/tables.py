"""The figures that papers print on deep networks, beside those of the experiment."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

from skpll.experiments import tables
from skpll.experiments.tables import Printed

__all__ = ["PRINTED", "printed"]

COLLECTION = __package__.rpartition(".")[2]

PRINTED: dict[str, dict[str, dict[str, float]]] = tomllib.loads(
    files(__package__).joinpath("printed.toml").read_text(encoding="utf-8")
)
"""Accuracies in print: from data set, label of the method and probability of a false label."""


def printed(row: Any) -> Printed | None:
    """Look up the figure in print beside a row of scores."""
    mean = PRINTED.get(row.dataset, {}).get(row.method, {}).get(f"{row.p:g}")
    return None if mean is None else Printed(mean)


tables.PRINTED_FIGURES[COLLECTION] = (
    printed,
    "p is the probability of each false label. In small print the figure of the paper "
    "(VALEN: MLP, 500 epochs; CR-DPLL: LeNet, 200 epochs), and how far it is exceeded.",
)
