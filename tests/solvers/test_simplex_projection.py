from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpll.solvers.label_smoothing import project_rows


def bisected(row):
    """Find the threshold by bisection."""
    low, high = row.min() - 1, row.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(row - middle, 0).sum() > 1 else (low, middle)
    return np.maximum(row - high, 0)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 6), scale=st.sampled_from([1e-3, 1.0, 1e3]))
def test_against_bisection(seed, n, scale):
    rng = np.random.default_rng(seed)
    indptr = np.concatenate(([0], np.cumsum(rng.integers(1, 9, n))))
    values = scale * rng.normal(size=indptr[-1]).round(1)
    projected = project_rows(indptr, values)
    assert (projected >= 0).all()
    for start, end in pairwise(indptr):
        assert projected[start:end].sum() == pytest.approx(1, abs=1e-9)
        np.testing.assert_allclose(projected[start:end], bisected(values[start:end]), atol=1e-9)


def test_points_of_the_simplex_stay():
    indptr, values = np.array([0, 1, 4]), np.array([1.0, 0.2, 0.0, 0.8])
    np.testing.assert_allclose(project_rows(indptr, values), values, atol=1e-15)
