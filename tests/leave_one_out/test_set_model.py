"""The model of the sets, against its formula taken row by row."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skpll import PLLOO, as_candidates
from skpll._errors import DiagnosisWarning
from skpll.engine.blocks import Block
from skpll.engine.limits import LIMITS
from skpll.large.blocks import LocalBlocks
from skpll.leave_one_out._loop import Loop, Settings
from skpll.leave_one_out._set_model import SetModel, has_set_model


@pytest.fixture
def problem():
    rng = np.random.default_rng(8)
    M = rng.random((40, 5)) < 0.4
    M[np.arange(40), rng.integers(0, 5, 40)] = True
    sets = as_candidates(M.astype(int))
    confidences = sets.row_normalized(rng.random(len(sets.indices)))
    return Block(np.zeros((40, 1)), sets, rng.uniform(0.5, 2, 40)), confidences


def by_hand(block, confidences, own=True):
    """Compute log P(S | j) for each candidate j of each row, one after the other."""
    M, Q, c = np.asarray(block.sets), block.sets.to_matrix(confidences).toarray(), block.weights
    overall = (c[:, None] * M * (1 - Q)).sum(axis=0) / c.sum()

    def rate(j, k, left_out):
        added = sum(c[i] * Q[i, j] * M[i, k] for i in range(len(c)) if i != left_out)
        count = sum(c[i] * Q[i, j] for i in range(len(c)) if i != left_out)
        return np.clip((added + 4 * overall[k]) / (count + 4), 1e-4, 1 - 1e-4)

    expected = []
    for i, row in enumerate(M):
        for j in np.flatnonzero(row):
            total = 0.0
            for k in range(len(row)):
                if k != j:
                    absent = np.log(1 - rate(j, k, None))
                    total += np.log(rate(j, k, i if own else None)) if row[k] else absent
            expected.append(total)
    return expected


def test_the_likelihood_of_a_set_is_its_formula(problem):
    block, confidences = problem
    found = SetModel.of(block, confidences).log_likelihoods(block, confidences)
    assert_allclose(found, by_hand(block, confidences), rtol=1e-10)


def test_other_examples_have_added_nothing(problem):
    block, confidences = problem
    found = SetModel.of(block, confidences).log_likelihoods(block, 0 * confidences)
    assert_allclose(found, by_hand(block, confidences, own=False), rtol=1e-10)


def test_blocks_make_no_difference(problem):
    block, confidences = problem
    pieces = [block.sample(np.arange(a, b), confidences) for a, b in ((0, 7), (7, 40))]
    store = LocalBlocks([piece for piece, _ in pieces])
    parts = [values for _, (values,) in pieces]
    found = store.joined(SetModel.of(store, parts).log_likelihoods(store, parts))
    expected = SetModel.of(block, confidences).log_likelihoods(block, confidences)
    assert_allclose(found, expected, rtol=1e-12)


def test_a_round_multiplies_with_a_power_of_it(problem):
    block, confidences = problem
    sets = block.sets
    scores = np.random.default_rng(0).uniform(0.1, 1, len(confidences))
    loop = Loop(block, lambda q: scores, Settings(1, 0.0, set_model=0.25), confidences)
    list(loop.rounds())
    likelihoods = SetModel.of(block, confidences).log_likelihoods(block, confidences)
    expected = sets.row_normalized(scores**1.5 * np.exp(0.25 * likelihoods))
    assert_allclose(loop.confidences, expected, rtol=1e-10)


def test_very_large_sets_are_not_modelled(problem, monkeypatch):
    block, _ = problem
    assert has_set_model(block)
    monkeypatch.setattr(LIMITS, "set_model_pairs", 4)
    assert not has_set_model(block)
    monkeypatch.setattr(LIMITS, "set_model_pairs", 1000)
    monkeypatch.setattr(LIMITS, "set_model_classes", 4)
    assert not has_set_model(block)


def with_a_label_in_every_set(seed):
    """Six easy classes, and a seventh label that is always a candidate and never right."""
    rng = np.random.default_rng(seed)
    y = rng.integers(6, size=300)
    X = 2 * rng.normal(size=(6, 5))[y] + rng.normal(size=(300, 5))
    return X[:200], as_candidates([{int(k), 6} for k in y[:200]]), X[200:], y[200:]


def test_a_label_in_every_set_explains_nothing():
    found = []
    for seed in range(2):
        X, S, X_new, y_new = with_a_label_in_every_set(seed)
        with pytest.warns(DiagnosisWarning, match="6 is a candidate in 100% of the sets"):
            model = PLLOO().fit(X, S)
        found.append(np.mean(model.predict(X_new) == y_new))
    assert min(found) > 0.6


def test_rates_of_one_are_kept_away_from_one():
    sets = as_candidates([{k % 3, 3} for k in range(30)])  # a label that is always there
    block = Block(np.zeros((30, 1)), sets, np.ones(30))
    confidences = np.tile([1.0, 0.0], 30)
    found = SetModel.of(block, confidences).log_likelihoods(block, confidences)
    assert_allclose(found, by_hand(block, confidences), rtol=1e-10)


@pytest.mark.parametrize(("limit", "value"), [("set_model_classes", 5), ("set_model_pairs", None)])
def test_sets_of_just_the_largest_size_are_modelled(problem, monkeypatch, limit, value):
    block, _ = problem
    pairs = (block.sets.sizes**2).sum() / 40
    monkeypatch.setattr(LIMITS, limit, pairs if value is None else value)
    assert has_set_model(block)
