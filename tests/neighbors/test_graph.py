import pickle
import sys
from types import ModuleType
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from skpll import IPAL, LALO, PLAGGD, PLCL, PLKNN, PLLEAF
from skpll.baselines import NeighborMajority
from skpll.neighbors.graph import NeighborSearch


@given(seed=st.integers(0, 10**6), n=st.integers(2, 20), k=st.integers(1, 12))
def test_others_against_brute_force(seed, n, k):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, 2)).astype(float)  # many duplicates
    distances, neighbors = NeighborSearch(X).nearest_others(X, k)
    wanted = min(k, n - 1)
    assert neighbors.shape == distances.shape == (n, wanted)
    for i in range(n):
        apart = np.linalg.norm(X - X[i], axis=1)
        assert i not in neighbors[i]
        assert len(set(neighbors[i])) == wanted
        np.testing.assert_allclose(apart[neighbors[i]], distances[i], atol=1e-7)
        np.testing.assert_allclose(distances[i], np.sort(np.delete(apart, i))[:wanted], atol=1e-7)


@pytest.mark.parametrize("method", [PLKNN, IPAL, PLLEAF, LALO, PLAGGD, PLCL, NeighborMajority])
def test_more_neighbors_than_examples_are_refused(method):
    X = np.random.default_rng(0).normal(size=(8, 2))
    S = [{"a"}, {"b"}, {"a", "b"}, {"b"}] * 2
    with pytest.raises(ValueError, match="n_neighbors: 9 neighbours among 8 training examples"):
        method(n_neighbors=9).fit(X, S)
    everybody = method(n_neighbors=8).fit(X, S)
    by_default = method().fit(X, S)
    np.testing.assert_allclose(by_default.predict_proba(X), everybody.predict_proba(X))


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_some_rows_and_new_examples(container):
    rng = np.random.default_rng(0)
    X = container(rng.normal(size=(30, 5)))
    search = NeighborSearch(X)
    _, of_all = search.nearest_others(X, 4)
    _, of_some = search.nearest_others(X[10:20], 4, range(10, 20))
    np.testing.assert_array_equal(of_some, of_all[10:20])
    _, including_self = search.nearest(X, 5)
    np.testing.assert_array_equal(including_self[:, 0], np.arange(30))
    np.testing.assert_array_equal(including_self[:, 1:], of_all)


def test_one_example_has_no_others():
    distances, neighbors = NeighborSearch(np.ones((1, 2))).nearest_others(np.ones((1, 2)), 3)
    assert distances.shape == neighbors.shape == (1, 0)


# -- the approximate search -----------------------------------------------------------------


class ForgetfulDescent:
    """Stands in for pynndescent: exact, but it finds too few neighbours of every third row."""

    made_with: ClassVar[dict] = {}

    def __init__(self, X, **options):
        ForgetfulDescent.made_with = options
        self.search = NeighborSearch(X)

    def query(self, X, k):
        distances, neighbors = self.search.nearest(X, k)
        neighbors = neighbors.astype(np.int32)
        neighbors[::3, -1] = -1
        distances[::3, -1] = np.inf
        return neighbors, distances


@pytest.fixture
def forgetful(monkeypatch):
    module = ModuleType("pynndescent")
    module.NNDescent = ForgetfulDescent
    monkeypatch.setitem(sys.modules, "pynndescent", module)
    monkeypatch.setattr(NeighborSearch, "SMALL", 20)


def test_what_the_approximate_search_misses_is_searched_exactly(forgetful):
    X = np.random.default_rng(0).normal(size=(50, 3))
    expected = NeighborSearch(X).nearest_others(X, 6)
    found = NeighborSearch(X, search="approximate", metric="euclidean").nearest_others(X, 6)
    np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_allclose(found[0], expected[0])
    assert ForgetfulDescent.made_with["metric"] == "euclidean"
    assert ForgetfulDescent.made_with["random_state"] == 0


def test_methods_take_the_approximate_search(forgetful):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), rng.integers(0, 3, 50)
    ForgetfulDescent.made_with = {}
    approximate = PLKNN(search="approximate").fit(X, y)
    assert ForgetfulDescent.made_with
    np.testing.assert_array_equal(
        approximate.label_distributions_.data, PLKNN().fit(X, y).label_distributions_.data
    )


def test_few_examples_are_searched_exactly(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynndescent", None)
    X = np.random.default_rng(0).normal(size=(50, 3))
    found = NeighborSearch(X, search="approximate").nearest_others(X, 6)
    np.testing.assert_array_equal(found[1], NeighborSearch(X).nearest_others(X, 6)[1])


def test_without_pynndescent_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynndescent", None)
    monkeypatch.setattr(NeighborSearch, "SMALL", 20)
    with pytest.raises(ImportError, match=r"search: .*pip install skpll\[approx\]"):
        NeighborSearch(np.eye(30), search="approximate")


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_pynndescent_finds_nearly_all_neighbours():
    pytest.importorskip("pynndescent")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 10))[rng.integers(0, 20, 3000)] + 0.5 * rng.normal(size=(3000, 10))
    search = NeighborSearch(X, search="approximate")
    _, found = search.nearest_others(X, 10)
    _, exact = NeighborSearch(X).nearest_others(X, 10)
    shared = [len(set(a) & set(b)) for a, b in zip(found, exact, strict=True)]
    assert np.mean(shared) > 9.5
    again = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(again.nearest_others(X, 10)[1], found)


@pytest.mark.parametrize(
    "parameters",
    [{"n_neighbors": 0}, {"max_iter": 0}, {"tol": -1}, {"search": "quick"}],
)
@pytest.mark.parametrize("method", [IPAL, PLLEAF])
def test_bad_parameters(method, parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        method(**parameters).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize(
    "method",
    [IPAL(alpha=1.0), PLLEAF(C1=0), PLLEAF(C2=-1), PLLEAF(epsilon=-0.1), PLLEAF(kernel="cubic")],
)
def test_bad_parameters_of_one_method(method):
    with pytest.raises(ValueError, match=r"The '\w+' parameter of"):
        method.fit([[0.0], [1.0]], [0, 1])
