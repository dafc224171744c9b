"""Choosing among models without true labels."""

from ._choosing import Choice, Trial, choose_method, held_out_probabilities
from ._splitting import StratifiedCandidateKFold

__all__ = [
    "Choice",
    "StratifiedCandidateKFold",
    "Trial",
    "choose_method",
    "held_out_probabilities",
]


def __dir__() -> list[str]:
    return __all__
