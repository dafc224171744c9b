from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import expit, gammaln, logsumexp

from skpll.solvers.stick_breaking import (
    dirichlet_divergence,
    even_intercepts,
    expected_log_probabilities,
    gate_targets,
    infer,
    log_stick_breaking,
    stick_mixture,
)


def random_sets(rng, n, q):
    sets = [np.sort(rng.choice(q, rng.integers(1, q), replace=False)) for _ in range(n)]
    indptr = np.concatenate(([0], np.cumsum([len(s) for s in sets])))
    return sets, indptr, np.concatenate(sets).astype(np.int32)


def infer_from(links, indptr, indices, weights, log_probabilities):
    odds = np.ascontiguousarray(links.T)
    mixture = stick_mixture(expit(odds), expit(-odds))
    return infer((indptr, indices), weights, mixture, odds, log_probabilities)


@given(seed=st.integers(0, 10**6), n_gates=st.integers(0, 6))
def test_a_stick_is_broken_gate_by_gate(seed, n_gates):
    links = 3 * np.random.default_rng(seed).normal(size=(4, n_gates))
    expected = np.empty((4, n_gates + 1))
    rest = np.ones(4)
    for k in range(n_gates):
        expected[:, k] = rest * expit(links[:, k])
        rest = rest * (1 - expit(links[:, k]))
    expected[:, -1] = rest
    np.testing.assert_allclose(np.exp(log_stick_breaking(links)), expected, atol=1e-12)
    mixture = stick_mixture(expit(links.T), expit(-links.T))
    np.testing.assert_allclose(mixture, expected, atol=1e-12)


def test_sticks_far_out():
    log_mixture = log_stick_breaking(np.array([[1e5, -3.0], [-1e5, 1e5], [-1e5, -1e5]]))
    assert np.isfinite(log_mixture).all()
    np.testing.assert_allclose(np.exp(log_mixture), np.eye(3), atol=1e-12)
    np.testing.assert_allclose(log_mixture[0, 2], -1e5, rtol=1e-3)


@pytest.mark.parametrize("n_components", [1, 2, 7])
def test_even_parts(n_components):
    log_mixture = log_stick_breaking(even_intercepts(n_components)[np.newaxis])
    np.testing.assert_allclose(np.exp(log_mixture), np.full((1, n_components), 1 / n_components))


def test_targets_make_the_gates_separate_problems():
    rng = np.random.default_rng(0)
    components = rng.dirichlet(np.ones(5), size=30)
    links = rng.normal(size=(30, 4))
    weights = rng.exponential(size=30)
    positive, negative = gate_targets(components, weights)
    losses = positive * np.logaddexp(0, -links.T) + negative * np.logaddexp(0, links.T)
    expected = -weights * (components * log_stick_breaking(links)).sum(axis=1)
    np.testing.assert_allclose(losses.sum(axis=0), expected)


def test_expected_logarithms_against_samples_and_quadrature():
    concentration = np.array([[0.7, 2.0, 5.0], [1.5, 0.4, 0.0]])
    expected = expected_log_probabilities(concentration)
    draws = np.random.default_rng(0).dirichlet(concentration[0], size=200_000)
    np.testing.assert_allclose(expected[0], np.log(draws).mean(axis=0), atol=0.02)
    beta = stats.beta(1.5, 0.4)
    by_quadrature = integrate.quad(lambda t: np.log(t) * beta.pdf(t), 0, 1)[0]
    assert expected[1, 0] == pytest.approx(by_quadrature, abs=1e-6)
    assert expected[1, 2] == -np.inf


def test_divergence_against_quadrature():
    posterior, prior = stats.beta(2.5, 1.2), stats.beta(0.8, 0.8)

    def integrand(t):
        return posterior.pdf(t) * (posterior.logpdf(t) - prior.logpdf(t))

    expected = integrate.quad(integrand, 0, 1)[0]
    concentration = np.array([[2.5, 0.0, 1.2], [0.8, 0.0, 0.8]])
    found = dirichlet_divergence(concentration, np.array([0.8, 0.0, 0.8]))
    assert found == pytest.approx(expected, abs=1e-6)


@given(seed=st.integers(0, 10**6), n_components=st.integers(1, 4), scale=st.sampled_from([1, 400]))
def test_inference_against_enumeration(seed, n_components, scale):
    rng = np.random.default_rng(seed)
    n, q = 6, 4
    sets, indptr, indices = random_sets(rng, n, q)
    weights = rng.integers(0, 3, n).astype(float)
    links = scale * rng.normal(size=(n, n_components - 1))
    log_mixture = log_stick_breaking(links)
    log_probabilities = scale * np.log(rng.dirichlet(np.ones(q), size=n_components))
    posterior = infer_from(links, indptr, indices, weights, log_probabilities)
    joint = np.full((n, q, n_components), -np.inf)
    for i, labels in enumerate(sets):
        for label, k in product(labels, range(n_components)):
            joint[i, label, k] = log_mixture[i, k] + log_probabilities[k, label]
    normalizers = logsumexp(joint, axis=(1, 2))
    r = np.exp(joint - normalizers[:, np.newaxis, np.newaxis])
    np.testing.assert_allclose(posterior.components, r.sum(axis=1), atol=1e-12)
    inside = np.concatenate([r.sum(axis=2)[i, labels] for i, labels in enumerate(sets)])
    np.testing.assert_allclose(posterior.labels, inside, atol=1e-12)
    np.testing.assert_allclose(posterior.counts, np.einsum("n,nlk->kl", weights, r), atol=1e-12)
    assert posterior.evidence == pytest.approx(weights @ normalizers, rel=1e-12)


def test_impossible_labels():
    log_probabilities = np.array([[0.0, -np.inf]])
    posterior = infer_from(
        np.zeros((2, 0)),
        np.array([0, 2, 3]),
        np.array([0, 1, 1], dtype=np.int32),
        np.array([1.0, 0.0]),
        log_probabilities,
    )
    assert posterior.labels.tolist() == [1, 0, 0]
    assert posterior.components.tolist() == [[1], [0]]
    assert posterior.evidence == 0


def lower_bound(sets, log_mixture, concentration, prior, r):
    """The evidence lower bound for any joint posterior ``r`` of label and component."""
    expected = expected_log_probabilities(concentration)
    bound = -dirichlet_divergence(concentration, prior)
    for i, labels in enumerate(sets):
        for label, k in product(labels, range(len(concentration))):
            if r[i, label, k] > 0:
                inside = log_mixture[i, k] + expected[k, label] - np.log(r[i, label, k])
                bound += r[i, label, k] * inside
    return bound


def log_likelihood(sets, log_mixture, prior):
    """Sum over all labels and components, the label distributions integrated out."""
    n, n_components = log_mixture.shape
    terms = []
    for labels in product(*sets):
        for components in product(range(n_components), repeat=n):
            counts = np.zeros((n_components, len(prior)))
            np.add.at(counts, (list(components), list(labels)), 1)
            drawn = gammaln(prior + counts).sum(axis=1) - gammaln(prior).sum()
            drawn += gammaln(prior.sum()) - gammaln((prior + counts).sum(axis=1))
            terms.append(log_mixture[range(n), components].sum() + drawn.sum())
    return logsumexp(terms)


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_and_its_coordinate_ascent_on_a_tiny_instance(seed):
    rng = np.random.default_rng(seed)
    n, q, n_components = 4, 3, 2
    sets, indptr, indices = random_sets(rng, n, q)
    prior = np.full(q, 0.3)
    links = rng.normal(size=(n, n_components - 1))
    log_mixture = log_stick_breaking(links)
    concentration = rng.exponential(size=(n_components, q)) + 0.1
    evidence = log_likelihood(sets, log_mixture, prior)
    weights = np.ones(n)
    last = -np.inf
    for _ in range(30):
        expected = expected_log_probabilities(concentration)
        posterior = infer_from(links, indptr, indices, weights, expected)
        collapsed = posterior.evidence - dirichlet_divergence(concentration, prior)
        r = np.zeros((n, q, n_components))
        for i, labels in enumerate(sets):
            joint = np.exp(log_mixture[i] + expected[:, labels].T)
            r[i, labels] = joint / joint.sum()
        spelled_out = lower_bound(sets, log_mixture, concentration, prior, r)
        assert collapsed == pytest.approx(spelled_out, abs=1e-10)
        assert last - 1e-12 <= collapsed <= evidence
        best = prior + posterior.counts
        at_best = lower_bound(sets, log_mixture, best, prior, r)
        for factor in (0.9, 1.1):
            nearby = best * factor ** rng.integers(0, 2, best.shape)
            assert lower_bound(sets, log_mixture, nearby, prior, r) <= at_best
        last, concentration = collapsed, best
