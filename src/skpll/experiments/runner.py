"""Run an experiment: what is missing in the store is done, and written there one by one."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass

from joblib import cpu_count

from skpll._extra import need

from .pool import Settings, run_on_cluster, run_on_this_machine
from .specification import Specification, absent_data, plan
from .store import Store, StoreError

__all__ = ["Summary", "run_experiment"]

BACKENDS = ("processes", "dask")
WORK = "skpll.experiments.work:run_task"


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
    _check(backend, scheduler, jobs)
    absent = absent_data(specification)
    tasks = {task.key: task for task in plan(specification, without=absent)}
    if not tasks:
        raise FileNotFoundError(
            f"{specification.name}: none of its data sets is on this machine; get them with "
            f"skpll data fetch {' '.join(absent)}."
        )
    if work == WORK and any(task.method == "deep" for task in tasks.values()):
        need("torch", "deep networks need torch", "deep")
    with ExitStack() as stack:
        if not isinstance(store, Store):
            store = stack.enter_context(Store.open(store))
        stack.enter_context(store.lock())
        run = store.begin_run(specification, tasks.values(), absent)
        stack.callback(_end_run, store, run)
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


def _check(backend: str, scheduler: str | None, jobs: int) -> None:
    if backend not in BACKENDS:
        raise ValueError(f"backend: {backend!r} is unknown; choose {' or '.join(BACKENDS)}.")
    if scheduler is not None and backend != "dask":
        raise ValueError("scheduler: goes with the backend dask only.")
    if jobs != -1 and jobs < 1:
        raise ValueError(f"jobs: {jobs} is not a number of processes; give 1 or more, or -1.")


def _end_run(store: Store, run: int) -> None:
    with suppress(StoreError):  # a store that can't be written was reported already
        store.end_run(run)
