"""`skpll audit`: a random sample out, decisions in."""

import csv
import json

import numpy as np
import pytest

from skpll.cli import DONE, WRONG_INPUT, main


@pytest.fixture
def labelled(tmp_path):
    """A table of 400 labels, and the truth by row; the less confident the more often wrong."""
    rng = np.random.default_rng(6)
    confidence = rng.beta(6, 1, 400)
    truth = rng.choice(["cat", "dog", "eel"], 400)
    wrong = rng.random(400) > confidence - 0.1
    label = np.where(wrong, np.where(truth == "cat", "dog", "cat"), truth)
    path = tmp_path / "labels.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item", "label", "confidence"])
        writer.writerows(zip(range(400), label, confidence, strict=True))
    return path, truth


def drawn(labelled, tmp_path, rows=100):
    path, truth = labelled
    check = tmp_path / "check.csv"
    assert main(["audit", str(path), "--rows", str(rows), "--out", str(check)]) == DONE
    with check.open(newline="") as file:
        return check, list(csv.DictReader(file))


def decide(check, rows, truth, every=1):
    for place, row in enumerate(rows):
        row["label"] = truth[int(row["row"]) - 1] if place % every == 0 else ""
    with check.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def test_the_sample_is_stratified_and_stands_for_all_rows(labelled, tmp_path, capsys):
    check, rows = drawn(labelled, tmp_path)
    assert len(rows) == 100
    assert len({row["row"] for row in rows}) == 100
    assert sum(float(row["weight"]) for row in rows) == pytest.approx(400)
    assert all(row["label"] == "" and row["guess"] for row in rows)
    means = [
        np.mean([float(row["confidence"]) for row in rows if row["stratum"] == str(h)])
        for h in range(5)
    ]
    assert means == sorted(means)
    assert "Fill in the column label" in capsys.readouterr().out


def test_decisions_give_accuracy_interval_and_plan(labelled, tmp_path, capsys):
    path, truth = labelled
    check, rows = drawn(labelled, tmp_path)
    decide(check, rows, truth)
    capsys.readouterr()
    out = tmp_path / "checked.csv"
    command = ["audit", str(path), "--decisions", str(check), "--target", "0.9", "--out", str(out)]
    assert main([*command, "--json"]) == DONE
    result = json.loads(capsys.readouterr().out)
    with path.open(newline="") as file:
        labels = [row["label"] for row in csv.DictReader(file)]
    real = np.mean(np.array(labels) == truth)
    assert result["low"] <= real <= result["high"]
    assert result["low"] < result["accuracy"] < result["high"]
    assert 0 < result["review"]["rows"] < 400
    assert result["review"]["accuracy"] >= 0.9
    assert result["review_careful"]["rows"] > result["review"]["rows"]
    with out.open(newline="") as file:
        checked = [float(row["checked_confidence"]) for row in csv.DictReader(file)]
    assert np.mean(checked) == pytest.approx(result["accuracy"], abs=0.02)
    assert main(command) == DONE
    printed = capsys.readouterr().out
    assert "95 % interval" in printed
    assert "with a confidence below" in printed


def test_a_second_audit_names_the_column_it_adds(labelled, tmp_path, capsys):
    path, truth = labelled
    check, rows = drawn(labelled, tmp_path)
    decide(check, rows, truth)
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    words = ["--decisions", str(check), "--target", "1", "--out"]
    assert main(["audit", str(path), *words, str(first)]) == DONE
    capsys.readouterr()
    assert main(["audit", str(first), *words, str(second)]) == DONE
    captured = capsys.readouterr()
    assert "(all)" in captured.out
    assert f"Written: {second}, with the column skpll_checked_confidence." in captured.out
    assert "so the new column is called skpll_checked_confidence." in captured.err
    assert main(["audit", str(first), *words, str(second), "--json"]) == DONE

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    found = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert found["review"]["below"] is None


def test_a_column_that_is_shown_twice(labelled, tmp_path, capsys):
    page = tmp_path / "check.html"
    words = ["--rows", "20", "--out", str(page), "--show", "item,item"]
    assert main(["audit", str(labelled[0]), *words]) == DONE
    assert "</html>" in page.read_text(encoding="utf-8")


def test_rows_that_were_left_out_are_said(labelled, tmp_path, capsys):
    path, truth = labelled
    check, rows = drawn(labelled, tmp_path)
    decide(check, rows, truth, every=2)
    assert main(["audit", str(path), "--decisions", str(check), "--json"]) == DONE
    captured = capsys.readouterr()
    assert "50 of 100 drawn rows are not decided" in captured.err
    assert '"decided": 50' in captured.out


def test_all_right_is_never_called_certain(tmp_path, capsys):
    path = tmp_path / "labels.csv"
    path.write_text("label,confidence\n" + "x,1.0\n" * 300)
    check, rows = drawn((path, None), tmp_path, 50)
    decide(check, rows, ["x"] * 300)
    capsys.readouterr()
    assert main(["audit", str(path), "--decisions", str(check)]) == DONE
    printed = capsys.readouterr().out
    assert "100.0 %" not in printed
    assert "over 99.9 %, 95 % interval 94." in printed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: [r.pop("stratum") for r in rows], "Only rows drawn by skpll audit"),
        (lambda rows: [r.update(label="") for r in rows], "the column 'label' is empty"),
        (lambda rows: rows[3].update(row="4000"), "row 4 is about no row of the table"),
        (lambda rows: rows[3].update(row=rows[4]["row"]), "is there twice"),
        (lambda rows: rows[3].update(guess="cow"), "row 4 has another guess"),
        (lambda rows: rows.pop(), "stand for 396 rows, but the table has 400"),
    ],
)
def test_decisions_that_are_no_random_sample_are_refused(
    labelled, tmp_path, change, message, capsys
):
    path, truth = labelled
    check, rows = drawn(labelled, tmp_path)
    decide(check, rows, truth)
    change(rows)
    with check.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    assert main(["audit", str(path), "--decisions", str(check)]) == WRONG_INPUT
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give either --rows, to draw rows, or --decisions"),
        (["--rows", "5"], "--rows needs --out"),
        (["--rows", "5", "--out", "c.csv", "--confidence", "sure"], "no column 'sure'"),
        (["--rows", "5", "--out", "c.csv", "--confidence", "label"], "no number between 0 and 1"),
    ],
)
def test_wrong_options_are_one_line(labelled, tmp_path, monkeypatch, options, message, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["audit", str(labelled[0]), *options]) == WRONG_INPUT
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
