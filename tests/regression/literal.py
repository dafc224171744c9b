"""The formulas of the methods written down with dense matrices and a general solver."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import cdist, pdist

from skpll import as_candidates


def made_up_data(n=24, q=3, seed=0):
    """Overlapping classes; every second example is certain, so that minimizers are unique."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % q
    X = rng.normal(size=(n, 4)) + 2 * np.eye(q, 4)[y] + 1
    sets = [
        {k, *rng.integers(0, q, 2).tolist()} if i % 2 else {k} for i, k in enumerate(y.tolist())
    ]
    return X, as_candidates(sets, classes=range(q)), rng.normal(size=(7, 4)) + 1


@pytest.fixture(params=[0, 1], ids=["seed0", "seed1"])
def data(request):
    return made_up_data(seed=request.param)


def rbf(A, B, width):
    return np.exp(-(cdist(A, B) ** 2) / (2 * width**2))


def kernel_ridge(X, P, new, ridge):
    """Outputs on the examples and on new ones: the normal equations with an intercept."""
    n, width = len(X), pdist(X).mean()
    K = rbf(X, X, width)
    system = np.block(
        [[K + ridge * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]]
    )
    solution = np.linalg.solve(system, np.vstack([P, np.zeros((1, P.shape[1]))]))
    return K @ solution[:-1] + solution[-1], rbf(new, X, width) @ solution[:-1] + solution[-1]


def quadratic_program(M, T, Y):
    """Minimize tr F'MF / 2 − tr F'T where rows of F are distributions on the candidates."""
    rows, columns = np.nonzero(Y)

    def matrix(values):
        F = np.zeros(Y.shape)
        F[rows, columns] = values
        return F

    def objective(values):
        F = matrix(values)
        return np.sum(F * (M @ F)) / 2 - np.sum(F * T), (M @ F - T)[rows, columns]

    found = minimize(
        objective,
        1 / Y.sum(axis=1)[rows],
        jac=True,
        bounds=[(0, 1)] * len(rows),
        constraints={
            "type": "eq",
            "fun": lambda values: matrix(values).sum(axis=1) - 1,
            "jac": lambda _: (rows == np.arange(len(Y))[:, None]).astype(float),
        },
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    return matrix(found.x)


def neighbors_of(X, k):
    distances = cdist(X, X)
    np.fill_diagonal(distances, np.inf)
    return np.argsort(distances, axis=1, kind="stable")[:, :k]


def reconstruction(X, F, k, gamma, mu):
    """The weights with which neighbours reconstruct features of length one and confidences."""
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    W = np.zeros((len(X), len(X)))
    for i, around in enumerate(neighbors_of(X, k)):
        D, E = X[i] - X[around], F[i] - F[around]
        G = gamma * D @ D.T + mu * E @ E.T
        G /= np.trace(G)
        W[i, around] = _on_simplex(G)
    return W


def _on_simplex(G):
    """Minimize w'Gw over distributions: the best of all sets of positive weights."""
    k, best, lowest = len(G), None, np.inf
    for chosen in range(1, 2**k):
        free = [j for j in range(k) if chosen >> j & 1]
        part = G[np.ix_(free, free)] + 1e-14 * np.eye(len(free))
        w = np.linalg.solve(part, np.ones(len(free)))
        w /= w.sum()
        if (w >= -1e-12).all() and w @ part @ w < lowest - 1e-15:
            lowest, best = w @ part @ w, (free, w)
    weights = np.zeros(k)
    weights[best[0]] = best[1]
    return weights
