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
        (["status", "no-such-store.db"], 2),
        (["data", "show", "iris"], 0),
        (["data", "show", "no-such-set"], 2),
        (["no-such-command"], 2),
    ):
        done = subprocess.run(["empty/bin/skpll", *words], capture_output=True, text=True)
        assert done.returncode == status, (words, done)
        assert "Traceback" not in done.stderr, done


def tables() -> None:
    """What comes beside the code is in the wheel: specifications, pages, and their templates."""
    assert "table3" in skpll.experiments.shipped_specifications()
    rows = "\n".join(
        f"{i % 7},{i % 2},{'even|odd' if i % 3 else ['even', 'odd'][i % 2]}" for i in range(60)
    )
    Path("table.csv").write_text("x,y,who\n" + rows + "\n", encoding="utf-8")
    Path("spec.toml").write_text(
        'name = "small"\n[protocol]\nfolds = 2\n'
        '[[data]]\nname = "iris"\np = 0.5\n[[methods]]\nmethod = "plknn"\n',
        encoding="utf-8",
    )
    for words in (
        "disambiguate table.csv --candidates who --out resolved.csv --report review.html",
        "fit table.csv --candidates who --out model.skops",
        "predict model.skops table.csv --out predicted.csv",
        "run spec.toml --store results.db --jobs 2",
        "report results.db --out report",
    ):
        done = subprocess.run(["empty/bin/skpll", *words.split()], capture_output=True, text=True)
        assert done.returncode == 0, (words, done)
    for made in ("resolved.csv", "review.html", "predicted.csv", "report/index.html"):
        assert Path(made).stat().st_size > 0, made


{"core": core, "cli": cli, "tables": tables}[sys.argv[1]]()
