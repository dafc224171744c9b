"""CR-DPLL, consistency of augmented views (Wu et al. 2022)."""

from __future__ import annotations

import torch
from torch import Tensor

from ._batch import Batch, Values, within


def crdpll(scores: Tensor, batch: Batch, weight: float = 1.0, ramp: int = 100) -> Values:
    r"""Push other labels to zero, and pull all views of an example to a common target.

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
