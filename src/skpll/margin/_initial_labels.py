"""What the first labels cost, before there is any model.

The labels themselves then come from the assignment of least cost. The paper's cost is the same for
all candidates of an example, so that its first labels are as good as arbitrary; the others look at
the features once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import Ridge

from skpll.candidates import CandidateSets
from skpll.engine.ridge import fit_ridge
from skpll.solvers.margins import candidate_scores

__all__ = ["INITIAL_COSTS"]

Floats = NDArray[np.float64]

_DENSE_GRAM_BELOW = 2000


def uniform_costs(X: Any, candidates: CandidateSets, weights: Floats) -> Floats:
    """No cost, as the paper's 1/|S| for all candidates of an example; less for more evidence."""
    del X, weights
    if candidates.weights is None:
        return np.zeros(len(candidates.indices))
    return -candidates.initial_confidences()


def ridge_costs(X: Any, candidates: CandidateSets, weights: Floats) -> Floats:
    """Regress the initial confidences on the features; low predictions cost."""
    confidences = sparse.csr_array(
        (candidates.initial_confidences(), candidates.indices, candidates.indptr),
        shape=candidates.shape,
    )
    if X.shape[1] <= _DENSE_GRAM_BELOW:
        coef, intercept = fit_ridge(X, confidences, weights)
    else:
        model = Ridge(solver="sparse_cg", tol=1e-2, max_iter=50)
        model.fit(X, confidences.toarray(), sample_weight=weights)
        coef, intercept = model.coef_, model.intercept_
    return -candidate_scores(X, coef, intercept, candidates.indptr, candidates.indices)


INITIAL_COSTS: dict[str, Callable[[Any, CandidateSets, Floats], Floats]] = {
    "uniform": uniform_costs,
    "ridge": ridge_costs,
}
