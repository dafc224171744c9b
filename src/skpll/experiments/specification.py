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
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias, get_args

import msgspec
from msgspec import Meta, Struct, field, structs

from skpll.datasets import dataset_info, find_dataset

from .tasks import (
    CLASSIFIERS,
    Division,
    Selection,
    Task,
    Values,
    check_name,
    did_you_mean,
    known_methods,
    make_method,
    method_version,
)

Kind: TypeAlias = Literal["table", "curves", "sensitivity"]
Ambiguity: TypeAlias = Literal["uniform", "pairs", "feature", "dictionary", "constant", "flip"]
Scaling: TypeAlias = Literal["zscore", "minmax", "none", "sqrt", "auto"]
Text: TypeAlias = Annotated[str, Meta(pattern=r"\S")]
Name: TypeAlias = Annotated[str, Meta(pattern="^[A-Za-z0-9_-]+$")]
Seed: TypeAlias = Annotated[int, Meta(ge=0)]
Count: TypeAlias = Annotated[int, Meta(ge=1)]
Folds: TypeAlias = Annotated[int, Meta(ge=2)]
Shares: TypeAlias = Annotated[tuple[Annotated[float, Meta(ge=0, le=1)], ...], Meta(min_length=1)]
Names: TypeAlias = Annotated[tuple[Text, ...], Meta(min_length=1)]
Choices: TypeAlias = dict[str, Annotated[list[object], Meta(min_length=1)]]

_WITHOUT_EFFECT = ("verbose", "n_jobs")  # parameters on which no result depends

_FOLDER = Path(__file__).parent

COLLECTIONS: dict[str, Any] = tomllib.loads((_FOLDER / "collections.toml").read_text("utf-8"))
"""The folders of specifications that come with the package."""


class _Table(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of a TOML file."""


class _Protocol(_Table, frozen=True, kw_only=True, tag_field="kind"):
    """How the rows are divided into a training and a test part.

    Repetition ``i`` has the seed ``seed + i``, so more repetitions keep the earlier ones.
    """

    division: ClassVar[str] = "shuffle"

    seed: Seed = 0

    def divisions(self) -> Iterator[tuple[int, Division]]:
        """Yield the repetition and the division of the rows, for each repetition and fold."""
        folds, test_size = getattr(self, "folds", None), getattr(self, "test_size", None)
        for repeat in range(getattr(self, "repeats", 1)):
            for split in range(folds or 1):
                yield repeat, Division(self.division, self.seed + repeat, split, folds, test_size)


class KFold(_Protocol, frozen=True, kw_only=True, tag="kfold"):
    """Cross-validation, once or several times, after shuffling."""

    division: ClassVar[str] = "kfold"

    folds: Folds = 10
    repeats: Count = 1

    def __str__(self) -> str:
        return f"{self.folds}-fold" if self.repeats == 1 else f"{self.repeats} × {self.folds}-fold"


class Split(_Protocol, frozen=True, kw_only=True, tag="split"):
    """A single random division."""

    test_size: Annotated[float, Meta(gt=0, lt=1)] = 0.5

    def __str__(self) -> str:
        return "train/test"


class Halves(Split, frozen=True, kw_only=True, tag="halves"):
    """Repeated random divisions."""

    repeats: Count = 10

    def __str__(self) -> str:
        parts = "halves" if self.test_size == 0.5 else f"splits, {self.test_size:.0%} for tests"
        return f"{self.repeats} random {parts}"


class Last(Split, frozen=True, kw_only=True, tag="last"):
    """The last rows for tests: the division that comes with a data set."""

    division: ClassVar[str] = "last"

    def __str__(self) -> str:
        return f"the last {self.test_size:.0%} for tests"


class DataEntry(_Table, frozen=True, kw_only=True):
    """A data set, and how its labels are made ambiguous where they are not.

    Attributes
    ----------
    name : str
        A name that `skpll.datasets.load_dataset` knows.
    title : str
        The title in reports.
    rows : int or None
        Number of rows to draw, the same in all tasks; None for all.
    p : tuple of float
        Shares of the examples that get false candidates; empty for real candidate sets.
    r : tuple of int
        Numbers of false candidates.
    corruption_seeds : tuple of int
        Seeds of the draws of false candidates.
    scaling : {"zscore", "minmax", "none", "sqrt", "auto"}
        How features are scaled; fitted on the training part, or chosen there.
    kind : {"uniform", "pairs", "feature", "dictionary", "constant", "flip"}
        Where false candidates come from: all labels equally; one label per class that occurs in
        seven of ten ambiguous examples; labels that a model confuses with the truth; the labels
        that similar examples have, where `p` is the share that has to be exceeded; all labels
        equally, and one more label that is in every set and never right; or each false label by
        itself with the probability `p`.
    noise : tuple of float
        Shares of the candidate sets that miss the truth.
    """

    name: Name
    title: Text = ""
    rows: Folds | None = None
    p: Shares = ()
    r: Annotated[tuple[Count, ...], Meta(min_length=1)] = ()
    corruption_seeds: Annotated[tuple[Seed, ...], Meta(min_length=1)] = ()
    scaling: Scaling | Literal[""] = ""
    kind: Ambiguity = "uniform"
    noise: Shares = (0.0,)

    def cases(self) -> list[dict[str, Any]]:
        """Return what tasks say about their data, for each combination of p, r, noise and seed."""
        same = {"dataset": self.name, "rows": self.rows, "scaling": self.scaling, "kind": self.kind}
        if not self.p:
            return [same]
        names = ("p", "r", "noise", "corruption_seed")
        values = itertools.product(
            self.p, self.r or (1,), self.noise, self.corruption_seeds or (0,)
        )
        return [same | dict(zip(names, case, strict=True)) for case in values]

    def smaller(self, p: tuple[float, ...], rows: int | None) -> DataEntry:
        """Return the entry with other shares, where it has any, and at most `rows` rows."""
        entry = structs.replace(self, p=p) if p and self.p else self
        few = rows is None or rows >= (self.rows or dataset_info(self.name).n_samples)
        return entry if few else structs.replace(entry, rows=rows)

    def resolved(self, scaling: Scaling) -> DataEntry:
        """Return the entry with what is known of its data set, after a check."""
        info = dataset_info(self.name)
        asked = (self.p, self.r, self.corruption_seeds, self.noise, self.kind)
        if info.has_candidates and asked != ((), (), (), (0.0,), "uniform"):
            raise ValueError(f"p: {info.name} has candidate labels already; make no others.")
        if not info.has_candidates and not self.p:
            raise ValueError(
                f"p: {info.name} has ordinary labels; set p, the share to make ambiguous."
            )
        title = self.title or info.title
        return structs.replace(self, name=info.name, title=title, scaling=self.scaling or scaling)


class MethodEntry(_Table, frozen=True, kw_only=True):
    """A method with its parameters.

    Attributes
    ----------
    label : str
        The label in tables; by default the name of the class.
    method : str
        Its name in `skpll.all_methods` or `skpll.baselines.all_baselines`.
    variant : str
        A class method of the method that sets several parameters, such as ``as_printed`` of
        `SPPLL`; `parameters` override them.
    parameters : dict
        Parameters that are fixed.
    grid : dict
        Lists of values among which inner folds choose.
    vary : dict
        Lists of values, each combination of which is a variant with its own label.
    data : tuple of str
        The data sets it runs on; empty for all.
    """

    method: Text
    label: Text = ""
    variant: Text = ""
    parameters: Values = {}
    grid: Choices = {}
    vary: Choices = {}
    data: Names = ()

    def __post_init__(self) -> None:
        known = known_methods()
        cls = known[check_name(self.method, known, "method", "method")]
        structs.force_setattr(self, "label", self.label or cls.__name__)
        for name in ("grid", "vary"):
            choices = getattr(self, name).items()
            read = {key: [_or_none(value) for value in values] for key, values in choices}
            structs.force_setattr(self, name, read)
        settings = _settings(cls, self.variant) if self.variant else {}
        chosen = self.grid.keys() | self.vary.keys()
        fixed = {name: value for name, value in settings.items() if name not in chosen}
        given = {name: _or_none(value) for name, value in self.parameters.items()}
        structs.force_setattr(self, "parameters", fixed | given)

    def variants(self) -> list[dict[str, Any]]:
        """Return what tasks say about their method, for each combination of varied values."""
        several = itertools.product(*self.vary.values())
        return [
            {
                "label": ", ".join([self.label, *(f"{k}={v}" for k, v in varied.items())]),
                "series": self.label,
                "method": self.method,
                "version": method_version(self.method) or 0,
                "parameters": self.parameters | varied,
                "defaults": self._defaults(self.parameters | varied),
                "grid": self.grid,
            }
            for varied in (dict(zip(self.vary, values, strict=True)) for values in several)
        ]

    def _defaults(self, parameters: Values) -> Values:
        """Return the defaults of the method; with a model inside, those of that model too."""
        given = {*parameters, *self.grid, *_WITHOUT_EFFECT}
        known = inspect.signature(known_methods()[self.method]).parameters.values()
        found: Values = {
            parameter.name: None if parameter.default is parameter.empty else parameter.default
            for parameter in known
            if parameter.name not in given
        }
        inner, several = parameters.get("estimator"), parameters.get("estimators")
        if isinstance(inner, str) and inner in CLASSIFIERS:
            found["estimator parameters"] = CLASSIFIERS[inner][2]
        elif isinstance(inner, str):
            found["estimator version"] = method_version(inner)
        if isinstance(several, list):
            found["estimators versions"] = [method_version(name) for name in several]
        return found

    def check(self) -> None:
        """Try every value, so that mistakes are found before the first task."""
        signature = inspect.signature(known_methods()[self.method]).parameters
        for name, times in Counter([*self.parameters, *self.grid, *self.vary]).items():
            if times > 1:
                raise ValueError(f"{self.label}: {name!r} is given twice; remove one.")
        for name in {"estimator", "estimators"} & set(self.grid):
            raise ValueError(
                f"{self.label}: grid: inner folds can't choose {name!r}; use vary instead."
            )
        for where in ("parameters", "grid", "vary"):
            for name in getattr(self, where):
                place = f"{self.label}: {where}"
                check_name(name.partition("__")[0], list(signature), place, "parameter")
        for variant in self.variants():
            tried = [{name: value} for name, values in self.grid.items() for value in values]
            for values in tried or [{}]:
                try:
                    make_method(self.method, variant["parameters"] | values)._validate_params()
                except (TypeError, ValueError) as error:
                    raise ValueError(f"{self.label}: {error}") from None


class Defaults(_Table, frozen=True, kw_only=True):
    """What holds for all tasks: the scaling, and the time limit in seconds."""

    scaling: Scaling = "zscore"
    time_limit: Annotated[float, Meta(gt=0)] = 3600.0


class Quick(_Table, frozen=True, kw_only=True):
    """What the small version of an experiment changes."""

    folds: Folds | None = None
    repeats: Count | None = None
    p: Shares = ()
    rows: Folds | None = None
    data: Names = ()
    methods: Names = ()
    grids: dict[str, Choices] = {}


class Specification(_Table, frozen=True, kw_only=True):
    """An experiment: data sets, methods and a protocol.

    Read one from a file: ``Specification.read("experiment.toml")``. The format is
    described in the documentation ("Experiments").

    Attributes
    ----------
    name : str
        Its name in the store.
    title : str
        Its title in reports.
    kind : {"table", "curves", "sensitivity"}
        How it is reported.
    over : str or None
        The parameter on the x axis, for ``kind="sensitivity"``.
    reference : str or None
        Label of the method with which the others are compared.
    protocol : KFold, Split, Halves or Last
        Training and test parts.
    selection : Selection
        Choice of parameters.
    defaults : Defaults
        The scaling, and the time limit of a task in seconds (``time_limit``).
    data : tuple of DataEntry
        The data sets.
    methods : tuple of MethodEntry
        The methods, those of another specification included.
    methods_of : str or None
        The specification whose methods it takes.
    methods_without : tuple of str
        Labels of those that it does not take.
    small : Quick
        What the table ``[quick]`` changes.
    collection : str or None
        The collection that it came with, see `COLLECTIONS`; None for a file of your own.
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

    name: Name
    title: Text = ""
    kind: Kind = "table"
    over: Text | None = None
    reference: Text | None = None
    protocol: KFold | Split | Halves | Last = KFold()
    selection: Selection = Selection()
    defaults: Defaults = Defaults()
    data: Annotated[tuple[DataEntry, ...], Meta(min_length=1)]
    methods: tuple[MethodEntry, ...] = ()
    methods_of: Name | None = None
    methods_without: Names = ()
    small: Quick = field(default=Quick(), name="quick")
    collection: str | None = field(default=None, name="(collection)")
    quick: bool = field(default=False, name="(quick)")
    text: str = field(default="", name="(text)")

    @classmethod
    def read(cls, source: str | os.PathLike[str], *, quick: bool = False) -> Self:
        """Read a specification from a file, or one that comes with the package by its name.

        Parameters
        ----------
        source : path-like or str
            A TOML file, or a name in `shipped_specifications`.
        quick : bool, default=False
            Whether to apply the table ``[quick]``, which makes the experiment small.

        Returns
        -------
        Specification

        Raises
        ------
        ValueError
            If there is no such file or name, or a value in it is invalid; the message names the
            file and the key.

        Examples
        --------
        >>> from skpll.experiments import Specification
        >>> table3 = Specification.read("table3")
        >>> len(table3.methods), str(table3.protocol)
        (26, '10-fold')
        """
        name, shipped = os.fspath(source), _shipped()
        path = shipped.get(name, Path(name))
        if not path.is_file():
            known = ", ".join(shipped)
            raise ValueError(f"{name}: there is no such file; names that skpll knows: {known}.")
        try:
            found = cls.parse(path.read_text(encoding="utf-8"), quick=quick)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        return structs.replace(found, collection=path.parts[-3] if name in shipped else None)

    @classmethod
    def parse(cls, content: str, *, quick: bool = False) -> Self:
        """Read a specification from TOML text.

        Parameters
        ----------
        content : str
            The text.
        quick : bool, default=False
            Whether to apply the table ``[quick]``.

        Returns
        -------
        Specification

        Raises
        ------
        ValueError
            If a value in it is invalid.
        """
        top = tomllib.loads(content)
        _complete(top)
        found = _converted(cls, top)._with_methods()
        full: Self = structs.replace(
            found,
            title=found.title or found.name,
            data=tuple(entry.resolved(found.defaults.scaling) for entry in found.data),
            text=content,
        )
        names = [entry.name for entry in full.data]
        for method in full.methods:
            for name in method.data:
                check_name(name, names, f"{method.label}: data", "data set")
        small = full._shrunk()
        for specification in (full, small):
            specification._check()
        return small if quick else full

    def _with_methods(self) -> Self:
        """Put the methods of another specification, and its quick grids, before those of this one.

        A method of this one takes the place of one with the same label.
        """
        if self.methods_of is None:
            return self
        shipped = shipped_specifications()
        other = Specification.parse(
            shipped[check_name(self.methods_of, shipped, "methods_of", "name")]
        )
        methods = {method.label: method for method in other.methods}
        for label in self.methods_without:
            del methods[check_name(label, methods, "methods_without", "label")]
        own = {method.label: method for method in self.methods}
        taken = [own.get(label, method) for label, method in methods.items()]
        added = [each for each in self.methods if all(each is not other for other in taken)]
        grids = {label: grid for label, grid in other.small.grids.items() if label in methods}
        small = structs.replace(self.small, grids=grids | self.small.grids)
        return structs.replace(self, methods=(*taken, *added), small=small)

    def _shrunk(self) -> Self:
        """Apply the table [quick]."""
        quick, methods = self.small, {method.label: method for method in self.methods}
        names = [entry.name for entry in self.data]
        for name in quick.data:
            check_name(name, names, "quick data", "name")
        for name in (*quick.methods, *quick.grids):
            check_name(name, methods, "quick methods and grids", "label")
        kept = quick.data or names
        left = [methods[label] for label in quick.methods or methods]
        sizes = {name: getattr(quick, name) for name in ("folds", "repeats")}
        changed = {name: n for name, n in sizes.items() if n and hasattr(self.protocol, name)}
        return structs.replace(
            self,
            protocol=structs.replace(self.protocol, **changed),
            data=tuple(e.smaller(quick.p, quick.rows) for e in self.data if e.name in kept),
            methods=tuple(structs.replace(m, grid=quick.grids.get(m.label, m.grid)) for m in left),
            quick=True,
        )

    def _check(self) -> None:
        """Check the methods, and what concerns several entries together."""
        labels = [variant["label"] for method in self.methods for variant in method.variants()]
        if not labels:
            raise ValueError("methods: there are none.")
        for label in labels:
            if labels.count(label) > 1:
                raise ValueError(f"methods: {label!r} occurs twice; choose another name.")
        if (self.over is not None) != (self.kind == "sensitivity"):
            raise ValueError('over: goes with kind = "sensitivity", and with no other.')
        for method in self.methods:
            if self.over is not None and self.over not in method.vary:
                raise ValueError(f"over: {method.label} does not vary {self.over!r}.")
            method.check()
        if self.reference is not None:
            known = [*labels, *(method.label for method in self.methods)]
            check_name(self.reference, known, "reference", "label")


def shipped_specifications() -> dict[str, str]:
    """Return the texts of the specifications that come with the package, by name.

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
    return {name: path.read_text(encoding="utf-8") for name, path in _shipped().items()}


def _shipped() -> dict[str, Path]:
    """Return the file of each specification that comes with the package, by name."""
    return {path.stem: path for path in sorted(_FOLDER.glob("*/*/*.toml"))}


def _complete(top: dict[str, Any]) -> None:
    """Put single values that may be lists into lists, and give a protocol the usual kind."""
    entries = [top.get(key) for key in ("data", "methods")]
    several = [table for tables in entries if isinstance(tables, list) for table in tables]
    for table in [top.get("quick"), *several]:
        for key in ("p", "r", "corruption_seeds", "noise", "data", "methods"):
            if isinstance(table, dict) and isinstance(table.get(key), str | int | float):
                table[key] = [table[key]]
    if isinstance(top.get("protocol"), dict):
        top["protocol"].setdefault("kind", "kfold")


_TABLES = (Specification, KFold, Halves, Selection, Defaults, DataEntry, MethodEntry, Quick)
_WORDS = [name for table in _TABLES for name in table.__struct_fields__]
_WORDS += [word for words in (Kind, Ambiguity, Scaling) for word in get_args(words)]


def _converted(cls: type[Any], top: dict[str, Any]) -> Any:
    """Convert a file to a record; an error names the key and what may have been meant."""
    try:
        return msgspec.convert(top, cls)
    except msgspec.ValidationError as error:
        message = str(error).replace("Object contains unknown field", "unknown key")
        text, _, path = message.partition(" - at `$.")
        place = re.sub(r"\[(\d+)\]", lambda found: f" {int(found[1]) + 1}", path.rstrip("`"))
        word = re.search(r"(?:unknown key|enum value) [`'](.*)[`']", text)
        hint = did_you_mean(word[1], [name for name in _WORDS if name != word[1]]) if word else ""
        raise ValueError(f"{place or 'specification'}: {text.rstrip('.')}.{hint}") from None


def _settings(cls: type, variant: str) -> Values:
    """Return the parameters that a class method such as ``as_printed`` passes to the class."""
    passed: Values = {}
    check_name(variant, [name for name in vars(cls) if name.startswith("as_")], "variant", "name")
    recording = {"__init__": lambda _, *__, **given: passed.update(given)}
    getattr(type(cls.__name__, (cls,), recording), variant)()
    found: Values = {}
    for name, value in passed.items():  # an object such as a pace: its parameters that are not None
        inner = value.get_params(deep=False) if hasattr(value, "get_params") else {}
        nested = {f"{name}__{key}": each for key, each in inner.items() if each is not None}
        found |= nested or {name: value}
    return found


def _or_none(value: object) -> object:
    """Read "none" as None, for which TOML has no word; no parameter has a text of that name."""
    return None if value == "none" else value


# -- the tasks of a specification ----------------------------------------------------------


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

    Examples
    --------
    >>> from skpll.experiments import Specification, plan
    >>> specification = Specification.read("table3")
    >>> tasks = plan(specification, without=["fgnet"])
    >>> "fgnet" in {task.dataset for task in tasks}
    False
    """
    left_out = set(without)
    tasks = [
        Task(
            **case,
            **variant,
            selection=specification.selection if method.grid or entry.scaling == "auto" else None,
            repeat=0,
            split=Division("none", 0, 0),
        )
        for entry in specification.data
        if entry.name not in left_out
        for case in entry.cases()
        for method in specification.methods
        if not method.data or entry.name in method.data
        for variant in method.variants()
    ]
    for repeat, split in specification.protocol.divisions():
        for task in tasks:
            yield replace(task, repeat=repeat, split=split)


def absent_data(specification: Specification) -> list[str]:
    """Return the names of the data sets whose files are not on this machine.

    Parameters
    ----------
    specification : Specification
        The experiment.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from skpll.experiments import Specification, absent_data
    >>> specification = Specification.read("table3")
    >>> set(absent_data(specification)) <= {entry.name for entry in specification.data}
    True
    """
    return [
        entry.name
        for entry in specification.data
        if dataset_info(entry.name).file_name is not None and find_dataset(entry.name) is None
    ]
