"""Losses that weight the candidates by the probabilities of the network."""

from __future__ import annotations

import torch
from torch import Tensor

from ._batch import Batch, Values, cross_entropy, within


def rc(scores: Tensor, batch: Batch) -> Values:
    r"""Weight the candidates by the network's present probabilities.

    RC, the risk-consistent loss of Feng et al. (2020).

    .. math:: L = -\sum_{j \in S} w_j \log p_j, \qquad w_j = p_j / \sum_{k \in S} p_k,

    with the weights as constants in the gradient. In the first epoch they are the initial
    confidences.
    """
    weights = torch.where(batch.epoch < 1, batch.confidences, within(scores, batch.candidates))
    return cross_entropy(scores, weights), None


def proden(scores: Tensor, batch: Batch) -> Values:
    r"""Weight the candidates by what the network found when it last saw the example.

    PRODEN, progressive identification (Lv et al. 2020).

    .. math:: L = -\sum_{j \in S} w_j \log p_j, \qquad
        w_j \leftarrow p_j / \sum_{k \in S} p_k \text{ afterwards}.

    The loss of RC, with weights that are kept for each example and are one epoch older.
    """
    return cross_entropy(scores, batch.confidences), within(scores, batch.candidates)


def lws(scores: Tensor, batch: Batch, beta: float = 1.0) -> Values:
    r"""Weigh sigmoid losses of the candidates against those of the other labels.

    LWS, leveraged weighted losses (Wen et al. 2021).

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
