"""Choosing among models when nobody knows the truth."""

from ._choosing import Choice, Trial, choose_method

__all__ = ["Choice", "Trial", "choose_method"]
