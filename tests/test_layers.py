"""Dependencies point downwards: read off the imports, also those inside functions."""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import skpll

ROOT = Path(skpll.__file__).parent

LAYERS = [
    {"_docs", "_errors", "_extra", "_parameters", "_typing", "_version"},
    {"_labels", "_progress", "_threads"},
    {"_formats", "crowd"},
    {"candidates"},
    {"_examples"},
    {"engine"},
    {"large"},
    {"solvers", "pacing", "_iteration", "_temperature", "datasets"},
    {"metrics", "diagnosis"},
    {"base"},
    {"neighbors", "mixture", "coding", "leave_one_out", "deep"},
    {"margin", "regression", "self_paced"},
    {"baselines"},
    {"registry"},
    {"model_selection", "plotting", "comparison"},
    {"tables"},
    {"experiments"},
    {"cli"},
    {"__main__"},
    {"skpll"},
]
"""The parts of the package, those first on which the others build. What is in one set doesn't know
the other parts of it."""

ALLOWED = {
    ("registry", "skpll"): "a method is registered by its public name, which the package has",
    ("experiments", "skpll"): "a run records the version of the package",
    ("comparison", "experiments"): "the old place of skpll.experiments.comparison, until 0.3",
}
"""Imports that break the rule, with the reason."""


def part_of(module: str) -> str:
    """Name the part of the package that a module belongs to: skpll.margin.sppll is of margin."""
    return module.split(".")[1] if "." in module else module


def modules() -> dict[str, Path]:
    """Find all modules of the package by their full names."""
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = ["skpll", *path.relative_to(ROOT).with_suffix("").parts]
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


MODULES = modules()


def run_time_imports(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports of a module, in functions too, but not those for type checkers alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            yield from run_time_imports(node)


def public_homes() -> dict[str, str]:
    """Read in the stub which module a public name comes from."""
    stub = ast.parse((ROOT / "__init__.pyi").read_text(encoding="utf-8"))
    return {
        alias.name: f"skpll.{node.module}" if node.module else f"skpll.{alias.name}"
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


HOMES = public_homes()


def targets(node: ast.Import | ast.ImportFrom, module: str) -> Iterator[str]:
    """Name the modules of the package that an import statement refers to."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "skpll")
        return
    base = node.module or ""
    if node.level:
        is_package = MODULES[module].name == "__init__.py"
        above = module.split(".")[: len(module.split(".")) - node.level + is_package]
        base = ".".join([*above, base]) if base else ".".join(above)
    if base.split(".")[0] != "skpll":
        return
    for alias in node.names:
        if base == "skpll":
            yield HOMES.get(alias.name, f"skpll.{alias.name}")
        elif f"{base}.{alias.name}" in MODULES:
            yield f"{base}.{alias.name}"
        else:
            yield base


def all_imports(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports of a module, also those for type checkers alone."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))


def imported_modules(
    find: Callable[[ast.AST], Iterator[ast.Import | ast.ImportFrom]],
) -> dict[str, set[str]]:
    return {
        module: {
            target
            for node in find(ast.parse(path.read_text(encoding="utf-8")))
            for target in targets(node, module)
            if target != module
        }
        for module, path in MODULES.items()
    }


IMPORTS = imported_modules(run_time_imports)
"""The modules of the package that each of them imports."""

GRAPH = {
    module: {name for name in imported if (part_of(module), part_of(name)) not in ALLOWED}
    for module, imported in IMPORTS.items()
}


def test_every_part_has_a_layer():
    parts = {part_of(module) for module in MODULES}
    assert parts <= set().union(*LAYERS)


def test_dependencies_point_downwards():
    height = {part: place for place, layer in enumerate(LAYERS) for part in layer}
    wrong = {
        f"{module} imports {target}"
        for module, imported in GRAPH.items()
        for target in imported
        if part_of(module) != part_of(target) and height[part_of(target)] >= height[part_of(module)]
    }
    assert not wrong


@pytest.mark.parametrize("find", [run_time_imports, all_imports])
def test_no_module_imports_itself_in_the_end(find):
    graph = {
        module: {name for name in imported if (part_of(module), part_of(name)) not in ALLOWED}
        for module, imported in imported_modules(find).items()
    }
    finished: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " → ".join([*path[path.index(module) :], module])
        if module in finished:
            return
        for target in sorted(graph.get(module, ())):
            visit(target, (*path, module))
        finished.add(module)

    for module in sorted(graph):
        visit(module, ())


def test_exceptions_are_still_needed():
    found = {
        (part_of(module), part_of(name))
        for module, imported in IMPORTS.items()
        for name in imported
    }
    assert set(ALLOWED) <= found


def test_solvers_know_nothing_of_estimators():
    for path in (ROOT / "solvers").glob("*.py"):
        for node in run_time_imports(ast.parse(path.read_text(encoding="utf-8"))):
            assert "sklearn" not in ast.unparse(node)


def messages(tree: ast.Module) -> Iterator[str]:
    """Yield the texts of a module that users may see: not its docstrings."""
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in texts:
            yield node.value


def test_the_library_does_not_speak_in_options_of_the_command_line():
    for module, path in MODULES.items():
        if part_of(module) not in ("cli", "experiments"):
            for text in messages(ast.parse(path.read_text(encoding="utf-8"))):
                assert not re.search(r"(^|[\s(])(?<!var\()--[a-z]", text), (module, text)
