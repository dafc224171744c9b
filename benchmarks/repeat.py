"""Whether results can be repeated: some tasks of a store, run again here.

python -m benchmarks.repeat results.db [--each 2] [--seconds 12]
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Iterator

import pandas as pd
from threadpoolctl import threadpool_limits

from skpll.experiments import Specification, Store, Task, absent_data, plan
from skpll.experiments.work import run_task


def known_tasks(store: Store) -> Iterator[Task]:
    """Plan the experiments of a store as the specifications of today say."""
    for experiment in store.experiments():
        specification = Specification.parse(experiment.text, quick=experiment.quick)
        yield from plan(specification, without=absent_data(specification))


def repeat(path: str, each: int, seconds: float) -> pd.DataFrame:
    """Run `each` tasks of each method again, drawn from those that took less than `seconds`."""
    with Store.open(path, read_only=True) as store:
        tasks = {task.key: task for task in known_tasks(store)}
        done = store.results().drop_duplicates("key")
    done = done[done["key"].isin(list(tasks)) & (done["seconds"] < seconds)]
    draw, rows = random.Random(0), []
    with tempfile.TemporaryDirectory() as folder:
        for method, results in done.groupby("method"):
            entries = [row._asdict() for row in results.itertuples()]
            for entry in draw.sample(entries, min(each, len(entries))):
                again = run_task(tasks[entry["key"]], folder)["metrics"]["accuracy"]
                others = round(abs(again - entry["accuracy"]) * entry["n_test"])
                rows.append({"method": method, "case": entry["case"], "examples": others})
                if others:
                    of = entry["n_test"]
                    print(f"{method}, {entry['case']}: {others} of {of} examples", flush=True)
    return pd.DataFrame(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store")
    parser.add_argument("--each", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=12.0)
    given = parser.parse_args()
    with threadpool_limits(1):  # as the processes of a run have
        found = repeat(given.store, given.each, given.seconds)
    if found.empty:
        parser.exit(1, "no result of today's tasks took so little time; raise --seconds.\n")
    same = (found["examples"] == 0).sum()
    print(f"{same} of {len(found)} tasks have the same accuracy.")
