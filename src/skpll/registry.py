"""The methods there are, by the names that the command line and the experiments use."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from inspect import Parameter, signature
from typing import Any

import skpll

from ._errors import ArgumentError
from .base import PartialLabelClassifier


def all_methods() -> dict[str, type[PartialLabelClassifier]]:
    """Give every method of the package under its name in lower case.

    A method is registered by its public name: one line in ``skpll/__init__.pyi``. What has to be
    given another method first, such as `CalibratedCandidatesCV`, is not one of them.

    Examples
    --------
    >>> from skpll import all_methods
    >>> all_methods()["plknn"]
    <class 'skpll.neighbors.plknn.PLKNN'>
    """
    public = (getattr(skpll, name) for name in skpll.__all__)
    return {
        value.__name__.lower(): value
        for value in public
        if isinstance(value, type)
        and issubclass(value, PartialLabelClassifier)
        and value is not PartialLabelClassifier
        and not _required_parameters(value)
    }


def _required_parameters(method: type[PartialLabelClassifier]) -> list[str]:
    parameters = list(signature(method).parameters.values())
    return [p.name for p in parameters if p.default is Parameter.empty]


def make_method(
    name: str, parameters: Mapping[str, Any], seed: int | None = None
) -> PartialLabelClassifier:
    """Make the method of a name, with parameters; the seed goes in where there is chance.

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
    methods = all_methods()
    if name not in methods:
        near = get_close_matches(name, methods, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(methods)}."
        raise ArgumentError("method", f"there is no method {name!r}; {hint}")
    method = methods[name]()
    known = method.get_params(deep=False)
    for parameter in parameters:
        if parameter not in known:
            raise ArgumentError(
                "parameters", f"{name} has no {parameter!r}; it has {', '.join(sorted(known))}."
            )
    if "random_state" in known and seed is not None:
        method.set_params(random_state=seed)
    return method.set_params(**parameters)
