"""The command line, called as a user calls it: words in, lines and an exit status out."""

import json
import re
import subprocess
import sys

import pytest

import skpll
from skpll import cli
from skpll.cli import DONE, FAILED, INTERRUPTED, WRONG_INPUT, main
from skpll.cli.exits import wrapped
from skpll.cli.output import print_table
from skpll.datasets import dataset_info, list_datasets


@pytest.fixture
def run(capsys):
    def call(*words):
        status = main(words)
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return call


@pytest.fixture
def no_data(monkeypatch, tmp_path):
    monkeypatch.delenv("SKPLL_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))


def test_version(run):
    assert run("--version") == (DONE, f"skpll {skpll.__version__}\n", "")


@pytest.mark.parametrize("words", [["--help"], ["demo", "--help"], ["data", "fetch", "-h"]])
def test_help_has_an_example(run, words):
    status, out, _ = run(*words)
    assert status == DONE
    assert "Usage" in out
    assert len(words) == 1 or "Example: skpll" in out


@pytest.mark.parametrize("words", [[], ["data"]])
def test_bare_groups_of_commands_print_help(run, words):
    status, out, err = run(*words)
    assert (status, err) == (DONE, "")
    assert f"Usage: {' '.join(['skpll', *words])} [OPTIONS] COMMAND" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["dmeo"], "No such command 'dmeo'"),
        (["data", "list", "--colour"], "No such option: --colour"),
        (["data", "show"], "Missing argument"),
        (["data", "show", "losst"], "Did you mean 'lost'"),
        (["demo", "--share", "much"], "'--share'"),
        (["demo", "--share", "2"], "'--share'"),
        (["demo", "--false-labels", "10"], "'--false-labels'"),
    ],
)
def test_wrong_input_is_one_line_and_status_2(run, words, message):
    status, out, err = run(*words)
    assert status == WRONG_INPUT
    assert out == ""
    assert err.startswith("skpll: ")
    assert err.count("\n") == 1
    assert message in err


def test_data_list(run, no_data):
    status, out, _ = run("data", "list", "--json")
    assert status == DONE
    listed = json.loads(out)
    assert [entry["name"] for entry in listed] == list_datasets()
    here = {entry["name"] for entry in listed if entry["here"] == "yes"}
    assert here == {"digits", "wine", "iris", "breast_cancer"}
    status, out, _ = run("data", "list")
    assert "soccer_player" in out
    assert "17472" in out


@pytest.mark.parametrize("width", [50, 60, 80, 200])
def test_tables_break_no_word(run, no_data, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    status, out, _ = run("data", "list")
    assert status == DONE
    assert max(map(len, out.splitlines())) <= width
    words = set(re.split(r"[\s;:]+", out))
    for name in list_datasets():
        described = dataset_info(name)
        assert {name, str(described.n_samples), *described.task.split()} <= words


def test_wide_rows_become_paragraphs(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "30")
    head = ["item", "what_was_said_about_it", "[red]number"]
    print_table("A long title of this table of items", head, [["an_item", "so and so", 0.25]])
    assert capsys.readouterr().out.splitlines() == [
        "A long title of this table of ",
        "items",
        "an_item",
        "  what_was_said_about_it: so",
        "  and so; [red]number: 0.250",
    ]


@pytest.mark.parametrize("width", [20, 80])
def test_tables_without_rows_have_their_heads(monkeypatch, capsys, width):
    monkeypatch.setenv("COLUMNS", str(width))
    print_table("Nothing", ["a_name", "another_name"], [])
    assert "Nothing" in capsys.readouterr().out


def test_data_show(run, no_data):
    status, out, _ = run("data", "show", "LOST")
    assert status == DONE
    assert "1122" in out
    assert "not here; get it with skpll data fetch lost" in out
    assert "comes with scikit-learn" in run("data", "show", "iris")[1]


def test_data_fetch_without_a_network_says_where_to_put_the_file(
    run, no_data, tmp_path, monkeypatch
):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    status, _, err = run("data", "fetch", "lost", "--data-home", str(tmp_path))
    assert status == FAILED
    assert "lost.mat" in err
    assert str(tmp_path) in err
    assert err.count("\n") == 1


def test_data_fetch_of_embedded_sets(run):
    status, out, _ = run("data", "fetch", "iris", "wine")
    assert status == DONE
    assert out.splitlines() == ["iris: comes with scikit-learn", "wine: comes with scikit-learn"]


def test_methods(run):
    status, out, _ = run("methods", "--json")
    known = {entry["name"]: entry for entry in json.loads(out)}
    assert status == DONE
    assert set(known) == set(skpll.all_methods())
    assert all(entry["summary"] and entry["paper"] for entry in known.values())
    assert "Hüllermeier" in known["plknn"]["paper"]
    assert "SP-PLL" in run("methods")[1]


def test_demo(run, monkeypatch):
    few = {name: skpll.all_methods()[name] for name in ("plknn", "m3pl")}
    monkeypatch.setattr("skpll.all_methods", few.copy)  # first, for it may be read from the next
    monkeypatch.setattr("skpll.registry.all_methods", few.copy)
    status, out, _ = run("demo", "--json", "--seed", "1")
    found = json.loads(out)
    assert status == DONE
    assert [result["method"] for result in found["results"]] == ["PLKNN", "M3PL"]
    for result in found["results"]:
        assert 0.85 < result["test_accuracy"] <= result["supervised_accuracy"] + 0.05 <= 1.05
        assert result["training_labels_found"] > 0.9
    del few["m3pl"]
    (again,) = json.loads(run("demo", "--json", "--seed", "1")[1])["results"]
    assert again["test_accuracy"] == found["results"][0]["test_accuracy"]
    status, out, _ = run("demo")
    assert "PLKNN" in out
    assert "898 training examples, 3.4 candidate labels each" in out  # 1 + 0.8 · 3
    assert "at random" in out


def test_an_interrupt_is_one_line(run, monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("skpll.all_methods", interrupted, raising=False)
    assert run("methods") == (INTERRUPTED, "", "skpll: interrupted\n")


def test_an_interrupt_during_a_fit_ends_the_demo(run, monkeypatch, interrupt_after):
    interrupt_after(0.2)
    monkeypatch.setattr("skpll.all_methods", lambda: {"m3pl": skpll.M3PL}, raising=False)
    assert run("demo") == (INTERRUPTED, "", "skpll: interrupted\n")


def test_without_its_packages_the_command_says_what_to_install(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "typer", None)
    monkeypatch.delitem(sys.modules, "skpll.cli.app", raising=False)
    monkeypatch.delattr(cli, "app", raising=False)
    status, _, err = run("methods")
    assert status == FAILED
    assert "pip install 'skpll[cli]'" in err


def test_as_a_program():
    done = subprocess.run(
        [sys.executable, "-m", "skpll", "data", "show", "nothing"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == WRONG_INPUT
    assert "Traceback" not in done.stderr


def test_lines_are_broken_between_words():
    text = "one line\nThe model believes that self-paced things are right; "
    text += "see /a/very-long-path.\n\nend"
    assert wrapped(text, 20).splitlines() == [
        "one line",
        "The model believes",
        "that self-paced",
        "things are right;",
        "see",
        "/a/very-long-path.",
        "",
        "end",
    ]


COMMANDS = ["demo", "methods", "inspect", "disambiguate", "aggregate", "audit", "fit", "predict"]
COMMANDS += ["run", "status", "report", "reproduce", "data list", "data show", "data fetch"]


@pytest.mark.parametrize("words", [["-h"], *map(str.split, COMMANDS)])
def test_help_names_no_types_of_python(run, monkeypatch, words):
    monkeypatch.setenv("COLUMNS", "80")
    status, out, _ = run(*words, "--help")
    assert status == DONE
    assert not re.search(r"<(list|str|path|file|bool|int|float)", out)
    assert max(map(len, out.splitlines())) <= 80
