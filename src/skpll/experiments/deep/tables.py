"""The figures that papers print on deep networks, beside those of the experiment."""

from __future__ import annotations

import tomllib
from importlib.resources import files

from skpll.experiments import tables
from skpll.experiments.store import Experiment
from skpll.experiments.tables import Frame, Printed

__all__ = ["PRINTED", "beside_printed"]

COLLECTION = __package__.rpartition(".")[2]

PRINTED: dict[str, dict[str, dict[str, float]]] = tomllib.loads(
    files(__package__).joinpath("printed.toml").read_text(encoding="utf-8")
)
"""Accuracies in print: from data set, label of the method and probability of a false label."""


def beside_printed(frame: Frame, experiment: Experiment) -> Frame:
    """Put printed figures beside the scores of the collection's own experiments."""
    if experiment.collection != COLLECTION:
        return frame
    rows = zip(frame["dataset"], frame["method"], frame["p"], strict=True)
    found = (PRINTED[data].get(method, {}).get(f"{p:g}") for data, method, p in rows)
    prints = [None if mean is None else Printed(mean) for mean in found]
    remark = "p is the probability of each false label. In small print the figure of the paper "
    remark += "(VALEN: MLP, 500 epochs; CR-DPLL: LeNet, 200 epochs), and how far it is exceeded."
    return tables.beside_printed(frame, prints, remark)


tables.SCORE_REMARKS.append(beside_printed)
