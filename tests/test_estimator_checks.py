"""Every method passes scikit-learn's own estimator checks, with no expected failure."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from skpll import all_methods


@pytest.mark.filterwarnings("ignore")  # the checks provoke warnings on purpose
@parametrize_with_checks([method() for method in all_methods().values()])
def test_scikit_learn_estimator_checks(estimator, check):
    check(estimator)
