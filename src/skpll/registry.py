"""The methods there are, by the names that the command line and the experiments use."""

from __future__ import annotations

import skpll

from .base import PartialLabelClassifier


def all_methods() -> dict[str, type[PartialLabelClassifier]]:
    """Give every method of the package under its name in lower case.

    A method is registered by its public name: one line in ``skpll/__init__.pyi``.

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
    }
