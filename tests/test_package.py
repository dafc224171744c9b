"""The package as a whole: what importing it costs, and that its documentation runs."""

import ast
import doctest
import importlib
import inspect
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

ROOT = Path(__file__).parents[1]


def text_of(file):
    return (ROOT / file).read_text(encoding="utf-8")


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


PUBLIC = ["baselines", "crowd", "datasets", "experiments", "metrics", "model_selection"]
PUBLIC += ["pacing", "plotting", "solvers"]


@pytest.mark.parametrize("name", PUBLIC)
def test_public_modules_show_their_own_names_only(name):
    module = importlib.import_module(f"skpll.{name}")
    assert dir(module) == sorted(module.__all__)
    assert all(hasattr(module, public) for public in module.__all__)


@pytest.mark.parametrize("name", PUBLIC)
def test_shared_entries_of_docstrings_are_filled_in(name):
    module = importlib.import_module(f"skpll.{name}")
    found = [getattr(module, public) for public in module.__all__]
    found += skpll.all_methods().values()
    members = [getattr(owner, part) for owner in found for part in dir(owner) if part[0] != "_"]
    for documented in [*found, *members]:
        assert "<<" not in (inspect.getdoc(documented) or "")


@pytest.mark.parametrize("name", sorted(skpll.all_methods()))
def test_documented_defaults_are_those_of_the_constructor(name):
    method = skpll.all_methods()[name]
    parameters = inspect.getdoc(method).partition("Attributes\n")[0]
    documented = dict(re.findall(r"^(\w+) : .*default=(.+)$", parameters, re.MULTILINE))
    assert documented
    for parameter, value in documented.items():
        assert inspect.signature(method).parameters[parameter].default == ast.literal_eval(value)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    if name.startswith("skpll.deep."):
        pytest.importorskip("skorch", reason="skorch and torch are not installed")
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
        if module.startswith("skpll.deep"):
            continue  # tests/deep, where there is torch
        if re.fullmatch(r"   [\w.]+", line):
            *parts, name = f"{module}.{line.strip()}".split(".")
            if ">>>" not in (getattr(importlib.import_module(".".join(parts)), name).__doc__ or ""):
                without.append(name)
    assert module
    assert not without


def test_the_oldest_versions_tested_are_those_claimed():
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    extras = ("cli", "plot", "tables", "data", "dask", "approx", "deep", "test")
    claimed = dict(
        re.fullmatch(r"([\w-]+)>=([\d.]+)", requirement).groups()
        for requirement in [
            *project["dependencies"],
            *(r for extra in extras for r in project["optional-dependencies"][extra]),
        ]
        if not requirement.startswith("skpll")
    )
    lines = text_of(".ci/oldest.txt").splitlines()
    tested = dict(line.split("==") for line in lines if not line.startswith("#"))
    for name, version in claimed.items():
        assert Version(tested[name]) == Version(version), name


@pytest.mark.skipif(not REFERENCE.exists(), reason="the documentation is not here")
def test_the_documentation_installs_what_its_examples_import():
    extras = tomllib.loads(text_of("pyproject.toml"))["project"]["optional-dependencies"]
    requirements = [
        *extras["docs"],
        *tomllib.loads(text_of("pyproject.toml"))["project"]["dependencies"],
    ]
    for extra in re.fullmatch(r"skpll\[(.+)\]", extras["docs"][-1])[1].split(","):
        requirements += extras[extra]
    installed = {re.match(r"[\w-]+", requirement)[0] for requirement in requirements}
    # The example of deep networks is shown and not run.
    files = [file for file in ROOT.glob("examples/**/*.py") if file.name != "deep_losses.py"]
    source = "\n".join(file.read_text(encoding="utf-8") for file in files)
    imported = set(re.findall(r"^\s*(?:import|from) (\w+)", source, re.M))
    names = {"sklearn": "scikit-learn"}
    needed = {names.get(name, name) for name in imported - set(sys.stdlib_module_names)}
    assert needed - {"skpll", "__future__"} <= installed
    assert "tables" in extras["docs"][-1] or "skpll.tables" not in source


WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))


@pytest.mark.skipif(not WORKFLOWS, reason="a source archive holds no workflows")
def test_actions_are_pinned_to_a_commit_with_its_version_beside_it():
    uses = [
        line
        for file in WORKFLOWS
        for line in file.read_text(encoding="utf-8").splitlines()
        if "uses:" in line
    ]
    pinned = r"\s+- uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+"
    assert uses
    assert [line for line in uses if not re.fullmatch(pinned, line)] == []


def test_the_release_has_one_version():
    assert re.search(r"^version: (.+)$", text_of("CITATION.cff"), re.M)[1] == skpll.__version__
    assert re.search(r"^## ([\d.]+)", text_of("CHANGELOG.md"), re.M)[1] == skpll.__version__
