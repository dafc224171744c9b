"""Problems on which several methods are tried."""

import numpy as np
import pytest

from skpll import as_candidates


@pytest.fixture
def data():
    """Sixty examples of four classes, their candidate sets, and twenty new examples."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 60)
    X = rng.normal(size=(60, 5)) + 2 * np.eye(4, 5)[y]
    sets = [{k, *rng.integers(0, 4, rng.integers(0, 3)).tolist()} for k in y.tolist()]
    return X, as_candidates(sets), rng.normal(size=(20, 5)) + 1
