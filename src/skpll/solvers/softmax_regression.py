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
from skpll.engine.arrays import Matrix, as_dense, is_sparse
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
        columns = [X, np.ones((X.shape[0], 1))]
        self.X: Matrix = sparse.hstack(columns, "csr") if is_sparse(X) else np.hstack(columns)
        self.weights, self._factor = weights, None
        if X.shape[1] <= MAX_FACTORED_FEATURES:
            bound = weighted_gram(self.X, weights) / 2
            diagonal = np.einsum("ii->i", bound)
            diagonal[:-1] += 1
            diagonal *= 1 + ROUNDING
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
        X, shape = self.X, (self.X.shape[1], targets.shape[1])
        weighted = sparse.csr_array(targets.multiply(self.weights[:, np.newaxis]))
        rows, columns = weighted.nonzero()
        label_features = as_dense(X.T @ weighted)

        def objective(flat: Floats) -> tuple[float, Floats]:
            W = self._turned(flat.reshape(shape), "T")
            log_p = log_softmax(np.asarray(X @ W), axis=1)
            loss = -float(weighted.data @ log_p[rows, columns])
            p = np.exp(log_p)
            p *= self.weights[:, np.newaxis]
            slope = np.asarray(X.T @ p) - label_features
            slope[:-1] += W[:-1]
            value = 0.5 * float(np.vdot(W[:-1], W[:-1])) + loss
            return value, self._turned(slope, "N").ravel()

        first = np.zeros(shape)
        if start is not None:
            first = np.vstack([start.coef.T, start.intercept])
            if self._factor is not None:
                first = self._factor.T @ first
        found = optimize.minimize(
            objective,
            first.ravel(),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": max_iter, "gtol": 0.0, "ftol": tol, "maxls": 50},
        )
        W = self._turned(found.x.reshape(shape), "T")
        log_p = np.asarray(log_softmax(np.asarray(X @ W), axis=1))
        return SoftmaxModel(W[:-1].T.copy(), W[-1].copy(), log_p)

    def _turned(self, W: Floats, trans: Literal["N", "T"]) -> Floats:
        """Multiply by the inverse of the factor of B ("N"), or of its transpose ("T")."""
        if self._factor is None:
            return W
        return np.asarray(
            linalg.solve_triangular(self._factor, W, lower=True, trans=trans, check_finite=False)
        )
