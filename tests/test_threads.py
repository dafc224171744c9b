from threadpoolctl import threadpool_info, threadpool_limits

from skpll._threads import threads_for


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
