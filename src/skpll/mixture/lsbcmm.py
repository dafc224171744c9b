"""LSB-CMM: components divide the feature space, and each has its own distribution of labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Integral
from typing import ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, RealNotInt

from skpll._examples import Examples, Features
from skpll._iteration import Iterative, Record
from skpll._parameters import COUNT, POSITIVE
from skpll._threads import threads_for
from skpll._typing import Constraints, Floats
from skpll.base import WeightedPartialLabelClassifier
from skpll.candidates import CandidateSets
from skpll.solvers import stick_breaking as sticks
from skpll.solvers.conditioning import MODERATE_OFFSET, Conditioning, condition

GATE_TOL, MAX_GATE_STEPS = 1e-2, 3
"""The gates are improved to this tolerance, in at most this number of steps an iteration."""

PREFERENCE = 10.0
"""Pseudo-examples of its label that a component starts with."""


@dataclass(eq=False, repr=False)
class LSBCMM(Iterative, WeightedPartialLabelClassifier):
    r"""Logistic stick-breaking conditional multinomial model (LSB-CMM).

    Use it where probabilities are wanted, or where a class lies in several places.

    A probabilistic model of the candidate sets. An example with features :math:`x` belongs to one
    of :math:`K` components. Gates decide in turn whether a component keeps it, and the last
    component takes what is left:

    .. math:: &\phi_k(x) = \sigma(u_k(x)) \prod_{j<k} \sigma(-u_j(x)), \\
              &u_k(x) = c_k + w_k^\top x, \quad u_K = \infty.

    The component draws the label from its own distribution :math:`\theta_k`, and the candidate set
    is any set with that label in it; where candidates carry evidence, a label counts in proportion
    to its weight. With :math:`w_k \sim N(0, \sigma^2 I)`, a flat prior on the
    intercepts and :math:`\theta_k \sim \mathrm{Dir}(\alpha, \dots, \alpha)`, variational inference
    with :math:`\theta_k \approx \mathrm{Dir}(\hat\alpha_k)` maximizes the lower bound

    .. math:: &\sum_n \log \sum_{l \in S_n} \sum_k \phi_k(x_n) e^{E[\log \theta_{kl}]} \\
              &\quad - \sum_k \mathrm{KL}\bigl(
              \mathrm{Dir}(\hat\alpha_k) \,\Vert\, \mathrm{Dir}(\alpha) \bigr) \\
              &\quad - \sum_{k<K} \frac{\lVert w_k \rVert^2}{2 \sigma^2}

    on the log-likelihood of the candidate sets (up to a constant). Each iteration infers the joint
    posterior of label and component of every example, then the Dirichlet distributions, both
    exactly, and then improves the gates by Newton's method, so that the bound never falls. It
    starts from components that stand for one label each, in turn. New examples are classified by
    :math:`p(y = l \mid x) = \sum_k \phi_k(x) E[\theta_{kl}]`.

    The prior of the gates looks at the scale of the features: standardize them.

    Parameters
    ----------
    n_components : int or float, optional
        Number :math:`K` of components. A float is their number per label; only labels
        in a candidate set count. By default one per label; more can follow a class into several
        clusters, and are often worth their time.
    alpha : float, default=0.05
        Concentration :math:`\alpha` of the prior of the label distributions; small values make
        components that stick to few labels. Not a ridge: `sigma2` regularizes.
    sigma2 : float, default=1.0
        Prior variance :math:`\sigma^2` of the coefficients of the gates.
    max_iter : int, default=100
        Largest number of iterations.
    tol : float, default=1e-4
        The relative improvement of the lower bound below which iteration ends.
    <<verbose>>

    <<Attributes: classes_>>
    coef_ : array of shape (K - 1, d)
        The coefficients of the gates, in the order in which they break the stick.
    intercept_ : array of shape (K - 1,)
        The intercepts of the gates.
    concentration_ : array of shape (K, q)
        The parameters :math:`\hat\alpha_k` of the label distributions; zero for labels in
        no candidate set.
    label_probabilities_ : array of shape (K, q)
        The expected label distribution of each component.
    <<transduction_>>
    label_distributions_ : sparse array of shape (n, q)
        The posterior of the label of each training example.
    lower_bound_ : float
        The lower bound that was reached.
    history_ : list of dict
        The ``lower_bound`` after each iteration.
    n_iter_ : int
        Number of iterations.
    <<n_features_in_, feature_names_in_>>

    References
    ----------
    L. Liu, T. G. Dietterich: A conditional multinomial mixture model for superset label learning.
    Advances in Neural Information Processing Systems 25, 2012.

    <<example>>
    """

    accepts_sparse = True

    _parameter_constraints: ClassVar[Constraints] = {
        "n_components": [
            COUNT,
            Interval(RealNotInt, 0, None, closed="neither"),
            None,
        ],
        "alpha": [POSITIVE],
        "sigma2": [POSITIVE],
        **Iterative.parameter_constraints,
    }

    n_components: int | float | None = None
    _: KW_ONLY
    alpha: float = 0.05
    sigma2: float = 1.0
    max_iter: int = 100
    tol: float = 1e-4
    verbose: int = 0

    def _fit(self, examples: Examples) -> Floats:
        X, candidates, sample_weight = examples.X, examples.sets, examples.weights
        n_components = self._component_count(candidates.shape[1])
        X = X.astype(np.float64, copy=False)
        # The few steps that the gates take would otherwise be spent on the offset.
        moved = Conditioning(condition(X, max_offset=MODERATE_OFFSET).offset)
        X = moved(X)
        inference = _Inference(X, candidates, sample_weight, n_components, self.alpha, self.sigma2)
        with threads_for(X.shape[0] * X.shape[1] * n_components):
            keep = partial(self._keep, inference, moved)
            self.iterate(self._ascend(inference), X=X, keep=keep, unit="iteration")
        keep()
        return inference.posterior.labels

    def _ascend(self, inference: _Inference) -> Iterator[Record]:
        """Improve the bound until it rises no more."""
        bound = -np.inf
        for _ in range(self.max_iter):
            before, bound = bound, inference.improve()
            yield {"lower_bound": bound}
            if bound - before <= self.tol * abs(bound):
                return
        self._warn_unconverged("the lower bound still rises", "iteration")

    def _keep(self, inference: _Inference, moved: Conditioning) -> None:
        self.lower_bound_ = self.history_[-1]["lower_bound"]
        gates = inference.gates.coef
        self.coef_, self.intercept_ = moved.undo(gates[:, 1:].copy(), gates[:, 0].copy())
        self.concentration_ = np.zeros((len(inference.concentration), len(self.classes_)))
        self.concentration_[:, self._seen] = inference.concentration
        self.label_probabilities_ = self.concentration_ / self.concentration_.sum(
            axis=1, keepdims=True
        )

    def _probabilities(self, scores: Floats) -> Floats:
        return scores

    def _class_scores(self, X: Features) -> Floats:
        links = X @ self.coef_.T + self.intercept_
        return np.asarray(
            np.exp(sticks.log_stick_breaking(links)) @ self.label_probabilities_[:, self._seen]
        )

    def _component_count(self, n_labels: int) -> int:
        if self.n_components is None:
            return n_labels
        if isinstance(self.n_components, Integral):
            return int(self.n_components)
        return max(1, round(self.n_components * n_labels))


class _Inference:
    """The gates, the label distributions and the posterior of the examples, while the bound rises.

    At first every component prefers one label, in turn, and all take even parts.
    """

    def __init__(
        self,
        X: Features,
        candidates: CandidateSets,
        weights: Floats,
        n_components: int,
        alpha: float,
        sigma2: float,
    ) -> None:
        self.candidates, self.weights, self.sigma2 = candidates, weights, sigma2
        n_labels = candidates.shape[1]
        self.log_evidence = (
            None if candidates.weights is None else np.log(candidates.initial_confidences())
        )
        self.prior = np.full(n_labels, float(alpha))
        self.concentration = np.ones((n_components, n_labels))
        preferred = np.resize(np.arange(n_labels), n_components)
        self.concentration[np.arange(n_components), preferred] += PREFERENCE
        start = np.zeros((n_components - 1, 1 + X.shape[1]))
        start[:, 0] = sticks.even_intercepts(n_components)
        self.gates = sticks.Gates(X, start)
        self.posterior = self._infer()

    def improve(self) -> float:
        """Update the label distributions, the gates and the posterior; return the bound."""
        self.concentration = self.prior + self.posterior.counts
        self.gates.improve(
            *sticks.gate_targets(self.posterior.components, self.weights),
            self.sigma2,
            tol=GATE_TOL,
            max_iter=MAX_GATE_STEPS,
        )
        self.posterior = self._infer()
        penalty = np.sum(self.gates.coef[:, 1:] ** 2) / (2 * self.sigma2)
        divergence = sticks.dirichlet_divergence(self.concentration, self.prior)
        return float(self.posterior.evidence - divergence - penalty)

    def _infer(self) -> sticks.Posterior:
        links = self.gates.links
        return sticks.infer(
            (self.candidates.indptr, self.candidates.indices),
            self.weights,
            sticks.stick_mixture(links.opened, links.shut),
            links.odds,
            sticks.expected_log_probabilities(self.concentration),
            self.log_evidence,
        )
