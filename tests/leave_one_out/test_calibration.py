"""Calibration without the truth."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpll import PLKNN, PLLOO, CalibratedCandidatesCV
from skpll.datasets import make_partial_labels


@pytest.fixture(scope="module")
def overlapping():
    """Four classes that overlap, in two halves."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 800)
    X = rng.normal(size=(800, 3)) + 1.6 * np.eye(4, 3)[y]
    S = make_partial_labels(y, p=0.7, r=1, random_state=0)
    return X[:400], S[:400], y[:400], X[400:], y[400:]


@pytest.mark.parametrize("method", [PLKNN(), PLLOO(kernel="rbf", gamma=1.0, alpha=0.1)])
def test_mean_confidence_meets_the_accuracy(overlapping, method):
    X, S, y, X_new, y_new = overlapping
    plain = make_pipeline(StandardScaler(), method).fit(X, S)
    model = CalibratedCandidatesCV(make_pipeline(StandardScaler(), method)).fit(X, S)
    accuracy = model.score(X_new, y_new)
    assert accuracy == plain.score(X_new, y_new)
    gap = abs(model.predict_proba(X_new).max(axis=1).mean() - accuracy)
    before = abs(plain.predict_proba(X_new).max(axis=1).mean() - accuracy)
    assert gap < max(0.08, 0.6 * before)
    confidence = model.label_distributions_.max(axis=1).toarray().ravel()
    ambiguous = S.sizes > 1
    found = (model.transduction_ == y)[ambiguous].mean()
    assert confidence[ambiguous].mean() == pytest.approx(found, abs=0.08)


def test_probabilities_that_were_too_cautious_are_sharpened(overlapping):
    X, S, *_ = overlapping
    assert CalibratedCandidatesCV(PLKNN()).fit(X, S).temperature_ < 1
