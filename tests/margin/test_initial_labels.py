import numpy as np
import pytest
from scipy import sparse

from skpll._examples import Examples
from skpll.datasets import make_partial_classification
from skpll.margin import _start
from skpll.margin._start import INITIAL_COSTS


@pytest.fixture(scope="module")
def data():
    return make_partial_classification(300, 6, 4, p=0.9, r=2, class_sep=3.0, random_state=0)


def accuracy(costs, S, y):
    return (S.classes[S.indices[S.row_argmax(-costs)]] == y).mean()


def test_uniform_costs_say_nothing(data):
    X, S, _ = data
    assert not INITIAL_COSTS["uniform"](Examples(X, S, np.ones(len(S)))).any()


def test_features_tell_the_first_labels(data):
    X, S, y = data
    assert accuracy(INITIAL_COSTS["ridge"](Examples(X, S, np.ones(len(S)))), S, y) > 0.9


def test_ridge_on_sparse_and_on_many_features(data, monkeypatch):
    X, S, y = data
    dense = INITIAL_COSTS["ridge"](Examples(X, S, np.ones(len(S))))
    compressed = INITIAL_COSTS["ridge"](Examples(sparse.csr_array(X), S, np.ones(len(S))))
    np.testing.assert_allclose(dense, compressed)
    monkeypatch.setattr(_start, "MAX_DENSE_GRAM", 3)
    assert accuracy(INITIAL_COSTS["ridge"](Examples(X, S, np.ones(len(S)))), S, y) > 0.9
