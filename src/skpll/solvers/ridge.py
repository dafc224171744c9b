"""Former home of `skpll.engine.ridge.fit_ridge`."""

from skpll.engine.ridge import fit_ridge

__all__ = ["fit_ridge"]
