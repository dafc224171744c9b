"""Methods take tensors under array-API dispatch, and answer with arrays of NumPy."""

import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="PyTorch is optional")

TENSORS = """
import numpy as np, sklearn, torch
from skpll import EM, PLKNN
from skpll.datasets import make_partial_classification

X, S, y = make_partial_classification(60, 3, 3, p=0.5, random_state=0)
for method in (PLKNN(), EM()):
    usual = method.fit(X, S).predict_proba(X)
    with sklearn.config_context(array_api_dispatch=True):
        model = method.fit(torch.as_tensor(X), torch.as_tensor(np.asarray(S)))
        found = model.predict_proba(torch.as_tensor(X))
        assert model.score(torch.as_tensor(X), y) == (model.predict(X) == y).mean()
    assert type(found) is np.ndarray
    np.testing.assert_allclose(found, usual)
"""


def test_tensors_in_arrays_out():
    """In a process of its own: SciPy has to be told of array libraries before it is imported."""
    done = subprocess.run([sys.executable, "-c", TENSORS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
