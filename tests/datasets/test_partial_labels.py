"""Candidate sets made from true labels follow the laws that they promise."""

import itertools
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, ShuffleSplit, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from skpll.datasets import _partial_labels as module
from skpll.datasets import load_dataset, make_partial_classification, make_partial_labels


def indicator(S):
    return S.to_matrix().toarray().astype(bool)


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 60),
    q=st.integers(2, 9),
    p=st.floats(0, 1),
    data=st.data(),
    seed=st.integers(0, 10),
)
def test_counts_are_exact_and_the_truth_is_inside(n, q, p, data, seed):
    r = data.draw(st.integers(1, q - 1))
    epsilon = data.draw(st.none() | st.floats(0, 1))
    y = np.random.RandomState(seed).randint(0, q, n)
    S = make_partial_labels(y, p=p, r=r, epsilon=epsilon, classes=range(q), random_state=seed)
    assert S.shape == (n, q)
    assert S.contains(y).all()
    assert set(S.sizes.tolist()) <= {1, r + 1}
    assert (S.sizes == r + 1).sum() == round(p * n)
    again = make_partial_labels(y, p=p, r=r, epsilon=epsilon, classes=range(q), random_state=seed)
    assert again == S


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 60), q=st.integers(3, 9), p=st.floats(0, 1), noise=st.floats(0, 1),
    data=st.data(),
)  # fmt: skip
def test_noise_takes_the_truth_out_and_nothing_else(n, q, p, noise, data):
    r = data.draw(st.integers(1, q - 2))
    y = np.random.RandomState(n).randint(0, q, n)
    clean = make_partial_labels(y, p=p, r=r, classes=range(q), random_state=5)
    noisy = make_partial_labels(y, p=p, r=r, noise=noise, classes=range(q), random_state=5)
    missing = ~noisy.contains(y)
    assert missing.sum() == round(noise * n)
    assert noisy.sizes.tolist() == clean.sizes.tolist()
    assert noisy[~missing] == clean[~missing]
    common = (indicator(noisy) & indicator(clean)).sum(axis=1)
    assert (common[missing] == clean.sizes[missing] - 1).all()


def test_noise_is_spread_over_examples_and_labels_alike():
    y = np.repeat(np.arange(5), 4000)
    S = make_partial_labels(y, p=0.5, r=1, noise=0.5, random_state=0)
    missing = ~S.contains(y)
    assert abs(missing[S.sizes == 2].mean() - 0.5) < 0.02
    labels = indicator(S)[missing & (S.sizes == 1) & (y == 2)].sum(axis=0)
    assert labels[2] == 0
    assert stats.chisquare(np.delete(labels, 2)).pvalue > 1e-3


def test_no_noise_leaves_the_sets_of_a_seed_as_they_were():
    """These sets were drawn before there was noise."""
    S = make_partial_labels([0, 1, 2, 3, 4, 5], p=0.5, r=2, random_state=0)
    assert S.to_lists() == [[0], [0, 1, 4], [2, 3, 4], [0, 1, 3], [4], [5]]


def test_noise_needs_a_label_outside_the_set():
    with pytest.raises(ValueError, match="noise: a set of 3 candidates has no label outside it"):
        make_partial_labels([0, 1, 2], p=0.5, r=2, noise=0.1)
    with pytest.raises(ValueError, match=r"noise: 1\.5 is not a number between 0 and 1"):
        make_partial_labels([0, 1, 2], p=0.5, noise=1.5)


def test_uniform_false_labels_are_equally_frequent():
    y = np.repeat(np.arange(5), 4000)
    M = indicator(make_partial_labels(y, p=1, r=2, random_state=0))
    for c in range(5):
        pairs = [frozenset(pair) for pair in itertools.combinations(set(range(5)) - {c}, 2)]
        found = [frozenset(np.flatnonzero(row)) - {c} for row in M[y == c]]
        assert stats.chisquare([found.count(pair) for pair in pairs]).pvalue > 1e-3


def test_the_ambiguous_examples_are_a_uniform_choice():
    y = np.arange(40) % 4
    hits = sum(make_partial_labels(y, p=0.25, random_state=seed).sizes == 2 for seed in range(600))
    assert hits.sum() == 600 * 10
    expected_sd = np.sqrt(600 * 0.25 * 0.75)
    assert np.abs(hits - 150).max() < 4.5 * expected_sd


@pytest.mark.parametrize("r", [1, 2])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 0.9])
def test_epsilon_is_the_probability_of_the_coupled_label(r, epsilon):
    q, per_class = 6, 5000
    y = np.repeat(np.arange(q), per_class)
    M = indicator(make_partial_labels(y, p=1, r=r, epsilon=epsilon, random_state=1))
    assert (M.sum(axis=1) == r + 1).all()
    others = (r - epsilon) / (q - 2)
    for c in range(q):
        rates = np.delete(M[y == c].mean(axis=0), c)
        coupled = np.argmax(np.abs(rates - others))
        assert abs(rates[coupled] - epsilon) < 0.03
        np.testing.assert_allclose(np.delete(rates, coupled), others, atol=0.03)


def test_epsilon_one_couples_every_class_to_one_label():
    y = np.tile(np.arange(7), 50)
    M = indicator(make_partial_labels(y, p=1, r=1, epsilon=1, random_state=2))
    for c in range(7):
        assert len(np.unique(M[y == c], axis=0)) == 1


def test_epsilon_zero_leaves_the_coupled_label_out():
    y = np.tile(np.arange(5), 400)
    M = indicator(make_partial_labels(y, p=1, r=2, epsilon=0, random_state=2))
    for c in range(5):
        assert (M[y == c].sum(axis=0) == 0).sum() == 1


def test_all_labels_when_r_is_the_largest():
    y = np.arange(30) % 4
    for epsilon in (None, 0.0, 1.0):
        S = make_partial_labels(y, p=1, r=3, epsilon=epsilon, random_state=0)
        assert S.sizes.tolist() == [4] * 30


@pytest.mark.parametrize(
    "y",
    [
        ["b", "a", "c", "a"],
        ("b", "a", "c", "a"),
        np.array(["b", "a", "c", "a"]),
        np.array(["b", "a", "c", "a"], dtype=object),
        pd.Series(["b", "a", "c", "a"], index=[9, 8, 7, 6]),
        pd.Series(["b", "a", "c", "a"], dtype="category"),
    ],
)
def test_labels_of_any_kind(y):
    S = make_partial_labels(y, p=0.5, random_state=0)
    assert S.classes.tolist() == ["a", "b", "c"]
    assert S.contains(["b", "a", "c", "a"]).all()
    assert make_partial_labels([*"baca"], p=0.5, random_state=0) == S


def test_classes_may_be_unsorted_and_more_than_occur():
    S = make_partial_labels([3, 1], p=1, r=3, classes=[7, 3, 5, 1], random_state=0)
    assert S.classes.tolist() == [1, 3, 5, 7]
    assert S.sizes.tolist() == [4, 4]


def test_random_state_object_is_advanced_and_none_differs():
    y = np.arange(300) % 10
    random = np.random.RandomState(0)
    first = make_partial_labels(y, p=0.7, random_state=random)
    assert first == make_partial_labels(y, p=0.7, random_state=0)
    assert first != make_partial_labels(y, p=0.7, random_state=random)
    assert make_partial_labels(y, p=0.7) != make_partial_labels(y, p=0.7)


def halves(n, seed):
    """Split the rows in the ways that people do, all with one seed."""
    yield train_test_split(np.arange(n), test_size=0.5, random_state=seed)
    yield from KFold(2, shuffle=True, random_state=seed).split(np.arange(n))
    yield from ShuffleSplit(1, test_size=0.5, random_state=seed).split(np.arange(n))


SEEDS = {
    "int": int,
    "RandomState": np.random.RandomState,
    "Generator": np.random.default_rng,
    "Generator of the splitters' kind": lambda seed: np.random.Generator(np.random.MT19937(seed)),
}


@pytest.mark.parametrize("make_seed", SEEDS.values(), ids=SEEDS.keys())
@pytest.mark.parametrize("make", ["labels", "classification"])
def test_splits_with_the_same_seed_do_not_see_the_ambiguity(make, make_seed):
    n, p = 1000, 0.5
    error = np.sqrt(p * (1 - p) / n)  # of the share in a half, rows drawn without replacement
    for seed in range(20):
        if make == "labels":
            S = make_partial_labels(np.arange(n) % 10, p=p, r=3, random_state=make_seed(seed))
        else:
            _, S, _ = make_partial_classification(n, 3, 5, p=p, random_state=make_seed(seed))
        for parts in halves(n, seed):
            for rows in parts:
                assert abs((S.sizes[rows] > 1).mean() - p) < 4.5 * error


@pytest.mark.parametrize("options", [{}, {"epsilon": 0.4}, {"kind": "feature"}])
def test_blocks_do_not_change_the_result(monkeypatch, options):
    X, _, y = load_dataset("iris", return_X_S_y=True)
    whole = make_partial_labels(y, p=0.9, X=X, random_state=4, **options)
    monkeypatch.setattr(module, "_BLOCK_CELLS", 7)
    assert make_partial_labels(y, p=0.9, X=X, random_state=4, **options) == whole


class Known(ClassifierMixin, BaseEstimator):
    """A classifier that says what it is told, whatever it is fitted on."""

    def __init__(self, weights=None):
        self.weights = weights

    def fit(self, X, y):
        assert len(X) == len(y)
        self.classes_ = np.arange(len(self.weights))
        return self

    def predict_proba(self, X):
        return np.tile(self.weights, (X.shape[0], 1))


def test_feature_draws_follow_the_model_without_replacement():
    weights = np.array([0.1, 0.45, 0.3, 0.1, 0.05])
    n, true, r = 30000, 0, 2
    y = np.full(n, true)
    S = make_partial_labels(
        y,
        p=1,
        r=r,
        kind="feature",
        X=np.zeros((n, 1)),
        estimator=Known(weights),
        classes=range(5),
        random_state=0,
    )
    left = weights[1:].sum()

    def chance(a, b):
        first, second = weights[a] / left, weights[b] / left
        return first * second / (1 - first) + second * first / (1 - second)

    pairs = list(itertools.combinations(range(1, 5), 2))
    expected = np.array([chance(a, b) for a, b in pairs])
    np.testing.assert_allclose(expected.sum(), 1)
    M = indicator(S)
    found = np.array([(M[:, a] & M[:, b]).sum() for a, b in pairs])
    assert stats.chisquare(found, n * expected).pvalue > 1e-3


def test_labels_of_no_probability_come_last():
    weights = np.array([0.5, 0.5, 0.0, 0.0])
    y = np.tile([0, 1], 100)
    common = {"kind": "feature", "X": np.zeros((200, 1)), "estimator": Known(weights)}
    S = make_partial_labels(y, p=1, r=1, classes=range(4), random_state=0, **common)
    assert (indicator(S)[:, :2]).all()
    S = make_partial_labels(y, p=1, r=3, classes=range(4), random_state=0, **common)
    assert S.sizes.tolist() == [4] * 200


class Recorder(Known):
    """Remembers, in a list that survives cloning, what it was fitted on and asked about."""

    log: list = []  # noqa: RUF012

    def fit(self, X, y):
        self.seen = set(X[:, 0].tolist())
        return super().fit(X, y)

    def predict_proba(self, X):
        self.log.append((self.seen, set(X[:, 0].tolist())))
        return super().predict_proba(X)


def test_probabilities_are_out_of_fold():
    Recorder.log.clear()
    n = 23
    X = np.arange(n, dtype=float)[:, np.newaxis]
    make_partial_labels(
        np.arange(n) % 3,
        p=1,
        kind="feature",
        X=X,
        estimator=Recorder(np.ones(3) / 3),
        random_state=0,
    )
    asked = [row for _, rows in Recorder.log for row in rows]
    assert sorted(asked) == list(range(n))
    assert len(Recorder.log) == 5
    for seen, rows in Recorder.log:
        assert seen == set(range(n)) - rows


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, pd.DataFrame, np.ndarray.tolist])
def test_feature_candidates_are_the_models_confusions(form):
    X, _, y = load_dataset("iris", return_X_S_y=True)
    S = make_partial_labels(y, p=1, r=1, kind="feature", X=form(X), random_state=0)
    assert S.contains(y).all()
    M = indicator(S)
    setosa, versicolor, virginica = range(3)
    assert M[y == "virginica", versicolor].mean() > 0.9
    assert M[y == "versicolor", virginica].mean() > 0.6
    assert M[y == "virginica", setosa].mean() < 0.1


def test_feature_with_another_estimator_and_rare_classes():
    X, _, y = load_dataset("wine", return_X_S_y=True)
    y = y.astype("U8")
    y[0] = "rare"
    S = make_partial_labels(
        y, p=0.6, r=2, kind="feature", X=X, estimator=GaussianNB(), random_state=0
    )
    assert S.contains(y).all()
    assert (S.sizes == 3).sum() == round(0.6 * 178)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"p": -0.1}, r"p: -0\.1 is not a number between 0 and 1"),
        ({"p": 1.5}, r"p: 1\.5"),
        ({"p": float("nan")}, "p: nan"),
        ({"p": "0.5"}, r"p: '0\.5'"),
        ({"p": 0.5, "r": 0}, "r: 0 is not a whole number of at least 1"),
        ({"p": 0.5, "r": 1.0}, r"r: 1\.0 is not a whole number"),
        ({"p": 0.5, "r": True}, "r: True is not a whole number"),
        ({"p": 0.5, "r": 3}, "r: 3 false candidates are too many for 3 classes, of which 2"),
        ({"p": 0.5, "epsilon": 1.1}, r"epsilon: 1\.1 is not a number between 0 and 1"),
        (
            {"p": 0.5, "kind": "magic"},
            "kind: 'magic' is unknown; choose 'uniform'",
        ),
        ({"p": 0.5, "kind": "feature"}, "X: kind='feature' needs the features"),
        (
            {"p": 0.5, "kind": "feature", "X": np.ones((3, 1)), "epsilon": 0.5},
            "epsilon: has no meaning with kind='feature'",
        ),
        ({"p": 0.5, "kind": "feature", "X": np.ones((5, 1))}, "X: has 5 rows for the 3 labels"),
        (
            {"p": 0.5, "kind": "feature", "X": np.ones((3, 1)), "estimator": LinearSVC()},
            r"estimator: LinearSVC\(\) has no predict_proba",
        ),
        ({"p": 0.5, "classes": [0, 1]}, "y: row 2: the label 2 is not one of the classes"),
        ({"p": 0.5, "classes": [0, 1, 1, 2]}, "classes: 1 is there twice"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_partial_labels([0, 1, 2], **arguments)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1, np.nan], "y: row 2: the label is nan"),
        (np.array([0, np.nan, 1]), "y: row 1: the label is nan"),
        (["a", None, "b"], "y: row 1: the label is None"),
        (pd.Series(["a", None, "b"]), "y: row 1: the label is"),
        ([], "y: there are no examples"),
        (np.zeros((3, 1)), r"y: expected one label per example, got an array of shape \(3, 1\)"),
        ([1, "a"], "y: row 1"),
        ([1, 1, 1], "too many for 1 classes"),
    ],
)
def test_bad_labels(y, message):
    with pytest.raises(ValueError, match=message):
        make_partial_labels(y, p=0.5)


def test_one_example_has_no_folds():
    with pytest.raises(ValueError, match="need two examples at least"):
        make_partial_labels([0], p=1, kind="feature", X=[[1.0]], classes=[0, 1])


def test_a_model_that_cannot_be_fitted_says_so_itself():
    with pytest.raises(ValueError, match="class"):
        make_partial_labels(
            [0, 0, 0],
            p=1,
            kind="feature",
            X=np.eye(3),
            estimator=LogisticRegression(),
            classes=[0, 1],
        )


@pytest.mark.parametrize("options", [{}, {"epsilon": 0.5}])
def test_memory_does_not_hold_all_scores(options):
    n, q = 50_000, 400
    y = np.random.RandomState(0).randint(0, q, n)
    tracemalloc.start()
    S = make_partial_labels(y, p=1, r=1, classes=range(q), random_state=0, **options)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert S.sizes.tolist() == [2] * n
    scores = 8 * n * q
    assert peak < scores / 4
