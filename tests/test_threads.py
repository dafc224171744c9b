from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event, current_thread

import scipy.linalg  # noqa: F401  (loads BLAS)
from threadpoolctl import threadpool_info, threadpool_limits

from skpll._threads import small_products, threaded, threads_for


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_only_large_products_are_shared():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with threads_for(1e6):
            assert blas_threads() == {1}
        assert blas_threads() == before
        with threads_for(1e12):
            assert blas_threads() == before


def test_items_are_worked_on_by_threads_with_linear_algebra_of_their_own():
    with threadpool_limits(2, user_api="blas"):
        both = Barrier(2, timeout=60)

        def work(item):
            both.wait()  # passes only if two threads are at work
            return item, blas_threads()

        assert list(threaded(work, range(4))) == [(item, {1}) for item in range(4)]
        assert 2 in blas_threads()
    with threadpool_limits(1, user_api="blas"):
        assert len(set(threaded(lambda _: current_thread().name, range(4)))) == 1


def test_items_are_worked_on_by_threads_where_products_are_small():
    def inside(_):
        return len(set(threaded(lambda _: current_thread().name, range(4))))

    with threadpool_limits(2, user_api="blas"):
        with small_products():
            assert blas_threads() == {1}
            both = Barrier(2, timeout=60)
            assert list(threaded(lambda _: both.wait() >= 0, range(4))) == [True] * 4
            assert list(threaded(inside, range(4))) == [1] * 4
            both = Barrier(2, timeout=60)
            assert list(threaded(lambda _: both.wait() >= 0, range(4))) == [True] * 4
        assert 2 in blas_threads()
    with threadpool_limits(1, user_api="blas"), small_products():
        assert len(set(threaded(lambda _: current_thread().name, range(4)))) == 1


def test_overlapping_parts_leave_the_number_of_threads_as_it_was():
    before, entered, inside, left = blas_threads(), Event(), Event(), Event()

    def first():
        with threads_for(1e6):
            entered.set()
            assert inside.wait(60)
        left.set()

    def second():
        assert entered.wait(60)
        with threads_for(1e6):
            inside.set()
            assert left.wait(60)

    with ThreadPoolExecutor(2) as pool:
        for running in [pool.submit(first), pool.submit(second)]:
            running.result(60)
    assert blas_threads() == before
