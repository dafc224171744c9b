"""PL-LOO learns from more examples without the earlier ones."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import euclidean_distances

from skpll import PLLOO
from skpll.datasets import make_partial_classification


@pytest.mark.parametrize("n_landmarks", [40, 400])  # landmarks, and the kernel of all examples
def test_sums_are_those_of_all_examples(n_landmarks):
    """With labels that are known, the regression is the one on all examples at the landmarks."""
    X, _, y = make_partial_classification(300, 4, 3, class_sep=1.0, random_state=0)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    model = PLLOO(kernel="rbf", gamma=1.0, alpha=0.1, n_landmarks=n_landmarks)
    for part in (slice(0, 100), slice(100, 180), slice(180, 300)):
        model.partial_fit(X[part], y[part], sample_weight=weights[part])
    rows = model._features.kernel.rows
    counted = weights / weights[:100].mean()

    def kernel(A):
        return np.exp(-euclidean_distances(A, rows, squared=True) / model._unit**2)

    K, T = kernel(X), np.eye(3)[y]
    means = counted @ T / counted.sum()
    coef = np.linalg.solve(
        K.T @ (counted[:, None] * K) + 0.1 * kernel(rows) + 1e-10 * np.eye(len(rows)),
        K.T @ (counted[:, None] * (T - means)),
    )
    np.testing.assert_allclose(model.decision_function(X), K @ coef + means, atol=1e-4)


@pytest.mark.parametrize("settings", [{}, {"kernel": "linear"}, {"noise": "auto"}])
def test_batches_find_almost_what_all_examples_find(settings):
    X, S, y = make_partial_classification(1500, 10, 5, p=0.9, r=2, class_sep=1.5, random_state=1)
    train, test = slice(0, 1200), slice(1200, None)
    at_once = PLLOO(**settings).fit(X[train], S[train]).score(X[test], y[test])
    model = PLLOO(**settings)
    found = []
    for start in range(0, 1200, 300):
        part = slice(start, start + 300)
        model.partial_fit(X[part], S[part])
        found.append((model.transduction_ == y[part]).mean())
        assert model.label_distributions_.shape == (300, 5)
        assert model.missing_.shape == (300,)
    first = PLLOO(**settings).fit(X[:300], S[:300]).score(X[test], y[test])
    grown = model.score(X[test], y[test])
    assert grown > at_once - 0.03
    assert grown >= first
    assert found[-1] > 0.85


def test_labels_may_come_and_stay_away():
    X, S, y = make_partial_classification(400, 6, 4, p=0.5, r=1, class_sep=2.0, random_state=2)
    names = np.array(["a", "b", "c", "d"])
    early = [{names[label]} for label in y]
    few = y < 3
    model = PLLOO(alpha=0.1).partial_fit(
        X[few][:150], [early[i] for i in np.flatnonzero(few)[:150]], classes=["z"]
    )
    assert model.classes_.tolist() == ["a", "b", "c", "z"]
    late = np.flatnonzero(y >= 2)[-60:]
    model.partial_fit(X[late], [early[i] for i in late])
    assert model.classes_.tolist() == ["a", "b", "c", "d", "z"]
    assert (model.predict(X) == names[y]).mean() > 0.9
    np.testing.assert_array_equal(model.predict_proba(X)[:, 4], 0)


def test_fit_begins_anew():
    X, S, _ = make_partial_classification(200, 5, 3, random_state=3)
    usual = PLLOO().fit(X[:100], S[:100]).predict_proba(X)
    model = PLLOO().partial_fit(X, S).fit(X[:100], S[:100])
    np.testing.assert_array_equal(model.predict_proba(X), usual)
    model.partial_fit(X[:100], S[:100])
    np.testing.assert_allclose(model.predict_proba(X), usual)


def test_collections_of_dask_are_refused():
    array = pytest.importorskip("dask.array", reason="Dask is optional")
    with pytest.raises(TypeError, match="rows in memory"):
        PLLOO().partial_fit(array.zeros((10, 2)), array.zeros(10))
