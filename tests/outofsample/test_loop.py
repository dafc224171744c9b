"""The loop against its formula, written out densely."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import softmax

from skpll import CandidateSets, as_candidates
from skpll._rows import on_candidates
from skpll.outofsample._loop import FLOOR, Evidence, Loop, class_prior, group_prior
from skpll.outofsample._noise import OpenSets


@pytest.fixture
def sets():
    rng = np.random.default_rng(0)
    M = rng.random((30, 4)) < 0.5
    M[np.arange(30), rng.integers(0, 4, 30)] = True
    return as_candidates(M.astype(int))


def dense(S, values):
    full = np.zeros(S.shape)
    full[np.repeat(np.arange(len(S)), S.sizes), S.indices] = values
    return full


def test_a_round_is_the_formula(sets):
    rng = np.random.default_rng(1)
    scores = rng.uniform(-0.1, 1, len(sets.indices))
    loop = Loop(sets, np.ones(30), lambda q: scores, power=1.5)
    (record,) = loop.rounds(1, tol=0)
    expected = np.where(np.asarray(sets) > 0, np.maximum(dense(sets, scores), FLOOR) ** 1.5, 0)
    expected /= expected.sum(axis=1, keepdims=True)
    assert_allclose(dense(sets, loop.confidences), expected)
    start = dense(sets, sets.initial_confidences())
    assert record["change"] == pytest.approx(np.abs(expected - start).sum() / 60)
    assert record["confidence"] == pytest.approx(expected.max(axis=1).mean())


def test_a_full_prior_meets_the_expected_counts_and_a_weaker_one_goes_part_of_the_way(sets):
    rng = np.random.default_rng(2)
    weights = rng.uniform(0.5, 2, 30)
    scores = rng.uniform(0.1, 1, len(sets.indices))
    expected = sets.expected_counts(weights)

    def counts(strength):
        loop = Loop(
            sets, weights, lambda q: scores, priors=[class_prior(sets, weights, None, strength)]
        )
        for _ in range(50):  # every round goes on from the scaling of the last one
            list(loop.rounds(1, tol=0))
        return weights @ dense(sets, loop.confidences)

    free, half, full = counts(0.0), counts(0.5), counts(1.0)
    assert_allclose(full, expected, rtol=5e-3)
    assert np.abs(half - expected).sum() < np.abs(free - expected).sum()
    assert np.abs(half - expected).sum() > np.abs(full - expected).sum()


def test_shares_that_are_given_are_met():
    S = as_candidates([{0, 1}] * 20)
    prior = class_prior(S, np.ones(20), np.array([3.0, 1.0]), 1.0)
    loop = Loop(S, np.ones(20), lambda q: np.full(40, 0.5), priors=[prior])
    list(loop.rounds(3, tol=0))
    assert_allclose(dense(S, loop.confidences).mean(axis=0), [0.75, 0.25], rtol=1e-3)


def test_in_a_group_every_candidate_is_somebodys():
    S = as_candidates([{"a", "b"}] * 4 + [{"b", "c"}] * 4)
    scores = np.where(S.indices == 1, 0.9, 0.1)  # everything looks like b
    groups = np.repeat([0, 1], 4)
    prior = group_prior(S, np.ones(8), groups, 1.0)
    loop = Loop(S, np.ones(8), lambda q: scores, priors=[prior])
    list(loop.rounds(5, tol=0))
    for group in (slice(0, 4), slice(4, 8)):
        shares = dense(S, loop.confidences)[group].mean(axis=0)
        assert_allclose(shares[shares > 0.01], [0.5, 0.5], atol=0.01)


def test_likelihoods_of_the_evidence_multiply():
    S = as_candidates([{"a": 0.8, "b": 0.2}, {"a": 0.5, "b": 0.5}])
    loop = Loop(S, np.ones(2), lambda q: np.full(4, 0.5), power=1.0)
    list(loop.rounds(2, tol=0))
    assert_allclose(loop.confidences, [0.8, 0.2, 0.5, 0.5])


def test_votes_count_as_much_as_the_voters_are_worth():
    S = as_candidates([{"a": 7, "b": 3}, {"a": 5, "b": 4, "c": 1}])
    confidences = np.array([0.9, 0.1, 0.6, 0.3, 0.1])
    right = (0.9 * 7 + 0.1 * 3 + 0.6 * 5 + 0.3 * 4 + 0.1 * 1) / 20
    odds = np.log(right * 2 / (1 - right))
    expected = odds * np.array([7, 3, 5, 4, 1])
    assert_allclose(Evidence(S).logits(confidences, np.ones(5)), expected)


def test_open_sets_have_the_odds_of_their_formula():
    S = CandidateSets([0, 2, 3], [0, 1, 2], ["a", "b", "c", "d"])
    opened = OpenSets(S, 0.2)
    logits = opened.logits(opened.start(), np.ones(8)).reshape(2, 4)
    assert_allclose(logits[0], [0, 0] + [np.log(0.2 / 0.8 * 2 / 2)] * 2)
    assert_allclose(logits[1, [0, 1, 3]], np.log(0.2 / 0.8 * 1 / 3))
    assert logits[1, 2] == 0
    confidences = np.array([0.5, 0.2, 0.2, 0.1, 0.1, 0.1, 0.7, 0.1])
    assert_allclose(opened.missing(confidences), [0.3, 0.3])


def test_the_share_of_open_sets_is_estimated_from_the_confidences():
    S = CandidateSets([0, 2, 3], [0, 1, 2], ["a", "b", "c", "d"])
    opened = OpenSets(S, None)
    confidences = np.array([0.5, 0.2, 0.2, 0.1, 0.1, 0.1, 0.7, 0.1])
    opened.logits(confidences, np.repeat([1.0, 3.0], 4))
    assert opened.share == pytest.approx(0.3)


def test_reading_off_the_candidates_is_the_dense_matrix(sets):
    P = softmax(np.random.default_rng(0).normal(size=sets.shape), axis=1)
    assert_allclose(dense(sets, on_candidates(sets, P)), P * (np.asarray(sets) > 0))
