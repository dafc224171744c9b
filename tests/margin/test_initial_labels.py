import numpy as np
import pytest
from scipy import sparse

from skpll._rows import row_argmax
from skpll.datasets import make_partial_classification
from skpll.margin import _initial_labels
from skpll.margin._initial_labels import INITIAL_COSTS


@pytest.fixture(scope="module")
def data():
    return make_partial_classification(300, 6, 4, p=0.9, r=2, class_sep=3.0, random_state=0)


def accuracy(costs, S, y):
    return (S.classes[S.indices[row_argmax(S, -costs)]] == y).mean()


def test_uniform_costs_say_nothing(data):
    X, S, _ = data
    assert not INITIAL_COSTS["uniform"](X, S, np.ones(len(S))).any()


def test_features_tell_the_first_labels(data):
    X, S, y = data
    assert accuracy(INITIAL_COSTS["ridge"](X, S, np.ones(len(S))), S, y) > 0.9


def test_ridge_on_sparse_and_on_many_features(data, monkeypatch):
    X, S, y = data
    dense = INITIAL_COSTS["ridge"](X, S, np.ones(len(S)))
    compressed = INITIAL_COSTS["ridge"](sparse.csr_array(X), S, np.ones(len(S)))
    np.testing.assert_allclose(dense, compressed)
    monkeypatch.setattr(_initial_labels, "_DENSE_GRAM_BELOW", 3)
    assert accuracy(INITIAL_COSTS["ridge"](X, S, np.ones(len(S))), S, y) > 0.9
