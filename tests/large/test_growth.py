"""PL-LOO learns from more examples without the earlier ones."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import euclidean_distances

from skpll import PLLOO, as_candidates
from skpll._errors import DiagnosisWarning
from skpll._examples import Examples
from skpll.datasets import make_partial_classification
from skpll.engine.limits import LIMITS
from skpll.leave_one_out._elsewhere import _together


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


@pytest.mark.parametrize(
    "settings", [{}, {"kernel": "linear"}, {"n_landmarks": 40, "noise": 0.1}, {"many": 300}]
)
def test_partial_fit_goes_on_from_a_fit(settings, monkeypatch):
    X, S, y = make_partial_classification(900, 5, 3, class_sep=1.5, random_state=3)
    settings = dict(settings)
    if "many" in settings:
        monkeypatch.setattr(LIMITS, "rows_in_memory", settings.pop("many"))
        settings["n_landmarks"] = 20
    first, more = slice(0, 500), slice(500, 700)
    weights = np.random.default_rng(0).uniform(0.5, 2, 900)
    fitted = PLLOO(**settings).fit(X[first], S[first], weights[first])
    begun = PLLOO(**settings).partial_fit(X[first], S[first], sample_weight=weights[first])
    np.testing.assert_array_equal(fitted.predict_proba(X), begun.predict_proba(X))
    for model in (fitted, begun):
        model.partial_fit(X[more], S[more], sample_weight=weights[more])
    np.testing.assert_allclose(fitted.predict_proba(X), begun.predict_proba(X), atol=1e-9)
    test = slice(700, 900)
    assert fitted.score(X[test], y[test]) > 0.9


def test_partial_fit_after_a_large_fit_is_refused(monkeypatch):
    X, S, _ = make_partial_classification(200, 5, 3, random_state=3)
    monkeypatch.setattr(LIMITS, "kept_numbers", 24)
    model = PLLOO(kernel="linear", alpha=0.1).fit(X, S)
    usual = model.predict_proba(X)
    with pytest.raises(ValueError, match="X: the earlier fit was too large"):
        model.partial_fit(X, S)
    np.testing.assert_array_equal(model.predict_proba(X), usual)
    begun = PLLOO(kernel="linear", alpha=0.1).partial_fit(X, S)
    assert begun.partial_fit(X, S).score(X, S) > 0.8


@pytest.mark.parametrize("settings", [{}, {"kernel": "linear"}])
def test_the_examples_of_a_call_may_be_of_one_class(settings):
    X, y = load_iris(return_X_y=True)
    model = PLLOO(**settings)
    for label in (0, 2, 1):
        model.partial_fit(X[y == label], y[y == label], classes=[0, 1, 2])
        assert model.transduction_.tolist() == [label] * 50
        assert (model.predict(X[y == label]) == label).mean() > 0.7
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
        assert model.predict_proba(X).shape == model.decision_function(X).shape == (150, 3)
    assert model.score(X, y) > 0.8
    with pytest.raises(ValueError, match="only one class"):
        PLLOO(**settings).partial_fit(X[:50], y[:50])


def test_collections_of_dask_are_refused():
    array = pytest.importorskip("dask.array", reason="Dask is optional")
    with pytest.raises(TypeError, match="rows in memory"):
        PLLOO().partial_fit(array.zeros((10, 2)), array.zeros(10))


def test_groups_of_different_calls_are_different_groups():
    first = Examples(np.zeros((2, 1)), as_candidates([{0}, {0}], classes=[0, 1]), np.ones(2))
    first = replace(first, groups=np.array([0, 3]))
    second = replace(first, groups=np.array([0, 0]))
    assert _together(first, second).groups.tolist() == [0, 3, 4, 4]
    assert _together(first, replace(second, groups=None)).groups is None


def test_groups_may_come_after_a_call_without_any():
    X, S, _ = make_partial_classification(60, 4, 3, p=0.8, class_sep=1.0, random_state=0)
    pictures, first = np.arange(60) // 3, [{0}] * 6
    found = []
    for before, after in ((None, pictures), (np.arange(6), pictures), (None, None)):
        model = PLLOO(group_strength=1.0, group_by=None)
        model.partial_fit(X[:6] + 9, first, classes=[0, 1, 2], groups=before)
        found.append(model.partial_fit(X, S, groups=after).label_distributions_.toarray())
    assert (found[0] == found[1]).all()
    assert (found[0] != found[2]).any()


def test_labels_that_come_apart_later_are_told_apart():
    X, _, y = make_partial_classification(200, 4, 3, class_sep=3, random_state=0)
    names = np.array(["ash", "beech", "cedar"])
    together = [{"ash", "beech"} if label < 2 else {"cedar"} for label in y]
    with pytest.warns(DiagnosisWarning, match="never come apart"):
        model = PLLOO().fit(X[:100], together[:100])
    assert model.inseparable_ == [("ash", "beech")]
    model.partial_fit(X[100:150], together[100:150])
    assert model.inseparable_ == [("ash", "beech")]
    model.partial_fit(X[150:], [{names[label]} for label in y[150:]])
    assert model.inseparable_ == []
    likeliest = names[model.predict_proba(X).argmax(axis=1)]
    assert (likeliest == model.predict(X)).all()
    assert (likeliest == names[y]).mean() > 0.9
