"""The store: one SQLite file with the plans of experiments and the results of their tasks.

A result is written in one transaction the moment it is there, so that whatever happens to the
process, the file holds every finished task. Readers may look while a run is writing.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from .environment import describe_environment
from .specification import Specification
from .tasks import Task

__all__ = ["Experiment", "Failure", "Result", "Store", "StoreError"]

_APPLICATION = 0x736B706C  # "skpl": what SQLite's header says the file belongs to
_VERSION = 1

_SCHEMA = """
CREATE TABLE experiments (
    name TEXT PRIMARY KEY, text TEXT NOT NULL, quick INTEGER NOT NULL, absent TEXT NOT NULL
);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY, experiment TEXT NOT NULL, started TEXT NOT NULL, ended TEXT,
    environment TEXT NOT NULL
);
CREATE TABLE tasks (key TEXT PRIMARY KEY, definition TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE plans (
    experiment TEXT NOT NULL, position INTEGER NOT NULL, key TEXT NOT NULL, label TEXT NOT NULL,
    series TEXT NOT NULL, repeat INTEGER NOT NULL,
    PRIMARY KEY (experiment, position)
) WITHOUT ROWID;
CREATE INDEX plans_by_key ON plans (key);
CREATE TABLE results (
    key TEXT PRIMARY KEY, run INTEGER NOT NULL, finished TEXT NOT NULL, seconds REAL NOT NULL,
    fit_seconds REAL NOT NULL, n_train INTEGER NOT NULL, n_test INTEGER NOT NULL,
    chosen TEXT NOT NULL, metrics TEXT NOT NULL, trace TEXT
) WITHOUT ROWID;
CREATE TABLE failures (
    key TEXT PRIMARY KEY, run INTEGER NOT NULL, finished TEXT NOT NULL, seconds REAL NOT NULL,
    reason TEXT NOT NULL, message TEXT NOT NULL
) WITHOUT ROWID;
"""

_PLANNED = "SELECT p.experiment, p.key, p.label, p.series, p.repeat, t.definition"
_JOINED = """
    FROM plans p JOIN tasks t ON t.key = p.key JOIN {table} f ON f.key = p.key
    WHERE ? IS NULL OR p.experiment = ? ORDER BY p.experiment, p.position
"""


class StoreError(OSError):
    """The store can't be read or written; what was written before is safe."""


@dataclass(frozen=True)
class Experiment:
    """An experiment in a store.

    Attributes
    ----------
    name, title : str
        What it is called.
    specification : Specification
        What it consists of.
    text : str
        The TOML text of the specification.
    absent : list of str
        Data sets that were not there when it last ran.
    planned : int
        Number of its tasks.
    runs : list of dict
        ``started``, ``ended`` (None if the process was killed) and ``environment`` of each run.
    """

    name: str
    title: str
    specification: Specification
    text: str
    absent: list[str]
    planned: int
    runs: list[dict[str, Any]]


@dataclass(frozen=True)
class _Planned:
    """What results and failures have in common.

    Attributes
    ----------
    key : str
        Key of the task.
    experiment : str
        Name of the experiment.
    dataset : str
        Name of the data set.
    p, r, corruption_seed : float, int, int or None
        How labels were made ambiguous; None for real candidate sets.
    protocol : str
        The protocol, in words.
    repeat, split : int
        The division of the rows.
    method : str
        Label of the method, with the parameters that are varied.
    series : str
        The same without them.
    estimator : str
        The method's name in `skpll.all_methods`.
    parameters : dict
        Fixed and varied parameters.
    scaling : str
        How features are scaled.
    features : str or None
        Kernel features, in words.
    """

    key: str
    experiment: str
    dataset: str
    p: float | None
    r: int | None
    corruption_seed: int | None
    protocol: str
    repeat: int
    split: int
    method: str
    series: str
    estimator: str
    parameters: dict[str, Any]
    scaling: str
    features: str | None


@dataclass(frozen=True)
class Result(_Planned):
    """The result of a task.

    Beside the attributes that say which task it is:

    Attributes
    ----------
    chosen : dict
        Parameters that inner folds chose.
    metrics : dict of float
        ``accuracy``, ``balanced_accuracy``, ``transductive_accuracy``, ``covering_rate`` and
        ``approximated_accuracy``.
    seconds, fit_seconds : float
        Time of the whole task and of its final fit.
    n_train, n_test : int
        Sizes of the two parts.
    trace : list of dict or None
        A record of each stage of the final fit.
    """

    chosen: dict[str, Any]
    metrics: dict[str, float]
    seconds: float
    fit_seconds: float
    n_train: int
    n_test: int
    trace: list[dict[str, Any]] | None


@dataclass(frozen=True)
class Failure(_Planned):
    """A task that gave no result.

    Beside the attributes that say which task it is:

    Attributes
    ----------
    reason : {"error", "time limit", "killed"}
        What happened.
    message : str
        One line about it.
    seconds : float
        Time until then.
    """

    reason: str
    message: str
    seconds: float


class Store:
    """A file of results. Open it with `Store.open`; it is a context manager.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skpll.experiments import Store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Store.open(Path(folder) / "results.db") as store:
    ...         print(store.experiments())
    []
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, read_only: bool = False) -> Self:
        """Open a store; make it if it is not there, unless it is only to be read.

        Parameters
        ----------
        path : path-like
            The file.
        read_only : bool, default=False
            Whether nothing is going to be written.

        Returns
        -------
        Store

        Raises
        ------
        ValueError
            If the file is something else, or was written by a newer version of skpll.
        FileNotFoundError
            If it is only to be read and not there.
        StoreError
            If it can't be opened or written.
        """
        path = Path(path)
        if read_only and not path.is_file():
            raise FileNotFoundError(f"{path}: there is no such store.")
        address = f"{path.absolute().as_uri()}?{_reading_mode(path) if read_only else 'mode=rwc'}"
        with _explained(path):
            connection = sqlite3.connect(address, uri=True, isolation_level=None)
        store = cls(path, connection)
        try:
            with _explained(path):
                store._prepare(read_only)
        except BaseException:
            connection.close()
            raise
        return store

    def _prepare(self, read_only: bool) -> None:
        """Check what the file is; make the tables of a new one; make sure that it can be written.

        SQLite's header says whose file it is and which version of the schema it has.
        """
        execute = self._connection.execute
        execute("PRAGMA busy_timeout = 10000")
        application = execute("PRAGMA application_id").fetchone()[0]
        version = execute("PRAGMA user_version").fetchone()[0]
        new = not execute("SELECT 1 FROM sqlite_master").fetchone()
        if application != _APPLICATION and (read_only or not new):
            raise ValueError(f"{self.path}: not a store of skpll; name another file.")
        if version > _VERSION:
            raise ValueError(
                f"{self.path}: was written by a newer skpll (schema {version}, this one knows "
                f"{_VERSION}); update skpll, or name another file."
            )
        if read_only:
            execute("PRAGMA query_only = ON")
            return
        execute("PRAGMA journal_mode = WAL")
        execute("PRAGMA synchronous = NORMAL")
        with self._transaction():
            if new and not execute("SELECT 1 FROM sqlite_master").fetchone():
                for statement in _SCHEMA.split(";"):
                    execute(statement)
                execute(f"PRAGMA user_version = {_VERSION}")
            execute(f"PRAGMA application_id = {_APPLICATION}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    # -- reading ---------------------------------------------------------------------------

    def experiments(self) -> list[Experiment]:
        """Give the experiments, in the order of their names.

        Returns
        -------
        list of Experiment
        """
        rows = self._query("SELECT name, text, quick, absent FROM experiments ORDER BY name")
        return [self._experiment(*row) for row in rows]

    def results(self, experiment: str | None = None) -> list[Result]:
        """Give the results, in the order of the plan.

        Parameters
        ----------
        experiment : str, optional
            Name of an experiment; by default of all. A task that two experiments share is then
            there twice.

        Returns
        -------
        list of Result
        """
        columns = "f.chosen, f.metrics, f.seconds, f.fit_seconds, f.n_train, f.n_test, f.trace"
        return [
            Result(
                **planned,
                chosen=json.loads(chosen),
                metrics=json.loads(metrics),
                seconds=seconds,
                fit_seconds=fit_seconds,
                n_train=n_train,
                n_test=n_test,
                trace=None if trace is None else json.loads(trace),
            )
            for planned, (chosen, metrics, seconds, fit_seconds, n_train, n_test, trace) in (
                self._joined("results", columns, experiment)
            )
        ]

    def failures(self, experiment: str | None = None) -> list[Failure]:
        """Give the tasks that failed and have not been done since, in the order of the plan.

        Parameters
        ----------
        experiment : str, optional
            Name of an experiment; by default of all.

        Returns
        -------
        list of Failure
        """
        return [
            Failure(**planned, reason=reason, message=message, seconds=seconds)
            for planned, (reason, message, seconds) in self._joined(
                "failures", "f.reason, f.message, f.seconds", experiment
            )
        ]

    def finished_keys(self, experiment: str) -> tuple[set[str], set[str]]:
        """Give the keys of an experiment's tasks that are done, and of those that failed.

        Parameters
        ----------
        experiment : str
            Name of the experiment.

        Returns
        -------
        done, failed : sets of str
        """
        found = (
            self._query(
                f"SELECT DISTINCT p.key FROM plans p JOIN {table} f ON f.key = p.key "
                "WHERE p.experiment = ?",
                experiment,
            )
            for table in ("results", "failures")
        )
        done, failed = ({key for (key,) in rows} for rows in found)
        return done, failed

    def _experiment(self, name: str, text: str, quick: int, absent: str) -> Experiment:
        specification = Specification.parse(text, quick=bool(quick))
        ((planned,),) = self._query(
            "SELECT COUNT(DISTINCT key) FROM plans WHERE experiment = ?", name
        )
        runs = self._query(
            "SELECT started, ended, environment FROM runs WHERE experiment = ? ORDER BY id", name
        )
        return Experiment(
            name=name,
            title=specification.title,
            specification=specification,
            text=text,
            absent=json.loads(absent),
            planned=planned,
            runs=[
                {"started": started, "ended": ended, "environment": json.loads(environment)}
                for started, ended, environment in runs
            ],
        )

    def _joined(
        self, table: str, columns: str, experiment: str | None
    ) -> Iterator[tuple[dict[str, Any], tuple[Any, ...]]]:
        query = f"{_PLANNED}, {columns} {_JOINED.format(table=table)}"
        protocols = {entry.name: str(entry.specification.protocol) for entry in self.experiments()}
        for name, key, label, series, repeat, definition, *rest in self._query(
            query, experiment, experiment
        ):
            d = json.loads(definition)
            nystroem = d["features"].get("nystroem")
            planned = {
                "key": key,
                "experiment": name,
                "dataset": d["dataset"],
                "p": d["p"],
                "r": d["r"],
                "corruption_seed": d["corruption_seed"],
                "protocol": protocols[name],
                "repeat": repeat,
                "split": d["split"]["split"],
                "method": label,
                "series": series,
                "estimator": d["method"],
                "parameters": d["parameters"],
                "scaling": d["scaling"],
                "features": None if nystroem is None else f"{nystroem} Nyström features",
            }
            yield planned, tuple(rest)

    def _query(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with _explained(self.path):
            return self._connection.execute(query, values).fetchall()

    # -- writing ---------------------------------------------------------------------------

    def begin_run(
        self, specification: Specification, tasks: Iterable[Task], absent: Iterable[str]
    ) -> int:
        """Write down what a run is about to do.

        The plan replaces an earlier one of the same name; results are kept.

        Parameters
        ----------
        specification : Specification
            The experiment.
        tasks : iterable of Task
            All of its tasks.
        absent : iterable of str
            Data sets that are not there.

        Returns
        -------
        int
            Number of the run.
        """
        name = specification.name
        planned = list(tasks)
        with self._transaction():
            execute = self._connection.execute
            execute(
                "INSERT OR REPLACE INTO experiments VALUES (?, ?, ?, ?)",
                (name, specification.text, specification.quick, json.dumps(list(absent))),
            )
            self._connection.executemany(
                "INSERT OR IGNORE INTO tasks VALUES (?, ?)",
                ((task.key, task.text) for task in planned),
            )
            execute("DELETE FROM plans WHERE experiment = ?", (name,))
            self._connection.executemany(
                "INSERT INTO plans VALUES (?, ?, ?, ?, ?, ?)",
                (
                    (name, position, task.key, task.label, task.series, task.repeat)
                    for position, task in enumerate(planned)
                ),
            )
            cursor = execute(
                "INSERT INTO runs (experiment, started, environment) VALUES (?, ?, ?)",
                (name, _now(), json.dumps(describe_environment())),
            )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def end_run(self, run: int) -> None:
        """Write down that a run has come to its end.

        Parameters
        ----------
        run : int
            Its number.
        """
        with self._transaction():
            self._connection.execute("UPDATE runs SET ended = ? WHERE id = ?", (_now(), run))

    def add_result(self, run: int, key: str, measurement: dict[str, Any]) -> None:
        """Write the result of a task, in one transaction.

        Parameters
        ----------
        run : int
            Number of the run.
        key : str
            Key of the task.
        measurement : dict
            What `skpll.experiments.work.measure` gives.

        Raises
        ------
        StoreError
            If it can't be written.
        """
        trace = measurement["trace"]
        values = (
            key,
            run,
            _now(),
            measurement["seconds"],
            measurement["fit_seconds"],
            measurement["n_train"],
            measurement["n_test"],
            json.dumps(measurement["chosen"]),
            json.dumps(measurement["metrics"]),
            None if trace is None else json.dumps(trace),
        )
        with self._transaction():
            self._connection.execute(
                "INSERT INTO results VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values
            )
            self._connection.execute("DELETE FROM failures WHERE key = ?", (key,))

    def add_failure(self, run: int, key: str, reason: str, message: str, seconds: float) -> None:
        """Write down that a task failed.

        Parameters
        ----------
        run : int
            Number of the run.
        key : str
            Key of the task.
        reason : {"error", "time limit", "killed"}
            What happened.
        message : str
            One line about it.
        seconds : float
            Time until then.
        """
        with self._transaction():
            self._connection.execute(
                "INSERT OR REPLACE INTO failures VALUES (?, ?, ?, ?, ?, ?)",
                (key, run, _now(), seconds, reason, message),
            )

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other runs away while this one writes; readers are welcome.

        The lock is a transaction on a file beside the store, which the operating system ends with
        the process, however that dies.

        Raises
        ------
        StoreError
            If another run has the lock.
        """
        path = self.path.with_name(f"{self.path.name}-lock")
        with _explained(path), closing(sqlite3.connect(path, timeout=0)) as connection:
            connection.isolation_level = None
            try:
                connection.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError as error:
                if "locked" not in str(error):
                    raise
                raise StoreError(
                    f"{self.path}: another run is writing to it; wait for it, or name another "
                    "store."
                ) from None
            try:
                yield
            finally:
                with suppress(OSError):  # Windows does not remove open files
                    path.unlink()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with _explained(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # SQLite itself rolls back on a full disk
                    self._connection.execute("ROLLBACK")
                raise


def _reading_mode(path: Path) -> str:
    """Say how SQLite may open a store for reading.

    Its write-ahead log needs a file beside the store even for reading; where that can't be made,
    nobody can be writing, and the store is read as it lies there.
    """
    writable = os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK)
    return "mode=rw" if writable else "mode=ro&immutable=1"


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into one line that says what to do."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        name = getattr(error, "sqlite_errorname", "")
        if name == "SQLITE_NOTADB":
            raise ValueError(f"{path}: not a store of skpll; name another file.") from None
        remedies = {
            "SQLITE_FULL": "the disk is full; make room (what was written before is safe)",
            "SQLITE_IOERR": "the disk can't be read or written; check it",
            "SQLITE_READONLY": "can't be written; check its permissions and those of its folder",
            "SQLITE_CANTOPEN": "can't be opened; check that its folder is there and can be written",
            "SQLITE_BUSY": "somebody else is writing to it; wait",
            "SQLITE_CORRUPT": "is damaged; restore it from a copy",
        }
        fitting = (text for start, text in remedies.items() if name.startswith(start))
        raise StoreError(f"{path}: {next(fitting, str(error))}.") from None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
