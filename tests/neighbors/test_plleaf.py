import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_info, threadpool_limits

from skpll import PLLEAF, _progress
from skpll.engine import kernels
from skpll.neighbors import plleaf
from skpll.neighbors.graph import NeighborSearch
from skpll.solvers.label_smoothing import neighbor_graph
from skpll.solvers.reconstruction import reconstruction_weights


def phase(model, name):
    return [record["objective"] for record in model.history_ if record["phase"] == name]


def contrast(S):
    """Mean over the candidates less mean over the other labels, as coefficients."""
    Z = np.zeros(S.shape)
    for i, inside in enumerate(np.asarray(S).astype(bool)):
        if not inside.all():
            Z[i] = inside / inside.sum() - ~inside / (~inside).sum()
    return Z


def test_confidences_are_a_minimum_on_the_graph(data):
    X, S, _ = data
    model = PLLEAF(n_neighbors=5).fit(X, S)
    F, Y = model.label_distributions_.toarray(), np.asarray(S).astype(bool)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    _, neighbors = NeighborSearch(unit).nearest_others(unit, 5)
    weights = reconstruction_weights(unit, unit, neighbors, sum_to_one=True)
    A = np.eye(60) - neighbor_graph(neighbors, weights).toarray()
    slope = A.T @ A @ F
    at_best = np.where(Y, slope, np.inf).min(axis=1)
    assert np.sum(F * (slope - at_best[:, None])) < 1e-4  # the duality gap
    assert phase(model, "confidences")[-1] == pytest.approx(0.5 * np.sum((A @ F) ** 2))


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_regression_is_stationary(data, kernel):
    X, S, queries = data
    model = PLLEAF(C1=3.0, C2=0.5, epsilon=0.2, kernel=kernel, tol=1e-13).fit(X, S)
    K = X @ X.T if kernel == "linear" else rbf_kernel(X, gamma=model.gamma_)
    error = model.label_distributions_.toarray() - model.decision_function(X)
    length = np.linalg.norm(error, axis=1, keepdims=True)
    beta = 2 * 3.0 * np.maximum(length - 0.2, 0) / length * error + 0.5 * contrast(S)
    np.testing.assert_allclose(beta.sum(axis=0), 0, atol=1e-3)
    scores = model.decision_function(X)
    plain = K @ beta
    np.testing.assert_allclose(scores - scores.mean(axis=0), plain - plain.mean(axis=0), atol=2e-3)
    objective = (
        0.5 * np.sum(beta * plain)
        + 3.0 * np.sum(np.maximum(length - 0.2, 0) ** 2)
        - 0.5 * np.sum(contrast(S) * scores)
    )
    assert phase(model, "regression")[-1] == pytest.approx(objective, rel=1e-3)


def test_objectives_never_rise(data):
    X, S, _ = data
    model = PLLEAF(epsilon=0.3).fit(X, S)
    assert len(phase(model, "regression")) == model.n_iter_
    for name in ("confidences", "regression"):
        assert len(phase(model, name)) > 3
        assert (np.diff(phase(model, name)) <= 0).all()


def test_without_tube_and_reward_it_is_kernel_ridge_regression(data):
    X, S, queries = data
    model = PLLEAF(C1=2.0, C2=0.0, epsilon=0.0, gamma=0.1).fit(X, S)
    # An intercept of weight zero in the penalty: a constant feature of large scale.
    K, between = rbf_kernel(X, gamma=0.1) + 1e6, rbf_kernel(queries, X, gamma=0.1) + 1e6
    ridge = KernelRidge(alpha=1 / (2 * 2.0), kernel="precomputed")
    ridge.fit(K, model.label_distributions_.toarray())
    np.testing.assert_allclose(model.decision_function(queries), ridge.predict(between), atol=1e-4)


def test_default_width_is_the_mean_distance(data):
    X, S, _ = data
    assert PLLEAF().fit(X, S).gamma_ == pytest.approx(1 / (2 * pdist(X).mean() ** 2))
    assert PLLEAF(gamma=0.25).fit(X, S).gamma_ == 0.25
    assert PLLEAF(kernel="linear").fit(X, S).gamma_ is None


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_sparse_features(data, kernel):
    X, S, queries = data
    X = np.where(np.abs(X) > 0.5, X, 0)
    dense = PLLEAF(kernel=kernel).fit(X, S)
    compressed = PLLEAF(kernel=kernel).fit(sparse.csr_array(X), S)
    np.testing.assert_allclose(
        compressed.decision_function(sparse.csr_array(queries)),
        dense.decision_function(queries),
        atol=1e-5,
    )


def test_an_example_with_every_label_gets_no_reward():
    assert plleaf._contrast(np.array([[True, True], [True, False]])).tolist() == [[0, 0], [1, -1]]


def test_classes_that_are_nobodys_candidates_change_nothing(data):
    X, S, queries = data
    wide = PLLEAF().fit(X, S.with_classes([-1, 0, 1, 2, 3, 9]))
    scores = wide.decision_function(queries)
    assert np.isfinite(scores).all()
    assert (scores[:, [0, 5]] < scores[:, 1:5].min(axis=1, keepdims=True)).all()
    np.testing.assert_array_equal(scores[:, 1:5], PLLEAF().fit(X, S).decision_function(queries))


def test_blocks_change_nothing(data, monkeypatch):
    X, S, queries = data
    model = PLLEAF().fit(X, S)
    whole = model.decision_function(queries)
    monkeypatch.setattr(kernels, "MAX_BLOCK_NUMBERS", 200)
    np.testing.assert_allclose(model.decision_function(queries), whole, atol=1e-12)


def test_two_classes():
    X = [[1.0, 0.1], [1.0, 0.2], [0.1, 1.0], [0.2, 1.0]]
    model = PLLEAF(n_neighbors=2).fit(X, ["a", "a", "b", "b"])
    scores = model.decision_function(X)
    assert scores.shape == (4,)
    assert (scores > 0).tolist() == [False, False, True, True]


def test_examples_that_are_all_the_same():
    model = PLLEAF().fit(np.ones((5, 2)), [{0, 1}, {0}, {0}, {0, 1}, {0}])
    assert model.gamma_ == 1.0
    assert model.predict([[1.0, 1.0]]).tolist() == [0]
    assert PLLEAF().fit([[1.0, 2.0]], [{"a": 1, "b": 1}]).predict([[3.0, 3.0]]).tolist() == ["a"]


def test_convergence_warnings(data):
    X, S, _ = data
    with pytest.warns(ConvergenceWarning) as record:
        PLLEAF(max_iter=2).fit(X, S)
    messages = [str(warning.message) for warning in record]
    assert any("confidences" in message and "max_iter=2" in message for message in messages)
    assert any("regression" in message for message in messages)


def test_verbose_shows_both_phases(data, capsys):
    X, S, _ = data
    PLLEAF(verbose=1).fit(X, S)
    shown = capsys.readouterr().err
    assert "PL-LEAF confidences" in shown
    assert "PL-LEAF regression" in shown


def test_evidence_pulls_the_confidences(data):
    X, S, _ = data
    rng = np.random.default_rng(0)
    weighted = S.with_weights(rng.uniform(0.1, 1, len(S.indices)))
    model = PLLEAF(tol=1e-9).fit(X, weighted)
    E = weighted.initial_confidences()
    plain = PLLEAF(tol=1e-9).fit(X, S).label_distributions_.data
    drawn = model.label_distributions_.data
    assert np.sum((drawn - E) ** 2) < np.sum((plain - E) ** 2)


def test_a_kernel_that_does_not_fit_is_refused_before_the_start(data, monkeypatch):
    X, S, _ = data
    monkeypatch.setattr(plleaf, "_physical_memory", lambda: 1000)
    with pytest.raises(MemoryError, match=r"PLLEAF: the RBF kernel of \d+ examples.*Nystroem"):
        PLLEAF().fit(X, S)
    assert PLLEAF(kernel="linear").fit(X, S).gamma_ is None


def test_a_long_fit_is_announced(data, monkeypatch):
    X, S, _ = data
    monkeypatch.setattr(_progress, "LONG_FIT_SECONDS", 0.0)
    with pytest.warns(UserWarning, match=r"minutes on one core.*Nystroem"):
        PLLEAF().fit(X, S)


def test_small_products_are_left_to_one_thread(data, monkeypatch):
    X, S, _ = data
    threads = []
    original = plleaf.fit_multi_output_svr

    def watched(*arguments, **options):
        threads.extend(
            pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"
        )
        return original(*arguments, **options)

    monkeypatch.setattr(plleaf, "fit_multi_output_svr", watched)
    with threadpool_limits(2, user_api="blas"):
        PLLEAF().fit(X, S)
    assert set(threads) == {1}
