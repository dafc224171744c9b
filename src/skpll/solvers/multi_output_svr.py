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

With the kernel of many examples, conjugate gradients on the true objective take the place of these
systems. The gradient in the space of the functions has the coefficients
:math:`r = \beta + a \circ (f - T) - C_2 Z`; it is preconditioned by the reweighted system with a
kernel of low rank, and a step takes one product with the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from skpll._typing import Floats
from skpll.engine.arrays import Matrix
from skpll.engine.ridge import weighted_gram

from ._descent import backtrack

Parts = tuple[Floats, ...]
"""Coefficients, intercept, and the outputs without the intercept; or how they change."""

MAX_OUTSIDE_SHARE = 0.8
"""Up to this share of the examples outside the tube, those inside are left out."""

MIN_GRADIENT_EXAMPLES = 3000
"""From this number of examples on, conjugate gradients are used for a kernel."""

MAX_SINGLE_CURVATURE = 1e6
"""If curvatures may be larger, single precision is too rough."""

MIN_KEPT_PROMISE = 0.3
"""The approximation of a kernel is given up if a step gains less than this share of what it
predicts."""

N_LANDMARKS = 500
MAX_PRODUCTS = 40

MIN_STEP_GAIN = 1e-6
"""In single precision, steps end when one gains less than this share of all before it."""


class KernelModel:
    r"""Features known through their inner products; the coefficients are :math:`\beta`.

    With :math:`s = \sqrt h` and :math:`\beta = c - s \circ \gamma`, the equations become
    :math:`(I + s s^T \circ K) \gamma = s \circ (K c + b)`, whose matrix has no eigenvalue below
    one. Only examples outside the tube (:math:`h > 0`) take part.

    Parameters
    ----------
    K : array of shape (n, n)
        The kernel matrix.
    """

    def __init__(self, K: Floats) -> None:
        self.K, self.size = K, len(K)

    def outputs(self, coef: Floats) -> Floats:
        """Return the outputs on the training examples, without the intercept."""
        return self.K @ coef

    def penalty(self, coef: Floats, outputs: Floats) -> float:
        """Return the squared norm of Θ."""
        return float(np.vdot(coef, outputs))

    def solve(self, h: Floats, c: Floats) -> tuple[Floats, Floats]:
        """Solve the weighted least-squares problem; returns coefficients and intercept."""
        outside = np.flatnonzero(h > 0)
        if len(outside) < MAX_OUTSIDE_SHARE * len(h):
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


class FeatureModel:
    r"""Features given as such; the coefficients are :math:`\Theta`.

    The equations become :math:`(I + X^T H X) \Theta + X^T h \, b = X^T c` and
    :math:`h^T X \Theta + \mathbf 1^T h \, b = \mathbf 1^T c`, of the size of the features.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        The features.
    """

    def __init__(self, X: Matrix) -> None:
        self.X, self.size = X, X.shape[1]

    def outputs(self, coef: Floats) -> Floats:
        """Return the outputs on the training examples, without the intercept."""
        return np.asarray(self.X @ coef)

    def penalty(self, coef: Floats, outputs: Floats) -> float:  # noqa: ARG002
        """Return the squared norm of Θ."""
        return float(np.vdot(coef, coef))

    def solve(self, h: Floats, c: Floats) -> tuple[Floats, Floats]:
        """Solve the weighted least-squares problem; returns coefficients and intercept."""
        total = h.sum()
        mean = np.asarray(self.X.T @ h) / total
        matrix = weighted_gram(self.X, h) - total * np.outer(mean, mean)
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
    model: KernelModel | FeatureModel,
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
        Largest number of iterations.
    report : callable, optional
        Called with the number and the objective of each iteration.

    Returns
    -------
    MultiOutputSVR
    """
    problem = _Problem(model, targets, pull, C, epsilon)
    coef = np.zeros((model.size, targets.shape[1]))
    point = problem.evaluate(coef, targets.mean(axis=0), np.zeros_like(targets))
    rough = None
    if (
        isinstance(model, KernelModel)
        and len(targets) >= MIN_GRADIENT_EXAMPLES
        and 2 * C * np.trace(model.K) < MAX_SINGLE_CURVATURE
    ):
        rough = _RoughKernel.of(model.K)
    objective, converged = [point.value], False
    while not converged and len(objective) <= max_iter:
        goal = tol * abs(objective[0])
        trial = rough and rough.descend(problem, point, goal)
        if trial is None:
            rough, trial = None, _reweighted_step(problem, point)
        if trial.value >= point.value:
            converged = True  # rounding is all that is left
            break
        point = trial
        objective.append(point.value)
        converged = objective[-2] - point.value <= goal
        report(len(objective) - 1, point.value)
    return MultiOutputSVR(point.coef, point.intercept, point.outputs, objective, converged)


class _Point(NamedTuple):
    """Coefficients, what they give, and what that costs; the first three are `Parts`."""

    coef: Floats
    intercept: Floats
    plain: Floats
    outputs: Floats
    value: float


class _Problem(NamedTuple):
    """What is minimized."""

    model: KernelModel | FeatureModel
    targets: Floats
    pull: Floats
    C: float
    epsilon: float

    def evaluate(self, coef: Floats, intercept: Floats, plain: Floats) -> _Point:
        outputs = plain + intercept
        excess = np.maximum(np.linalg.norm(self.targets - outputs, axis=1) - self.epsilon, 0)
        loss = self.C * float(excess @ excess) - float(np.vdot(self.pull, outputs))
        penalty = self.model.penalty(coef, plain)
        return _Point(coef, intercept, plain, outputs, penalty / 2 + loss)

    def weights(self, errors: Floats) -> Floats:
        """Return a = C L'(u) / u, which is zero inside the tube, as a column."""
        lengths = np.linalg.norm(errors, axis=1, keepdims=True)
        excess = np.maximum(lengths - self.epsilon, 0)
        shares = np.divide(excess, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        return 2 * self.C * shares

    def gradient(self, point: _Point) -> tuple[Floats, Floats]:
        """Return the gradient by the function, as coefficients r of a kernel, and the intercept."""
        forces = self.forces(point)
        return point.coef - forces, -forces.sum(axis=0)

    def forces(self, point: _Point) -> Floats:
        """Return a ∘ (T − f) + C₂ Z, the direction in which loss and reward want the outputs."""
        error = self.targets - point.outputs
        return self.weights(error) * error + self.pull

    def curvatures(self, point: _Point) -> Floats:
        """Return h of the weighted least-squares problem, as a column; some are positive."""
        a = self.weights(self.targets - point.outputs)
        return a if a.any() else np.full_like(a, 2 * self.C)

    def curvature(self, point: _Point, change: Parts) -> float:
        """Return the second derivative of the objective in a direction."""
        error, moved = self.targets - point.outputs, change[1] + change[2]
        a = self.weights(error)
        lengths = np.linalg.norm(error, axis=1, keepdims=True)
        outwards = np.sum(error * moved, axis=1, keepdims=True)
        outwards = np.divide(outwards, lengths, out=np.zeros_like(a), where=a > 0)
        loss = np.sum(a * moved**2) + np.sum((2 * self.C - a) * outwards**2)
        return self.model.penalty(change[0], change[2]) + float(loss)

    def descend(self, point: _Point, change: Parts, slope: float) -> _Point:
        """Halve the step until the objective falls enough."""
        _, trial = backtrack(
            lambda step: self.evaluate(*_along(point[:3], step, change)), point.value, slope
        )
        return trial


def _along(start: Parts, step: float, change: Parts) -> Parts:
    """Go a step ahead."""
    return tuple(part + step * moved for part, moved in zip(start, change, strict=True))


def _slope(gradient: tuple[Floats, Floats], change: Parts) -> float:
    """Return the derivative of the objective in a direction."""
    return float(np.vdot(gradient[0], change[2])) + float(gradient[1] @ change[1])


def _reweighted_step(problem: _Problem, point: _Point) -> _Point:
    """Take a step of iteratively reweighted least squares."""
    model, h = problem.model, problem.curvatures(point)
    coef, intercept = model.solve(h[:, 0], problem.forces(point) + h * point.outputs)
    change = _along((coef, intercept, model.outputs(coef)), -1.0, point[:3])
    promised = model.penalty(change[0], change[2]) + float(np.sum(h * (change[1] + change[2]) ** 2))
    return problem.descend(point, change, -promised)


class _RoughKernel(NamedTuple):
    """A kernel matrix in single precision, and factors G of its approximation G Gᵀ."""

    K: NDArray[np.float32]
    G: NDArray[np.float32]

    @classmethod
    def of(cls, K: Floats) -> _RoughKernel:
        """Approximate the kernel by its columns for a few examples, drawn with a fixed seed.

        After the factors, G has a column of ones for the intercept.
        """
        count = min(N_LANDMARKS, len(K) // 2)
        chosen = np.random.RandomState(0).permutation(len(K))[:count]
        within = K[np.ix_(chosen, chosen)]
        within[np.diag_indices_from(within)] += 1e-8 * np.trace(within)
        lower = linalg.cholesky(within, lower=True)
        factors = linalg.solve_triangular(lower, K[chosen], lower=True)
        G = np.concatenate([factors, np.ones((1, len(K)))]).T
        return cls(K.astype(np.float32), G.astype(np.float32))

    def descend(self, problem: _Problem, start: _Point, goal: float) -> _Point | None:
        """Go down by conjugate gradients; None if that takes long, or the kernel is too rough.

        It ends when a step gains less than a hundredth of the goal, or next to nothing of what was
        gained before. Then the outputs are computed once in double precision.
        """
        point = start
        for trial in islice(self._steps(problem, start), MAX_PRODUCTS):
            gain, point = point.value - trial.value, trial
            if gain <= max(goal / 100, MIN_STEP_GAIN * (start.value - point.value)):
                outputs = problem.model.outputs(point.coef)
                return problem.evaluate(point.coef, point.intercept, outputs)
        return None

    def _steps(self, problem: _Problem, point: _Point) -> Iterator[_Point]:
        """Take steps of Polak's and Ribière's conjugate gradients, of the length of Newton's.

        They end where the approximation promises more than there is: the preconditioner need not
        be positive there, and the objective might seem to be at its minimum.
        """
        downhill = self._preconditioner(problem.curvatures(point))
        before, fall = problem.gradient(point), 0.0
        ahead = _along(point[:3], -1.0, point[:3])
        while True:
            gradient = problem.gradient(point)
            steepest, promised = downhill(gradient[0], point.coef.sum(axis=0))
            change = _slope(gradient, steepest) - _slope(before, steepest)
            ahead = _along(steepest, max(change / fall, 0.0) if fall else 0.0, ahead)
            before, fall = gradient, _slope(gradient, steepest)
            if fall > MIN_KEPT_PROMISE * promised:
                return
            slope, bend = _slope(gradient, ahead), problem.curvature(point, ahead)
            length = -slope / bend if bend > 0 else 0.0
            point = problem.descend(point, _along(ahead, length - 1, ahead), slope * length)
            yield point

    def _preconditioner(self, h: Floats) -> Callable[[Floats, Floats], tuple[Parts, float]]:
        """Return the function that solves β + h ∘ (G Gᵀ β + b) = −right for β with the sums −sums.

        It also gives the slope of the objective in this direction with G Gᵀ for the kernel.
        """
        weights = h.astype(np.float32)
        scaled = np.sqrt(weights) * self.G
        core = scaled.T @ scaled
        core[np.diag_indices(len(core) - 1)] += 1
        factor = linalg.cho_factor(core, lower=True, overwrite_a=True, check_finite=False)

        def solve(right: Floats, sums: Floats) -> tuple[Parts, float]:
            inside = self.G.T @ right.astype(np.float32)
            inside[-1] -= sums
            inside = linalg.cho_solve(factor, inside, check_finite=False).astype(np.float32)
            expected = self.G @ inside
            coef = weights * expected - right
            outputs = (self.K @ coef.astype(np.float32)).astype(np.float64)
            promised = float(sums @ inside[-1]) - float(np.vdot(right, expected))
            return (coef, -inside[-1].astype(np.float64), outputs), promised

        return solve
