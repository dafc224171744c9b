"""Run tasks in processes of this machine."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Sequence

from .seats import Attempt, Seat, Settings, WorkerStartError
from .tasks import Task

__all__ = ["run_on_this_machine"]


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
    waiting = queue.SimpleQueue[Task]()
    for task in tasks:
        waiting.put(task)
    seats = [Seat(settings, owns_folder=True) for _ in range(min(settings.jobs, len(tasks)))]
    outcomes = queue.SimpleQueue[tuple[Task, Attempt] | WorkerStartError]()
    threads = [
        threading.Thread(target=_serve, args=(seat, waiting, outcomes), daemon=True)
        for seat in seats
    ]
    for thread in threads:
        thread.start()
    try:
        for _ in tasks:
            outcome = outcomes.get()
            if isinstance(outcome, WorkerStartError):
                raise outcome
            yield outcome
    finally:
        for seat in seats:
            seat.close()


def _serve(
    seat: Seat,
    waiting: queue.SimpleQueue[Task],
    outcomes: queue.SimpleQueue[tuple[Task, Attempt] | WorkerStartError],
) -> None:
    """Do the tasks that are waiting until there are none, or the seat is closed."""
    try:
        while True:
            task = waiting.get_nowait()
            outcomes.put((task, seat.attempt(task.text)))
    except queue.Empty:
        return
    except WorkerStartError as error:
        outcomes.put(error)
