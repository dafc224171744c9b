"""The store: one SQLite file with the plans of experiments and the results of their tasks.

A result is written in one transaction as soon as it arrives, so the file holds every finished task
whatever happens to the process. A store can be read while a run writes to it.
"""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec

import skpll
from skpll._extra import pandas

from .specification import Kind, Specification
from .tasks import Task, Values, method_version

if TYPE_CHECKING:
    from pandas import DataFrame


_APPLICATION = 0x736B706C  # "skpl": what SQLite's header says the file belongs to
_VERSION = 3
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "joblib")
sqlite3.register_converter("skpll_json", json.loads)
_CONNECTED: dict[str, Any] = {"uri": True, "timeout": 10, "isolation_level": "IMMEDIATE"}
_CONNECTED["detect_types"] = sqlite3.PARSE_COLNAMES


class StoreError(OSError):
    """The store can't be read or written; results that were written before are safe.

    Examples
    --------
    >>> from skpll.experiments import StoreError
    >>> issubclass(StoreError, OSError)
    True
    """


@dataclass(frozen=True)
class Experiment:
    """An experiment in a store: what is needed to show its results.

    Attributes
    ----------
    name, title : str
        Its name and its title in reports.
    kind : {"table", "curves", "sensitivity"}
        How it is reported.
    over : str or None
        The parameter that it varies, for ``kind="sensitivity"``.
    reference : str or None
        Label of the method with which the others are compared.
    protocol : str
        The protocol, in words.
    selection : str or None
        How parameters were chosen, in words; None where there was nothing to choose.
    collection : str or None
        The collection that the specification came with; None for a file of your own.
    quick : bool
        Whether it is the small version.
    text : str
        The TOML text of the specification, for reading by people.
    titles : dict from data set to str
        Titles of the data sets.
    absent : list of str
        Data sets whose files were missing when it last ran.
    planned : int
        Number of its tasks.
    runs : list of dict
        The ``id`` of each run, when it ``started`` and ``ended`` (None if the process was killed),
        and its ``environment``: processor, commit and versions of packages.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skpll.experiments import Specification, Store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Store.open(Path(folder) / "results.db") as store:
    ...         run = store.begin_run(Specification.read("table3"), tasks=[], absent=[])
    ...         print([experiment.name for experiment in store.experiments()])
    ['table3']
    """

    name: str
    title: str
    kind: Kind
    over: str | None
    reference: str | None
    protocol: str
    selection: str | None
    collection: str | None
    quick: bool
    text: str
    titles: dict[str, str]
    absent: list[str]
    planned: int
    runs: list[dict[str, Any]]


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
        """Open a store; create it if it does not exist, unless `read_only` is True.

        Parameters
        ----------
        path : path-like
            The file.
        read_only : bool, default=False
            Whether to open it for reading only.

        Returns
        -------
        Store

        Raises
        ------
        ValueError
            If the file is not a store, or was written by a newer version of skpll.
        FileNotFoundError
            If it does not exist and `read_only` is True.
        StoreError
            If it can't be opened or written.
        """
        path = Path(path)
        if read_only and not path.is_file():
            raise FileNotFoundError(f"{path}: there is no such store.")
        address = f"{path.absolute().as_uri()}?{_reading_mode(path) if read_only else 'mode=rwc'}"
        with _explained(path), ExitStack() as stack:
            connection = sqlite3.connect(address, **_CONNECTED)
            stack.callback(connection.close)
            store = cls(path, connection)
            store._prepare(read_only)
            stack.pop_all()
        return store

    def _prepare(self, read_only: bool) -> None:
        """Check the header of the file; create the tables of a new one.

        The header says that the file is a store and which version of the schema it has.
        """
        execute = self._connection.execute
        application = execute("PRAGMA application_id").fetchone()[0]
        found = execute("PRAGMA user_version").fetchone()[0]
        new = not execute("SELECT 1 FROM sqlite_master").fetchone()
        if application != _APPLICATION and (read_only or not new):
            raise ValueError(f"{self.path}: not a store of skpll; choose another file.")
        if found != _VERSION and not new:
            versions = f"schema {found}, this one knows {_VERSION}"
            raise ValueError(f"{self.path}: was written by another skpll ({versions}); use that.")
        schema = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
        written, read = schema.split("-- What is read")
        if not read_only:
            execute("PRAGMA journal_mode = WAL")
            execute("PRAGMA synchronous = NORMAL")
            header = f"PRAGMA user_version = {_VERSION}; PRAGMA application_id = {_APPLICATION};"
            self._connection.executescript(f"BEGIN IMMEDIATE; {written} {header} COMMIT")
        self._connection.executescript(f"-- {read}")
        if read_only:
            execute("PRAGMA query_only = ON")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    # -- reading ---------------------------------------------------------------------------

    def experiments(self) -> list[Experiment]:
        """Return the experiments, in the order of their names.

        Returns
        -------
        list of Experiment
        """
        names, rows = self._read("SELECT * FROM shown_experiments")
        records = [dict(zip(names, row, strict=True)) for row in rows]
        with _explained(self.path):
            return msgspec.convert(records, list[Experiment])

    def results(self, experiment: str | None = None) -> DataFrame:
        """Return the results, one per row, in the order of the plan.

        Parameters
        ----------
        experiment : str, optional
            Name of an experiment; by default all. A task that two experiments share then occurs
            twice.

        Returns
        -------
        DataFrame
            ``experiment`` and ``key`` of the task; ``dataset`` (name), ``data`` (title), ``p``,
            ``r``, ``corruption_seed``, ``kind`` and ``noise``, and ``case`` (all of these in
            words), with ``of_case`` planned results per method; ``protocol``, ``repeat`` and
            ``split``; ``method`` (label), ``series`` (label without what is varied), ``estimator``
            (name of the method or baseline), its ``version``, and whether that is ``older`` than
            the code; ``parameters`` and ``scaling``; the number of the ``run``, see
            `Experiment`; ``chosen`` parameters; a column for each metric; ``seconds``,
            ``fit_seconds``, ``n_train`` and ``n_test``.
        """
        frame = self._frame("shown_results", experiment)
        return frame.join(pandas().DataFrame(list(frame.pop("metrics")), index=frame.index))

    def failures(self, experiment: str | None = None) -> DataFrame:
        """Return the tasks that failed and have no result yet, in the order of the plan.

        Parameters
        ----------
        experiment : str, optional
            Name of an experiment; by default all.

        Returns
        -------
        DataFrame
            The columns that identify the task, as in `results`; ``reason`` (error, time limit or
            killed), a ``message`` of one line, and the ``seconds`` until the failure.
        """
        return self._frame("shown_failures", experiment)

    def planned(self, experiment: str | None = None) -> DataFrame:
        """Return all planned tasks, in the order of the plan.

        Parameters
        ----------
        experiment : str, optional
            Name of an experiment; by default all.

        Returns
        -------
        DataFrame
            The columns that identify the task, as in `results`.
        """
        return self._frame("planned", experiment)

    def finished_keys(self, experiment: str) -> tuple[set[str], set[str]]:
        """Return the keys of an experiment's tasks that have a result, and of those that failed.

        Parameters
        ----------
        experiment : str
            Name of the experiment.

        Returns
        -------
        done, failed : sets of str
        """
        query = "SELECT DISTINCT key FROM plans JOIN {} USING (key) WHERE experiment = ?"
        found = (self._read(query.format(name), experiment) for name in ("results", "failures"))
        done, failed = ({key for (key,) in rows} for _, rows in found)
        return done, failed

    def _frame(self, view: str, experiment: str | None) -> DataFrame:
        chosen = "WHERE ? IS NULL OR experiment = ? ORDER BY experiment, position"
        names, rows = self._read(f"SELECT * FROM {view} {chosen}", experiment, experiment)
        frame = pandas().DataFrame(rows, columns=names).drop(columns=["position", "titles"])
        frame = frame.astype({"p": float, "r": "Int64", "corruption_seed": "Int64"})
        today = {name: method_version(name) for name in frame["estimator"].unique()}
        now = frame["estimator"].map(today).astype(float)
        return frame.assign(older=now.isna() | (frame["version"] < now))

    def _read(self, query: str, *values: object) -> tuple[list[str], list[Any]]:
        with _explained(self.path):
            cursor = self._connection.execute(query, values)
            return [entry[0] for entry in cursor.description], cursor.fetchall()

    # -- writing ---------------------------------------------------------------------------

    def begin_run(
        self, specification: Specification, tasks: Iterable[Task], absent: Iterable[str]
    ) -> int:
        """Write the plan of a run.

        It replaces an earlier plan of the same name; results are kept.

        Parameters
        ----------
        specification : Specification
            The experiment.
        tasks : iterable of Task
            All of its tasks.
        absent : iterable of str
            Data sets whose files are missing.

        Returns
        -------
        int
            Number of the run.
        """
        name, planned = specification.name, list(tasks)
        with self._transaction() as connection:
            self._insert("experiments", _described(specification, list(absent)), "OR REPLACE")
            keys = ((task.key, task.definition) for task in planned)
            connection.executemany("INSERT OR IGNORE INTO tasks VALUES (?, ?)", keys)
            connection.execute("DELETE FROM plans WHERE experiment = ?", (name,))
            rows = ((name, i, t.key, t.label, t.series, t.repeat) for i, t in enumerate(planned))
            connection.executemany("INSERT INTO plans VALUES (?, ?, ?, ?, ?, ?)", rows)
            began: Values = {"experiment": name, "started": _now(), "environment": _environment()}
            return self._insert("runs", began)

    def end_run(self, run: int) -> None:
        """Write that a run has ended.

        Parameters
        ----------
        run : int
            Its number.
        """
        with self._transaction() as connection:
            connection.execute("UPDATE runs SET ended = ? WHERE id = ?", (_now(), run))

    def add_result(self, run: int, key: str, measurement: Mapping[str, object]) -> None:
        """Write the result of a task, in one transaction.

        Parameters
        ----------
        run : int
            Number of the run.
        key : str
            Key of the task.
        measurement : dict
            What `skpll.experiments.work.measure` returns.

        Raises
        ------
        StoreError
            If it can't be written.
        """
        with self._transaction() as connection:
            self._insert("results", {"key": key, "run": run, "finished": _now(), **measurement})
            connection.execute("DELETE FROM failures WHERE key = ?", (key,))

    def add_failure(self, run: int, key: str, reason: str, message: str, seconds: float) -> None:
        """Write that a task failed.

        Parameters
        ----------
        run : int
            Number of the run.
        key : str
            Key of the task.
        reason : {"error", "time limit", "killed"}
            Why it failed.
        message : str
            One line about the failure.
        seconds : float
            Time until the failure.
        """
        about: Values = {"reason": reason, "message": message, "seconds": seconds}
        with self._transaction():
            row = {"key": key, "run": run, "finished": _now(), **about}
            self._insert("failures", row, "OR REPLACE")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Prevent other runs from writing; reading stays possible.

        The lock is a transaction on a file beside the store, which the operating system ends with
        the process.

        Raises
        ------
        StoreError
            If another run has the lock.
        """
        path = self.path.with_name(f"{self.path.name}-lock")
        options: dict[str, Any] = {"timeout": 0, "isolation_level": None}
        with _explained(self.path), closing(sqlite3.connect(path, **options)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            try:
                yield
            finally:
                with suppress(OSError):  # Windows does not remove open files
                    path.unlink()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with _explained(self.path), self._connection as connection:
            yield connection

    def _insert(self, table: str, row: Values, conflict: str = "") -> int:
        """Write a row; dicts and lists are written as JSON."""
        columns, marks = ", ".join(row), ", ".join("?" * len(row))
        values = [
            json.dumps(value, default=_plain) if isinstance(value, dict | list) else value
            for value in row.values()
        ]
        query = f"INSERT {conflict} INTO {table} ({columns}) VALUES ({marks})"
        return self._connection.execute(query, values).lastrowid or 0


def _reading_mode(path: Path) -> str:
    """Return how SQLite may open a store for reading.

    Its write-ahead log needs a file beside the store even for reading. Where that can't be created,
    no run can be writing, and the store is read without it.
    """
    writable = os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK)
    return "mode=rw" if writable else "mode=ro&immutable=1"


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into one line with the remedy."""
    try:
        yield
    except (json.JSONDecodeError, RecursionError, msgspec.ValidationError) as error:
        raise StoreError(f"{path}: is damaged ({error}); restore it from a copy.") from None
    except sqlite3.DatabaseError as error:
        name = getattr(error, "sqlite_errorname", "")
        if name == "SQLITE_NOTADB":
            raise ValueError(f"{path}: not a store of skpll; choose another file.") from None
        remedies = {
            "SQLITE_FULL": "the disk is full; make room (earlier results are safe)",
            "SQLITE_READONLY": "can't be written; check its permissions and those of its folder",
            "SQLITE_CANTOPEN": "can't be opened; check that its folder exists and can be written",
            "SQLITE_BUSY": "another run is writing to it; wait for it, or choose another store",
            "SQLITE_CORRUPT": "is damaged; restore it from a copy",
        }
        fitting = (text for start, text in remedies.items() if name.startswith(start))
        raise StoreError(f"{path}: {next(fitting, str(error))}.") from None


def _described(specification: Specification, absent: list[str]) -> Values:
    """Return the row of an experiment: all that is needed to show its results."""
    data = specification.data
    same = ("name", "text", "quick", "title", "kind", "over", "reference", "collection")
    chosen = any(m.grid for m in specification.methods) or any(d.scaling == "auto" for d in data)
    return {
        **{name: getattr(specification, name) for name in same},
        "absent": absent,
        "protocol": str(specification.protocol),
        "selection": str(specification.selection) if chosen else None,
        "titles": {entry.name: entry.title for entry in data},
    }


def _plain(value: Any) -> object:
    """Convert NumPy's numbers and arrays to Python's."""
    return value.tolist()


def _environment() -> Values:
    """Describe the interpreter, the machine and the versions of the packages that matter."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": _processor(),
        "cpu_count": os.cpu_count(),
        "commit": _commit(),
        "versions": {"skpll": skpll.__version__} | {name: version(name) for name in _PACKAGES},
    }


def _processor() -> str:
    """Return the name of the processor, as far as the system tells."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _commit() -> str | None:
    """Return the commit of the code, with a plus if files were changed since; None if unknown."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(Path(skpll.__file__).parent), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "__init__.py")
        changed = git("status", "--porcelain", ".")
        return git("rev-parse", "--short=10", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):  # no git, or not a checkout
        return None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
