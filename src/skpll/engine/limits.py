"""The policy of size: up to which size data is worked on exactly, and from which on in blocks.

All such numbers are attributes of one object, `LIMITS`, so that they can be read, and changed in
tests, in one place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["LIMITS", "Limits", "is_large", "number_of_landmarks"]


@dataclass
class Limits:
    """Bounds on sizes. Each attribute names its unit: rows, landmarks, features or numbers."""

    rows_in_memory: int = 50_000
    """More rows than this, and than `rows_per_landmark` per landmark, are worked on in blocks."""

    rows_per_landmark: int = 20

    landmarks: int = 2500
    """Landmarks of a kernel; up to twice as many rows are all compared with each other."""

    landmarks_of_many_rows: int = 1000
    """Landmarks for more than `many_rows` rows."""

    many_rows: int = 20_000

    linear_features: int = 2000
    """Up to this number of features, or of rows, a linear regression is made on the features."""

    choice_rows: int = 2000
    """Parameters are chosen on at most this number of rows."""

    choice_landmarks: int = 800
    """Landmarks while parameters are chosen."""

    cross_fitted_rows: int = 3000
    """For more rows the temperature is found on one fold instead of all."""

    cross_fitted_scores: int = 2**19
    """For more scores (rows times classes) one fold is held out instead of all in turn."""

    set_model_classes: int = 2000
    """Sets of more classes are not modelled: all pairs of classes are counted."""

    set_model_pairs: int = 1000
    """Sets with more pairs of candidates for each example than this are not modelled."""

    kept_numbers: int = 2**20
    """`fit` keeps sums of at most this size for a later `partial_fit`."""

    block_numbers: int = 2**22
    """Numbers in a block of features: small enough for the caches of a processor."""

    tensor_block_numbers: int = 2**26
    """Numbers in a block of a tensor: large enough to keep a graphics processor busy."""

    predicted_numbers: int = 2**22
    """Numbers in the scores and mapped features of rows that are predicted together."""


LIMITS = Limits()


def number_of_landmarks(n: int, requested: int | Literal["auto"]) -> int:
    """Return the number of landmarks for n examples."""
    if requested != "auto":
        return int(requested)
    return LIMITS.landmarks if n <= LIMITS.many_rows else LIMITS.landmarks_of_many_rows


def is_large(n: int, n_landmarks: int | Literal["auto"]) -> bool:
    """Return True if n examples are too many to be worked on as a whole."""
    landmarks = number_of_landmarks(n, n_landmarks)
    return n > max(LIMITS.rows_in_memory, LIMITS.rows_per_landmark * landmarks)
