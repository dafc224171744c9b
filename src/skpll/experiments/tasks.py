"""Tasks: the independent parts of an experiment, each a record that defines its result."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass, fields
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from skpll._extra import need

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


need("msgspec", "experiments are read with msgspec", "cli")
from msgspec import Meta, Struct, structs  # noqa: E402

Values: TypeAlias = dict[str, object]

RESULT_VERSIONS = {"m3pl": 3, "plecoc": 2, "plleaf": 2, "plloo": 4, "plsvm": 3, "sppll": 3}
"""Version of the results of each method, 1 if not named; raise it when they change."""

USES_TRUTH = frozenset({"knowntruth"})
"""Methods that are fitted to the true labels of the training part."""

_TREES, _SEED = {"n_estimators": 300}, {"random_state": 0}
CLASSIFIERS: dict[str, tuple[str, str, Values]] = {
    "logistic_regression": ("sklearn.linear_model", "LogisticRegression", {"max_iter": 1000}),
    "random_forest": ("sklearn.ensemble", "RandomForestClassifier", {**_TREES, **_SEED}),
    "hist_gradient_boosting": ("sklearn.ensemble", "HistGradientBoostingClassifier", {**_SEED}),
}
"""Classifiers of scikit-learn that an ``estimator`` may be: module, class and parameters."""

_NOT_IN_KEY = ("label", "series", "repeat", "split")
_DEFAULTS_NOT_IN_KEY = {"kind": "uniform", "noise": 0.0}  # attributes added after the first stores


@dataclass(frozen=True)
class Division:
    """One division of the rows into a training and a test part, after shuffling.

    Attributes
    ----------
    kind : {"kfold", "shuffle", "last"}
        One of several folds, a random part, or the last rows.
    seed : int
        Seed of the shuffling.
    split : int
        Which of the folds is for testing.
    folds : int or None
        Number of folds.
    test_size : float or None
        Share of the rows in a random part, or of the last rows.
    """

    kind: str
    seed: int
    split: int
    folds: int | None = None
    test_size: float | None = None


class Selection(Struct, frozen=True, forbid_unknown_fields=True):
    """How parameters are chosen inside a training part, from its candidate sets alone.

    Attributes
    ----------
    folds : int
        Number of inner folds.
    seed : int
        Seed of their shuffling.
    scoring : {"covering_rate", "covering_kappa", "approximated_accuracy"}
        Criterion by which parameters are chosen.
    """

    folds: Annotated[int, Meta(ge=2)] = 3
    seed: Annotated[int, Meta(ge=0)] = 0
    scoring: Literal["covering_rate", "covering_kappa", "approximated_accuracy"] = "covering_rate"

    def __str__(self) -> str:
        return f"{self.folds} inner folds, {self.scoring.replace('_', ' ')}"


@dataclass(frozen=True, kw_only=True)
class Task:
    """One method on one division of one data set.

    The first three attributes are for display; the result depends on all the others, and `key` is
    their hash.

    Attributes
    ----------
    label : str
        Label of the method in the experiment.
    series : str
        The label without the parameters that are varied.
    repeat : int
        The repetition; the seed of the division says the same.
    dataset : str
        The data set.
    rows : int or None
        Number of rows to draw, the same in all tasks; None for all.
    p, r, corruption_seed : float, int, int or None
        How labels are made ambiguous; None for candidate sets that are there already.
    scaling : {"zscore", "minmax", "none", "sqrt", "auto"}
        How features are scaled; ``"auto"`` lets inner folds choose among the others.
    split : Division
        Training and test part.
    method : str
        The method's name, see `known_methods`.
    version : int
        Version of the method's results, see `method_version`.
    parameters : dict
        Parameters that are fixed.
    defaults : dict
        The defaults of the others, which may change from one version to the next.
    grid : dict
        Values among which inner folds choose.
    selection : Selection or None
        How parameters are chosen; None where there is nothing to choose.
    kind : {"uniform", "pairs", "feature", "dictionary", "constant", "flip"}
        Where false candidates come from.
    noise : float
        Share of the candidate sets that miss the truth.

    Examples
    --------
    >>> from skpll.experiments import Specification, plan
    >>> tasks = list(plan(Specification.read("table3")))
    >>> tasks[0].label, tasks[0].dataset, len(tasks[0].key)
    ('SP-PLL, our pace', 'lost', 32)
    """

    label: str
    series: str
    repeat: int
    dataset: str
    rows: int | None
    scaling: str
    split: Division
    method: str
    version: int
    parameters: Values
    defaults: Values
    grid: dict[str, list[object]]
    selection: Selection | None
    p: float | None = None
    r: int | None = None
    corruption_seed: int | None = None
    kind: str = "uniform"
    noise: float = 0.0

    @cached_property
    def definition(self) -> str:
        """All that the result depends on, as canonical JSON, the division first.

        The first stores have the entries `features`, `content` and `trace`; they stay, so that keys
        stay the same.
        """
        kept = (field.name for field in fields(self) if field.name not in _NOT_IN_KEY)
        content: Values = {"features": {}, "content": None, "trace": False}
        content |= {name: getattr(self, name) for name in kept}
        for name, default in _DEFAULTS_NOT_IN_KEY.items():
            if content[name] == default:
                del content[name]
        return f'{{"split":{_ENCODER.encode(vars(self.split))},{_ENCODER.encode(content)[1:]}'

    @cached_property
    def key(self) -> str:
        """A hash of the definition: 32 hexadecimal digits.

        Tasks of different experiments that would give the same result have the same key.
        """
        return hashlib.sha256(self.definition.encode()).hexdigest()[:32]


def check_name(name: str, known: Collection[str], place: str, kind: str = "key") -> str:
    """Raise a ValueError for an unknown name, with the most similar known one."""
    if name in known:
        return name
    raise ValueError(
        f"{place}: unknown {kind} {name!r}.{did_you_mean(name, known)} Known: {', '.join(known)}."
    )


def did_you_mean(name: str, known: Collection[str]) -> str:
    """Return a question that names the most similar known name; nothing where none is similar."""
    near = difflib.get_close_matches(name, known, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def known_methods() -> dict[str, type[BaseEstimator]]:
    """Return every method and baseline, mixtures, and ``deep``, a network of skpll.deep, by name.

    Returns
    -------
    dict from str to class
    """
    from skpll import StackedCandidates, all_methods
    from skpll.baselines import all_baselines

    from .deep import DeepNetwork

    others = {"stackedcandidates": StackedCandidates, "deep": DeepNetwork}
    return all_methods() | all_baselines() | others


def method_version(name: str) -> int | None:
    """Return the version of the results of a method, see `RESULT_VERSIONS`.

    It is part of the key of a task, so results of an older version are not reused.

    Parameters
    ----------
    name : str
        Name of the method, see `known_methods`.

    Returns
    -------
    int or None
        None if there is no such method.
    """
    return RESULT_VERSIONS.get(name, 1) if name in known_methods() else None


def make_method(name: str, parameters: Values) -> BaseEstimator:
    """Return a method with parameters; models inside may be given by name.

    Parameters
    ----------
    name : str
        Name of the method, see `known_methods`.
    parameters : dict
        Its parameters. ``estimator`` is the name of a method, or of a classifier of scikit-learn:
        ``"logistic_regression"``, ``"random_forest"`` or ``"hist_gradient_boosting"``;
        ``estimators`` is a list of such names.

    Returns
    -------
    PartialLabelClassifier
    """
    inner, several = parameters.get("estimator"), parameters.get("estimators")
    if isinstance(inner, str):
        parameters = parameters | {"estimator": _model(inner, "estimator")}
    if isinstance(several, list):
        models = [(each, _model(each, "estimators")) for each in several]
        parameters = parameters | {"estimators": models}
    return known_methods()[name](**parameters)


def _model(name: str, parameter: str) -> BaseEstimator:
    """Return the method or the classifier of a name."""
    known = known_methods()
    check_name(name, [*known, *CLASSIFIERS], parameter, "name")
    module, class_name, given = CLASSIFIERS.get(name, ("", "", {}))
    cls = getattr(import_module(module), class_name) if module else known[name]
    return cls(**given)


def _plain(value: object) -> object:
    """Convert what JSON does not know to text that is the same in every process."""
    if isinstance(value, Selection):
        return structs.asdict(value)
    return getattr(value, "__qualname__", repr(value))


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=_plain)
