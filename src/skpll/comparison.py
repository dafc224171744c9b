"""The old place of `skpll.experiments.comparison`."""

from __future__ import annotations

import warnings


def __getattr__(name: str) -> object:
    from .experiments import comparison

    if name not in comparison.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    message = f"{__name__} has moved to {comparison.__name__}; the old name ends with 0.3."
    warnings.warn(message, FutureWarning, stacklevel=2)
    return getattr(comparison, name)
