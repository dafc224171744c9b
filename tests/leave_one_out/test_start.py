"""The convex start: projections, and the minimum of the error of the regression."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import LinearConstraint, minimize

from skpll import as_candidates
from skpll.engine.blocks import Block
from skpll.engine.kernels import KernelMap
from skpll.large.blocks import LocalBlocks
from skpll.leave_one_out import _start
from skpll.leave_one_out._regression import System
from skpll.leave_one_out._start import convex_start, in_every_set, project


@pytest.fixture
def block():
    rng = np.random.default_rng(5)
    M = rng.random((14, 4)) < 0.5
    M[np.arange(14), rng.integers(0, 4, 14)] = True
    X = rng.normal(size=(14, 2))
    return Block(X, as_candidates(M.astype(int)), rng.uniform(0.5, 2, 14))


def rows_of(block, values):
    return np.split(values, block.sets.indptr[1:-1])


def test_a_projection_is_the_nearest_point_of_the_simplex(block):
    values = 2 * np.random.default_rng(1).normal(size=len(block.sets.indices))
    projected = project(block, values, penalties=np.zeros(4))
    for row, found in zip(rows_of(block, values), rows_of(block, projected), strict=True):
        assert found.sum() == pytest.approx(1)
        assert (found >= 0).all()
        # the nearest point is that from which no point of the simplex lies ahead: at a corner,
        # the product of the direction to the point and to the corner is not positive
        assert ((row - found) @ (np.eye(len(row)) - found).T).max() <= 1e-12


@pytest.mark.parametrize("kernel", [KernelMap("rbf", 1.0, 1.0), KernelMap("linear", 1.0, 1.0)])
def test_the_start_minimizes_the_error_of_the_regression(block, kernel, monkeypatch):
    monkeypatch.setattr(_start, "MAX_TURNS", 5000)
    monkeypatch.setattr(_start, "TOLERANCE", 1e-9)
    alpha, c = 0.3, block.weights
    ridge = System.of(block, kernel, 100, np.random.RandomState(0)).ridge(alpha)
    found = convex_start(ridge.store, ridge.descended)
    n, sizes = len(block.sets), block.sets.sizes
    if kernel.kernel == "rbf":
        K = np.exp(-((block.X[:, None] - block.X[None]) ** 2).sum(axis=2))
    else:
        Z = ridge.store.Z
        K = Z @ Z.T
    center = np.eye(n) - np.outer(np.ones(n), c / c.sum())
    H = alpha * center.T @ np.linalg.inv(K + alpha * np.diag(1 / c)) @ center

    def error(q):
        Q = block.sets.to_matrix(q).toarray()
        return np.sum(Q * (H @ Q)), 2 * block.sets.entries(H @ Q)

    sums = np.repeat(np.eye(n), sizes, axis=1)
    best = minimize(
        error,
        np.repeat(1 / sizes, sizes),
        jac=True,
        method="SLSQP",
        bounds=[(0, 1)] * sizes.sum(),
        constraints=[LinearConstraint(sums, 1, 1)],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert error(found)[0] == pytest.approx(best.fun, rel=1e-5, abs=1e-8)
    assert_allclose(sums @ found, 1)


def test_blocks_make_no_difference(block):
    def start(store):
        system = System.of(store, KernelMap("linear", 1.0, 1.0), 100, np.random.RandomState(0))
        ridge = system.ridge(0.3)
        return store.joined(convex_start(ridge.store, ridge.descended))

    pieces = [block.sample(np.arange(a, b))[0] for a, b in ((0, 5), (5, 14))]
    assert_allclose(start(LocalBlocks(pieces)), start(block), atol=1e-9)


def test_a_label_in_every_set_is_left_out():
    sets = [{"a", "z"}, {"b", "z"}, {"c", "z"}, {"a", "b", "z"}]
    block = Block(np.eye(4), as_candidates(sets), np.ones(4))
    assert in_every_set(block).tolist() == [False, False, False, True]
    found = block.sets.to_matrix(convex_start(block, lambda q: q)).toarray()
    assert_allclose(found, [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0.5, 0.5, 0, 0]])


@pytest.mark.parametrize(
    "sets",
    [
        [{"a", "z"}, {"b", "z"}, {"c", "z"}, {"z"}],  # right at times
        [{"a", "z"}, {"a", "z"}, {"a", "z"}],  # one of two classes
        [{"a", "z"}, {"b", "z"}, {"c"}],  # not in every set
    ],
)
def test_other_labels_are_not(sets):
    assert not in_every_set(Block(np.eye(len(sets)), as_candidates(sets), np.ones(len(sets)))).any()
