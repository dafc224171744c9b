"""Random changes of pictures, for whole batches on their device.

An augmentation is a callable from a batch to a batch. Flat square pictures are taken, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from .modules import as_pictures

__all__ = ["Augmentation", "compose", "crop", "cutout", "flip"]


Augmentation: TypeAlias = Callable[[Tensor], Tensor]
"""From a batch of examples to a batch of changed ones."""


@dataclass(frozen=True)
class compose:
    """Apply augmentations one after the other.

    Parameters
    ----------
    *steps : callables
        The augmentations.

    Examples
    --------
    >>> import torch
    >>> from skpll.deep import compose, crop, flip
    >>> compose(crop(2), flip())(torch.ones(4, 1, 8, 8)).shape
    torch.Size([4, 1, 8, 8])
    """

    steps: tuple[Augmentation, ...]

    def __init__(self, *steps: Augmentation) -> None:
        object.__setattr__(self, "steps", steps)

    def __call__(self, X: Tensor) -> Tensor:
        """Change a batch."""
        for step in self.steps:
            X = step(X)
        return X


@dataclass(frozen=True)
class crop:
    """Shift each picture at random; what comes in from outside is zero.

    Parameters
    ----------
    padding : int, default=4
        The largest shift in each direction, in pixels.

    Examples
    --------
    >>> import torch
    >>> from skpll.deep import crop
    >>> X = torch.arange(9.0).reshape(1, 1, 3, 3)
    >>> torch.equal(crop(0)(X), X)
    True
    """

    padding: int = 4

    def __call__(self, X: Tensor) -> Tensor:
        """Change a batch."""
        X = as_pictures(X)
        n, channels, height, width = X.shape
        padded = torch.nn.functional.pad(X, [self.padding] * 4)
        shifts = torch.rand(2, n, 1, device=X.device) * (2 * self.padding + 1)
        shifts = shifts.long().clamp(max=2 * self.padding)
        rows = shifts[0] + torch.arange(height, device=X.device)
        columns = shifts[1] + torch.arange(width, device=X.device)
        padded = padded.gather(2, rows[:, None, :, None].expand(n, channels, -1, padded.shape[3]))
        return padded.gather(3, columns[:, None, None, :].expand(n, channels, height, -1))


@dataclass(frozen=True)
class flip:
    """Mirror each picture from left to right with probability one half.

    Examples
    --------
    >>> import torch
    >>> from skpll.deep import flip
    >>> X = torch.ones(2, 1, 3, 3)
    >>> torch.equal(flip()(X), X)
    True
    """

    def __call__(self, X: Tensor) -> Tensor:
        """Change a batch."""
        X = as_pictures(X)
        mirrored = torch.rand(len(X), 1, 1, 1, device=X.device) < 0.5
        return torch.where(mirrored, X.flip(-1), X)


@dataclass(frozen=True)
class cutout:
    """Set a square of each picture to zero, around a random pixel.

    Parameters
    ----------
    size : int, default=8
        Side of the square, in pixels.

    Examples
    --------
    >>> import torch
    >>> from skpll.deep import cutout
    >>> int(cutout(1)(torch.ones(1, 1, 5, 5)).sum())
    24
    """

    size: int = 8

    def __call__(self, X: Tensor) -> Tensor:
        """Change a batch."""
        X = as_pictures(X)
        n, _, height, width = X.shape
        center = torch.rand(2, n, 1, device=X.device)
        inside = []
        for place, extent in zip(center, (height, width), strict=True):
            start = (place * extent).long() - self.size // 2
            pixels = torch.arange(extent, device=X.device)
            inside.append((pixels >= start) & (pixels < start + self.size))
        hole = inside[0][:, :, None] & inside[1][:, None, :]
        return X.masked_fill(hole[:, None], 0.0)
