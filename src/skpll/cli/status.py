"""`skpll status`: how far the experiments of a store are."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .output import AsJson, console, print_json, print_table

if TYPE_CHECKING:
    from skpll.experiments import Experiment, Store


def status(
    store: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, help="The file with the results.")
    ],
    as_json: AsJson = False,
) -> None:
    """Say how far each experiment is, what has failed and why, and which data are not here.

    Example: skpll status results.db
    """
    from skpll.experiments import Store

    with Store.open(store, read_only=True) as opened:
        found = [_summary(opened, experiment) for experiment in opened.experiments()]
    if as_json:
        print_json(found)
        return
    print_table(
        f"Experiments in {store}",
        ["name", "what it is", "planned", "done", "failed", "left", "hours", "last run"],
        [
            [
                *(entry[key] for key in ("name", "title", "planned", "done", "failed", "left")),
                entry["seconds"] / 3600,
                entry["runs"][-1]["started"],
            ]
            for entry in found
        ],
    )
    for entry in found:
        for name in entry["absent"]:
            console().print(f"{entry['name']}: {name} is not here: skpll data fetch {name}")
    failures = [{"experiment": e["name"], **failure} for e in found for failure in e["failures"]]
    if failures:
        print_table(
            "Failures",
            ["experiment", "method", "data", "reason", "message", "tasks"],
            [list(failure.values()) for failure in failures],
        )


def _summary(store: Store, experiment: Experiment) -> dict[str, Any]:
    results = store.results(experiment.name)
    failures = store.failures(experiment.name)
    done = len({result.key for result in results})
    failed = len({failure.key for failure in failures})
    alike = Counter((f.method, f.dataset, f.reason, f.message) for f in failures)
    return {
        "name": experiment.name,
        "title": experiment.title,
        "quick": experiment.specification.quick,
        "planned": experiment.planned,
        "done": done,
        "failed": failed,
        "left": experiment.planned - done - failed,
        "seconds": sum(result.seconds for result in results),
        "absent": experiment.absent,
        "failures": [
            dict(zip(("method", "dataset", "reason", "message"), kind, strict=True)) | {"tasks": n}
            for kind, n in alike.items()
        ],
        "runs": experiment.runs,
    }
