import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from skpll.solvers.conditioning import LARGE_SIZE, MAX_SIZE, condition


@pytest.mark.parametrize(
    "X",
    [
        np.random.default_rng(0).normal(3, 1, (20, 4)),
        np.c_[np.arange(5.0), np.full(5, 7.0)],  # a column that stands for the intercept
        np.full((5, 2), 1e7),
        np.zeros((4, 3)),
        np.empty((3, 0)),
        sparse.csr_array((4, 5)),
        sparse.csr_array(np.full((3, 2), 1e7) + np.eye(3, 2)),
    ],
)
def test_ordinary_features_are_left_alone(X):
    assert condition(X)(X) is X


def test_columns_far_from_zero_are_moved():
    X = np.random.default_rng(0).normal(size=(30, 3)) * [1.0, 1e-3, 10.0] + [-1e9, 1e3, 5.0]
    X = np.c_[X, np.full(30, 1e9)]
    offset, scale = condition(X)
    assert scale == 1.0
    np.testing.assert_allclose(offset, [-1e9, 1e3, 0.0, 1e9], rtol=1e-3)
    moved = condition(X)(X)
    assert np.abs(moved).max() < 100
    np.testing.assert_array_equal(moved[:, 2], X[:, 2])
    assert (moved[:, 3] == 0).all()


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("size", [2 * MAX_SIZE, 1e150, 1e308])
def test_huge_features_are_divided(layout, size):
    X = layout(np.random.default_rng(0).uniform(-1, 1, (20, 3)) * size)
    conditioning = condition(X)
    assert conditioning.offset is None
    assert np.log2(conditioning.scale) % 1 == 0
    assert LARGE_SIZE <= abs(conditioning(X)).max() < 2 * LARGE_SIZE


@given(
    seed=st.integers(0, 10**6),
    offset=st.sampled_from([0.0, 1e7, -1e9]),
    size=st.sampled_from([1.0, 1e10, 1e100]),
)
def test_scores_stay_the_same(seed, offset, size):
    rng = np.random.default_rng(seed)
    X = size * rng.normal([offset, 0.0, 1.0], 1.0, (15, 3))
    coef, intercept = rng.normal(size=(2, 3)), rng.normal(size=2)
    conditioning = condition(X)
    back, constant = conditioning.undo(coef, intercept)
    np.testing.assert_allclose(
        X @ back.T + constant, conditioning(X) @ coef.T + intercept, rtol=1e-6, atol=1e-4
    )
