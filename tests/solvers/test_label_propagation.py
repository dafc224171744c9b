import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from skpll.solvers.label_smoothing import candidate_operator, label_operator, neighbor_graph


@given(seed=st.integers(0, 10**6), n=st.integers(1, 12), q=st.integers(1, 6))
def test_the_operator_is_the_product_on_the_candidates(seed, n, q):
    rng = np.random.default_rng(seed)
    graph = sparse.random_array((n, n), density=0.4, rng=rng, format="csr")
    F = sparse.csr_array(rng.random((n, q)) * (rng.random((n, q)) < 0.5))
    operator = candidate_operator(graph, F.indptr, F.indices)
    product = graph.toarray() @ F.toarray()
    rows = np.repeat(np.arange(n), np.diff(F.indptr))
    np.testing.assert_allclose(operator @ F.data, product[rows, F.indices], atol=1e-14)
    everywhere = label_operator(graph, F.indptr, F.indices)
    np.testing.assert_allclose(everywhere @ F.data, product[product > 0], atol=1e-14)


def test_graph():
    graph = neighbor_graph(np.array([[1, 2], [0, 2], [1, 0]]), np.array([[1, 0], [0.5, 2], [0, 3]]))
    assert graph.toarray().tolist() == [[0, 1, 0], [0.5, 0, 2], [3, 0, 0]]
    assert graph.nnz == 4
    nobody = neighbor_graph(np.zeros((1, 0), dtype=np.int64), np.zeros((1, 0)))
    assert nobody.toarray().tolist() == [[0]]


def test_a_graph_leaves_what_it_is_made_of_alone():
    neighbors, weights = np.array([[1, 2], [0, 2], [0, 1]]), np.array([[0, 1.0], [0.5, 0], [1, 0]])
    kept = neighbors.copy(), weights.copy()
    assert neighbor_graph(neighbors, weights).nnz == 3
    np.testing.assert_array_equal(neighbors, kept[0])
    np.testing.assert_array_equal(weights, kept[1])
