"""The commands for tables, called as a user calls them."""

import csv
import json
import os
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skpll
from skpll.cli import DONE, FAILED, INTERRUPTED, WRONG_INPUT
from skpll.datasets import load_dataset, make_partial_labels

X, _, Y = load_dataset("iris", return_X_S_y=True)
S = make_partial_labels(Y, p=0.8, r=1, random_state=0)
HEADER = ["flower", "w", "x", "y", "z", "names"]


def write(path, header, rows):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return str(path)


def read(path):
    with Path(path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def table(tmp_path):
    rows = ([f"f{i}", *X[i], names] for i, names in enumerate(S.to_strings()))
    return write(tmp_path / "iris.csv", HEADER, rows)


def test_disambiguate(run, table):
    status, out, err = run(
        "disambiguate", table, "--candidates", "names", "--id", "flower", "--out", "out.csv"
    )
    assert (status, err) == (DONE, "")
    assert "150 rows, 3 classes" in out
    assert "Written: out.csv" in out
    before, after = read(table), read("out.csv")
    assert [{name: row[name] for name in HEADER} for row in after] == before
    assert list(after[0]) == [*HEADER, "label", "confidence", "runner_up", "unanimous"]
    assert np.mean([row["label"] == truth for row, truth in zip(after, Y, strict=True)]) > 0.9
    for row in after:
        given = row["names"].split("|")
        assert {row["label"], row["runner_up"]} - {""} == set(given)
        assert row["unanimous"] == str(len(given) == 1).lower()


def test_json_quiet_and_parquet(run, table):
    words = ["disambiguate", table, "--candidates", "names", "--id", "flower", "--method", "plknn"]
    words += ["--set", "n_neighbors=5", "--set", "weights=uniform", "--exclude", "w,x"]
    status, out, _ = run(*words, "--out", "out.parquet", "--json")
    result = json.loads(out)
    assert status == DONE
    assert result["method"] == "plknn"
    assert result["parameters"] == {"n_neighbors": 5, "weights": "uniform"}
    assert result["features"] == {"y": "number", "z": "number"}
    assert result["columns_added"] == ["label", "confidence", "runner_up", "unanimous"]
    assert pq.read_table("out.parquet")["label"].to_pylist()[0] == "setosa"
    assert run(*words, "--out", "quiet.parquet", "--quiet") == (DONE, "", "")
    assert pq.read_table("quiet.parquet").equals(pq.read_table("out.parquet"))


def test_notes_are_lines_on_standard_error(run, table):
    status, _, err = run("disambiguate", table, "--candidates", "names", "--out", "out.csv")
    assert status == DONE
    assert err.startswith("skpll: note: left out of the features: 'flower'")
    assert err.count("\n") == 1


def test_auto_says_what_it_chose_and_why(run, table):
    words = ["disambiguate", table, "--candidates", "names", "--id", "flower", "--out", "out.csv"]
    status, out, _ = run(*words, "--method", "auto")
    assert status == DONE
    assert "Methods compared on held-out rows" in out
    assert "chose " in out
    choice = json.loads(run(*words, "--method", "auto", "--json")[1])["choice"]
    assert [t["method"] for t in choice["trials"]] == ["plloo", "crossfitclassifier", "sppll"]
    assert max(t["covering_rate"] for t in choice["trials"]) > 0.9


def test_fit_and_predict(run, table, tmp_path):
    words = ["--candidates", "names", "--id", "flower", "--method", "sppll", "--set", "C=5"]
    assert run("fit", table, *words, "--out", "m.skops")[0] == DONE
    new = write(tmp_path / "new.csv", ["z", "extra", "y", "x", "w"], np.c_[X[:, 3], X[:, 3::-1]])
    status, out, err = run("predict", "m.skops", new, "--out", "labelled.csv", "--probabilities")
    assert (status, err) == (DONE, "")
    assert "150 rows labelled with sppll" in out
    rows = read("labelled.csv")
    assert np.mean([row["label"] == truth for row, truth in zip(rows, Y, strict=True)]) > 0.9
    shares = [[float(row[f"probability_{name}"]) for name in S.classes] for row in rows]
    assert np.allclose(np.sum(shares, axis=1), 1, atol=1e-3)
    assert np.allclose(np.max(shares, axis=1), [float(row["confidence"]) for row in rows])
    assert json.loads(run("predict", "m.skops", new, "--out", "b.csv", "--json")[1])["rows"] == 150
    assert list(read("b.csv")[0])[-2:] == ["label", "confidence"]


def test_predicting_has_no_seed(run, table):
    assert run("fit", table, "--candidates", "names", "--method", "plknn", "--out", "m.skops")
    status, _, err = run("predict", "m.skops", table, "--out", "out.csv", "--seed", "1")
    assert status == WRONG_INPUT
    assert "No such option: --seed" in err


def test_votes(run, table, tmp_path):
    votes = [
        [f"f{i}", who, label]
        for i, labels in enumerate(S.to_lists())
        for who, label in zip("uv", labels, strict=False)
    ]
    votes = write(tmp_path / "votes.csv", ["photo", "who", "class"], votes[::-1])
    words = ["--votes", votes, "--id", "flower", "--vote-columns", "photo,who,class"]
    status, out, _ = run("disambiguate", table, *words, "--exclude", "names", "--out", "v.csv")
    assert status == DONE
    assert "Annotators" in out
    run("disambiguate", table, "--candidates", "names", "--id", "flower", "--out", "c.csv", "-q")
    pairs = zip(read("v.csv"), read("c.csv"), strict=True)  # ways of weighing, nearly the same
    assert np.mean([by_votes["label"] == plain["label"] for by_votes, plain in pairs]) > 0.97
    assert run("fit", table, *words, "--exclude", "names", "--out", "v.skops")[0] == DONE


def test_decisions_by_row(run, table, tmp_path):
    decisions = write(tmp_path / "d.csv", ["row", "id", "label"], [[1, "", "virginica"]])
    words = [table, "--candidates", "names", "--exclude", "flower", "--decisions", decisions]
    assert run("disambiguate", *words, "--out", "out.csv")[0] == DONE
    first = read("out.csv")[0]
    assert (first["label"], first["confidence"], first["unanimous"]) == (
        "virginica",
        "1.0",
        "false",
    )
    assert first["decided"] == "true"
    assert first["names"] == S.to_strings()[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--candidates", "nmaes"], "did you mean 'names'"),
        ([], "--annotators, --counts, --probabilities: give exactly one"),
        (["--candidates", "names", "--method", "sppl"], "did you mean 'sppll'"),
        (["--candidates", "names", "--set", "C"], "not of the form name=value"),
        (["--candidates", "names", "--set", "power=big"], "'power' parameter"),
        (["--candidates", "names", "--set", "D=1"], "plloo has no 'D'"),
        (["--candidates", "names", "--sep", ""], "--sep: the separator is empty"),
        (["--candidates", "names", "--features", "w,q"], "no column 'q'"),
        (["--candidates", "names", "--id", "who"], "--id: the table has no column 'who'"),
        (["--candidates", "names", "--exclude", "v"], "--exclude: the table has no column 'v'"),
        (["--votes", "iris.csv"], "--id: name the column"),
        (["--candidates", "names", "--delimiter", "::"], "--delimiter: expected one character"),
        (["--candidates", "names", "--features", "w,q,r"], "no columns 'q', 'r'; it has"),
        (["--candidates", "names", "--report", "out.csv"], "in use already"),
        (["--candidates", "names", "--report", "no/page.html"], "there is no folder"),
        (["--candidates", "names", "--decisions", "no.csv"], "does not exist"),
    ],
)
@pytest.mark.parametrize("command", ["disambiguate", "fit"])
def test_wrong_input_is_one_line_status_2_and_no_output(
    run, table, tmp_path, command, words, message
):
    if command == "fit" and "--report" in words:
        message = "No such option"
    before = set(tmp_path.iterdir())
    status, out, err = run(command, table, "--out", "out.csv", *words)
    assert (status, out) == (WRONG_INPUT, "")
    assert message in err
    assert err.count("\n") == 1
    assert set(tmp_path.iterdir()) == before


def test_an_empty_cell_says_which_option_allows_it(run, tmp_path):
    rows = [[x, "" if x == 3 else "a|b"] for x in range(9)]
    path = write(tmp_path / "gaps.csv", ["x", "names"], rows)
    words = ("disambiguate", path, "--candidates", "names", "--features", "x", "--out", "out.csv")
    status, _, err = run(*words)
    assert status == WRONG_INPUT
    assert "row 4 has no candidate" in err
    assert "allow any label there (--empty any)" in err


def test_the_table_is_never_overwritten(run, table):
    content = Path(table).read_bytes()
    status, _, err = run("disambiguate", table, "--candidates", "names", "--out", table)
    assert status == WRONG_INPUT
    assert "choose another name" in err
    assert Path(table).read_bytes() == content


@pytest.mark.parametrize("name", ["out.xls", "out", "out.xml"])
def test_an_unknown_suffix_is_refused_before_the_work(run, table, tmp_path, name):
    status, out, err = run("disambiguate", table, "--candidates", "names", "--out", name)
    assert (status, out) == (WRONG_INPUT, "")
    assert "no format of tables has the suffix" in err
    assert not (tmp_path / name).exists()


def test_a_report_that_fails_leaves_the_table(run, table, tmp_path, monkeypatch):
    def fails(*arguments, **options):
        raise OSError("no space left")

    monkeypatch.setattr("skpll.tables.review.write_review", fails)
    words = [table, "--candidates", "names", "--id", "flower", "--out", "out.csv"]
    status, _, err = run("disambiguate", *words, "--report", "page.html")
    assert status == 1
    assert "no space left" in err
    assert len(read("out.csv")) == 150
    assert not (tmp_path / "page.html").exists()


def test_from_standard_input_to_standard_output(table):
    words = ["-m", "skpll", "disambiguate", "-", "--candidates", "names", "--id", "flower"]
    with Path(table).open("rb") as source:
        done = subprocess.run(
            [sys.executable, *words, "--out", "-"], stdin=source, capture_output=True, check=True
        )
    rows = list(csv.DictReader(done.stdout.decode().splitlines()))
    assert len(rows) == 150
    assert np.mean([row["label"] == truth for row, truth in zip(rows, Y, strict=True)]) > 0.9
    assert done.stderr == b""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_read_once(run, table, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(Path(table).read_bytes()))
    writer.start()
    status, out, _ = run("inspect", pipe, "--candidates", "names", "--json")
    writer.join()
    assert status == DONE
    assert json.loads(out)["rows"] == 150


def test_inspect_says_what_is_what(run, table):
    status, out, _ = run("inspect", table, "--candidates", "names", "--json")
    found = json.loads(out)
    assert status == DONE
    assert {column["name"]: column["used"] for column in found["columns"]} == {
        "flower": False,
        **dict.fromkeys("wxyz", True),
    }
    assert "most cells differ" in found["columns"][0]["why"]
    assert found["labels"]["sizes"] == {"1": 30, "2": 120}
    assert sum(found["labels"]["expected_rows"].values()) == pytest.approx(150, abs=0.5)
    assert 1 <= found["labels"]["imbalance"] < 2
    assert 1 < found["seconds"] < 30
    status, out, _ = run("inspect", table)
    assert "Candidate labels seem to be in: names" in out
    opening = run("inspect", table, "--candidates", "names")[1].splitlines()[-3:]
    assert opening[0] == "150 rows; features: 4 number columns."
    words = ["--candidates", "names", "--out", "o.csv", "--method", "plknn"]
    assert run("disambiguate", table, *words)[1].splitlines()[:3] == opening


def test_inspect_finds_candidates_that_are_lists(run, tmp_path):
    table = pa.table({"x": [1.0, 2.0, 3.0], "names": [["ash", "oak"], ["oak"], ["ash"]]})
    pq.write_table(table, tmp_path / "t.parquet")
    status, out, _ = run("inspect", tmp_path / "t.parquet")
    assert status == DONE
    assert "Candidate labels seem to be in: names" in " ".join(out.split())


def test_nothing_is_asked_where_everything_is_decided(run, table, tmp_path):
    rows = [(f"f{i}", names.split("|")[0]) for i, names in enumerate(S.to_strings())]
    write(tmp_path / "decided.csv", ["id", "label"], rows)
    words = ["--candidates", "names", "--id", "flower", "--decisions", "decided.csv"]
    status, _, err = run(
        "disambiguate", table, *words, "--ask", "4", "--report", "r.html", "--out", "o.parquet"
    )
    assert status == DONE, err
    assert Path("r.html").exists()
    assert pq.read_table("o.parquet")["label"].to_pylist() == [label for _, label in rows]


def test_inspect_says_what_can_not_be_learned(run, tmp_path):
    path = tmp_path / "t.csv"
    cells = ["cow|grass", "cow|grass|sky", "sky", "sky|tree", "tree"] * 8
    path.write_text("x,names\n" + "".join(f"{i % 7},{cell}\n" for i, cell in enumerate(cells)))
    status, out, _ = run("inspect", path, "--candidates", "names", "--json")
    assert status == DONE
    (obstacle,) = json.loads(out)["obstacles"]
    assert obstacle.startswith("'cow' and 'grass' never come apart: the 16 rows")
    shown = run("inspect", path, "--candidates", "names")[1]
    assert "Can't be learned: 'cow' and 'grass'" in " ".join(shown.split())


@pytest.mark.parametrize("method", ["sppll", "plloo"])
def test_a_linear_model_does_not_hold_its_training_rows(run, tmp_path, method):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(600, 3)), random.integers(0, 2, 600)
    rows = ([*row, "ab"[label]] for row, label in zip(X + y[:, None], y, strict=True))
    path = write(tmp_path / "long.csv", ["x", "y", "z", "names"], rows)
    words = ["fit", path, "--candidates", "names", "--out", "m.skops", "--method", method]
    words += ["--set", "kernel=linear"]
    assert run(*words)[0] == DONE
    with zipfile.ZipFile("m.skops") as archive:
        arrays = [
            entry.file_size for entry in archive.infolist() if entry.filename != "schema.json"
        ]
    assert max(arrays) < 600 * X.itemsize
    assert run("predict", "m.skops", path, "--out", "out.csv")[0] == DONE


def test_a_model_that_is_none_is_refused(run, table, tmp_path):
    status, _, err = run("predict", table, table, "--out", "out.csv")
    assert status == WRONG_INPUT
    assert "not a complete model" in err
    assert not (tmp_path / "out.csv").exists()


def test_an_interrupt_leaves_nothing_behind(run, table, tmp_path, interrupt_after):
    interrupt_after(0.5)
    before = set(tmp_path.iterdir())
    words = [table, "--candidates", "names", "--id", "flower", "--out", "out.csv"]
    words += ["--method", "sppll", "--json"]
    assert run("disambiguate", *words) == (INTERRUPTED, "", "skpll: interrupted\n")
    assert set(tmp_path.iterdir()) == before


def test_an_interrupt_while_writing_leaves_the_old_file(run, table, tmp_path, monkeypatch):
    def interrupted(self, path, *rest):
        path.write_text("half")
        raise KeyboardInterrupt

    (tmp_path / "out.csv").write_text("old")
    monkeypatch.setattr("skpll.tables.formats.DelimitedText.write", interrupted)
    words = [table, "--candidates", "names", "--id", "flower", "--out", "out.csv"]
    assert run("disambiguate", *words, "--method", "plknn")[0] == INTERRUPTED
    assert (tmp_path / "out.csv").read_text() == "old"
    assert {path.name for path in tmp_path.iterdir()} == {"iris.csv", "out.csv"}


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_terminal_says_when_kernels_are_compiled_and_that_it_is_once(terminal, table, tmp_path):
    program = "import sys; from skpll.cli import main; sys.exit(main(sys.argv[1:]))"
    words = ["disambiguate", table, "--candidates", "names", "--id", "flower", "--method", "ipal"]
    words += ["--out", tmp_path / "out.csv"]
    cache = str(tmp_path / "kernels")
    first, second = (terminal(program, *words, NUMBA_CACHE_DIR=cache) for _ in range(2))
    assert (first[0], second[0]) == (DONE, DONE)
    assert "Compiling, once" in first[1]
    assert "Compiling" not in second[1]


def test_methods_say_when_to_use_them(run):
    known = json.loads(run("methods", "--json")[1])
    assert {entry["name"] for entry in known} == set(skpll.all_methods())
    assert all(entry["use"] for entry in known)
    assert "when to use it" in run("methods")[1]


@pytest.mark.parametrize("command", ["inspect", "disambiguate", "fit", "predict", "methods"])
def test_help_has_an_example(run, command):
    status, out, _ = run(command, "--help")
    assert status == DONE
    assert f"Example: skpll {command}" in out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("skpll disambiguate t.csv --method pl", {"plknn", "plleaf", "plsvm"}),
        ("skpll data show l", {"lost", "letter"}),
        ("skpll reproduce table", {"table3", "table4"}),
        ("skpll run fig", {"figure2", "figure6"}),
    ],
)
def test_shell_completion_knows_names(words, expected):
    done = subprocess.run(
        [sys.executable, "-c", "from skpll.cli import main; main()"],
        env={
            "_SKPLL_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert expected <= set(done.stdout.split())


def test_without_its_packages_the_command_says_what_to_install(run, table, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    status, _, err = run("disambiguate", table, "--candidates", "names", "--out", "out.csv")
    assert status == 1
    assert err == "skpll: pyarrow is needed for tables: pip install 'skpll[tables]'\n"


RISKY = "[/red]\x1b[31m\x9b2J\u202e"


def test_labels_and_names_are_shown_as_text(run, tmp_path):
    """No label is markup, or steers the terminal."""
    rows = [[i, i % 7, f"{RISKY}|b" if i % 2 else "b"] for i in range(40)]
    path = write(tmp_path / "risky.csv", ["x", f"[bold]{RISKY}", "names"], rows)
    for command in ("inspect", "disambiguate"):
        out_file = ["--out", "out.csv"] if command == "disambiguate" else []
        status, out, err = run(command, path, "--candidates", "names", *out_file)
        assert status == DONE
        assert not set("\x1b\x9b\u202e") & set(out + err)
    assert read("out.csv")[1]["names"] == f"{RISKY}|b"
    out = run("inspect", path, "--candidates", "names")[1].replace("\n", "")
    assert "[/red]\\u001b[31m" in out
    assert "[bold]" in out
    found = run("inspect", path, "--candidates", "names", "--json")[1]
    assert not set("\x1b\x9b\u202e") & set(found)
    assert RISKY in json.loads(found)["labels"]["expected_rows"]


def test_formulas_are_escaped_in_questions_too(run, tmp_path):
    rows = [[i, f"=cmd{i % 3}", f"{'a|b' if i % 2 else '=a|b'}"] for i in range(30)]
    path = write(tmp_path / "formulas.csv", ["x", "note", "names"], rows)
    words = ["disambiguate", path, "--candidates", "names", "--out", "out.csv", "--ask", "8"]
    for escaped in (False, True):
        assert run(*words, *["--escape-formulas"] * escaped)[0] == DONE
        for file in ("out.csv", "out-questions.csv"):
            cells = [cell for row in read(file) for cell in row.values()]
            assert any(cell.startswith("=") for cell in cells) is not escaped
            assert any(cell.startswith("'=") for cell in cells) is escaped


def test_permissions_of_a_replaced_file_stay(run, table):
    for name in ("out.csv", "out.parquet", "m.skops"):
        Path(name).write_text("old")
        Path(name).chmod(0o600)
    words = [table, "--candidates", "names", "--method", "plknn"]
    assert run("disambiguate", *words, "--out", "out.csv")[0] == DONE
    assert run("disambiguate", *words, "--out", "out.parquet")[0] == DONE
    assert run("fit", *words, "--out", "m.skops")[0] == DONE
    for name in ("out.csv", "out.parquet", "m.skops"):
        assert Path(name).stat().st_mode & 0o777 == 0o600
        assert Path(name).read_bytes() != b"old"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_a_full_disk_names_the_file_and_what_was_written(run, table):
    words = ["disambiguate", table, "--candidates", "names", "--method", "plknn"]
    status, _, err = run(*words, "--out", "out.csv", "--report", "/dev/full")
    assert status == FAILED
    assert "/dev/full: can't be written (No space left on device)" in err
    assert err.endswith("Written before: out.csv.\n")
    status, _, err = run(*words, "--out", "/dev/full")
    assert status == FAILED
    assert err.endswith("Written before: nothing.\n")


def test_a_full_disk_leaves_the_old_file(run, table, monkeypatch):
    def fails(*_):
        raise OSError(28, "No space left on device")

    Path("out.csv").write_text("old")
    monkeypatch.setattr("skpll.tables.formats.DelimitedText.write", fails)
    words = ["disambiguate", table, "--candidates", "names", "--method", "plknn"]
    status, _, err = run(*words, "--out", "out.csv")
    assert status == FAILED
    assert "out.csv: can't be written (No space left on device); nothing of it was written" in err
    assert Path("out.csv").read_text() == "old"
    assert [path.name for path in Path().iterdir() if path.name.startswith(".")] == []


def test_truth_scores_the_labels_and_is_no_feature(run, tmp_path):
    rows = [[*X[i], names, Y[i] if i % 2 else ""] for i, names in enumerate(S.to_strings())]
    write(tmp_path / "t.csv", ["w", "x", "y", "z", "names", "gold"], rows)
    words = ["t.csv", "--candidates", "names", "--truth", "gold", "--out", "o.csv"]
    status, out, _ = run("disambiguate", *words, "--json")
    assert status == DONE
    result = json.loads(out)
    assert "gold" not in result["features"]
    known = [(row["label"], row["gold"]) for row in read("o.csv") if row["gold"]]
    share = sum(label == gold for label, gold in known) / len(known)
    truth = result["truth"]
    assert truth["known"] == len(known)
    assert truth["accuracy"] == pytest.approx(share)
    assert truth["low"] < share <= truth["high"]
    status, out, _ = run("disambiguate", *words)
    assert f"Accuracy on {len(known)} rows with a known label" in out
    assert "The model believes that" in out
    assert "xpected accuracy" not in out
    assert "100.0" not in out
    words = ["t.csv", "--candidates", "names", "--exclude", "gold", "--out", "m.skops", "-q"]
    assert run("fit", *words)[0] == DONE
    status, out, _ = run("predict", "m.skops", "t.csv", "--truth", "gold", "--out", "p.csv")
    assert status == DONE
    assert f"Accuracy on {len(known)} rows with a known label" in out
