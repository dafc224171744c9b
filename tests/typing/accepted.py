"""What a type checker knows of the library; checked in strict mode by `test_typing.py`."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

from skpll import EM, PLKNN, SPPLL, CalibratedCandidatesCV, CandidateSets, SelfPaced, as_candidates
from skpll.baselines import WeightedCopies

S = as_candidates([{"cat"}, {"cat", "dog"}, {"dog"}])
X = np.zeros((3, 2))

assert_type(S[0], frozenset[Any])
assert_type(S[np.int64(0)], frozenset[Any])
assert_type(S[0:2], CandidateSets)
assert_type(S[[0, 2]], CandidateSets)
assert_type(S[np.flatnonzero(S.sizes > 1)], CandidateSets)
assert_type(S[S.sizes > 1], CandidateSets)

sppll = SPPLL(C=1.0).fit(X, S)
assert_type(sppll, SPPLL)
assert_type(PLKNN(n_neighbors=2).fit(X, S), PLKNN)
assert_type(sppll.label_distributions_, sparse.csr_array[np.float64, tuple[int, int]])
assert_type(sppll.label_distributions_.data, NDArray[np.float64])
assert_type(sppll.transduction_, NDArray[Any])
assert_type(sppll.predict_proba(X), NDArray[np.float64])
assert_type(sppll.decision_function(X), NDArray[np.float64])
assert_type(sppll.score(X, S), float)
assert_type(sppll.predict_log_proba(X), NDArray[np.float64])

assert_type(CalibratedCandidatesCV(PLKNN()).fit(X, S), CalibratedCandidatesCV)
SelfPaced(EM())
WeightedCopies(LogisticRegression())
