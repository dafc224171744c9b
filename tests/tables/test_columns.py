"""What a column is taken for, and what becomes of it."""

import datetime

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from skpll.tables.columns import FeatureColumns
from skpll.tables.reading import FrameTable

N = 60
RANDOM = np.random.default_rng(0)
NUMBERS = RANDOM.normal(size=N)


def learn(columns, **options):
    return FeatureColumns.learn(FrameTable(pd.DataFrame(columns)), **options)


def matrix(columns, **options):
    table = FrameTable(pd.DataFrame(columns))
    X = FeatureColumns.learn(table, **options).transform(table)
    return X.toarray() if sparse.issparse(X) else X


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (NUMBERS, "number"),
        (RANDOM.integers(0, 3, N), "number"),
        ([f" {x:.3f} " for x in NUMBERS], "number"),
        (["1e3", "inf", "", "NA"] * 15, "number"),
        (["12"] * 30 + ["13"] * 29 + ["oops"], "number"),
        (["12"] * 30 + ["a", "b"] * 15, "category"),
        (["yes", "no", "NA"] * 20, "category"),
        ([True, False, None] * 20, "category"),
        (pd.Categorical(["u", "v", "w"] * 20), "category"),
        (pd.date_range("2020-01-01", periods=N, freq="h"), "date"),
        ([datetime.date(2020, 1, 1 + i % 9) for i in range(N)], "date"),
        ([f"2020-01-{1 + i % 9:02d}T12:30" for i in range(N)], "date"),
    ],
)
def test_kinds(cells, kind):
    assert learn({"x": cells}).kinds == {"x": kind}


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (["a"] * N, "the same in every row"),
        ([3.0] * N, "the same in every row"),
        ([None] * N, "the same in every row"),
        (["NA", "nan"] * 30, "the same in every row"),
        ([f"name {i}" for i in range(N)], "most cells differ"),
        (np.arange(N) + 7, "it counts the rows"),
        ([[1, 2]] * N, "neither number, date nor text"),
    ],
)
def test_columns_that_are_left_out(cells, reason):
    with pytest.warns(UserWarning, match=f"left out of the features: 'x': .*{reason}"):
        assert learn({"x": cells, "y": NUMBERS}).kinds == {"y": "number"}
    with (
        pytest.warns(UserWarning, match=reason),
        pytest.raises(ValueError, match="no feature column is left"),
    ):
        learn({"x": cells})


def test_names_and_counters_are_features_if_the_user_says_so():
    columns = {"who": [f"name {i}" for i in range(N)], "n": np.arange(N), "y": NUMBERS}
    with pytest.warns(UserWarning, match="read as text, by words and letters: 'who'"):
        found = learn(columns, features=["who", "n"])
    assert found.kinds == {"who": "text", "n": "number"}


def test_numbers_are_imputed_and_scaled():
    gaps = np.where(np.arange(N) % 7 == 0, np.nan, NUMBERS)
    wild = np.where(np.arange(N) % 7 == 0, [np.inf, -np.inf, 1e300, np.nan, np.nan] * 12, NUMBERS)
    filled = np.where(np.isnan(gaps), np.nanmedian(gaps), gaps)
    expected = StandardScaler().fit_transform(np.column_stack((filled, np.isnan(gaps))))
    assert np.allclose(matrix({"x": gaps}), expected)
    assert np.allclose(matrix({"x": wild}), expected)
    assert np.allclose(matrix({"x": [str(x) for x in wild]}), expected)


def test_dates_are_days():
    days = RANDOM.integers(0, 5000, N)
    dates = pd.Timestamp("1999-12-31") + pd.to_timedelta(days, unit="D")
    expected = StandardScaler().fit_transform(days[:, np.newaxis].astype(float))
    for cells in (dates, dates.tz_localize("UTC"), dates.strftime("%Y-%m-%d"), list(dates.date)):
        assert np.allclose(matrix({"x": cells})[:, :1], expected)


def test_categories_are_one_hot_and_new_ones_are_none():
    learned = learn({"x": ["u", "v", None] * 20, "y": ["a", " a ", "b"] * 20}, max_dense=np.inf)
    new = FrameTable(pd.DataFrame({"x": ["v", "new", None], "y": ["a", "b", "b"]}))
    assert learned.transform(new).tolist() == [[0, 0, 1, 1, 0], [0, 0, 0, 0, 1], [1, 0, 0, 0, 1]]


def test_many_categories_make_a_sparse_matrix_unless_it_must_be_dense():
    cells = {"x": [f"c{i % 25}" for i in range(100)], "y": [f"d{i % 10}" for i in range(100)]}
    table = FrameTable(pd.DataFrame(cells))
    thin = FeatureColumns.learn(table).transform(table)
    dense = FeatureColumns.learn(table, max_dense=np.inf).transform(table)
    assert sparse.issparse(thin)
    assert isinstance(dense, np.ndarray)
    assert (thin.toarray() == dense).all()
    assert thin.shape == (100, 35)


def test_a_large_table_is_judged_by_a_sample_and_kept_in_single_precision(monkeypatch):
    monkeypatch.setattr("skpll.tables.columns._SAMPLE_ROWS", 100)
    monkeypatch.setattr("skpll.tables.columns._LARGE", 1000)
    monkeypatch.setattr("skpll.tables.reading.BATCH_ROWS", 333)
    values = np.arange(1000.0) % 10  # evenly spaced rows would all be alike
    with pytest.warns(UserWarning, match="'n': it counts the rows"):
        X = matrix({"x": values, "n": np.arange(1000, 0, -1)})
    assert X.dtype == np.float32
    assert len(np.unique(X)) == 10
    assert np.corrcoef(X[:, 0], values)[0, 1] == pytest.approx(1)
    assert abs(X.mean()) < 0.3
