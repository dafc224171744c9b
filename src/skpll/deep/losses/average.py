"""The average over the candidates."""

from __future__ import annotations

from torch import Tensor

from ._batch import Batch, Values, cross_entropy


def average(scores: Tensor, batch: Batch) -> Values:
    r"""Compute the average loss of the candidates.

    .. math:: L = -\frac{1}{|S|} \sum_{j \in S} \log p_j, \qquad p = \mathrm{softmax}(f).

    Where there is evidence, its shares take the place of :math:`1/|S|`.
    """
    return cross_entropy(scores, batch.confidences), None
