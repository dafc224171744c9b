"""CAVL, class activation values (Zhang et al. 2022)."""

from __future__ import annotations

import torch
from torch import Tensor

from ._batch import Batch, Values, cross_entropy


def cavl(scores: Tensor, batch: Batch, warm_up: int = 5) -> Values:
    r"""Train on the candidate with the largest class activation value.

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
