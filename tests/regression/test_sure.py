import numpy as np
import pytest
from scipy.optimize import minimize

from skpll import SURE
from skpll._iteration import InterruptedFitWarning
from skpll.engine import kernels

from .literal import data, kernel_ridge, made_up_data  # noqa: F401


def rewarded(q, Y, reward):
    """One example's program as published, with the constraint that none is above the chosen one."""
    inside = np.flatnonzero(Y)
    chosen = int(np.argmax(q[inside]))
    found = minimize(
        lambda p: np.sum((p - q[inside]) ** 2) - reward * p[chosen],
        np.full(len(inside), 1 / len(inside)),
        bounds=[(0, 1)] * len(inside),
        constraints=[
            {"type": "eq", "fun": lambda p: p.sum() - 1},
            {"type": "ineq", "fun": lambda p: p[chosen] - p},
        ],
        method="SLSQP",
        options={"ftol": 1e-15},
    )
    p = np.zeros(len(Y))
    p[inside] = found.x
    return p


@pytest.mark.parametrize("reward", [0.0, 0.3, 3.0])
def test_against_the_formulas(data, reward):  # noqa: F811
    X, S, new = data
    model = SURE(reward, alpha=0.1, max_iter=4, tol=0).fit(X, S)
    Y = np.asarray(S)
    P = Y.astype(float)
    for _ in range(4):
        Q, _ = kernel_ridge(X, P, new, 0.1)
        P = np.array([rewarded(q, row, reward) for q, row in zip(Q, Y, strict=True)])
    np.testing.assert_allclose(model.label_distributions_.toarray(), P, atol=1e-5)
    _, scores = kernel_ridge(X, P, new, 0.1)
    np.testing.assert_allclose(model.decision_function(new), scores, atol=1e-5)


def test_a_weight_is_a_repetition():
    X, S, new = made_up_data()
    counts = np.arange(len(X)) % 3
    repeated = np.repeat(np.arange(len(X)), counts)
    weighted = SURE().fit(X, S, sample_weight=counts)
    plain = SURE().fit(X[repeated], S[repeated])
    np.testing.assert_allclose(weighted.decision_function(new), plain.decision_function(new))


def test_large_rewards_make_sure():
    X, S, _ = made_up_data()
    P = SURE(10.0).fit(X, S).label_distributions_.toarray()
    np.testing.assert_array_equal(P.max(axis=1), 1)


def test_the_unit_of_the_features_does_not_matter():
    X, S, new = made_up_data()
    for kernel in ("rbf", "laplacian"):
        one = SURE(kernel=kernel).fit(X, S).decision_function(new)
        other = SURE(kernel=kernel).fit(1000 * X, S).decision_function(1000 * new)
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_evidence_is_where_rounds_start():
    X, S, _ = made_up_data()
    first = S.with_weights(np.where(S.indices == 0, 20.0, 1.0))
    plain, leaning = (SURE(max_iter=1).fit(X, sets).label_distributions_ for sets in (S, first))
    assert leaning.toarray()[:, 0].sum() > plain.toarray()[:, 0].sum() + 0.5
    even = SURE().fit(X, S.with_weights(np.full(len(S.indices), 7.0)))
    np.testing.assert_allclose(
        even.label_distributions_.data, SURE().fit(X, S).label_distributions_.data
    )


def test_rounds_end_at_tol():
    X, S, _ = made_up_data()
    changes = [record["change"] for record in SURE(tol=1e-3, max_iter=500).fit(X, S).history_]
    assert len(changes) < 500
    assert changes[-1] <= 1e-3 < changes[-2]


def test_examples_that_are_all_the_same():
    model = SURE().fit(np.ones((5, 2)), [{0, 1}, {0}, {0}, {0, 1}, {0}])
    assert model.predict([[1.0, 1.0]]).tolist() == [0]


def test_blocks_change_nothing(monkeypatch):
    X, S, new = made_up_data()
    model = SURE().fit(X, S)
    whole = model.decision_function(new)
    monkeypatch.setattr(kernels, "MAX_BLOCK_NUMBERS", 50)
    np.testing.assert_allclose(model.decision_function(new), whole, atol=1e-12)


def test_an_interrupt_leaves_a_model(monkeypatch):
    X, S, new = made_up_data()
    rounds = SURE._rounds

    def stopped(self, *arguments):
        for count, confidences in enumerate(rounds(self, *arguments)):
            if count == 2:
                raise KeyboardInterrupt
            yield confidences

    monkeypatch.setattr(SURE, "_rounds", stopped)
    with pytest.warns(InterruptedFitWarning, match="2 of 50 rounds"):
        model = SURE().fit(X, S)
    monkeypatch.undo()
    np.testing.assert_allclose(
        model.decision_function(new), SURE(max_iter=2).fit(X, S).decision_function(new)
    )


@pytest.mark.parametrize(
    "parameters",
    [{"reward": -1}, {"alpha": 0}, {"kernel": "cubic"}, {"gamma": 0}, {"max_iter": 0}, {"tol": -1}],
)
def test_bad_parameters(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        SURE(**parameters).fit([[0.0], [1.0]], [0, 1])
