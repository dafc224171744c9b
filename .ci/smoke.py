"""Try the installed wheel as a user would; runs in an environment that has nothing else."""

import subprocess
import sys
from pathlib import Path

import skpll

assert ".venv" not in Path(skpll.__file__).parts, skpll.__file__
assert (Path(skpll.__file__).parent / "py.typed").exists()


def core() -> None:
    """Every method learns from embedded data with the core dependencies alone."""
    X, _, y = skpll.datasets.load_dataset("iris", return_X_S_y=True)
    S = skpll.datasets.make_partial_labels(y, p=0.5, r=1, random_state=0)
    for name, method in skpll.all_methods().items():
        model = method().fit(X, S)
        accuracy = model.score(X, y)
        print(f"{name}: {accuracy:.3f}")
        assert accuracy > 0.7, name
    without_cli = subprocess.run(["empty/bin/skpll", "demo"], capture_output=True, text=True)
    assert without_cli.returncode == 1, without_cli
    assert "pip install" in without_cli.stderr, without_cli


def cli() -> None:
    """The command line starts, lists the data and refuses what it does not know."""
    for words, status in (
        (["--help"], 0),
        (["--version"], 0),
        (["data", "list"], 0),
        (["data", "show", "iris"], 0),
        (["data", "show", "no-such-set"], 2),
        (["no-such-command"], 2),
    ):
        done = subprocess.run(["empty/bin/skpll", *words], capture_output=True, text=True)
        assert done.returncode == status, (words, done)
        assert "Traceback" not in done.stderr, done


{"core": core, "cli": cli}[sys.argv[1]]()
