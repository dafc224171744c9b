"""The methods by the names that the command line and the experiments use."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from inspect import Parameter, signature
from typing import TypeGuard

import skpll

from ._errors import ArgumentError
from .base import PartialLabelClassifier


def all_methods() -> dict[str, type[PartialLabelClassifier]]:
    """Return every method of the package by its name in lower case.

    A method is registered by its public name: one line in ``skpll/__init__.pyi``. What has to be
    given another method first, such as `CalibratedCandidatesCV`, is not one of them.

    Examples
    --------
    >>> from skpll import all_methods
    >>> all_methods()["plknn"]
    <class 'skpll.neighbors.plknn.PLKNN'>
    """
    public = (getattr(skpll, name) for name in skpll.__all__)
    return {value.__name__.lower(): value for value in public if _is_method(value)}


def find_method(name: str) -> type[PartialLabelClassifier]:
    """Return the method of a name; the modules of other methods are not imported.

    Examples
    --------
    >>> from skpll.registry import find_method
    >>> find_method("plknn")
    <class 'skpll.neighbors.plknn.PLKNN'>
    """
    for public in skpll.__all__:
        if public.lower() == name and _is_method(getattr(skpll, public)):
            return getattr(skpll, public)
    methods = all_methods()
    near = get_close_matches(name, methods, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(methods)}."
    raise ArgumentError("method", f"there is no method {name!r}; {hint}")


def _is_method(value: object) -> TypeGuard[type[PartialLabelClassifier]]:
    """Return whether a public name is a method: a classifier that needs no argument."""
    if not (isinstance(value, type) and issubclass(value, PartialLabelClassifier)):
        return False
    return value is not PartialLabelClassifier and not _needs_an_argument(value)


@cache
def _needs_an_argument(kind: type) -> bool:
    """Return whether an object of a class can't be made without an argument."""
    return any(p.default is Parameter.empty for p in signature(kind).parameters.values())


def make_method(
    name: str, parameters: Mapping[str, object], seed: int | None = None
) -> PartialLabelClassifier:
    """Return the method of a name, with parameters; the seed is its `random_state`.

    Parameters
    ----------
    name : str
        A name of `all_methods`.
    parameters : mapping
        Parameters of its constructor.
    seed : int, optional
        The seed, unless `parameters` has a ``random_state``.

    Returns
    -------
    method : PartialLabelClassifier
    """
    method = find_method(name)()
    known = method.get_params(deep=False)
    for parameter in parameters:
        if parameter not in known:
            raise ArgumentError(
                "parameters", f"{name} has no {parameter!r}; it has {', '.join(sorted(known))}."
            )
    if "random_state" in known and seed is not None:
        method.set_params(random_state=seed)
    return method.set_params(**parameters)
