"""Packages whose names are imported when they are first used.

scikit-learn, numba and data-frame libraries take seconds to import; a command line or a program
that needs one function should not wait for all of them. The stub of a package (``__init__.pyi``)
says which name comes from which module: type checkers read it, and so does this module.
"""

import ast
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def lazy_names(
    package: str, init_file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make the ``__getattr__``, ``__dir__`` and ``__all__`` of a package from its stub."""
    home = _names_in_stub(Path(init_file).with_suffix(".pyi"))

    def __getattr__(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(f".{home[name] or name}", package)
        value = getattr(module, name) if home[name] else module
        setattr(sys.modules[package], name, value)
        return value

    def __dir__() -> list[str]:
        return sorted(home)

    return __getattr__, __dir__, sorted(home)


def _names_in_stub(stub: Path) -> dict[str, str]:
    """Map each public name to its module; a submodule maps to the empty string."""
    tree = ast.parse(stub.read_text(encoding="utf-8"))
    return {
        alias.name: statement.module or ""
        for statement in tree.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
