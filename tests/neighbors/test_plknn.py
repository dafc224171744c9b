import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsClassifier

from skpll import IPAL, PALOC, PLECOC, PLKNN, PLLEAF, as_candidates


def brute_force(X, S, query, k, leave_out=None):
    """The formula of the paper, one example and one neighbour at a time."""
    distances = np.sqrt(((X - query) ** 2).sum(axis=1))
    order = [j for j in np.argsort(distances, kind="stable") if j != leave_out][:k]
    total = sum(distances[j] for j in order)
    votes = dict.fromkeys(S.classes.tolist(), 0.0)
    for j in order:
        weight = 1 - distances[j] / total if total > 0 and len(order) > 1 else 1.0
        for label in S[j]:
            votes[label] += weight
    return votes


@given(seed=st.integers(0, 10**6), n=st.integers(2, 25), k=st.integers(1, 12))
def test_against_the_formula(seed, n, k):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    S = as_candidates(
        [set(rng.choice(5, rng.integers(1, 4), replace=False).tolist()) for _ in range(n)],
        classes=range(5),
    )
    model = PLKNN(n_neighbors=k if k == 10 else min(k, n)).fit(X, S)
    queries = rng.normal(size=(4, 2))
    votes = np.array([list(brute_force(X, S, q, min(k, n)).values()) for q in queries])
    np.testing.assert_allclose(
        model.predict_proba(queries), votes / votes.sum(axis=1, keepdims=True), atol=1e-12
    )
    for i in range(n):
        votes = brute_force(X, S, X[i], min(k, n - 1), leave_out=i)
        inside = np.array([votes[label] for label in sorted(S[i])])
        expected = (
            inside / inside.sum() if inside.sum() > 0 else np.full(len(inside), 1 / len(inside))
        )
        found = model.label_distributions_[[i]].data
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_on_plain_labels_it_is_scikit_learns_classifier():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 4)), rng.integers(0, 3, 100)
    queries = rng.normal(size=(50, 4))
    for ours, theirs in (("uniform", "uniform"), ("inverse", "distance")):
        model = PLKNN(7, weights=ours).fit(X, y)
        reference = KNeighborsClassifier(7, weights=theirs).fit(X, y)
        np.testing.assert_allclose(
            model.predict_proba(queries), reference.predict_proba(queries), atol=1e-12
        )
        np.testing.assert_array_equal(model.predict(queries), reference.predict(queries))


def test_an_example_never_votes_for_itself_even_among_duplicates():
    X = np.zeros((15, 1))
    y = ["self"] + ["other"] * 14
    model = PLKNN(n_neighbors=3).fit(X, [{"self", "other"}, *({label} for label in y[1:])])
    assert model.transduction_[0] == "other"
    assert model.label_distributions_[[0]].toarray().tolist() == [[1.0, 0.0]]


def test_no_vote_for_any_candidate_leaves_them_even():
    X = [[0.0], [1.0], [2.0]]
    model = PLKNN(n_neighbors=1).fit(X, [{"a", "b"}, {"c"}, {"c"}])
    assert model.label_distributions_.toarray()[0].tolist() == [0.5, 0.5, 0.0]


def test_ties_go_to_the_first_label():
    model = PLKNN(n_neighbors=2).fit([[0.0], [0.0]], [{"b": 1, "c": 1}, {"c": 1, "b": 1}])
    assert model.predict([[3.0]]).tolist() == ["b"]


def test_metric():
    X = [[0.0, 10.0], [1.0, 0.0]]
    S = ["steep", "flat"]
    assert PLKNN(1).fit(X, S).predict([[0.1, 1.0]]) == ["flat"]
    assert PLKNN(1, metric="cosine").fit(X, S).predict([[0.1, 1.0]]) == ["steep"]
    scaled = PLKNN(1, metric="seuclidean", metric_params={"V": [0.01, 1e6]})
    assert scaled.fit(X, S).predict([[0.1, 1.0]]) == ["steep"]


def test_weights_by_a_function():
    X, S = [[0.0], [1.0], [1.1]], ["near", "far", "far"]
    assert PLKNN(3).fit(X, S).predict([[0.2]]) == ["far"]
    steep = PLKNN(3, weights=lambda d: np.exp(-9 * d)).fit(X, S)
    assert steep.predict([[0.2]]) == ["near"]
    with pytest.raises(ValueError, match="weights: the function has to return a non-negative"):
        PLKNN(3, weights=lambda d: -d).fit(X, S)
    with pytest.raises(ValueError, match=r"weights: .* shape \(3, 2\)"):
        PLKNN(2, weights=lambda d: d[:, :1]).fit(X, S)


def test_parallel_search_changes_nothing():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 4, 200)
    one, two = (PLKNN(n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.label_distributions_.data, two.label_distributions_.data)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


def test_blocks_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), rng.integers(0, 4, 50)
    whole = PLKNN().fit(X, y)
    monkeypatch.setattr(PLKNN, "_blocks", lambda self, n: [slice(0, 7), slice(7, n)])
    parts = PLKNN().fit(X, y)
    np.testing.assert_array_equal(parts.label_distributions_.data, whole.label_distributions_.data)
    np.testing.assert_array_equal(parts.predict(X), whole.predict(X))


def test_one_example():
    model = PLKNN().fit([[1.0]], [{"a": 1, "b": 1}])
    assert model.predict([[5.0]]).tolist() == ["a"]
    assert model.label_distributions_.data.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    "parameters", [{"n_neighbors": 0}, {"weights": "heavy"}, {"metric": "miles"}]
)
def test_bad_parameters(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        PLKNN(**parameters).fit([[0.0], [1.0]], [0, 1])


def test_evidence_divides_the_votes():
    X = [[0.0], [0.2], [0.4], [9.0]]
    S = [{"a": 3, "b": 1}, {"a": 1, "b": 1}, {"b": 2}, {"a": 1, "c": 1}]
    model = PLKNN(2, weights="uniform").fit(X, S)
    # The two nearest of 0.1 give 2 · 3/4 + 1 votes for a, and 2 · 1/4 + 1 for b.
    np.testing.assert_allclose(model.predict_proba([[0.1]]), [[2.5 / 4, 1.5 / 4, 0]])
    # The neighbours of the first example give 1 vote for a and 2 for b; it prefers a by 3 to 1.
    np.testing.assert_allclose(model.label_distributions_[[0]].data, [3 / 5, 2 / 5])


def test_equal_evidence_changes_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    S = as_candidates([{int(i % 4), int(rng.integers(0, 4))} for i in range(40)])
    plain, even = PLKNN().fit(X, S), PLKNN().fit(X, S.with_weights(np.ones(len(S.indices))))
    np.testing.assert_allclose(plain.predict_proba(X), even.predict_proba(X))
    np.testing.assert_array_equal(plain.transduction_, even.transduction_)


@pytest.mark.parametrize("method", [PLKNN, IPAL, PLLEAF, PALOC, PLECOC])
def test_weights_of_examples_are_refused_by_name(method):
    with pytest.raises(TypeError, match=r"fit\(\) got .* 'sample_weight'"):
        method().fit([[0.0], [1.0]], ["a", "b"], sample_weight=[1, 2])
