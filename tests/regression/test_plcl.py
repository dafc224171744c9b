import numpy as np
import pytest

from skpll import PLAGGD, PLCL

from .literal import data, kernel_ridge, made_up_data, quadratic_program, reconstruction  # noqa: F401


@pytest.mark.parametrize(("complement", "agreement"), [(0.5, 0.5), (2.0, 0.1)])
def test_against_the_formulas(data, complement, agreement):  # noqa: F811
    """As published: with the complementary confidences themselves, one outside the candidates."""
    X, S, new = data
    model = PLCL(
        3, complement_weight=complement, agreement=agreement, alpha=0.1, max_iter=2, tol=0
    ).fit(X, S)
    Y, one = np.asarray(S), np.eye(len(X))
    W = reconstruction(X, np.zeros(Y.shape), 3, 1.0, 0.0)
    P = quadratic_program((one - W).T @ (one - W), np.zeros(Y.shape), Y)
    Q = 1.0 - Y
    for _ in range(2):
        H, _ = kernel_ridge(X, P, new, 0.1)
        G, _ = kernel_ridge(X, Q, new, 0.1 / complement)
        W = reconstruction(X, P, 3, 1.0, 1.0)
        Q = (complement * G + agreement * (1 - P)) / (complement + agreement)
        Q = np.minimum(1, np.maximum(1 - Y, Q))
        targets = 2 * H + 2 * agreement * (1 - Q)
        P = quadratic_program(2 * (1 + agreement) * one + 2 * (one - W).T @ (one - W), targets, Y)
    np.testing.assert_allclose(model.label_distributions_.toarray(), P, atol=1e-3)
    _, scores = kernel_ridge(X, P, new, 0.1)
    np.testing.assert_allclose(model.decision_function(new), scores, atol=1e-3)


def test_without_agreement_it_is_plaggd():
    X, S, new = made_up_data()
    loose = PLCL(4, agreement=1e-9, max_iter=5, tol=0).fit(X, S)
    plain = PLAGGD(4, alpha=0.03, max_iter=5, tol=0).fit(X, S)
    np.testing.assert_allclose(
        loose.decision_function(new), plain.decision_function(new), atol=1e-3
    )


@pytest.mark.parametrize("parameters", [{"complement_weight": 0}, {"agreement": 0}])
def test_bad_parameters(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        PLCL(**parameters).fit([[0.0], [1.0]], [0, 1])
