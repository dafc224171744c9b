import numpy as np
import pytest

from skpll import PLAGGD, PLLEAF
from skpll._examples import Examples

from .literal import data, kernel_ridge, made_up_data, quadratic_program, reconstruction  # noqa: F401


@pytest.mark.parametrize(("k", "gamma", "mu"), [(3, 1.0, 1.0), (5, 0.2, 3.0)])
def test_against_the_formulas(data, k, gamma, mu):  # noqa: F811
    X, S, new = data
    model = PLAGGD(k, feature_weight=gamma, smoothness=mu, alpha=0.1, max_iter=2, tol=0).fit(X, S)
    Y, one = np.asarray(S), np.eye(len(X))
    W = reconstruction(X, np.zeros(Y.shape), k, 1.0, 0.0)
    F = quadratic_program((one - W).T @ (one - W), np.zeros(Y.shape), Y)
    for _ in range(2):
        H, _ = kernel_ridge(X, F, new, 0.1)
        W = reconstruction(X, F, k, gamma, mu)
        F = quadratic_program(2 * one + 2 * mu * (one - W).T @ (one - W), 2 * H, Y)
    np.testing.assert_allclose(model.label_distributions_.toarray(), F, atol=1e-3)
    _, scores = kernel_ridge(X, F, new, 0.1)
    np.testing.assert_allclose(model.decision_function(new), scores, atol=1e-3)


def test_confidences_start_as_those_of_plleaf():
    X, S, _ = made_up_data()
    for sets in (S, S.with_weights(np.linspace(1, 2, len(S.indices)))):
        graph = PLAGGD(4)._graph(Examples(X, sets, np.ones(len(X))))
        expected = PLLEAF(4).fit(X, sets).label_distributions_.data
        np.testing.assert_allclose(graph.first_confidences(), expected, atol=1e-6)


def test_neighbours_that_contradict_lose_weight():
    X = np.array([[1.0, 0.0], [1.0, 0.1], [1.0, -0.1]])
    graph = PLAGGD(2)._graph(Examples(X, made_up_data()[1][[0, 3, 4]], np.ones(3)))
    F = np.array([[1.0, 0, 0], [1.0, 0, 0], [0, 1.0, 0]])
    W = reconstruction(X, F, 2, 1.0, 1.0)
    plain = graph._graph(graph.feature_grams).toarray()
    assert plain[0] == pytest.approx([0, 0.5, 0.5])
    assert W[0, 1] > 0.9


def test_one_example():
    model = PLAGGD().fit([[1.0, 2.0]], [{"a": 1, "b": 1}])
    assert model.label_distributions_.data.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    "parameters", [{"n_neighbors": 0}, {"smoothness": 0}, {"feature_weight": 0}, {"n_jobs": 1.5}]
)
def test_bad_parameters(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        PLAGGD(**parameters).fit([[0.0], [1.0]], [0, 1])
