"""What a loss sees of a batch, and what the losses share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Batch:
    """The examples of a batch, next to their scores.

    Parameters
    ----------
    candidates : bool tensor of shape (b, q)
        Which labels are candidates.
    confidences : tensor of shape (b, q)
        The confidences kept for each example: at first those of the evidence, even where there is
        none. Zero outside the candidates; rows sum to one.
    epoch : tensor of one number
        How many epochs are finished.
    views : tensor of shape (k, b, q) or None
        Scores of further, augmented views of the same examples, if the loss asks for them.
    half : bool tensor of shape (b,) or None
        Which of two random halves of the data an example is in.
    """

    candidates: Tensor
    confidences: Tensor
    epoch: Tensor
    views: Tensor | None = None
    half: Tensor | None = None


Values: TypeAlias = "tuple[Tensor, Tensor | None]"
"""The loss of each example, and the confidences to keep; None keeps those there are."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss function with what it needs.

    Parameters
    ----------
    function : callable
        From scores of shape (b, q) and a `Batch`, with further parameters by keyword, to the loss
        of each example and the confidences to keep, or None.
    views : int
        How many augmented views of each example it compares, next to the example itself.
    halves : bool
        Whether it trains two networks on one half of the examples each, next to the one on all:
        the scores have the shape (3, b, q) then.
    """

    function: Callable[..., Values]
    views: int = 0
    halves: bool = False


def within(scores: Tensor, labels: Tensor) -> Tensor:
    """Compute the softmax over the given labels of each row, as constants for the gradient.

    Rows without such a label are zero.
    """
    inside = torch.softmax(scores.detach().masked_fill(~labels, -torch.inf), dim=-1)
    return inside.nan_to_num(nan=0.0)


def cross_entropy(scores: Tensor, weights: Tensor) -> Tensor:
    r"""Compute :math:`-\sum_j w_j \log p_j` for each row; weights are constants."""
    return -(weights * torch.log_softmax(scores, dim=-1)).sum(dim=-1)
