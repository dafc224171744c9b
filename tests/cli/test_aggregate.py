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
    assert "No accuracy was checked" not in printed
    assert main(["aggregate", long_votes, *LONG, "--out", str(out)]) == DONE
    assert "No accuracy was checked" in " ".join(capsys.readouterr().out.split())
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


def test_columns_of_counts_and_of_probabilities(tmp_path, capsys):
    rows = [("a", 3, 0, 1), ("b", 1, 0, 2), ("c", "", 4, 0)]
    table = write(tmp_path / "counts.csv", "id,hate_speech,offensive,neither", rows)
    names = "hate_speech,offensive,neither"
    out = tmp_path / "labels.csv"
    words = ["aggregate", table, "--id", "id", "--out", str(out)]
    assert main([*words, "--counts", names]) == DONE
    assert read(out)[1] == [
        ["a", "hate_speech", "0.75", "neither"],
        ["b", "neither", "0.6667", "hate_speech"],
        ["c", "offensive", "1.0", ""],
    ]
    assert "11 votes on 3 items, 3 classes; 1 item unanimous." in capsys.readouterr().out
    assert main([*words, "--probabilities", names]) == DONE
    captured = capsys.readouterr()
    assert [row[:2] for row in read(out)[1]] == [
        ["a", "hate_speech"], ["b", "neither"], ["c", "offensive"],
    ]  # fmt: skip
    assert "the sum of row 1 is 4, not 1" in captured.err
    assert "its most probable class" in captured.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--counts", "x,y"], "--counts: row 2 has 0.5 in column 'y'"),
        (["--counts", "x"], "--counts: 'x'; name the column of each class"),
        (["--counts", "x,z"], "--counts: row 1 has no number in column 'z'"),
        (["--probabilities", "x,w"], "--probabilities: row 2 has a negative number"),
        (["--counts", "x,y", "--probabilities", "x,y"], "give one of them"),
    ],
)
def test_numbers_that_are_no_votes(tmp_path, options, message, capsys):
    table = write(tmp_path / "t.csv", "x,y,z,w", [(1, 1, "many", 1), (1, 0.5, 2, -1)])
    out = str(tmp_path / "labels.csv")
    assert main(["aggregate", table, *options, "--out", out]) == WRONG_INPUT
    assert message in capsys.readouterr().err


def test_codes_given_are_no_votes(tmp_path, capsys):
    rows = [("1", "2", "9"), ("2", "2", "1"), ("1", "9", "1")]
    table = write(tmp_path / "wide.csv", "ann,bob,cy", rows)
    words = ["aggregate", table, "--annotators", "ann,bob,cy", "--out", str(tmp_path / "o.csv")]
    assert main([*words, "--gaps=9", "--json"]) == DONE
    captured = capsys.readouterr()
    assert json.loads(captured.out)["classes"] == 2
    assert "taken as empty, not as labels: '9' (2 times)" in captured.err


def test_a_truth_that_was_made_from_the_votes_is_noted(tmp_path, capsys):
    cells, _ = made_up()
    cells[:, 0] = -1
    counts = [(cells == k).sum(axis=1) for k in range(3)]
    rows = [
        (*row, np.argmax([count[i] for count in counts]))
        for i, row in enumerate(cells[:, 1:])
        if np.sum([count[i] == np.max(counts, axis=0)[i] for count in counts]) == 1
    ]
    table = write(tmp_path / "wide.csv", "bob,cy,dan,eve,gold", rows)
    words = ["--annotators", "bob,cy,dan,eve", "--truth", "gold", "--out", str(tmp_path / "o.csv")]
    assert main(["aggregate", table, *words]) == DONE
    assert "the truth is the majority of the votes" in capsys.readouterr().err


def test_annotators_who_copy_are_named(tmp_path, capsys):
    rng = np.random.default_rng(1)
    truth = rng.integers(3, size=(120, 1))
    cells = np.where(rng.random((120, 6)) < 0.7, truth, rng.integers(3, size=(120, 6)))
    cells[:, 5] = cells[:, 4]
    table = write(tmp_path / "wide.csv", "a,b,c,d,e,f", cells.tolist())
    words = ["aggregate", table, "--annotators", "a,b,c,d,e,f", "--out", str(tmp_path / "o.csv")]
    assert main(words) == DONE
    assert "did they copy?" in " ".join(capsys.readouterr().out.split())
    assert main([*words, "--json"]) == DONE
    (pair,) = json.loads(capsys.readouterr().out)["alike"]
    assert (pair["annotator"], pair["other"], pair["agreement"]) == ("e", "f", 1.0)
