"""The baselines: what they say they do, and what every classifier here promises."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from skpll import as_candidates
from skpll.baselines import (
    KnownTruth,
    NeighborMajority,
    RandomCandidate,
    WeightedCopies,
    all_baselines,
)


@parametrize_with_checks([kind() for kind in all_baselines().values()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 3
    X = rng.normal(size=(200, 2)) + 3 * np.eye(3, 2)[y]
    M = (rng.random((200, 3)) < 0.3).astype(int)
    M[np.arange(200), y] = 1
    return X, as_candidates(M), y


def test_a_random_candidate_is_drawn_by_its_weight():
    S = as_candidates([{"a": 3, "b": 1}] * 4000)
    tree = RandomCandidate(DecisionTreeClassifier()).fit(np.arange(4000.0)[:, None], S)
    drawn = tree.predict(np.arange(4000.0)[:, None])
    assert (drawn == "a").mean() == pytest.approx(0.75, abs=0.03)


def test_random_candidates_are_candidates(data):
    X, S, _ = data
    tree = RandomCandidate(DecisionTreeClassifier(), random_state=3).fit(X, S)
    assert S.contains(tree.predict(X)).all()
    again = RandomCandidate(DecisionTreeClassifier(), random_state=3).fit(X, S)
    assert_array_equal(again.predict(X), tree.predict(X))


def test_weighted_copies_are_weighted_copies(data):
    X, S, _ = data
    rows = np.repeat(np.arange(200), S.sizes)
    expected = LogisticRegression(max_iter=1000).fit(
        X[rows], S.indices, sample_weight=1 / S.sizes[rows]
    )
    assert_allclose(WeightedCopies().fit(X, S).predict_proba(X), expected.predict_proba(X))
    with pytest.raises(ValueError, match="takes no sample_weight"):
        WeightedCopies(KNeighborsClassifier()).fit(X, S)


def test_neighbours_have_one_vote_each(data):
    X, S, _ = data
    model = NeighborMajority(n_neighbors=5).fit(X, S)
    nearest = np.argsort(((X[:, None] - X[None]) ** 2).sum(axis=-1), axis=1)[:, :5]
    shares = np.asarray(S) / S.sizes[:, None]
    assert_allclose(model.predict_proba(X), shares[nearest].mean(axis=1))


def test_the_truth_has_to_be_known(data):
    X, S, y = data
    assert KnownTruth().fit(X, y).score(X, y) > 0.9
    with pytest.raises(ValueError, match="has several candidates"):
        KnownTruth().fit(X, S)
