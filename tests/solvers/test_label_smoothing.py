import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from tests.regression.literal import quadratic_program

from skpll.solvers.label_smoothing import propagate_labels, smooth_labels


def problem(seed, n=8, q=4, k=3):
    """A graph with rows that sum to one, and candidate sets in CSR form."""
    rng = np.random.default_rng(seed)
    W = np.zeros((n, n))
    for i in range(n):
        others = rng.permutation(np.delete(np.arange(n), i))[:k]
        W[i, others] = rng.dirichlet(np.ones(len(others)))
    Y = rng.random((n, q)) < 0.5
    Y[np.arange(n), rng.integers(0, q, n)] = True
    pattern = sparse.csr_array(Y)
    return sparse.csr_array(W), pattern.indptr, pattern.indices, Y


def generic_optimum(W, Y, evidence=None, pull=1.0):
    """Solve by a general method for constrained problems."""
    A = np.eye(len(Y)) - W.toarray()
    return generic_solution(A.T @ A, Y, evidence, 0.0 if evidence is None else pull)[0]


def generic_solution(M, Y, evidence, pull):
    E = np.zeros(Y.shape)
    E[Y] = 0.0 if evidence is None else evidence
    F = quadratic_program(M + pull * np.eye(len(Y)), pull * E, Y)
    return 0.5 * (np.sum(F * (M @ F)) + pull * np.sum((F - E) ** 2)), F[Y]


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6))
def test_against_a_generic_solver(seed):
    W, indptr, indices, Y = problem(seed)
    result = smooth_labels(W, indptr, indices, tol=1e-9, max_iter=20000)
    assert result.converged
    assert result.gap < 1e-6
    assert (result.values >= 0).all()
    np.testing.assert_allclose(np.add.reduceat(result.values, indptr[:-1]), 1)
    assert result.objective[-1] == pytest.approx(generic_optimum(W, Y), abs=1e-7)


@settings(max_examples=10)
@given(seed=st.integers(0, 10**6))
def test_evidence_against_a_generic_solver(seed):
    W, indptr, indices, Y = problem(seed)
    evidence = np.random.default_rng(seed).dirichlet(np.ones(len(indices)))
    result = smooth_labels(W, indptr, indices, evidence, tol=1e-9, max_iter=20000)
    assert result.converged
    assert result.objective[-1] == pytest.approx(generic_optimum(W, Y, evidence), abs=1e-7)


@settings(max_examples=10)
@given(seed=st.integers(0, 10**6), pull=st.floats(0.01, 10))
def test_the_weight_of_the_evidence_and_the_start(seed, pull):
    W, indptr, indices, Y = problem(seed)
    rng = np.random.default_rng(seed)
    evidence = rng.normal(size=len(indices))
    start = rng.dirichlet(np.ones(Y.shape[1]), size=len(Y)) * Y + Y
    start = (start / start.sum(axis=1, keepdims=True))[Y]
    result = smooth_labels(
        W, indptr, indices, evidence, pull=pull, start=start, tol=1e-10, max_iter=20000
    )
    assert result.converged
    assert result.objective[-1] == pytest.approx(generic_optimum(W, Y, evidence, pull), abs=1e-7)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), strength=st.sampled_from([0.0, 0.005, 1.0, 30.0]))
def test_propagation_against_a_generic_solver(seed, strength):
    W, indptr, indices, Y = problem(seed)
    A = (W + W.T).toarray()
    A[0], A[:, 0] = 0, 0  # an example without neighbours
    D = np.where(A.sum(axis=1) > 0, A.sum(axis=1), 1)
    M = strength * (np.eye(len(Y)) - A / np.sqrt(np.outer(D, D)))
    evidence = np.random.default_rng(seed).normal(size=len(indices))
    result = propagate_labels(
        sparse.csr_array(A), indptr, indices, evidence, strength=strength, tol=1e-12
    )
    assert result.converged
    value, solution = generic_solution(M, Y, evidence, 1.0)
    assert result.objective[-1] == pytest.approx(value, abs=1e-7)
    np.testing.assert_allclose(result.values, solution, atol=1e-4)


def test_objective_is_the_formula_and_never_rises():
    W, indptr, indices, Y = problem(0, n=60, q=6, k=5)
    result = smooth_labels(W, indptr, indices, tol=1e-8)
    F = sparse.csr_array((result.values, indices, indptr), shape=Y.shape).toarray()
    formula = 0.5 * np.sum((F - W @ F) ** 2)
    assert result.objective[-1] == pytest.approx(formula)
    assert (np.diff(result.objective) < 0).all()
    assert result.converged


def test_the_gap_bounds_the_distance_to_the_optimum():
    W, indptr, indices, _ = problem(1, n=60, q=6, k=5)
    optimum = smooth_labels(W, indptr, indices, tol=1e-10, max_iter=10**5).objective[-1]
    for max_iter in (1, 3, 10, 30):
        gaps = []
        early = smooth_labels(
            W,
            indptr,
            indices,
            tol=0,
            max_iter=max_iter,
            report=lambda _, gap, g=gaps: g.append(gap),
        )
        assert not early.converged
        assert len(early.objective) == max_iter + 1
        assert early.objective[-1] - optimum <= early.gap + 1e-12
        assert gaps[-1] == early.gap


def test_certain_labels_leave_nothing_to_do():
    W, *_ = problem(2)
    result = smooth_labels(W, np.arange(9), np.arange(8) % 4)
    assert result.values.tolist() == [1.0] * 8
    assert result.converged
    assert len(result.objective) == 1


def test_exact_zero_tolerance_ends():
    W, indptr, indices, _ = problem(3)
    result = smooth_labels(W, indptr, indices, tol=0, max_iter=10**5)
    assert result.converged
    assert len(result.objective) < 10**5
    assert result.gap < 1e-6
