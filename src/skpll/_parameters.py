"""Values that many parameters may have, in scikit-learn's notation."""

from __future__ import annotations

from numbers import Integral, Real

from sklearn.utils._param_validation import Interval

__all__ = ["COUNT", "NON_NEGATIVE", "POSITIVE"]

COUNT = Interval(Integral, 1, None, closed="left")
NON_NEGATIVE = Interval(Real, 0, None, closed="left")
POSITIVE = Interval(Real, 0, None, closed="neither")
