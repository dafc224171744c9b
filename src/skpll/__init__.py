"""Learning from partial labels: classifiers for data whose labels are sets of candidates."""

from ._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
