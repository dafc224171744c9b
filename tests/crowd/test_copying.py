"""Annotators who agree more than their agreement with others explains."""

import numpy as np
import pytest

from skpll.crowd import VoteTable, alike_pairs


def cells(n, skills, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(4, size=(n, 1))
    shape = (n, len(skills))
    return np.where(rng.random(shape) < np.array(skills), truth, rng.integers(4, size=shape))


@pytest.mark.parametrize("group", [2, 3])
def test_annotators_who_copy_are_named(group):
    votes = cells(200, [0.6, 0.7, 0.8, 0.6, 0.7, 0.8, 0.6, 0.7])
    votes[:, 1:group] = votes[:, :1]
    found = alike_pairs(VoteTable.from_wide(votes))
    assert {(pair.first, pair.second) for pair in found} == {
        (a, b) for a in range(group) for b in range(a + 1, group)
    }
    assert all(pair.agreement == 1 and pair.n_items == 200 for pair in found)


def test_the_expected_agreement_is_that_of_independent_annotators():
    votes = cells(4000, [0.9, 0.8, 0.7, 0.7, 0.7])
    votes[:, 1] = np.where(np.arange(4000) % 2, votes[:, 0], votes[:, 1])
    (pair,) = alike_pairs(VoteTable.from_wide(votes))
    assert (pair.first, pair.second) == (0, 1)
    right = [0.9 + 0.1 / 4, (0.9 + 0.8) / 2 + 0.15 / 4]
    by_chance = (1 - right[0]) * (1 - right[1]) / 3
    assert pair.expected == pytest.approx(right[0] * right[1] + by_chance, abs=0.03)


@pytest.mark.parametrize("seed", range(4))
def test_independent_annotators_are_not_named(seed):
    rng = np.random.default_rng(seed)
    votes = cells(300, rng.uniform(0.4, 0.95, 9), seed)
    hard = rng.random(300) < 0.4  # all are drawn to the same wrong label
    votes[hard] = np.where(rng.random((hard.sum(), 9)) < 0.5, 0, votes[hard])
    assert alike_pairs(VoteTable.from_wide(votes)) == []


def test_annotators_who_always_say_the_same_are_not_copying():
    votes = cells(300, [0.8] * 6)
    votes[:, 4:] = 2
    assert alike_pairs(VoteTable.from_wide(votes)) == []


def test_what_can_not_be_judged():
    votes = cells(200, [0.6, 0.6, 0.6])
    votes[:, 1] = votes[:, 0]
    assert alike_pairs(VoteTable.from_wide(votes)) == []  # no two others to compare with
    assert alike_pairs(VoteTable.from_counts([[5, 1], [2, 4]] * 20)) == []


def test_many_votes_are_looked_at_in_part(monkeypatch):
    votes = cells(400, [0.6] * 8)
    votes[:, 1] = votes[:, 0]
    monkeypatch.setattr("skpll.crowd._agreement._MAX_PAIR_ITEMS", 28 * 100)
    (pair,) = alike_pairs(VoteTable.from_wide(votes))
    assert pair.n_items == 100


def test_items_with_very_many_votes_are_left_out(monkeypatch):
    votes = cells(200, [0.6] * 8)
    votes[:, 1] = votes[:, 0]
    monkeypatch.setattr("skpll.crowd._agreement._MAX_VOTES", 8)
    assert len(alike_pairs(VoteTable.from_wide(votes))) == 1
    monkeypatch.setattr("skpll.crowd._agreement._MAX_VOTES", 7)
    assert alike_pairs(VoteTable.from_wide(votes)) == []
