"""Former home of `skpll.leave_one_out._regression` and `skpll.engine.limits`."""

from skpll.engine.limits import is_large
from skpll.leave_one_out._regression import FeatureMap

Whitened = FeatureMap

__all__ = ["FeatureMap", "Whitened", "is_large"]
