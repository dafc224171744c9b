"""How many threads linear algebra may use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

_WORTH_SHARING = 2**28


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
        with _libraries().limit(limits=1, user_api="blas"):
            yield


def threaded(function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """Apply a function to items on as many threads as linear algebra has; results in their order.

    Every thread does its own linear algebra: that keeps all of them busy with what is no product
    of matrices, too.
    """
    libraries = _libraries().select(user_api="blas")
    n_threads = max((library["num_threads"] for library in libraries.info()), default=1)
    with libraries.limit(limits=1):
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
