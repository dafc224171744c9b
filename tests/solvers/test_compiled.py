"""The compiler's cache: where there is no room for it, and where another version wrote it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

import skpll
from skpll.solvers._compiled import inner_kernel, kernel

PACKAGE = Path(skpll.__file__).parent


@inner_kernel(fastmath=True)
def _square(x):
    return x * x


@kernel
def _sum_of_squares(x):
    total = 0.0
    for i in range(x.size):
        total += _square(x[i])
    return total


@kernel
def _ratio(a, b):
    return a / b


def test_kernels_call_inner_kernels():
    assert _sum_of_squares(np.array([1.0, 2.0, 3.0])) == 14.0
    assert _sum_of_squares.stats.cache_path


def test_division_follows_numpy():
    assert _ratio(1.0, 0.0) == np.inf


def run(code: str, path: Path, **environment: str) -> subprocess.CompletedProcess:
    """Run Python code with a package from `path`, and return what it prints."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "PYTHON", "XDG_"))}
    clean |= {"PYTHONPATH": str(path), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-c", code],
        env=clean | environment,
        capture_output=True,
        text=True,
        check=True,
    )


FIT = """
import warnings
import numpy as np
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from skpll import CLPL, IPAL, PLSVM
    X = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 2.0], [2.0, 0.0]])
    for method in (CLPL, IPAL, PLSVM):
        print(method().fit(X, ["a", "b", "a", "b"]).score(X, ["a", "b", "a", "b"]))
for warning in caught:
    print(warning.category.__name__, warning.message)
"""


def test_nothing_can_be_written(tmp_path):
    """A file in the place of every folder stops even a user who may write anything."""
    installed = tmp_path / "installed"
    shutil.copytree(PACKAGE, installed / "skpll", ignore=shutil.ignore_patterns("__pycache__"))
    (installed / "skpll" / "solvers" / "__pycache__").touch()
    nowhere = installed / "skpll" / "solvers" / "__pycache__" / "home"
    everywhere = {"HOME": str(nowhere), "XDG_CACHE_HOME": str(nowhere)}

    lines = run(FIT, installed, **everywhere).stdout.splitlines()
    assert lines[:3] == ["1.0"] * 3
    assert len(lines) == 4
    assert lines[3].startswith("RuntimeWarning the compiled kernels of skpll can't be kept")

    kept = run(FIT, installed, **everywhere, NUMBA_CACHE_DIR=str(tmp_path / "kept"))
    assert kept.stdout.splitlines() == ["1.0"] * 3


VERSION = """
from typing import NamedTuple
from skpll.solvers._compiled import inner_kernel, kernel

class {record}(NamedTuple):
    left: float
    right: float

@inner_kernel
def {inner}(pair):
    return pair.left {sign} pair.right

@kernel
def combine(pair):
    return {inner}(pair)

print(combine({record}(6.0, 3.0)), sum(combine.stats.cache_hits.values()))
"""


def test_cache_of_another_version(tmp_path):
    """Code that another version of the same file has left is not run, its own is."""
    module, kept = tmp_path / "module.py", {"NUMBA_CACHE_DIR": str(tmp_path / "kept")}

    def combine(inner: str, sign: str, record: str = "Pair") -> list[str]:
        text = VERSION.format(inner=inner, sign=sign, record=record)
        if not module.exists() or module.read_text() != text:  # older Numbas compare times
            module.write_text(text)
        path = os.pathsep.join([str(tmp_path), str(PACKAGE.parent)])
        return run("import module", Path(path), **kept).stdout.split()

    assert combine("first", "+") == ["9.0", "0"]
    assert combine("first", "+") == ["9.0", "1"]
    assert combine("second", "-") == ["3.0", "0"]
    assert combine("second", "-") == ["3.0", "1"]
    # The cache refers to a class that is gone.
    assert combine("second", "-", "Couple") == ["3.0", "0"]
    assert combine("second", "-", "Couple") == ["3.0", "1"]
