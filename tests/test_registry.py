"""A method is one file and one registration; everything else finds it."""

import importlib
import json
import subprocess
import sys

import pandas as pd
import pytest

import skpll
import skpll.registry
from skpll.cli import DONE, WRONG_INPUT, main

METHOD = '''
import numpy as np

from skpll.base import PartialLabelClassifier


class Counts:
    """Something of its own that a fitted model holds."""

    def __init__(self, of_class):
        self.of_class = of_class


class Majority(PartialLabelClassifier):
    """The most frequent candidate wins (MAJORITY).

    Use it to see what the features are worth.

    References
    ----------
    A. Nobody: On majorities, 1900.
    """

    _stored_classes = (Counts,)

    def _fit(self, examples):
        candidates = examples.sets
        self.counts_ = Counts(np.bincount(candidates.indices, minlength=candidates.shape[1]))
        return self.counts_.of_class[candidates.indices].astype(float)

    def _class_scores(self, X):
        return np.tile(self.counts_.of_class.astype(float), (len(X), 1))
'''


LOOKUP = """
import sys
import sklearn.utils  # imports pandas where it is installed
before = set(sys.modules)
from skpll.registry import make_method
make_method("plloo", {"kernel": "linear"}, seed=0)
print(*set(sys.modules) - before)
"""


def test_a_method_is_found_without_importing_the_others():
    done = subprocess.run(
        [sys.executable, "-c", LOOKUP], capture_output=True, text=True, check=True
    )
    loaded = done.stdout.split()
    assert any(name.endswith("plloo") for name in loaded)
    heavy = {"numba", "pandas", "matplotlib", "polars", "dask", "torch"}
    assert not heavy & {name.split(".")[0] for name in loaded}
    others = ("skpll.neighbors", "skpll.margin", "skpll.tables", "skpll.experiments")
    assert not [name for name in loaded if name.startswith(others)]


@pytest.mark.parametrize(
    ("name", "hint"),
    [("pllo", "did you mean 'plloo'"), ("x", "there are .*sppll"), ("metrics", "there are")],
)
def test_a_name_that_is_no_method(name, hint):
    with pytest.raises(ValueError, match=f"method: there is no method '{name}'; {hint}"):
        skpll.registry.make_method(name, {})


@pytest.fixture
def registered(tmp_path, monkeypatch):
    """Write the file, and register it: what a line in the stub does for a file of the package."""
    (tmp_path / "family").mkdir()
    (tmp_path / "family" / "majority.py").write_text(METHOD)
    monkeypatch.syspath_prepend(tmp_path)
    cls = importlib.import_module("family.majority").Majority
    monkeypatch.setattr(skpll, "Majority", cls, raising=False)
    monkeypatch.setattr(skpll, "__all__", [*skpll.__all__, "Majority"])
    monkeypatch.chdir(tmp_path)
    yield cls
    del sys.modules["family.majority"], sys.modules["family"]


def test_the_command_line_describes_a_new_method(registered, capsys):
    assert main(["methods", "--json"]) == DONE
    described = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert described["majority"] == {
        "name": "majority",
        "class": "Majority",
        "summary": "The most frequent candidate wins (MAJORITY)",
        "use": "to see what the features are worth",
        "paper": "A. Nobody: On majorities, 1900.",
    }


def test_tables_and_saved_models_take_a_new_method(registered):
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.5, 4.0], "who": ["a|b", "a", "b|a", "a|b"]})
    assert skpll.disambiguate(frame, "who", method="majority")["label"].tolist() == ["a"] * 4
    frame.to_csv("t.csv", index=False)
    words = ["--candidates", "who", "--method", "majority", "--quiet"]
    assert main(["fit", "t.csv", *words, "--out", "m.skops"]) == DONE
    assert main(["predict", "m.skops", "t.csv", "--out", "out.csv", "--quiet"]) == DONE
    assert pd.read_csv("out.csv")["label"].tolist() == ["a"] * 4


def test_what_is_not_registered_is_not_trusted(registered, monkeypatch, capsys):
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.5, 4.0], "who": ["a|b", "a", "b|a", "a|b"]})
    frame.to_csv("t.csv", index=False)
    words = ["--candidates", "who", "--method", "majority", "--quiet", "--out", "m.skops"]
    assert main(["fit", "t.csv", *words]) == DONE
    monkeypatch.setattr(skpll, "__all__", [name for name in skpll.__all__ if name != "Majority"])
    assert main(["predict", "m.skops", "t.csv", "--out", "out.csv"]) == WRONG_INPUT
    assert "types that are not trusted: family.majority.Majority" in capsys.readouterr().err


def test_a_record_that_is_not_listed_is_not_trusted(registered, monkeypatch, capsys):
    monkeypatch.delattr(registered, "_stored_classes")
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.5, 4.0], "who": ["a|b", "a", "b|a", "a|b"]})
    frame.to_csv("t.csv", index=False)
    words = ["--candidates", "who", "--method", "majority", "--quiet", "--out", "m.skops"]
    assert main(["fit", "t.csv", *words]) == WRONG_INPUT
    assert (
        "can't be saved: refused, it holds types that are not trusted: family.majority.Counts"
        in (capsys.readouterr().err)
    )
