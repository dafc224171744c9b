"""Experiments as TOML files: what is compared, on which data, under which protocol.

A specification is checked as a whole when it is read: a misspelt key, method, parameter or data
set is an error before anything runs.
"""

from __future__ import annotations

import inspect
import itertools
import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Annotated, Any, Self

from . import _reading as toml
from .data import OwnTable, read_own_table
from .tasks import Division, Selection, known_methods, make_method

__all__ = ["Specification", "plug_ins", "shipped_specifications"]

KINDS = ("table", "curves", "sensitivity")
_Scaling = Annotated[str, toml.one_of("zscore", "minmax", "none", "sqrt", "auto")]
_OWN = ("file", "truth", "candidates", "separator", "features")  # keys of a user's own table
_SIZES = {
    "kfold": ("folds", "repeats"),
    "halves": ("test_size", "repeats"),
    "split": ("test_size",),
}


@dataclass(frozen=True, slots=True)
class Protocol:
    """How the rows are divided into training and test parts, always after shuffling.

    Attributes
    ----------
    kind : {"kfold", "halves", "split"}
        Folds, repeated random parts, or a single division.
    folds : int
        Number of folds; for ``"kfold"``.
    repeats : int
        How often the folds are drawn, or how many random divisions there are. Repetition ``i``
        has the seed ``seed + i``, so that more repetitions keep the earlier ones.
    test_size : float
        Share of the rows that are for testing; not for ``"kfold"``.
    seed : int
        Seed of the first repetition.
    """

    kind: Annotated[str, toml.one_of(*_SIZES)] = "kfold"
    folds: Annotated[int, toml.whole(2)] = 10
    repeats: Annotated[int, toml.whole(1)] = 1
    test_size: Annotated[float, toml.number(0, 1, open_ends=True)] = 0.5
    seed: Annotated[int, toml.whole(0)] = 0

    def divisions(self) -> Iterator[tuple[int, Division]]:
        """Give the repetition and all that defines it, for each division of the rows."""
        for repeat in range(self.repeats):
            seed = self.seed + repeat
            if self.kind != "kfold":
                yield repeat, Division("shuffle", seed, 0, test_size=self.test_size)
                continue
            for split in range(self.folds):
                yield repeat, Division("kfold", seed, split, folds=self.folds)

    def __str__(self) -> str:
        if self.kind == "split":
            return "train/test"
        if self.kind == "halves":
            parts = "halves" if self.test_size == 0.5 else f"splits, {self.test_size:.0%} for tests"
            return f"{self.repeats} random {parts}"
        return f"{self.folds}-fold" if self.repeats == 1 else f"{self.repeats} × {self.folds}-fold"


def _protocol(value: Any, place: str) -> Protocol:
    """Read a protocol; which sizes it has depends on its kind."""
    found = toml.table(Protocol)(value, place)
    for name in value:
        toml.check_name(name, ["kind", "seed", *_SIZES[found.kind]], f"[{place}]")
    ten = found.kind == "halves" and "repeats" not in value
    return replace(found, repeats=10) if ten else found


@dataclass(frozen=True, slots=True)
class DataEntry:
    """A data set, and how its labels are made ambiguous where they are not.

    Attributes
    ----------
    name : str
        Name that `skpll.datasets.load_dataset` knows, or what a file of the user's own is called.
    title : str
        What people call it.
    n_samples : int
        Number of its rows.
    table : OwnTable or None
        The file, for a data set of the user's own.
    rows : int or None
        Take so many rows, drawn once for all; None takes all.
    p : tuple of float
        Shares of the examples that get false candidates; empty for real candidate sets.
    r : tuple of int
        Numbers of false candidates.
    corruption_seeds : tuple of int
        Seeds of the draws of false candidates.
    scaling : {"zscore", "minmax", "none", "sqrt", "auto"}
        How features are scaled; fitted on the training part, or chosen there.
    kind : {"uniform", "pairs", "feature"}
        Where false candidates come from: all alike; every class has another that comes with it in
        seven of ten ambiguous examples; or labels that a model confuses with the truth.
    noise : tuple of float
        Shares of the candidate sets that miss the truth.
    """

    name: Annotated[str, toml.text] = ""
    title: Annotated[str, toml.text] = ""
    rows: Annotated[int | None, toml.whole(2)] = None
    p: Annotated[tuple[float, ...], toml.each(toml.number(0, 1))] = ()
    r: Annotated[tuple[int, ...], toml.each(toml.whole(1))] = ()
    corruption_seeds: Annotated[tuple[int, ...], toml.each(toml.whole(0))] = ()
    scaling: _Scaling = ""
    kind: Annotated[str, toml.one_of("uniform", "pairs", "feature")] = "uniform"
    noise: Annotated[tuple[float, ...], toml.each(toml.number(0, 1))] = (0.0,)
    n_samples: int = 0
    table: OwnTable | None = None

    def corruptions(self) -> list[tuple[float | None, int | None, float, int | None]]:
        """Give all combinations (p, r, noise, seed); a single one for real candidate sets."""
        if not self.p:
            return [(None, None, 0.0, None)]
        return list(itertools.product(self.p, self.r, self.noise, self.corruption_seeds))

    def smaller(self, p: tuple[float, ...], rows: int | None) -> DataEntry:
        """Take other shares, where there are any, and fewer rows, unless there are few."""
        entry = replace(self, p=p) if p and self.p else self
        few = rows is None or rows >= (self.rows or self.n_samples)
        return entry if few else replace(entry, rows=rows)


@dataclass(frozen=True)
class _KernelFeatures:
    nystroem: Annotated[int, toml.whole(1)]


def _features(value: Any, place: str) -> dict[str, int]:
    return {"nystroem": toml.table(_KernelFeatures)(value, place).nystroem}


def _parameters(value: Any, place: str) -> dict[str, Any]:
    return {name: toml.or_none(given) for name, given in toml.mapping(value, place).items()}


def _method(value: Any, place: str) -> str:
    return toml.check_name(value, known_methods(), place, "method")


@dataclass(frozen=True)
class MethodEntry:
    """A method with its parameters.

    Attributes
    ----------
    label : str
        What tables call it.
    method : str
        Its name in `skpll.all_methods` or `skpll.baselines.all_baselines`.
    parameters : dict
        Parameters that are fixed.
    grid : dict
        Lists of values among which inner folds choose.
    vary : dict
        Lists of values, each combination of which is a variant with its own label.
    features : dict
        ``{"nystroem": m}`` puts m features of an RBF kernel between scaling and method.
    data : tuple of str or None
        The data sets it runs on; None for all.
    """

    method: Annotated[str, _method]
    label: Annotated[str, toml.text] = ""
    parameters: Annotated[dict[str, Any], _parameters] = field(default_factory=dict)
    grid: Annotated[dict[str, list[Any]], toml.lists] = field(default_factory=dict)
    vary: Annotated[dict[str, list[Any]], toml.lists] = field(default_factory=dict)
    features: Annotated[dict[str, int], _features] = field(default_factory=dict)
    data: Annotated[tuple[str, ...] | None, toml.each(toml.text)] = None

    def variants(self) -> list[tuple[str, dict[str, Any]]]:
        """Give the label and the fixed parameters of each variant."""
        found = []
        for values in itertools.product(*self.vary.values()):
            varied = dict(zip(self.vary, values, strict=True))
            label = ", ".join([self.label, *(f"{key}={value}" for key, value in varied.items())])
            found.append((label, {**self.parameters, **varied}))
        return found


@dataclass(frozen=True)
class _Defaults:
    scaling: _Scaling = "zscore"
    time_limit: Annotated[float, toml.number(0, open_ends=True)] = 3600.0
    trace: Annotated[bool, toml.flag] = False


def _grids(value: Any, place: str) -> dict[str, dict[str, list[Any]]]:
    grids = toml.mapping(value, place).items()
    return {label: toml.lists(grid, f"{place} {label}") for label, grid in grids}


@dataclass(frozen=True)
class _Quick:
    """What the table [quick] changes."""

    folds: Annotated[int | None, toml.whole(2)] = None
    repeats: Annotated[int | None, toml.whole(1)] = None
    p: Annotated[tuple[float, ...], toml.each(toml.number(0, 1))] = ()
    rows: Annotated[int | None, toml.whole(2)] = None
    data: Annotated[tuple[str, ...], toml.each(toml.text)] = ()
    methods: Annotated[tuple[str, ...], toml.each(toml.text)] = ()
    grids: Annotated[dict[str, dict[str, list[Any]]], _grids] = field(default_factory=dict)


@dataclass(frozen=True)
class Specification:
    """An experiment: data sets, methods and a protocol.

    Most people read one from a file: ``Specification.read("experiment.toml")``. The format is
    described in the documentation ("Experiments").

    Attributes
    ----------
    name : str
        What the store calls the experiment.
    title : str
        What people call it.
    kind : {"table", "curves", "sensitivity"}
        How it is reported.
    over : str or None
        The parameter on the x axis, for ``kind="sensitivity"``.
    reference : str or None
        Label of the method with which the others are compared.
    protocol : Protocol
        Training and test parts.
    selection : Selection
        Choice of parameters.
    time_limit : float
        Seconds that one task may take.
    trace : bool
        Whether to keep a record of each stage of the final fit, where a method has stages.
    data : tuple of DataEntry
        The data sets.
    methods : tuple of MethodEntry
        The methods.
    collection : str or None
        The plug-in that it came with; None for a file of the user's own.
    quick : bool
        Whether the overrides of ``[quick]`` were applied.
    text : str
        The TOML text it was read from.

    Examples
    --------
    >>> from skpll.experiments import Specification
    >>> specification = Specification.read("table3")
    >>> [entry.name for entry in specification.data][:2]
    ['lost', 'msrcv2']
    """

    name: Annotated[str, toml.short_name]
    title: Annotated[str, toml.text] = ""
    kind: Annotated[str, toml.one_of(*KINDS)] = "table"
    over: Annotated[str | None, toml.text] = None
    reference: Annotated[str | None, toml.text] = None
    protocol: Annotated[Protocol, _protocol] = Protocol()
    selection: Annotated[Selection, toml.table(Selection)] = field(default_factory=Selection)
    time_limit: float = 3600.0
    trace: bool = False
    data: tuple[DataEntry, ...] = ()
    methods: tuple[MethodEntry, ...] = ()
    collection: str | None = None
    quick: bool = False
    text: str = ""

    @classmethod
    def read(cls, source: str | os.PathLike[str], *, quick: bool = False) -> Self:
        """Read a specification from a file, or one that comes with the package by its name.

        Parameters
        ----------
        source : path-like or str
            A TOML file, or a name out of `shipped_specifications`.
        quick : bool, default=False
            Whether to apply the table ``[quick]``, which makes the experiment small.

        Returns
        -------
        Specification

        Raises
        ------
        ValueError
            If there is neither such a file nor such a name, or anything in it is wrong; the
            message names the file and the key.

        Examples
        --------
        >>> from skpll.experiments import Specification
        >>> table3 = Specification.read("table3")
        >>> len(table3.methods), str(table3.protocol)
        (24, '10-fold')
        """
        name, path, shipped = os.fspath(source), Path(source), _shipped()
        if name in shipped:
            collection, content = shipped[name]
            return replace(cls.parse(content, quick=quick), collection=collection)
        if not path.is_file():
            raise ValueError(
                f"{name}: there is no such file, and no specification of that name comes with "
                f"skpll; those that do: {', '.join(shipped)}."
            )
        try:
            return cls.parse(path.read_text(encoding="utf-8"), quick=quick, folder=path.parent)
        except UnicodeDecodeError:
            raise ValueError(f"{name}: not a TOML file, which is text in UTF-8.") from None
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None

    @classmethod
    def parse(
        cls, content: str, *, quick: bool = False, folder: str | os.PathLike[str] = "."
    ) -> Self:
        """Read a specification from TOML text.

        Parameters
        ----------
        content : str
            The text.
        quick : bool, default=False
            Whether to apply the table ``[quick]``.
        folder : path-like, default="."
            The folder from which the paths of files are counted.

        Returns
        -------
        Specification

        Raises
        ------
        ValueError
            If anything in it is wrong.
        """
        try:
            top = tomllib.loads(content)
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"not valid TOML: {error}") from None
        if "methods_of" in top:
            _take_methods(top, toml.check_name(top.pop("methods_of"), _shipped(), "methods_of"))
        found = toml.read(cls, top, "", beside=("defaults", "data", "methods", "quick"))
        defaults = toml.table(_Defaults)(top.get("defaults", {}), "defaults")
        data_entry = partial(_data_entry, folder=Path(folder), scaling=defaults.scaling)
        full = replace(
            found,
            title=found.title or found.name,
            time_limit=defaults.time_limit,
            trace=defaults.trace,
            data=toml.several(data_entry)(top.get("data"), "data"),
            methods=toml.several(_method_entry)(top.get("methods"), "methods"),
            quick=quick,
            text=content,
        )
        small = full._shrunk(toml.table(_Quick)(top.get("quick", {}), "quick"))
        full._check()
        small._check()
        return small if quick else full

    def _shrunk(self, quick: _Quick) -> Self:
        """Apply the table [quick]."""
        labels = {method.label: method for method in self.methods}
        names = [entry.name for entry in self.data]
        for name in quick.data:
            toml.check_name(name, names, "[quick] data", "name")
        for name in (*quick.methods, *quick.grids):
            toml.check_name(name, labels, "[quick] methods and grids", "label")
        kept = quick.data or names
        methods = []
        for method in (labels[label] for label in quick.methods or labels):
            data = method.data and tuple(name for name in method.data if name in kept)
            grid = quick.grids.get(method.label, method.grid)
            methods += [replace(method, grid=grid, data=data)] if data != () else []
        return replace(
            self,
            protocol=replace(
                self.protocol,
                folds=quick.folds or self.protocol.folds,
                repeats=quick.repeats or self.protocol.repeats,
            ),
            data=tuple(e.smaller(quick.p, quick.rows) for e in self.data if e.name in kept),
            methods=tuple(methods),
        )

    def _check(self) -> None:
        """Check what concerns several entries together."""
        labels = [label for method in self.methods for label, _ in method.variants()]
        names = [entry.name for entry in self.data]
        own = [entry.name for entry in self.data if entry.table is not None]
        for place, given, known in (("data", own, names), ("methods", labels, labels)):
            for name in given:
                if known.count(name) > 1:
                    raise ValueError(f"[[{place}]]: {name!r} is there twice; choose another name.")
        if (self.over is not None) != (self.kind == "sensitivity"):
            raise ValueError('over: goes with kind = "sensitivity", and with no other.')
        for method in self.methods:
            if self.over is not None and self.over not in method.vary:
                raise ValueError(
                    f"over: {method.label} does not vary {self.over!r}; add it to its `vary`."
                )
            for name in method.data or ():
                toml.check_name(name, names, f"{method.label}: data", "data set")
            _check_parameters(method)
        if self.reference is not None:
            known = [*labels, *(method.label for method in self.methods)]
            toml.check_name(self.reference, known, "reference", "label")


def shipped_specifications() -> dict[str, str]:
    """Texts of the specifications that come with the package, by name.

    Returns
    -------
    dict
        From a name such as ``"table3"`` to TOML text.

    Examples
    --------
    >>> from skpll.experiments import shipped_specifications
    >>> "table3" in shipped_specifications()
    True
    """
    return {name: content for name, (_, content) in _shipped().items()}


def plug_ins() -> dict[str, ModuleType]:
    """Find what plugs in: every package inside `skpll.experiments`.

    A plug-in brings specifications (TOML files in its folders ``specs`` and ``studies``), names
    those to be run for ``skpll reproduce all`` (`EXPERIMENTS`), and may have a module ``tables``
    that registers tables for experiments of its own.

    Returns
    -------
    dict from str to module
    """
    here = import_module(__package__)
    return {
        found.name: import_module(f"{__package__}.{found.name}")
        for found in iter_modules(here.__path__)
        if found.ispkg
    }


def _shipped() -> dict[str, tuple[str, str]]:
    """Give the plug-in and the text of every specification, by name."""
    return {
        entry.name.removesuffix(".toml"): (name, entry.read_text(encoding="utf-8"))
        for name, plug_in in plug_ins().items()
        for folder in ("specs", "studies")
        for entry in sorted(files(plug_in).joinpath(folder).iterdir(), key=lambda entry: entry.name)
    }


def _take_methods(top: dict[str, Any], name: str) -> None:
    """Put the methods of another specification, and its quick grids, before those of this one.

    A method of this one takes the place of one with the same label; those that
    ``methods_without`` names are not taken.
    """
    other = tomllib.loads(_shipped()[name][1])
    if "methods_of" in other:
        _take_methods(other, other["methods_of"])
    known = [entry["label"] for entry in other["methods"]]
    without: tuple[str, ...] = ()
    if "methods_without" in top:
        without = toml.each(toml.text)(top.pop("methods_without"), "methods_without")
    for label in without:
        toml.check_name(label, known, "methods_without", "label")
    own = toml.several(toml.mapping)(top["methods"], "methods") if "methods" in top else ()
    replaced = {entry["label"]: entry for entry in own if "label" in entry}
    taken = [replaced.get(e["label"], e) for e in other["methods"] if e["label"] not in without]
    top["methods"] = [*taken, *(entry for entry in own if entry not in taken)]
    quick = top["quick"] = toml.mapping(top.get("quick", {}), "quick")
    wanted = quick.get("methods", [entry.get("label") for entry in top["methods"]])
    grids = {**other.get("quick", {}).get("grids", {}), **quick.get("grids", {})}
    quick["grids"] = {label: grid for label, grid in grids.items() if label in wanted}


def _data_entry(value: Any, place: str, folder: Path, scaling: str) -> DataEntry:
    content, place = toml.mapping(value, place), f"[{place}]"
    own = {key: content.pop(key) for key in _OWN if "file" in value and key in content}
    entry = toml.read(DataEntry, content, place, beside=_OWN if own else ())
    if own:
        table = toml.read(OwnTable, own, place)
        path = (folder / table.file).absolute()
        name = entry.name or re.sub(r"[^A-Za-z0-9_-]", "-", path.stem)
        entry = replace(
            entry,
            name=toml.short_name(name, f"{place} name"),
            table=replace(table, file=str(path)),
        )
    elif not entry.name:
        raise ValueError(f"{place} name: is missing; or give a `file` of your own.")
    try:
        name, title, n_samples, n_classes, has_candidates = _known(entry)
    except ValueError as error:
        raise ValueError(f"{place} {'file: ' if own else ''}{error}") from None
    most = max(entry.r, default=1)
    corrupted = content.keys() & {"p", "r", "kind", "noise", "corruption_seeds"}
    mistakes = {
        f"p: {name} has candidate labels of its own; leave out {', '.join(sorted(corrupted))}.": (
            has_candidates and corrupted
        ),
        f"p: {name} has ordinary labels; say which shares become ambiguous, such as "
        "p = [0.3, 0.6].": not has_candidates and not entry.p,
        f"r: {most} false candidates, but {name} has {n_classes} classes; give less.": (
            most >= n_classes
        ),
        f"noise: a set of {most + 1} candidates leaves no other label among the {n_classes} "
        f"classes of {name}; lower r.": max(entry.noise) > 0 and most + 1 >= n_classes,
        f"rows: {entry.rows}, but {name} has {n_samples} rows.": (entry.rows or 0) > n_samples,
    }
    for mistake, made in mistakes.items():
        if made:
            raise ValueError(f"{place} {mistake}")
    return replace(
        entry,
        name=name,
        title=entry.title or title,
        n_samples=n_samples,
        table=entry.table and replace(entry.table, digest=entry.table.current_digest()),
        r=entry.r or ((1,) if entry.p else ()),
        corruption_seeds=entry.corruption_seeds or ((0,) if entry.p else ()),
        scaling=entry.scaling or scaling,
    )


def _known(entry: DataEntry) -> tuple[str, str, int, int, bool]:
    """Give name, title, numbers of rows and classes, and whether there are candidates."""
    from skpll.datasets import dataset_info

    if entry.table is None:
        info = dataset_info(entry.name)
        return info.name, info.title, info.n_samples, info.n_classes, info.has_candidates
    found = read_own_table(entry.table)
    has_candidates = found.candidates is not None
    return entry.name, entry.name, len(found.y), len(found.classes), has_candidates


def _method_entry(value: Any, place: str) -> MethodEntry:
    entry = toml.table(MethodEntry)(value, place)
    return replace(entry, label=entry.label or known_methods()[entry.method].__name__)


def _check_parameters(entry: MethodEntry) -> None:
    """Try every value by itself, so that the first task does not find out."""
    signature = inspect.signature(known_methods()[entry.method]).parameters
    needed = [name for name, found in signature.items() if found.default is found.empty]
    always = {name: entry.parameters.get(name) for name in needed}
    places = {
        "parameters": {name: [value] for name, value in entry.parameters.items()},
        "grid": entry.grid,
        "vary": entry.vary,
    }
    seen: dict[str, str] = {}
    for where, given in places.items():
        place = f"{entry.label}: {where}"
        for name, values in given.items():
            toml.check_name(name, list(signature), place, "parameter")
            if name in seen:
                raise ValueError(f"{place}: {name!r} is in {seen[name]} too; keep one of the two.")
            seen[name] = where
            if name == "estimator" and where == "grid":
                raise ValueError(f"{place}: inner folds choose no 'estimator'; vary it instead.")
            try:
                for value in values:
                    make_method(entry.method, always | {name: value})._validate_params()
            except ValueError as error:
                raise ValueError(f"{place}: {error}") from None
    for name in needed:
        if name not in seen:
            raise ValueError(f"{entry.label}: parameters: {name!r} is needed; give it.")
