import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpll import M3PL, as_candidates
from skpll._labels import class_shares
from skpll.datasets import make_partial_labels
from skpll.margin._start import class_bounds, rounded_counts
from skpll.solvers import assign_labels

SETS = [{0, 1}, {0, 1}, {0}, {1, 2, 3}]


def bounds_of(S, slack=0.0):
    return class_bounds(S.expected_counts(), len(S), slack)


def test_bounds_are_the_whole_numbers_around_the_expected_counts():
    S = as_candidates(SETS, classes=range(5))
    lower, upper = bounds_of(S)
    assert lower.tolist() == [2, 1, 0, 0, 0]
    assert upper.tolist() == [2, 2, 1, 1, 0]
    lower, upper = bounds_of(S, 0.5)
    assert lower.tolist() == [1, 0, 0, 0, 0]
    assert upper.tolist() == [3, 2, 1, 1, 0]


def test_rounded_gives_what_is_missing_to_the_rarest():
    assert rounded_counts(as_candidates(SETS).expected_counts()).tolist() == [2, 1, 1, 0]


def test_given_shares():
    classes, seen = np.array(["a", "b", "c", "d"]), np.arange(4)
    assert class_shares([2, 1, 1, 0], classes, seen).tolist() == [0.5, 0.25, 0.25, 0]
    shares = class_shares({"d": 0.1, "a": 0.4, "b": 0.3, "c": 0.2}, classes, seen)
    np.testing.assert_allclose(shares, [0.4, 0.3, 0.2, 0.1])
    part = class_shares([1, 5, 3, 7], classes, np.array([0, 2]))
    np.testing.assert_allclose(part, [0.25, 0.75])


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ([1, 2], "class_prior: 2 shares for 4 classes"),
        ([1, -1, 1, 1], "class_prior: shares have to be non-negative"),
        ([0, 0, 0, 0], "not all zero"),
        ([1, np.nan, 1, 1], "class_prior: shares"),
        ({0: 1, 1: 1, 2: 1}, "class_prior: 3 has no share"),
    ],
)
def test_bad_shares(prior, message):
    with pytest.raises(ValueError, match=message):
        class_shares(prior, np.arange(4), np.arange(4))


sets = st.lists(st.sets(st.integers(0, 6), min_size=1), min_size=1, max_size=40)


@given(rows=sets, slack=st.floats(0, 1))
def test_expected_counts_can_always_be_met(rows, slack):
    S = as_candidates(rows, classes=range(7))
    bounds = bounds_of(S, slack)
    assert assign_labels(S.indptr, S.indices, np.zeros(len(S.indices)), *bounds).relaxed == 0


@given(rows=sets)
def test_rounded_counts_sum_to_the_number_of_examples(rows):
    S, _ = as_candidates(rows, classes=range(7)).seen()
    assert rounded_counts(S.expected_counts()).sum() == len(S)


def skewed_problem(n, seed):
    """Three classes of very different size, apart from each other, with random false candidates."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.7, 0.2, 0.1])
    X = rng.normal(size=(n, 4)) + 3 * np.eye(3, 4)[y]
    return X, make_partial_labels(y, p=1.0, r=1, random_state=seed), y


def test_a_prior_with_a_price_gives_way_to_the_model():
    X, S, y = skewed_problem(400, 2)
    wrong = [1 / 3, 1 / 3, 1 / 3]
    binding = M3PL(class_prior=wrong, prior_price=None).fit(X, S)
    wished = M3PL(class_prior=wrong, prior_price=0.1).fit(X, S)
    assert np.bincount(binding.training_labels_).max() < 0.4 * len(y)
    assert np.bincount(wished.training_labels_).max() > 0.5 * len(y)
    assert wished.score(X, y) > binding.score(X, y)


@pytest.mark.parametrize("price", [-0.1, "much"])
def test_a_bad_price_is_named(price):
    X, S, _ = skewed_problem(30, 0)
    with pytest.raises(ValueError, match="prior_price"):
        M3PL(prior_price=price).fit(X, S)
