import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

from skpll import PLECOC, as_candidates
from skpll.coding.plecoc import _performance, count_dichotomies, draw_dichotomies, sides_of


def partial_data(seed, n=90, q=5, extra=2):
    """Gaussian classes; false candidates are drawn for every second example."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % q
    X = rng.normal(size=(n, 3)) + 3 * rng.normal(size=(q, 3))[y]
    sets = [
        {int(k), *rng.integers(0, q, rng.integers(1, extra + 1)).tolist()} if i % 2 else {int(k)}
        for i, k in enumerate(y)
    ]
    return X, as_candidates(sets, classes=range(q)), y


def brute_force(model, X, S, queries, tol):
    """The formulas of the paper, one column, label and example at a time."""
    q, length = model.code_book_.shape
    sets = list(S)
    weights, outputs = np.zeros((q, length)), np.zeros((len(queries), length))
    for t in range(length):
        ones = {j for j in range(q) if model.code_book_[j, t] == 1}
        zeros = set(range(q)) - ones
        rows = [i for i, s in enumerate(sets) if s <= ones or s <= zeros]
        sides = [1 if sets[i] <= ones else -1 for i in rows]
        fitted = SVC(C=10.0, gamma=1 / X.shape[1], tol=tol).fit(X[rows], sides)
        outputs[:, t] = fitted.decision_function(queries)
        predicted = fitted.predict(X)
        for j in range(q):
            having = [i for i, s in enumerate(sets) if j in s]
            right = [predicted[i] == model.code_book_[j, t] for i in having]
            weights[j, t] = sum(right) / len(having)
    weights /= weights.sum(axis=1, keepdims=True)
    losses = np.zeros((len(queries), q))
    for i, j, t in itertools.product(range(len(queries)), range(q), range(length)):
        losses[i, j] += weights[j, t] * np.exp(-model.code_book_[j, t] * outputs[i, t])
    return weights, losses


@pytest.mark.parametrize("seed", range(3))
def test_against_the_formulas(seed):
    X, S, _ = partial_data(seed)
    model = PLECOC(6, estimator=SVC(C=10.0, gamma="auto", tol=1e-9)).fit(X, S)
    queries = np.random.default_rng(seed).normal(size=(7, 3))
    weights, losses = brute_force(model, X, S, queries, tol=1e-9)
    np.testing.assert_allclose(model.performance_, weights, rtol=1e-9)
    np.testing.assert_allclose(model.decision_function(queries), -np.log(losses), rtol=1e-6)
    np.testing.assert_array_equal(model.predict(queries), losses.argmin(axis=1))
    _, losses = brute_force(model, X, S, X, tol=1e-9)
    for i, candidates in enumerate(S):
        inverse = np.array([1 / losses[i, j] for j in sorted(candidates)])
        found = model.label_distributions_[[i]].data
        np.testing.assert_allclose(found, inverse / inverse.sum(), rtol=1e-6)
        assert model.transduction_[i] == min(sorted(candidates), key=lambda j, i=i: losses[i, j])


@pytest.mark.parametrize("seed", range(3))
def test_default_models_against_the_formulas(seed):
    X, S, _ = partial_data(seed)
    model = PLECOC(6, gamma="auto").fit(X, S)
    queries = np.random.default_rng(seed).normal(size=(7, 3))
    _, losses = brute_force(model, X, S, queries, tol=1e-9)
    np.testing.assert_allclose(model.decision_function(queries), -np.log(losses), atol=0.01)


def test_two_classes_are_one_model():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    exact = SVC(C=10.0, gamma="auto", tol=1e-9)
    model = PLECOC(estimator=exact).fit(X, y)
    assert model.code_book_.tolist() == [[1], [-1]]
    reference = clone(exact).fit(X, y == 0)
    np.testing.assert_array_equal(model.predict(X) == 0, reference.predict(X))
    np.testing.assert_allclose(model.decision_function(X), -2 * reference.decision_function(X))


@given(q=st.integers(2, 9), seed=st.integers(0, 100))
def test_few_splits_are_all_drawn_once(q, seed):
    codes = list(draw_dichotomies(q, 255, np.random.RandomState(seed)))
    assert len(codes) == count_dichotomies(q) == 2 ** (q - 1) - 1
    assert len({frozenset((tuple(code), tuple(~code))) for code in codes}) == len(codes)
    assert all(code.any() and not code.all() for code in codes)


@given(q=st.integers(8, 200), seed=st.integers(0, 100))
def test_many_splits_are_drawn_without_repetition(q, seed):
    codes = list(draw_dichotomies(q, 60, np.random.RandomState(seed)))
    assert 30 < len(codes) <= 60
    assert len({frozenset((tuple(code), tuple(~code))) for code in codes}) == len(codes)
    assert all(code.any() and not code.all() for code in codes)
    assert 0.4 < np.mean([code[1:].mean() for code in codes]) < 0.6


@given(st.lists(st.sets(st.integers(0, 5), min_size=1), min_size=1), st.sets(st.integers(0, 5)))
def test_sides_against_set_inclusion(sets, ones):
    S = as_candidates(sets, classes=range(6))
    code = np.isin(np.arange(6), list(ones))
    positive, negative = sides_of(code, S.to_matrix(), S.sizes)
    assert positive.tolist() == [s <= ones for s in sets]
    assert negative.tolist() == [not s & ones for s in sets]


def test_default_code_has_eligible_columns_only():
    X, S, _ = partial_data(0, n=300, q=8)
    model = PLECOC().fit(X, S)
    assert model.code_book_.shape == (8, 90)  # 30 log2(8)
    assert set(np.unique(model.code_book_)) == {-1, 1}
    assert len(np.unique(model.code_book_, axis=1).T) == 90
    for column in model.code_book_.T:
        sides = sides_of(column > 0, S.to_matrix(), S.sizes)
        assert all(side.sum() >= 30 for side in sides)


def test_code_length():
    X, S, _ = partial_data(0)
    assert PLECOC(4).fit(X, S).code_book_.shape == (5, 4)
    assert PLECOC(15, eligibility=0).fit(X, S).code_book_.shape == (5, 15)
    assert PLECOC(99, eligibility=0).fit(X, S).code_book_.shape == (5, 15)


def smallest_sides(model, S):
    masks = [sides_of(column > 0, S.to_matrix(), S.sizes) for column in model.code_book_.T]
    return [int(min(positive.sum(), negative.sum())) for positive, negative in masks]


def test_the_best_of_the_others_fill_the_code():
    X, S, _ = partial_data(0, n=200, q=6)
    every = PLECOC(eligibility=0).fit(X, S)
    best = sorted(smallest_sides(every, S), reverse=True)
    with pytest.warns(ConvergenceWarning, match=r"of 7 columns, just 0 have 50% .* 7 others fill"):
        model = PLECOC(7, eligibility=0.5).fit(X, S)
    assert smallest_sides(model, S) == best[:7]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert PLECOC(eligibility=0.5).fit(X, S).code_book_.shape == every.code_book_.shape


def test_min_side_is_the_least_that_a_column_needs():
    X, S, _ = partial_data(0, n=300, q=8)
    every = smallest_sides(PLECOC(127, eligibility=0, min_side=1).fit(X, S), S)
    assert min(every) < 25
    with pytest.warns(ConvergenceWarning):
        model = PLECOC(127, eligibility=0.3, min_side=25).fit(X, S)
    assert sorted(smallest_sides(model, S)) == sorted(side for side in every if side >= 25)


def test_max_draws():
    X, S, _ = partial_data(0, q=9)
    with pytest.warns(ConvergenceWarning, match="Raise max_draws"):
        model = PLECOC(max_draws=8).fit(X, S)
    assert model.code_book_.shape[1] <= 8


def test_no_column_is_an_error():
    X = np.arange(20.0)[:, np.newaxis]
    with pytest.raises(ValueError, match=r"y: in 2000 draws .* no split .* Lower min_side"):
        PLECOC().fit(X, [dict.fromkeys("abc", 1)] * 20)


def test_one_label_is_an_error():
    with pytest.raises(ValueError, match="y: only one class, 'a'"):
        PLECOC().fit([[0.0], [1.0]], as_candidates(["a", "a"], classes=["a", "b"]))


def test_labels_that_are_nobodys_candidate():
    X, S, _ = partial_data(0)
    model = PLECOC().fit(X, S.with_classes(range(-1, 7)))
    assert not model.code_book_[[0, 6, 7]].any()
    assert not model.performance_[[0, 6, 7]].any()
    scores = model.decision_function(X)
    assert np.isfinite(scores).all()
    assert (scores[:, [0, 6, 7]] < scores[:, 1:6].min(axis=1, keepdims=True)).all()
    np.testing.assert_array_equal(scores[:, 1:6], PLECOC().fit(X, S).decision_function(X))


def test_a_label_that_no_model_gets_right_is_weighed_evenly():
    S = as_candidates([{0}, {0}, {1}])
    code_book = np.array([[1, 1], [-1, -1]], dtype=np.int8)
    outputs = np.array([[-1.0, -1.0], [-1.0, -1.0], [-1.0, 1.0]])
    weights = _performance(S.to_matrix(), code_book, outputs)
    np.testing.assert_array_equal(weights, [[0.5, 0.5], [1.0, 0.0]])


def test_seeds():
    X, S, _ = partial_data(0, q=7)
    codes = [PLECOC(12, random_state=seed).fit(X, S).code_book_ for seed in (0, 0, 1)]
    np.testing.assert_array_equal(codes[0], codes[1])
    assert (codes[0] != codes[2]).any()


@pytest.mark.parametrize("estimator", [None, LinearSVC(random_state=0)])
def test_parallel_fits_change_nothing(estimator):
    X, S, _ = partial_data(0)
    one, two = (PLECOC(estimator=estimator, n_jobs=n).fit(X, S) for n in (1, 2))
    np.testing.assert_array_equal(one.performance_, two.performance_)
    np.testing.assert_array_equal(one.label_distributions_.data, two.label_distributions_.data)
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))


def test_models_get_the_parameters():
    X, S, _ = partial_data(0)
    model = PLECOC(3, C=2.5, kernel="poly", gamma=0.125).fit(X, S)
    assert len(model.estimators_) == 3
    for fitted in model.estimators_:
        assert isinstance(fitted, SVC)
        assert (fitted.C, fitted.kernel, fitted.gamma) == (2.5, "poly", 0.125)


def test_another_model():
    X, S, y = partial_data(0, n=200)
    given = LogisticRegression(C=0.5)
    model = PLECOC(estimator=given).fit(X, S)
    assert all(type(fitted) is LogisticRegression for fitted in model.estimators_)
    assert not hasattr(given, "coef_")
    assert model.score(X, y) > 0.8


class Loud(LogisticRegression):
    def decision_function(self, X):
        return 1e6 * super().decision_function(X)


def test_huge_outputs_do_not_overflow():
    X, S, _ = partial_data(0, n=200)
    model = PLECOC(estimator=Loud()).fit(X, S)
    assert np.isfinite(model.decision_function(X)).all()
    np.testing.assert_allclose(model.label_distributions_.sum(axis=1), 1)


@pytest.mark.parametrize(
    "parameters",
    [
        {"code_length": 0},
        {"eligibility": 0.6},
        {"eligibility": -0.1},
        {"min_side": 0},
        {"max_draws": 0},
        {"C": 0.0},
        {"kernel": "spline"},
        {"gamma": -1.0},
        {"estimator": "svm"},
        {"n_jobs": 0.5},
        {"random_state": "dice"},
    ],
)
def test_bad_parameters(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        PLECOC(**parameters).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
@pytest.mark.parametrize("gamma", ["auto", "scale", 0.05])
def test_the_kernel_is_shared_but_the_outputs_are_those_of_each_model(kernel, gamma, monkeypatch):
    X, S, _ = partial_data(0)
    queries = np.random.default_rng(1).normal(size=(40, 3))
    expected_gamma = {"auto": 1 / 3, "scale": 1 / (3 * X.var()), 0.05: 0.05}[gamma]
    for features, new in ((X, queries), (sparse.csr_array(X), sparse.csr_array(queries))):
        model = PLECOC(8, kernel=kernel, gamma=gamma).fit(features, S)
        assert model._models.machines is not None
        alone = np.column_stack([fitted.decision_function(new) for fitted in model.estimators_])
        np.testing.assert_allclose(model._models.outputs(new), alone, atol=1e-9)
        assert model._models.machines.kernel["gamma"] == pytest.approx(expected_gamma, rel=1e-12)
        with monkeypatch.context() as patch:
            patch.setattr("skpll.coding._models.MAX_PREDICTION_ENTRIES", 300)
            np.testing.assert_allclose(model._models.outputs(new), alone, atol=1e-9)


def test_a_support_vector_machine_as_another_model():
    X, S, _ = partial_data(0)
    own = PLECOC(8, C=2.0, gamma=0.1).fit(X, S)
    given = PLECOC(8, estimator=SVC(C=2.0, gamma=0.1)).fit(X, S)
    np.testing.assert_array_equal(given.decision_function(X), own.decision_function(X))
    scaled = PLECOC(8, estimator=SVC(gamma="scale")).fit(X, S)
    widths = {fitted._gamma for fitted in scaled.estimators_}
    assert len(widths) == 8
    assert scaled._models.machines is None


def test_features_without_variance():
    model = PLECOC(gamma="scale").fit(np.ones((20, 2)), [0, 1] * 10)
    assert model.estimators_[0].kernel["gamma"] == 1.0


def test_single_precision_features():
    X, S, _ = partial_data(0)
    model = PLECOC(4, gamma=0.1).fit(X.astype(np.float32), S)
    alone = np.column_stack([fitted.decision_function(X) for fitted in model.estimators_])
    np.testing.assert_allclose(model._models.outputs(X), alone, atol=1e-4)


@pytest.mark.parametrize("given", [SVC(gamma=0.1, class_weight="balanced"), SVC(gamma=0.1)])
def test_large_kernels_and_other_settings_are_left_to_libsvm(given, monkeypatch):
    X, S, _ = partial_data(0)
    if given.class_weight is None:
        monkeypatch.setattr("skpll.coding._models.MAX_KERNEL_ENTRIES", 100)
    model = PLECOC(4, estimator=given).fit(X, S)
    assert all(fitted.n_iter_[0] > 0 for fitted in model.estimators_)
