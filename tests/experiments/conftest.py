"""Small experiments, and work that costs nothing."""

from pathlib import Path

import pytest

from skpll.experiments import Specification, Store

SUPPORT = Path(__file__).parent / "support"


def specification_text(
    name="small", *, folds=3, repeats=1, data='name = "iris"\np = [0.3]', methods=None, more=""
):
    methods = methods or ['method = "plknn"']
    entries = "\n".join(f"[[methods]]\n{method}" for method in methods)
    return (
        f'name = "{name}"\n[protocol]\nfolds = {folds}\nrepeats = {repeats}\n'
        f"[[data]]\n{data}\n{entries}\n{more}\n"
    )


@pytest.fixture
def small():
    """Make a small specification; the arguments change it."""

    def make(**changes):
        return Specification.parse(specification_text(**changes))

    return make


@pytest.fixture
def fake_work(monkeypatch):
    """Let workers import `fake_work`."""
    monkeypatch.syspath_prepend(SUPPORT)
    return "fake_work"


@pytest.fixture
def table():
    """Read what a store holds of an experiment, without when it was done."""

    def read(path, experiment=None):
        with Store.open(path, read_only=True) as store:
            frame = store.results(experiment)
        return frame.drop(columns=["run", "seconds", "fit_seconds"]).to_dict("records")

    return read
