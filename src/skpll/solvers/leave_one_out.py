"""Former home of `skpll.engine.ridge`."""

from skpll.engine.ridge import DualRidge, PrimalRidge, leverages, weighted_gram
from skpll.engine.ridge import leave_one_out_answers as without_own

__all__ = ["DualRidge", "PrimalRidge", "leverages", "weighted_gram", "without_own"]
