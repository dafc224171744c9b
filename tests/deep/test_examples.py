"""The examples in the docstrings of the deep part, which other environments leave out."""

import doctest
import importlib
import pkgutil

import pytest

from skpll import deep

MODULES = [module.name for module in pkgutil.walk_packages(deep.__path__, "skpll.deep.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_every_public_name_has_an_example():
    for name in set(deep.__all__) - {"losses"}:
        assert ">>>" in getattr(deep, name).__doc__, name
