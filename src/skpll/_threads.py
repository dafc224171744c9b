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


_limiting = Lock()
"""Held by the part of the program that has limited BLAS to one thread.

The number of threads is a setting of the whole process. If several fits in threads changed it, the
last one would restore what another one had set.
"""


@contextmanager
def _one_thread() -> Iterator[None]:
    """Limit BLAS to one thread, unless another part of the program has done so."""
    if not _limiting.acquire(blocking=False):
        yield
        return
    try:
        with _libraries().limit(limits=1, user_api="blas"):
            yield
    finally:
        _limiting.release()


@contextmanager
def small_products() -> Iterator[None]:
    """Limit BLAS to one thread; what `threaded` does is still done on as many as there were.

    For programs that take seconds: threads of BLAS keep a processor busy while they wait for the
    next large product.
    """
    before = _n_threads()
    with _one_thread():
        _kept.append(before)
        try:
            yield
        finally:
            _kept.clear()


_kept: list[int] = []
"""The number of threads for `threaded` inside of `small_products`; empty elsewhere."""


def _n_threads() -> int:
    """Return how many threads BLAS may use."""
    libraries = _libraries().select(user_api="blas").info()
    return max((library["num_threads"] for library in libraries), default=1)


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
    kept = _kept.copy()
    n_threads = max([_n_threads(), *kept])
    _kept.clear()  # what is threaded inside has one thread
    try:
        with _one_thread():
            if n_threads == 1:
                yield from map(function, items)
                return
            with ThreadPoolExecutor(n_threads) as pool:
                yield from pool.map(function, items)
    finally:
        _kept.extend(kept)


@cache
def _libraries() -> ThreadpoolController:
    """Find the libraries that have threads of their own, once: that takes some milliseconds."""
    import scipy.linalg  # noqa: F401  (loads them)

    return ThreadpoolController()
