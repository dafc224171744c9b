"""Losses of deep networks on candidate sets.

A new loss is one function, in a file of its own or beside similar ones, and one line below. It
takes the scores and a `Batch`, and returns the loss of each example and the confidences to keep,
or None.
"""

from ._batch import Batch, Loss, cross_entropy, within
from .selecting import cavl, pop
from .several import crdpll, cross
from .unweighted import average, cc
from .weighted import lws, proden, rc

__all__ = ["LOSSES", "Batch", "Loss", "cross_entropy", "within"]

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
