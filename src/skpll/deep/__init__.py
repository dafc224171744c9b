"""Deep networks that learn from candidate sets; needs torch and skorch (extra ``deep``).

>>> from skpll import deep
>>> "DeepPartialLabelClassifier" in dir(deep)
True
"""

from typing import Any

import lazy_loader as _lazy

from skpll._extra import need as _need

_load, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name in __all__:
        for package in ("torch", "skorch"):
            _need(package, f"skpll.deep needs {package}", "deep")
    return _load(name)
