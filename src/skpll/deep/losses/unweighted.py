"""Losses that take the candidate set as it is."""

from __future__ import annotations

import torch
from torch import Tensor

from ._batch import Batch, Values, cross_entropy


def average(scores: Tensor, batch: Batch) -> Values:
    r"""Compute the average loss of the candidates.

    .. math:: L = -\frac{1}{|S|} \sum_{j \in S} \log p_j, \qquad p = \mathrm{softmax}(f).

    Where there is evidence, its shares take the place of :math:`1/|S|`.
    """
    return cross_entropy(scores, batch.confidences), None


def cc(scores: Tensor, batch: Batch) -> Values:
    r"""Compute minus the log-probability of the candidate set.

    CC, the classifier-consistent loss of Feng et al. (2020).

    .. math:: L = -\log \sum_{j \in S} p_j.
    """
    inside = scores.masked_fill(~batch.candidates, -torch.inf)
    return torch.logsumexp(scores, dim=-1) - torch.logsumexp(inside, dim=-1), None
