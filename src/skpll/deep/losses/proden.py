"""PRODEN, progressive identification (Lv et al. 2020)."""

from __future__ import annotations

from torch import Tensor

from ._batch import Batch, Values, cross_entropy, within


def proden(scores: Tensor, batch: Batch) -> Values:
    r"""Weight the candidates by what the network found when it last saw the example.

    .. math:: L = -\sum_{j \in S} w_j \log p_j, \qquad
        w_j \leftarrow p_j / \sum_{k \in S} p_k \text{ afterwards}.

    The loss of RC, with weights that are kept for each example and are one epoch older.
    """
    return cross_entropy(scores, batch.confidences), within(scores, batch.candidates)
