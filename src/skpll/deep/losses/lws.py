"""LWS, leveraged weighted losses (Wen et al. 2021)."""

from __future__ import annotations

import torch
from torch import Tensor

from ._batch import Batch, Values, within


def lws(scores: Tensor, batch: Batch, beta: float = 1.0) -> Values:
    r"""Weigh sigmoid losses of the candidates against those of the other labels.

    .. math:: L = \sum_{j \in S} w_j \psi(f_j) + \beta \sum_{j \notin S} w_j \psi(-f_j), \qquad
        \psi(z) = 1 / (1 + e^z).

    The weights are the softmax of the scores inside S, kept from the last visit of the example,
    and outside S, of the present scores; both are constants in the gradient.

    Where scores are large the loss is flat, and what was learned wrong stays: let the network have
    batch normalization in its hidden layers.

    Parameters
    ----------
    scores : tensor of shape (b, q)
        The network's scores f.
    batch : Batch
        The examples.
    beta : float, default=1.0
        How much the labels outside the set count.
    """
    outside = within(scores, ~batch.candidates)
    losses = batch.confidences * torch.sigmoid(-scores) + beta * outside * torch.sigmoid(scores)
    return losses.sum(dim=-1), within(scores, batch.candidates)
