"""The examples in the docstrings of the deep part, which other environments leave out."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

from skpll import deep

MODULES = [module.name for module in pkgutil.walk_packages(deep.__path__, "skpll.deep.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


GUIDE = Path(__file__).parents[2] / "docs" / "deep.md"


@pytest.mark.skipif(not GUIDE.exists(), reason="the documentation is not here")
def test_the_python_of_the_guide_runs():
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text("utf-8"), re.S | re.M)
    names = {}
    for block in blocks:
        exec(block, names)
    assert len(blocks) == 4
    assert (names["head"].transduction_ == names["y"]).mean() > 0.95
    assert len(names["tuned"].history_) == 5


def test_every_public_name_has_an_example():
    for name in set(deep.__all__) - {"losses"}:
        assert ">>>" in getattr(deep, name).__doc__, name
