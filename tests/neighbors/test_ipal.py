import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import nnls
from sklearn.exceptions import ConvergenceWarning

from skpll import CandidateSets, as_candidates
from skpll._iteration import InterruptedFitWarning
from skpll.neighbors.ipal import IPAL


def nearest(x, X, k, leave_out=None):
    order = np.argsort(np.linalg.norm(X - x, axis=1), kind="stable")
    return [j for j in order if j != leave_out][:k]


def reference(X, S, queries, k, alpha, n_iter):
    """The method with dense matrices, one row at a time."""
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    n = len(X)
    W = np.zeros((n, n))
    for i in range(n):
        around = nearest(X[i], X, k, leave_out=i)
        weights = nnls(X[around].T, X[i])[0]
        W[i, around] = weights / weights.sum()
    Y = np.asarray(S).astype(float)
    F0 = Y / Y.sum(axis=1, keepdims=True)
    F = F0
    for _ in range(n_iter):
        F = (alpha * W @ F + (1 - alpha) * F0) * Y
        F /= F.sum(axis=1, keepdims=True)
    F = F * F0.sum(axis=0) / F.sum(axis=0)
    labels = F.argmax(axis=1)
    residuals = []
    for x in queries / np.linalg.norm(queries, axis=1, keepdims=True):
        around = nearest(x, X, k)
        weights = nnls(X[around].T, x)[0]
        parts = [(weights * (labels[around] == label)) @ X[around] for label in range(Y.shape[1])]
        residuals.append([np.linalg.norm(x - part) for part in parts])
    return F / F.sum(axis=1, keepdims=True), labels, np.array(residuals)


@pytest.mark.parametrize(("k", "alpha"), [(3, 0.95), (5, 0.5), (60, 0.0)])
def test_against_the_method_written_down_row_by_row(data, k, alpha):
    X, S, queries = data
    model = IPAL(k, alpha=alpha, tol=1e-3).fit(X, S)
    F, labels, residuals = reference(X, S, queries, k, alpha, model.n_iter_)
    np.testing.assert_allclose(model.label_distributions_.toarray(), F, atol=1e-8)
    np.testing.assert_array_equal(model.transduction_, labels)
    np.testing.assert_allclose(model.decision_function(queries), -residuals, atol=1e-7)
    np.testing.assert_array_equal(model.predict(queries), residuals.argmin(axis=1))
    confidences = (1 / residuals) / (1 / residuals).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(queries), confidences, atol=1e-6)


def test_the_length_of_a_row_does_not_matter(data):
    X, S, queries = data
    factors = np.random.default_rng(1).uniform(0.1, 10, (60, 1))
    one, other = IPAL().fit(X, S), IPAL().fit(X * factors, S)
    np.testing.assert_allclose(
        other.label_distributions_.data, one.label_distributions_.data, atol=1e-9
    )
    np.testing.assert_array_equal(other.predict(queries * 7), one.predict(queries))


def test_propagation_ends_at_tol_and_says_when_it_does_not(data):
    X, S, _ = data
    model = IPAL(tol=1e-6, max_iter=1000).fit(X, S)
    changes = [record["change"] for record in model.history_]
    assert len(changes) == model.n_iter_ < 1000
    assert changes[-1] <= 1e-6 < changes[-2]
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        assert IPAL(max_iter=2).fit(X, S).n_iter_ == 2


def test_verbose_shows_the_rounds(data, capsys):
    X, S, _ = data
    model = IPAL(verbose=1).fit(X, S)
    assert f"{model.n_iter_}/100" in capsys.readouterr().err


def test_sparse_features(data):
    X, S, queries = data
    X = np.where(np.abs(X) > 0.5, X, 0)
    dense, compressed = IPAL().fit(X, S), IPAL().fit(sparse.csr_array(X), S)
    np.testing.assert_allclose(
        compressed.label_distributions_.data, dense.label_distributions_.data, atol=1e-7
    )
    np.testing.assert_allclose(
        compressed.decision_function(sparse.csr_array(queries)),
        dense.decision_function(queries),
        atol=1e-6,
    )


def test_a_training_example_is_reconstructed_by_itself(data):
    X, S, _ = data
    model = IPAL().fit(X, S)
    np.testing.assert_array_equal(model.predict(X), model.transduction_)
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores.max(axis=1), 0, atol=1e-6)
    assert scores.min() >= -1 - 1e-6


def test_zero_rows_and_duplicates():
    X = np.array([[0.0, 0.0]] * 3 + [[1.0, 0.0]] * 4 + [[0.0, 1.0]] * 4)
    S = [{"a", "b"}] * 3 + [{"a"}, {"a", "b"}, {"a"}, {"a"}] + [{"b"}, {"b"}, {"a", "b"}, {"b"}]
    model = IPAL(n_neighbors=3).fit(X, S)
    assert model.transduction_[3:].tolist() == ["a"] * 4 + ["b"] * 4
    assert model.predict([[0.0, 0.0]]).tolist() == ["a"]
    np.testing.assert_allclose(model.predict_proba([[0.0, 0.0], [2.0, 0.0]]), [[0.5, 0.5], [1, 0]])


def test_two_classes():
    X = np.array([[1.0, 0.1], [1.0, 0.2], [0.1, 1.0], [0.2, 1.0]])
    model = IPAL(n_neighbors=2).fit(X, ["a", "a", "b", "b"])
    scores = model.decision_function([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    P = model.predict_proba([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    assert scores.shape == (3,)
    assert scores[0] < 0 < scores[1]
    np.testing.assert_allclose(scores, P[:, 1] - P[:, 0])


def test_a_class_that_is_nobodys_candidate():
    S = as_candidates(["b", "c", "c"], classes=["a", "b", "c"])
    model = IPAL(n_neighbors=1).fit([[1.0, 0.0], [0.0, 1.0], [0.1, 1.0]], S)
    # Nothing points towards (-1, -1): all residuals are alike, and the first possible label wins.
    assert model.predict([[-1.0, -1.0]]).tolist() == ["b"]
    assert model.decision_function([[-1.0, -1.0]])[0].tolist() == pytest.approx([-2, -1, -1])
    assert model.predict_proba([[-1.0, -1.0]])[0].tolist() == pytest.approx([0, 0.5, 0.5])


def test_one_example():
    model = IPAL().fit([[1.0, 2.0]], [{"a": 1, "b": 1}])
    assert model.label_distributions_.data.tolist() == [0.5, 0.5]
    assert model.predict([[3.0, 3.0]]).tolist() == ["a"]


def test_parallel_search_changes_nothing(data):
    X, S, queries = data
    one, two = (IPAL(n_jobs=n).fit(X, S) for n in (1, 2))
    np.testing.assert_array_equal(one.label_distributions_.data, two.label_distributions_.data)
    np.testing.assert_array_equal(one.decision_function(queries), two.decision_function(queries))


def test_evidence_is_where_propagation_starts(data):
    X, S, _ = data
    rng = np.random.default_rng(0)
    weighted = S.with_weights(rng.uniform(0.1, 1, len(S.indices)))
    alone = IPAL(alpha=0).fit(X, weighted)
    np.testing.assert_allclose(alone.label_distributions_.data, weighted.initial_confidences())
    even = IPAL().fit(X, S.with_weights(np.full(len(S.indices), 2.0)))
    np.testing.assert_allclose(
        even.label_distributions_.data, IPAL().fit(X, S).label_distributions_.data
    )


def test_an_interrupt_leaves_a_model(data, monkeypatch):
    X, S, queries = data
    rounds = []

    def interrupted(candidates, values):
        rounds.append(1)
        if len(rounds) == 3:
            raise KeyboardInterrupt
        return row_normalized(candidates, values)

    row_normalized = CandidateSets.row_normalized
    monkeypatch.setattr(CandidateSets, "row_normalized", interrupted)
    with pytest.warns(InterruptedFitWarning, match="after 2 of"):
        model = IPAL(tol=0).fit(X, S)
    assert model.n_iter_ == 2
    assert model.predict(queries).shape == (len(queries),)
