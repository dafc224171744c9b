"""Losses of deep networks on candidate sets.

A new loss is one function and one line of `LOSSES`. It takes the scores and a `Batch`, and returns
the loss of each example and the confidences to keep, or None.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from skpll._docs import documented

__all__ = ["LOSSES", "Batch", "Loss", "cross_entropy", "within"]


@dataclass(frozen=True, slots=True)
class Batch:
    """The examples of a batch, next to their scores.

    Parameters
    ----------
    candidates : bool tensor of shape (b, q)
        Which labels are candidates.
    confidences : tensor of shape (b, q)
        The confidences kept for each example: at first those of the evidence, even where there is
        none. Zero outside the candidates; rows sum to one.
    epoch : tensor of one number
        How many epochs are finished.
    views : tensor of shape (k, b, q) or None
        Scores of further, augmented views of the same examples, if the loss asks for them.
    half : bool tensor of shape (b,) or None
        Which of two random halves of the data an example is in.
    """

    candidates: Tensor
    confidences: Tensor
    epoch: Tensor
    views: Tensor | None = None
    half: Tensor | None = None


Values: TypeAlias = "tuple[Tensor, Tensor | None]"
"""The loss of each example, and the confidences to keep; None keeps those there are."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss function with what it needs.

    Parameters
    ----------
    function : callable
        From scores of shape (b, q) and a `Batch`, with further parameters by keyword, to the loss
        of each example and the confidences to keep, or None.
    views : int
        How many augmented views of each example it compares, next to the example itself.
    halves : bool
        Whether it trains two networks on one half of the examples each, next to the one on all:
        the scores have the shape (3, b, q) then.
    """

    function: Callable[..., Values]
    views: int = 0
    halves: bool = False


def within(scores: Tensor, labels: Tensor) -> Tensor:
    """Compute the softmax over the given labels of each row, as constants for the gradient.

    Rows without such a label are zero.
    """
    inside = torch.softmax(scores.detach().masked_fill(~labels, -torch.inf), dim=-1)
    return inside.nan_to_num(nan=0.0)


def cross_entropy(scores: Tensor, weights: Tensor) -> Tensor:
    r"""Compute :math:`-\sum_j w_j \log p_j` for each row; weights are constants."""
    return -(weights * torch.log_softmax(scores, dim=-1)).sum(dim=-1)


# -- that take the set as it is


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


# -- that weight the candidates by the network's probabilities


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


@documented
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
    <<loss>>
    beta : float, default=1.0
        How much the labels outside the set count.
    """
    outside = within(scores, ~batch.candidates)
    losses = batch.confidences * torch.sigmoid(-scores) + beta * outside * torch.sigmoid(scores)
    return losses.sum(dim=-1), within(scores, batch.candidates)


# -- that leave candidates out, for the moment or for good


@documented
def cavl(scores: Tensor, batch: Batch, warm_up: int = 5) -> Values:
    r"""Train on the candidate with the largest class activation value.

    CAVL, class activation values (Zhang et al. 2022).

    .. math:: L = -\log p_{\hat y}, \qquad \hat y = \arg\max_{j \in S} |f_j - 1| f_j.

    In the first epochs the loss is the average over the candidates.

    Parameters
    ----------
    <<loss>>
    warm_up : int, default=5
        Number of epochs with the average.
    """
    values = ((scores.detach() - 1).abs() * scores.detach()).masked_fill(
        ~batch.candidates, -torch.inf
    )
    chosen = torch.zeros_like(scores).scatter(-1, values.argmax(dim=-1, keepdim=True), 1.0)
    weights = torch.where(batch.epoch < warm_up, batch.confidences, chosen)
    return cross_entropy(scores, weights), None


@documented
def pop(
    scores: Tensor,
    batch: Batch,
    warm_up: int = 10,
    first: float = 0.95,
    last: float = 0.5,
    step: float = 0.01,
) -> Values:
    r"""Take candidates out of the set for good as the margin to the best one grows.

    POP, progressive purification (Xu et al. 2023).

    PRODEN's loss on sets that shrink: after the first epochs, a candidate j leaves its set when

    .. math:: \max_{k \in S} p_k - p_j > e_t, \qquad
        e_t = \max(e_0 - (t - t_0) \, \delta, \; e_1).

    A candidate with a confidence of zero has left the set.

    Parameters
    ----------
    <<loss>>
    warm_up : int, default=10
        Number of epochs :math:`t_0` before the first candidate leaves.
    first, last : float, default=0.95, 0.5
        The first and the smallest threshold.
    step : float, default=0.01
        By how much the threshold shrinks in an epoch.
    """
    left = batch.candidates & (batch.confidences > 0)
    inside = within(scores, left)
    threshold = torch.clamp(first - step * (batch.epoch - warm_up), min=last, max=1.0)
    margin = inside.amax(dim=-1, keepdim=True) - inside
    leaves = (margin > threshold) & (batch.epoch >= warm_up)
    # A candidate that stays is kept above zero, which marks those that have left.
    kept = within(scores, left & ~leaves).clamp(min=torch.finfo(scores.dtype).tiny)
    return cross_entropy(scores, batch.confidences), kept * (left & ~leaves)


# -- that compare several views of an example, or several networks


@documented
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
    <<loss>>
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


LOSSES: dict[str, Loss] = {
    "average": Loss(average),
    "cc": Loss(cc),
    "rc": Loss(rc),
    "proden": Loss(proden),
    "lws": Loss(lws),
    "cavl": Loss(cavl),
    "pop": Loss(pop),
    "crdpll": Loss(crdpll, views=2),
    "cross": Loss(cross, halves=True),
}
"""The losses by name."""
