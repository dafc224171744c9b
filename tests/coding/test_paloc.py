import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

from skpll import PALOC, PLECOC, as_candidates
from skpll.coding.paloc import _refined


def partial_data(seed, n=80, q=4):
    """Gaussian classes; false candidates are drawn for every second example."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % q
    X = rng.normal(size=(n, 3)) + 3 * rng.normal(size=(q, 3))[y]
    sets = [
        {int(k), *rng.integers(0, q, rng.integers(1, 3)).tolist()} if i % 2 else {int(k)}
        for i, k in enumerate(y)
    ]
    return X, as_candidates(sets, classes=range(q)), y


def brute_force(X, S, queries, q, mu):
    """The method as it is told, with a dictionary of models and a loop for every step."""
    sets = list(S)
    fitted = {}
    for j in range(q):
        for k in range(j + 1, q):
            rows = [i for i, s in enumerate(sets) if (j in s) != (k in s)]
            sides = [1 if j in sets[i] else -1 for i in rows]
            fitted[j, k] = SVC(C=10.0, gamma=1 / X.shape[1]).fit(X[rows], sides)

    def outputs(Z):
        return np.column_stack([one.decision_function(Z) for one in fitted.values()])

    def votes(Z):
        counts = np.zeros((len(Z), q))
        for (j, k), column in zip(fitted, outputs(Z).T, strict=True):
            counts[column > 0, j] += 1
            counts[column < 0, k] += 1
        return counts

    refined = []
    for s, winner in zip(sets, votes(X).argmax(axis=1), strict=True):
        refined.append({int(winner)} if winner in s else s)
    width = X.shape[1] + len(fitted)
    scores = votes(queries)
    for j in range(q):
        sides = [1 if j in s else -1 for s in refined]
        one = SVC(C=10.0, gamma=1 / width).fit(np.hstack([X, outputs(X)]), sides)
        confirmed = one.decision_function(np.hstack([queries, outputs(queries)])) > 0
        scores[:, j] += mu * confirmed
    return scores


@pytest.mark.parametrize(("seed", "mu"), [(0, 10.0), (1, 10.0), (2, 0.5)])
def test_against_the_method_as_told(seed, mu):
    X, S, _ = partial_data(seed)
    model = PALOC(mu, gamma="auto").fit(X, S)
    queries = 3 * np.random.default_rng(seed).normal(size=(25, 3))
    scores = brute_force(X, S, queries, 4, mu)
    np.testing.assert_array_equal(model.decision_function(queries), scores)
    np.testing.assert_array_equal(model.predict(queries), scores.argmax(axis=1))
    scores = brute_force(X, S, X, 4, mu)
    for i, candidates in enumerate(S):
        inside = scores[i, sorted(candidates)]
        expected = inside / inside.sum() if inside.any() else np.full(len(inside), 1 / len(inside))
        np.testing.assert_allclose(model.label_distributions_[[i]].data, expected)
        assert model.transduction_[i] == sorted(candidates)[inside.argmax()]


def test_votes_on_plain_labels_are_those_of_libsvm():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 2)), rng.integers(0, 5, 150)
    queries = rng.normal(size=(200, 2))
    reference = SVC(C=10.0, gamma="auto", decision_function_shape="ovo").fit(X, y)
    model = PALOC(mu=0, gamma="auto").fit(X, y)
    np.testing.assert_array_equal(model.predict(queries), reference.predict(queries))
    assert model.decision_function(queries).sum() == 200 * 10


def test_the_models_of_the_labels_decide_when_they_weigh_more_than_all_votes():
    X, S, _ = partial_data(3, n=200)
    votes, model = PALOC(mu=0).fit(X, S), PALOC(mu=1000).fit(X, S)
    queries = 3 * np.random.default_rng(3).normal(size=(300, 3))
    confirmed = model.decision_function(queries) >= 1000
    alone = confirmed.sum(axis=1) == 1
    assert alone.any()
    np.testing.assert_array_equal(model.predict(queries)[alone], confirmed[alone].argmax(axis=1))
    none = ~confirmed.any(axis=1)
    assert none.any()
    np.testing.assert_array_equal(model.predict(queries)[none], votes.predict(queries)[none])


def test_refinement():
    has = np.array([[True, True, False], [True, True, False], [False, True, True]])
    votes = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 2.0], [0.0, 1.0, 1.0]])
    assert _refined(has, votes).tolist() == [
        [True, False, False],
        [True, True, False],
        [False, True, False],
    ]


def test_two_classes():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    model = PALOC(mu=0, gamma="auto").fit(X, y)
    assert model.pairs_.tolist() == [[0, 1]]
    decisions = model.decision_function(X)
    assert decisions.shape == (60,)
    np.testing.assert_array_equal(decisions > 0, model.predict(X) == 1)
    np.testing.assert_array_equal(model.predict(X), SVC(C=10.0, gamma="auto").fit(X, y).predict(X))


def test_labels_that_nothing_tells_apart():
    X = np.arange(12.0)[:, np.newaxis]
    S = [{"a", "b"}] * 6 + [{"c"}] * 6
    model = PALOC().fit(X, S)
    assert model.pairs_.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert model.pair_estimators_[0] is None
    assert model.predict([[1.0], [10.0]]).tolist() == ["a", "c"]

    nothing = PALOC().fit(X, [{"a": 1, "b": 1}] * 12)
    assert nothing.pair_estimators_ == [None]
    assert nothing.label_estimators_ == [None, None]
    assert nothing.predict(X).tolist() == ["a"] * 12
    np.testing.assert_array_equal(nothing.label_distributions_.data, 0.5)


def test_labels_that_are_nobodys_candidate():
    X, S, _ = partial_data(0)
    model = PALOC().fit(X, S.with_classes(range(-1, 6)))
    assert set(model.pairs_.ravel()) == {1, 2, 3, 4}
    scores = model.decision_function(X)
    assert np.isfinite(scores).all()
    assert (scores[:, [0, 5, 6]] < scores[:, 1:5].min(axis=1, keepdims=True)).all()
    np.testing.assert_array_equal(scores[:, 1:5], PALOC().fit(X, S).decision_function(X))


def test_one_label_is_an_error():
    with pytest.raises(ValueError, match="y: only one class, 'a'"):
        PALOC().fit([[0.0], [1.0]], as_candidates(["a", "a"], classes=["a", "b"]))


@pytest.mark.parametrize("estimator", [None, LinearSVC(random_state=0)])
def test_parallel_fits_change_nothing(estimator):
    X, S, _ = partial_data(0)
    one, two = (PALOC(estimator=estimator, n_jobs=n).fit(X, S) for n in (1, 2))
    np.testing.assert_array_equal(one.label_distributions_.data, two.label_distributions_.data)
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))


def test_models_get_the_parameters():
    X, S, _ = partial_data(0)
    model = PALOC(C=2.5, kernel="poly", gamma=0.125).fit(X, S)
    assert (len(model.pair_estimators_), len(model.label_estimators_)) == (6, 4)
    for one in (*model.pair_estimators_, *model.label_estimators_):
        assert isinstance(one, SVC)
        assert (one.C, one.kernel, one.gamma) == (2.5, "poly", 0.125)
    assert model.pair_estimators_[0].n_features_in_ == 3
    assert model.label_estimators_[0].n_features_in_ == 9


def test_another_learner():
    X, S, y = partial_data(0, n=200)
    learner = LogisticRegression()
    model = PALOC(estimator=learner).fit(X, S)
    assert all(type(machine) is LogisticRegression for machine in model.pair_estimators_)
    assert not hasattr(learner, "coef_")
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize(
    "parameters",
    [{"mu": -1.0}, {"C": 0.0}, {"kernel": "spline"}, {"gamma": -1.0}, {"estimator": "svm"}],
)
def test_bad_parameters(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        PALOC(**parameters).fit([[0.0], [1.0]], [0, 1])


def test_a_long_fit_is_announced_before_it_starts():
    X, S = np.zeros((400, 50)), as_candidates(np.arange(400) % 200)
    with pytest.raises(UserWarning, match=r"PALOC: 19900 models for the pairs of 200 labels.*PLEC"):
        PALOC().fit(X, S)


@pytest.mark.parametrize("method", [PALOC, PLECOC])
def test_features_of_texts(method):
    """Most are zero, rows have length one: their variance is far below one."""
    rng = np.random.default_rng(0)
    y = np.arange(400) % 10
    words = (rng.dirichlet(np.full(3000, 0.1), 10) + 2 / 3000) / 3
    X = TfidfTransformer().fit_transform(np.array([rng.multinomial(60, words[k]) for k in y]))
    S = as_candidates([{int(k), int((k + rng.integers(0, 10)) % 10)} for k in y])
    assert method().fit(X[:200], S[:200]).score(X[200:], y[200:]) > 0.4
