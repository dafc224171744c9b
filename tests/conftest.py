"""Settings for the whole suite, and the fixtures that any part of it may use."""

import os

# scikit-learn's array-API check skips itself unless scipy was told before its import.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

from hypothesis import settings

from .browser import browser, chromium
from .terminal import terminal

__all__ = ["browser", "chromium", "terminal"]

settings.register_profile("skpll", deadline=None, derandomize=True)
settings.load_profile("skpll")
