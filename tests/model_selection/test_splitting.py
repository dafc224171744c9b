"""Folds made by candidate sets: every class, and every degree of ambiguity, has its part."""

import pickle

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, check_cv, cross_val_predict, cross_val_score

import skpll
from skpll import PLKNN, as_candidates
from skpll.datasets import make_partial_labels
from skpll.model_selection import StratifiedCandidateKFold
from skpll.model_selection._splitting import likely_codes


@pytest.fixture
def iris():
    """Sorted by class; nine of ten examples have a false candidate."""
    X, y = load_iris(return_X_y=True)
    return X, make_partial_labels(y, p=0.9, r=1, random_state=0), y


def folds(splitter, y):
    rows = np.zeros((y.shape[0] if hasattr(y, "shape") else len(y), 1))
    return [test for _, test in splitter.split(rows, y)]


def test_sorted_data_no_longer_fail(iris):
    X, S, y = iris
    model = PLKNN()
    naive = np.mean(cross_val_predict(model, X, S, cv=3) == y)
    stratified = np.mean(cross_val_predict(model, X, S, cv=StratifiedCandidateKFold(3)) == y)
    assert naive < 0.5
    assert stratified > 0.85


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("n_splits", [2, 3, 7])
def test_folds_partition_the_rows_and_share_out_classes_and_sizes(n_splits, shuffle):
    rng = np.random.default_rng(0)
    S = make_partial_labels(rng.choice(4, 203, p=[0.7, 0.2, 0.06, 0.04]), p=0.6, r=1)
    splitter = StratifiedCandidateKFold(n_splits, shuffle=shuffle)
    tests = folds(splitter, S)
    assert len(tests) == splitter.get_n_splits() == n_splits
    np.testing.assert_array_equal(np.sort(np.concatenate(tests)), np.arange(len(S)))
    for train, test in splitter.split(S, S):
        np.testing.assert_array_equal(np.sort(np.append(train, test)), np.arange(len(S)))
    cells = likely_codes(S) * 10 + S.sizes
    for kept in (np.zeros_like(cells), *(cells == cell for cell in np.unique(cells))):
        counts = [int((kept[test] > 0).sum()) for test in tests]
        assert max(counts) - min(counts) <= 1
    assert max(map(len, tests)) - min(map(len, tests)) <= 1


def test_plain_labels_are_stratified():
    y = np.repeat(["a", "b", "c"], [30, 12, 6])
    for test in folds(StratifiedCandidateKFold(3), y):
        assert np.unique(y[test], return_counts=True)[1].tolist() == [10, 4, 2]


def test_the_likely_label_is_the_rarest_candidate():
    S = as_candidates([{"a"}, {"a", "b"}, {"a", "b", "c"}, {"a"}, {"b"}])
    assert S.classes[likely_codes(S)].tolist() == ["a", "b", "c", "a", "b"]


def test_shuffling_is_seeded_and_without_it_folds_are_runs():
    S = as_candidates([{0}, {1}] * 30)
    one, other = (folds(StratifiedCandidateKFold(3, random_state=seed), S) for seed in (0, 1))
    again = folds(StratifiedCandidateKFold(3), S)
    assert any((a != b).any() for a, b in zip(one, other, strict=True))
    assert all((a == b).all() for a, b in zip(one, again, strict=True))
    plain = folds(StratifiedCandidateKFold(3, shuffle=False), S)
    assert [test.tolist() for test in plain] == [list(range(i, i + 20)) for i in (0, 20, 40)]


@pytest.mark.parametrize(
    "kind", [list, np.asarray, lambda S: S.to_matrix(), lambda S: S.to_lists()]
)
def test_every_format_gives_the_same_folds(iris, kind):
    _, S, _ = iris
    S = as_candidates(np.asarray(S))  # columns 0, 1, 2: the same classes in every format
    for ours, other in zip(
        folds(StratifiedCandidateKFold(4), S),
        folds(StratifiedCandidateKFold(4), kind(S)),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, other)


@pytest.mark.parametrize("routing", [False, True])
def test_it_is_a_splitter_of_scikit_learn(iris, routing):
    X, S, _ = iris
    assert "model_selection" in skpll.__all__
    splitter = StratifiedCandidateKFold(n_splits=3, random_state=1)
    assert check_cv(splitter, S, classifier=True) is splitter
    assert repr(splitter) == "StratifiedCandidateKFold(n_splits=3, random_state=1, shuffle=True)"
    with config_context(enable_metadata_routing=routing):
        search = clone(GridSearchCV(PLKNN(), {"n_neighbors": [1, 10]}, cv=splitter))
        assert search.fit(X, S).best_params_ == {"n_neighbors": 10}
        assert cross_val_score(PLKNN(), X, S, cv=splitter).mean() > 0.85
    copied = folds(pickle.loads(pickle.dumps(splitter)), S)
    assert all((a == b).all() for a, b in zip(copied, folds(splitter, S), strict=True))


@pytest.mark.parametrize("n_splits", [1, 2.5, "3"])
def test_bad_number_of_folds(n_splits):
    with pytest.raises(ValueError, match=r"n_splits: .* integer of at least 2"):
        StratifiedCandidateKFold(n_splits)


def test_bad_input():
    X, S = np.zeros((3, 1)), as_candidates([{0}, {1}, {0, 1}])
    with pytest.raises(ValueError, match="n_splits: 5 folds for 3 examples"):
        next(StratifiedCandidateKFold().split(X, S))
    with pytest.raises(ValueError, match="y: folds are made by candidate labels"):
        next(StratifiedCandidateKFold().split(X, None))
    with pytest.warns(UserWarning, match="groups: StratifiedCandidateKFold ignores them"):
        next(StratifiedCandidateKFold(3).split(X, S, groups=[0, 0, 1]))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        next(StratifiedCandidateKFold(3).split(X[:2], S))
