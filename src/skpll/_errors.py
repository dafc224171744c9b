"""The error of an argument that can't be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["ArgumentError", "DiagnosisWarning"]


class DiagnosisWarning(UserWarning):
    """A warning that something can't be learned from the given examples; see `skpll.diagnose`."""


class ArgumentError(ValueError):
    """An argument that can't be used: its name, what is wrong with it, and what to do.

    Parameters
    ----------
    argument : str
        The name of the argument, or of several, separated by commas.
    problem : str
        What is wrong, and the remedy.
    remedy : mapping from str to object, optional
        Arguments that would help, with their values; they are named at the end of the message.
    """

    def __init__(
        self, argument: str, problem: str, remedy: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(argument, problem, remedy)
        self.argument, self.problem, self.remedy = argument, problem, dict(remedy or {})

    def __str__(self) -> str:
        return self.named(
            self.argument, [f"{name}={value!r}" for name, value in self.remedy.items()]
        )

    def named(self, argument: str, remedies: Sequence[str]) -> str:
        """Return the message with other names, such as those of the command line."""
        end = f" ({', '.join(remedies)})." if remedies else ""
        return f"{argument}: {self.problem}{end}"
