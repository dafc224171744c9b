import numpy as np
import pytest
from scipy.spatial.distance import cdist

from skpll import LALO

from .literal import data, kernel_ridge, made_up_data, neighbors_of, quadratic_program  # noqa: F401


def laplacian(X, k):
    """The normalized Laplacian of the similarities as published."""
    distances, A = cdist(X, X), np.zeros((len(X), len(X)))
    around = neighbors_of(X, k)
    width = np.mean([distances[i, row[-1]] for i, row in enumerate(around)])
    for i, row in enumerate(around):
        A[row, i] = np.exp(-(distances[i, row] ** 2) / width**2)
    A = A + A.T
    D = A.sum(axis=1)
    return np.eye(len(X)) - A / np.sqrt(np.outer(D, D))


@pytest.mark.parametrize(("k", "smoothness"), [(3, 0.005), (6, 2.0)])
def test_against_the_formulas(data, k, smoothness):  # noqa: F811
    X, S, new = data
    model = LALO(k, smoothness=smoothness, alpha=0.1, max_iter=3, tol=0).fit(X, S)
    Y = np.asarray(S)
    P = Y / Y.sum(axis=1, keepdims=True)
    for _ in range(3):
        Q, _ = kernel_ridge(X, P, new, 0.1)
        P = quadratic_program(2 * (np.eye(len(X)) + smoothness * laplacian(X, k)), 2 * Q, Y)
    np.testing.assert_allclose(model.label_distributions_.toarray(), P, atol=2e-5)
    _, scores = kernel_ridge(X, P, new, 0.1)
    np.testing.assert_allclose(model.decision_function(new), scores, atol=2e-5)


def test_smoothness_makes_neighbours_alike():
    X, S, _ = made_up_data()
    L, rough = laplacian(X, 3), []
    for smoothness in (0.0, 1.0, 10.0):
        P = LALO(3, smoothness=smoothness).fit(X, S).label_distributions_.toarray()
        rough.append(np.trace(P.T @ L @ P))
    assert rough[0] > rough[1] > rough[2]


def test_examples_that_are_all_the_same():
    model = LALO().fit(np.ones((5, 2)), [{0, 1}, {0}, {0}, {0, 1}, {0}])
    assert model.predict([[1.0, 1.0]]).tolist() == [0]
    assert LALO().fit([[1.0, 2.0]], [{"a": 1, "b": 1}]).predict([[3.0, 3.0]]).tolist() == ["a"]


def test_an_outlier_without_similarity():
    X = np.vstack([np.linspace(0, 1, 11)[:, None], [[1e9]]])
    labels = [{0}] * 5 + [{0, 1}] + [{1}] * 5 + [{0, 1}]
    model = LALO(2).fit(X, labels)
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("parameters", [{"n_neighbors": 0}, {"smoothness": -1}, {"search": "no"}])
def test_bad_parameters(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        LALO(**parameters).fit([[0.0], [1.0]], [0, 1])
