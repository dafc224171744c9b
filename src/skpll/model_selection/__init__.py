"""Choosing among models when nobody knows the truth."""

from ._splitting import StratifiedCandidateKFold

__all__ = ["StratifiedCandidateKFold"]
