"""`skpll status`: how far the experiments of a store are."""

from __future__ import annotations

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
        ["name", "what it is", "planned", "done", "older", "failed", "left", "hours", "last run"],
        [
            [
                *(entry[key] for key in ("name", "title", "planned", "done", "older")),
                *(entry[key] for key in ("failed", "left")),
                entry["seconds"] / 3600,
                entry["runs"][-1]["started"],
            ]
            for entry in found
        ],
    )
    versions = [
        [entry["name"], *version.values()]
        for entry in found
        if entry["older"]
        for version in entry["versions"]
        if version["older"]
    ]
    if versions:
        print_table(
            "Results that are older than the code; run the experiment again to do them anew",
            ["experiment", "method", "version", "the code has", "results"],
            [row[:-1] for row in versions],
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
    from skpll.experiments.tasks import method_version

    results = store.results(experiment.name).drop_duplicates("key")
    failures = store.failures(experiment.name).drop_duplicates("key")
    alike = failures.groupby(["method", "dataset", "reason", "message"], sort=False).size()
    versions: Any = results.groupby(["estimator", "version", "older"], sort=False).size()
    return {
        "name": experiment.name,
        "title": experiment.title,
        "quick": experiment.quick,
        "planned": experiment.planned,
        "done": len(results),
        "older": int(results["older"].sum()),
        "failed": len(failures),
        "left": experiment.planned - len(results) - len(failures),
        "seconds": float(results["seconds"].sum()),
        "absent": experiment.absent,
        "failures": alike.reset_index(name="tasks").to_dict("records"),
        "versions": [
            {
                "method": name,
                "version": int(version),
                "code": method_version(name),
                "results": int(count),
                "older": bool(older),
            }
            for (name, version, older), count in versions.items()
        ],
        "runs": experiment.runs,
    }
