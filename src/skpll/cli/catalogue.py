"""`skpll methods`, `skpll data` and `skpll demo`: what there is, and what it finds."""

from __future__ import annotations

import inspect
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options as opt
from .exits import say
from .output import help_if_alone, print_json, print_table, track

if TYPE_CHECKING:
    from skpll.datasets import DatasetInfo

USE, REFERENCES = "Use it ", "References ---------- "
"""How the paragraphs of a docstring begin that say when to use a method, and whose it is."""


def methods(as_json: opt.AsJson = False) -> None:
    """List the methods, with what each one is, when to use it, and its paper.

    Example: skpll methods --json
    """
    from skpll import all_methods

    known = [_describe(name, cls) for name, cls in all_methods().items()]
    if as_json:
        print_json(known)
        return
    print_table(
        "Methods",
        ["name", "what it is", "when to use it", "paper"],
        [[entry["name"], entry["summary"], entry["use"], entry["paper"]] for entry in known],
    )


def _describe(name: str, cls: type) -> dict[str, str]:
    """Read what the docstring of a method says: its first line, its use, its first reference."""
    text = inspect.cleandoc(cls.__doc__ or "")
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]

    def after(beginning: str) -> str:
        found = (text for text in paragraphs if text.startswith(beginning))
        return next(found, "").removeprefix(beginning)

    return {
        "name": name,
        "class": cls.__name__,
        "summary": paragraphs[0].rstrip("."),
        "use": after(USE).rstrip("."),
        "paper": after(REFERENCES),
    }


data = typer.Typer(
    help="List, describe and fetch the data sets known by name.",
    invoke_without_command=True,
    callback=help_if_alone,
)

DataHome = Annotated[
    Path | None, opt.value("FOLDER", "Where to look first, and where to download to.")
]


@data.command("list")
def list_(data_home: DataHome = None, as_json: opt.AsJson = False) -> None:
    """List the data sets, and say which are on this machine.

    Example: skpll data list
    """
    from skpll.datasets import dataset_info, list_datasets

    known = [_data_summary(dataset_info(name), data_home) for name in list_datasets()]
    if as_json:
        print_json(known)
        return
    print_table(
        "Data sets",
        ["name", "what it is", "examples", "features", "classes", "candidates", "here"],
        known,
    )


@data.command()
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", autocompletion=opt.data_set_names)],
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


@data.command()
def fetch(
    names: Annotated[
        list[str],
        opt.argument("NAME", "Data sets, or 'all'.", autocompletion=opt.data_set_names),
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


def _data_summary(info: DatasetInfo, data_home: Path | None) -> dict[str, object]:
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


def demo(
    share: Annotated[
        float,
        opt.value(
            "SHARE", "Share of the training examples that get false candidates.", min=0, max=1
        ),
    ] = 0.8,
    false_labels: Annotated[
        int, opt.number("Number of false candidates that each of them gets.", min=1, max=9)
    ] = 3,
    seed: opt.Seed = 0,
    as_json: opt.AsJson = False,
) -> None:
    """Make the labels of handwritten digits ambiguous, and see which methods find the truth.

    Half of scikit-learn's embedded digits are for training; most of them get false candidate
    labels beside the true one. Every method learns from the candidates, and once more from the
    true labels: that is the best it could do.

    Example: skpll demo --false-labels 5
    """
    from sklearn.model_selection import train_test_split

    from skpll import all_methods
    from skpll._iteration import InterruptedFitWarning
    from skpll.datasets import load_dataset, make_partial_labels

    X, _, y = load_dataset("digits", return_X_S_y=True)
    S = make_partial_labels(y, p=share, r=false_labels, random_state=seed)
    warnings.simplefilter("error", InterruptedFitWarning)  # an interrupt ends the demo, not one fit
    split = train_test_split(X, S, y, test_size=0.5, random_state=seed)
    methods = all_methods()
    results = [
        {"method": methods[name].__name__, **_compare(methods[name], split)}
        for name in track(list(methods), "Learning", compiles=True)
    ]
    if as_json:
        print_json({"share": share, "false_labels": false_labels, "seed": seed, "results": results})
        return
    S_train = split[2]
    print_table(
        f"Handwritten digits: {len(S_train)} training examples, "
        f"{S_train.sizes.mean():.1f} candidate labels each",
        ["method", "test accuracy", "if the truth were known", "training labels found", "seconds"],
        results,
    )
    say(
        "Picking a candidate at random finds "
        f"{(1 / S_train.sizes).mean():.3f} of the training labels."
    )


def _compare(method: type, split: list[Any]) -> dict[str, float]:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X_train, X_test, S_train, _, y_train, y_test = split
    # The first fit may have to compile; the second is timed.
    supervised = make_pipeline(StandardScaler(), method()).fit(X_train, y_train)
    start = time.perf_counter()
    learned = make_pipeline(StandardScaler(), method()).fit(X_train, S_train)
    seconds = time.perf_counter() - start
    return {
        "test_accuracy": learned.score(X_test, y_test),
        "supervised_accuracy": supervised.score(X_test, y_test),
        "training_labels_found": float((learned[-1].transduction_ == y_train).mean()),
        "seconds": seconds,
    }
