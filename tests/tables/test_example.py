"""The worked example does what its text says."""

import re
import warnings
from pathlib import Path
from runpy import run_path

import pandas as pd
import pytest

from skpll.cli import DONE, main

FOLDER = Path(__file__).parents[2] / "examples" / "ambiguous_digits"


@pytest.mark.filterwarnings("ignore:left out of the features")
def test_ambiguous_digits(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_path(FOLDER / "make_table.py", run_name="__main__")
    votes, truth = pd.read_csv("votes.csv"), pd.read_csv("truth.csv").set_index("name")["digit"]
    votes["right"] = votes["label"] == votes["item"].map(truth)
    skill = votes.groupby("annotator")["right"].mean()
    assert skill["careful"] > 0.93 > 0.83 > skill["quick"] > 0.77 > 0.65 > skill["novice"] > 0.55
    words = ["digits.csv", "--candidates", "candidates", "--id", "name", "--out", "resolved.csv"]
    assert main(["disambiguate", *words, "--quiet"]) == DONE
    resolved = pd.read_csv("resolved.csv")
    right = (resolved["label"] == truth.to_numpy()).mean()
    assert right > max(skill["quick"], 0.95)
    run_path(FOLDER / "in_python.py")
    printed = float(re.match(r"([\d.]+)%", capsys.readouterr().out)[1])
    assert printed == pytest.approx(100 * right, abs=0.1)


@pytest.mark.slow
def test_the_documentation_says_what_the_script_prints(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_path(FOLDER / "make_table.py", run_name="__main__")
    with warnings.catch_warnings():
        run_path(FOLDER / "how_well.py")
    printed = capsys.readouterr().out
    text = (FOLDER.parents[1] / "docs" / "tables.md").read_text(encoding="utf-8")
    said = re.search(
        r"([\d.]+) % of the majorities are right, ([\d.]+) % of the labels found, "
        r"([\d.]+) % on new rows",
        text,
    )
    shares = [
        float(re.search(rf"^{name}: ([\d.]+)% right", printed, re.M)[1])
        for name in ("majority of the votes", "votes", "new rows")
    ]
    assert shares == pytest.approx(list(map(float, said.groups())), abs=0.5)
    assert shares[1] > shares[0] + 5


def test_the_python_is_short():
    lines = (FOLDER / "in_python.py").read_text(encoding="utf-8").splitlines()
    assert len([line for line in lines if line]) <= 12
