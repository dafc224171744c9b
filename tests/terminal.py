"""A terminal to run programs in, for what people see only there."""

import os
import sys

import pytest


def run_in_a_terminal(program, *words, **environment):
    """Run a Python program in a terminal of its own; give its status and all it showed."""
    import pty

    process, terminal = pty.fork()
    if process == 0:
        os.environ.update(TERM="xterm", COLUMNS="120", **environment)
        os.execv(sys.executable, [sys.executable, "-c", program, *map(str, words)])
    shown = b""
    while True:
        try:
            part = os.read(terminal, 2**16)
        except OSError:  # the terminal is gone with the process
            break
        if not part:
            break
        shown += part
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), shown.decode()


@pytest.fixture
def terminal():
    pytest.importorskip("pty", reason="this system has no pseudo-terminals")
    return run_in_a_terminal
