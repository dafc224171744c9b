"""Saved models: the same answers after loading, and a refusal of anything else."""

import json
import warnings
import zipfile
from io import BytesIO

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import Pipeline

from skpll import all_methods
from skpll.datasets import make_partial_classification
from skpll.tables.formats import read_table
from skpll.tables.learning import learn_from_table
from skpll.tables.models import load_model, save_model
from skpll.tables.reading import FrameTable

X, S, _ = make_partial_classification(80, 4, 3, p=0.5, r=1, random_state=0)
FRAME = pd.DataFrame(
    {**{f"x{j}": X[:, j] for j in range(4)}, "city": np.where(X[:, 0] > 0, "Rome", "Oslo")}
)
FRAME.loc[3, "x1"] = np.nan
NEW = pd.DataFrame({**{f"x{j}": X[:9, j] for j in range(4)}, "city": ["Bonn", "Oslo", None] * 3})


class Other:
    """A type that is nobody's business."""


def fitted(method="sppll"):
    return learn_from_table(FrameTable(FRAME), S, method=method).model


@pytest.mark.parametrize("method", sorted(all_methods()))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:'city' is not as it was learned")
def test_a_loaded_model_gives_the_same_answers(method, tmp_path):
    model = fitted(method)
    save_model(model, tmp_path / "m.skops")
    loaded = load_model(tmp_path / "m.skops")
    table = FrameTable(NEW)
    before = model.predicted_columns(table, probabilities=True)
    after = loaded.predicted_columns(table, probabilities=True)
    assert list(after) == ["label", "confidence", *(f"probability_{c}" for c in S.classes)]
    assert {name: c.to_pylist() for name, c in before.items()} == {
        name: c.to_pylist() for name, c in after.items()
    }
    shares = np.column_stack([after[f"probability_{c}"] for c in S.classes])
    assert np.allclose(shares.sum(axis=1), 1)
    assert np.allclose(shares.max(axis=1), after["confidence"])
    features = model.columns.encoder.transform(next(model.columns.frames(table)))
    assert after["label"].to_pylist() == model.method.predict(features).tolist()
    assert (loaded.name, loaded.columns.kinds) == (method, model.columns.kinds)
    assert loaded.columns.columns == model.columns.columns


def test_a_model_of_stored_numbers_and_dates_reads_written_ones(tmp_path):
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(80) * 7 % 400, "D")
    stored = FRAME.assign(day=days)
    model = learn_from_table(FrameTable(stored), S, method="plknn").model
    stored.to_csv(tmp_path / "written.csv", index=False)
    stored.to_csv(tmp_path / "comma.csv", index=False, sep=";", decimal=",", date_format="%d.%m.%Y")
    expected = model.predicted_columns(FrameTable(stored))["label"].to_pylist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        written = model.predicted_columns(read_table(tmp_path / "written.csv"))
    assert written["label"].to_pylist() == expected
    with pytest.warns(UserWarning, match="is written as .*; read accordingly"):
        comma = model.predicted_columns(read_table(tmp_path / "comma.csv"))
    assert comma["label"].to_pylist() == expected


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "m.skops"
    save_model(fitted(), path)
    return path


def test_a_truncated_file_is_refused(saved):
    content = saved.read_bytes()
    for size in (0, 10, len(content) // 2, len(content) - 1):
        saved.write_bytes(content[:size])
        with pytest.raises(ValueError, match="not a complete model"):
            load_model(saved)


def test_a_damaged_file_is_refused(saved):
    content = bytearray(saved.read_bytes())
    with zipfile.ZipFile(saved) as archive:
        place = archive.getinfo("schema.json").header_offset + 500
    content[place] ^= 0xFF
    saved.write_bytes(content)
    with pytest.raises(ValueError, match="damaged"):
        load_model(saved)


@pytest.mark.parametrize("package", ["skpll", "scikit-learn"])
def test_another_version_is_refused(saved, package):
    rewrite(saved, lambda description: description | {package: "0.0.1"})
    with pytest.raises(ValueError, match=rf"made with {package} 0\.0\.1, but this is .*fit the"):
        load_model(saved)


COLUMN = {"name": "x0", "kind": "number", "categories": []}


@pytest.mark.parametrize(
    "columns",
    [
        None,
        3,
        "x",
        [3],
        [{}],
        [COLUMN | {"more": 1}],
        [COLUMN | {"name": 3}],
        [COLUMN | {"kind": "other"}],
        [COLUMN | {"style": "1;234"}],
        [COLUMN | {"low": "much"}],
        [COLUMN | {"missing": None}],
        [COLUMN | {"categories": [3]}],
        [COLUMN | {"categories": 3}],
        [],
        [COLUMN],
    ],
)
def test_a_damaged_description_is_refused_with_the_name_of_the_file(saved, columns):
    rewrite(saved, lambda description: description | {"columns": columns})
    with pytest.raises(ValueError, match="make it anew") as told:
        load_model(saved)
    assert str(told.value).startswith(f"{saved}: ")


@pytest.mark.parametrize("content", [b"{}", b"[1]", b"no json", None])
def test_a_file_of_something_else_is_refused(saved, content):
    pipeline = BytesIO(skops.io.dumps({"a": 1}))
    if content is not None:
        with zipfile.ZipFile(pipeline, "a") as archive:
            archive.writestr("skpll.json", content)
    saved.write_bytes(pipeline.getvalue())
    with pytest.raises(ValueError, match="not a complete model"):
        load_model(saved)


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (Pipeline([("columns", "passthrough"), ("method", Other())]), "not trusted: .*Other"),
        ({"a": 1}, "does not hold a model"),
        (SGDClassifier(), "not trusted: .*SGDClassifier"),
        (LogisticRegression(), "does not hold a model"),
    ],
)
def test_only_types_that_belong_to_a_model_are_loaded(saved, stored, message):
    with zipfile.ZipFile(saved) as archive:
        description = archive.read("skpll.json")
    content = BytesIO(skops.io.dumps(stored))
    with zipfile.ZipFile(content, "a") as archive:
        archive.writestr("skpll.json", description)
    saved.write_bytes(content.getvalue())
    with pytest.raises(ValueError, match=message):
        load_model(saved)


def test_a_table_without_the_columns_of_the_model_is_refused(saved):
    table = FrameTable(NEW.drop(columns="x2"))
    with pytest.raises(ValueError, match="the model: the table has no column 'x2'"):
        load_model(saved).predicted_columns(table)


def rewrite(path, change):
    """Change the description inside a model file."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["skpll.json"] = json.dumps(change(json.loads(parts["skpll.json"]))).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
