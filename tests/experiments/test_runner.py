"""Running: every backend gives the same, whatever goes wrong fails alone, nothing is done twice."""

import concurrent.futures
import json
import multiprocessing
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
import types
from contextlib import closing, contextmanager
from pathlib import Path

import distributed
import pytest

from skpll.experiments import (
    Store,
    StoreError,
    absent_data,
    plan,
    run_experiment,
    runner,
)

from .conftest import SUPPORT

REAL = {
    "folds": 2,
    "methods": [
        'method = "plknn"\ngrid = { n_neighbors = [3, 10] }',
        'method = "plknn"\nlabel = "kernel"\nparameters = { weights = "uniform" }',
    ],
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.db"


@pytest.fixture
def log(tmp_path, monkeypatch):
    """The file in which `fake_work:logged` writes down what it does."""
    path = tmp_path / "log"
    path.touch()
    monkeypatch.setenv("FAKE_WORK_LOG", str(path))
    return path


def lines_in(log, start=0):
    with log.open() as file:
        file.seek(start)
        return file.read().splitlines()


def keys_in(log, start=0):
    return set(lines_in(log, start))


# -- the same everywhere -------------------------------------------------------------------


def test_backends_give_the_same(small, tmp_path, table):
    specification = small(**REAL)
    ways = {
        "one": {"jobs": 1},
        "two": {"jobs": 2},
        "dask": {"backend": "dask", "jobs": 1},
    }
    tables = {}
    for name, options in ways.items():
        summary = run_experiment(specification, tmp_path / name, **options)
        assert (summary.planned, summary.done, summary.failed) == (4, 4, 0)
        tables[name] = table(tmp_path / name)
    assert len(tables["one"]) == 4
    assert tables["one"] == tables["two"] == tables["dask"]


def test_progress(small, path, fake_work):
    seen = []
    work = f"{fake_work}:quick"
    summary = run_experiment(small(), path, jobs=2, progress=seen.append, work=work)
    assert [s.ran for s in seen] == [s.done for s in seen] == [0, 1, 2, 3]
    assert [s.running for s in seen] == [2, 2, 1, 0]
    assert seen[-1] == summary


# -- resuming ------------------------------------------------------------------------------


def test_what_is_done_is_not_done_again(small, path, fake_work, log):
    work = f"{fake_work}:logged"
    with pytest.raises(ValueError, match="limit: -1 is not a number of tasks"):
        run_experiment(small(), path, limit=-1, work=work)
    first = run_experiment(small(), path, limit=2, work=work)
    assert (first.planned, first.done, first.todo) == (3, 2, 2)
    second = run_experiment(small(folds=3, repeats=2), path, jobs=-1, work=work)
    assert (second.planned, second.done, second.todo) == (6, 6, 4)
    third = run_experiment(small(folds=3, repeats=2), path, work=work, backend="dask")
    assert (third.done, third.todo) == (6, 0)
    assert len(lines_in(log)) == len(keys_in(log)) == 6


@pytest.fixture
def started(log, monkeypatch):
    """Start runs in processes of their own, quickly: they are forked from one that is warm."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        pytest.skip("this system can't fork")
    monkeypatch.syspath_prepend(SUPPORT)
    import fake_work

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["skpll.experiments.runner", "skpll.registry"])

    @contextmanager
    def start(specification, path):
        process = context.Process(
            target=fake_work.run_logged,
            args=(os.environ["FAKE_WORK_LOG"], specification, path),
        )
        process.start()
        try:
            yield process
        finally:
            process.kill()
            process.join()
            process.close()

    return start


def wait_until(happened, patience=60):
    end = time.monotonic() + patience
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.002)


@pytest.mark.parametrize("n_kills", [6, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_at_any_moment_and_resumed(
    tmp_path, path, log, fake_work, table, started, small, n_kills
):
    n_tasks = 50 * n_kills
    specification = small(folds=10, repeats=n_tasks // 10)
    chance = random.Random(0)
    done = set()
    for kill in range(n_kills):
        size = log.stat().st_size
        with started(specification, path) as process:
            if kill % 4:  # the others die while they start
                wait_until(lambda size=size: log.stat().st_size > size)
            time.sleep(chance.uniform(0, 0.2))
            os.kill(process.pid, signal.SIGKILL)
            process.join()
        time.sleep(0.05)  # workers see that they are alone
        assert not keys_in(log, size) & done, "a finished task was done again"
        if path.exists():
            with Store.open(path) as store:
                done = store.finished_keys("small")[0]
    assert 0 < len(done) < n_tasks
    size = log.stat().st_size
    summary = run_experiment(specification, path, jobs=2, work=f"{fake_work}:logged")
    assert summary.done == summary.planned == n_tasks
    assert not keys_in(log, size) & done

    run_experiment(specification, tmp_path / "whole.db", jobs=2, work=f"{fake_work}:quick")
    assert table(path) == table(tmp_path / "whole.db")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert not list(tmp_path.glob("results.db-*"))


def test_workers_do_not_outlive_the_runner(tmp_path, path, log, fake_work, started, small):
    with started(small(folds=10, repeats=500), path):
        wait_until(lambda: log.stat().st_size)
        folder = Path(log.with_suffix(".folder").read_text())
        assert folder.is_dir()
    wait_until(lambda: not folder.exists(), patience=5)
    size = log.stat().st_size
    time.sleep(0.1)
    assert log.stat().st_size == size


def test_an_interrupt_stops_cleanly(small, path, fake_work, log):
    def interrupt(summary):
        if summary.ran == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_experiment(
            small(folds=10, repeats=50),
            path,
            jobs=2,
            progress=interrupt,
            work=f"{fake_work}:logged",
        )
    with Store.open(path, read_only=True) as store:
        assert len(store.results()) == 3
        assert store.experiments()[0].runs[0]["ended"]
    before = log.stat().st_size
    time.sleep(0.1)
    assert log.stat().st_size == before, "a worker goes on"


# -- tasks that go wrong -------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal")
@pytest.mark.parametrize("backend", ["processes", "dask"])
def test_bad_tasks_fail_alone(small, path, fake_work, monkeypatch, backend):
    specification = small(folds=8)
    options = {"jobs": 2, "backend": backend, "work": f"{fake_work}:badly_behaved"}
    summary = run_experiment(specification, path, time_limit=1.0, **options)
    assert (summary.planned, summary.done, summary.failed) == (8, 4, 4)
    with Store.open(path, read_only=True) as store:
        failures = {failure.split: failure for failure in store.failures().itertuples()}
        assert set(store.results()["split"]) == {4, 5, 6, 7}
    assert [failures[i].reason for i in range(4)] == ["error", "time limit", "killed", "killed"]
    assert failures[0].message == "RuntimeError: the first line and the second"
    assert failures[1].message == "stopped after 1 seconds"
    assert failures[1].seconds >= 1
    assert "SIGKILL, perhaps because memory ran out" in failures[2].message
    assert failures[3].message == "the process ended with status 7"

    again = run_experiment(specification, path, **options)
    assert (again.todo, again.failed) == (0, 4)
    monkeypatch.setenv("FAKE_WORK_CURED", "1")
    cured = run_experiment(specification, path, retry_failed=True, **options)
    assert (cured.todo, cured.ran, cured.done, cured.failed) == (4, 4, 8, 0)


@pytest.mark.parametrize("backend", ["processes", "dask"])
def test_workers_that_can_not_start_stop_the_run(small, path, backend):
    with pytest.raises(OSError, match=r"worker process could not start: .*no_such_module"):
        run_experiment(small(), path, backend=backend, work="no_such_module:work")
    with Store.open(path, read_only=True) as store:
        assert store.results().empty
        assert store.failures().empty


def test_what_a_method_says_is_kept(small, path):
    methods = ['method = "plknn"\ngrid = { n_neighbors = [3, 4] }']
    specification = small(methods=methods, more="[selection]\nfolds = 1000")
    summary = run_experiment(specification, path, limit=1)
    assert (summary.done, summary.failed) == (0, 1)
    with Store.open(path, read_only=True) as store:
        (failure,) = store.failures().itertuples()
    assert (failure.reason, failure.method) == ("error", "PLKNN")
    assert "number of splits n_splits=1000" in failure.message


def test_a_full_disk_stops_the_run(small, path, fake_work, in_this_process):
    with Store.open(path) as store:
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]

        def fill(summary):
            if summary.ran == 2:
                store._connection.execute(f"PRAGMA max_page_count = {pages}")

        specification = small(folds=10, repeats=20)
        with pytest.raises(StoreError, match="the disk is full"):
            run_experiment(specification, store, progress=fill, work=f"{fake_work}:quick")
        store._connection.execute("PRAGMA max_page_count = 100000")
        assert 2 <= len(store.results()) < 200
        assert run_experiment(specification, store, work=f"{fake_work}:quick").done == 200


def test_one_run_at_a_time(small, path, fake_work):
    with Store.open(path) as store, store.lock(), pytest.raises(StoreError, match="another run"):
        run_experiment(small(), path, work=f"{fake_work}:quick")


# -- arguments and data --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": "threads"}, "backend: 'threads' is unknown; choose processes or dask"),
        ({"scheduler": "tcp://here:1"}, "scheduler: goes with the backend dask"),
        ({"jobs": 0}, "jobs: 0 is not a number of processes"),
    ],
)
def test_wrong_arguments(small, path, options, message):
    with pytest.raises(ValueError, match=message):
        run_experiment(small(), path, **options)
    assert not path.exists()


def test_absent_data(small, path, fake_work, in_this_process, monkeypatch):
    monkeypatch.setattr(runner, "absent_data", lambda _: ["lost"])
    specification = small(more='[[data]]\nname = "lost"')
    summary = run_experiment(specification, path, work=f"{fake_work}:quick")
    assert (summary.planned, summary.absent) == (3, ("lost",))
    monkeypatch.setattr(runner, "absent_data", lambda _: ["lost", "iris"])
    with pytest.raises(FileNotFoundError, match="skpll data fetch lost iris"):
        run_experiment(specification, path, work=f"{fake_work}:quick")


def test_a_file_is_looked_for(small, monkeypatch, tmp_path):
    monkeypatch.setenv("SKPLL_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    specification = small(more='[[data]]\nname = "lost"')
    assert absent_data(specification) == ["lost"]
    (tmp_path / "lost.mat").touch()
    assert absent_data(specification) == []


# -- the process itself --------------------------------------------------------------------


def test_a_process_keeps_to_one_thread_and_finds_the_same_modules(small, path, fake_work):
    run_experiment(small(), path, limit=1, work=f"{fake_work}:threads")
    with Store.open(path, read_only=True) as store:
        (found,) = store.results()["chosen"]
    assert found["environment"] == "1"
    assert set(found["pools"]) == {1}


def test_what_numpy_measured_is_kept_as_plain_numbers(small, path, fake_work):
    run_experiment(small(), path, limit=1, work=f"{fake_work}:arrays")
    with Store.open(path, read_only=True) as store:
        (found,) = store.results().itertuples()
    assert (found.chosen, found.accuracy) == ({"a": 1.5, "b": [0, 1], "c": 3}, 0.5)


def test_long_messages_are_cut(small, path, fake_work):
    run_experiment(small(), path, limit=1, work=f"{fake_work}:long_error")
    with Store.open(path, read_only=True) as store:
        (failure,) = store.failures().itertuples()
    assert failure.message.startswith("KeyError: '999")
    assert len(failure.message) == 500


def test_a_script_without_a_guard_is_told_so(small, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from skpll.experiments import Specification, run_experiment\n"
        f"run_experiment(Specification.parse({small().text!r}), 'results.db')\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "a script has to call it below its line `if __name__ ==" in done.stderr
    with Store.open(tmp_path / "results.db", read_only=True) as store:
        assert store.results().empty
        assert store.failures().empty


# -- a real cluster ------------------------------------------------------------------------


@contextmanager
def dask_process(kind, *words):
    command = [sys.executable, "-m", "dask", kind, *words]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(SUPPORT), *sys.path])}
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def scheduler(tmp_path):
    file = tmp_path / "scheduler.json"
    words = ("--scheduler-file", str(file), "--port", "0", "--host", "127.0.0.1", "--no-dashboard")
    with dask_process("scheduler", *words) as process:
        wait_until(lambda: file.exists() and file.read_text().endswith("}"))
        yield json.loads(file.read_text())["address"], process


@contextmanager
def dask_worker(scheduler):
    words = (scheduler, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")
    with dask_process("worker", *words) as process:
        yield process


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal")
def test_cluster_loses_a_worker(small, path, tmp_path, table, fake_work, log, scheduler):
    specification = small(folds=10, repeats=20)
    address, _ = scheduler
    options = {"backend": "dask", "scheduler": address, "work": f"{fake_work}:logged"}
    with dask_worker(address) as victim, dask_worker(address):

        def kill(summary):
            if summary.ran == 40:
                victim.send_signal(signal.SIGKILL)

        summary = run_experiment(specification, path, progress=kill, **options)
    assert victim.returncode == -signal.SIGKILL
    assert (summary.planned, summary.done, summary.failed) == (200, 200, 0)
    run_experiment(specification, tmp_path / "here.db", jobs=2, work=f"{fake_work}:quick")
    assert table(path) == table(tmp_path / "here.db")
    assert keys_in(log) == {row["key"] for row in table(path)}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal")
def test_cluster_loses_its_scheduler(small, path, fake_work, log, scheduler, monkeypatch):
    monkeypatch.setattr(runner, "CONNECTION_TIMEOUT", 2)
    specification = small(folds=10, repeats=20)
    address, process = scheduler

    def kill(summary):
        if summary.ran == 10:
            process.send_signal(signal.SIGKILL)

    options = {"backend": "dask", "scheduler": address, "work": f"{fake_work}:logged"}
    with dask_worker(address), pytest.raises(OSError, match="connection to the Dask scheduler"):
        run_experiment(specification, path, progress=kill, **options)
    summary = run_experiment(specification, path, work=f"{fake_work}:quick")
    assert summary.done == 200
    assert summary.todo <= 190


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (distributed.CancelledError("key"), None),
        (concurrent.futures.CancelledError(), None),
        (distributed.KilledWorker("key", None, 3), "killed"),
        (RuntimeError("no"), "error"),
    ],
)
def test_what_a_cluster_says_about_a_task(error, reason):
    def fail():
        raise error

    attempt = runner._outcome_on_cluster(types.SimpleNamespace(result=fail))
    assert (attempt and attempt.reason) == reason


def test_a_connection_that_breaks_is_not_the_fault_of_a_task():
    def fail():
        raise distributed.comm.CommClosedError("gone")

    with pytest.raises(OSError, match="gone"):
        runner._outcome_on_cluster(types.SimpleNamespace(result=fail))


def test_cluster_that_is_not_there(small, path, monkeypatch):
    monkeypatch.setattr(runner, "CONNECTION_TIMEOUT", 1)
    with pytest.raises(OSError, match=r"tcp://127\.0\.0\.1:9"):
        run_experiment(small(), path, backend="dask", scheduler="tcp://127.0.0.1:9")


def test_cluster_with_other_versions(small, path, monkeypatch):
    monkeypatch.setattr(runner, "_version", lambda: "0.0")
    with pytest.raises(ValueError, match=r"has skpll 0\.0"):
        run_experiment(small(), path, backend="dask")


def test_without_dask(small, path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'skpll\[dask\]'"):
        run_experiment(small(), path, backend="dask")


def test_planning_is_quick_work(small):
    """One hundred thousand tasks are planned without holding more than one at a time."""
    specification = small(folds=10, repeats=10_000)
    assert sum(1 for _ in plan(specification)) == 100_000
