"""Losses that leave candidates out: for the moment, or for good."""

from __future__ import annotations

import torch
from torch import Tensor

from ._batch import Batch, Values, cross_entropy, within


def cavl(scores: Tensor, batch: Batch, warm_up: int = 5) -> Values:
    r"""Train on the candidate with the largest class activation value.

    CAVL, class activation values (Zhang et al. 2022).

    .. math:: L = -\log p_{\hat y}, \qquad \hat y = \arg\max_{j \in S} |f_j - 1| f_j.

    In the first epochs the loss is the average over the candidates.

    Parameters
    ----------
    scores : tensor of shape (b, q)
        The network's scores f.
    batch : Batch
        The examples.
    warm_up : int, default=5
        Number of epochs with the average.
    """
    values = ((scores.detach() - 1).abs() * scores.detach()).masked_fill(
        ~batch.candidates, -torch.inf
    )
    chosen = torch.zeros_like(scores).scatter(-1, values.argmax(dim=-1, keepdim=True), 1.0)
    weights = torch.where(batch.epoch < warm_up, batch.confidences, chosen)
    return cross_entropy(scores, weights), None


def pop(
    scores: Tensor,
    batch: Batch,
    warm_up: int = 10,
    first: float = 0.95,
    last: float = 0.5,
    step: float = 0.01,
) -> Values:
    r"""Take candidates out of the set for good as the margin to the best one grows.

    POP, progressive purification (Xu et al. 2023).

    PRODEN's loss on sets that shrink: after the first epochs, a candidate j leaves its set when

    .. math:: \max_{k \in S} p_k - p_j > e_t, \qquad
        e_t = \max(e_0 - (t - t_0) \, \delta, \; e_1).

    Parameters
    ----------
    scores : tensor of shape (b, q)
        The network's scores.
    batch : Batch
        The examples; a candidate with a confidence of zero has left the set.
    warm_up : int, default=10
        Number of epochs :math:`t_0` before the first candidate leaves.
    first, last : float, default=0.95, 0.5
        The first and the smallest threshold.
    step : float, default=0.01
        By how much the threshold shrinks in an epoch.
    """
    left = batch.candidates & (batch.confidences > 0)
    inside = within(scores, left)
    threshold = torch.clamp(first - step * (batch.epoch - warm_up), min=last, max=1.0)
    margin = inside.amax(dim=-1, keepdim=True) - inside
    leaves = (margin > threshold) & (batch.epoch >= warm_up)
    # A candidate that stays is kept above zero, which marks those that have left.
    kept = within(scores, left & ~leaves).clamp(min=torch.finfo(scores.dtype).tiny)
    return cross_entropy(scores, batch.confidences), kept * (left & ~leaves)
