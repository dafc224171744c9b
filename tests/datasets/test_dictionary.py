"""Candidate sets that a dictionary makes."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from skpll.datasets import make_partial_labels


@pytest.fixture
def features():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 40)
    return rng.normal(size=(120, 3)) + 2 * np.eye(3)[y], y


def test_a_set_has_the_frequent_labels_of_the_word_and_the_own_one():
    X, y = [[0.0]] * 4 + [[1.0]] * 2, [0, 0, 0, 2, 1, 1]
    sets = {
        share: make_partial_labels(
            y, kind="dictionary", X=X, n_words=2, min_share=share, random_state=0
        )
        for share in (0.2, 0.3)
    }
    assert sets[0.3].to_lists() == [[0], [0], [0], [0, 2], [1], [1]]
    assert sets[0.2].to_lists() == [[0, 2]] * 4 + [[1], [1]]


def test_words_are_clusters_of_the_features(features):
    X, y = features
    S = make_partial_labels(y, kind="dictionary", X=X, random_state=0)
    assert S.contains(y).all()
    assert 1 < S.sizes.max() <= 3
    assert (S.sizes == 1).any()  # they arise by themselves
    assert S == make_partial_labels(y, kind="dictionary", X=X, random_state=0)
    assert S == make_partial_labels(y, kind="dictionary", X=7 * X, random_state=0)
    one = make_partial_labels(y, kind="dictionary", X=X, n_words=1, random_state=0)
    assert_array_equal(one.sizes, 3)
    few = make_partial_labels(y, kind="dictionary", X=X, min_share=0.4, random_state=0)
    assert few.sizes.sum() < S.sizes.sum()
    assert make_partial_labels(y, kind="dictionary", X=sparse.csr_array(X)).contains(y).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": None}, "X: kind='dictionary' needs the features"),
        ({"p": 0.5}, "p: has no meaning with kind='dictionary'"),
        ({"q": 0.5}, "q: has no meaning with kind='dictionary'"),
        ({"noise": 0.1}, "noise: has no meaning"),
        ({"min_share": 2.0}, "min_share: 2.0 is not a number between 0 and 1"),
        ({"n_words": 0}, "n_words: 0 is not a positive number"),
    ],
)
def test_mistakes_are_named(features, arguments, message):
    X, y = features
    with pytest.raises(ValueError, match=message):
        make_partial_labels(y, **{"kind": "dictionary", "X": X, **arguments})
