from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import nnls

from skpll.solvers import reconstruction
from skpll.solvers.reconstruction import (
    difference_grams,
    label_residuals,
    nonnegative_least_squares,
    reconstruction_weights,
    simplex_least_squares,
)


def independent(rng, k, d):
    return rng.normal(size=(k, d)), rng.normal(size=d)


def duplicated(rng, k, d):
    A, x = independent(rng, k, d)
    return A[rng.integers(0, k, k)], x


def duplicates_of_the_example(rng, k, d):
    A, x = independent(rng, k, d)
    A[rng.integers(0, k, 2)] = x
    return A, x


def collinear(rng, k, d):
    A, x = independent(rng, k, d)
    return np.outer(rng.normal(size=k), A[0]), x


def with_zero_vectors(rng, k, d):
    A, x = independent(rng, k, d)
    A[rng.random(k) < 0.4] = 0
    return A, x


def zero_example(rng, k, d):
    A, x = independent(rng, k, d)
    return A, 0 * x


def whole_numbers(rng, k, d):
    return rng.integers(-1, 2, (k, d)).astype(float), rng.integers(-1, 2, d).astype(float)


def on_a_sphere(rng, k, d):
    A, x = independent(rng, k, d)
    A = 0.1 * A + x
    return A / np.linalg.norm(A, axis=1, keepdims=True), x / np.linalg.norm(x)


KINDS = [
    independent,
    duplicated,
    duplicates_of_the_example,
    collinear,
    with_zero_vectors,
    zero_example,
    whole_numbers,
    on_a_sphere,
]


def error(A, x, w):
    return np.sum((x - w @ A) ** 2)


def weights_of(A, x, **options):
    return reconstruction_weights(x[None], A, np.arange(len(A))[None], **options)[0]


def best_on_simplex(A, x):
    """Try every set of neighbours; the best feasible stationary point is the optimum."""
    D = x - A
    C = D @ D.T
    best, solution = np.inf, None
    for size in range(1, len(A) + 1):
        for chosen in map(list, combinations(range(len(A)), size)):
            system = np.ones((size + 1, size + 1))
            system[:size, :size] = C[np.ix_(chosen, chosen)]
            system[size, size] = 0
            w = np.linalg.lstsq(system, np.r_[np.zeros(size), 1.0])[0][:size]
            if abs(w.sum() - 1) > 1e-9 or w.min() < -1e-12:
                continue
            value = w @ system[:size, :size] @ w
            if value < best - 1e-13:
                best, solution = value, np.zeros(len(A))
                solution[chosen] = w
    return best, solution


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 12), d=st.integers(1, 15))
def test_nonnegative_weights_against_scipy(kind, seed, k, d):
    A, x = kind(np.random.default_rng(seed), k, d)
    w = weights_of(A, x)
    reference, norm = nnls(A.T, x)
    assert (w >= 0).all()
    assert error(A, x, w) == pytest.approx(norm**2, abs=1e-8)
    if kind is independent and k <= d / 2:
        np.testing.assert_allclose(w, reference, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 6), d=st.integers(1, 9))
def test_simplex_weights_against_all_active_sets(kind, seed, k, d):
    A, x = kind(np.random.default_rng(seed), k, d)
    w = weights_of(A, x, sum_to_one=True)
    best, reference = best_on_simplex(A, x)
    assert (w >= 0).all()
    assert w.sum() == pytest.approx(1, abs=1e-12)
    assert error(A, x, w) == pytest.approx(best, abs=1e-8)
    if kind is independent and k <= d / 2:
        np.testing.assert_allclose(w, reference, atol=1e-8)


@given(seed=st.integers(0, 10**6), k=st.integers(1, 40), rank=st.integers(1, 40))
def test_optimality_conditions_of_larger_problems(seed, k, rank):
    rng = np.random.default_rng(seed)
    A = rng.random((k, rank))
    G, b = A @ A.T, A @ rng.normal(size=rank)
    w = nonnegative_least_squares(G[None], b[None])[0]
    slope = G @ w - b
    assert (w >= 0).all()
    assert (slope >= -1e-9).all()
    np.testing.assert_allclose(slope[w > 0], 0, atol=1e-9)
    u = simplex_least_squares(G[None])[0]
    slope = G @ u
    assert (slope >= u @ slope - 1e-9).all()
    np.testing.assert_allclose(slope[u > 0], u @ slope, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_units_do_not_matter(scale):
    rng = np.random.default_rng(0)
    A, x = independent(rng, 5, 12)
    for options in ({}, {"sum_to_one": True}):
        expected = weights_of(A, x, **options)
        np.testing.assert_allclose(weights_of(scale * A, scale * x, **options), expected, rtol=1e-9)


def test_equal_neighbours_leave_a_feasible_choice():
    A, x = np.ones((4, 3)), np.ones(3)
    for options in ({}, {"sum_to_one": True}):
        w = weights_of(A, x, **options)
        assert w.sum() == pytest.approx(1)
        assert (w >= 0).all()


def test_nothing_to_reconstruct_from():
    X = np.eye(3)
    nobody = np.zeros((3, 0), dtype=np.int64)
    assert reconstruction_weights(X, X, nobody).shape == (3, 0)
    assert reconstruction_weights(X, X, nobody, sum_to_one=True).shape == (3, 0)
    opposite = reconstruction_weights(-X[:1], X, np.array([[0, 1, 2]]))
    assert opposite.tolist() == [[0, 0, 0]]


@pytest.fixture
def batch():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6)) * (rng.random((40, 6)) < 0.6)
    return X, rng.normal(size=(25, 6)), rng.integers(0, 40, (25, 4)), rng.integers(0, 3, 40)


@pytest.mark.parametrize("sum_to_one", [False, True])
def test_one_result_for_dense_and_sparse_in_whatever_blocks(batch, sum_to_one, monkeypatch):
    X, queries, neighbors, labels = batch
    whole = reconstruction_weights(queries, X, neighbors, sum_to_one=sum_to_one)
    for i in range(len(queries)):
        alone = weights_of(X[neighbors[i]], queries[i], sum_to_one=sum_to_one)
        np.testing.assert_allclose(whole[i], alone, atol=1e-12)
    residuals = label_residuals(queries, X, neighbors, labels, 4)
    monkeypatch.setattr(reconstruction, "BLOCK_VALUES", 200)
    for container in (np.asarray, sparse.csr_array):
        parts = container(queries), container(X), neighbors
        np.testing.assert_allclose(
            reconstruction_weights(*parts, sum_to_one=sum_to_one), whole, atol=1e-10
        )
        np.testing.assert_allclose(label_residuals(*parts, labels, 4), residuals, atol=1e-7)


def test_residuals_by_their_definition(batch):
    X, queries, neighbors, labels = batch
    residuals = label_residuals(queries, X, neighbors, labels, 4)
    weights = reconstruction_weights(queries, X, neighbors)
    for i, x in enumerate(queries):
        for label in range(4):
            of_label = labels[neighbors[i]] == label
            part = (weights[i] * of_label) @ X[neighbors[i]]
            assert residuals[i, label] == pytest.approx(np.linalg.norm(x - part), abs=1e-7)
    np.testing.assert_allclose(residuals[:, 3], np.linalg.norm(queries, axis=1))


def test_float32_is_solved_in_double_precision(batch):
    X, queries, neighbors, _ = batch
    X, queries = X.astype(np.float32), queries.astype(np.float32)
    single = reconstruction_weights(queries, X, neighbors)
    double = reconstruction_weights(queries.astype(float), X.astype(float), neighbors)
    assert single.dtype == np.float64
    np.testing.assert_allclose(single, double, atol=1e-12)


@pytest.mark.parametrize("block", [2**22, 20])
def test_grams_of_differences(monkeypatch, block):
    monkeypatch.setattr(reconstruction, "BLOCK_VALUES", block)
    rng = np.random.default_rng(0)
    X, neighbors = rng.normal(size=(9, 4)), rng.integers(0, 9, (9, 3))
    X[np.abs(X) < 0.4] = 0
    differences = X[:, None, :] - X[neighbors]
    expected = np.einsum("nkd,nld->nkl", differences, differences)
    for features in (X, sparse.csr_array(X)):
        np.testing.assert_allclose(difference_grams(features, neighbors), expected, atol=1e-12)
    assert difference_grams(X, neighbors[:, :0]).shape == (9, 0, 0)
