"""Tasks: the independent pieces of work of an experiment."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from .specification import DataEntry, MethodEntry, Specification

__all__ = ["Task", "absent_data", "plan"]

_WITHOUT_EFFECT = ("verbose", "n_jobs")


@dataclass(frozen=True)
class Task:
    """One method on one division of one data set.

    Attributes
    ----------
    label : str
        What the experiment calls the method; does not change the result.
    series : str
        The label without the parameters that are varied.
    repeat : int
        The repetition; the seed of the division says the same.
    definition : dict
        All that the result depends on: data set, corruption, division into training and test
        part, method, parameters, the defaults of the others (which may change from one version to
        the next), grid, scaling, features, selection and trace.

    Examples
    --------
    >>> from skpll.experiments import Specification, plan
    >>> tasks = list(plan(Specification.read("table3")))
    >>> tasks[0].label, tasks[0].definition["dataset"], len(tasks[0].key)
    ('SP-PLL', 'lost', 32)
    """

    label: str
    series: str = field(compare=False)
    repeat: int = field(compare=False)
    definition: dict[str, Any]

    @cached_property
    def text(self) -> str:
        """The definition as canonical JSON."""
        return json.dumps(self.definition, sort_keys=True, separators=(",", ":"))

    @cached_property
    def key(self) -> str:
        """A hash of the definition: 32 hexadecimal digits.

        Tasks of different experiments that would give the same result have the same key.
        """
        return hashlib.sha256(self.text.encode()).hexdigest()[:32]


def plan(specification: Specification, *, without: Iterable[str] = ()) -> Iterator[Task]:
    """Expand a specification to its tasks.

    Parameters
    ----------
    specification : Specification
        The experiment.
    without : collection of str
        Data sets to leave out, for instance `absent_data`.

    Yields
    ------
    Task
        Division by division, so that a run that ends early has seen all data sets and methods.
    """
    left_out = set(without)
    work = [
        (_of_data(entry, corruption), variants)
        for entry in specification.data
        if entry.name not in left_out
        for variants in [_variants(specification, entry)]
        for corruption in entry.corruptions()
    ]
    for repeat, number in specification.protocol.divisions():
        split = specification.protocol.division(repeat, number)
        for data, variants in work:
            for label, series, of_method in variants:
                yield Task(label, series, repeat, {**data, "split": split, **of_method})


def absent_data(specification: Specification) -> list[str]:
    """Names of the data sets whose files are not on this machine.

    Parameters
    ----------
    specification : Specification
        The experiment.

    Returns
    -------
    list of str
    """
    from skpll.datasets import dataset_info, find_dataset

    return [
        entry.name
        for entry in specification.data
        if dataset_info(entry.name).file_name is not None and find_dataset(entry.name) is None
    ]


def _variants(
    specification: Specification, entry: DataEntry
) -> list[tuple[str, str, dict[str, Any]]]:
    """Label, series and definition of every method that runs on a data set."""
    return [
        (label, method.label, _of_method(specification, method, parameters))
        for method in specification.methods
        if method.data is None or entry.name in method.data
        for label, parameters in method.variants()
    ]


def _of_data(
    entry: DataEntry, corruption: tuple[float | None, int | None, int | None]
) -> dict[str, Any]:
    p, r, seed = corruption
    return {
        "dataset": entry.name,
        "rows": entry.rows,
        "p": p,
        "r": r,
        "corruption_seed": seed,
        "scaling": entry.scaling,
    }


def _of_method(
    specification: Specification, method: MethodEntry, parameters: dict[str, Any]
) -> dict[str, Any]:
    from skpll import all_methods

    chosen = specification.selection
    selection = {"folds": chosen.folds, "seed": chosen.seed, "scoring": chosen.scoring}
    return {
        "method": method.method,
        "parameters": parameters,
        "defaults": {
            name: value
            for name, value in all_methods()[method.method]().get_params().items()
            if name not in {*parameters, *method.grid, *_WITHOUT_EFFECT}
        },
        "grid": method.grid,
        "features": method.features,
        "selection": selection if method.grid else None,
        "trace": specification.trace,
    }
