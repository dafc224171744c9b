"""The package as a whole: what importing it costs, and that its documentation runs."""

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.version import Version

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


REFERENCE = Path(__file__).parents[1] / "docs" / "api.md"


@pytest.mark.skipif(not REFERENCE.exists(), reason="the documentation is not here")
def test_every_name_of_the_reference_has_an_example():
    module, without = "", []
    for line in REFERENCE.read_text(encoding="utf-8").splitlines():
        module = line.removeprefix(".. currentmodule:: ") if "currentmodule" in line else module
        if re.fullmatch(r"   [\w.]+", line):
            *parts, name = f"{module}.{line.strip()}".split(".")
            if ">>>" not in (getattr(importlib.import_module(".".join(parts)), name).__doc__ or ""):
                without.append(name)
    assert module
    assert not without


def test_the_oldest_versions_tested_are_those_claimed():
    root = Path(__file__).parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = ("cli", "plot", "tables", "data", "dask", "test")
    claimed = dict(
        re.fullmatch(r"([\w-]+)>=([\d.]+)", requirement).groups()
        for requirement in [
            *project["dependencies"],
            *(r for extra in extras for r in project["optional-dependencies"][extra]),
        ]
        if not requirement.startswith("skpll")
    )
    lines = (root / ".ci/oldest.txt").read_text(encoding="utf-8").splitlines()
    tested = dict(line.split("==") for line in lines if not line.startswith("#"))
    for name, version in claimed.items():
        assert Version(tested[name]) == Version(version), name
