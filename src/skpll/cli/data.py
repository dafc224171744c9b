"""`skpll data`: the data sets that the project knows by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .exits import say
from .options import AsJson, data_set_names
from .output import help_if_alone, print_json, print_table, track

if TYPE_CHECKING:
    from skpll.datasets import DatasetInfo

app = typer.Typer(
    help="List, describe and fetch the data sets known by name.",
    invoke_without_command=True,
    callback=help_if_alone,
)

DataHome = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Where to look first, and where to download to."),
]


@app.command("list")
def list_(data_home: DataHome = None, as_json: AsJson = False) -> None:
    """List the data sets, and say which are on this machine.

    Example: skpll data list
    """
    from skpll.datasets import dataset_info, list_datasets

    known = [_summary(dataset_info(name), data_home) for name in list_datasets()]
    if as_json:
        print_json(known)
        return
    print_table(
        "Data sets",
        ["name", "what it is", "examples", "features", "classes", "candidates", "here"],
        [list(entry.values()) for entry in known],
    )


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", autocompletion=data_set_names)],
    data_home: DataHome = None,
) -> None:
    """Describe a data set: origin, licence, characteristics, and where its file is.

    Example: skpll data show lost
    """
    from skpll.datasets import dataset_info, describe_dataset, find_dataset

    info = dataset_info(name)
    say(describe_dataset(info.name))
    if info.file_name is None:
        say("It comes with scikit-learn.")
        return
    path = find_dataset(info.name, data_home=data_home)
    say(f"File: {path}" if path else f"File: not here; get it with skpll data fetch {info.name}")


@app.command()
def fetch(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME", help="Data sets, or 'all'.", autocompletion=data_set_names),
    ],
    data_home: DataHome = None,
) -> None:
    """Put the files of data sets on this machine, checked against their hashes.

    Example: skpll data fetch lost msrcv2
    """
    from skpll.datasets import dataset_info, fetch_dataset, list_datasets

    wanted = list_datasets() if names == ["all"] else [dataset_info(name).name for name in names]
    files = [name for name in wanted if dataset_info(name).file_name is not None]
    for name in track(files, "Fetching"):
        say(f"{name}: {fetch_dataset(name, data_home=data_home)}")
    for name in wanted:
        if name not in files:
            say(f"{name}: comes with scikit-learn")


def _summary(info: DatasetInfo, data_home: Path | None) -> dict[str, object]:
    from skpll.datasets import find_dataset

    here = info.file_name is None or find_dataset(info.name, data_home=data_home) is not None
    return {
        "name": info.name,
        "task": info.task,
        "examples": info.n_samples,
        "features": info.n_features,
        "classes": info.n_classes,
        "candidates": info.mean_candidates,
        "here": "yes" if here else "no",
    }
