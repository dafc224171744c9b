"""The store: what goes in comes out, and what is wrong with a file is said in one line."""

import shutil
import sqlite3
import subprocess
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

import skpll
from skpll import PLKNN
from skpll.cli import main
from skpll.experiments import Store, StoreError, plan
from skpll.experiments import store as store_module
from skpll.experiments.tasks import RESULT_VERSIONS

MEASUREMENT = {
    "metrics": {"accuracy": 0.75},
    "chosen": {"C": 1},
    "seconds": 2.5,
    "fit_seconds": 0.5,
    "n_train": 100,
    "n_test": 50,
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.db"


@pytest.fixture
def filled(path, small):
    """A store with one result and one failure."""
    specification = small(
        methods=['method = "plknn"\nlabel = "K"\nvary = { n_neighbors = [3, 5] }']
    )
    tasks = list(plan(specification))
    with Store.open(path) as store:
        run = store.begin_run(specification, tasks, ["lost"])
        store.add_result(run, tasks[0].key, MEASUREMENT)
        store.add_failure(run, tasks[1].key, "killed", "out of memory", 3.0)
        store.end_run(run)
    return tasks


def test_what_goes_in_comes_out(path, filled):
    with Store.open(path, read_only=True) as store:
        (experiment,) = store.experiments()
        (result,) = store.results().itertuples()
        (failure,) = store.failures("small").itertuples()
        assert store.results("other").empty
        assert store.failures("other").empty
    assert (experiment.name, experiment.title, experiment.absent) == ("small", "small", ["lost"])
    assert experiment.planned == len(filled) == 6
    (run,) = experiment.runs
    assert run["started"] <= run["ended"]
    assert run["environment"]["versions"]["scikit-learn"]
    assert result.key == filled[0].key
    assert (result.dataset, result.p, result.r, result.corruption_seed) == ("iris", 0.3, 1, 0)
    assert (result.protocol, result.repeat, result.split) == ("3-fold", 0, 0)
    assert (result.method, result.series, result.estimator) == ("K, n_neighbors=3", "K", "plknn")
    assert result.parameters == {"n_neighbors": 3}
    assert (result.data, result.case) == ("Iris", "Iris, p = 0.3, r = 1")
    assert (result.version, result.older) == (1, False)
    assert result.accuracy == MEASUREMENT["metrics"]["accuracy"]
    for name in MEASUREMENT.keys() - {"metrics"}:
        assert getattr(result, name) == MEASUREMENT[name]
    assert (failure.method, failure.reason) == ("K, n_neighbors=5", "killed")
    assert (failure.message, failure.seconds) == ("out of memory", 3.0)


def test_a_result_replaces_a_failure(path, filled):
    with Store.open(path) as store:
        store.add_result(1, filled[1].key, MEASUREMENT)
        assert store.failures().empty
        assert len(store.results()) == 2


def test_a_result_is_written_once(path, filled):
    with Store.open(path) as store:
        with pytest.raises(StoreError, match="UNIQUE"):
            store.add_result(1, filled[0].key, MEASUREMENT | {"n_test": 1})
        assert store.results()["n_test"].tolist() == [50]


def test_experiments_share_results(path, filled, small):
    methods = ['method = "plknn"\nlabel = "other label"\nparameters = { n_neighbors = 3 }']
    other = small(name="other", methods=methods)
    with Store.open(path) as store:
        store.begin_run(other, plan(other), [])
        assert [(r.experiment, r.method) for r in store.results().itertuples()] == [
            ("other", "other label"),
            ("small", "K, n_neighbors=3"),
        ]
        assert store.finished_keys("other") == ({filled[0].key}, set())


def test_a_new_plan_replaces_the_old_and_keeps_the_results(path, filled, small):
    shorter = small(methods=['method = "plknn"\nparameters = { n_neighbors = 5 }'])
    with Store.open(path) as store:
        store.begin_run(shorter, plan(shorter), [])
        (experiment,) = store.experiments()
        assert (experiment.planned, len(experiment.runs)) == (3, 2)
        assert (len(store.results()), len(store.failures())) == (0, 1)


def test_quick_is_remembered(path, small):
    specification = small(more="[quick]\nfolds = 2")
    quick = type(specification).parse(specification.text, quick=True)
    with Store.open(path) as store:
        store.begin_run(quick, plan(quick), [])
        (experiment,) = store.experiments()
    assert (experiment.quick, experiment.protocol) == (True, "2-fold")


# -- results outlive the code ----------------------------------------------------------------


def test_reading_never_asks_todays_constructors(path, filled, monkeypatch):
    """A parameter was renamed, the method of a task is gone: the results can still be read."""

    def renamed(self, *, k=10):
        self.k = k

    monkeypatch.setattr(PLKNN, "__init__", renamed)
    with Store.open(path, read_only=True) as store:
        (result,) = store.results().itertuples()
        assert store.experiments()[0].title == "small"
    assert result.parameters == {"n_neighbors": 3}
    monkeypatch.setattr(skpll, "all_methods", dict)
    with Store.open(path, read_only=True) as store:
        (result,) = store.results().itertuples()
    assert (result.accuracy, result.older) == (0.75, True)


def test_results_of_an_older_version_are_told_and_done_again(path, filled, small, monkeypatch):
    specification = small(
        methods=['method = "plknn"\nlabel = "K"\nvary = { n_neighbors = [3, 5] }']
    )
    monkeypatch.setitem(RESULT_VERSIONS, "plknn", 2)
    with Store.open(path) as store:
        (result,) = store.results().itertuples()
        assert (result.version, result.older) == (1, True)
        again = list(plan(specification))
        assert not {task.key for task in again} & {task.key for task in filled}
        run = store.begin_run(specification, again, [])
        assert store.finished_keys("small") == (set(), set())
        store.add_result(run, again[0].key, MEASUREMENT)
        (result,) = store.results().itertuples()
        assert (result.version, result.older) == (2, False)


def iris(*data):
    """Iris, once for each text that says more of it."""
    return "\n[[data]]\n".join(f'name = "iris"\np = 0.5\n{more}' for more in data)


def begun(store, specification):
    tasks = list(plan(specification))
    return tasks, store.begin_run(specification, tasks, [])


def test_cases_are_told_apart_by_kind_and_noise(path, small):
    specification = small(data=iris("", 'kind = "feature"', "noise = [0.1, 0.3]"))
    with Store.open(path) as store:
        tasks, run = begun(store, specification)
        for task in tasks:
            store.add_result(run, task.key, MEASUREMENT)
        frame = store.results()
    assert frame["case"].unique().tolist() == [
        "Iris, p = 0.5, r = 1",
        "Iris, feature, p = 0.5, r = 1",
        "Iris, noise = 0.1, p = 0.5, r = 1",
        "Iris, noise = 0.3, p = 0.5, r = 1",
    ]
    assert frame["kind"].tolist() == ["uniform", "feature", "uniform", "uniform"] * 3
    assert frame["noise"].tolist() == [0.0, 0.0, 0.1, 0.3] * 3


def test_cases_are_told_apart_by_scaling_where_there_are_several(path, small):
    glass = '\n[[data]]\nname = "glass"\np = 0.5\nscaling = "auto"'
    with Store.open(path) as store:
        tasks, run = begun(store, small(data=iris("", 'scaling = "sqrt"') + glass))
        for task in tasks[:2]:  # the second is not there yet, and still the first has its name
            store.add_result(run, task.key, MEASUREMENT)
        (one, other) = store.results()["case"]
        assert one == "Iris, zscore, p = 0.5, r = 1"
        assert other == "Iris, sqrt, p = 0.5, r = 1"
        store.add_result(run, tasks[2].key, MEASUREMENT)
        assert store.results()["data"].tolist()[-1] == "Glass Identification"


# -- files that are not right --------------------------------------------------------------


def refused(path, kind, message, **options):
    with pytest.raises(kind, match=message) as caught:
        Store.open(path, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("read_only", [True, False])
def test_other_files(path, read_only):
    path.write_text("something else, and long enough to have a header of its own" * 10)
    refused(path, ValueError, "not a store of skpll", read_only=read_only)
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE other (a)")
    refused(path, ValueError, "not a store of skpll", read_only=read_only)


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("known", [1, 99])
def test_a_store_of_another_version(path, filled, monkeypatch, read_only, known):
    there = store_module._VERSION
    monkeypatch.setattr(store_module, "_VERSION", known)
    message = rf"by another skpll \(schema {there}, this one knows {known}\)"
    refused(path, ValueError, message, read_only=read_only)


def test_paths_that_are_not_there(tmp_path):
    refused(tmp_path / "absent.db", FileNotFoundError, "no such store", read_only=True)
    refused(tmp_path / "absent" / "a.db", StoreError, "can't be opened; check that its folder")
    refused(tmp_path, StoreError, "can't be opened")


def test_a_store_that_can_not_be_written(path, filled, monkeypatch):
    real = sqlite3.connect
    read_only = lambda address, **rest: real(address.replace("mode=rwc", "mode=ro"), **rest)  # noqa: E731
    monkeypatch.setattr(sqlite3, "connect", read_only)
    refused(path, StoreError, "can't be written; check its permissions")


def test_reading_never_writes(path, filled):
    with (
        Store.open(path, read_only=True) as store,
        pytest.raises(StoreError, match="can't be written"),
    ):
        store.end_run(1)


@pytest.mark.parametrize("writable", ["nothing", "file", "folder"])
def test_reading_in_a_folder_without_permissions(path, filled, monkeypatch, writable):
    allowed = {"nothing": None, "file": path, "folder": path.parent}[writable]
    monkeypatch.setattr(store_module.os, "access", lambda place, _: Path(place) == allowed)
    before = sorted(path.parent.iterdir())
    with Store.open(path, read_only=True) as store:
        assert len(store.results()) == 1
        assert sorted(path.parent.iterdir()) == before
    assert sorted(path.parent.iterdir()) == before


def test_a_store_that_is_refused_is_closed(path, monkeypatch):
    path.write_text("something else, and long enough to have a header of its own" * 10)
    real, opened = sqlite3.connect, []
    monkeypatch.setattr(
        sqlite3, "connect", lambda *args, **rest: opened.append(real(*args, **rest)) or opened[-1]
    )
    refused(path, ValueError, "not a store of skpll")
    (connection,) = opened
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


def test_a_store_is_closed_at_the_end(path, filled):
    with Store.open(path) as store:
        assert len(store.experiments()) == 1
    with pytest.raises(StoreError, match="closed"):
        store.experiments()


def test_a_damaged_store(path, filled):
    content = bytearray(path.read_bytes())
    content[4096:] = b"\x55" * (len(content) - 4096)
    path.write_bytes(content)
    with Store.open(path, read_only=True) as store, pytest.raises(StoreError, match="is damaged"):
        store.results()


DAMAGES = [
    "UPDATE results SET metrics = '{'",
    "UPDATE tasks SET definition = 'none'",
    "UPDATE experiments SET kind = 'other'",
    "UPDATE experiments SET absent = '[3]'",
    "UPDATE experiments SET titles = '7'",
    "UPDATE experiments SET title = NULL",
    "UPDATE runs SET environment = '['",
    "ALTER TABLE results DROP COLUMN n_test",
    "DROP TABLE runs",
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_store_with_other_content_is_refused_with_its_name(path, filled, damage, capsys):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(damage)
    for command in ("status", "report"):
        out = () if command == "status" else ("--out", str(path.parent / "report"))
        assert main([command, str(path), *out]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"skpll: {path}: ")


def test_a_chosen_scaling_is_said_to_be_chosen(path, small):
    given = small()
    chosen = small(name="chosen", data='name = "iris"\np = [0.3]\nscaling = "auto"')
    with Store.open(path) as store:
        for specification in (given, chosen):
            store.begin_run(specification, plan(specification), [])
        found = {entry.name: entry.selection for entry in store.experiments()}
    assert found == {"small": None, "chosen": str(chosen.selection)}


def test_no_commit_is_recorded_outside_a_checkout(path, small, tmp_path, monkeypatch):
    monkeypatch.setattr(skpll, "__file__", str(tmp_path / "__init__.py"))
    with Store.open(path) as store:
        store.begin_run(small(), [], [])
        ((run,),) = (experiment.runs for experiment in store.experiments())
    assert run["environment"]["commit"] is None


def test_a_full_disk_loses_nothing(path, filled):
    huge = MEASUREMENT | {"chosen": {"text": "x" * 10**6}}
    with Store.open(path) as store:
        store._connection.execute("PRAGMA max_page_count = 40")
        with pytest.raises(StoreError, match="the disk is full; make room"):
            store.add_result(1, filled[2].key, huge)
        store.add_result(1, filled[2].key, MEASUREMENT)
        assert len(store.results()) == 2
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_readers_see_what_a_run_has_written_and_do_not_stop_it(path, filled):
    with Store.open(path) as writer, closing(sqlite3.connect(path)) as reader:
        halfway = reader.execute("SELECT key FROM tasks")
        assert next(halfway)
        writer.add_result(1, filled[2].key, MEASUREMENT)
        with Store.open(path, read_only=True) as store:
            assert len(store.results()) == 2


def test_a_second_run_is_told_at_once(path, filled):
    waited = []
    with Store.open(path) as first, Store.open(path) as second, first.lock():
        for _ in range(3):
            began = time.monotonic()
            with suppress(StoreError), second.lock():
                pass
            waited.append(time.monotonic() - began)
    assert min(waited) < 0.9


def test_runs_are_numbered(path, small):
    with Store.open(path) as store:
        assert [store.begin_run(small(), [], []) for _ in range(3)] == [1, 2, 3]
        assert [run["id"] for run in store.experiments()[0].runs] == [1, 2, 3]


def test_the_processor_is_named_as_far_as_the_system_tells(path, small, monkeypatch):
    lines = "processor\t: 0\nmodel name\t: Fast CPU: 2 GHz\nmodel name\t: Slow CPU\n"
    monkeypatch.setattr(store_module.Path, "read_text", lambda *_, **__: lines)
    assert store_module._processor() == "Fast CPU: 2 GHz"
    monkeypatch.setattr(store_module.Path, "read_text", lambda *_, **__: "processor\t: 0\n")
    monkeypatch.setattr(store_module.platform, "processor", lambda: "Other CPU")
    assert store_module._processor() == "Other CPU"
    monkeypatch.setattr(store_module.platform, "processor", lambda: "")
    assert store_module._processor() == store_module.platform.machine()

    def absent(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr(store_module.Path, "read_text", absent)
    assert store_module._processor() == store_module.platform.machine()


def test_one_run_at_a_time(path, filled):
    with Store.open(path) as first, Store.open(path) as second:
        with first.lock():
            with pytest.raises(StoreError, match="another run is writing"), second.lock():
                pass
            assert len(second.results()) == 1
        with second.lock():
            pass
    assert [entry.name for entry in path.parent.iterdir()] == ["results.db"]


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_the_commit_is_that_of_the_code_and_not_of_a_project_around_it(tmp_path, monkeypatch):
    package = tmp_path / "skpll"
    package.mkdir()
    file = package / "__init__.py"
    file.write_text("")
    (tmp_path / "other.txt").write_text("")
    monkeypatch.setattr(skpll, "__file__", str(file))

    def git(*words):
        identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        command = ["git", "-C", str(tmp_path), *identity, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert store_module._commit() is None
    git("init")
    git("add", "other.txt")
    git("commit", "-m", "others")
    assert store_module._commit() is None
    git("add", "skpll")
    git("commit", "-m", "ours")
    assert store_module._commit() == git("rev-parse", "--short=10", "HEAD")
    (tmp_path / "other.txt").write_text("changed outside of the package")
    assert not store_module._commit().endswith("+")
    file.write_text("changed")
    assert store_module._commit() == git("rev-parse", "--short=10", "HEAD") + "+"
