import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.special import expit, logsumexp
from scipy.stats import dirichlet, entropy
from sklearn.exceptions import ConvergenceWarning

from skpll import LSBCMM, as_candidates
from skpll.datasets import make_partial_classification
from skpll.solvers.stick_breaking import dirichlet_divergence, expected_log_probabilities

THETA = np.array([[0.85, 0.05, 0.05, 0.05], [0.05, 0.05, 0.1, 0.8], [0.05, 0.6, 0.3, 0.05]])


def draw_from_the_model(n, seed):
    """Draw from three components in the plane; every label joins a set with probability 1/4."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    first, second = expit(2.5 * X[:, 0] - 1), expit(3 * X[:, 1] + 0.3)
    mixture = np.column_stack((first, (1 - first) * second, (1 - first) * (1 - second)))
    P = mixture @ THETA
    y = (np.cumsum(P, axis=1)[:, :-1] < rng.random((n, 1))).sum(axis=1)
    S = (rng.random((n, 4)) < 0.25) | (np.arange(4) == y[:, np.newaxis])
    return X, as_candidates(S.astype(int)), y, P


def quietly(model, *data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*data, **options)


def bounds(model):
    return np.array([record["lower_bound"] for record in model.history_])


def test_it_recovers_the_model_that_the_data_come_from():
    X, S, _, _ = draw_from_the_model(3000, seed=0)
    model = LSBCMM(3, sigma2=10.0, tol=1e-5, max_iter=300).fit(X, S)
    X, _, y, P = draw_from_the_model(5000, seed=1)
    assert np.abs(model.predict_proba(X) - P).sum(axis=1).mean() < 0.12
    best_possible = (P.argmax(axis=1) == y).mean()
    assert model.score(X, y) > best_possible - 0.01
    distances = np.abs(model.label_probabilities_[:, np.newaxis] - THETA).max(axis=2)
    assert distances[linear_sum_assignment(distances)].max() < 0.15


def test_the_posterior_of_the_labels_is_calibrated():
    X, S, y, _ = draw_from_the_model(3000, seed=2)
    model = LSBCMM(3, sigma2=10.0).fit(X, S)
    belief = model.label_distributions_.toarray()[np.arange(len(y)), model.transduction_]
    right = model.transduction_ == y
    ambiguous = belief < 0.999
    assert ambiguous.sum() > 500
    assert abs(belief[ambiguous].mean() - right[ambiguous].mean()) < 0.05


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 40),
    n_components=st.integers(1, 6),
    alpha=st.sampled_from([1e-3, 0.05, 1.0, 20.0]),
    sigma2=st.sampled_from([1e-2, 1.0, 1e3]),
    scale=st.sampled_from([1e-3, 1.0, 1e3]),
)
def test_the_lower_bound_never_falls(seed, n, n_components, alpha, sigma2, scale):
    rng = np.random.default_rng(seed)
    X = scale * rng.standard_t(2, size=(n, 3))
    S = as_candidates(
        [set(rng.choice(4, rng.integers(1, 4), replace=False).tolist()) for _ in range(n)],
        classes=range(4),
    )
    model = LSBCMM(n_components, alpha=alpha, sigma2=sigma2, tol=0, max_iter=25)
    quietly(model, X, S, sample_weight=rng.integers(1, 4, n))
    found = bounds(model)
    assert np.isfinite(found).all()
    assert (np.diff(found) >= -1e-9 * np.abs(found[1:])).all()


@pytest.mark.parametrize("n_components", [None, 2.0])
def test_the_lower_bound_never_falls_on_larger_data(n_components):
    X, S, _ = make_partial_classification(600, 20, 8, class_sep=0.5, p=0.8, r=2, random_state=0)
    model = quietly(LSBCMM(n_components, tol=0, max_iter=60), X, S)
    found = bounds(model)
    assert (np.diff(found) >= -1e-10 * np.abs(found[1:])).all()
    assert found[-1] > found[0]


def test_the_lower_bound_spelled_out():
    X, S, _, _ = draw_from_the_model(60, seed=3)
    weights = np.random.default_rng(0).integers(0, 3, 60)
    model = LSBCMM(3, alpha=0.2, sigma2=2.0).fit(X, S, sample_weight=weights)
    expected_logs = expected_log_probabilities(model.concentration_)
    bound = -((model.coef_**2).sum()) / (2 * 2.0)
    bound -= dirichlet_divergence(model.concentration_, np.full(4, 0.2))
    for i, labels in enumerate(S):
        opened = expit(model.coef_ @ X[i] + model.intercept_)
        stick = [opened[0], (1 - opened[0]) * opened[1], (1 - opened[0]) * (1 - opened[1])]
        pairs = list(product(labels, range(3)))
        logs = np.array([np.log(stick[k]) + expected_logs[k, label] for label, k in pairs])
        r = np.exp(logs - logsumexp(logs))
        bound += weights[i] * (r @ logs + entropy(r))
        for label in labels if weights[i] else ():
            share = sum(r[p] for p, (other, _) in enumerate(pairs) if other == label)
            assert model.label_distributions_[i, label] == pytest.approx(share, abs=1e-9)
    assert model.lower_bound_ == pytest.approx(bound, rel=1e-9)
    assert model.history_[-1]["lower_bound"] == model.lower_bound_


def test_predicted_probabilities_spelled_out():
    X, S, _, _ = draw_from_the_model(100, seed=4)
    model = LSBCMM(3).fit(X, S)
    opened = expit(X @ model.coef_.T + model.intercept_)
    mixture = np.column_stack(
        (opened[:, 0], (1 - opened[:, 0]) * opened[:, 1], (1 - opened).prod(axis=1))
    )
    means = np.array([dirichlet(row).mean() for row in model.concentration_])
    np.testing.assert_allclose(model.label_probabilities_, means)
    np.testing.assert_allclose(model.predict_proba(X), mixture @ means, atol=1e-12)


def test_weights_are_copies():
    X, S, _, _ = draw_from_the_model(150, seed=5)
    copies = np.random.default_rng(0).integers(0, 4, 150)
    rows = np.repeat(np.arange(150), copies)
    weighted = LSBCMM(3).fit(X, S, sample_weight=copies)
    copied = LSBCMM(3).fit(X[rows], S[rows])
    np.testing.assert_allclose(bounds(weighted), bounds(copied), rtol=1e-7)
    np.testing.assert_allclose(weighted.predict_proba(X), copied.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(
        weighted.label_distributions_[rows].toarray(),
        copied.label_distributions_.toarray(),
        atol=1e-6,
    )


def test_a_label_that_only_weightless_examples_have_never_wins():
    X, S, _, _ = draw_from_the_model(100, seed=6)
    sets = [*S, {8}, {8, 9}, {0, 9}]
    features = np.concatenate((X, X[:3]))
    weights = np.repeat([1.0, 0.0], [100, 3])
    model = LSBCMM().fit(features, as_candidates(sets), sample_weight=weights)
    assert model.label_probabilities_.shape == (4, 6)
    assert model.predict_proba(X)[:, 4:].max() == 0
    assert model.transduction_[-3:].tolist() == [8, 8, 0]
    assert model.label_distributions_[[101]].data.tolist() == [0.5, 0.5]


def test_a_component_that_nobody_belongs_to_does_not_favour_absent_labels():
    X = np.concatenate((np.full((20, 1), -1.0), np.full((20, 1), 1.0)))
    S = as_candidates([{"m"}] * 20 + [{"n"}] * 20, classes=["a", "m", "n", "z"])
    model = LSBCMM(9).fit(X, S)
    assert set(model.predict(np.linspace(-1e6, 1e6, 1001)[:, np.newaxis])) <= {"m", "n"}


@pytest.mark.parametrize(("given", "expected"), [(None, 4), (7, 7), (0.5, 2), (2.0, 8), (1e-9, 1)])
def test_number_of_components(given, expected):
    X, S, _, _ = draw_from_the_model(50, seed=7)
    model = quietly(LSBCMM(given, max_iter=2), X, S.with_classes([*S.classes, 17]))
    assert model.label_probabilities_.shape == (expected, 5)
    assert model.coef_.shape == (expected - 1, 2)
    assert model.intercept_.shape == (expected - 1,)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_one_component_ignores_the_features(convert):
    X, S, _, _ = draw_from_the_model(80, seed=8)
    model = LSBCMM(1, alpha=0.5).fit(convert(X), S)
    shares = model.label_distributions_.toarray().sum(axis=0) + 0.5
    expected = np.tile(shares / shares.sum(), (80, 1))
    np.testing.assert_allclose(model.predict_proba(convert(X)), expected, atol=1e-3)


def test_sparse_features_give_the_same_model():
    X, S, _ = make_partial_classification(300, 30, 5, density=0.2, random_state=0)
    dense, thin = LSBCMM().fit(X.toarray(), S), LSBCMM().fit(X, S)
    np.testing.assert_allclose(bounds(dense), bounds(thin), rtol=1e-9)
    np.testing.assert_allclose(dense.predict_proba(X.toarray()), thin.predict_proba(X), atol=1e-8)


@pytest.mark.parametrize("scale", [1e-6, 1e6, 1e60])
def test_the_prior_scales_with_the_features(scale):
    X, S, _, _ = draw_from_the_model(200, seed=9)
    plain = LSBCMM(3).fit(X, S)
    scaled = LSBCMM(3, sigma2=scale**-2).fit(X * scale, S)
    np.testing.assert_allclose(bounds(scaled), bounds(plain), rtol=1e-6)
    np.testing.assert_allclose(scaled.predict_proba(X * scale), plain.predict_proba(X), atol=1e-5)


def test_huge_features_do_not_overflow():
    X, S, _, _ = draw_from_the_model(200, seed=10)
    model = quietly(LSBCMM(), 1e9 * X, S)
    P = model.predict_proba(1e12 * X)
    assert np.isfinite(P).all()
    np.testing.assert_allclose(P.sum(axis=1), 1)


@pytest.mark.parametrize("offset", [1e2, -1e4])
def test_an_offset_of_the_features_changes_nothing(offset):
    X, S, _, _ = draw_from_the_model(300, seed=5)
    near, far = quietly(LSBCMM(3), X, S), quietly(LSBCMM(3), X + offset, S)
    assert far.lower_bound_ == pytest.approx(near.lower_bound_, abs=1.0)
    assert np.mean(far.predict(X + offset) == near.predict(X)) > 0.95


def test_float32_features():
    X, S, _, _ = draw_from_the_model(200, seed=11)
    X = X.astype(np.float32)
    single, double = LSBCMM().fit(X, S), LSBCMM().fit(X.astype(np.float64), S)
    np.testing.assert_array_equal(single.coef_, double.coef_)
    np.testing.assert_allclose(
        single.predict_proba(X), double.predict_proba(X.astype(np.float64)), atol=1e-12
    )


def test_strong_priors():
    X, S, _, _ = draw_from_the_model(200, seed=12)
    even = LSBCMM(alpha=1e6).fit(X, S).predict_proba(X)
    np.testing.assert_allclose(even, 0.25, atol=1e-3)
    constant = LSBCMM(sigma2=1e-9).fit(X, S)
    assert np.abs(constant.coef_).max() < 1e-5


def test_when_iteration_ends():
    X, S, _, _ = draw_from_the_model(200, seed=13)
    model = LSBCMM(tol=1e-3).fit(X, S)
    steps = np.diff(bounds(model)) / np.abs(bounds(model)[1:])
    assert model.n_iter_ == len(model.history_) == len(steps) + 1
    assert (steps[:-1] > 1e-3).all()
    assert steps[-1] <= 1e-3
    with pytest.warns(ConvergenceWarning, match="max_iter=2") as record:
        short = LSBCMM(max_iter=2).fit(X, S)
    assert record[0].filename == __file__
    assert short.n_iter_ == 2


def test_verbose(capsys):
    X, S, _, _ = draw_from_the_model(50, seed=14)
    model = LSBCMM(verbose=1).fit(X, S)
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == model.n_iter_
    assert f"lower bound {model.lower_bound_:.6g}" in lines[-1]
    LSBCMM().fit(X, S)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_components": 0},
        {"n_components": -0.5},
        {"alpha": 0.0},
        {"sigma2": -1.0},
        {"max_iter": 0},
        {"tol": -1e-3},
    ],
)
def test_bad_parameters(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        LSBCMM(**parameters).fit([[0.0], [1.0]], [0, 1])


def test_evidence_decides_where_the_features_say_nothing():
    X = np.zeros((60, 1))
    S = as_candidates([{"a": 3, "b": 1}] * 30 + [{"a": 1, "b": 3}] * 30)
    model = LSBCMM(1).fit(X, S)
    assert model.transduction_.tolist() == ["a"] * 30 + ["b"] * 30
    np.testing.assert_allclose(model.predict_proba(X[:1]), [[0.5, 0.5]], atol=0.05)


def test_equal_evidence_changes_nothing():
    X, S, _, _ = draw_from_the_model(60, seed=3)
    plain, even = (LSBCMM(3).fit(X, sets) for sets in (S, S.with_weights(np.ones(len(S.indices)))))
    np.testing.assert_allclose(plain.coef_, even.coef_, atol=1e-8)
    np.testing.assert_allclose(
        plain.label_distributions_.data, even.label_distributions_.data, atol=1e-8
    )
