"""`skpll disambiguate` and `skpll inspect` on votes: without features, and as people have them."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from skpll.cli import DONE, WRONG_INPUT

RNG = np.random.default_rng(4)
TRUTH = RNG.integers(3, size=50)
CELLS = np.where(RNG.random((50, 4)) < 0.8, TRUTH[:, None], RNG.integers(3, size=(50, 4)))


def write(name, header, rows):
    with Path(name).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def read(name):
    with Path(name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def files(run):  # in the folder of `run`
    """A table whose rows differ by their names only, and votes on them."""
    write("t.csv", ["key", "gold"], [(f"r{i}", y) for i, y in enumerate(TRUTH)])
    votes = [
        (f"r{i}", f"p{a}", label) for i, row in enumerate(CELLS) for a, label in enumerate(row)
    ]
    write("v.csv", ["item", "annotator", "label"], votes[::-1])
    return ("t.csv", "--id", "key", "--votes", "v.csv")


def test_votes_without_features_are_aggregated(run, files):
    words = [*files, "--truth", "gold", "--out", "out.csv"]
    status, out, err = run("disambiguate", *words)
    assert status == DONE, err
    assert "no column is left to learn from, so the labels are those of the votes alone" in err
    assert "Agreement: Krippendorff's alpha" in out
    assert "accuracy on 50 known items" in " ".join(out.split())
    assert "No accuracy was checked" not in out
    assert run("aggregate", "v.csv", "--out", "alone.csv")[0] == DONE
    alone = {row["item"]: row for row in read("alone.csv")}
    for row in read("out.csv"):
        assert row["label"] == alone[row["key"]]["label"]
        same = float(alone[row["key"]]["confidence"])
        assert float(row["confidence"]) == pytest.approx(same, abs=1e-4)
    result = json.loads(run("disambiguate", *words, "--json")[1])
    assert result["columns_added"] == ["label", "confidence", "runner_up", "unanimous"]
    assert {rule["rule"] for rule in result["rules"]} >= {"majority", "one-coin", "dawid-skene"}


def test_what_needs_features_is_refused_without_any(run, files):
    words = [*files, "--exclude", "gold", "--out", "out.csv"]
    status, _, err = run("disambiguate", *words, "--report", "page.html", "--explain")
    assert status == WRONG_INPUT
    assert "--report, --explain: there is no feature column" in err


def test_candidates_without_features_are_refused(run):
    write("t.csv", ["key", "names"], [(f"r{i}", "a|b" if i % 2 else "b|c") for i in range(20)])
    words = ["t.csv", "--id", "key", "--candidates", "names", "--out", "out.csv"]
    status, _, err = run("disambiguate", *words)
    assert status == WRONG_INPUT
    assert "no feature column is left" in err


def test_votes_on_other_items_are_skipped_on_demand(run, files):
    with Path("v.csv").open("a", encoding="utf-8") as file:
        file.write("elsewhere,stranger,0\n")
    words = [*files, "--exclude", "gold", "--out", "out.csv"]
    status, _, err = run("disambiguate", *words)
    assert status == WRONG_INPUT
    assert "row 201 is about 'elsewhere', which is not in the table" in err
    assert "(--skip-unknown)" in err
    status, out, err = run("disambiguate", *words, "--skip-unknown", "--json")
    assert status == DONE
    assert "votes on items that are not in the table are skipped: 1 (items: 1)" in err
    assert json.loads(out)["n_annotators"] == 4


def test_names_that_come_twice_are_refused_before_anything_is_done(run):
    write("t.csv", ["key", "x", "names"], [("r1", i, "a|b") for i in range(20)])
    words = ["t.csv", "--id", "key", "--candidates", "names", "--out", "out.csv"]
    status, _, err = run("disambiguate", *words)
    assert status == WRONG_INPUT
    assert "--id: rows 1 and 2 are both called 'r1'" in err


def test_inspect_says_how_well_annotators_agree(run, files):
    status, out, err = run("inspect", *files)
    assert status == DONE, err
    assert "Annotators who cost most agreement" in out
    assert "'gold' has labels as its cells" in err
    assert "(--exclude gold)" in err
    found = json.loads(run("inspect", *files, "--json")[1])["agreement"]
    costs = [row["cost"] for row in found["annotators"]]
    assert costs == sorted(costs, reverse=True)
    assert set(found["class_alpha"]) == {"0", "1", "2"}


def test_minus_one_is_no_vote(run):
    cells = np.where(RNG.random(CELLS.shape) < 0.2, -1, CELLS)
    cells[:, 0] = CELLS[:, 0]
    x = TRUTH + 0.3 * RNG.normal(size=50)
    write("t.csv", ["x", "a", "b", "c", "d"], [(v, *row) for v, row in zip(x, cells, strict=True)])
    words = ["t.csv", "--annotators", "a,b,c,d", "--out", "out.csv"]
    status, _, err = run("disambiguate", *words)
    assert status == DONE
    assert f"{(cells < 0).sum()} votes are '-1', which counts as missing (a usual code)" in err
    assert {row["label"] for row in read("out.csv")} == {"0", "1", "2"}


@pytest.mark.parametrize("option", ["--counts", "--probabilities"])
def test_counts_and_probabilities_beside_features(run, option):
    counts = np.array([(CELLS == k).sum(axis=1) for k in range(3)]).T
    x = TRUTH + 0.3 * RNG.normal(size=50)
    cells = counts if option == "--counts" else counts / 4
    rows = [(v, *row) for v, row in zip(x, cells, strict=True)]
    write("t.csv", ["x", "low", "mid", "high"], rows)
    status, _, err = run("disambiguate", "t.csv", option, "low,mid,high", "--out", "out.csv")
    assert status == DONE, err
    names = np.array(["low", "mid", "high"])[TRUTH]
    labels = np.array([row["label"] for row in read("out.csv")])
    assert np.mean(labels == names) >= np.mean(counts.argmax(axis=1) == TRUTH)
