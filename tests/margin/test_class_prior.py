import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpll import as_candidates
from skpll.margin._class_prior import class_bounds, expected_counts
from skpll.solvers import assign_labels

SETS = [{0, 1}, {0, 1}, {0}, {1, 2, 3}]


def test_expected_counts():
    S = as_candidates(SETS, classes=range(5))
    np.testing.assert_allclose(expected_counts(S), [2, 4 / 3, 1 / 3, 1 / 3, 0])


def test_bounds_are_the_whole_numbers_around_the_expected_counts():
    S = as_candidates(SETS, classes=range(5))
    lower, upper = class_bounds(S, "candidates", 0.0)
    assert lower.tolist() == [2, 1, 0, 0, 0]
    assert upper.tolist() == [2, 2, 1, 1, 0]
    lower, upper = class_bounds(S, "candidates", 0.5)
    assert lower.tolist() == [1, 0, 0, 0, 0]
    assert upper.tolist() == [3, 2, 1, 1, 0]


def test_rounded_gives_what_is_missing_to_the_rarest():
    S = as_candidates(SETS, classes=range(5))
    lower, upper = class_bounds(S, "rounded", 0.0)
    assert lower.tolist() == upper.tolist() == [2, 1, 1, 0, 0]


def test_no_prior_is_no_bound():
    lower, upper = class_bounds(as_candidates(SETS), None, 0.3)
    assert lower.tolist() == [0] * 4
    assert upper.tolist() == [4] * 4


def test_given_shares():
    S = as_candidates(SETS)
    lower, upper = class_bounds(S, [2, 1, 1, 0], 0.0)
    assert lower.tolist() == upper.tolist() == [2, 1, 1, 0]
    lower, upper = class_bounds(S, np.array([0.4, 0.3, 0.2, 0.1]), 0.0)
    assert lower.tolist() == [1, 1, 0, 0]
    assert upper.tolist() == [2, 2, 1, 1]


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ([1, 2], "class_prior: 2 shares for 4 classes"),
        ([1, -1, 1, 1], "class_prior: shares have to be non-negative"),
        ([0, 0, 0, 0], "not all zero"),
        ([1, np.nan, 1, 1], "class_prior: shares"),
    ],
)
def test_bad_shares(prior, message):
    with pytest.raises(ValueError, match=message):
        class_bounds(as_candidates(SETS), prior, 0.0)


sets = st.lists(st.sets(st.integers(0, 6), min_size=1), min_size=1, max_size=40)


@given(rows=sets, slack=st.floats(0, 1))
def test_expected_counts_can_always_be_met(rows, slack):
    S = as_candidates(rows, classes=range(7))
    bounds = class_bounds(S, "candidates", slack)
    assert assign_labels(S.indptr, S.indices, np.zeros(len(S.indices)), *bounds).relaxed == 0


@given(rows=sets)
def test_rounded_counts_sum_to_the_number_of_examples(rows):
    S = as_candidates(rows, classes=range(7))
    lower, upper = class_bounds(S, "rounded", 0.0)
    assert lower.tolist() == upper.tolist()
    assert lower.sum() == len(S)
    assert (lower[expected_counts(S) == 0] == 0).all()
