import numpy as np
import pytest

from skpll import as_candidates


@pytest.fixture
def clusters():
    """Three Gaussian classes in the plane; two of three examples have false candidates."""
    rng = np.random.default_rng(3)
    y = np.arange(150) % 3
    X = rng.normal(size=(150, 2)) + 3.5 * np.array([[0, 0], [1, 0], [0, 1]])[y]
    names = np.array(["ant", "bee", "cat"])
    sets = [
        {names[k], names[(k + 1 + rng.integers(2)) % 3]} if (i // 3) % 3 else {names[k]}
        for i, k in enumerate(y)
    ]
    return X, as_candidates(sets), names[y]
