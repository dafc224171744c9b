"""How many threads linear algebra may use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

__all__ = ["threads_for"]

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
        with threadpool_limits(1, user_api="blas"):
            yield
