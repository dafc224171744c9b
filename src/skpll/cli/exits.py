"""How a command ends: its exit status, and one line if it has to complain."""

from __future__ import annotations

import sys

DONE, FAILED, WRONG_INPUT, INTERRUPTED = 0, 1, 2, 130


class Interrupted(Exception):
    """A command was interrupted, and has something to say about it."""


def complain(message: str, status: int) -> int:
    """Print one line to standard error and hand the exit status back."""
    print(f"skpll: {' '.join(message.split())}", file=sys.stderr)  # noqa: T201
    return status
