"""Users' type checkers know what comes out, and find what can't go in."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import skpll

pytest.importorskip("mypy", reason="mypy is not installed")
pytestmark = pytest.mark.xdist_group("mypy")
FOLDER = Path(__file__).parent / "typing"


@pytest.fixture(scope="session")
def errors(tmp_path_factory):
    """Lines in which strict mypy finds a mistake, by file."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"),
            *("--config-file=", f"--cache-dir={tmp_path_factory.mktemp('mypy')}", "."),
        ],
        cwd=FOLDER,
        env=os.environ | {"MYPYPATH": str(Path(skpll.__file__).parents[1])},
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = re.findall(r"^(\w+\.py):(\d+): error", done.stdout, flags=re.MULTILINE)
    return {
        file.name: {int(line) for name, line in found if name == file.name}
        for file in FOLDER.glob("*.py")
    }


def marked(name, mark):
    lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    return {number for number, line in enumerate(lines, 1) if re.search(mark, line)}


def test_types_are_known(errors):
    assert errors["accepted.py"] == set()


def test_mistakes_are_found(errors):
    assert marked("refused.py", "# refused$") <= errors["refused.py"]
    assert errors["refused.py"] <= marked("refused.py", "# refused")


def test_options_that_there_are_not_are_found(errors):
    assert marked("refused.py", "# refused: an option") <= errors["refused.py"]
