"""scikit-learn's estimator checks, with the reason of each exception."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from skpll.deep import DeepPartialLabelClassifier

REASONS = {
    "check_sample_weight_equivalence_on_dense_data": "batches are drawn at random, so that an "
    "example of weight two does not come where two copies of it would",
}


@pytest.mark.filterwarnings("ignore")  # the checks provoke warnings on purpose
@parametrize_with_checks(
    [
        DeepPartialLabelClassifier(
            module_params={"hidden": (20,)}, max_epochs=20, batch_size=32, device="cpu"
        )
    ],
    expected_failed_checks=lambda estimator: REASONS,
)
def test_scikit_learn_estimator_checks(estimator, check):
    check(estimator)
