"""Writing files so that nobody ever sees half of one: beside first, then renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["check_writable", "written_whole"]


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Write a file under another name, and rename it when it is complete.

    Parameters
    ----------
    path : Path
        What the file is to be called.

    Yields
    ------
    beside : Path
        Where to write. If anything goes wrong, an interrupt included, it is removed.
    """
    check_writable(path)
    handle, name = tempfile.mkstemp(prefix=f".{path.name[:40]}.", dir=path.parent)
    os.close(handle)
    beside = Path(name)
    try:
        yield beside
        beside.chmod(0o666 & ~_umask())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """See early that a file can be written, before the work is done in vain."""
    if path.is_dir():
        raise ValueError(f"{path}: is a folder; name a file.")
    if not path.parent.is_dir():
        raise ValueError(f"{path}: there is no folder {path.parent}.")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
