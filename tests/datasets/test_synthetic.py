"""Synthetic data have the promised shape, distribution and memory."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.naive_bayes import GaussianNB

from skpll.datasets import _synthetic, make_partial_classification


def test_defaults():
    X, S, y = make_partial_classification(random_state=0)
    assert X.shape == (1000, 20)
    assert X.dtype == np.float64
    assert S.shape == (1000, 5)
    assert y.shape == (1000,)
    assert set(y.tolist()) == set(range(5))
    assert S.contains(y).all()
    assert (S.sizes == 2).sum() == 700


@pytest.mark.parametrize("density", [None, 0.3])
def test_reproducible(density):
    make = {"n_samples": 50, "density": density}
    first, S, y = make_partial_classification(**make, random_state=3)
    again, S2, y2 = make_partial_classification(**make, random_state=3)
    other, _, _ = make_partial_classification(**make, random_state=4)
    as_array = (lambda X: X) if density is None else sparse.csr_array.toarray
    np.testing.assert_array_equal(as_array(first), as_array(again))
    np.testing.assert_array_equal(y, y2)
    assert S == S2
    assert not np.array_equal(as_array(first), as_array(other))


def test_noise_is_standard_normal_around_the_centres():
    X, _, y = make_partial_classification(
        60_000, 6, 3, n_informative=4, class_sep=2.0, random_state=0
    )
    for c in range(3):
        rows = X[y == c]
        np.testing.assert_allclose(np.cov(rows.T), np.eye(6), atol=0.04)
        np.testing.assert_allclose(rows.mean(axis=0)[4:], 0, atol=0.03)
        assert np.abs(rows.mean(axis=0)[:4]).max() > 0.5


def test_class_sep_is_a_quarter_of_the_distance_between_centres():
    _, _, y = make_partial_classification(20_000, 200, 40, random_state=0)
    X, _, _ = make_partial_classification(20_000, 200, 40, class_sep=3.0, random_state=0)
    centres = np.array([X[y == c].mean(axis=0) for c in range(40)])
    squares = ((centres[:, np.newaxis] - centres) ** 2).sum(axis=2)
    mean_square = squares.sum() / (40 * 39) - 2 * 200 * 40 / 20_000  # less the noise of the means
    assert np.sqrt(mean_square) == pytest.approx(4 * 3.0, rel=0.03)


def test_class_sep_orders_the_difficulty():
    scores = []
    for class_sep in (0.0, 0.5, 1.0, 2.0):
        X, _, y = make_partial_classification(4000, 10, 4, class_sep=class_sep, random_state=1)
        scores.append(GaussianNB().fit(X[:2000], y[:2000]).score(X[2000:], y[2000:]))
    assert abs(scores[0] - 0.25) < 0.05
    assert scores == sorted(scores)
    assert scores[-1] > 0.97


def test_weights():
    _, S, y = make_partial_classification(20_000, 2, 3, weights=[6, 3, 1], random_state=0)
    np.testing.assert_allclose(np.bincount(y) / 20_000, [0.6, 0.3, 0.1], atol=0.02)
    _, S, y = make_partial_classification(500, 2, 4, weights=[1, 0, 1, 0], random_state=0)
    assert set(y.tolist()) == {0, 2}
    assert S.classes.tolist() == [0, 1, 2, 3]


def test_candidates_are_passed_on():
    _, S, y = make_partial_classification(300, 2, 6, p=1, r=3, random_state=0)
    assert S.sizes.tolist() == [4] * 300
    _, S, y = make_partial_classification(300, 2, 6, p=1, epsilon=1, random_state=0)
    M = S.to_matrix().toarray()
    assert all(len(np.unique(M[y == c], axis=0)) == 1 for c in range(6))


@pytest.mark.parametrize(("n_features", "density"), [(50, 0.1), (7, 0.5), (3, 1.0), (1000, 1e-5)])
def test_sparse_rows(n_features, density):
    X, S, y = make_partial_classification(400, n_features, 3, density=density, random_state=0)
    stored = max(1, round(density * n_features))
    assert isinstance(X, sparse.csr_array)
    assert X.shape == (400, n_features)
    assert np.diff(X.indptr).tolist() == [stored] * 400
    columns = X.indices.reshape(400, stored)
    assert (np.diff(columns, axis=1) > 0).all()
    assert columns.min() >= 0
    assert columns.max() < n_features
    assert S.contains(y).all()


def test_sparse_columns_are_all_used_alike():
    X, _, _ = make_partial_classification(30_000, 11, 2, density=0.4, random_state=0)
    share = np.bincount(X.indices, minlength=11) / 30_000
    widths = np.diff(np.arange(5) * 11 // 4)
    np.testing.assert_allclose(share, np.repeat(1 / widths, widths), atol=0.015)


def test_sparse_entries_lie_around_the_centres():
    X, _, y = make_partial_classification(
        40_000, 8, 2, n_informative=5, density=0.5, class_sep=1.0, random_state=0
    )
    for c in range(2):
        rows = sparse.csc_array(X[y == c])
        entries = [rows.data[rows.indptr[j] : rows.indptr[j + 1]] for j in range(8)]
        np.testing.assert_allclose([e.std() for e in entries], 1, atol=0.04)
        np.testing.assert_allclose([e.mean() for e in entries[5:]], 0, atol=0.05)
        assert max(abs(e.mean()) for e in entries[:5]) > 0.5


def test_single_precision():
    dense, _, _ = make_partial_classification(20, 3, 2, dtype=np.float32, random_state=0)
    double, _, _ = make_partial_classification(20, 3, 2, random_state=0)
    assert dense.dtype == np.float32
    np.testing.assert_array_equal(dense, double.astype(np.float32))
    X, _, _ = make_partial_classification(20, 30, 2, dtype="float32", density=0.2, random_state=0)
    assert X.dtype == np.float32


@pytest.mark.parametrize("density", [None, 0.5])
def test_blocks_leave_labels_and_shape_alone(monkeypatch, density):
    whole, _, y = make_partial_classification(101, 6, 3, density=density, random_state=0)
    monkeypatch.setattr(_synthetic, "_BLOCK_CELLS", 13)
    cut, _, again = make_partial_classification(101, 6, 3, density=density, random_state=0)
    np.testing.assert_array_equal(y, again)
    assert cut.shape == whole.shape
    if density is None:
        np.testing.assert_array_equal(cut, whole)


def peak_memory(**arguments):
    make_partial_classification(10, 3, 2)  # imports are not what is measured
    tracemalloc.start()
    X, S, y = make_partial_classification(random_state=0, **arguments)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    parts = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    return peak, sum(part.nbytes for part in (*parts, S.indptr, S.indices, y))


@pytest.mark.parametrize(
    "arguments",
    [
        {"n_samples": 100_000, "n_features": 60},
        {"n_samples": 100_000, "n_features": 120, "dtype": np.float32},
        {"n_samples": 100_000, "n_features": 2000, "density": 0.03},
    ],
    ids=["dense", "single", "sparse"],
)
def test_memory_is_that_of_the_result(arguments):
    peak, result = peak_memory(**arguments)
    assert peak <= 1.5 * result


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 0}, "n_samples: 0 is not a whole number of at least 1"),
        ({"n_samples": 10.0}, r"n_samples: 10\.0"),
        ({"n_features": 0}, "n_features: 0"),
        ({"n_classes": 1}, "n_classes: 1 is not a whole number of at least 2"),
        ({"n_informative": 21}, "n_informative: 21 .* at least 1 and at most 20"),
        ({"class_sep": -1}, "class_sep: -1"),
        ({"class_sep": np.inf}, "class_sep: inf"),
        ({"weights": [1, 2]}, r"weights: expected 5 numbers, one a class; got \[1, 2\]"),
        ({"weights": [1, 2, 3, 4, -1]}, "weights: .* not all non-negative"),
        ({"weights": [0] * 5}, "weights: .* positive sum"),
        ({"p": 2}, "p: 2"),
        ({"r": 5}, "r: 5 false candidates are too many for 5 classes"),
        ({"epsilon": -1}, "epsilon: -1"),
        ({"density": 0}, "density: 0 is not a number above 0 and up to 1"),
        ({"density": 1.5}, r"density: 1\.5"),
        ({"dtype": int}, "dtype: .* is neither float64 nor float32"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_partial_classification(**arguments)
