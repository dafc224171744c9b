import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge

from skpll.engine import ridge
from skpll.engine.ridge import fit_ridge


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(3, [1.0, 5.0, 0.1], size=(70, 3))
    Y = sparse.csr_array(rng.random((70, 4)) * (rng.random((70, 4)) < 0.4))
    return X, Y, rng.uniform(0, 2, 70)


@pytest.mark.parametrize("block", [2**20, 40])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_against_scikit_learn(data, container, block, monkeypatch):
    monkeypatch.setattr(ridge, "MAX_BLOCK_NUMBERS", block)
    X, Y, weights = data
    mean = np.average(X, axis=0, weights=weights)
    variance = np.average((X - mean) ** 2, axis=0, weights=weights)
    alpha = 1e-3 * weights.sum() * variance.mean()
    reference = Ridge(alpha=alpha).fit(X, Y.toarray(), sample_weight=weights)
    coef, intercept = fit_ridge(container(X), Y, weights)
    np.testing.assert_allclose(coef, reference.coef_, atol=1e-8)
    np.testing.assert_allclose(intercept, reference.intercept_, atol=1e-8)


def test_units_do_not_matter(data):
    X, Y, weights = data
    coef, intercept = fit_ridge(X, Y, weights)
    for factor in (1e-6, 1e6):
        scaled, same = fit_ridge(factor * X, Y, weights)
        np.testing.assert_allclose(scaled * factor, coef, rtol=1e-4, atol=1e-7)
        np.testing.assert_allclose(same, intercept, rtol=1e-4, atol=1e-6)


def test_constant_features():
    coef, intercept = fit_ridge(np.ones((5, 2)), sparse.csr_array(np.eye(5, 2)), np.ones(5))
    np.testing.assert_allclose(np.ones(2) @ coef.T + intercept, [0.2, 0.2])


def test_features_far_from_zero(data):
    X, Y, weights = data
    X = np.round(64 * X) / 64  # so that the offset brings no rounding error
    coef, intercept = fit_ridge(X, Y, weights)
    moved, other = fit_ridge(X + 1e8, Y, weights)
    np.testing.assert_allclose(moved, coef, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(other + 1e8 * moved.sum(axis=1), intercept, atol=1e-4)
