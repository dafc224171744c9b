r"""Variational inference in the logistic stick-breaking conditional multinomial model.

A stick of length one is broken at gate 1, the rest at gate 2, and so on; the last component takes
what is left. With the links :math:`u_{nk} = c_k + w_k^\top x_n` of :math:`K - 1` gates, example
:math:`n` belongs to component :math:`k` with probability

.. math:: \phi_{nk} = \sigma(u_{nk}) \prod_{j<k} \sigma(-u_{nj}), \qquad u_{nK} = \infty.

Component :math:`k` draws labels from :math:`\theta_k`, whose posterior is approximated by
:math:`\mathrm{Dir}(\hat\alpha_k)`. All that is known of the label is that it is in :math:`S_n`.

A gate is a logistic regression with soft targets. Example :math:`n` wants gate :math:`k` open with
weight :math:`a_{kn}` and shut with weight :math:`b_{kn}`, so that the gate minimizes

.. math:: f_k(c_k, w_k) = \sum_n \bigl[a_{kn} \log(1 + e^{-u_{nk}})
          + b_{kn} \log(1 + e^{u_{nk}})\bigr] + \frac{\lVert w_k \rVert^2}{2 \sigma^2}.

The intercept :math:`c_k` is not penalized. Gates are the rows of a matrix whose first column holds
the intercepts. They do not depend on each other, but they share the features: Newton's method runs
on several of them side by side, so that every product with the features is a matrix product.
Matrices of gates by examples go to memory that is used again and again: to touch fresh memory
takes longer than the arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import digamma, gammaln, log_expit, logsumexp

from skpll._typing import Floats, Ints
from skpll.engine.arrays import Matrix

from ._descent import backtrack, conjugate_gradients, with_constant

BLOCK_ENTRIES = 2**15
MIN_TOTAL = 1e-200

_LEAST_CURVATURE = 1e-7
_LARGEST_EXPONENT = 700.0
_RESIDUAL_REDUCTION = 0.3
_MAX_CONJUGATE_STEPS = 20

BATCH_VALUES, MIN_BATCH_GATES = 2**19, 8
"""Approximate number of values (links of gates and examples) in a batch of gates."""


class Posterior(NamedTuple):
    """What is known about the labels and components of the examples.

    Attributes
    ----------
    components : array of shape (n, K)
        Probability of each component; a row of zeros where no candidate is possible.
    labels : array of shape (number of candidates in all,)
        Probability of each candidate, in the order of the candidates.
    counts : array of shape (K, q)
        Expected number of examples, by weight, of each label in each component.
    evidence : float
        The weighted sum of the log normalizers.
    """

    components: Floats
    labels: Floats
    counts: Floats
    evidence: float


def log_stick_breaking(links: Floats) -> Floats:
    r"""Return the log-probability of each component.

    Parameters
    ----------
    links : array of shape (..., K - 1)
        The log-odds that each gate is open.

    Returns
    -------
    log_mixture : array of shape (..., K)
        :math:`\log \phi_{nk}`.
    """
    log_mixture = np.zeros((*links.shape[:-1], links.shape[-1] + 1))
    np.cumsum(log_expit(-links), axis=-1, out=log_mixture[..., 1:])
    log_mixture[..., :-1] += log_expit(links)
    return log_mixture


def even_intercepts(n_components: int) -> Floats:
    """Return the intercepts of the gates that break the stick into equal parts.

    Parameters
    ----------
    n_components : int
        Number K of parts.

    Returns
    -------
    intercepts : array of shape (K - 1,)
    """
    return -np.log(np.arange(n_components - 1, 0, -1))


def stick_mixture(opened: Floats, shut: Floats) -> Floats:
    """Return the probability of each component.

    Parameters
    ----------
    opened, shut : arrays of shape (K - 1, n)
        The probabilities that each gate is open, and shut.

    Returns
    -------
    mixture : array of shape (n, K)
        It is zero where a probability is too small for floating-point numbers.
    """
    parts = np.ones((len(shut) + 1, shut.shape[1]))
    for rest, gate_shut, following in zip(parts, shut, parts[1:], strict=False):
        np.multiply(rest, gate_shut, out=following)
    parts[:-1] *= opened
    return np.ascontiguousarray(parts.T)


def gate_targets(components: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return how much each example wants each gate open, and shut.

    An example that belongs to component k wants gate k open and the gates before it shut; the gates
    after it do not concern it.

    Parameters
    ----------
    components : array of shape (n, K)
        Probability of each component.
    weights : array of shape (n,)
        How much each example counts.

    Returns
    -------
    positive, negative : arrays of shape (K - 1, n)
    """
    parts = np.ascontiguousarray(components.T) * weights
    beyond = np.zeros_like(parts)
    for k in reversed(range(len(parts) - 1)):
        np.add(beyond[k + 1], parts[k + 1], out=beyond[k])
    return parts[:-1], beyond[:-1]


def expected_log_probabilities(concentration: Floats) -> Floats:
    r"""Return the expectation of the logarithms of Dirichlet variables.

    Parameters
    ----------
    concentration : array of shape (K, q)
        The parameters of K Dirichlet distributions. A label with parameter zero never occurs.

    Returns
    -------
    log_probabilities : array of shape (K, q)
        :math:`E[\log \theta_{kl}] = \psi(\hat\alpha_{kl}) - \psi(\sum_m \hat\alpha_{km})`.
    """
    possible = concentration > 0
    expected = digamma(np.where(possible, concentration, 1.0))
    totals = digamma(concentration.sum(axis=1, keepdims=True))
    return np.where(possible, expected - totals, -np.inf)


def dirichlet_divergence(concentration: Floats, prior: Floats) -> float:
    r"""Sum the Kullback–Leibler divergences of Dirichlet distributions from their prior.

    .. math:: \sum_k \log \frac{\Gamma(\sum_l \hat\alpha_{kl})}{\prod_l \Gamma(\hat\alpha_{kl})}
              - \log \frac{\Gamma(\sum_l \alpha_l)}{\prod_l \Gamma(\alpha_l)}
              + \sum_l (\hat\alpha_{kl} - \alpha_l) E[\log \theta_{kl}]

    Parameters
    ----------
    concentration : array of shape (K, q)
        The parameters :math:`\hat\alpha_k`.
    prior : array of shape (q,)
        The parameters :math:`\alpha`; labels with parameter zero, here and above, never occur.

    Returns
    -------
    divergence : float
    """
    possible = prior > 0
    concentration, prior = concentration[:, possible], prior[possible]
    expected = expected_log_probabilities(concentration)
    divergences = _log_normalizer(prior) - _log_normalizer(concentration)
    divergences += np.sum((concentration - prior) * expected, axis=1)
    return float(divergences.sum())


def _log_normalizer(concentration: Floats) -> Floats:
    return np.asarray(gammaln(concentration).sum(axis=-1) - gammaln(concentration.sum(axis=-1)))


def infer(
    pattern: tuple[NDArray[np.int64], NDArray[np.int32]],
    weights: Floats,
    mixture: Floats,
    odds: Floats,
    log_probabilities: Floats,
    log_evidence: Floats | None = None,
) -> Posterior:
    r"""Find the best joint posterior of label and component of each example.

    .. math:: r_{nlk} = \frac{e_{nl} \phi_{nk} e^{E[\log \theta_{kl}]}}{Z_n}, \qquad
              Z_n = \sum_{l \in S_n} e_{nl} \sum_k \phi_{nk} e^{E[\log \theta_{kl}]}.

    Parameters
    ----------
    pattern : tuple of two arrays
        The candidate sets in compressed rows: ``(indptr, indices)``.
    weights : array of shape (n,)
        How much each example counts.
    mixture : array of shape (n, K)
        :math:`\phi_{nk}`; the posterior of the components takes its place.
    odds : array of shape (K - 1, n)
        The log-odds of the gates that make this mixture, for the examples whose :math:`Z_n` is too
        small for floating-point numbers.
    log_probabilities : array of shape (K, q)
        :math:`E[\log \theta_{kl}]`; minus infinity for an impossible label.
    log_evidence : array of the size of `indices`, optional
        :math:`\log e_{nl}`, how likely what is known of an example is for each candidate; by
        default the same for all.

    Returns
    -------
    Posterior
    """
    indptr, indices = pattern
    sizes, by_label = np.diff(indptr), np.exp(log_probabilities.T)
    rows = np.repeat(np.arange(len(sizes)), sizes)
    labels = np.ones(len(rows)) if log_evidence is None else np.exp(log_evidence)
    shares = labels.copy()
    block = max(1, BLOCK_ENTRIES // mixture.shape[1])
    for start in range(0, len(rows), block):
        entries = slice(start, start + block)
        pairs = np.take(mixture, rows[entries], axis=0), by_label[indices[entries]]
        labels[entries] *= np.einsum("ek,ek->e", *pairs)
    totals = np.add.reduceat(labels, indptr[:-1])
    lost = np.flatnonzero(totals < MIN_TOTAL)
    totals[lost] = np.inf
    labels /= totals[rows]
    shares /= totals[rows]
    sets = sparse.csr_array((shares, indices, indptr), shape=(len(sizes), len(by_label)))
    weighted = sparse.csr_array((shares * weights[rows], indices, indptr), shape=sets.shape)
    counts = by_label * np.asarray(weighted.T @ mixture)
    for start in range(0, len(sizes), block):
        examples = slice(start, start + block)
        mixture[examples] *= sets[examples] @ by_label
    totals[lost] = 1
    evidence = float(weights @ np.log(totals))
    for i in lost:
        entries = slice(indptr[i], indptr[i + 1])
        joint = log_stick_breaking(odds[:, i]) + log_probabilities.T[indices[entries]]
        if log_evidence is not None:
            joint += log_evidence[entries, np.newaxis]
        total = logsumexp(joint)
        if total > -np.inf:
            joint = np.exp(joint - total)
            mixture[i], labels[entries] = joint.sum(axis=0), joint.sum(axis=1)
            counts[indices[entries]] += weights[i] * joint
            evidence += weights[i] * total
    return Posterior(mixture, labels, counts.T, evidence)


class Links(NamedTuple):
    r"""What gates do to examples: matrices of shape (m, n).

    Attributes
    ----------
    odds : array
        The log-odds :math:`u` that each gate is open for each example.
    losses : array
        :math:`\log(1 + e^u)`.
    opened, shut : arrays
        The probabilities :math:`\sigma(u)` and :math:`\sigma(-u)`; the latter is at least
        :math:`e^{-700}`.
    """

    odds: Floats
    losses: Floats
    opened: Floats
    shut: Floats

    def update(self) -> None:
        """Bring everything up to date with the log-odds."""
        odds, losses, opened, shut = self
        np.minimum(odds, _LARGEST_EXPONENT, out=shut)
        np.exp(shut, out=opened)
        np.add(opened, 1, out=losses)
        np.divide(1, losses, out=shut)
        np.multiply(opened, shut, out=opened)
        np.log(losses, out=losses)
        if odds.max(initial=0) > _LARGEST_EXPONENT:
            np.add(losses, np.maximum(odds - _LARGEST_EXPONENT, 0), out=losses)


class Gates:
    """Gates, and what they do to examples.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        The features.
    coef : array of shape (m, 1 + d)
        The gates to start from: intercepts, then coefficients.

    Attributes
    ----------
    coef : array of shape (m, 1 + d)
        The gates.
    links : Links
        What they do to the examples.
    """

    def __init__(self, X: Matrix, coef: Floats) -> None:
        self.coef = coef.copy()
        self.links = Links(*np.empty((4, len(coef), X.shape[0])))
        self._X = with_constant(X.astype(np.float64, copy=False))
        self._size = max(1, min(len(coef), max(MIN_BATCH_GATES, BATCH_VALUES // X.shape[0])))
        self._memory = np.empty((14, self._size, X.shape[0]))
        _write_product(self._X, coef, self.links.odds)
        self.links.update()

    def improve(
        self,
        positive: Floats,
        negative: Floats,
        variance: float,
        *,
        tol: float = 1e-6,
        max_iter: int = 100,
    ) -> None:
        r"""Minimize the objective of every gate by truncated Newton steps with backtracking.

        No gate ever ends above the objective it started with. A gate is done when the decrease
        that a diagonal model of its objective predicts, :math:`\tfrac12 g^\top D^{-1} g`, is not
        above `tol`, or when its Newton step no longer brings it down in floating-point numbers.

        Parameters
        ----------
        positive, negative : array of shape (m, n)
            How much each example wants each gate open, and shut; non-negative.
        variance : float
            The prior variance :math:`\sigma^2` of the coefficients.
        tol : float, default=1e-6
            The predicted decrease of its objective at which a gate is done.
        max_iter : int, default=100
            Number of Newton steps at most.
        """
        precisions = np.full(self.coef.shape[1], 1 / variance)
        precisions[0] = 0  # the intercept is not penalized
        squares = _mean_squares(self._X, positive.sum(axis=0) + negative.sum(axis=0))
        goal = _Goal(positive, negative, precisions, squares)
        for start in range(0, len(self.coef), self._size):
            gates = np.arange(start, min(start + self._size, len(self.coef)))
            self._improve(gates, goal, tol, max_iter)

    def _improve(self, active: Ints, goal: _Goal, tol: float, max_iter: int) -> None:
        """Improve some gates; those that are done are left out of the next step."""
        batch = _Batch(self, active, goal)
        value = batch.value(batch.coef, batch.links)
        before = np.full_like(value, np.inf)
        for _ in range(max_iter):
            gradient, curvatures = batch.gradient(), batch.curvatures()
            scale = goal.precisions + goal.squares * curvatures.sum(axis=1, keepdims=True)
            going = (_dot(gradient, _divide(gradient, scale)) > 2 * tol) & (value < before)
            if not going.any():
                return
            if not going.all():
                kept = np.flatnonzero(going)
                active, value, gradient, scale = (
                    active[kept],
                    value[kept],
                    gradient[kept],
                    scale[kept],
                )
                batch = _Batch(self, active, goal)
                curvatures = batch.curvatures()
            direction = batch.newton_direction(gradient, curvatures, scale)
            before, value = value, batch.descend(value, gradient, direction)
            self.coef[active] = batch.coef
            for part, better in zip(self.links, batch.links, strict=True):
                part[active] = better


class _Goal(NamedTuple):
    """How much examples want gates open and shut, the penalties, and the mean squared features."""

    positive: Floats
    negative: Floats
    precisions: Floats
    squares: Floats


class _Trial(NamedTuple):
    """Gates that may be better."""

    coef: Floats
    value: Floats


class _Batch:
    """The objectives of some gates. Numbers that belong to gates are columns."""

    def __init__(self, gates: Gates, some: Ints, goal: _Goal) -> None:
        self.X, self.precisions = gates._X, goal.precisions
        memory = gates._memory[:, : len(some)]
        self.coef = gates.coef[some]
        self.positive = _take(goal.positive, some, memory[0])
        self.negative = _take(goal.negative, some, memory[1])
        places = zip(gates.links, memory[2:6], strict=True)
        self.links = Links(*(_take(part, some, place) for part, place in places))
        self.trial = Links(*memory[6:10])
        self.total, self._curvatures, self.along, self.scratch = memory[10:]
        np.add(self.positive, self.negative, out=self.total)

    def value(self, coef: Floats, links: Links) -> Floats:
        """Return the objectives."""
        wrong = np.subtract(links.losses, links.odds, out=self.scratch)
        losses = np.einsum("kn,kn->k", self.negative, links.losses)
        losses += np.einsum("kn,kn->k", self.positive, wrong)
        return losses[:, np.newaxis] + 0.5 * _dot(coef, self.precisions * coef)

    def gradient(self) -> Floats:
        """Return the slopes of the objectives."""
        slopes = np.multiply(self.total, self.links.opened, out=self.scratch)
        slopes -= self.positive
        return np.asarray(slopes @ self.X) + self.precisions * self.coef

    def curvatures(self) -> Floats:
        """Return the second derivatives of the losses with respect to the links.

        They are never less than a tiny share of the weights: Newton steps stay bounded where a
        gate is far on the wrong side.
        """
        curvatures = np.multiply(self.links.opened, self.links.shut, out=self._curvatures)
        np.maximum(curvatures, _LEAST_CURVATURE, out=curvatures)
        return np.multiply(curvatures, self.total, out=curvatures)

    def hessian_product(self, curvatures: Floats) -> Callable[[Floats], Floats]:
        """Return the product with the matrices of second derivatives."""

        def product(direction: Floats) -> Floats:
            _write_product(self.X, direction, self.scratch)
            curved = np.multiply(self.scratch, curvatures, out=self.scratch)
            return np.asarray(curved @ self.X) + self.precisions * direction

        return product

    def newton_direction(self, gradient: Floats, curvatures: Floats, scale: Floats) -> Floats:
        """Solve Hessian · direction = −gradient roughly, for all gates side by side."""
        return conjugate_gradients(
            self.hessian_product(curvatures),
            -gradient,
            inner=_dot,
            reduction=_RESIDUAL_REDUCTION,
            max_iter=_MAX_CONJUGATE_STEPS,
            precondition=lambda residual: _divide(residual, scale),
        )

    def descend(self, value: Floats, gradient: Floats, direction: Floats) -> Floats:
        """Go along the direction until the objective of each gate falls enough.

        Links are linear along the direction, so that trying a step takes no product with the
        features. Returns the objectives.
        """
        _write_product(self.X, direction, self.along)

        def attempt(step: Floats) -> _Trial:
            coef = self.coef + step * direction
            np.multiply(self.along, step, out=self.trial.odds)
            np.add(self.links.odds, self.trial.odds, out=self.trial.odds)
            self.trial.update()
            return _Trial(coef, self.value(coef, self.trial))

        _, trial = backtrack(attempt, value, _dot(gradient, direction))
        self.coef, self.links, self.trial = trial.coef, self.trial, self.links
        return trial.value


def _take(matrix: Floats, rows: Ints, out: Floats) -> Floats:
    """Take rows of a matrix; without a copy where they follow each other."""
    if rows[-1] - rows[0] == len(rows) - 1:
        return matrix[rows[0] : rows[-1] + 1]
    return np.take(matrix, rows, axis=0, out=out, mode="clip")


def _write_product(X: Matrix, coef: Floats, out: Floats) -> None:
    """Compute the links of gates."""
    if isinstance(X, np.ndarray):
        np.matmul(coef, X.T, out=out)
    else:
        out[...] = coef @ X.T


def _mean_squares(X: Matrix, weights: Floats) -> Floats:
    """Return the weighted mean square of each feature."""
    weights = weights / max(weights.sum(), np.finfo(np.float64).tiny)
    if isinstance(X, np.ndarray):
        return np.asarray(np.einsum("nd,nd->d", X, X * weights[:, np.newaxis]))
    return np.asarray(X.multiply(X).T @ weights)


def _dot(left: Floats, right: Floats) -> Floats:
    """Return the inner products of corresponding rows."""
    return np.einsum("kd,kd->k", left, right)[:, np.newaxis]


def _divide(numerator: Floats, denominator: Floats) -> Floats:
    """Divide; return zero where the denominator is zero."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
