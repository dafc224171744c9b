"""The SP-PLL paper: its experiments, the figures that it prints, and what its text says.

This folder plugs in: nothing else imports it. Its tables appear in reports on its own experiments,
and on no others. The printed figures are in ``printed.toml``.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files

from skpll.experiments.tables import Printed


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A figure in the text.

    Attributes
    ----------
    name : str
        What it can be looked up by.
    statement : str
        The claim in words.
    quantity : str
        What is counted or measured: ``"share of cases won"``, ``"cases lost"``,
        ``"mean difference"``, ``"relative difference"``, ``"range"`` (greatest less least
        accuracy), ``"deviation"`` (standard deviation of the accuracies), ``"difference of
        ranges"``, ``"difference of deviations"`` or ``"best value"`` (of the parameter varied).
    value : float
        The printed figure; shares and accuracies are between 0 and 1.
    method : str
        Label of the method that it is about.
    rival : str or None
        Label of the method that it is compared with.
    dataset : str or None
        Name of the data set; None for all together.
    experiments : sequence of str
        The specifications it is about.
    """

    name: str
    statement: str
    quantity: str
    value: float
    method: str = "SP-PLL, our pace"
    rival: str | None = None
    dataset: str | None = None
    experiments: tuple[str, ...] = ("figure2", "figure3", "figure4")


_printed = tomllib.loads(files(__package__).joinpath("printed.toml").read_text(encoding="utf-8"))

TABLE3: dict[str, dict[str, Printed]] = {
    dataset: {method: Printed(*entry) for method, entry in row.items()}
    for dataset, row in _printed["table3"].items()
}
"""Table 3: for each data set and method the accuracy on the real-world data sets."""


def printed(dataset: str, method: str) -> Printed | None:
    """Look up what Table 3 says of a method, whichever version of it a label names."""
    row = TABLE3.get(dataset, {})
    return row.get(method) or row.get(method.split(",")[0].split(" as ")[0])


DATA: dict[str, list[float]] = _printed["data"]
"""Tables 1 and 2: numbers of examples, features and classes, and mean number of candidates."""

PUBLISHED: dict[str, dict[str, tuple[float, str]]] = _printed["published"]
"""The best published accuracy under the protocol of an experiment, and whose it is."""

TABLE4: dict[str, float] = _printed["table4"]
"""Table 4: the C that is best for SP-PLL on each data set."""

CLAIMS: tuple[Claim, ...] = tuple(Claim(**entry) for entry in _printed["claims"])
"""What the text says about the experiments, in the order of the text."""
