"""Kernels against their formulas, wherever the features are."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.kernel_approximation import Nystroem as Reference

from skpll.engine import kernels
from skpll.engine.kernels import FeatureMap, KernelMap, median_distance


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 5)) * (rng.random((40, 5)) < 0.6)


def between(X, rows):
    return np.sqrt(((X[:, None] - rows[None]) ** 2).sum(axis=-1))


FORMULAS = {
    "laplacian": lambda X, rows, unit: np.exp(-0.7 * between(X, rows) / unit),
    "rbf": lambda X, rows, unit: np.exp(-0.7 * (between(X, rows) / unit) ** 2),
    "linear": lambda X, rows, unit: X @ rows.T,
}


@pytest.mark.parametrize("kernel", FORMULAS)
@pytest.mark.parametrize("left", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("right", [np.asarray, sparse.csr_array])
def test_kernels_are_their_formulas(rows, kernel, left, right):
    X = rows[:15] + 0.5 * rows[15:30]
    values = KernelMap(kernel, 0.7, 1.3, right(rows)).against(left(X))
    assert_allclose(values, FORMULAS[kernel](X, rows, 1.3), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", ["laplacian", "rbf"])
def test_features_may_be_far_from_zero(rows, kernel, dtype):
    offset = 1e3 if dtype == np.float32 else 1e8
    X = (np.round(rows * 64) / 64 + offset).astype(dtype)  # without a rounding error
    values = KernelMap(kernel, 0.7, 1.3, X).against(X)
    assert_allclose(values, FORMULAS[kernel](X - dtype(offset), X - dtype(offset), 1.3), atol=1e-6)
    assert_allclose(values[:7], KernelMap(kernel, 0.7, 1.3, X).against(X[:7]), atol=1e-6)


def test_equal_rows_have_no_distance(rows):
    copies = np.vstack([rows, rows])
    values = KernelMap("laplacian", 0.7, 1.0, rows + 1e3).against(copies + 1e3)
    assert_allclose(values[np.arange(80), np.arange(80) % 40], 1.0, atol=1e-12)


def test_the_unit_is_the_median_distance(rows, monkeypatch):
    X, draws = rows[rows.any(axis=1)], np.random.RandomState(0)
    apart = between(X, X)[np.triu_indices(len(X), 1)]
    median = np.median(apart[apart > 0])
    assert median_distance(X, draws) == pytest.approx(median)
    assert median_distance(X + 1e8, draws) == pytest.approx(median)
    assert median_distance(sparse.csr_array(X), draws) == pytest.approx(median)
    assert median_distance(np.ones((5, 2)), draws) == 1.0
    monkeypatch.setattr(kernels, "MAX_MEDIAN_ROWS", 20)
    assert median_distance(X, draws) == pytest.approx(median, rel=0.3)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_nystroem_features_multiply_to_the_kernel(rows, layout):
    landmarks = rows[:12]
    kernel = KernelMap("rbf", 0.5, 2.0, layout(landmarks))
    mapped = FeatureMap(kernel, whitening=kernel.whitening())(layout(rows))
    reference = Reference(kernel="rbf", gamma=0.125, n_components=12, random_state=0)
    reference.fit(landmarks)
    expected = reference.transform(rows)
    assert_allclose(mapped @ mapped.T, expected @ expected.T, atol=1e-6)
    exact = KernelMap("rbf", 0.5, 2.0, landmarks)
    assert_allclose(mapped[:12] @ mapped[:12].T, exact.against(landmarks), atol=1e-7)
