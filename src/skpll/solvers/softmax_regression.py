r"""Multinomial logistic regression on soft labels.

.. math:: \min_{W, b} \tfrac12 \|W\|^2
          - \sum_i c_i \sum_{l} T_{il} \log p_l(x_i),
          \qquad p(x) = \operatorname{softmax}(W x + b),

for the rows :math:`T_i` of a sparse n × q matrix, which are not negative and sum to one. The
problem is convex; it is solved by limited-memory BFGS on the dense n × q matrix of scores. The
Hessian of one label is at most :math:`B = I + \tfrac12 X^\top C X`, with the constant 1 as a last
feature that is not penalized; in coordinates in which B is the identity, tens of steps suffice even
where features are strongly correlated. Several problems that differ in T alone share that change of
coordinates.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from scipy import linalg, optimize, sparse
from scipy.special import log_softmax

from skpll._typing import Floats
from skpll.engine.arrays import Matrix
from skpll.engine.ridge import weighted_gram

MAX_FACTORED_FEATURES = 4000
"""With more features than this the coordinates stay as they are."""

ROUNDING = 1e-10
"""The diagonal of the bound of the curvature is raised by this share of it. It may be singular but
for rounding: for features that are huge, or almost the same for all examples."""


class SoftmaxModel(NamedTuple):
    """Coefficients (q, d) and intercepts (q,), and the log-probabilities (n, q) they give."""

    coef: Floats
    intercept: Floats
    log_probabilities: Floats


class SoftmaxProblem:
    """Logistic regression of soft labels on given features.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        The features.
    weights : array of shape (n,)
        How much each example counts, c; the penalty is one half of the squared coefficients.
    """

    def __init__(self, X: Matrix, weights: Floats) -> None:
        self.X, self.weights = X, weights
        d = X.shape[1]
        self._factor = None
        if d <= MAX_FACTORED_FEATURES:
            bound = np.zeros((d + 1, d + 1))
            bound[:d, :d] = weighted_gram(X, weights)
            bound[d, :d] = bound[:d, d] = weights @ X
            bound[d, d] = weights.sum()
            bound /= 2
            bound[np.arange(d), np.arange(d)] += 1
            bound[np.diag_indices(d + 1)] *= 1 + ROUNDING
            self._factor = linalg.cholesky(bound, lower=True, check_finite=False)

    def fit(
        self,
        targets: sparse.csr_array,
        *,
        start: SoftmaxModel | None = None,
        tol: float = 1e-8,
        max_iter: int = 100,
    ) -> SoftmaxModel:
        """Fit a linear model of log-probabilities to soft labels.

        Parameters
        ----------
        targets : CSR matrix of shape (n, q)
            The soft labels T.
        start : SoftmaxModel, optional
            What to start from; zeros by default.
        tol : float, default=1e-8
            Stop when a step lowers the objective by less than this share of it.
        max_iter : int, default=100
            Largest number of steps; each lowers the objective.

        Returns
        -------
        SoftmaxModel
        """
        X, (d, q) = self.X, (self.X.shape[1], targets.shape[1])
        weighted = sparse.csr_array(targets.multiply(self.weights[:, np.newaxis]))
        rows, columns = weighted.nonzero()
        sums = np.asarray(weighted.sum(axis=0))
        products: Matrix = X.T @ weighted
        label_features = products.toarray() if hasattr(products, "toarray") else products

        def objective(flat: Floats) -> tuple[float, Floats]:
            W = self._turned(flat.reshape(d + 1, q), transposed=True)
            log_p = log_softmax(np.asarray(X @ W[:d]) + W[d], axis=1)
            loss = -float(weighted.data @ log_p[rows, columns])
            p = np.exp(log_p)
            p *= self.weights[:, np.newaxis]
            slope = np.empty_like(W)
            slope[:d] = W[:d] + X.T @ p - label_features
            slope[d] = p.sum(axis=0) - sums
            value = 0.5 * float(np.vdot(W[:d], W[:d])) + loss
            return value, self._turned(slope, transposed=False).ravel()

        first = np.zeros((d + 1, q))
        if start is not None:
            first[:d], first[d] = start.coef.T, start.intercept
            if self._factor is not None:
                first = self._factor.T @ first
        found = optimize.minimize(
            objective,
            first.ravel(),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": max_iter, "gtol": 0.0, "ftol": tol, "maxls": 50},
        )
        W = self._turned(found.x.reshape(d + 1, q), transposed=True)
        coef, intercept = W[:d].T.copy(), W[d].copy()
        log_p = np.asarray(log_softmax(np.asarray(X @ coef.T) + intercept, axis=1))
        return SoftmaxModel(coef, intercept, log_p)

    def _turned(self, W: Floats, *, transposed: bool) -> Floats:
        """Multiply by the inverse of the factor of B, or of its transpose."""
        if self._factor is None:
            return W
        trans: Literal["N", "T"] = "T" if transposed else "N"
        solved = linalg.solve_triangular(
            self._factor, W, lower=True, trans=trans, check_finite=False
        )
        return np.asarray(solved)
