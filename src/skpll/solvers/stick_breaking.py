r"""Variational inference in the logistic stick-breaking conditional multinomial model.

A stick of length one is broken at gate 1, the rest at gate 2, and so on; the last component takes
what is left. With the links :math:`u_{nk}` of :math:`K - 1` gates, example :math:`n` belongs to
component :math:`k` with probability

.. math:: \phi_{nk} = \sigma(u_{nk}) \prod_{j<k} \sigma(-u_{nj}), \qquad u_{nK} = \infty.

Component :math:`k` draws labels from :math:`\theta_k`, whose posterior is approximated by
:math:`\mathrm{Dir}(\hat\alpha_k)`. All that is known of the label is that it is in :math:`S_n`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import digamma, gammaln, log_expit, logsumexp

from skpll._typing import Floats

BLOCK_ENTRIES = 2**15
MIN_TOTAL = 1e-200


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


class Sticks:
    """The sticks of all examples, in memory that is used again and again.

    Parameters
    ----------
    n_components : int
        Number K of parts.
    n_examples : int
        Number n of sticks.
    """

    def __init__(self, n_components: int, n_examples: int) -> None:
        self._parts, self._beyond = np.empty((2, n_components, n_examples))
        self._mixture = np.empty((n_examples, n_components))

    def mixture(self, opened: Floats, shut: Floats) -> Floats:
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
        rest = self._parts[-1]
        rest[...] = 1
        for kept, gate_opened, gate_shut in zip(self._parts[:-1], opened, shut, strict=True):
            np.multiply(rest, gate_opened, out=kept)
            rest *= gate_shut
        self._mixture[...] = self._parts.T
        return self._mixture

    def gate_targets(self, components: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return how much each example wants each gate open, and shut.

        An example that belongs to component k wants gate k open and the gates before it shut; the
        gates after it do not concern it.

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
        np.multiply(components.T, weights, out=self._parts)
        self._beyond[-1] = 0
        for k in reversed(range(len(self._parts) - 1)):
            np.add(self._beyond[k + 1], self._parts[k + 1], out=self._beyond[k])
        return self._parts[:-1], self._beyond[:-1]


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
