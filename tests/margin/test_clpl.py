import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from skpll import CLPL, as_candidates


@pytest.fixture(scope="module")
def toy():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, 150)
    X = rng.normal(size=(150, 4)) + 1.5 * rng.normal(size=(5, 4))[y]
    M = rng.random((150, 5)) < 0.25
    M[np.arange(150), y] = True
    return X, as_candidates(M.astype(int)), y


def objective(model, X, S, weights, power):
    scores = X @ model.coef_.T + model.intercept_
    M = np.asarray(S).astype(bool)
    mean = (scores * M).sum(axis=1) / M.sum(axis=1)
    losses = np.maximum(0, 1 - mean) ** power
    losses += (np.maximum(0, 1 + scores) ** power * ~M).sum(axis=1)
    norm = (model.coef_**2).sum() + (model.intercept_**2).sum()
    return 0.5 * norm + model.C * (weights * losses).sum()


@pytest.mark.parametrize(("loss", "power"), [("squared_hinge", 2), ("hinge", 1)])
def test_the_objective_is_the_formula_and_nothing_near_is_lower(toy, loss, power):
    X, S, _ = toy
    rng = np.random.default_rng(1)
    weights = rng.uniform(0.5, 2, len(S))
    model = CLPL(C=0.3, loss=loss).fit(X, S, sample_weight=weights)
    assert model.objective_ == pytest.approx(objective(model, X, S, weights, power))
    assert 0 <= model.gap_ <= 1e-8 * model.objective_
    best = model.coef_.copy()
    for _ in range(30):
        model.coef_ = best + 10 ** rng.uniform(-4, 0) * rng.normal(size=best.shape)
        assert objective(model, X, S, weights, power) > model.objective_ - model.gap_


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_on_plain_labels_it_is_one_against_the_rest(toy, loss, fit_intercept):
    X, _, y = toy
    model = CLPL(C=0.2, loss=loss, fit_intercept=fit_intercept, tol=1e-10).fit(X, y)
    reference = LinearSVC(
        C=0.2, loss=loss, fit_intercept=fit_intercept, dual=True, tol=1e-7, max_iter=10**6
    ).fit(X, y)
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=2e-4)
    np.testing.assert_allclose(
        model.intercept_, reference.intercept_ if fit_intercept else 0, atol=2e-4
    )


def test_confidences_are_the_softmax_of_the_scores(toy):
    X, S, _ = toy
    model = CLPL().fit(X, S)
    M = np.asarray(S).astype(bool)
    weights = np.where(M, np.exp(model.decision_function(X)), 0)
    expected = weights / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.label_distributions_.toarray(), expected, atol=1e-12)


def test_sparse_features_give_the_same_model(toy):
    X, S, _ = toy
    dense = CLPL(tol=1e-12).fit(X, S)
    thin = CLPL(tol=1e-12).fit(sparse.csr_matrix(X), S)
    np.testing.assert_allclose(thin.coef_, dense.coef_, atol=1e-6)


def test_labels_that_are_nobodys_candidate_take_no_part(toy):
    X, S, _ = toy
    model = CLPL().fit(X, S)
    wide = CLPL().fit(X, S.with_classes([*S.classes, 9]))
    np.testing.assert_array_equal(wide.coef_[:5], model.coef_)
    assert (wide.coef_[5] == 0).all()
    assert wide.intercept_[5] == -np.inf


def test_two_classes(toy):
    X, _, y = toy
    model = CLPL().fit(X, y > 1)
    scores = model.decision_function(X)
    assert scores.shape == (len(X),)
    np.testing.assert_array_equal(model.predict(X), scores > 0)


def test_history_progress_and_the_warning(toy, capsys):
    X, S, _ = toy
    model = CLPL(C=1, verbose=1).fit(X, S)
    assert model.n_iter_ == len(model.history_) - 1
    assert model.history_[-1] == {"objective": model.objective_, "gap": model.gap_}
    assert model.history_[0]["gap"] > model.gap_
    assert f"CLPL [........................] {model.n_iter_}/1000" in capsys.readouterr().err
    with pytest.warns(ConvergenceWarning, match="duality gap is still"):
        CLPL(C=1, max_iter=1).fit(X, S)


def test_many_labels():
    """One term for the candidates is lost among a hundred others, unless it counts as much."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(120, 30))
    y = np.arange(1800) % 120
    X = centres[y] + rng.normal(size=(1800, 30))
    S = as_candidates([{int(k), *rng.integers(0, 120, 2).tolist()} for k in y[:1200]])
    scores = {
        weight: CLPL(candidate_weight=weight, tol=1e-4).fit(X[:1200], S).score(X[1200:], y[1200:])
        for weight in ("auto", "balanced", 1.0)
    }
    assert scores["auto"] == scores["balanced"] > scores[1.0] + 0.1


def test_few_labels_are_weighed_as_published(toy):
    X, S = toy[:2]
    auto, published = CLPL().fit(X, S), CLPL(candidate_weight=1.0).fit(X, S)
    np.testing.assert_array_equal(auto.coef_, published.coef_)
