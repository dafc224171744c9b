"""Losses by models that have not seen the example."""

from types import SimpleNamespace

import numpy as np
from sklearn.model_selection import KFold

from skpll.datasets import make_partial_classification
from skpll.margin._alternating import HeldOutLosses
from skpll.solvers import fit_crammer_singer


def test_losses_are_those_of_models_trained_without_the_fold():
    X, S, y = make_partial_classification(60, 4, 3, p=0.7, class_sep=1.0, random_state=0)
    labels = np.searchsorted(S.classes, y)
    rng = np.random.default_rng(0)
    state = SimpleNamespace(
        X=X,
        candidates=S,
        labels=labels,
        weights=rng.uniform(size=60),
        importance=rng.uniform(0.5, 2, size=60),
        settings=SimpleNamespace(solver_tol=1e-9),
    )
    held_out = HeldOutLosses(4, 60, seed=3)
    held_out(state, 0.1)  # goes on from another C
    losses = held_out(state, 2.0)
    for others, fold in KFold(4, shuffle=True, random_state=3).split(X):
        costs = 2.0 * (state.weights * state.importance)[others]
        model = fit_crammer_singer(X[others], labels[others], costs, 3, tol=1e-9)
        for i in fold:
            scores = model.coef @ X[i] + model.intercept
            for entry in range(S.indptr[i], S.indptr[i + 1]):
                label = S.indices[entry]
                margin = scores[label] - np.delete(scores, label).max()
                assert abs(losses[entry] - max(0.0, 1.0 - margin)) < 1e-3
