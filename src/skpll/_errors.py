"""The error of an argument that can't be used."""

from __future__ import annotations

__all__ = ["ArgumentError"]


class ArgumentError(ValueError):
    """An argument that can't be used: its name, what is wrong with it, and what to do.

    Parameters
    ----------
    argument : str
        The name of the argument, or of several, separated by commas.
    problem : str
        What is wrong, and the remedy.
    """

    def __init__(self, argument: str, problem: str) -> None:
        super().__init__(argument, problem)
        self.argument = argument

    def __str__(self) -> str:
        return ": ".join(self.args)
