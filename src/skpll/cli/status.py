"""`skpll status`: how far the experiments of a store are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .exits import say
from .options import AsJson
from .output import print_frame, print_json, print_table

if TYPE_CHECKING:
    from skpll.experiments.tables import Content
    from skpll.tables._extra import Plain


def status(
    store: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, help="The file with the results.")
    ],
    as_json: AsJson = False,
) -> None:
    """Show how far each experiment is, which tasks failed and why, and which data are missing.

    Example: skpll status results.db
    """
    from skpll.experiments import Store
    from skpll.experiments.tables import Content, failures, versions

    with Store.open(store, read_only=True) as opened:
        content = Content.read(opened)
    found = [_summary(content.of(experiment)) for experiment in content.experiments]
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
    for experiment in content.experiments:
        results = content.of(experiment).results
        if results["older"].any():
            print_frame(versions(results, experiment))
        for name in experiment.absent:
            say(f"{experiment.name}: {name} is not here: skpll data fetch {name}")
    if len(content.failures):
        print_frame(failures(content))


def _summary(content: Content) -> Plain:
    """Describe one experiment; a task that it has under two labels counts once."""
    from skpll.experiments.tables import failures, versions

    (experiment,) = content.experiments
    done, failed = (frame.drop_duplicates("key") for frame in content[1:])
    about = {name: getattr(experiment, name) for name in ("name", "title", "quick", "planned")}
    return {
        **about,
        "done": len(done),
        "older": int(done["older"].sum()),
        "failed": len(failed),
        "left": experiment.planned - len(done) - len(failed),
        "seconds": float(done["seconds"].sum()),
        "absent": experiment.absent,
        "failures": failures(content).to_dict("records"),
        "versions": versions(done, experiment).to_dict("records"),
        "runs": experiment.runs,
    }
