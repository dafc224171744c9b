"""Run an experiment: what is missing in the store is done, and written there one by one.

Pebble keeps the processes that do the tasks. A task that exceeds the time limit or kills its
process fails alone, and a new process takes the place of the one that ended. On a Dask cluster
every Dask worker has such a pool of its own. A Dask worker that dies is not the fault of its tasks:
they run again elsewhere.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Future, as_completed
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from joblib import cpu_count

import skpll
from skpll._extra import Package, need

from .specification import Specification, absent_data, plan
from .store import Store
from .tasks import Task, Values

if TYPE_CHECKING:
    from distributed import Client


WORK = "skpll.experiments.work:run_task"
MAX_MESSAGE_LENGTH = 500
CONNECTION_TIMEOUT = 15  # seconds
_UNGUARDED = "a script has to call it below its line `if __name__ == '__main__':`"

# Several processes share the cores. With one thread per library, sums are added in the same order
# everywhere.
_LIBRARIES = ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "BLIS_NUM", "VECLIB_MAXIMUM", "NUMBA_NUM")


@dataclass(frozen=True)
class Summary:
    """How far a run is.

    Attributes
    ----------
    experiment : str
        Name of the experiment.
    planned : int
        Number of its tasks.
    done : int
        How many of them have a result, from this run or an earlier one.
    failed : int
        How many have failed and have no result.
    todo : int
        How many this run set out to do.
    ran : int
        How many of them it has done, with or without success.
    running : int
        How many it is doing now.
    absent : tuple of str
        Data sets that are not on this machine; their tasks are not planned.

    Examples
    --------
    >>> from skpll.experiments import Summary
    >>> halfway = Summary("mine", planned=8, done=3, failed=1, todo=8, ran=4, running=2, absent=())
    >>> halfway.planned - halfway.done - halfway.failed - halfway.running  # waiting
    2
    """

    experiment: str
    planned: int
    done: int
    failed: int
    todo: int
    ran: int
    running: int
    absent: tuple[str, ...]


def run_experiment(
    specification: Specification | str | os.PathLike[str],
    store: Store | str | os.PathLike[str],
    *,
    jobs: int = 1,
    backend: str = "processes",
    scheduler: str | None = None,
    limit: int | None = None,
    retry_failed: bool = False,
    time_limit: float | None = None,
    progress: Callable[[Summary], None] | None = None,
    work: str = WORK,
) -> Summary:
    """Do the tasks of an experiment that have no result in the store yet.

    Each result is in the store the moment it is there: after an interrupt, a crash or a power cut
    the same call goes on with what is missing. A task that raises an error, takes too long or
    kills its process is written down as a failure, and the others go on.

    Parameters
    ----------
    specification : Specification, path-like or str
        The experiment, its file, or the name of one that comes with the package.
    store : Store or path-like
        Where results go.
    jobs : int, default=1
        How many tasks at a time; −1 for as many as there are cores. Results do not depend on it.
    backend : {"processes", "dask"}, default="processes"
        Processes of this machine, or a Dask cluster.
    scheduler : str, optional
        Address of the scheduler of the Dask cluster; by default a cluster on this machine.
    limit : int, optional
        Maximum number of tasks to run.
    retry_failed : bool, default=False
        Whether tasks that failed in an earlier run are done again.
    time_limit : float, optional
        Seconds that a task may take; by default what the specification says.
    progress : callable, optional
        Called with a `Summary` at the beginning and after each task.
    work : str, optional
        What does a task, as ``"module:function"``, for those who measure something else. The
        function takes a `Task` and a folder, and gives what
        `skpll.experiments.work.measure` gives.

    Returns
    -------
    Summary

    Raises
    ------
    ValueError
        If an argument or the specification is wrong.
    FileNotFoundError
        If none of the data sets is on this machine.
    StoreError
        If the store can't be written; what was written before is safe.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skpll.experiments import Specification, run_experiment
    >>> specification = Specification.parse('''
    ... name = "small"
    ... [protocol]
    ... folds = 2
    ... [[data]]
    ... name = "iris"
    ... p = 0.5
    ... [[methods]]
    ... method = "plknn"
    ... ''')
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     summary = run_experiment(specification, Path(folder) / "results.db")
    >>> summary.planned, summary.done, summary.failed
    (2, 2, 0)
    """
    if not isinstance(specification, Specification):
        specification = Specification.read(specification)
    _check(backend, scheduler, jobs, limit)
    absent = absent_data(specification)
    tasks = {task.key: task for task in plan(specification, without=absent)}
    if not tasks:
        why = f"none of its data sets is on this machine: skpll data fetch {' '.join(absent)}"
        raise FileNotFoundError(f"{specification.name}: {why}")
    if work == WORK and any(task.method == "deep" for task in tasks.values()):
        need("torch", "deep networks need torch", "deep")
    with ExitStack() as stack:
        if not isinstance(store, Store):
            store = stack.enter_context(Store.open(store))
        stack.enter_context(store.lock())
        run = store.begin_run(specification, tasks.values(), absent)
        stack.callback(store.end_run, run)
        done, failed = store.finished_keys(specification.name)
        skipped = done if retry_failed else done | failed
        todo = [task for key, task in tasks.items() if key not in skipped][:limit]
        limit_a_task = specification.defaults.time_limit if time_limit is None else time_limit
        settings = Settings(cpu_count() if jobs == -1 else jobs, limit_a_task, work)

        def summary(ran: int) -> Summary:
            running = min(len(todo) - ran, settings.jobs)
            counts = (len(tasks), len(done), len(failed), len(todo), ran, running)
            return Summary(specification.name, *counts, tuple(absent))

        if backend == "dask":
            outcomes = run_on_cluster(todo, settings, scheduler)
        else:
            outcomes = run_on_this_machine(todo, settings)
        stack.enter_context(closing(outcomes))
        report = progress or (lambda _: None)
        report(summary(0))
        for ran, (task, attempt) in enumerate(outcomes, 1):
            if attempt.measurement is None:
                store.add_failure(run, task.key, attempt.reason, attempt.message, attempt.seconds)
                failed.add(task.key)
            else:
                store.add_result(run, task.key, attempt.measurement)
                done.add(task.key)
                failed.discard(task.key)
            report(summary(ran))
    return summary(len(todo))


def _check(backend: str, scheduler: str | None, jobs: int, limit: int | None) -> None:
    if backend not in ("processes", "dask"):
        raise ValueError(f"backend: {backend!r} is unknown; choose processes or dask.")
    if scheduler is not None and backend != "dask":
        raise ValueError("scheduler: goes with the backend dask only.")
    if limit is not None and limit < 1:
        raise ValueError(f"limit: {limit} is not a number of tasks; give 1 or more.")
    if jobs != -1 and jobs < 1:
        raise ValueError(f"jobs: {jobs} is not a number of processes; give 1 or more, or -1.")


# -- processes of this machine -------------------------------------------------------------


class WorkerStartError(OSError):
    """A worker process could not start at all, so no task can run."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How tasks are run.

    Attributes
    ----------
    jobs : int
        Number of processes on this machine.
    time_limit : float
        Time limit of a task in seconds.
    work : str
        The function that runs a task, as ``"module:function"``. It takes a `Task` and the folder.
    run : str
        Tells one run from another.
    """

    jobs: int
    time_limit: float
    work: str
    run: str = field(default_factory=lambda: uuid.uuid4().hex)


@dataclass(frozen=True)
class Attempt:
    """The outcome of a task.

    Attributes
    ----------
    measurement : dict or None
        The result; None if the task failed.
    reason : {"error", "time limit", "killed", ""}
        Why it failed.
    message : str
        One line about the failure.
    seconds : float
        Time until the failure; 0 where its process is gone.
    """

    measurement: Values | None
    reason: str = ""
    message: str = ""
    seconds: float = 0.0


Attempts: TypeAlias = Generator[tuple[Task, Attempt], None, None]


class _Workers:
    """A pool of worker processes with the settings of a run, and a folder that they share."""

    def __init__(self, settings: Settings, jobs: int) -> None:
        pebble = need("pebble", "experiments run in processes of pebble", "cli")
        self._settings = settings
        self._waiting: set[Future[Attempt]] = set()
        self._folder = tempfile.mkdtemp(prefix="skpll-run-")
        context = multiprocessing.get_context("spawn")
        arguments = (self._folder, settings.work)
        self._pool = pebble.ProcessPool(jobs, 0, _start_worker, arguments, context)

    def submit(self, task: Task) -> Future[Attempt]:
        """Put a task into the queue."""
        limit, arguments = self._settings.time_limit, (task, self._settings.work, self._folder)
        future: Future[Attempt] = self._pool.schedule(_attempt, arguments, timeout=limit)
        self._waiting.add(future)
        return future

    def outcome(self, future: Future[Attempt]) -> Attempt:
        """Wait for a task, and return its result or why there is none."""
        try:
            return future.result()
        except (WorkerStartError, CancelledError):
            raise
        except TimeoutError:
            limit = self._settings.time_limit
            return Attempt(None, "time limit", f"stopped after {limit:g} seconds", limit)
        except BrokenExecutor:
            raise WorkerStartError(f"a worker process could not start ({_UNGUARDED}).") from None
        except Exception as error:
            if hasattr(error, "exitcode"):  # pebble.ProcessExpired
                return Attempt(None, "killed", _how_it_ended(error.exitcode))
            return Attempt(None, "error", _message(error))  # the result can't be pickled
        finally:
            self._waiting.discard(future)

    def close(self) -> None:
        """End all processes, whatever they are doing."""
        for future in list(self._waiting):
            future.cancel()
        self._pool.stop()
        self._pool.join()
        shutil.rmtree(self._folder, ignore_errors=True)


def run_on_this_machine(tasks: Sequence[Task], settings: Settings) -> Attempts:
    """Run tasks in processes of this machine, `settings.jobs` at a time.

    Parameters
    ----------
    tasks : sequence of Task
        The tasks.
    settings : Settings
        How to run them.

    Yields
    ------
    task : Task
        A task, in the order in which they end.
    attempt : Attempt
        Its outcome.
    """
    workers = _Workers(settings, settings.jobs)
    try:
        futures = {workers.submit(task): task for task in tasks}
        for future in as_completed(futures):
            yield futures.pop(future), workers.outcome(future)
    finally:
        workers.close()


def _how_it_ended(status: int) -> str:
    """Describe in one line how a process ended."""
    if status >= 0:
        return f"the process ended with status {status}"
    names = (known.name for known in signal.Signals if known == -status)
    guess = ", perhaps because memory ran out" if status == -9 else ""
    return f"the process was ended by {next(names, f'signal {-status}')}{guess}"


# -- in a worker process -------------------------------------------------------------------


def _start_worker(folder: str, work: str) -> None:
    """Silence output, keep libraries to one thread, watch the parent, and load the work."""
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    threading.Thread(target=_end_with_parent, args=(folder,), daemon=True).start()
    os.environ.update({f"{name}_THREADS": "1" for name in _LIBRARIES})
    with suppress(WorkerStartError):  # the first task says why it can't be loaded
        _load(work)


def _end_with_parent(folder: str) -> None:
    """End this process when its parent ends, even if that is killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def _attempt(task: Task, work: str, folder: str) -> Attempt:
    """Run a task; an error becomes a failure."""
    start, function = time.monotonic(), _load(work)
    try:
        return Attempt(function(task, folder))
    except Exception as error:
        return Attempt(None, "error", _message(error), time.monotonic() - start)


@lru_cache(maxsize=1)
def _load(work: str) -> Callable[[Task, str], Values]:
    from threadpoolctl import threadpool_limits

    module, _, name = work.partition(":")
    try:
        function: Callable[[Task, str], Values] = getattr(import_module(module), name)
    except Exception as error:
        raise WorkerStartError(f"a worker process could not start: {_message(error)}.") from None
    threadpool_limits(1)  # libraries that were loaded before the environment was set
    return function


def _message(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:MAX_MESSAGE_LENGTH]


# -- on a Dask cluster ---------------------------------------------------------------------

_distributed = Package("distributed", "the backend dask needs one more package", "dask")
_of_this_dask_worker: dict[Settings, _Workers] = {}
_starting = threading.Lock()


def run_on_cluster(tasks: Sequence[Task], settings: Settings, scheduler: str | None) -> Attempts:
    """Run tasks on a Dask cluster.

    Parameters
    ----------
    tasks : sequence of Task
        The tasks.
    settings : Settings
        How to run them.
    scheduler : str or None
        Address of the scheduler, such as ``"tcp://host:8786"``; None starts a cluster of
        `settings.jobs` threads in this process.

    Yields
    ------
    task : Task
        A task, in the order in which they end.
    attempt : Attempt
        Its outcome.
    """
    if not tasks:
        return
    with _client(scheduler, settings.jobs) as client:
        _check_versions(client)
        submit = partial(client.map, _attempt_on_cluster, settings=settings, pure=False)
        try:
            futures = dict(zip(submit(tasks), tasks, strict=True))
            completed = _distributed.as_completed(futures)
            for future in completed:
                task, attempt = futures.pop(future), _outcome_on_cluster(future)
                if attempt is not None:
                    yield task, attempt
                elif client.status == "running":
                    (again,) = submit([task])
                    futures[again] = task
                    completed.add(again)
                else:
                    raise OSError("the client is closed")
        except WorkerStartError:
            raise
        except OSError:
            raise OSError(
                "the connection to the Dask scheduler was lost; results are safe"
            ) from None
        finally:
            with suppress(Exception):  # the cluster may have ended
                client.run(_close_workers, settings)


def _outcome_on_cluster(future: Any) -> Attempt | None:
    """Return the outcome of a task; None if it was lost together with its Dask worker."""
    try:
        return future.result()
    except (_distributed.CancelledError, CancelledError):
        return None
    except (WorkerStartError, _distributed.comm.CommClosedError):
        raise
    except _distributed.KilledWorker:
        return Attempt(None, "killed", "several Dask workers died while running it")
    except Exception as error:
        return Attempt(None, "error", _message(error))


def _attempt_on_cluster(task: Task, settings: Settings) -> Attempt:
    """Run a task in the pool of this Dask worker."""
    # A nanny forbids its worker to have children; ours end with the worker, whatever happens.
    multiprocessing.current_process()._config.pop("daemon", None)  # type: ignore[attr-defined]
    with _starting:
        if settings not in _of_this_dask_worker:
            jobs = _distributed.get_worker().state.nthreads
            _of_this_dask_worker[settings] = _Workers(settings, jobs)
    workers = _of_this_dask_worker[settings]
    return workers.outcome(workers.submit(task))


def _close_workers(settings: Settings) -> None:
    """End the processes of a run on this Dask worker; other runs keep theirs."""
    if settings in _of_this_dask_worker:
        _of_this_dask_worker.pop(settings).close()


def _version() -> str:
    return skpll.__version__


def _check_versions(client: Client) -> None:
    """Refuse Dask workers with another version of skpll."""
    try:
        others = set(client.run(_version).values()) - {skpll.__version__}
    except ModuleNotFoundError as error:
        raise OSError(f"a Dask worker lacks {error.name}; install skpll there.") from None
    if others:
        there = ", ".join(others)
        raise ValueError(f"a Dask worker has skpll {there}; install {skpll.__version__} there.")


def _client(scheduler: str | None, jobs: int) -> Client:
    """Connect to a cluster, or start one in this process."""
    if scheduler is None:  # threads are enough: they wait for processes
        local = {"n_workers": 1, "threads_per_worker": jobs, "processes": False}
        return _distributed.Client(**local, dashboard_address=":0")
    return _distributed.Client(scheduler, timeout=CONNECTION_TIMEOUT)
