"""The results of a store as one text in Markdown, with all that is needed to repeat them."""

from __future__ import annotations

import os
from itertools import takewhile
from pathlib import Path
from typing import Any

from .render import render, templates
from .specification import plug_ins
from .store import Store
from .tables import Content, Frame, made

__all__ = ["write_results"]


def write_results(store_path: str | os.PathLike[str], out: str | os.PathLike[str]) -> Path:
    """Write what a store says: tables, the commands that gave them, what is missing and why.

    Parameters
    ----------
    store_path : path-like
        The store.
    out : path-like
        The file to write, in a folder that is made where it is not there; a file that is there
        is replaced.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    FileNotFoundError
        If there is no such store.
    ValueError
        If the file is not a store.
    """
    with Store.open(store_path, read_only=True) as store:
        content = Content.read(store)
        planned, environments = store.planned(), store.environments()
    parts = []
    for name, plug_in in [*reversed(plug_ins().items()), (None, None)]:
        own = [entry for entry in content.experiments if entry.collection == name]
        order = [*getattr(plug_in, "EXPERIMENTS", ()), *(entry.name for entry in own)]
        own.sort(key=lambda entry: order.index(entry.name))
        told = [_section(content.of(entry), planned) for entry in own]
        if told:
            title = getattr(plug_in, "TITLE", "Other experiments")
            about, tables = getattr(plug_in, "ABOUT", ""), _tables(content.of(*own), "store", name)
            parts.append({"title": title, "about": about, "experiments": told, "tables": tables})
    machines = _machines(content.results, environments)
    text = templates().get_template("results.md").render(parts=parts, machines=machines)
    path = Path(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _tables(content: Content, kind: str, collection: str | None) -> list[str]:
    return [render(frame, "md") for _, frame in made(content, kind, collection, "in_results")]


def _section(content: Content, planned: Frame) -> dict[str, Any]:
    """Tell an experiment: what it is, its tables, and what is missing."""
    (experiment,) = content.experiments
    comment = takewhile(lambda line: line.startswith("#"), experiment.text.splitlines())
    planned = planned[planned["experiment"] == experiment.name]
    return {
        "about": experiment,
        "comment": "\n".join(line.lstrip("# ") for line in comment),
        "done": content.results["key"].nunique(),
        "tables": _tables(content, experiment.kind, experiment.collection),
        "missing": _missing(planned, content.results, content.failures),
    }


def _missing(planned: Frame, done: Frame, failures: Frame) -> list[str]:
    """Say why places in a table are empty."""
    if done.empty:
        return ["nothing was run yet"]
    pairs = set(zip(done["case"], done["method"], strict=True))
    wanted = zip(planned["case"], planned["method"], strict=True)
    left = planned[[pair not in pairs for pair in wanted]]
    failed = dict(zip(failures["key"], failures["reason"], strict=True))
    places: dict[str, list[str]] = {}
    for method, rows in left.groupby("method", sort=False):
        why = sorted({failed.get(key, "not run yet") for key in rows["key"]})
        where = f"on {', '.join(sorted(set(rows['data'])))} ({', '.join(why)})"
        places.setdefault(where, []).append(str(method))
    return [f"{', '.join(methods)} {where}" for where, methods in places.items()]


def _machines(results: Frame, environments: dict[int, dict[str, Any]]) -> list[dict[str, Any]]:
    """Tell with what the results were made, and how many with each."""
    found: dict[str, dict[str, Any]] = {}
    tasks = results.drop_duplicates("key")
    for run in tasks["run"]:
        known = environments[run]
        found.setdefault(repr(known), {"results": 0, **known})["results"] += 1
    return sorted(found.values(), key=lambda entry: -entry["results"])
