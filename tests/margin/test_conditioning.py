"""Features far from zero, and features that are huge."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from skpll import CLPL, M3PL, PALOC, PLECOC, PLSVM, SPPLL
from skpll.datasets import make_partial_labels
from skpll.solvers.conditioning import condition

LINEAR = {"kernel": "linear", "init": "ridge", "class_prior": "candidates", "C": 1.0}


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, make_partial_labels(y, p=0.8, r=1, random_state=0), y


@pytest.mark.parametrize(
    "method",
    [
        PLSVM(),
        M3PL(**LINEAR),
        M3PL.as_published(),
        SPPLL.as_printed(),
        PALOC(),
        PLECOC(),
    ],
    ids=repr,
)
@pytest.mark.parametrize("offset", [1e8, -1e8])
def test_an_offset_costs_no_accuracy(iris, method, offset):
    X, S, y = iris
    assert method.fit(X + offset, S).score(X + offset, y) > 0.85
    if hasattr(method, "coef_"):
        scores = (X + offset) @ method.coef_.T + method.intercept_
        np.testing.assert_allclose(method.decision_function(X + offset), scores)


@pytest.mark.parametrize("method", [CLPL(), CLPL(loss="hinge"), PLSVM()], ids=repr)
@pytest.mark.parametrize("offset", [1e2, 1e3, -1e4])
def test_a_moderate_offset_changes_nothing(iris, method, offset):
    X, S, y = iris
    X = StandardScaler().fit_transform(X)
    middle = (X.min(axis=0) + X.max(axis=0)) / 2
    expected = method.fit(X - middle, S).decision_function(X - middle)
    assert method.score(X - middle, y) > method.fit(X, S).score(X, y) - 0.03
    np.testing.assert_allclose(
        method.fit(X + offset, S).decision_function(X + offset), expected, atol=1e-3
    )


@pytest.mark.parametrize("method", [CLPL, PLSVM])
def test_without_an_intercept_moderate_offsets_stay(iris, method):
    X, S, _ = iris
    assert (method(fit_intercept=False).fit(X + 1e3, S).intercept_ == 0).all()


@pytest.mark.parametrize("method", [CLPL(), CLPL(loss="hinge"), PLSVM(), M3PL(**LINEAR)], ids=repr)
@pytest.mark.parametrize("size", [1e10, 1e150, 1e300])
def test_huge_features_give_one_warning_and_a_model(iris, method, size):
    X, S, _ = iris
    smaller = size * X / condition(size * X).scale
    expected = method.fit(smaller, S).predict(smaller)
    with pytest.warns(UserWarning, match="X: some values are too large .* divided by") as caught:
        method.fit(size * X, S)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert (method.predict(size * X) == expected).mean() > 0.97


def test_tiny_features_are_no_reason_to_warn(iris):
    X, S, _ = iris
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        assert np.isfinite(CLPL().fit(1e-200 * X, S).coef_).all()
