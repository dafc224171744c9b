"""`skpll status`: how far the experiments of a store are."""

from __future__ import annotations

from collections.abc import Callable
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
    shown = ["name", "title", "planned", "done", "older", "failed", "left"]
    print_table(
        f"Experiments in {store}",
        [*shown, "hours", "last run"],
        [
            [*(e[key] for key in shown), e["seconds"] / 3600, e["runs"][-1]["started"]]
            for e in found
        ],
    )
    _print_all(
        "Results that are older than the code; run the experiment again to do them anew",
        found,
        "versions",
        ["method", "version", "code", "results"],
        lambda version: version["older"],
    )
    for entry in found:
        for name in entry["absent"]:
            console().print(f"{entry['name']}: {name} is not here: skpll data fetch {name}")
    columns = ["method", "dataset", "reason", "message", "tasks"]
    _print_all("Failures", found, "failures", columns)


def _print_all(
    title: str,
    experiments: list[dict[str, Any]],
    key: str,
    columns: list[str],
    wanted: Callable[[dict[str, Any]], bool] = bool,
) -> None:
    """Print the records of all experiments as one table, if there are any."""
    rows = [
        [entry["name"], *(record[column] for column in columns)]
        for entry in experiments
        for record in entry[key]
        if wanted(record)
    ]
    if rows:
        print_table(title, ["experiment", *columns], rows)


def _summary(store: Store, experiment: Experiment) -> dict[str, Any]:
    from skpll.experiments.tasks import method_version

    results = store.results(experiment.name).drop_duplicates("key")
    failures = store.failures(experiment.name).drop_duplicates("key")
    alike = failures.groupby(["method", "dataset", "reason", "message"], sort=False).size()
    versions: Any = results.groupby(["estimator", "version", "older"], sort=False).size()
    versions = versions.reset_index(name="results").rename(columns={"estimator": "method"})
    versions["code"] = [method_version(name) for name in versions["method"]]
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
        "versions": versions.to_dict("records"),
        "runs": experiment.runs,
    }
