"""The figures that the SP-PLL paper prints, as plain data.

G. Lyu, S. Feng, Y. Wang, C. Lang: A self-paced regularization framework for partial-label learning.
IEEE Transactions on Cybernetics, 2020; arXiv 1804.07759. Figures 2 to 6 are not printed as numbers;
what the text says about them is in `CLAIMS`.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CLAIMS", "EXPERIMENTS", "TABLE3", "TABLE4", "Claim", "Printed"]

EXPERIMENTS = (
    "table3",
    "table3-halves",
    "table4",
    "figure2",
    "figure3",
    "figure4",
    "figure5",
    "figure6",
)
"""Names of the specifications that come with the package for its experiments."""


@dataclass(frozen=True, slots=True)
class Printed:
    """An entry of Table 3.

    Attributes
    ----------
    mean, std : float
        Accuracy, and its standard deviation over the folds.
    marker : {"•", "◦"} or None
        Whether SP-PLL is said to be statistically superior (•) or inferior (◦).
    """

    mean: float
    std: float
    marker: str | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A figure in the text.

    Attributes
    ----------
    name : str
        What it can be looked up by.
    experiments : tuple of str
        The shipped specifications it is about.
    quantity : str
        What is counted or measured: ``"share of cases won"``, ``"cases lost"``,
        ``"mean difference"``, ``"relative difference"``, ``"range"`` (greatest less least
        accuracy), ``"deviation"`` (standard deviation of the accuracies), ``"difference of
        ranges"``, ``"difference of deviations"`` or ``"best value"`` (of the parameter varied).
    method : str
        Label of the method that it is about.
    rival : str or None
        Label of the method that it is compared with.
    dataset : str or None
        Name of the data set; None for all together.
    value : float
        The printed figure; shares and accuracies are between 0 and 1.
    statement : str
        The claim in words.
    """

    name: str
    experiments: tuple[str, ...]
    quantity: str
    method: str
    rival: str | None
    dataset: str | None
    value: float
    statement: str


_DATASETS = ("lost", "msrcv2", "birdsong", "soccer_player", "fgnet")
_WON, _LOST = "•", "◦"

# Mean and standard deviation in thousandths, in the order of _DATASETS.
_TABLE3: dict[str, tuple[tuple[int, int, str | None], ...]] = {
    "SP-PLL": (
        (749, 33, None),
        (581, 10, None),
        (710, 8, None),
        (470, 10, None),
        (78, 22, None),
    ),
    "PL-SVM": (
        (639, 56, _WON),
        (417, 27, _WON),
        (671, 18, _WON),
        (430, 4, _WON),
        (58, 10, _WON),
    ),
    "M3PL": (
        (732, 35, _WON),
        (546, 30, _WON),
        (709, 10, _WON),
        (446, 13, _WON),
        (37, 25, _WON),
    ),
    "CLPL": (
        (670, 24, _WON),
        (375, 20, _WON),
        (624, 9, _WON),
        (347, 4, _LOST),  # as printed, although 0.347 is less than 0.470
        (47, 17, _WON),
    ),
    "PL-KNN": (
        (332, 30, _WON),
        (417, 12, _WON),
        (637, 9, _WON),
        (494, 4, _LOST),
        (37, 8, _WON),
    ),
    "LSB-CMM": (
        (591, 19, _WON),
        (431, 8, _WON),
        (692, 15, _WON),
        (506, 6, _LOST),
        (56, 8, _WON),
    ),
    "PL-LEAF": (
        (664, 20, _WON),
        (459, 13, _WON),
        (706, 12, _WON),
        (515, 4, _LOST),
        (72, 10, _WON),
    ),
    "IPAL": (
        (726, 41, _WON),
        (523, 25, _WON),
        (708, 14, _WON),
        (547, 14, _LOST),
        (57, 23, _WON),
    ),
    "PL-ECOC": (
        (703, 52, _WON),
        (505, 27, _WON),
        (740, 16, _LOST),
        (537, 20, _LOST),
        (40, 18, _WON),
    ),
}

TABLE3: dict[str, dict[str, Printed]] = {
    dataset: {
        label: Printed(row[column][0] / 1000, row[column][1] / 1000, row[column][2])
        for label, row in _TABLE3.items()
    }
    for column, dataset in enumerate(_DATASETS)
}
"""Table 3: for each data set and method the accuracy on the real-world data sets."""

TABLE4: dict[str, float] = {
    "lost": 0.01,
    "fgnet": 0.01,
    "soccer_player": 0.01,
    "birdsong": 0.01,
    "segment": 0.1,
    "glass": 10.0,
    "letter": 10.0,
    "vehicle": 100.0,
    "msrcv2": 100.0,
}
"""Table 4: the C that is best for SP-PLL on each data set."""

_CURVES = ("figure2", "figure3", "figure4")


def _claim(
    name: str,
    quantity: str,
    rival: str | None,
    dataset: str | None,
    value: float,
    statement: str,
    method: str = "SP-PLL",
    experiments: tuple[str, ...] = _CURVES,
) -> Claim:
    return Claim(name, experiments, quantity, method, rival, dataset, value, statement)


CLAIMS: tuple[Claim, ...] = (
    _claim(
        "wins-over-m3pl",
        "share of cases won",
        "M3PL",
        None,
        0.9524,
        "SP-PLL is better than M3PL in 95.24 % of the 84 cases.",
    ),
    _claim(
        "wins-over-plsvm",
        "share of cases won",
        "PL-SVM",
        None,
        0.9762,
        "SP-PLL is better than PL-SVM in 97.62 % of the 84 cases.",
    ),
    _claim(
        "wins-over-plknn",
        "share of cases won",
        "PL-KNN",
        None,
        0.6072,
        "SP-PLL is better than PL-KNN in 60.72 % of the 84 cases, and worse in 39.28 %.",
    ),
    _claim(
        "losses-to-clpl",
        "cases lost",
        "CLPL",
        None,
        3,
        "CLPL is better than SP-PLL in only 3 of the 84 cases.",
    ),
    _claim(
        "losses-to-lsbcmm",
        "cases lost",
        "LSB-CMM",
        None,
        4,
        "LSB-CMM is better than SP-PLL in only 4 of the 84 cases.",
    ),
    *(
        _claim(
            f"gain-{dataset}",
            "mean difference",
            "M3PL",
            dataset,
            gain,
            f"On {dataset} SP-PLL is {100 * gain:.2f} % more accurate than M3PL on average.",
        )
        for dataset, gain in (
            ("glass", 0.0466),
            ("segment", 0.0071),
            ("vehicle", 0.0053),
            ("letter", 0.0049),
        )
    ),
    _claim(
        "range-glass-m3pl",
        "range",
        None,
        "glass",
        0.20,
        "On glass the accuracies of M3PL span 20 %.",
        method="M3PL",
    ),
    _claim(
        "range-glass-sppll",
        "range",
        None,
        "glass",
        0.10,
        "On glass the accuracies of SP-PLL span only 10 %.",
    ),
    _claim(
        "deviation-glass-m3pl",
        "deviation",
        None,
        "glass",
        0.055,
        "On glass the accuracies of M3PL have a standard deviation of 0.055.",
        method="M3PL",
    ),
    _claim(
        "deviation-glass-sppll",
        "deviation",
        None,
        "glass",
        0.027,
        "On glass the accuracies of SP-PLL have a standard deviation of only 0.027.",
    ),
    _claim(
        "deviation-segment",
        "difference of deviations",
        "M3PL",
        "segment",
        -0.002,
        "On segment the standard deviation of SP-PLL is 0.002 smaller than that of M3PL.",
    ),
    _claim(
        "range-vehicle",
        "difference of ranges",
        "M3PL",
        "vehicle",
        -0.024,
        "On vehicle the accuracies of SP-PLL span 0.024 less than those of M3PL.",
    ),
    _claim(
        "gain-msrcv2-m3pl",
        "relative difference",
        "M3PL",
        "msrcv2",
        0.07,
        "On MSRCv2 SP-PLL is 7 % more accurate than M3PL.",
        experiments=("table3",),
    ),
    _claim(
        "gain-msrcv2-plsvm",
        "relative difference",
        "PL-SVM",
        "msrcv2",
        0.20,
        "On MSRCv2 SP-PLL is 20 % more accurate than PL-SVM.",
        experiments=("table3",),
    ),
    _claim(
        "gain-fgnet-m3pl",
        "relative difference",
        "M3PL",
        "fgnet",
        1.0,
        "On FG-NET SP-PLL is around 100 % more accurate than M3PL.",
        experiments=("table3",),
    ),
    _claim(
        "best-pace",
        "best value",
        None,
        None,
        0.6,
        "SP-PLL does well when the pace λ starts at 0.6; smaller and larger values are worse.",
        experiments=("figure5",),
    ),
)
"""What the text says about the experiments, in the order of the text."""
