r"""Variational inference in the logistic stick-breaking conditional multinomial model.

A stick of length one is broken at gate 1, the rest at gate 2, and so on; the last component takes
what is left. With the links :math:`u_{nk}` of :math:`K - 1` gates, example :math:`n` belongs to
component :math:`k` with probability

.. math:: \phi_{nk} = \sigma(u_{nk}) \prod_{j<k} \sigma(-u_{nj}), \qquad u_{nK} = \infty.

Component :math:`k` draws labels from :math:`\theta_k`, whose posterior is approximated by
:math:`\mathrm{Dir}(\hat\alpha_k)`. All that is known of the label is that it is in :math:`S_n`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import digamma, gammaln, log_expit

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_BLOCK = 2**20


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

    components: Matrix
    labels: Vector
    counts: Matrix
    evidence: float


def log_stick_breaking(links: Matrix) -> Matrix:
    r"""Give the log-probability of each component.

    Parameters
    ----------
    links : array of shape (n, K - 1)
        The log-odds that each gate is open.

    Returns
    -------
    log_mixture : array of shape (n, K)
        :math:`\log \phi_{nk}`.
    """
    log_mixture = np.zeros((len(links), links.shape[1] + 1))
    np.cumsum(log_expit(-links), axis=1, out=log_mixture[:, 1:])
    log_mixture[:, :-1] += log_expit(links)
    return log_mixture


def even_intercepts(n_components: int) -> Vector:
    """Give the intercepts of the gates that break the stick into equal parts.

    Parameters
    ----------
    n_components : int
        Number K of parts.

    Returns
    -------
    intercepts : array of shape (K - 1,)
    """
    return -np.log(np.arange(n_components - 1, 0, -1))


def gate_targets(components: Matrix) -> tuple[Matrix, Matrix]:
    """Give how much each example wants each gate open, and shut.

    An example that belongs to component k wants gate k open and the gates before it shut; the
    gates after it do not concern it.

    Parameters
    ----------
    components : array of shape (n, K)
        Weight of each example in each component.

    Returns
    -------
    positive, negative : arrays of shape (n, K - 1)
    """
    beyond = np.cumsum(components[:, :0:-1], axis=1)[:, ::-1]
    return np.ascontiguousarray(components[:, :-1]), np.ascontiguousarray(beyond)


def expected_log_probabilities(concentration: Matrix) -> Matrix:
    r"""Give the expectation of the logarithms of Dirichlet variables.

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


def dirichlet_divergence(concentration: Matrix, prior: Vector) -> float:
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


def _log_normalizer(concentration: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(gammaln(concentration).sum(axis=-1) - gammaln(concentration.sum(axis=-1)))


def infer(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    weights: Vector,
    log_mixture: Matrix,
    log_probabilities: Matrix,
    log_evidence: Vector | None = None,
) -> Posterior:
    r"""Find the best joint posterior of label and component of each example.

    .. math:: r_{nlk} = \frac{e_{nl} \phi_{nk} e^{E[\log \theta_{kl}]}}{Z_n}, \qquad
              Z_n = \sum_{l \in S_n} e_{nl} \sum_k \phi_{nk} e^{E[\log \theta_{kl}]}.

    The work is in logarithms, and in blocks of examples, so that it takes bounded memory.

    Parameters
    ----------
    indptr, indices : arrays
        The candidate sets in compressed rows.
    weights : array of shape (n,)
        How much each example counts.
    log_mixture : array of shape (n, K)
        :math:`\log \phi_{nk}`.
    log_probabilities : array of shape (K, q)
        :math:`E[\log \theta_{kl}]`; minus infinity for an impossible label.
    log_evidence : array of the size of `indices`, optional
        :math:`\log e_{nl}`, how likely what is known of an example is for each candidate; by
        default alike for all.

    Returns
    -------
    Posterior
    """
    components = np.zeros_like(log_mixture)
    labels = np.zeros(len(indices))
    counts = np.zeros(log_probabilities.shape)
    evidence = 0.0
    for first, last in _blocks(indptr, log_mixture.shape[1]):
        entries = slice(indptr[first], indptr[last])
        starts, sizes = indptr[first:last] - indptr[first], np.diff(indptr[first : last + 1])
        rows = np.repeat(np.arange(first, last), sizes)
        joint = log_mixture[rows] + log_probabilities.T[indices[entries]]
        if log_evidence is not None:
            joint += log_evidence[entries, np.newaxis]
        peaks = np.maximum.reduceat(joint.max(axis=1), starts)
        possible = peaks > -np.inf
        peaks = np.where(possible, peaks, 0.0)
        joint -= np.repeat(peaks, sizes)[:, np.newaxis]
        np.exp(joint, out=joint)
        totals = np.where(possible, np.add.reduceat(joint.sum(axis=1), starts), 1.0)
        joint /= np.repeat(totals, sizes)[:, np.newaxis]
        components[first:last] = np.add.reduceat(joint, starts, axis=0)
        labels[entries] = joint.sum(axis=1)
        members = sparse.csc_array(
            (weights[rows], indices[entries], np.arange(len(rows) + 1)),
            shape=(log_probabilities.shape[1], len(rows)),
        )
        counts += np.asarray(members @ joint).T
        evidence += float(weights[first:last] @ np.where(possible, peaks + np.log(totals), 0.0))
    return Posterior(components, labels, counts, evidence)


def _blocks(indptr: NDArray[np.int64], n_components: int) -> Iterator[tuple[int, int]]:
    """Cut the examples into runs whose joint posteriors take bounded memory."""
    first, n = 0, len(indptr) - 1
    while first < n:
        end = indptr[first] + max(1, _BLOCK // n_components)
        last = max(int(np.searchsorted(indptr, end, side="right")) - 1, first + 1)
        yield first, last
        first = last
