"""Run tasks on a Dask cluster.

Each thread of a Dask worker has a seat: the time limit holds there too, and what a task does to its
process does not reach the Dask worker. A Dask worker that dies is not the fault of its tasks: they
are done again elsewhere.
"""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any

import skpll
from skpll._extra import need

from .pool import Attempt, Seat, Settings, WorkerStartError
from .tasks import Task

__all__ = ["run_on_cluster"]

_PATIENCE = 15  # seconds to wait for the scheduler

_seats: dict[tuple[int, Settings], Seat] = {}  # of this Dask worker, one a thread and run


def run_on_cluster(
    tasks: Sequence[Task], settings: Settings, scheduler: str | None
) -> Generator[tuple[Task, Attempt], None, None]:
    """Do tasks on a Dask cluster.

    Parameters
    ----------
    tasks : sequence of Task
        What is to be done.
    settings : Settings
        How.
    scheduler : str or None
        Address of the scheduler, such as ``"tcp://host:8786"``; None starts a cluster of
        `settings.jobs` threads in this process.

    Yields
    ------
    task : Task
        A task, in the order in which they are done.
    attempt : Attempt
        What came of it.
    """
    if not tasks:
        return
    with _client(scheduler, settings.jobs) as client:
        _check_versions(client)
        submit = partial(client.map, _attempt_here, settings=settings, pure=False)
        try:
            futures = dict(zip(submit(tasks), tasks, strict=True))
            done = _distributed().as_completed(futures)
            for future in done:
                task, attempt = futures.pop(future), _attempt_of(future)
                if attempt is not None:
                    yield task, attempt
                elif client.status == "running":
                    (again,) = submit([task])
                    futures[again] = task
                    done.add(again)
                else:
                    raise OSError("the client is closed")
        except WorkerStartError:
            raise
        except OSError:
            raise OSError(
                "the connection to the Dask scheduler was lost; what is done is in the store."
            ) from None
        finally:
            with suppress(Exception):  # the cluster may be gone by now
                client.run(_close_seats, settings)


def _attempt_of(future: Any) -> Attempt | None:
    """Say why there is no result; None if it was lost together with the worker that had it."""
    distributed = _distributed()
    try:
        return future.result()
    except (distributed.CancelledError, CancelledError):
        return None
    except (WorkerStartError, distributed.comm.CommClosedError):
        raise
    except distributed.KilledWorker:
        return Attempt(None, "killed", "several Dask workers died while doing it", 0.0)
    except Exception as error:
        return Attempt(None, "error", f"{type(error).__name__}: {error}", 0.0)


def _attempt_here(task: Task, settings: Settings) -> Attempt:
    """Do a task in the seat of this thread of a Dask worker."""
    # A nanny forbids its worker to have children; ours end with the worker, whatever happens.
    multiprocessing.current_process()._config.pop("daemon", None)  # type: ignore[attr-defined]
    place = (threading.get_ident(), settings)
    if place not in _seats:
        _seats[place] = Seat(settings, owns_folder=False)
    return _seats[place].attempt(task)


def _close_seats(settings: Settings) -> None:
    """End the processes of a run on this Dask worker; other runs keep theirs."""
    for place in [place for place in _seats if place[1] == settings]:
        _seats.pop(place).close()


def _version() -> str:
    return skpll.__version__


def _check_versions(client: Any) -> None:
    """Refuse workers that would do something else than this version does."""
    try:
        versions = client.run(_version)
    except ModuleNotFoundError as error:
        raise OSError(
            f"a Dask worker lacks the module {error.name}; install skpll there."
        ) from None
    for worker, version in versions.items():
        if version != skpll.__version__:
            raise ValueError(
                f"the Dask worker {worker} has skpll {version}, but this is {skpll.__version__}; "
                "install the same version everywhere."
            )


def _distributed() -> Any:
    return need("distributed", "the backend dask needs one more package", "dask")


@contextmanager
def _client(scheduler: str | None, jobs: int) -> Iterator[Any]:
    distributed = _distributed()
    with ExitStack() as stack:
        if scheduler is None:  # work is done in processes of its own: threads wait for them
            threads = {"n_workers": 1, "threads_per_worker": jobs, "processes": False}
            here = distributed.LocalCluster(**threads, dashboard_address=":0")
            yield stack.enter_context(distributed.Client(stack.enter_context(here)))
            return
        try:
            client = distributed.Client(scheduler, timeout=_PATIENCE)
        except (OSError, ValueError) as error:
            raise OSError(f"there is no Dask scheduler at {scheduler}: {error}.") from None
        yield stack.enter_context(client)
