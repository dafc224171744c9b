"""Candidate sets whose false labels are drawn one by one."""

import numpy as np
import pytest

from skpll.datasets import make_partial_labels

Y = np.tile(np.arange(5), 2000)


def shares(S):
    """Share of the examples that have each number of candidates, from one to five."""
    return np.bincount(S.sizes, minlength=6)[1:] / len(S)


def test_flip_draws_each_false_label_with_its_probability():
    S = make_partial_labels(Y, kind="flip", q=0.3, random_state=0)
    assert S.contains(Y).all()
    binomial = [0.7**4, 4 * 0.3 * 0.7**3, 6 * 0.3**2 * 0.7**2, 4 * 0.3**3 * 0.7, 0.3**4]
    np.testing.assert_allclose(shares(S), binomial, atol=0.02)
    again = make_partial_labels(Y, kind="flip", q=0.3, random_state=0)
    assert S == again
    assert S != make_partial_labels(Y, kind="flip", q=0.3, random_state=1)


def test_at_least_one_false_label_all_alike():
    S = make_partial_labels(Y, kind="flip", q=0.0, at_least_one=True, random_state=0)
    assert (S.sizes == 2).all()
    assert S.contains(Y).all()
    false = S.to_matrix().toarray()[Y == 0].mean(axis=0)[1:]
    np.testing.assert_allclose(false, 0.25, atol=0.05)


def test_subset_makes_all_sets_with_the_truth_equally_probable():
    S = make_partial_labels(Y, kind="subset", random_state=0)
    patterns, counts = np.unique(S.to_matrix().toarray()[Y == 2], axis=0, return_counts=True)
    assert len(patterns) == 2**4
    assert patterns[:, 2].all()
    np.testing.assert_allclose(counts / counts.sum(), 1 / 16, atol=0.03)


class Fixed:
    """A model with known confidences."""

    def get_params(self, deep=True):
        return {}

    def fit(self, X, y):
        self.classes_ = np.arange(5)
        return self

    def predict_proba(self, X):
        return np.tile([0.4, 0.3, 0.15, 0.15, 0.0], (len(X), 1))


def test_instance_flips_by_confidence_relative_to_the_largest():
    S = make_partial_labels(Y, kind="instance", X=np.zeros((len(Y), 1)), estimator=Fixed())
    assert S.contains(Y).all()
    found = S.to_matrix().toarray()
    np.testing.assert_allclose(found[Y == 0].mean(axis=0), [1, 1, 0.5, 0.5, 0], atol=0.05)
    np.testing.assert_allclose(found[Y == 1].mean(axis=0), [1, 1, 0.375, 0.375, 0], atol=0.05)


def test_instance_scaled_to_a_mean():
    S = make_partial_labels(Y, kind="instance", q=0.2, X=np.zeros((len(Y), 1)), estimator=Fixed())
    found = S.to_matrix().toarray()[Y == 0].mean(axis=0)
    np.testing.assert_allclose(found, [1, 0.5, 0.25, 0.25, 0], atol=0.05)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "flip"}, "q: None is not a number between 0 and 1"),
        ({"kind": "flip", "q": 2}, "q: 2 is not a number"),
        ({"kind": "flip", "q": 0.1, "p": 0.5}, "p: has no meaning with kind='flip'"),
        ({"kind": "subset", "noise": 0.1}, "noise: has no meaning with kind='subset'"),
        ({"kind": "instance"}, "X: kind='instance' needs the features"),
        ({"kind": "flip", "q": 0.1, "epsilon": 0.5}, "epsilon: has no meaning"),
        ({}, "p: None is not a number between 0 and 1"),
    ],
)
def test_arguments_that_do_not_fit(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_partial_labels([0, 1, 2], **arguments)
