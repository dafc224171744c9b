"""Numerical kernels: arrays in, arrays out."""

from skpll._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
