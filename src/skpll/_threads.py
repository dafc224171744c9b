"""How many threads linear algebra may use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import TypeVar

from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")

_WORTH_SHARING = 2**28
"""Multiplications in a product from which on several threads are faster than one."""


class _OneThread:
    """Limit BLAS to one thread as long as any part of the program asks for that.

    The number of threads is a setting of the whole process. The first one to ask changes it, and
    the last one to finish restores it, so that fits in several threads leave it as it was.
    """

    def __init__(self) -> None:
        self._lock, self._users = Lock(), 0
        self._restore: Callable[[], None] = lambda: None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._users == 0:
                limiter = _libraries().limit(limits=1, user_api="blas")
                self._restore = limiter.restore_original_limits
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._restore()


_one_thread = _OneThread()


@contextmanager
def threads_for(operations: float) -> Iterator[None]:
    """Use one thread for the matrix products inside, unless they are large.

    Threads that share a small product wait for each other longer than they work, the more so the
    busier the machine is: a loop of such products can take a hundred times as long with many
    threads as with one.

    Parameters
    ----------
    operations : float
        Number of multiplications in a typical product.
    """
    if operations >= _WORTH_SHARING:
        yield
    else:
        with _one_thread():
            yield


def threaded(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Apply a function to items on as many threads as BLAS has; results are in their order.

    Every thread does its own linear algebra: that keeps all of them busy with what is no product
    of matrices, too.
    """
    libraries = _libraries().select(user_api="blas").info()
    n_threads = max((library["num_threads"] for library in libraries), default=1)
    with _one_thread():
        if n_threads == 1:
            yield from map(function, items)
            return
        with ThreadPoolExecutor(n_threads) as pool:
            yield from pool.map(function, items)


@cache
def _libraries() -> ThreadpoolController:
    """Find the libraries that have threads of their own, once: that takes some milliseconds."""
    import scipy.linalg  # noqa: F401  (loads them)

    return ThreadpoolController()
