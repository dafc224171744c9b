r"""Support vector regression with several outputs, with a pull towards given outputs.

The model is :math:`f(x) = \Theta^T \phi(x) + b` with values in :math:`R^q`. Minimized is

.. math:: J = \tfrac12 \|\Theta\|^2 + C_1 \sum_i L(\|T_i - f(x_i)\|) - C_2 \sum_i Z_i^T f(x_i),
          \qquad L(u) = \max(0, u - \varepsilon)^2,

where the loss looks at the length of the error of all outputs together. The problem is convex. With
:math:`a_i = 2 C_1 \max(0, u_i - \varepsilon) / u_i` at the current errors :math:`u_i`, the gradient
is that of a weighted least-squares problem, which iteratively reweighted least squares (IRWLS)
solves in the place of the true one:

.. math:: \beta = c - h \circ f, \quad f = K \beta + b, \quad \mathbf 1^T \beta = 0,
          \qquad h = a,\ c = a \circ T + C_2 Z,

for :math:`\Theta = \sum_i \phi(x_i) \beta_i^T`. The least-squares problem has less curvature than
the true one, so that the full step may be too long; it is halved until the objective falls enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from ._descent import backtrack, conjugate_gradients

Floats = NDArray[np.float64]

_FEW = 0.8
"""Up to this share of the examples outside the tube, those inside are left out."""

_MANY = 3000
"""From so many examples on, the systems of a kernel are solved by conjugate gradients."""

_LANDMARKS = 500
_REDUCTION = 1e-5
_MOST_PRODUCTS = 40


class LinearModel(Protocol):
    r"""What the regression has to know of its features :math:`\phi`."""

    def solve(self, h: Floats, c: Floats, point: _Point) -> tuple[Floats, Floats]:
        """Solve the weighted least-squares problem; returns coefficients and intercept."""

    def outputs(self, coef: Floats) -> Floats:
        """Give the outputs on the training examples, without the intercept."""

    def penalty(self, coef: Floats, outputs: Floats) -> float:
        """Give the squared norm of Θ."""

    def zeros(self, n_outputs: int) -> Floats:
        """Give coefficients to start from."""


class KernelModel:
    r"""Features known through their inner products; the coefficients are :math:`\beta`.

    With :math:`s = \sqrt h` and :math:`\beta = c - s \circ \gamma`, the equations become
    :math:`(I + s s^T \circ K) \gamma = s \circ (K c + b)`, whose matrix has no eigenvalue below
    one. Only examples outside the tube (:math:`h > 0`) take part.

    Where there are many examples, what has to be added to the coefficients so far is found by
    conjugate gradients in single precision, with the kernel's approximation from a few hundred
    examples as a preconditioner; a factorization does it where they would take many products.

    Parameters
    ----------
    K : array of shape (n, n)
        The kernel matrix.
    """

    def __init__(self, K: Floats) -> None:
        self.K = K
        self.rough = _RoughKernel.of(K) if len(K) >= _MANY else None

    def zeros(self, n_outputs: int) -> Floats:
        """Give coefficients to start from."""
        return np.zeros((len(self.K), n_outputs))

    def outputs(self, coef: Floats) -> Floats:
        """Give the outputs on the training examples, without the intercept."""
        return self.K @ coef

    def penalty(self, coef: Floats, outputs: Floats) -> float:
        """Give the squared norm of Θ."""
        return float(np.vdot(coef, outputs))

    def solve(self, h: Floats, c: Floats, point: _Point) -> tuple[Floats, Floats]:
        """Solve the weighted least-squares problem; returns coefficients and intercept."""
        change = self.rough and self.rough.solve(
            h, c - h[:, np.newaxis] * point.outputs - point.coef, point.coef.sum(axis=0)
        )
        if change is None:
            return self._factor_and_solve(h, c)
        return point.coef + change[0], point.intercept + change[1]

    def _factor_and_solve(self, h: Floats, c: Floats) -> tuple[Floats, Floats]:
        outside = np.flatnonzero(h > 0)
        if len(outside) < _FEW * len(h):
            matrix = self.K[np.ix_(outside, outside)]
        else:  # those inside are rows of the identity then, which costs less than leaving them out
            outside, matrix = np.arange(len(h)), self.K.copy()
        s = np.sqrt(h[outside])
        matrix *= s
        matrix *= s[:, np.newaxis]
        matrix[np.diag_indices_from(matrix)] += 1
        # The transpose is the same matrix, in the order of memory that is factored in place.
        factor = linalg.cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)
        right = np.column_stack([s[:, np.newaxis] * (self.K @ c)[outside], s])
        gamma = linalg.cho_solve(factor, right, overwrite_b=True, check_finite=False)
        intercept = (c.sum(axis=0) - s @ gamma[:, :-1]) / (s @ gamma[:, -1])
        coef = c.copy()
        coef[outside] -= s[:, np.newaxis] * (gamma[:, :-1] + np.outer(gamma[:, -1], intercept))
        return coef, intercept


class _RoughKernel(NamedTuple):
    """A kernel matrix in single precision, and factors G of its approximation G Gᵀ."""

    K: NDArray[np.float32]
    G: NDArray[np.float32]

    @classmethod
    def of(cls, K: Floats) -> _RoughKernel:
        """Approximate the kernel by its columns for a few examples, drawn always alike."""
        count = min(_LANDMARKS, len(K) // 2)
        chosen = np.random.RandomState(0).permutation(len(K))[:count]
        within = K[np.ix_(chosen, chosen)]
        within[np.diag_indices_from(within)] += 1e-8 * np.trace(within)
        lower = linalg.cholesky(within, lower=True)
        G = linalg.solve_triangular(lower, K[chosen], lower=True).T
        return cls(K.astype(np.float32), G.astype(np.float32))

    def solve(self, h: Floats, right: Floats, sums: Floats) -> tuple[Floats, Floats] | None:
        """Solve β + h ∘ (K β + b) = right where β has the sums −sums; None if it takes long."""
        s = np.sqrt(h)[:, np.newaxis]
        s32 = s.astype(np.float32)
        G = s32 * self.G
        core = G.T @ G
        core[np.diag_indices_from(core)] += 1
        factor = linalg.cho_factor(core, lower=True, overwrite_a=True, check_finite=False)
        n_products = 0

        def product(gamma: Floats) -> Floats:
            nonlocal n_products
            n_products += 1
            return gamma + s32 * (self.K @ (s32 * gamma.astype(np.float32)))

        def precondition(residual: Floats) -> Floats:
            inner = linalg.cho_solve(factor, G.T @ residual.astype(np.float32), check_finite=False)
            return residual - G @ inner

        gamma = conjugate_gradients(
            product,
            np.column_stack([s * (self.K @ right.astype(np.float32)), s]),
            inner=partial(np.einsum, "nk,nk->k"),
            reduction=_REDUCTION,
            max_iter=_MOST_PRODUCTS,
            precondition=precondition,
        )
        if n_products == _MOST_PRODUCTS:
            return None
        shift = (right.sum(axis=0) + sums - s.T @ gamma[:, :-1]) / (s.T @ gamma[:, -1:])
        return right - s * (gamma[:, :-1] + gamma[:, -1:] * shift), shift[0]


class FeatureModel:
    r"""Features given as such; the coefficients are :math:`\Theta`.

    The equations become :math:`(I + X^T H X) \Theta + X^T h \, b = X^T c` and
    :math:`h^T X \Theta + \mathbf 1^T h \, b = \mathbf 1^T c`, of the size of the features.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        The features.
    """

    def __init__(self, X: Any) -> None:
        self.X = X

    def zeros(self, n_outputs: int) -> Floats:
        """Give coefficients to start from."""
        return np.zeros((self.X.shape[1], n_outputs))

    def outputs(self, coef: Floats) -> Floats:
        """Give the outputs on the training examples, without the intercept."""
        return np.asarray(self.X @ coef)

    def penalty(self, coef: Floats, outputs: Floats) -> float:  # noqa: ARG002
        """Give the squared norm of Θ."""
        return float(np.vdot(coef, coef))

    def solve(self, h: Floats, c: Floats, point: _Point) -> tuple[Floats, Floats]:  # noqa: ARG002
        """Solve the weighted least-squares problem; returns coefficients and intercept."""
        total = h.sum()
        mean = np.asarray(self.X.T @ h) / total
        matrix = _weighted_gram(self.X, h) - total * np.outer(mean, mean)
        matrix[np.diag_indices_from(matrix)] += 1
        sums = c.sum(axis=0)
        right = np.asarray(self.X.T @ c) - np.outer(mean, sums)
        coef = linalg.solve(matrix, right, assume_a="sym")
        return coef, sums / total - mean @ coef


@dataclass(frozen=True, slots=True)
class MultiOutputSVR:
    """The outcome of `fit_multi_output_svr`.

    Attributes
    ----------
    coef : array
        The coefficients of the model: β (n × q) for a kernel, Θ (d × q) for features.
    intercept : array of shape (q,)
        The intercepts.
    outputs : array of shape (n, q)
        The outputs on the training examples.
    objective : list of float
        The objective at the start and after each iteration; it never rises.
    converged : bool
        Whether the last decrease was as small as was asked for.
    """

    coef: Floats
    intercept: Floats
    outputs: Floats
    objective: list[float]
    converged: bool


def fit_multi_output_svr(
    model: LinearModel,
    targets: Floats,
    pull: Floats,
    *,
    C: float,
    epsilon: float,
    tol: float = 1e-6,
    max_iter: int = 100,
    report: Callable[[int, float], None] = lambda _iteration, _objective: None,
) -> MultiOutputSVR:
    """Fit a regression with several outputs and an ε-insensitive loss of their joint error.

    Parameters
    ----------
    model : KernelModel or FeatureModel
        The features.
    targets : array of shape (n, q)
        The outputs wanted, T.
    pull : array of shape (n, q)
        The linear reward of each output, C₂ Z.
    C : float
        The weight C₁ of the loss.
    epsilon : float
        Errors that are not longer cost nothing.
    tol : float, default=1e-6
        The iteration ends when the objective falls by less than this share of its first value.
    max_iter : int, default=100
        At most so many iterations.
    report : callable, optional
        Called with the number and the objective of each iteration.

    Returns
    -------
    MultiOutputSVR
    """

    def evaluate(coef: Floats, intercept: Floats, plain: Floats) -> _Point:
        outputs = plain + intercept
        excess = np.maximum(np.linalg.norm(targets - outputs, axis=1) - epsilon, 0)
        loss = C * float(excess @ excess) - float(np.vdot(pull, outputs))
        return _Point(coef, intercept, plain, outputs, model.penalty(coef, plain) / 2 + loss)

    coef = model.zeros(targets.shape[1])
    point = evaluate(coef, targets.mean(axis=0), model.outputs(coef))
    objective, converged = [point.value], False
    while not converged and len(objective) <= max_iter:
        error = targets - point.outputs
        a = _loss_weights(np.linalg.norm(error, axis=1), C, epsilon)
        h = (a if a.any() else np.full_like(a, 2 * C))[:, np.newaxis]
        c = a[:, np.newaxis] * error + pull + h * point.outputs
        coef, intercept = model.solve(h[:, 0], c, point)
        ahead = coef - point.coef, intercept - point.intercept, model.outputs(coef) - point.plain
        moved = ahead[1] + ahead[2]
        promised = model.penalty(ahead[0], ahead[2]) + float(np.sum(h * moved**2))
        step, trial = backtrack(partial(_moved, evaluate, point, ahead), point.value, -promised)
        if step == 0:
            converged = True  # rounding is all that is left
            break
        point = trial
        objective.append(point.value)
        converged = objective[-2] - point.value <= tol * abs(objective[0])
        report(len(objective) - 1, point.value)
    return MultiOutputSVR(point.coef, point.intercept, point.outputs, objective, converged)


class _Point(NamedTuple):
    """Coefficients, what they give, and what that costs."""

    coef: Floats
    intercept: Floats
    plain: Floats
    outputs: Floats
    value: float


def _moved(
    evaluate: Callable[..., _Point], point: _Point, ahead: tuple[Floats, ...], step: float
) -> _Point:
    """Go a step ahead."""
    parts = point.coef, point.intercept, point.plain
    return evaluate(*(part + step * change for part, change in zip(parts, ahead, strict=True)))


def _loss_weights(lengths: Floats, C: float, epsilon: float) -> Floats:
    """Give a = C L'(u) / u, which is zero inside the tube."""
    excess = np.maximum(lengths - epsilon, 0)
    return 2 * C * np.divide(excess, lengths, out=np.zeros_like(lengths), where=lengths > 0)


def _weighted_gram(X: Any, h: Floats) -> Floats:
    """Compute XᵀHX."""
    gram: Any = X.T @ (sparse.diags_array(h) @ X)
    return np.asarray(gram.toarray() if sparse.issparse(X) else gram)
