r"""Multinomial logistic regression on soft labels.

.. math:: \min_{W, b} \tfrac12 \|W\|^2
          - \sum_i c_i \sum_{l} T_{il} \log p_l(x_i),
          \qquad p(x) = \operatorname{softmax}(W x + b),

for the rows :math:`T_i` of a sparse n × q matrix, which are not negative and sum to one. The
problem is convex; it is solved by limited-memory BFGS on the dense n × q matrix of scores.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse
from scipy.special import logsumexp

__all__ = ["SoftmaxModel", "fit_softmax"]

Floats = NDArray[np.float64]


class SoftmaxModel(NamedTuple):
    """Coefficients (q, d) and intercepts (q,), and the log-probabilities (n, q) they give."""

    coef: Floats
    intercept: Floats
    log_probabilities: Floats


def fit_softmax(
    X: Any,
    targets: sparse.csr_array,
    weights: Floats,
    *,
    start: SoftmaxModel | None = None,
    tol: float = 1e-4,
    max_iter: int = 100,
) -> SoftmaxModel:
    """Fit a linear model of log-probabilities to soft labels.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        The features.
    targets : CSR matrix of shape (n, q)
        The soft labels T.
    weights : array of shape (n,)
        How much each example counts, c; the penalty is one half of the squared coefficients.
    start : SoftmaxModel, optional
        What to start from; zeros by default.
    tol : float, default=1e-4
        Stop when no entry of the gradient is larger than this.
    max_iter : int, default=100
        Largest number of steps; each lowers the objective.

    Returns
    -------
    SoftmaxModel
    """
    (_, d), q = X.shape, targets.shape[1]
    weighted = sparse.csr_array(targets.multiply(weights[:, np.newaxis]))
    products: Any = weighted.T @ X
    label_features = np.asarray(products.toarray() if hasattr(products, "toarray") else products)
    sums = np.asarray(weighted.sum(axis=0))

    rows, columns = weighted.nonzero()

    def objective(flat: Floats) -> tuple[float, Floats]:
        W = flat.reshape(q, d + 1)
        log_p = _log_probabilities(X, W[:, :d], W[:, d])
        loss = -float(weighted.data @ log_p[rows, columns])
        p = np.exp(log_p)
        p *= weights[:, np.newaxis]
        slope = np.empty_like(W)
        slope[:, :d] = W[:, :d] + (X.T @ p).T - label_features
        slope[:, d] = p.sum(axis=0) - sums
        return 0.5 * float(np.vdot(W[:, :d], W[:, :d])) + loss, slope.ravel()

    first = np.zeros((q, d + 1))
    if start is not None:
        first[:, :d], first[:, d] = start.coef, start.intercept
    found = optimize.minimize(
        objective,
        first.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iter, "gtol": tol, "ftol": 1e-14, "maxls": 50},
    )
    W = found.x.reshape(q, d + 1)
    coef, intercept = W[:, :d].copy(), W[:, d].copy()
    return SoftmaxModel(coef, intercept, _log_probabilities(X, coef, intercept))


def _log_probabilities(X: Any, coef: Floats, intercept: Floats) -> Floats:
    scores = np.asarray(X @ coef.T) + intercept
    return scores - logsumexp(scores, axis=1, keepdims=True)
