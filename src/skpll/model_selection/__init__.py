"""Choosing among models when nobody knows the truth."""

from ._choosing import Choice, Trial, choose_method
from ._splitting import StratifiedCandidateKFold

__all__ = ["Choice", "StratifiedCandidateKFold", "Trial", "choose_method"]
