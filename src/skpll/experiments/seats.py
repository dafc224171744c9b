"""Seats: places where tasks are done, one at a time, each by a process of its own.

A task that hangs or kills its process fails alone: the seat gets a new process for the next one.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

__all__ = ["Attempt", "Seat", "Settings", "WorkerStartError"]

_GRACE = 5.0  # seconds that a process which has closed its output gets to end by itself
_LONGEST_WORDS = 300
_LAST_BYTES = 4096  # of what a process said, among which its last words are looked for

# Several processes share the cores: none may start threads of its own. This has to be said before
# the libraries are loaded, and the same everywhere, so that sums are added up in the same order.
_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)


class WorkerStartError(OSError):
    """A worker process could not start at all, so that no task can be done."""


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
        What does a task, as ``"module:function"``; the function takes the definition of a task
        and the folder.
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
    reason : {"error", "time limit", "killed"} or None
        Why there is none.
    message : str
        One line about it.
    seconds : float
        Time it took.
    """

    measurement: dict[str, Any] | None
    reason: str | None
    message: str
    seconds: float


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
        self._time_limit = settings.time_limit
        self._command = (settings.work, settings.folder, "remove" if owns_folder else "keep")
        self._worker: _Worker | None = None
        self._closed = False
        self._lock = threading.Lock()

    def attempt(self, definition: str) -> Attempt:
        """Do a task, and wait for what comes of it.

        Parameters
        ----------
        definition : str
            The definition of the task, as JSON on one line.

        Returns
        -------
        Attempt

        Raises
        ------
        WorkerStartError
            If no process can be started.
        """
        worker = self._ready_worker()
        start = time.monotonic()
        worker.send(definition)
        try:
            answer = worker.answers.get(timeout=self._time_limit)
        except queue.Empty:
            self._worker = None
            worker.end()
            message = f"stopped after {self._time_limit:g} seconds"
            return Attempt(None, "time limit", message, time.monotonic() - start)
        seconds = time.monotonic() - start
        if answer is None:
            self._worker = None
            return Attempt(None, "killed", worker.end(_GRACE), seconds)
        if "error" in answer:
            return Attempt(None, "error", answer["error"], seconds)
        return Attempt(answer["measurement"], None, "", seconds)

    def close(self) -> None:
        """Kill the process, whatever it is doing; a waiting `attempt` then sees it killed."""
        with self._lock:
            self._closed = True
            worker = self._worker
        if worker is not None:
            worker.end()

    def _ready_worker(self) -> _Worker:
        if self._worker is not None and self._worker.is_alive():
            return self._worker
        with self._lock:
            if self._closed:
                raise WorkerStartError("the run is over.")
            worker = self._worker = _Worker(*self._command)
        if worker.answers.get() is None:
            raise WorkerStartError(f"a worker process could not start: {worker.end(_GRACE)}.")
        return worker


class _Worker:
    """A running process, and a queue of its answers; None in the queue says that it has ended."""

    def __init__(self, *arguments: str) -> None:
        self._lock = threading.Lock()
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-m", "skpll.experiments.worker", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=_environment(),
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C in the terminal does not reach it
        )
        self.answers: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def is_alive(self) -> bool:
        """Whether the process has not ended yet."""
        return self._process.poll() is None

    def send(self, definition: str) -> None:
        """Hand over a task; a process that has died says so in the queue."""
        assert self._process.stdin is not None
        with suppress(OSError, ValueError):
            self._process.stdin.write(definition + "\n")
            self._process.stdin.flush()

    def end(self, grace: float = 0.0) -> str:
        """End the process and all that it started; say in one line how it ended."""
        with self._lock:
            if self._log.closed:
                return "the process was ended"
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(grace)
            if self.is_alive():
                self._kill()
            self._reader.join(_GRACE)
            for stream in (self._process.stdin, self._process.stdout):
                assert stream is not None
                with suppress(OSError):  # what was not sent can't be sent any more
                    stream.close()
            with self._log:
                return self._last_words()

    def _kill(self) -> None:
        if hasattr(os, "killpg"):
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()

    def _last_words(self) -> str:
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - _LAST_BYTES))
        lines = self._log.read().decode("utf-8", errors="replace").split("\n")
        said = next((line.strip() for line in reversed(lines) if line.strip()), "")
        status = self._process.returncode
        ended = f"the process ended with status {status}"
        if status < 0:
            ended = f"the process was ended by {_signal_name(-status)}"
        if status == -9:
            ended += ", perhaps for want of memory"
        return f"{ended}: {said[:_LONGEST_WORDS]}" if said else ended

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.answers.put(json.loads(line))
        self.answers.put(None)


def _environment() -> dict[str, str]:
    """Let a worker find the same modules, and keep it to one thread."""
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)  # noqa: PTH109
    threads = dict.fromkeys(_THREADS, "1")
    return {**os.environ, **threads, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
