from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from skpll import PLSVM, as_candidates
from skpll.margin import plsvm
from skpll.solvers import partial_margin


def make_data(seed, n=30, d=3, q=4, share=0.3):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % q
    X = rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(q, d))[y]
    M = rng.random((n, q)) < share
    M[np.arange(n), y] = True
    return X, as_candidates(M.astype(int)), y


def objective(model, X, S, weights=None):
    M = np.asarray(S).astype(bool)
    scores = X @ model.coef_.T + model.intercept_
    best = np.where(M, scores, -np.inf).max(axis=1)
    rival = np.where(M, -np.inf, scores).max(axis=1)
    losses = np.maximum(0, 1 - best + rival)
    norm = (model.coef_**2).sum() + (model.intercept_**2).sum()
    return 0.5 * model.alpha * norm + np.average(losses, weights=weights)


def subgradient_descent(X, S, alpha, rng, n_steps=1000):
    """The original algorithm: random start, steps 1/(λt), projection; the best objective seen."""
    X = np.column_stack([X, np.ones(len(X))])
    M = np.asarray(S).astype(bool)
    rows = np.arange(len(X))
    radius = 1 / np.sqrt(alpha)
    W = rng.normal(size=(M.shape[1], X.shape[1]))
    lowest = np.inf
    for t in range(1, n_steps + 1):
        W *= min(1, radius / np.linalg.norm(W))
        scores = X @ W.T
        best = np.where(M, scores, -np.inf).argmax(axis=1)
        rival = np.where(M, -np.inf, scores).argmax(axis=1)
        losses = np.where(M.all(axis=1), 0, 1 - scores[rows, best] + scores[rows, rival])
        lowest = min(lowest, 0.5 * alpha * (W**2).sum() + np.maximum(0, losses).mean())
        slopes = np.zeros(M.shape)
        slopes[rows, rival] += losses > 0
        slopes[rows, best] -= losses > 0
        W -= (alpha * W + slopes.T @ X / len(X)) / (alpha * t)
    return lowest


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), alpha=st.sampled_from([1e-3, 1e-2, 0.1, 1.0, 100.0]))
def test_the_objective_is_the_formula_and_never_rises(seed, alpha):
    X, S, _ = make_data(seed)
    weights = np.random.default_rng(seed).uniform(0.5, 2, len(S))
    model = PLSVM(alpha=alpha).fit(X, S, sample_weight=weights)
    assert model.objective_ == pytest.approx(objective(model, X, S, weights))
    values = [record["objective"] for record in model.history_] + [model.objective_]
    assert all(after <= before * (1 + 1e-12) for before, after in pairwise(values))
    assert model.n_iter_ == len(model.history_)
    # The bound on the norm that the original algorithm imposes.
    squared_norm = (model.coef_**2).sum() + (model.intercept_**2).sum()
    assert alpha * squared_norm <= 1 + 1e-3
    assert model.objective_ <= 1


def test_no_worse_than_restarts_of_the_original_algorithm():
    rng = np.random.default_rng(0)
    excess = []
    for seed in range(8):
        alpha = (0.01, 0.1)[seed % 2]
        X, S, _ = make_data(seed, n=(15, 24, 30)[seed % 3], d=2 + seed % 2, q=3 + seed % 3)
        restarts = min(subgradient_descent(X, S, alpha, rng) for _ in range(20))
        model = PLSVM(alpha=alpha, n_init=10, random_state=0).fit(X, S)
        excess.append(model.objective_ / restarts - 1)
    assert max(excess) <= 1e-3, excess
    assert np.median(excess) < 0


def test_the_solution_nearly_minimizes_its_own_bound():
    """At the end no small step lowers the objective by more than the certificate allows."""
    X, S, _ = make_data(3, n=60)
    model = PLSVM(alpha=0.05).fit(X, S)
    rng = np.random.default_rng(0)
    best = model.coef_.copy()
    for _ in range(200):
        model.coef_ = best + 1e-4 * rng.normal(size=best.shape)
        assert objective(model, X, S) >= model.objective_ * (1 - 1e-6)


# scikit-learn 1.6 does not set the number of iterations here, and warns by chance.
@pytest.mark.filterwarnings("ignore:Liblinear failed to converge")
def test_on_plain_labels_it_is_the_machine_of_crammer_and_singer():
    X, _, y = make_data(1, n=80)
    model = PLSVM(alpha=0.05).fit(X, y)
    reference = LinearSVC(
        multi_class="crammer_singer", C=1 / (0.05 * 80), tol=1e-8, max_iter=10**6
    ).fit(X, y)
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-4)
    np.testing.assert_allclose(model.intercept_, reference.intercept_, atol=1e-4)


def test_more_starts_are_never_worse_and_repeatable():
    X, S, _ = make_data(8, n=40, share=0.45)
    one = PLSVM(alpha=0.01, n_init=1).fit(X, S)
    two = PLSVM(alpha=0.01, n_init=2).fit(X, S)
    many = PLSVM(alpha=0.01, n_init=8, random_state=3).fit(X, S)
    again = PLSVM(alpha=0.01, n_init=8, random_state=3).fit(X, S)
    assert two.objective_ <= one.objective_ * (1 + 1e-3)
    assert many.objective_ <= two.objective_ * (1 + 1e-3)
    assert many.objective_ < 0.999 * one.objective_
    np.testing.assert_array_equal(many.coef_, again.coef_)


def test_examples_with_every_label_only_count():
    X, S, _ = make_data(2)
    everything = as_candidates(np.vstack([np.asarray(S), np.ones((10, 4), dtype=int)]))
    extra = np.vstack([X, np.full((10, 3), 7.0)])
    diluted = PLSVM(alpha=0.05 * 30 / 40).fit(extra, everything)
    model = PLSVM(alpha=0.05).fit(X, S)
    np.testing.assert_allclose(diluted.coef_, model.coef_, atol=1e-6)
    assert diluted.objective_ == pytest.approx(model.objective_ * 30 / 40)
    nothing = PLSVM().fit(X, [{"a": 1, "b": 1}] * len(X))
    assert nothing.objective_ == 0
    assert (nothing.coef_ == 0).all()


def test_confidences_are_the_softmax_of_the_scores():
    X, S, _ = make_data(4)
    model = PLSVM().fit(X, S)
    weights = np.where(np.asarray(S), np.exp(model.decision_function(X)), 0)
    np.testing.assert_allclose(
        model.label_distributions_.toarray(), weights / weights.sum(axis=1, keepdims=True)
    )


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_sparse_features_give_the_same_model(fit_intercept):
    X, S, _ = make_data(5)
    dense = PLSVM(fit_intercept=fit_intercept).fit(X, S)
    thin = PLSVM(fit_intercept=fit_intercept).fit(sparse.csr_array(X), S)
    np.testing.assert_allclose(thin.coef_, dense.coef_, atol=1e-6)
    assert fit_intercept == dense.intercept_.any()


def test_labels_that_are_nobodys_candidate_take_no_part():
    X, S, _ = make_data(6)
    model = PLSVM().fit(X, S)
    wide = PLSVM().fit(X, S.with_classes([*S.classes, 9]))
    np.testing.assert_array_equal(wide.coef_[:4], model.coef_)
    assert wide.intercept_[4] == -np.inf


def test_two_classes():
    X, _, y = make_data(7)
    model = PLSVM().fit(X, y > 1)
    scores = model.decision_function(X)
    assert scores.shape == (len(X),)
    np.testing.assert_array_equal(model.predict(X), scores > 0)


def test_progress_and_the_warning(capsys):
    X, S, _ = make_data(8, n=60, share=0.45)
    model = PLSVM(verbose=1).fit(X, S)
    assert model.n_iter_ > 1
    assert f"] {model.n_iter_}/100  objective" in capsys.readouterr().err
    with pytest.warns(ConvergenceWarning, match="still falling after max_iter"):
        PLSVM(max_iter=1).fit(X, S)


def test_a_tighter_tolerance_is_no_worse():
    X, S, _ = make_data(9, n=60)
    loose = PLSVM(alpha=0.01, tol=0.1, solver_tol=0.1).fit(X, S)
    tight = PLSVM(alpha=0.01, tol=1e-6, solver_tol=1e-6).fit(X, S)
    assert tight.history_[-1]["gap"] <= 1e-6
    assert tight.objective_ <= loose.objective_ * (1 + 1e-2)


def test_a_long_fit_is_announced_before_it_starts():
    with pytest.raises(UserWarning, match=r"PLSVM: 4000 examples of 200 classes .* minutes.*CLPL"):
        PLSVM().fit(np.zeros((4000, 50)), np.arange(4000) % 200)


def test_a_last_problem_that_is_not_solved_is_announced(monkeypatch):
    X, S, _ = make_data(0)
    original = plsvm.fit_partial_margin

    def impatient(*args, **options):
        return original(*args, **{**options, "max_iter": 1})

    monkeypatch.setattr(plsvm, "fit_partial_margin", impatient)
    monkeypatch.setattr(partial_margin, "MAX_SWEEPS", 1)
    with pytest.warns(ConvergenceWarning, match=r"last convex problem is still .* of its obj"):
        PLSVM().fit(sparse.csr_array(X), S)


def test_a_model_that_stays_is_certified_for_its_new_bound():
    """The gap of a model that no update improves is that of its own bound, not of an earlier."""
    X, S, _ = make_data(1)
    problem = plsvm._Problem(X, S, np.full(len(S), 1 / len(S)), 0.01, True)
    exact = problem.minimize(S.initial_confidences(), None, 1e-12)
    for _ in range(50):
        targets = problem.best_candidates(exact.scores)
        exact = problem.minimize(targets, exact, 1e-12)
    certified = problem.improved(exact, problem.best_candidates(exact.scores), 1e-3)
    assert certified.objective == pytest.approx(problem.objective(certified) / problem.alpha)
    assert 0 <= certified.gap <= 1e-4 * certified.objective


def test_the_old_name_of_alpha_works_with_a_warning():
    X, S, _ = make_data(0)
    with pytest.warns(FutureWarning, match="lam: is called alpha now"):
        old = PLSVM(lam=0.05).fit(X, S)
    np.testing.assert_array_equal(old.coef_, PLSVM(alpha=0.05).fit(X, S).coef_)
