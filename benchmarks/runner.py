"""What the runner of experiments costs beside the work: tasks that do nothing.

python -m benchmarks.runner [--quick]
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.report import Record, main
from skpll.experiments import Specification, Store, Task, plan, run_experiment

TITLE = "The runner's own time, with tasks that do nothing"


def no_work(task: Task, folder: str) -> dict[str, Any]:
    """Return a result at once."""
    del task, folder
    metrics = {"accuracy": 0.5, "balanced_accuracy": 0.5, "covering_rate": 0.5}
    times = {"seconds": 0.0, "fit_seconds": 0.0}
    return {"metrics": metrics, "chosen": {}, **times, "n_train": 1, "n_test": 1, "trace": None}


def specification(n_tasks: int) -> Specification:
    """Return an experiment with `n_tasks` tasks."""
    return Specification.parse(
        f'name = "nothing"\n[protocol]\nfolds = 10\nrepeats = {n_tasks // 10}\n'
        '[[data]]\nname = "iris"\np = 0.5\n[[methods]]\nmethod = "plknn"\n'
    )


def run(quick: bool) -> list[Record]:
    """Time the planning of many tasks, and the running of fewer on each backend."""
    n_planned, n_run = (10_000, 500) if quick else (100_000, 5_000)
    records = [_planning(n_planned)]
    for case, n_tasks, options in (
        ("1 process", n_run, {"jobs": 1}),
        ("2 processes", n_run, {"jobs": 2}),
        ("dask, 2 threads", n_run // 10, {"backend": "dask", "jobs": 2}),
    ):
        records.append(_running(case, n_tasks, options))
    return records


def _planning(n_tasks: int) -> Record:
    wanted = specification(n_tasks)
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "a.db") as store:
        start = time.perf_counter()
        tasks = list(plan(wanted))
        keys = {task.key for task in tasks}
        planned = time.perf_counter() - start
        store.begin_run(wanted, tasks, [])
        written = time.perf_counter() - start
    assert len(keys) == n_tasks
    return {
        "case": "plan, with keys",
        "tasks": n_tasks,
        "seconds": planned,
        "seconds with the store": written,
    }


def _running(case: str, n_tasks: int, options: dict[str, Any]) -> Record:
    """Time from the first result to the last, so that the start of processes does not count."""
    moments: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        run_experiment(
            specification(n_tasks),
            Path(folder) / "a.db",
            progress=lambda _: moments.append(time.perf_counter()),
            work="benchmarks.runner:no_work",
            **options,
        )
    seconds = moments[-1] - moments[1]
    milliseconds = 1000 * seconds / (n_tasks - 1)
    return {"case": case, "tasks": n_tasks, "seconds": seconds, "ms a task": milliseconds}


if __name__ == "__main__":
    main("runner", TITLE, run)
