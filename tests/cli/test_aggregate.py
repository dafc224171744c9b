"""`skpll aggregate`: files in, files out, and what it prints."""

import json

import numpy as np
import pytest

from skpll.cli import DONE, WRONG_INPUT, main

WHO = ("ann", "bob", "cy", "dan", "eve")


def made_up(n=60, seed=0):
    """Labels 0, 1, 2 of five annotators, and the truth; −1 where an annotator did not vote."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n)
    cells = np.where(rng.random((n, 5)) < 0.8, truth[:, None], rng.integers(3, size=(n, 5)))
    cells[rng.random((n, 5)) < 0.2] = -1
    cells[:, 0] = truth  # every row has a vote
    return cells, truth


def write(path, header, rows):
    lines = [header, *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def long_votes(tmp_path):
    cells, truth = made_up()
    rows = [
        (f"i{i}", who, cells[i, a], truth[i])
        for i in range(len(cells))
        for a, who in enumerate(WHO)
        if cells[i, a] >= 0
    ]
    return write(tmp_path / "votes.csv", "thing,who,said,gold", rows)


def read(path):
    header, *rows = path.read_text("utf-8").splitlines()
    return header.split(","), [row.split(",") for row in rows]


LONG = ("--columns", "thing,who,said")


def test_labels_of_a_long_table(long_votes, tmp_path, capsys):
    out = tmp_path / "labels.csv"
    assert main(["aggregate", long_votes, *LONG, "--out", str(out), "--truth", "gold"]) == DONE
    header, rows = read(out)
    _, truth = made_up()
    assert header == ["item", "label", "confidence", "runner_up"]
    assert [row[0] for row in rows] == [f"i{i}" for i in range(60)]
    right = np.mean([row[1] == str(y) for row, y in zip(rows, truth, strict=True)])
    assert right > 0.9
    assert all(0 < float(row[2]) <= 1 and row[1] != row[3] for row in rows)
    printed = " ".join(capsys.readouterr().out.split())
    assert f"{right:.3f}" in printed
    for words in ("majority", "one-coin", "dawid-skene", "Krippendorff's alpha", "skpll audit"):
        assert words in printed
    assert "No accuracy was checked" in printed
    assert "100.0 %" not in printed
    assert "100.0%" not in printed


@pytest.mark.parametrize("method", ["majority", "one-coin", "dawid-skene"])
def test_the_written_labels_are_those_of_the_method(long_votes, tmp_path, method, capsys):
    out = tmp_path / "labels.csv"
    command = ["aggregate", long_votes, *LONG, "--out", str(out), "--method", method, "--json"]
    assert main(command) == DONE
    result = json.loads(capsys.readouterr().out)
    assert result["method"] == method
    assert [rule["rule"] for rule in result["rules"]] == ["majority", "one-coin", "dawid-skene"]
    labels = [row[1] for row in read(out)[1]]
    from skpll.crowd import aggregate

    header, votes = read(tmp_path / "votes.csv")
    item, who, said, _ = zip(*votes, strict=True)
    assert aggregate(item, who, said, method).labels.tolist() == labels


def test_minus_one_is_no_vote_in_a_wide_table(tmp_path, capsys):
    cells, truth = made_up()
    rows = [(f"n{i}", *cells[i], truth[i]) for i in range(60)]
    wide = write(tmp_path / "wide.csv", f"name,{','.join(WHO)},gold", rows)
    out = tmp_path / "labels.csv"
    command = ["aggregate", wide, "--annotators", ",".join(WHO), "--id", "name", "--out", str(out)]
    assert main([*command, "--truth", "gold", "--json"]) == DONE
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    assert result["classes"] == 3
    assert result["votes"] == (cells >= 0).sum()
    assert "'-1', which counts as missing (a usual code)" in captured.err
    assert {row[1] for row in read(out)[1]} == {"0", "1", "2"}
    rules = {rule["rule"]: rule for rule in result["rules"]}
    assert rules["auto"]["low"] < rules["auto"]["accuracy"] <= rules["auto"]["high"]
    assert rules["auto"]["known"] == 60


def test_truth_from_another_file_with_gaps(long_votes, tmp_path, capsys):
    _, truth = made_up()
    rows = [(f"i{i}", f"{truth[i]}.0" if i % 2 else "") for i in range(60)]
    known = write(tmp_path / "truth.csv", "thing,truth", rows)
    out = tmp_path / "labels.csv"
    command = ["aggregate", long_votes, *LONG, "--out", str(out), "--truth", known, "--json"]
    assert main(command) == DONE
    result = json.loads(capsys.readouterr().out)
    assert result["rules"][0]["known"] == 30
    assert result["rules"][-1]["accuracy"] > 0.8


def test_words_that_may_be_gaps_are_classes_unless_named(tmp_path, capsys):
    rows = [
        (i, a, ("none", "cat", "dog")[(i + a * (i % 4 == 0)) % 3])
        for i in range(12)
        for a in (0, 1)
    ]
    votes = write(tmp_path / "v.csv", "item,annotator,label", rows)
    out = tmp_path / "labels.csv"
    assert main(["aggregate", votes, "--out", str(out), "--json"]) == DONE
    captured = capsys.readouterr()
    assert json.loads(captured.out)["classes"] == 3
    assert "--gaps none" in captured.err
    assert main(["aggregate", votes, "--out", str(out), "--json", "--gaps", "none"]) == DONE
    assert json.loads(capsys.readouterr().out)["classes"] == 2


def test_the_labels_on_the_screen_are_nothing_but_the_table(long_votes, capsys):
    assert main(["aggregate", long_votes, *LONG, "--out", "-"]) == DONE
    captured = capsys.readouterr()
    assert captured.out.splitlines()[0] == "item,label,confidence,runner_up"
    assert len(captured.out.splitlines()) == 61


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--columns", "thing,who"], "--columns: 'thing', 'who'; expected three names"),
        (["--columns", "thing,who,sayd"], "no column 'sayd'"),
        ([*LONG, "--truth", "gould"], "'gould' is no column of"),
        ([*LONG, "--method", "best"], "--method"),
        (["--annotators", "who,said", "--id", "thing"], "are both called 'i0'"),
    ],
)
def test_wrong_input_is_one_line(long_votes, tmp_path, options, message, capsys):
    out = tmp_path / "labels.csv"
    assert main(["aggregate", long_votes, *options, "--out", str(out)]) == WRONG_INPUT
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not out.exists()


def test_an_item_without_a_name_is_refused(tmp_path, capsys):
    votes = write(tmp_path / "v.csv", "item,annotator,label", [("a", 1, "x"), ("", 1, "y")])
    assert main(["aggregate", votes, "--out", str(tmp_path / "o.csv")]) == WRONG_INPUT
    assert "row 2 has a label, but nothing in column 'item'" in capsys.readouterr().err
