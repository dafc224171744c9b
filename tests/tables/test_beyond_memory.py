"""Parquet files that are larger than memory, learned from some rows at a time."""

import json

import numpy as np
import pandas as pd
import pytest

from skpll.cli import DONE, WRONG_INPUT
from skpll.datasets import make_partial_classification

pytest.importorskip("dask.array", reason="Dask is optional")

X, S, Y = make_partial_classification(2600, 6, 4, p=0.8, r=1, class_sep=3.0, random_state=0)
SETTINGS = ["--set", "kernel=linear", "--set", "alpha=0.1", "--set", "n_landmarks=30"]


@pytest.fixture(params=["strings", "lists"])
def folder(request, tmp_path):
    """Two files, with a gap and a column of text among the features."""
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    frame.loc[3, "f0"] = np.nan
    frame["color"] = np.where(X[:, 1] > 0, "red", "blue")
    frame["names"] = S.to_strings() if request.param == "strings" else S.to_lists()
    (tmp_path / "folder").mkdir()
    for part, rows in enumerate((slice(0, 1500), slice(1500, None))):
        frame[rows].to_parquet(tmp_path / "folder" / f"{part}.parquet", row_group_size=800)
    frame.drop(columns="names").to_parquet(tmp_path / "new.parquet")
    return tmp_path / "folder"


def test_a_folder_or_its_files_beyond_memory(run, folder, monkeypatch):
    words = ["--candidates", "names", *SETTINGS, "--json"]
    assert run("fit", folder, *words, "--out", "usual.skops")[0] == DONE
    monkeypatch.setattr("skpll.tables.learning._MEMORY_SHARE", 0.0)
    monkeypatch.setattr("skpll.engine.limits.LIMITS.rows_in_memory", 300)
    status, out, err = run("fit", *sorted(folder.iterdir()), *words, "--out", "large.skops")
    assert status == DONE
    assert "2600 rows of 8 columns: learned from some rows at a time, by Dask" in err
    told = json.loads(out)
    assert (told["rows"], told["partitions"], told["classes"]) == (2600, 4, 4)
    assert told["mean_confidence"] > 0.8
    predicted = []
    for model in ("usual", "large"):
        assert run("predict", f"{model}.skops", "new.parquet", "--out", f"{model}.parquet")[0] == 0
        predicted.append(pd.read_parquet(f"{model}.parquet"))
    usual, large = predicted
    assert (usual["label"] == large["label"]).mean() > 0.99
    assert (large["label"].astype(str) == Y.astype(str)).mean() > 0.8
    assert abs(usual["confidence"] - large["confidence"]).mean() < 0.1


def test_what_needs_all_rows_in_memory_is_refused(run, folder, monkeypatch):
    monkeypatch.setattr("skpll.tables.learning._MEMORY_SHARE", 0.0)
    words = ["--candidates", "names", "--out", "m.skops"]
    status, _, err = run("fit", folder, *words, "--method", "sppll")
    assert status == WRONG_INPUT
    assert "--method sppll: all rows would have to be in memory" in err


def test_only_parquet_files_can_be_several(run, tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("x,names\n1,a|b\n")
    status, _, err = run("fit", "a.csv", "b.csv", "--candidates", "names", "--out", "m.skops")
    assert status == WRONG_INPUT
    assert "only Parquet files can be several" in err


def test_files_with_other_columns_are_refused(run, folder):
    whole, other = folder / "0.parquet", folder.parent / "other.parquet"
    frame = pd.read_parquet(folder / "1.parquet")
    renamed = frame.columns[0]
    frame.rename(columns={renamed: "renamed"}).to_parquet(other)
    status, _, err = run("fit", whole, other, "--candidates", "names", "--out", "m.skops")
    assert status == WRONG_INPUT
    assert f"other.parquet: {renamed}, renamed: " in err
    assert not (folder.parent / "m.skops").exists()
