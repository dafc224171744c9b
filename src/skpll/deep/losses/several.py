"""Losses that compare several views of an example, or several networks."""

from __future__ import annotations

import torch
from torch import Tensor

from ._batch import Batch, Values, cross_entropy, within


def crdpll(scores: Tensor, batch: Batch, weight: float = 1.0, ramp: int = 100) -> Values:
    r"""Push other labels to zero, and pull all views of an example to a common target.

    CR-DPLL, consistency of augmented views (Wu et al. 2022).

    .. math:: L = -\sum_{j \notin S} \log(1 - p_j)
        + \gamma_t \sum_{z} \mathrm{KL}(c \,\|\, p(z)), \qquad
        \gamma_t = \lambda \min(t / T, 1).

    The sum is over the example and its augmented views. The target c is kept for each example; on
    the candidates it is proportional to the geometric mean of the views' probabilities at the
    last visit.

    Parameters
    ----------
    scores : tensor of shape (b, q)
        The network's scores of the examples.
    batch : Batch
        The examples, with the scores of their views.
    weight : float, default=1.0
        The largest weight :math:`\lambda` of consistency.
    ramp : int, default=100
        Number of epochs T until it is reached.
    """
    views = scores.unsqueeze(0)
    if batch.views is not None:
        views = torch.cat([views, batch.views])
    logs = torch.log_softmax(views, dim=-1)
    target = batch.confidences
    distances = (torch.xlogy(target, target) - target * logs).sum(dim=(0, -1))
    others = torch.softmax(scores, dim=-1).masked_fill(batch.candidates, 0.0)
    apart = -torch.log1p(-others.clamp(max=1 - torch.finfo(scores.dtype).eps)).sum(dim=-1)
    strength = weight * torch.clamp(batch.epoch / ramp, max=1.0)
    return apart + strength * distances, within(logs.mean(dim=0), batch.candidates)


def cross(scores: Tensor, batch: Batch, power: float = 1.0) -> Values:
    r"""Weight the candidates by a network that has not been trained on the example.

    Cross-fitting inside the training.

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
