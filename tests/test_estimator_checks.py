"""Every estimator passes scikit-learn's own estimator checks, with no expected failure."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from skpll import (
    CLPL,
    PLKNN,
    CalibratedCandidatesCV,
    SelfPaced,
    StackedCandidates,
    all_methods,
)

ESTIMATORS = [
    *(method() for method in all_methods().values()),
    CalibratedCandidatesCV(PLKNN()),
    SelfPaced(CLPL()),
    StackedCandidates([("near", PLKNN()), ("linear", CLPL())]),
]


@pytest.mark.filterwarnings("ignore")  # the checks provoke warnings on purpose
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_estimator_checks(estimator, check):
    check(estimator)
