"""PL-LOO on so many examples that they are worked on in blocks, without a copy."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skpll import PLLOO, CandidateSets
from skpll.datasets import make_partial_classification
from skpll.engine.limits import LIMITS, is_large, number_of_landmarks

SETTINGS = [
    {"kernel": "linear", "alpha": 0.1, "n_landmarks": 40},
    {"kernel": "rbf", "gamma": 1.0, "alpha": 0.1, "n_landmarks": 40},
    {"kernel": "laplacian", "gamma": 0.5, "alpha": 0.1, "n_landmarks": 40, "noise": "auto"},
]


@pytest.fixture(scope="module")
def examples():
    X, S, y = make_partial_classification(2600, 12, 6, p=0.8, r=2, class_sep=2.0, random_state=0)
    return X, S, y


@pytest.fixture
def many(monkeypatch):
    """Take a few hundred examples for many, and little for a block."""
    monkeypatch.setattr(LIMITS, "rows_in_memory", 300)
    monkeypatch.setattr(LIMITS, "block_numbers", 2**14)


@pytest.mark.parametrize("settings", SETTINGS)
def test_many_examples_are_learned_from_as_few_are(examples, settings, monkeypatch):
    X, S, y = examples
    few = PLLOO(**settings).fit(X, S)
    monkeypatch.setattr(LIMITS, "rows_in_memory", 300)
    whole = PLLOO(**settings).fit(X, S)
    assert (whole.transduction_ == few.transduction_).mean() > 0.95
    right, sure = whole.transduction_ == y, whole.label_distributions_.max(axis=1).toarray()
    assert sure.mean() == pytest.approx(right.mean(), abs=0.05)
    assert (whole.transduction_ == y).mean() > (few.transduction_ == y).mean() - 0.01
    monkeypatch.setattr(LIMITS, "block_numbers", 2**14)
    blocks = PLLOO(**settings).fit(X, S)
    assert_allclose(blocks.label_distributions_.data, whole.label_distributions_.data, atol=1e-8)
    assert_allclose(blocks.predict_proba(X), whole.predict_proba(X), atol=1e-8)
    assert_allclose(blocks.missing_, whole.missing_, atol=1e-8)


def test_weights_groups_and_evidence_in_blocks(examples, many):
    X, S, _ = examples
    rng = np.random.default_rng(0)
    weights, groups = rng.uniform(0, 2, len(S)), rng.integers(0, 300, len(S))
    weights[:50] = 0
    voted = S.with_weights(rng.integers(1, 5, len(S.indices)))
    fits = []
    for numbers in (2**14, 2**22):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(LIMITS, "block_numbers", numbers)
            model = PLLOO(**SETTINGS[0]).fit(X, voted, sample_weight=weights, groups=groups)
            fits.append(model.label_distributions_.data)
    assert_allclose(*fits, atol=1e-8)


def test_single_precision_is_close_to_double(examples, many):
    X, S, _ = examples
    for settings in SETTINGS[:2]:
        double = PLLOO(**settings).fit(X, S)
        single = PLLOO(**settings).fit(X.astype(np.float32), S)
        assert_allclose(
            single.label_distributions_.data, double.label_distributions_.data, atol=1e-3
        )


def test_a_file_is_read_where_it_lies(examples, many, tmp_path):
    X, S, _ = examples
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    usual, from_file = PLLOO(**SETTINGS[0]).fit(X, S), PLLOO(**SETTINGS[0]).fit(mapped, S)
    assert_array_equal(from_file.label_distributions_.data, usual.label_distributions_.data)


def test_raw_features_are_not_copied(monkeypatch):
    rng = np.random.default_rng(0)
    n, q = 60_000, 10
    X = rng.standard_normal((n, 200), dtype=np.float32)
    y = rng.integers(0, q, n)
    X[np.arange(n), y] += 3
    indices = np.sort(np.stack([y, (y + rng.integers(1, q, n)) % q], axis=1), axis=1).ravel()
    S = CandidateSets(np.arange(n + 1) * 2, indices, np.arange(q))
    monkeypatch.setattr(LIMITS, "block_numbers", 2**17)
    tracemalloc.start()
    model = PLLOO(kernel="linear", alpha=0.1, prior_strength=0.2).fit(X, S)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (model.transduction_ == y).mean() > 0.9
    # It takes half of X; a copy, or the float64 of one half, would not fit. Threads that earlier
    # tests have left running may add to it.
    assert peak < 1.2 * X.nbytes
    tracemalloc.start()
    model.predict(X)
    assert tracemalloc.get_traced_memory()[1] < 2**28
    tracemalloc.stop()


def test_landmarks_by_the_number_of_examples():
    assert number_of_landmarks(10**6, 300) == 300
    assert [number_of_landmarks(n, "auto") for n in (5_000, 20_000, 20_001)] == [2500, 2500, 1000]
    assert [is_large(n, "auto") for n in (50_000, 50_001)] == [False, True]
    assert [is_large(n, 3000) for n in (60_000, 60_001)] == [False, True]


def test_equal_sets_are_groups_in_blocks_only_if_that_is_asked_for(examples, many):
    X, S, _ = examples
    auto, alone, together = (
        PLLOO(**SETTINGS[0], group_by=group_by, group_strength=1.0).fit(X, S)
        for group_by in ("auto", None, "candidates")
    )
    assert (auto.group_by_, alone.group_by_, together.group_by_) == (None, None, "candidates")
    assert_array_equal(auto.label_distributions_.data, alone.label_distributions_.data)
    assert not np.allclose(together.label_distributions_.data, alone.label_distributions_.data)
