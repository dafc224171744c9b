import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from skpll.solvers import support_vectors
from skpll.solvers.support_vectors import fit_support_vectors


def problem(seed, n=120):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    signs = np.where(X[:, 0] + 0.7 * rng.normal(size=n) > 0, 1, -1)
    return X, rbf_kernel(X, gamma=0.5), signs


def violation(K, signs, C, dual):
    """How far the conditions of the optimum are violated, written down once more."""
    lacks = signs - K @ dual
    can_grow, can_fall = dual < np.maximum(C * signs, 0), dual > np.minimum(C * signs, 0)
    return lacks[can_grow].max() - lacks[can_fall].min()


@pytest.mark.parametrize("members", [8, 31, 512])
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_against_libsvm(C, members, monkeypatch):
    monkeypatch.setattr(support_vectors, "MAX_MEMBERS", members)
    X, K, signs = problem(0)
    found = fit_support_vectors(K, signs, C, tol=1e-9)
    reference = SVC(C=C, gamma=0.5, tol=1e-9).fit(X, signs)
    outputs = K @ found.dual + found.intercept
    np.testing.assert_allclose(outputs, reference.decision_function(X), atol=2e-5)
    assert violation(K, signs, C, found.dual) <= 2e-9


@pytest.mark.parametrize("C", [0.1, 5.0, 1e3])
@pytest.mark.parametrize("seed", range(3))
def test_the_conditions_hold_to_the_tolerance(seed, C):
    _, K, signs = problem(seed)
    for tol in (1e-1, 1e-3, 1e-6):
        dual, _ = fit_support_vectors(K, signs, C, tol=tol)
        assert violation(K, signs, C, dual) <= 1.001 * tol
        assert abs(dual.sum()) < 1e-9 * C
        assert ((dual * signs >= 0) & (dual * signs <= C)).all()


def test_single_precision_is_enough_for_the_usual_tolerance():
    _, K, signs = problem(1)
    dual, _ = fit_support_vectors(K.astype(np.float32), signs, 10.0)
    assert violation(K, signs, 10.0, dual) <= 1.1e-3


def test_examples_that_take_no_part():
    _, K, signs = problem(2)
    part = np.arange(len(signs)) % 3 > 0
    dual, intercept = fit_support_vectors(K, np.where(part, signs, 0), 2.0, tol=1e-10)
    alone = fit_support_vectors(K[np.ix_(part, part)], signs[part], 2.0, tol=1e-10)
    assert not dual[~part].any()
    np.testing.assert_allclose(dual[part], alone.dual, atol=1e-6)
    assert intercept == pytest.approx(alone.intercept, abs=1e-6)


def test_twins_of_opposite_signs_and_no_free_variable():
    dual, intercept = fit_support_vectors(np.ones((2, 2)), np.array([1, -1]), 3.0)
    assert dual.tolist() == [3.0, -3.0]
    assert intercept == 0.0
