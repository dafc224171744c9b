"""What the shell completes: names of methods, of data sets and of experiments."""

from __future__ import annotations


def method_names(incomplete: str) -> list[str]:
    """Complete the name of a method."""
    from skpll import all_methods

    return [name for name in [*all_methods(), "auto"] if name.startswith(incomplete)]


def data_set_names(incomplete: str) -> list[str]:
    """Complete the name of a data set."""
    from skpll.datasets import list_datasets

    return [name for name in list_datasets() if name.startswith(incomplete)]


def experiment_names(incomplete: str) -> list[str]:
    """Complete the name of an experiment that comes with the package."""
    from skpll.experiments import shipped_specifications

    return [name for name in shipped_specifications() if name.startswith(incomplete)]
