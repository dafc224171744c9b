"""Sample mutants of the source, and report those that no test notices.

python -m tools.mutants [--count 300] [--seed 0] [--only candidates] [--jobs 2] [--out FILE]

A mutant is the source with one small change: a comparison, an operator, a constant or a condition
is replaced, or a statement is left out. Each one is run against the tests that `TARGETS` names for
its module, in a copy of the source; a test that fails, or takes far too long, kills it. The tests
of solvers run with the compiler switched off.

The command prints every survivor with its line, and ends with status 1 if fewer than `--share` of
the mutants were killed. A survivor is a missing assertion, or a change that cannot alter a result.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
os.environ.setdefault("SCIPY_ARRAY_API", "1")  # as in tests/conftest.py

import numba  # what the tests import is loaded once, before the forks
import pandas as pd  # noqa: F401
import pytest
import sklearn.ensemble
import sklearn.model_selection  # noqa: F401

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "skpll"
MIN_LIMIT = 30
"""Processor seconds that a mutant may always take."""
SLOWER = 5
"""A mutant is killed when it takes this many times as much as the source itself."""
HANGING = 20
"""A mutant is killed when its limit has passed this many times on the clock, too."""

TARGETS: dict[str, tuple[list[str], list[str]]] = {
    "candidates": (["candidates.py", "_formats.py"], ["test_candidates.py", "test_base.py"]),
    "base": (
        ["base.py"],
        [
            *("neighbors/test_plknn.py", "test_diagnosis.py", "test_contract.py"),
            "-k=plknn or base or no_opinion or diagnosis",
        ],
    ),
    "pacing": (["pacing.py"], ["test_pacing.py", "test_self_paced.py", "margin/test_sppll.py"]),
    "metrics": (["metrics.py"], ["test_metrics.py"]),
    "solvers": (["solvers/*.py"], []),
    "leave_one_out": (
        ["leave_one_out/*.py", "engine/*.py"],
        [
            *("{folder}/test_loop.py", "{folder}/test_plloo.py", "leave_one_out", "engine"),
            *("large/test_growth.py", "large/test_many.py", "large/test_tensors.py"),
        ],
    ),
    "votes": (
        ["tables/votes.py", "crowd/*.py"],
        [
            *("crowd", "tables/test_disambiguate.py", "tables/test_files_of_people.py"),
            "cli/test_aggregate.py",
        ],
    ),
    "store": (["experiments/store.py"], ["experiments/test_store.py"]),
}
"""Source files by part, and the tests that should notice a change of them.

The tests of the same name, such as ``solvers/test_ridge.py`` for ``solvers/ridge.py``, come first
of themselves. Files that are not there are left out, so that the table survives a move; words that
start with a dash are options of pytest.
"""

MORE_TESTS = {
    "solvers/_margin_kernels.py": ["solvers/test_margins.py", "solvers/test_crammer_singer.py"],
    "solvers/dual_newton.py": ["solvers/test_convex_partial.py"],
    "solvers/stick_breaking.py": ["solvers/test_logistic_gates.py"],
    "solvers/label_smoothing.py": [
        "solvers/test_simplex_projection.py",
        "solvers/test_label_propagation.py",
    ],
}
"""Further tests of single files."""

COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.Mod: "*",
    ast.Pow: "*",
    ast.BitAnd: "|",
    ast.BitOr: "&",
    ast.MatMult: "*",
}
WITHOUT_EFFECT = {
    "strict",
    "check_finite",
    "overwrite_a",
    "overwrite_b",
    "overwrite_c",
    "stacklevel",
}
"""Arguments whose values are left alone: they guard against mistakes, or save time."""

NAMES = {
    "minimum": "maximum",
    "min": "max",
    "argmin": "argmax",
    "any": "all",
    "floor": "ceil",
    "ones": "zeros",
    "flatnonzero": "argsort",
}
NAMES |= {new: old for old, new in NAMES.items() if old != "flatnonzero"}


@dataclass(frozen=True)
class Mutant:
    """One change: what stands from `start` to `end` of a file, and what stands there instead."""

    file: str
    line: int
    start: int
    end: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {_short(self.before)} -> {_short(self.after)}"


def _short(code: str) -> str:
    line = " ".join(code.split())
    return line if len(line) <= 60 else line[:57] + "..."


class _Places(ast.NodeVisitor):
    """Collects the changes of one file; messages, annotations and imports are left alone."""

    def __init__(self, source: str) -> None:
        self.source = source.encode()
        lines = self.source.splitlines(keepends=True)
        self.offsets = [0]
        for line in lines:
            self.offsets.append(self.offsets[-1] + len(line))
        self.found: list[tuple[int, int, int, str]] = []
        self.depth = 0

    def span(self, node: ast.AST) -> tuple[int, int]:
        return (
            self.offsets[node.lineno - 1] + node.col_offset,  # type: ignore[attr-defined]
            self.offsets[node.end_lineno - 1] + node.end_col_offset,  # type: ignore[attr-defined]
        )

    def text(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.source[start:end].decode()

    def add(self, node: ast.AST, after: str) -> None:
        self.found.append((node.lineno, *self.span(node), after))  # type: ignore[attr-defined]

    def between(self, left: ast.AST, right: ast.AST, after: str) -> None:
        """Replace the operator between two operands, whose brackets stay where they are."""
        start, end = self.span(left)[1], self.span(right)[0]
        gap = self.source[start:end].decode()
        if "#" in gap or "\n" in gap:
            return
        head, tail = gap[: gap.rfind(")") + 1], gap[gap.find("(") :] if "(" in gap else ""
        self.found.append((right.lineno, start, end, f"{head} {after} {tail}"))  # type: ignore[attr-defined]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.depth += 1
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)
        body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
        for statement in body:
            self.statement(statement)
        self.depth -= 1

    def statement(self, node: ast.stmt) -> None:
        is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        if is_call or isinstance(node, ast.AugAssign | ast.Continue | ast.Break):
            self.add(node, "pass")
        self.visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        for _, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.stmt):
                    self.statement(child)
                elif isinstance(child, ast.AST):
                    self.visit(child)

    def ignore(self, node: ast.AST) -> None:
        """Leave this part of the source as it is."""

    visit_Raise = visit_JoinedStr = visit_Import = visit_ImportFrom = visit_Assert = ignore

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if self.depth and node.value is not None:
            self.visit(node.value)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg not in WITHOUT_EFFECT:
            self.visit(node.value)

    def visit_Compare(self, node: ast.Compare) -> None:
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            self.between(left, right, COMPARISONS[type(operator)])
            left = right
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if self.depth and type(node.op) in OPERATORS:
            self.between(node.left, node.right, OPERATORS[type(node.op)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        after = "or" if isinstance(node.op, ast.And) else "and"
        for left, right in zip(node.values, node.values[1:], strict=False):
            self.between(left, right, after)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if self.depth and not isinstance(node.operand, ast.Constant):
            self.add(node, f"({self.text(node.operand)})")
        self.generic_visit(node)

    def visit_If(self, node: ast.If | ast.IfExp) -> None:
        if self.text(node.test) == "TYPE_CHECKING":
            return
        self.add(node.test, f"(not ({self.text(node.test)}))")
        self.generic_visit(node)

    visit_IfExp = visit_If

    def visit_Constant(self, node: ast.Constant) -> None:
        if self.depth == 0:
            return  # what stands outside of functions is mostly a limit that only changes the speed
        if isinstance(node.value, bool):
            self.add(node, str(not node.value))
        elif isinstance(node.value, int | float):
            self.add(node, f"({node.value!r} + 1)")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr in NAMES:
            self.add(node, f"{self.text(node.value)}.{NAMES[node.attr]}")
        self.visit(node.value)


def mutants_of(file: Path) -> Iterator[Mutant]:
    """Yield the changes of a file; a few of them may be no valid Python."""
    source = file.read_bytes()
    places = _Places(source.decode())
    places.visit(ast.parse(source))
    name = file.relative_to(PACKAGE).as_posix()
    for line, start, end, after in places.found:
        yield Mutant(name, line, start, end, source[start:end].decode(), after)


def is_valid(mutant: Mutant) -> bool:
    """Return True if the changed file is Python, and another program than before."""
    source = (PACKAGE / mutant.file).read_bytes()
    try:
        after = ast.parse(changed(source, mutant))
    except SyntaxError:
        return False
    return ast.dump(after) != ast.dump(ast.parse(source))


def changed(source: bytes, mutant: Mutant) -> bytes:
    """Return the source with the change in it."""
    return source[: mutant.start] + mutant.after.encode() + source[mutant.end :]


def tests_of(file: str, named: list[str]) -> list[str]:
    """Return the tests of a source file that are there, those of the same name first."""
    path = Path(file)
    stem, folder = path.stem.strip("_").removesuffix("_kernels"), path.parent.as_posix()
    own = f"{folder}/test_{stem}.py".removeprefix("./")
    named = [*MORE_TESTS.get(file, []), *named]
    wanted = dict.fromkeys([own, *(name.format(folder=folder) for name in named)])
    found = [name for name in wanted if (ROOT / "tests" / name).exists()]
    apart = [name for name in found if not any(name.startswith(f"{other}/") for other in found)]
    options = [name for name in wanted if name.startswith("-")]
    return [f"tests/{name}" for name in apart] + options if apart else []


def sample(count: int, seed: int, only: list[str]) -> list[tuple[Mutant, list[str]]]:
    """Draw mutants, equally many from each target as far as it has them."""
    generator = random.Random(seed)
    pools = []
    for target, (patterns, named) in TARGETS.items():
        files = sorted({file for pattern in patterns for file in PACKAGE.glob(pattern)})
        pool = [
            (mutant, tests)
            for file in files
            if (tests := tests_of(file.relative_to(PACKAGE).as_posix(), named))
            for mutant in mutants_of(file)
        ]
        generator.shuffle(pool)
        if not only or target in only:
            pools.append(pool)
    drawn: list[tuple[Mutant, list[str]]] = []
    while len(drawn) < count and any(pools):
        turn = [pool.pop() for pool in pools if pool]
        drawn += [pair for pair in turn if is_valid(pair[0])][: count - len(drawn)]
    return drawn


@dataclass(frozen=True)
class Trial:
    """What became of a mutant: ``"killed"``, ``"timeout"`` or ``"survived"``."""

    mutant: Mutant
    outcome: str
    seconds: float


@dataclass
class Run:
    """A process that runs tests in a copy of the source, which has one file changed or none."""

    tests: list[str]
    limit: int
    mutant: Mutant | None = None
    copy: Path = Path()
    outcome: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        return " ".join(["unchanged:", *self.tests]) if self.mutant is None else str(self.mutant)

    def start(self) -> Run:
        """Write the change, and start the process."""
        if self.mutant is not None:
            file = self.copy / "skpll" / self.mutant.file
            self.original = file.read_bytes()
            file.write_bytes(changed(self.original, self.mutant))
        self.end = time.monotonic() + HANGING * self.limit
        self.process = os.fork()
        if self.process == 0:
            resource.setrlimit(resource.RLIMIT_CPU, (self.limit, self.limit + 5))
            os._exit(_pytest(self.tests, self.copy))
        return self

    def finished(self) -> bool:
        """Return True if the tests have ended or were stopped; `outcome` says how."""
        done, status, usage = os.wait4(self.process, os.WNOHANG)
        if not done and time.monotonic() > self.end:
            os.kill(self.process, signal.SIGKILL)
            done, status, usage = os.wait4(self.process, 0)
        if not done:
            return False
        self.seconds = usage.ru_utime + usage.ru_stime
        code = os.waitstatus_to_exitcode(status)
        stopped = code in (-signal.SIGXCPU, -signal.SIGKILL)
        self.outcome = "timeout" if stopped else "killed" if code else "survived"
        if self.mutant is not None:
            (self.copy / "skpll" / self.mutant.file).write_bytes(self.original)
        return True


def _pytest(tests: list[str], source: Path) -> int:
    """Run tests in this process, which is a fork: the large libraries are loaded already."""
    os.chdir(ROOT)
    numba.config.DISABLE_JIT = any("solvers/" in name for name in tests)
    paths = [str(source), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    sys.path.insert(0, str(source))
    sys.dont_write_bytecode = True
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    words = ["-q", "-x", "-m", "not slow", "-p", "no:cacheprovider", "--no-header", "--tb=no"]
    try:
        return int(pytest.main([*words, *tests]))
    except BaseException:
        return 1


def try_all(
    drawn: list[tuple[Mutant, list[str]]], copies: list[Path]
) -> tuple[list[Trial], list[str]]:
    """Run the tests on the source as it is, then on each mutant; one run at a time in each copy.

    Returns the trials, and the tests that fail without any change: their mutants are not tried.
    """
    mutants: dict[tuple[str, ...], list[Mutant]] = {}
    for mutant, tests in drawn:
        mutants.setdefault(tuple(tests), []).append(mutant)
    waiting = [Run(list(tests), limit=3600) for tests in reversed(mutants)]
    running, free = list[Run](), list(copies)
    trials, broken = list[Trial](), list[str]()
    while waiting or running:
        while waiting and free:
            run = waiting.pop()
            run.copy = free.pop()
            running.append(run.start())
        time.sleep(0.05)
        for run in [run for run in running if run.finished()]:
            running.remove(run)
            free.append(run.copy)
            print(f"{run.outcome:9}{run.seconds:6.1f} s  {run}", flush=True)
            if run.mutant is not None:
                trials.append(Trial(run.mutant, run.outcome, run.seconds))
            elif run.outcome != "survived":
                broken.append(" ".join(run.tests))
            else:
                limit = max(MIN_LIMIT, int(SLOWER * run.seconds))
                waiting[:0] = [Run(run.tests, limit, each) for each in mutants[tuple(run.tests)]]
    return trials, broken


def main() -> int:
    """Draw mutants, try them, and report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=300, help="number of mutants")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample")
    parser.add_argument("--only", nargs="*", choices=TARGETS, default=[], help="parts to sample")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at a time")
    parser.add_argument("--share", type=float, default=0.9, help="share that must be killed")
    parser.add_argument("--out", type=Path, help="write all outcomes to this JSON file")
    options = parser.parse_args()
    drawn = sample(options.count, options.seed, options.only)
    with tempfile.TemporaryDirectory() as folder:
        copies = [Path(folder) / f"src{job}" for job in range(options.jobs)]
        for copy in copies:
            shutil.copytree(ROOT / "src", copy)
        trials, broken = try_all(drawn, copies)
    survivors = [trial.mutant for trial in trials if trial.outcome == "survived"]
    killed = 1 - len(survivors) / max(len(trials), 1)
    print(f"\n{len(trials)} mutants, {killed:.1%} killed; survivors:")
    for mutant in sorted(survivors, key=lambda mutant: (mutant.file, mutant.line)):
        print(f"  {mutant}")
    if options.out is not None:
        options.out.write_text(json.dumps([asdict(trial) for trial in trials], indent=1) + "\n")
    for tests in broken:
        print(f"These tests fail without any change, so their mutants were not tried: {tests}")
    return int(killed < options.share or bool(broken))


if __name__ == "__main__":
    sys.exit(main())
