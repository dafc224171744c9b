"""`skpll run`, `status` and `reproduce`, called as a user calls them."""

import json
import os
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest

from skpll.cli import DONE, FAILED, INTERRUPTED, WRONG_INPUT, main
from skpll.experiments import Store, runner

SUPPORT = Path(__file__).parents[1] / "experiments" / "support"

SPECIFICATION = """
name = "mine"
title = "An experiment of mine"
[protocol]
folds = 4
[[data]]
name = "iris"
p = 0.5
[[methods]]
label = "neighbours"
method = "plknn"
[quick]
folds = 2
"""


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Call the command line in an empty folder, with work that costs nothing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(SUPPORT)
    monkeypatch.setitem(runner.run_experiment.__kwdefaults__, "work", "fake_work:quick")
    Path("mine.toml").write_text(SPECIFICATION)

    def call(*words):
        status = main(words)
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return call


def test_run_and_resume(run, in_this_process):
    status, out, err = run("run", "mine.toml", "--limit", "3", "--jobs", "1")
    assert (status, err) == (DONE, "")
    assert out.startswith("mine: 3 of 4 tasks done in results.db; 1 left\n")
    status, out, _ = run("run", "mine.toml", "--json", "--backend", "dask")
    assert status == DONE
    assert json.loads(out) == {
        "experiment": "mine", "planned": 4, "done": 4, "failed": 0, "todo": 1, "ran": 1,
        "running": 0, "absent": [],
    }  # fmt: skip
    assert run("run", "mine.toml", "--quiet") == (DONE, "", "")
    status, out, _ = run("run", "mine.toml", "--quick", "--store", "quick.db")
    assert out.startswith("mine: 2 of 2 tasks done in quick.db\n")


def test_a_run_ends_with_the_table_of_results(run, in_this_process):
    _, out, _ = run("run", "mine.toml", "--limit", "1", "--jobs", "1")
    with Store.open("results.db", read_only=True) as store:
        (accuracy,) = store.results()["accuracy"]
    table = out.partition("\n")[2]
    assert "An experiment of mine" in table
    assert f"{accuracy:.3f}" in table
    assert "±0" not in table, "one fold has no deviation"
    assert "1 of 4 folds" in table
    _, out, _ = run("run", "mine.toml", "--jobs", "2")
    with Store.open("results.db", read_only=True) as store:
        found = store.results()["accuracy"]
    assert f"{found.mean():.3f}±{found.std():.3f}" in out


def test_failures_and_another_try(run, monkeypatch):
    monkeypatch.setitem(runner.run_experiment.__kwdefaults__, "work", "fake_work:badly_behaved")
    status, out, err = run("run", "mine.toml", "--time-limit", "2")
    assert status == FAILED
    assert out == "mine: 0 of 4 tasks done in results.db; 4 failed\n"
    assert err.count("\n") == 1
    assert "4 of 4 tasks of mine have failed: skpll status results.db says why" in err

    status, out, _ = run("status", "results.db", "--json")
    (entry,) = json.loads(out)
    assert (entry["planned"], entry["done"], entry["failed"], entry["left"]) == (4, 0, 4, 0)
    reasons = [failure["reason"] for failure in entry["failures"]]
    assert sorted(reasons) == ["error", "killed", "killed", "time limit"]
    status, out, _ = run("status", "results.db")
    assert status == DONE
    assert "RuntimeError: the first line and the second" in out

    monkeypatch.setenv("FAKE_WORK_CURED", "1")
    assert run("run", "mine.toml", "-q")[0] == FAILED
    assert run("run", "mine.toml", "-q", "--retry-failed")[0] == DONE


def test_absent_data(run, in_this_process, monkeypatch, tmp_path):
    monkeypatch.setenv("SKPLL_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    Path("mine.toml").write_text(SPECIFICATION + '[[data]]\nname = "lost"')
    status, out, _ = run("run", "mine.toml")
    assert status == DONE
    assert "4 of 4 tasks done" in out
    assert "data that are not here: lost (skpll data fetch lost)" in out
    _, out, _ = run("status", "results.db")
    assert "mine: lost is not here: skpll data fetch lost" in out
    status, _, err = run("run", "table3")
    assert status == FAILED
    assert "none of its data sets is on this machine" in err


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["run", "none.toml"], WRONG_INPUT, "there is no such file"),
        (["run", "tabel3"], WRONG_INPUT, "names that skpll knows: "),
        (
            ["run", "bad.toml"],
            WRONG_INPUT,
            "bad.toml: protocol: unknown key `fold`. Did you mean",
        ),
        (["run", "mine.toml", "--store", "other.txt"], WRONG_INPUT, "not a store of skpll"),
        (["run", "mine.toml", "--store", "no/where.db"], FAILED, "can't be opened"),
        (["run", "mine.toml", "--backend", "slurm"], WRONG_INPUT, "choose processes or dask"),
        (["run", "mine.toml", "--jobs", "0"], WRONG_INPUT, "jobs: 0"),
        (["run", "mine.toml", "--limit", "0"], WRONG_INPUT, "--limit"),
        (["run", "mine.toml", "--time-limit", "0"], WRONG_INPUT, "--time-limit"),
        (["status", "none.db"], WRONG_INPUT, "does not exist"),
        (["status", "other.txt"], WRONG_INPUT, "not a store of skpll"),
        (["reproduce", "tabel3"], WRONG_INPUT, "unknown name 'tabel3'. Did you mean 'table3'"),
    ],
)
def test_wrong_input_is_one_line(run, words, status, message):
    Path("bad.toml").write_text(SPECIFICATION.replace("folds = 4", "fold = 4"))
    Path("other.txt").write_text("something else" * 100)
    found, out, err = run(*words)
    assert (found, out) == (status, "")
    assert err.count("\n") == 1
    assert message in err


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal")
def test_an_interrupt_says_how_to_go_on(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(SPECIFICATION.replace("folds = 4", "folds = 10\nrepeats = 1000"))
    log = tmp_path / "log"
    program = (
        "import sys; from skpll.cli import main; from skpll.experiments import runner; "
        "runner.run_experiment.__kwdefaults__['work'] = 'fake_work:logged'; "
        "sys.exit(main(['run', 'mine.toml', '--jobs', '2']))"
    )
    path = os.pathsep.join([str(SUPPORT), *sys.path])
    environment = os.environ | {"PYTHONPATH": path, "FAKE_WORK_LOG": str(log)}
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 60
    while not (log.exists() and log.read_text().count("\n") > 20) and time.monotonic() < end:
        time.sleep(0.01)
    with Store.open(tmp_path / "results.db", read_only=True) as store:
        while len(store.results()) <= 10 and time.monotonic() < end:
            time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    with Store.open(tmp_path / "results.db", read_only=True) as store:
        done = len(store.results())
    assert (process.returncode, out) == (INTERRUPTED, "")
    assert err == (
        f"skpll: interrupted; {done} of 10000 tasks of mine are in results.db: "
        "give the same command again to go on\n"
    )
    assert done > 10


def test_results_as_one_text(run, in_this_process):
    run("run", "mine.toml", "--jobs", "1", "--quiet")
    status, out, err = run("report", "results.db", "--out", "page", "--results", "page/RESULTS.md")
    assert (status, out.strip(), err) == (DONE, str(Path("page/index.html")), "")
    text = Path("page/RESULTS.md").read_text(encoding="utf-8")
    assert "Experiment `mine`: 4-fold; 4 of 4 tasks done." in text
    assert "| neighbours |" in text or "| Iris" in text


def test_reproduce_runs_and_reports(run, in_this_process, monkeypatch):
    written = []
    report = types.ModuleType("skpll.experiments.report")
    report.write_report = lambda store, out: written.append((str(store), str(out)))
    monkeypatch.setitem(sys.modules, "skpll.experiments.report", report)
    monkeypatch.setattr(runner, "absent_data", lambda _: ["soccer_player"])
    words = ("reproduce", "table3", "figure2", "--quick", "--limit", "2", "--jobs", "2")
    status, out, _ = run(*words, "--out", "here")
    assert status == DONE
    assert [line.split(":")[0] for line in out.splitlines()] == ["table3", "figure2", "report"]
    assert written == [("results.db", "here")]
    status, out, _ = run(*words, "--json")
    assert [entry["done"] for entry in json.loads(out)["experiments"]] == [4, 4]


def test_reproduce_everything(run, in_this_process, monkeypatch):
    report = types.ModuleType("skpll.experiments.report")
    report.write_report = lambda *_: None
    monkeypatch.setitem(sys.modules, "skpll.experiments.report", report)
    monkeypatch.setattr(runner, "absent_data", lambda _: [])
    status, out, _ = run("reproduce", "all", "--quick", "--json", "--jobs", "2")
    assert status == DONE
    found = {entry["experiment"]: entry for entry in json.loads(out)["experiments"]}
    assert set(found) >= {"table3", "table3-fifths", "table4", "figure6", "ambiguity"}
    assert "deep-lenet5" not in found
    assert all(entry["done"] == entry["planned"] for entry in found.values())


def test_messages_of_failures_do_not_steer_the_terminal(run, in_this_process):
    assert run("run", "mine.toml", "--limit", "1", "--jobs", "1")[0] == DONE
    with Store.open("results.db") as store:
        left = store.planned()["key"].iloc[-1]
        store.add_failure(1, left, "error", "\x1b[2J[/red] \x9b31m gone", 1.0)
    for more in ([], ["--json"]):
        status, out, _ = run("status", "results.db", *more)
        assert status == DONE
        assert not set("\x1b\x9b") & set(out)
        assert "[/red]" in out
