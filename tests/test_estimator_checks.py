"""Every estimator passes scikit-learn's own estimator checks, with no expected failure."""

import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from skpll import (
    CLPL,
    PLKNN,
    CalibratedCandidatesCV,
    CrossFitClassifier,
    SelfPaced,
    all_methods,
)

# The default forest of a hundred trees is fitted hundreds of times; ten show the same.
SMALLER = {CrossFitClassifier: {"estimator": RandomForestClassifier(10, random_state=0)}}

ESTIMATORS = [
    *(method(**SMALLER.get(method, {})) for method in all_methods().values()),
    CalibratedCandidatesCV(PLKNN()),
    SelfPaced(CLPL()),
]


@pytest.mark.filterwarnings("ignore")  # the checks provoke warnings on purpose
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_estimator_checks(estimator, check):
    check(estimator)
