"""How commands print lines of text, and their exit status."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap

DONE, FAILED, WRONG_INPUT, INTERRUPTED = 0, 1, 2, 130

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Interrupted(Exception):
    """A command was interrupted; the message says what was done."""


def printable(text: str) -> str:
    """Return text in which no character can steer a terminal: escape codes become visible."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def say(text: str, *, error: bool = False, wrap: bool = True) -> None:
    """Print lines to standard output, or to standard error; on a terminal no word is broken."""
    stream = sys.stderr if error else sys.stdout
    shown = printable(text)
    if wrap and stream.isatty():
        shown = wrapped(shown, shutil.get_terminal_size().columns)
    print(shown, file=stream)


def wrapped(text: str, width: int, *, indent: str = "") -> str:
    """Return text whose lines are broken between words."""
    words = textwrap.TextWrapper(
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join("\n".join(words.wrap(line)) for line in text.splitlines())


def counted(n: int, noun: str) -> str:
    """Return a number with its noun, such as "1 row" or "2 classes"."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}{'es' if noun.endswith('s') else 's'}"


def complain(message: str, status: int) -> int:
    """Print one line to standard error and hand the exit status back."""
    say(f"skpll: {' '.join(message.split())}", error=True)
    return status
