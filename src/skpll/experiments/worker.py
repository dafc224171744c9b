"""The process that does tasks: definitions come in on standard input, answers go out.

Both are lines of JSON. The process ends when its input does, so that it never outlives the one
that started it.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import shutil
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["main"]

_LONGEST_MESSAGE = 500


def main(work: str, folder: str, orphan: str) -> None:
    """Do tasks until the input ends.

    Parameters
    ----------
    work : str
        What does a task, as ``"module:function"``.
    folder : str
        Where prepared data are shared.
    orphan : {"remove", "keep"}
        What becomes of the folder when the input ends.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the one who started us
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a method prints must not end up among the answers
    definitions: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(definitions, folder, orphan), daemon=True).start()
    module, _, name = work.partition(":")
    function = getattr(importlib.import_module(module), name)
    _answer(answers, {"ready": True})
    while True:
        _answer(answers, _attempt(function, json.loads(definitions.get()), folder))


def _listen(definitions: queue.SimpleQueue[str], folder: str, orphan: str) -> None:
    for line in sys.stdin:
        definitions.put(line)
    if orphan == "remove":
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def _attempt(
    function: Callable[[dict[str, Any], str], dict[str, Any]],
    definition: dict[str, Any],
    folder: str,
) -> dict[str, Any]:
    try:
        return {"measurement": function(definition, folder)}
    except Exception as error:
        message = " ".join(f"{type(error).__name__}: {error}".split())
        return {"error": message[:_LONGEST_MESSAGE]}


def _answer(answers: Any, content: dict[str, Any]) -> None:
    answers.write(json.dumps(content, default=_plain) + "\n")
    answers.flush()


def _plain(value: Any) -> Any:
    """Turn NumPy's numbers and arrays into Python's."""
    return value.tolist()


if __name__ == "__main__":
    main(*sys.argv[1:])
