"""The deep part needs torch and skorch: without them all of its tests are skipped."""

import importlib.util

import pytest

MISSING = [name for name in ("torch", "skorch") if importlib.util.find_spec(name) is None]


def pytest_ignore_collect(collection_path):
    """Leave out files that could not even be imported; `test_without_torch.py` says so."""
    return (bool(MISSING) and collection_path.name not in ("test_without_torch.py", "deep")) or None


@pytest.fixture
def digits():
    """Small pictures of digits, and candidate sets with the truth and two other labels."""
    from sklearn.datasets import load_digits

    from skpll.datasets import make_partial_labels

    X, y = load_digits(return_X_y=True)
    X, y = X[:600] / 16, y[:600]
    return X, make_partial_labels(y, p=0.9, r=2, random_state=0), y
