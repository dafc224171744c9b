"""The temperature against a search over a fine grid, and on data whose temperature is known."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import softmax

from skpll import as_candidates
from skpll._temperature import fit_temperature, log_scores, match_accuracy, set_likelihoods


def made_up(n, temperature, seed=0, noise=0.0):
    """Draw labels from known probabilities, and sets around them; give flattened scores."""
    rng = np.random.default_rng(seed)
    q = 6
    P = softmax(3 * rng.normal(size=(n, q)), axis=1)
    y = np.array([rng.choice(q, p=p) for p in P])
    M = rng.random((n, q)) < 0.3
    M[np.arange(n), y] = rng.random(n) >= noise
    M[M.sum(axis=1) == 0, 0] = True
    scores = P**temperature
    return as_candidates(M.astype(int)), np.log(scores / scores.sum(axis=1, keepdims=True))


def test_likelihoods_spelled_out():
    S, logits = made_up(20, 1.0)
    P = softmax(2 * logits, axis=1)
    inside = (P * np.asarray(S)).sum(axis=1)
    assert_allclose(set_likelihoods(S, logits, 0.5), np.log(inside))
    odds = S.sizes / np.maximum(6 - S.sizes, 0.5)
    noisy = np.log(0.9 * inside + 0.1 * odds * (1 - inside))
    assert_allclose(set_likelihoods(S, logits, 0.5, noise=0.1), noisy)


@pytest.mark.parametrize("true", [0.5, 1.0, 3.0])
def test_the_temperature_is_found_without_a_label(true):
    S, logits = made_up(4000, true)
    weights = np.random.default_rng(1).uniform(0.5, 1.5, len(S))
    found = fit_temperature(S, logits, weights)
    grid = np.exp(np.linspace(np.log(found) - 0.5, np.log(found) + 0.5, 101))
    best = max(grid, key=lambda T: weights @ set_likelihoods(S, logits, T))
    assert found == pytest.approx(best, rel=0.03)
    assert found == pytest.approx(true, rel=0.15)


def test_small_and_negative_scores_have_a_floor():
    assert_allclose(log_scores(np.array([[-3.0, 1.0]])), [[np.log(1e-4), 0]])


@pytest.mark.parametrize("true", [0.5, 1.0, 3.0])
def test_mean_confidence_is_matched_to_the_accuracy(true):
    rng = np.random.default_rng(0)
    P = softmax(2 * rng.normal(size=(4000, 5)), axis=1)
    labels = np.array([rng.choice(5, p=row) for row in P])
    logits = true * np.log(P)
    found = match_accuracy(logits, labels)
    assert found == pytest.approx(true, rel=0.1)
    confidence = softmax(logits / found, axis=1).max(axis=1).mean()
    assert confidence == pytest.approx((logits.argmax(axis=1) == labels).mean(), abs=1e-3)


def test_temperatures_have_bounds():
    certain, flat = np.log([[0.9, 0.05, 0.05]] * 9), np.zeros((9, 3))
    assert match_accuracy(certain, np.ones(9, dtype=int)) == 20
    assert match_accuracy(flat, np.zeros(9, dtype=int)) == 1 / 20
