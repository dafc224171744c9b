"""RC, the risk-consistent loss of Feng et al. (2020)."""

from __future__ import annotations

import torch
from torch import Tensor

from ._batch import Batch, Values, cross_entropy, within


def rc(scores: Tensor, batch: Batch) -> Values:
    r"""Weight the candidates by the network's present probabilities.

    .. math:: L = -\sum_{j \in S} w_j \log p_j, \qquad w_j = p_j / \sum_{k \in S} p_k,

    with the weights as constants in the gradient. In the first epoch they are the initial
    confidences.
    """
    weights = torch.where(batch.epoch < 1, batch.confidences, within(scores, batch.candidates))
    return cross_entropy(scores, weights), None
