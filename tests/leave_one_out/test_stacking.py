"""Mixtures of methods: their weights, scikit-learn's conventions, and sets that mislead them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skpll import CLPL, PLKNN, PLLOO, CrossFitClassifier, StackedCandidates, as_candidates
from skpll._errors import DiagnosisWarning
from skpll._temperature import log_scores, probabilities
from skpll.datasets import make_partial_classification
from skpll.leave_one_out.stacking import _disagreement, mixture_weights


def some_columns(start, stop):
    select = FunctionTransformer(lambda X: X[:, start:stop])
    return make_pipeline(select, PLKNN(n_neighbors=15))


@pytest.fixture(scope="module")
def data():
    X, S, y = make_partial_classification(300, 4, 3, p=0.6, class_sep=1.5, random_state=0)
    noise = np.random.default_rng(0).normal(size=(300, 4))
    return np.hstack([X, noise]), S, y


@pytest.fixture(scope="module")
def scenes():
    """Rows of four scenes; a set is what the scene shows, and a fifth of the labels are known."""
    rng = np.random.default_rng(0)
    scene, place = rng.integers(0, 4, 400), rng.integers(0, 3, 400)
    labels = np.array([[0, 1, 2], [2, 3, 4], [4, 5, 6], [6, 7, 0]])
    y = labels[scene, place]
    of_scene = 4 * np.eye(4)[scene] + 0.3 * rng.normal(size=(400, 4))
    of_label = 1.4 * np.eye(8)[y] + 0.6 * rng.normal(size=(400, 8))
    known = rng.random(400) < 0.2
    S = [{int(y[i])} if known[i] else set(labels[scene[i]].tolist()) for i in range(400)]
    return np.hstack([of_scene, of_label]), as_candidates(S), y


def test_weights_against_a_general_optimizer():
    L = np.random.default_rng(0).random((3, 200)) ** 2
    found = mixture_weights(L)
    assert found.sum() == pytest.approx(1)
    best = minimize(
        lambda w: -np.log(w @ L).sum(),
        np.full(3, 1 / 3),
        bounds=[(0, 1)] * 3,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-12},
    )
    assert_allclose(found, best.x, atol=2e-3)


@pytest.mark.parametrize("final", ["mixture", "singletons"])
def test_the_better_method_gets_the_weight(data, final):
    X, S, y = data
    estimators = [("noise", some_columns(4, 8)), ("signal", some_columns(0, 4))]
    model = StackedCandidates(estimators, final).fit(X, S)
    assert model.weights_[1] > 0.9
    assert model.score(X, y) == pytest.approx(model.estimators_[1].score(X, y), abs=0.03)


def test_probabilities_are_the_mixture_of_tempered_ones(data):
    X, S, _ = data
    estimators = [("near", PLKNN()), ("linear", CLPL())]
    model = StackedCandidates(estimators, "equal", cv=2).fit(X, S)
    assert model.weights_.tolist() == [0.5, 0.5]
    parts = [
        probabilities(log_scores(each.predict_proba(X)), T)
        for each, T in zip(model.estimators_, model.temperatures_, strict=True)
    ]
    assert_allclose(model.predict_proba(X), np.mean(parts, axis=0))
    assert (S.contains(model.transduction_)).all()


def test_a_warning_where_sets_are_more_predictable_than_labels(scenes):
    X, S, y = scenes
    estimators = [("scene", some_columns(0, 4)), ("label", some_columns(4, 12))]
    model = StackedCandidates(estimators)
    with pytest.warns(DiagnosisWarning, match="more predictable than labels") as caught:
        misled = clone(model).fit(X, S)
    assert len(caught) == 1
    better = clone(model).set_params(final="singletons").fit(X, S)
    assert misled.weights_[0] > 0.5 > better.weights_[0]
    assert better.score(X, y) > misled.score(X, y) + 0.05


def test_a_method_that_finds_a_label_everywhere_gets_no_weight():
    X, S, y = make_partial_classification(300, 4, 4, p=0.8, r=1, class_sep=2, random_state=0)
    with_another = as_candidates([{*labels, 9} for labels in S])
    forest = CrossFitClassifier(RandomForestClassifier(60, random_state=0))
    model = StackedCandidates([("plloo", PLLOO()), ("forest", forest)])
    with pytest.warns(DiagnosisWarning, match="9 is a candidate in 100%"):
        model.fit(X, with_another)
    assert model.weights_[0] > 0.95
    assert (model.predict(X) == y).mean() > 0.9


def test_names_and_parameters_as_in_scikit_learn():
    model = StackedCandidates([("near", PLKNN()), ("linear", CLPL())])
    assert model.get_params()["near__n_neighbors"] == 10
    assert set(model.get_params(deep=False)) == {"estimators", "final", "cv", "random_state"}
    model.set_params(near__n_neighbors=3, linear=PLKNN(n_neighbors=7), cv=2)
    assert [method.n_neighbors for _, method in clone(model).estimators] == [3, 7]


def test_what_can_not_be_stacked(data):
    X, S, _ = data
    with pytest.raises(ValueError, match="CrossFitClassifier"):
        StackedCandidates([("plain", LogisticRegression())]).fit(X, S)
    for wrong in ([], [PLKNN()]):
        with pytest.raises(ValueError, match="estimators: give a list of pairs"):
            StackedCandidates(wrong).fit(X, S)
    with pytest.raises(ValueError, match="not unique"):
        StackedCandidates([("a", PLKNN()), ("a", CLPL())]).fit(X, S)
    pairs = [("a", PLKNN()), ("b", CLPL())]
    few = np.append(np.flatnonzero(S.sizes == 1)[:10], np.flatnonzero(S.sizes > 1))
    with pytest.raises(ValueError, match="final: 10 examples have a single candidate, 20"):
        StackedCandidates(pairs, "singletons").fit(X[few], S[few])


def test_weights_that_differ_little_are_no_disagreement():
    """Singletons want other weights beyond chance, but only slightly other ones."""
    rng = np.random.default_rng(0)
    S = as_candidates([{0}] * 4000 + [{0, 1}] * 10)
    covered = rng.random((2, len(S)))
    wanted = mixture_weights(covered[:, :4000])
    step = np.array([1.0, -1.0])
    near, far = wanted + 0.1 * step, wanted + 0.3 * step
    assert _disagreement(S, covered, near, ["a", "b"]) is None
    found = _disagreement(S, covered, far, ["a", "b"])
    assert found is not None
    assert found.kind == "sets"
    assert f"a {wanted[0]:.2f}, b {wanted[1]:.2f}" in str(found)
