"""Settings for the whole suite, and the fixtures that any part of it may use."""

import os
import pickle
from importlib import import_module

# scikit-learn's array-API check skips itself unless scipy was told before its import.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

# Workers of pytest-xdist have a width of 80; output that is no terminal's has its own.
os.environ.pop("COLUMNS", None)

import pytest
from hypothesis import settings

from .browser import browser, chromium
from .terminal import terminal

__all__ = ["browser", "chromium", "terminal"]

settings.register_profile("skpll", deadline=None, derandomize=True)
settings.load_profile("skpll")


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Call the command line in an empty folder; give its status and what it printed."""
    from skpll.cli import main

    monkeypatch.chdir(tmp_path)

    def call(*words):
        status = main([str(word) for word in words])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return call


@pytest.fixture
def interrupt_after(monkeypatch):
    """Interrupt fits of SP-PLL and M3PL once C is larger than a number."""
    from skpll.margin._alternating import Alternation

    alternate = Alternation.alternate

    def arm(largest):
        def interrupted(self, C):
            if largest < C:
                raise KeyboardInterrupt
            return alternate(self, C)

        monkeypatch.setattr(Alternation, "alternate", interrupted)

    return arm


@pytest.fixture
def in_this_process(monkeypatch):
    """Run the tasks of experiments here, for tests that are not about processes."""
    from skpll.experiments.runner import Attempt

    def attempts(tasks, settings):
        module, name = settings.work.split(":")
        work = getattr(import_module(module), name)
        for task in pickle.loads(pickle.dumps(list(tasks))):
            yield task, Attempt(work(task, ""))

    monkeypatch.setattr("skpll.experiments.runner.run_on_this_machine", attempts)


@pytest.fixture
def small_forests(monkeypatch):
    """Make 30 trees the default of `CrossFitClassifier`, for tests that fit every method.

    With fewer, an example may be in the sample of every tree, which scikit-learn warns of.
    """
    from sklearn.ensemble import RandomForestClassifier

    from skpll import CrossFitClassifier

    _, *others = CrossFitClassifier.__init__.__defaults__
    defaults = (RandomForestClassifier(30, random_state=0), *others)
    monkeypatch.setattr(CrossFitClassifier.__init__, "__defaults__", defaults)
