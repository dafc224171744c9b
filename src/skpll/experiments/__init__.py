"""Experiments: a specification becomes tasks, tasks become results in a store."""

from skpll._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
