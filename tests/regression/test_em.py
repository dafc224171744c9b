import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from skpll import EM

from .literal import data, made_up_data  # noqa: F401


def test_against_copies_of_the_examples(data):  # noqa: F811
    """As it would be written with scikit-learn: one copy for each candidate, with its weight."""
    X, S, new = data
    with pytest.warns(ConvergenceWarning, match="max_iter=4"):
        model = EM(C=2.0, max_iter=4, tol=0).fit(X, S)
    rows, columns = np.nonzero(np.asarray(S))
    P = np.asarray(S) / np.asarray(S).sum(axis=1, keepdims=True)
    for _ in range(4):
        rival = LogisticRegression(C=2.0, tol=1e-8, max_iter=10000)
        rival.fit(X[rows], columns, sample_weight=P[rows, columns])
        P = rival.predict_proba(X) * np.asarray(S)
        P /= P.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.label_distributions_.toarray(), P, atol=1e-4)
    np.testing.assert_allclose(model.predict_proba(new), rival.predict_proba(new), atol=1e-4)


def test_the_end_is_a_stationary_point_of_the_likelihood(data):  # noqa: F811
    X, S, _ = data
    weights = np.linspace(0.5, 2, len(X))
    evidence = S.with_weights(np.linspace(1, 2, len(S.indices)))
    model = EM(C=0.5, tol=1e-12, max_iter=10000).fit(X, evidence, sample_weight=weights)
    E = np.zeros(S.shape)
    E[np.nonzero(np.asarray(S))] = evidence.initial_confidences()

    def objective(flat):
        W = flat.reshape(3, 5)
        likelihoods = (E * softmax(X @ W[:, :4].T + W[:, 4], axis=1)).sum(axis=1)
        return np.sum(W[:, :4] ** 2) / 2 - 0.5 * weights @ np.log(likelihoods)

    reached = np.column_stack([model.coef_, model.intercept_]).ravel()
    assert objective(reached) == pytest.approx(model.history_[-1]["objective"])
    better = minimize(objective, reached, method="BFGS", options={"gtol": 1e-6})
    assert better.fun == pytest.approx(objective(reached), rel=1e-7)
    np.testing.assert_allclose(better.x, reached, atol=1e-2)


def test_the_objective_never_rises():
    X, S, _ = made_up_data(60)
    values = [record["objective"] for record in EM(tol=1e-9, max_iter=1000).fit(X, S).history_]
    assert len(values) > 5
    assert (np.diff(values) <= 1e-9).all()


def test_plain_labels_are_ordinary_logistic_regression():
    X, S, new = made_up_data()
    y = np.arange(24) % 3
    rival = LogisticRegression(tol=1e-8, max_iter=10000).fit(X, y)
    model = EM(C=1.0).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(new), rival.predict_proba(new), atol=1e-4)
    assert model.n_iter_ == 2


def test_evidence_shifts_the_confidences():
    X, S, _ = made_up_data()
    first = S.with_weights(np.where(S.indices == 0, 20.0, 1.0))
    plain, leaning = (EM().fit(X, sets).label_distributions_.toarray() for sets in (S, first))
    assert (leaning[:, 0] >= plain[:, 0] - 1e-6).all()
    assert leaning[:, 0].sum() > plain[:, 0].sum() + 0.5


def test_scores_are_log_probabilities_but_for_a_constant():
    X, S, new = made_up_data()
    model = EM().fit(X, S)
    expected = log_softmax(model.decision_function(new), axis=1)
    np.testing.assert_allclose(np.log(model.predict_proba(new)), expected)


def test_a_class_that_is_nobodys_candidate():
    X, S, new = made_up_data()
    model = EM().fit(X, S.with_classes([0, 1, 2, 3]))
    assert model.intercept_[3] == -np.inf
    assert (model.coef_[3] == 0).all()
    np.testing.assert_allclose(model.predict_proba(new)[:, :3], EM().fit(X, S).predict_proba(new))


@pytest.mark.parametrize("parameters", [{"C": 0}, {"max_iter": 0}, {"tol": -1}])
def test_bad_parameters(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        EM(**parameters).fit([[0.0], [1.0]], [0, 1])
