import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from skpll import as_candidates
from skpll.solvers import margins as module
from skpll.solvers.margins import ScoreBlocks, candidate_margins


@given(seed=st.integers(0, 10**6), n=st.integers(1, 12), q=st.integers(2, 6))
def test_against_the_definition(seed, n, q):
    rng = np.random.default_rng(seed)
    X, coef, intercept = rng.normal(size=(n, 3)), rng.normal(size=(q, 3)), rng.normal(size=q)
    if seed % 3 == 0:
        coef[1] = coef[0]
        intercept[1] = intercept[0]
    sets = [set(rng.choice(q, rng.integers(1, q + 1), replace=False).tolist()) for _ in range(n)]
    S = as_candidates(sets, classes=range(q))
    pattern = S.indptr, S.indices
    scores = X @ coef.T + intercept
    expected = [
        scores[i, p] - max(scores[i, r] for r in range(q) if r != p)
        for i in range(n)
        for p in sorted(S[i])
    ]
    for features in (X, sparse.csr_array(X)):
        blocks = ScoreBlocks(features, coef, intercept)
        np.testing.assert_allclose(candidate_margins(blocks, *pattern), expected, atol=1e-12)


@pytest.mark.parametrize("kept", [0, 2**25])
def test_blocks_change_nothing(kept, monkeypatch):
    rng = np.random.default_rng(0)
    X, coef, intercept = rng.normal(size=(50, 3)), rng.normal(size=(4, 3)), rng.normal(size=4)
    S = as_candidates([set(rng.choice(4, 2).tolist()) for _ in range(50)], classes=range(4))
    pattern, whole = (S.indptr, S.indices), ScoreBlocks(X, coef, intercept)
    margins = candidate_margins(whole, *pattern)
    monkeypatch.setattr(module, "MAX_BLOCK_SCORES", 28)
    monkeypatch.setattr(module, "MAX_KEPT_SCORES", kept)
    blocks = ScoreBlocks(X, coef, intercept)
    for _ in range(2):
        joined = np.vstack([part for _, part in blocks])
        np.testing.assert_allclose(joined, X @ coef.T + intercept, atol=1e-12)
    assert (blocks.kept is not None) == bool(kept)
    without = ScoreBlocks(X, coef, intercept, pattern)
    joined = np.vstack([part for _, part in without])
    np.testing.assert_allclose(
        joined, np.where(np.asarray(S), -np.inf, X @ coef.T + intercept), atol=1e-12
    )
    np.testing.assert_allclose(candidate_margins(blocks, *pattern), margins, atol=1e-12)


def test_without_a_rival_there_is_no_loss():
    margins = candidate_margins([(0, np.ones((2, 1)))], np.arange(3), np.zeros(2, np.int32))
    assert margins.tolist() == [1, 1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_of_minus_infinity(dtype):
    X = np.ones((1, 1), dtype=dtype)
    blocks = ScoreBlocks(X, np.zeros((3, 1)), np.array([0.0, -np.inf, 2.0]))
    margins = candidate_margins(blocks, np.array([0, 2]), np.array([0, 1]))
    assert margins.tolist() == [-2.0, -np.inf]
