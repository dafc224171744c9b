"""What can't be learned is found, said, and taken into account; ordinary data is left alone."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binomtest

from skpll import PLLOO, CrossFitClassifier, as_candidates, diagnose
from skpll._errors import DiagnosisWarning
from skpll.datasets import make_partial_labels
from skpll.diagnosis import share_out

METHODS = [PLLOO(kernel="rbf", gamma=1.0, alpha=0.1), CrossFitClassifier()]


def kinds(diagnosis):
    return [(finding.kind, finding.labels) for finding in diagnosis.findings]


@pytest.fixture(scope="module")
def blobs():
    """Five classes, well apart; whenever 0 or 1 is right, the other is a candidate, too."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, 300)
    angles = 2 * np.pi * y / 5
    X = 2.5 * np.c_[np.cos(angles), np.sin(angles)] + 0.5 * rng.normal(size=(300, 2))
    M = rng.random((300, 5)) < 0.2
    M[np.arange(300), y] = True
    M[y <= 1, :2] = True
    return X, as_candidates(M.astype(int), classes=np.arange(5)), y


def test_a_label_in_almost_every_set():
    y = np.random.default_rng(0).integers(1, 5, 200)
    S = as_candidates([{0, int(label)} for label in y[:-2]] + [{1}, {2}])
    found = diagnose(S)
    assert kinds(found) == [("everywhere", (0,))]
    assert found.findings[0].rows.tolist() == list(range(198))
    assert "99%" in found.findings[0].what
    with pytest.warns(DiagnosisWarning, match="0 is a candidate in 99%"):
        METHODS[0].fit(np.eye(5)[np.append(y[:-2], [1, 2])], S)


def test_frequent_labels_and_ruled_out_labels_are_no_labels_in_every_set():
    assert not diagnose(["a"] * 960 + ["b"] * 40).findings
    E = np.eye(60)[np.random.default_rng(0).integers(0, 60, 600)]
    assert not diagnose(1 - E.astype(int)).findings


def test_groups_and_labels_that_depend_on_another_one():
    S = [{"a", "b", "c"}, {"a", "b", "c", "d"}, {"d", "e"}, {"e", "f"}, {"e", "d", "f"}] * 8
    found = diagnose(S)
    assert kinds(found) == [("together", ("a", "b", "c")), ("dependent", ("f", "e"))]
    assert found.findings[0].rows.tolist() == [i for i in range(40) if i % 5 < 2]
    assert found.findings[1].rows.tolist() == [i for i in range(40) if i % 5 > 2]
    assert len(str(found).splitlines()) == 3
    assert not diagnose(S[:10]).findings, "two rows of a label show nothing"
    weights = [1.0] * sum(map(len, S))
    assert kinds(diagnose(as_candidates(S, weights=weights)))[0][0] == "dependent"


def test_the_ambiguity_degree_and_its_interval():
    S = [{"a", "b"}] * 6 + [{"a"}] * 2 + [{"b", "c"}] * 3 + [{"c"}] * 9
    a, b, c = diagnose(S).ambiguity
    assert (a.label, a.other, a.share, a.rows) == ("a", "b", 0.75, 8)
    assert (b.other, c.other) == ("a", "b")
    expected = binomtest(6, 8).proportion_ci(1 - 0.05 / 2, method="exact")  # two other labels
    assert_allclose((a.low, a.high), (expected.low, expected.high))
    confidences = np.where(np.asarray(as_candidates(S)), [0.5, 0.4, 0.6], 0.0)
    a, c = diagnose(S, confidences=confidences).ambiguity  # no row is decided for b
    assert (c.label, c.other, c.share, c.rows) == ("c", "b", 0.25, 12)


def test_features_that_do_not_help(blobs):
    X, S, _ = blobs
    assert "features" not in dict(kinds(diagnose(S, X)))
    shuffled = np.random.default_rng(1).permutation(X)
    (finding,) = [each for each in diagnose(S, shuffled).findings if each.kind == "features"]
    assert len(finding.rows) == 300
    assert "do not help" in finding.what


def test_a_label_in_every_set_says_nothing_of_the_features(blobs):
    X, S, _ = blobs
    found = kinds(diagnose([{*map(int, names), 9} for names in S], X))
    assert [kind for kind, _ in found] == ["everywhere"]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_fit_says_so_when_features_do_not_help(method):
    rng = np.random.default_rng(0)
    S = make_partial_labels(rng.integers(0, 4, 150), p=0.5, r=1, random_state=0)
    with pytest.warns(DiagnosisWarning, match="features do not help"):
        method.fit(rng.normal(size=(150, 2)), S)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_confidences_in_labels_that_never_come_apart_are_the_prior(blobs, method):
    X, S, y = blobs
    assert not diagnose(S).findings, "both are false candidates of other rows, one by one"
    with pytest.warns(DiagnosisWarning, match="0 and 1 never come apart") as caught:
        method.fit(X, S)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert method.inseparable_ == [(0, 1)]
    Q, P = method.label_distributions_.toarray(), method.predict_proba(X)
    both = y <= 1
    assert_allclose(Q[both, 0], Q[both, 1])
    assert_allclose(P[:, 0], P[:, 1])
    assert_allclose(Q.sum(axis=1), 1)
    assert Q[both].max() <= 0.5 + 1e-12
    assert (method.transduction_ == y)[~both].mean() > 0.95
    found = diagnose(S, confidences=method.label_distributions_)
    assert kinds(found)[0] == ("together", (0, 1))


def test_a_given_prior_shares_out(blobs):
    X, S, y = blobs
    method = PLLOO(kernel="rbf", gamma=1.0, alpha=0.1, class_prior=[0.3, 0.1, 0.2, 0.2, 0.2])
    with pytest.warns(DiagnosisWarning, match="never come apart"):
        method.fit(X, S)
    Q, P = method.label_distributions_.toarray(), method.predict_proba(X)
    assert_allclose(Q[y <= 1, 0], 3 * Q[y <= 1, 1])
    assert_allclose(P[:, 0], 3 * P[:, 1])
    assert_allclose(P.sum(axis=1), 1)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_some_labeled_rows_end_it(blobs, method):
    X, S, y = blobs
    few = [*np.flatnonzero(y == 0)[:5], *np.flatnonzero(y == 1)[:5]]
    sets = [{int(y[i])} if i in few else set(S[i]) for i in range(len(S))]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        method.fit(X, sets)
    assert method.inseparable_ == []
    assert (method.transduction_ == y).mean() > 0.9


def test_sharing_out_keeps_sums():
    S = as_candidates([{"a", "b", "c"}, {"a", "c"}, {"b", "d"}, {"a", "b"}])
    values = np.array([0.5, 0.3, 0.2, 0.6, 0.4, 0.9, 0.1, 0.0, 1.0])
    prior = np.array([1.0, 3.0, 1.0, 1.0])
    shared = share_out(S, values, [("a", "b")], prior)
    assert_allclose(shared, [0.2, 0.6, 0.2, 0.6, 0.4, 0.9, 0.1, 0.25, 0.75])
    assert_allclose(share_out(S, values, [], prior), values)
