"""Flat rows seen as pictures."""

from __future__ import annotations

import math

from torch import Tensor


def picture_shape(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Return channels, height and width of an example of the given shape.

    A flat example is a square picture of one channel or, failing that, of three.
    """
    if len(shape) == 3:
        return shape[0], shape[1], shape[2]
    if len(shape) == 2:
        return 1, shape[0], shape[1]
    for channels in (1, 3):
        side = math.isqrt(math.prod(shape) // channels)
        if len(shape) == 1 and channels * side * side == shape[0]:
            return channels, side, side
    raise ValueError(
        f"X: examples of shape {shape} are no pictures; use shape (n, channels, height, width)."
    )


def as_pictures(X: Tensor) -> Tensor:
    """Return a batch in the shape (n, channels, height, width)."""
    return X.reshape(len(X), *picture_shape(tuple(X.shape[1:])))
