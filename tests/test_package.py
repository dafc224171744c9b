"""The package as a whole: what importing it costs, and that its documentation runs."""

import doctest
import importlib
import pkgutil
import subprocess
import sys

import pytest

import skpll

MODULES = [
    module.name
    for module in pkgutil.walk_packages(skpll.__path__, "skpll.")
    if not module.name.endswith("__main__")
]


def test_importing_is_cheap():
    code = "import skpll, sys; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"numba", "pandas", "matplotlib", "sklearn", "scipy", "polars", "dask", "numpy"}
    assert not heavy & set(loaded)


def test_public_names_resolve():
    for name in skpll.__all__:
        assert getattr(skpll, name) is not None
    assert dir(skpll) == sorted(skpll.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        skpll.nothing  # noqa: B018


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    results = doctest.testmod(
        importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert results.failed == 0
