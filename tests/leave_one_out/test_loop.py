"""The loop against its formula, written out densely."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from skpll import PLLOO, CandidateSets, CrossFitClassifier, as_candidates
from skpll._temperature import FLOOR
from skpll.engine.blocks import Block
from skpll.large.blocks import LocalBlocks
from skpll.leave_one_out._loop import (
    Evidence,
    Loop,
    Settings,
    missing,
    opened,
)


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


def block_of(sets, weights=None, groups=None):
    """Return examples without features in memory."""
    weights = np.ones(len(sets)) if weights is None else weights
    return Block(np.zeros((len(sets), 1)), sets, weights, groups)


def blocks_of(block, cuts):
    """Cut examples into blocks."""
    ends = zip([0, *cuts], [*cuts, len(block)], strict=True)
    return LocalBlocks([block.take(slice(a, b)) for a, b in ends])


def test_a_round_is_the_formula(sets):
    rng = np.random.default_rng(1)
    scores = rng.uniform(-0.1, 1, len(sets.indices))
    loop = Loop(block_of(sets), lambda q: scores, Settings(1, 0.0, power=1.5))
    (record,) = loop.rounds()
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
        settings = Settings(50, -1.0, prior_strength=strength)
        loop = Loop(block_of(sets, weights), lambda q: scores, settings)
        list(loop.rounds())  # every round goes on from the scaling of the last one
        return weights @ dense(sets, loop.confidences)

    free, half, full = counts(0.0), counts(0.5), counts(1.0)
    assert_allclose(full, expected, rtol=5e-3)
    assert np.abs(half - expected).sum() < np.abs(free - expected).sum()
    assert np.abs(half - expected).sum() > np.abs(full - expected).sum()


def test_shares_that_are_given_are_met():
    S = as_candidates([{0, 1}] * 20)
    settings = Settings(3, 0.0, prior_strength=1.0, shares=np.array([3.0, 1.0]))
    loop = Loop(block_of(S), lambda q: np.full(40, 0.5), settings)
    list(loop.rounds())
    assert_allclose(dense(S, loop.confidences).mean(axis=0), [0.75, 0.25], rtol=1e-3)


def test_in_a_group_every_candidate_is_somebodys():
    S = as_candidates([{"a", "b"}] * 4 + [{"b", "c"}] * 4)
    scores = np.where(S.indices == 1, 0.9, 0.1)  # everything looks like b
    groups = np.repeat([0, 1], 4)
    settings = Settings(5, 0.0, group_strength=1.0)
    loop = Loop(block_of(S, groups=groups), lambda q: scores, settings)
    list(loop.rounds())
    for group in (slice(0, 4), slice(4, 8)):
        shares = dense(S, loop.confidences)[group].mean(axis=0)
        assert_allclose(shares[shares > 0.01], [0.5, 0.5], atol=0.01)


def test_likelihoods_of_the_evidence_multiply():
    S = as_candidates([{"a": 0.8, "b": 0.2}, {"a": 0.5, "b": 0.5}])
    loop = Loop(block_of(S), lambda q: np.full(4, 0.5), Settings(2, 0.0, power=1.0))
    list(loop.rounds())
    assert_allclose(loop.confidences, [0.8, 0.2, 0.5, 0.5])


def test_votes_count_as_much_as_the_voters_are_worth():
    S = as_candidates([{"a": 7, "b": 3}, {"a": 5, "b": 4, "c": 1}])
    confidences = np.array([0.9, 0.1, 0.6, 0.3, 0.1])
    right = (0.9 * 7 + 0.1 * 3 + 0.6 * 5 + 0.3 * 4 + 0.1 * 1) / 20
    odds = np.log(right * 2 / (1 - right))
    expected = odds * np.array([7, 3, 5, 4, 1])
    block = block_of(S)
    evidence = Evidence(block)
    evidence.update(block, confidences)
    assert_allclose(evidence.logits(block), expected)


def test_open_sets_have_the_odds_of_their_formula():
    S = CandidateSets([0, 2, 3], [0, 1, 2], ["a", "b", "c", "d"])
    block = block_of(S).changed(opened)
    logits = Evidence(block, 0.2).logits(block).reshape(2, 4)
    assert_allclose(logits[0], [0, 0] + [np.log(0.2 / 0.8 * 2 / 2)] * 2)
    assert_allclose(logits[1, [0, 1, 3]], np.log(0.2 / 0.8 * 1 / 3))
    assert logits[1, 2] == 0
    confidences = np.array([0.5, 0.2, 0.2, 0.1, 0.1, 0.1, 0.7, 0.1])
    assert_allclose(missing(block, confidences), [0.3, 0.3])


def test_the_share_of_open_sets_is_estimated_from_the_confidences():
    S = CandidateSets([0, 2, 3], [0, 1, 2], ["a", "b", "c", "d"])
    block = block_of(S, np.array([1.0, 3.0])).changed(opened)
    evidence = Evidence(block, "auto")
    evidence.update(block, np.array([0.5, 0.2, 0.2, 0.1, 0.1, 0.1, 0.6, 0.2]))
    assert evidence.share == pytest.approx((0.3 + 3 * 0.4) / 4)


@pytest.mark.parametrize(("outside", "share"), [(0.9, 0.5), (0.0, 1e-3), (0.3, 0.3)])
def test_the_estimated_share_is_kept_between_its_bounds(outside, share):
    S = CandidateSets([0, 1], [0], ["a", "b"])
    block = block_of(S).changed(opened)
    evidence = Evidence(block, "auto")
    assert evidence.share == 0.2  # before any round
    evidence.update(block, np.array([1 - outside, outside]))
    assert evidence.share == pytest.approx(share)
    given = Evidence(block, 0.1)
    given.update(block, np.array([1 - outside, outside]))
    assert given.share == 0.1


def test_the_evidence_adds_to_the_odds_of_open_sets():
    """Weights of the candidates that were given count in favour of them; the others have none."""
    S = as_candidates([{"a": 0.5, "b": 0.25}], classes=["a", "b", "c"])
    block = block_of(S).changed(opened)
    logits = Evidence(block, 0.2).logits(block)
    assert_allclose(logits, [np.log(0.5), np.log(0.25), np.log(0.2 / 0.8 * 2 / 1)])


@pytest.mark.parametrize("noise", [False, True])
@pytest.mark.parametrize("evidence", ["none", "votes", "likelihoods"])
def test_blocks_make_no_difference(sets, noise, evidence):
    rng = np.random.default_rng(3)
    n_entries, weights = len(sets.indices), rng.uniform(0.5, 2, 30)
    if evidence != "none":
        given = rng.integers(1, 4, n_entries) if evidence == "votes" else rng.random(n_entries)
        sets = sets.with_weights(given + 0.0)
    scores = rng.random(sets.shape)
    groups = rng.integers(0, 5, 30)

    def run(cuts):
        block = block_of(sets, weights, groups)
        store = block if cuts is None else blocks_of(block, cuts)
        if noise:
            store = store.changed(opened)
        sets_of_all = opened(block_of(sets)).sets if noise else sets
        answers = store.split(sets_of_all.entries(scores))
        expected = "auto" if noise else 0.0
        settings = Settings(3, 0.0, prior_strength=0.5, group_strength=0.25, noise=expected)
        loop = Loop(store, lambda q: answers, settings)
        records = list(loop.rounds())
        return store.joined(loop.confidences), [list(record.values()) for record in records]

    whole, history = run(None)
    for cuts in ((), (1,), (7, 8, 29)):
        again, records = run(cuts)
        assert_allclose(again, whole, atol=1e-12)
        assert_allclose(records, history, atol=1e-12)


def test_reading_off_the_candidates_is_the_dense_matrix(sets):
    P = softmax(np.random.default_rng(0).normal(size=sets.shape), axis=1)
    assert_allclose(dense(sets, sets.entries(P)), P * (np.asarray(sets) > 0))


def test_methods_that_weigh_candidates_take_annotators_with_confusions():
    rng = np.random.default_rng(3)
    truth = rng.integers(3, size=150)
    X = rng.normal(size=(150, 2)) + 1.2 * np.array([[0, 0], [2, 0], [0, 2]])[truth]
    cells = np.where(rng.random((150, 5)) < 0.7, truth[:, None], rng.integers(3, size=(150, 5)))
    cells[:, 2:] = [0, 1, 1]  # three of five always say the same
    votes = (np.repeat(np.arange(150), 5), cells.ravel())
    counted = CandidateSets.from_votes(*votes)
    known = CandidateSets.from_votes(*votes, annotators=np.tile(np.arange(5), 150))
    for method in (PLLOO(), CrossFitClassifier(LogisticRegression(), cv=3)):
        right = [np.mean(method.fit(X, sets).transduction_ == truth) for sets in (counted, known)]
        assert right[1] > max(right[0] + 0.1, 0.8)
