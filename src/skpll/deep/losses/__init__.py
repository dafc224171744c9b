"""Losses of deep networks on candidate sets, one file each.

A new loss is one function and one line below. It takes the scores and a `Batch`, and returns the
loss of each example and the confidences to keep, or None.
"""

from ._batch import Batch, Loss, cross_entropy, within
from .average import average
from .cavl import cavl
from .cc import cc
from .crdpll import crdpll
from .cross import cross
from .lws import lws
from .pop import pop
from .proden import proden
from .rc import rc

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
