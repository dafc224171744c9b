"""CC, the classifier-consistent loss of Feng et al. (2020)."""

from __future__ import annotations

import torch
from torch import Tensor

from ._batch import Batch, Values


def cc(scores: Tensor, batch: Batch) -> Values:
    r"""Compute minus the log-probability of the candidate set.

    .. math:: L = -\log \sum_{j \in S} p_j.
    """
    inside = scores.masked_fill(~batch.candidates, -torch.inf)
    return torch.logsumexp(scores, dim=-1) - torch.logsumexp(inside, dim=-1), None
