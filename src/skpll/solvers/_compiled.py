"""How the kernels are compiled: once an installation, and kept on disk where there is room.

The compiler's cache notices changes only in the file of the function that Python calls, so a kernel
and all that it calls lie in one file. It refers by name to the named tuples that kernels take;
where such a name is gone in a newer version, the kernel is compiled again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache


class _Cache(FunctionCache):
    """The compiler's cache on disk, which starts anew where it can't be read."""

    def load_overload(self, sig: object, target_context: object) -> object:
        """Return the machine code for a signature; None if there is none that can be read."""
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except (AttributeError, ImportError):
            self.flush()  # type: ignore[no-untyped-call]
            return None


def kernel(function: Callable | None = None, /, **options: object) -> Callable:
    """Compile a function that is called from Python, without the interpreter's lock.

    Its machine code is kept on disk. Where nothing can be written, as in a read-only installation
    without a home, it is compiled anew in every process, and a warning says so, once.

    Parameters
    ----------
    function : callable, optional
        Usually given by ``@kernel``; left out in ``@kernel(fastmath=True)``.
    **options
        Further options of :func:`numba.njit`. Division follows NumPy's rules unless they say
        otherwise.
    """
    lean = {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
    chosen: Any = lean | {"cache": True} | options

    def compiled(function: Callable) -> Callable:
        try:
            dispatcher: Any = njit(**chosen)(function)
            if chosen["cache"]:
                dispatcher._cache = _Cache(function)  # type: ignore[no-untyped-call]
            return dispatcher
        except RuntimeError as error:
            if "no locator available" not in str(error):
                raise
        _warn_that_nothing_is_kept()
        return njit(**chosen | {"cache": False})(function)

    return compiled if function is None else compiled(function)


def inner_kernel(function: Callable | None = None, /, **options: object) -> Callable:
    """Compile a function that only other compiled ones call, of the same file.

    Its code becomes part of theirs: nothing is made for calls from Python, or kept by itself.

    Parameters
    ----------
    function : callable, optional
        Usually given by ``@inner_kernel``.
    **options
        Further options of :func:`numba.njit`, as in `kernel`.
    """
    lean = {"cache": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return kernel(function, **lean | options)


@cache
def _warn_that_nothing_is_kept() -> None:
    warnings.warn(
        "the compiled kernels of skpll can't be kept, because neither the installation nor the "
        "home directory can be written to: they are compiled in every new process, which takes "
        "seconds. Set NUMBA_CACHE_DIR to a directory that can be written to",
        RuntimeWarning,
        stacklevel=2,
    )
