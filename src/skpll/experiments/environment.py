"""What a result was made with."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

__all__ = ["describe_environment"]

_PACKAGES = ("skpll", "numpy", "scipy", "scikit-learn", "numba", "joblib")


def describe_environment() -> dict[str, Any]:
    """Describe the interpreter, the machine and the versions of the packages that matter.

    Returns
    -------
    dict
        ``python``, ``platform``, ``machine``, ``cpu_count`` and ``versions``.
    """
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpu_count": os.cpu_count(),
        "versions": {name: _version(name) for name in _PACKAGES},
    }


def _version(package: str) -> str | None:
    if package == "skpll":
        import skpll

        return skpll.__version__
    try:
        return version(package)
    except PackageNotFoundError:
        return None
