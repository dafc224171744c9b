"""Two halves of the data that label each other (cross-fitting inside the training)."""

from __future__ import annotations

import torch
from torch import Tensor

from ._batch import Batch, Values, cross_entropy, within


def cross(scores: Tensor, batch: Batch, power: float = 1.0) -> Values:
    r"""Weight the candidates by a network that has not been trained on the example.

    .. math:: L = -\sum_{j \in S} w_j (\log p_j + \log p^h_j), \qquad
        w_j \propto (p^{\bar h}_j)^a \text{ afterwards}, \; j \in S.

    Two networks :math:`p^0, p^1` are trained on one half of the examples each; an example of half
    h gets its weights from the network of the other half. A third network p, the one that predicts,
    is trained on all examples with these weights. Weights are kept as in PRODEN.

    Parameters
    ----------
    scores : tensor of shape (3, b, q)
        The scores of the network on all examples, and of those on the first and the second half.
    batch : Batch
        The examples.
    power : float, default=1.0
        By how much the answers are sharpened.
    """
    half = batch.half
    if half is None:
        raise ValueError("loss: 'cross' needs to know the half of each example.")
    second = half.unsqueeze(-1)
    taught = torch.where(second, scores[2], scores[1])
    asked = torch.where(second, scores[1], scores[2])
    losses = cross_entropy(scores[0], batch.confidences) + cross_entropy(taught, batch.confidences)
    return losses, within(power * asked, batch.candidates)
