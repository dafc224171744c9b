"""Where tasks are done: in processes of this machine, which may hang or die without harm to others.

The standard library keeps the pool: a `ThreadPoolExecutor`, each of whose threads has a *seat*, one
`multiprocessing.Process` that does its tasks one after the other. A task that takes too long or
kills its process fails alone: its seat gets a new process for the next one.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import pickle
import select
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .tasks import Task

__all__ = ["Attempt", "Seat", "Settings", "WorkerStartError", "run_on_this_machine"]

_LONGEST_MESSAGE = 500
_LAST_BYTES = 4096  # of what a process said, among which its last words are looked for
_UNGUARDED = "a script has to call it below its line `if __name__ == '__main__':`"
_GRACE = 5.0  # seconds that a process gets to end by itself

# Several processes share the cores: none may start threads of its own, so that sums are added up
# in the same order everywhere.
_LIBRARIES = ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "BLIS_NUM", "VECLIB_MAXIMUM", "NUMBA_NUM")


class WorkerStartError(OSError):
    """A process could not start at all, so that no task can be done."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How tasks are done.

    Attributes
    ----------
    jobs : int
        How many at a time, on this machine.
    time_limit : float
        Seconds that one may take.
    work : str
        What does a task, as ``"module:function"``; the function takes a `Task` and the folder.
    folder : str
        Where prepared data are shared.
    """

    jobs: int
    time_limit: float
    work: str
    folder: str


@dataclass(frozen=True)
class Attempt:
    """What came of a task.

    Attributes
    ----------
    measurement : dict or None
        The result; None if there is none.
    reason : {"error", "time limit", "killed", ""}
        Why there is none.
    message : str
        One line about it.
    seconds : float
        Time it took.
    """

    measurement: dict[str, Any] | None
    reason: str
    message: str
    seconds: float


def run_on_this_machine(
    tasks: Sequence[Task], settings: Settings
) -> Generator[tuple[Task, Attempt], None, None]:
    """Do tasks in processes of this machine, `settings.jobs` at a time.

    Parameters
    ----------
    tasks : sequence of Task
        What is to be done.
    settings : Settings
        How.

    Yields
    ------
    task : Task
        A task, in the order in which they are done.
    attempt : Attempt
        What came of it.
    """
    seats: list[Seat] = []
    of_this_thread = threading.local()

    def sit_down() -> None:
        of_this_thread.seat = Seat(settings, owns_folder=True)
        seats.append(of_this_thread.seat)

    def attempt(task: Task) -> Attempt:
        return of_this_thread.seat.attempt(task)

    threads = ThreadPoolExecutor(settings.jobs, initializer=sit_down)
    try:
        futures = {threads.submit(attempt, task): task for task in tasks}
        for future in as_completed(futures):
            yield futures.pop(future), future.result()
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
        for seat in seats:
            seat.close()
        threads.shutdown()


class Seat:
    """A place where tasks are done, one after the other.

    Parameters
    ----------
    settings : Settings
        What does a task, where data are shared, and how long a task may take.
    owns_folder : bool
        Whether the folder is to be removed if the process that has the seat dies.
    """

    def __init__(self, settings: Settings, *, owns_folder: bool) -> None:
        self._settings = settings
        self._owns_folder = owns_folder
        self._process: Any = None
        self._connection: Any = None
        self._log = Path()
        self._answered: Callable[[float], Any] = bool
        self._closed = False
        self._lock = threading.Lock()

    def attempt(self, task: Task) -> Attempt:
        """Do a task, and wait for what comes of it.

        Parameters
        ----------
        task : Task
            The task.

        Returns
        -------
        Attempt

        Raises
        ------
        WorkerStartError
            If no process can be started.
        """
        if self._process is None or not self._process.is_alive():
            self._start()
        start = time.monotonic()
        try:
            self._connection.send_bytes(pickle.dumps(task))
            if not self._answered(self._settings.time_limit):
                self._end()
                message = f"stopped after {self._settings.time_limit:g} seconds"
                return Attempt(None, "time limit", message, time.monotonic() - start)
            measurement, error = pickle.loads(self._connection.recv_bytes())
        except (EOFError, OSError):
            seconds = time.monotonic() - start
            return Attempt(None, "killed", self._end(_GRACE), seconds)
        seconds = time.monotonic() - start
        return Attempt(measurement, "error" if error else "", error, seconds)

    def close(self) -> None:
        """Kill the process, whatever it is doing; a waiting `attempt` then sees it killed."""
        with self._lock:
            self._closed = True
            self._kill()

    def _start(self) -> None:
        self._end()
        context = multiprocessing.get_context("spawn")
        with self._lock:
            if self._closed:
                raise WorkerStartError("the run is over.")
            self._connection, theirs = context.Pipe()
            folder = self._settings.folder
            handle, log = tempfile.mkstemp(dir=folder if Path(folder).is_dir() else None)
            os.close(handle)
            self._log = Path(log)
            self._process = context.Process(
                target=_serve, args=(theirs, self._settings, log, self._owns_folder), daemon=True
            )
            self._process.start()
            theirs.close()
        self._answered = self._connection.poll
        if hasattr(select, "poll"):  # the same at a tenth of the price
            poll = select.poll()
            poll.register(self._connection, select.POLLIN)
            self._answered = lambda seconds: poll.poll(1000 * seconds)
        try:
            error = self._connection.recv()
        except (EOFError, OSError):
            error = f"{self._end(_GRACE)} ({_UNGUARDED})"
        if error:
            raise WorkerStartError(f"a worker process could not start: {error}.")

    def _kill(self) -> None:
        if self._process is not None and self._process.is_alive():
            if hasattr(os, "killpg"):
                with suppress(OSError):  # it and all that it started
                    os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()

    def _end(self, grace: float = 0.0) -> str:
        """End the process; say in one line how it ended."""
        with self._lock:
            if self._process is None:
                return ""
            self._process.join(grace)
            self._kill()
            self._process.join()
            self._connection.close()
            said, status = _last_line(self._log), self._process.exitcode
            self._process = None
        ended = f"the process ended with status {status}"
        if status < 0:
            names = (known.name for known in signal.Signals if known == -status)
            ended = f"the process was ended by {next(names, f'signal {-status}')}"
        if status == -9:
            ended += ", perhaps for want of memory"
        return f"{ended}: {said}" if said else ended


def _last_line(log: Path) -> str:
    """Give the last line that a process said, and forget the others."""
    try:
        said = log.read_bytes()[-_LAST_BYTES:].decode("utf-8", errors="replace").split("\n")
        log.unlink()
    except OSError:  # its folder is gone already
        return ""
    return next((line.strip() for line in reversed(said) if line.strip()), "")[:_LONGEST_MESSAGE]


# -- in the process ------------------------------------------------------------------------


def _serve(connection: Any, settings: Settings, log: str, owns_folder: bool) -> None:
    """Do tasks until the process is killed, or the one that started it is."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the one who started us
    if hasattr(os, "setsid"):
        os.setsid()
    with Path(log).open("ab", buffering=0) as words:  # what a method prints is not for the screen
        os.dup2(words.fileno(), 1)
        os.dup2(words.fileno(), 2)
    threading.Thread(target=_watch, args=(settings.folder, owns_folder), daemon=True).start()
    os.environ.update({f"{name}_THREADS": "1" for name in _LIBRARIES})
    from threadpoolctl import threadpool_limits

    module, _, name = settings.work.partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
        threadpool_limits(1)  # of libraries that were loaded before the environment said so
    except Exception as error:
        connection.send(_message(error))
        return
    connection.send("")
    while True:
        task = pickle.loads(connection.recv_bytes())
        try:
            answer = function(task, settings.folder), ""
        except Exception as error:
            answer = None, _message(error)
        connection.send_bytes(pickle.dumps(answer))


def _watch(folder: str, owns_folder: bool) -> None:
    """End with the process that started this one, however that dies."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    if owns_folder:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def _message(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST_MESSAGE]
