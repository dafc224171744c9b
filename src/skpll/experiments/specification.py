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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, Self

from ._reading import Table, check_name, each, flag, mapping, number, text, whole
from .own_tables import OwnTable, read_own_table
from .tasks import Division, Selection, known_methods, make_method

__all__ = [
    "DataEntry",
    "MethodEntry",
    "Protocol",
    "Specification",
    "plug_ins",
    "shipped_specifications",
]

KINDS = ("table", "curves", "sensitivity")
PROTOCOLS = ("kfold", "halves", "split")
CORRUPTIONS = ("uniform", "feature")
SCALINGS = ("zscore", "minmax", "none", "sqrt", "auto")
SCORINGS = ("covering_rate", "covering_kappa", "approximated_accuracy")


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

    kind: str = "kfold"
    folds: int = 10
    repeats: int = 1
    test_size: float = 0.5
    seed: int = 0

    def divisions(self) -> Iterator[tuple[int, int]]:
        """Give the numbers (repetition, split) of all divisions."""
        splits = self.folds if self.kind == "kfold" else 1
        return itertools.product(range(self.repeats), range(splits))

    def division(self, repeat: int, split: int) -> Division:
        """Give all that defines one division of the rows."""
        seed = self.seed + repeat
        if self.kind == "kfold":
            return Division("kfold", seed, split, folds=self.folds)
        return Division("shuffle", seed, split, test_size=self.test_size)

    def __str__(self) -> str:
        if self.kind == "split":
            return "train/test"
        if self.kind == "halves":
            parts = "halves" if self.test_size == 0.5 else f"splits, {self.test_size:.0%} for tests"
            return f"{self.repeats} random {parts}"
        return f"{self.folds}-fold" if self.repeats == 1 else f"{self.repeats} × {self.folds}-fold"


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
    kind : {"uniform", "feature"}
        Where false candidates come from: all alike, or labels that a model confuses with the truth.
    noise : tuple of float
        Shares of the candidate sets that miss the truth.
    """

    name: str
    title: str
    n_samples: int
    table: OwnTable | None
    rows: int | None
    p: tuple[float, ...]
    r: tuple[int, ...]
    corruption_seeds: tuple[int, ...]
    scaling: str
    kind: str = "uniform"
    noise: tuple[float, ...] = (0.0,)

    def corruptions(self) -> list[tuple[float | None, int | None, float, int | None]]:
        """Give all combinations (p, r, noise, seed); a single one for real candidate sets."""
        if not self.p:
            return [(None, None, 0.0, None)]
        return list(itertools.product(self.p, self.r, self.noise, self.corruption_seeds))


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

    label: str
    method: str
    parameters: dict[str, Any]
    grid: dict[str, list[Any]]
    vary: dict[str, list[Any]]
    features: dict[str, int]
    data: tuple[str, ...] | None

    def variants(self) -> list[tuple[str, dict[str, Any]]]:
        """Give the label and the fixed parameters of each variant."""
        found = []
        for values in itertools.product(*self.vary.values()):
            varied = dict(zip(self.vary, values, strict=True))
            label = ", ".join([self.label, *(f"{key}={value}" for key, value in varied.items())])
            found.append((label, {**self.parameters, **varied}))
        return found


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
    """

    name: str
    title: str
    kind: str
    over: str | None
    reference: str | None
    protocol: Protocol
    selection: Selection
    time_limit: float
    trace: bool
    data: tuple[DataEntry, ...]
    methods: tuple[MethodEntry, ...]
    collection: str | None
    quick: bool
    text: str

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
        (9, '10-fold')
        """
        shipped = _shipped()
        if os.fspath(source) in shipped:
            collection, content = shipped[os.fspath(source)]
            return replace(cls.parse(content, quick=quick), collection=collection)
        if not Path(source).is_file():
            raise ValueError(
                f"{os.fspath(source)}: there is no such file, and no specification of that name "
                f"comes with skpll; those that do: {', '.join(shipped)}."
            )
        try:
            return cls.parse(_decoded(Path(source)), quick=quick, folder=Path(source).parent)
        except ValueError as error:
            raise ValueError(f"{os.fspath(source)}: {error}") from None

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
            top = Table(tomllib.loads(content), "")
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"not valid TOML: {error}") from None
        name = top.take("name", _name)
        kind = top.take("kind", _one_of(KINDS), "table")
        over = top.take("over", text, None)
        defaults = Table(top.take("defaults", mapping, {}), "defaults")
        scaling = defaults.take("scaling", _one_of(SCALINGS), "zscore")
        full = cls(
            name=name,
            title=top.take("title", text, name),
            kind=kind,
            over=over,
            reference=top.take("reference", text, None),
            protocol=_protocol(Table(top.take("protocol", mapping, {}), "protocol")),
            selection=_selection(Table(top.take("selection", mapping, {}), "selection")),
            time_limit=defaults.take("time_limit", number(0, open_ends=True), 3600.0),
            trace=defaults.take("trace", flag, False),
            data=_entries(top, "data", lambda table: _data_entry(table, scaling, Path(folder))),
            methods=_entries(top, "methods", _method_entry),
            collection=None,
            quick=quick,
            text=content,
        )
        overrides = Table(top.take("quick", mapping, {}), "quick")
        small = full._shrunk(overrides)
        for table in (defaults, overrides, top):
            table.done()
        full._check()
        small._check()
        return small if quick else full

    def _shrunk(self, overrides: Table) -> Self:
        """Apply the table [quick]."""
        labels = {method.label: method for method in self.methods}
        names = dict.fromkeys(entry.name for entry in self.data)
        sets = overrides.take("data", each(_one_of(names)), tuple(names))
        grids = overrides.take("grids", mapping, {})
        for label, grid in grids.items():
            check_name(label, labels, "[quick.grids]", "label")
            grids[label] = _check_lists(grid, f"[quick.grids] {label}")
        p = overrides.take("p", each(number(0, 1)), None)
        rows = overrides.take("rows", whole(2), None)
        methods = (
            _restricted(labels[label], grids.get(label), sets)
            for label in overrides.take("methods", each(_one_of(labels)), tuple(labels))
        )
        return replace(
            self,
            protocol=replace(
                self.protocol,
                folds=overrides.take("folds", whole(2), self.protocol.folds),
                repeats=overrides.take("repeats", whole(1), self.protocol.repeats),
            ),
            data=tuple(_smaller(entry, p, rows) for entry in self.data if entry.name in sets),
            methods=tuple(method for method in methods if method.data != ()),
        )

    def _check(self) -> None:
        """Check what concerns several entries together."""
        labels = [label for method in self.methods for label, _ in method.variants()]
        names = [entry.name for entry in self.data]
        for entry in self.data:
            if entry.table is not None and names.count(entry.name) > 1:
                raise ValueError(f"[[data]] name: {entry.name!r} is there twice; choose another.")
        for label in labels:
            if labels.count(label) > 1:
                raise ValueError(f"[[methods]] label: {label!r} is there twice; choose another.")
        if self.reference is not None:
            known = [*labels, *(method.label for method in self.methods)]
            check_name(self.reference, known, "reference", "label")
        if (self.over is not None) != (self.kind == "sensitivity"):
            raise ValueError('over: goes with kind = "sensitivity", and with no other.')
        for method in self.methods:
            if self.over is not None and self.over not in method.vary:
                raise ValueError(
                    f"over: {method.label} does not vary {self.over!r}; add it to its `vary`."
                )
            for name in method.data or ():
                check_name(name, names, f"{method.label}: data", "data set")


def shipped_specifications() -> dict[str, str]:
    """Texts of the specifications that come with the package, by name.

    Returns
    -------
    dict
        From a name such as ``"table3"`` to TOML text.
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


def _decoded(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a TOML file, which is text in UTF-8.") from None


def _name(value: Any, place: str) -> str:
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9_-]+", value):
        return value
    raise ValueError(f"{place}: expected letters, digits, - and _, got {value!r}.")


def _one_of(known: Any) -> Any:
    return lambda value, place: check_name(value, list(known), place, "name")


def _entries(top: Table, key: str, read: Any) -> tuple[Any, ...]:
    tables = top.take(key, lambda value, _: value)
    if not isinstance(tables, list) or not tables:
        raise ValueError(f"[[{key}]]: expected one such table at least.")
    found = []
    for position, content in enumerate(tables, start=1):
        table = Table(content, f"{key} {position}")
        found.append(read(table))
        table.done()
    return tuple(found)


def _protocol(table: Table) -> Protocol:
    kind = table.take("kind", _one_of(PROTOCOLS), "kfold")
    sizes: dict[str, Any] = {}
    if kind == "kfold":
        sizes["folds"] = table.take("folds", whole(2), 10)
    else:
        sizes["test_size"] = table.take("test_size", number(0, 1, open_ends=True), 0.5)
    if kind != "split":
        sizes["repeats"] = table.take("repeats", whole(1), 1 if kind == "kfold" else 10)
    protocol = Protocol(kind, seed=table.take("seed", whole(0), 0), **sizes)
    table.done()
    return protocol


def _selection(table: Table) -> Selection:
    selection = Selection(
        table.take("folds", whole(2), 3),
        table.take("seed", whole(0), 0),
        table.take("scoring", _one_of(SCORINGS), "covering_rate"),
    )
    table.done()
    return selection


def _data_entry(table: Table, scaling: str, folder: Path) -> DataEntry:
    entry, n_classes, has_candidates = (
        _own_entry(table, folder) if table.has("file") else _named_entry(table)
    )
    p = table.take("p", each(number(0, 1)), ())
    r = table.take("r", each(whole(1)), (1,) if p else ())
    seeds = table.take("corruption_seeds", each(whole(0)), (0,) if p else ())
    given = any(map(table.has, ("kind", "noise")))
    kind = table.take("kind", _one_of(CORRUPTIONS), "uniform")
    noise = table.take("noise", each(number(0, 1)), (0.0,))
    if has_candidates and (p or r or seeds or given):
        raise ValueError(
            f"{table.place_of('p')}: {entry.name} has candidate labels of its own; leave out p, r, "
            "kind, noise and corruption_seeds."
        )
    if not has_candidates and not p:
        raise ValueError(
            f"{table.place_of('p')}: {entry.name} has ordinary labels; say which shares become "
            "ambiguous, such as p = [0.3, 0.6]."
        )
    if r and max(r) >= n_classes:
        raise ValueError(
            f"{table.place_of('r')}: {max(r)} false candidates, but {entry.name} has "
            f"{n_classes} classes; give less than that."
        )
    if max(noise) > 0 and max(r) + 1 >= n_classes:
        raise ValueError(
            f"{table.place_of('noise')}: a set of {max(r) + 1} candidates leaves no other label "
            f"among the {n_classes} classes of {entry.name}; lower r."
        )
    rows = table.take("rows", whole(2), None)
    if rows is not None and rows > entry.n_samples:
        raise ValueError(
            f"{table.place_of('rows')}: {rows}, but {entry.name} has {entry.n_samples} rows."
        )
    own_scaling = table.take("scaling", _one_of(SCALINGS), scaling)
    return replace(
        entry,
        rows=rows,
        p=p,
        r=r,
        corruption_seeds=seeds,
        scaling=own_scaling,
        kind=kind,
        noise=noise,
    )


def _named_entry(table: Table) -> tuple[DataEntry, int, bool]:
    """Find a data set by its name; say how many classes it has, and whether candidates."""
    from skpll.datasets import dataset_info

    try:
        info = dataset_info(table.take("name", text))
    except ValueError as error:
        raise ValueError(f"[[data]] {error}") from None
    entry = DataEntry(info.name, info.title, info.n_samples, None, None, (), (), (), "")
    return entry, info.n_classes, info.has_candidates


def _own_entry(table: Table, folder: Path) -> tuple[DataEntry, int, bool]:
    """Look into a file of the user's own."""
    path = folder / table.take("file", text)
    own = OwnTable(
        path=str(path.absolute()),
        truth=table.take("truth", text),
        candidates=table.take("candidates", text, None),
        separator=table.take("separator", text, "|"),
        features=table.take("features", each(text), ()),
    )
    name = table.take("name", _name, re.sub(r"[^A-Za-z0-9_-]", "-", path.stem))
    title = table.take("title", text, name)
    try:
        found = read_own_table(own)
    except ValueError as error:
        raise ValueError(f"{table.place_of('file')}: {error}") from None
    own = replace(own, digest=own.current_digest())
    entry = DataEntry(name, title, len(found.y), own, None, (), (), (), "")
    return entry, len(found.classes), found.candidates is not None


def _smaller(entry: DataEntry, p: tuple[float, ...] | None, rows: int | None) -> DataEntry:
    if p is not None and entry.p:
        entry = replace(entry, p=p)
    if rows is not None and rows < (entry.rows or entry.n_samples):
        entry = replace(entry, rows=rows)
    return entry


def _method_entry(table: Table) -> MethodEntry:
    known = known_methods()
    method = table.take("method", lambda value, place: check_name(value, known, place, "method"))
    entry = MethodEntry(
        label=table.take("label", text, known[method].__name__),
        method=method,
        parameters=table.take("parameters", _parameters, {}),
        grid=table.take("grid", _check_lists, {}),
        vary=table.take("vary", _check_lists, {}),
        features=table.take("features", _features, {}),
        data=table.take("data", each(text), None),
    )
    _check_parameters(entry)
    return entry


def _restricted(
    entry: MethodEntry, grid: dict[str, list[Any]] | None, data: tuple[str, ...]
) -> MethodEntry:
    if grid is not None:
        entry = replace(entry, grid=grid)
        _check_parameters(entry)
    if entry.data is None:
        return entry
    return replace(entry, data=tuple(name for name in entry.data if name in data))


def _features(value: Any, place: str) -> dict[str, int]:
    table = Table(value, place)
    count = table.take("nystroem", whole(1))
    table.done()
    return {"nystroem": count}


def _parameters(value: Any, place: str) -> dict[str, Any]:
    return {name: _or_none(given) for name, given in mapping(value, place).items()}


def _check_lists(value: Any, place: str) -> dict[str, list[Any]]:
    lists = mapping(value, place)
    for key, values in lists.items():
        if not isinstance(values, list) or not values:
            raise ValueError(f"{place} {key}: expected a list of values, got {values!r}.")
    return {key: [_or_none(given) for given in values] for key, values in lists.items()}


def _or_none(value: Any) -> Any:
    """Read "none" as None, for which TOML has no word; no parameter has a text of that name."""
    return None if value == "none" else value


def _check_parameters(entry: MethodEntry) -> None:
    """Try every value by itself, so that the first task does not find out."""
    signature = inspect.signature(known_methods()[entry.method]).parameters
    needed = [name for name, found in signature.items() if found.default is found.empty]
    always = {name: entry.parameters.get(name) for name in needed}
    places: tuple[tuple[str, Mapping[str, Any]], ...] = (
        ("parameters", {name: [value] for name, value in entry.parameters.items()}),
        ("grid", entry.grid),
        ("vary", entry.vary),
    )
    seen: dict[str, str] = {}
    for where, lists in places:
        for name, values in lists.items():
            place = f"{entry.label}: {where}"
            check_name(name, list(signature), place, "parameter")
            if name in seen:
                raise ValueError(f"{place}: {name!r} is in {seen[name]} too; keep one of the two.")
            seen[name] = where
            if name == "estimator" and where == "grid":
                raise ValueError(f"{place}: inner folds choose no 'estimator'; vary it instead.")
            for value in values:
                try:
                    make_method(entry.method, always | {name: value})._validate_params()
                except ValueError as error:
                    raise ValueError(f"{place}: {error}") from None
    for name in needed:
        if name not in seen:
            raise ValueError(f"{entry.label}: parameters: {name!r} is needed; give it.")
