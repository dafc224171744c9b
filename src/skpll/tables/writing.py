"""Write files as a whole: under another name first, then renamed."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from uuid import uuid4


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Write a file under another name, and rename it when it is complete.

    Parameters
    ----------
    path : Path
        What the file is to be called.

    Yields
    ------
    temporary : Path
        Where to write. If anything goes wrong, an interrupt included, it is removed.
    """
    if is_stream(path):
        with tempfile.TemporaryDirectory() as folder, _named(path, "part of it may be there"):
            yield Path(folder) / "out"
            with (Path(folder) / "out").open("rb") as source, _stream(path) as target:
                shutil.copyfileobj(source, target)
        return
    check_writable(path)
    temporary = path.with_name(f".{path.name[:40]}.{uuid4().hex}")
    try:
        with _named(path, "nothing of it was written, and what was there before is unchanged"):
            if path.exists():  # whoever could not read the old file can't read the new one
                temporary.touch(mode=0o600)
                shutil.copymode(path, temporary)
            yield temporary
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _named(path: Path, state: str) -> Iterator[None]:
    """Name the file that could not be written, for instance because the disk is full."""
    try:
        yield
    except OSError as error:
        raise OSError(f"{path}: can't be written ({error.strerror or error}); {state}.") from None


def check_writable(path: Path) -> None:
    """Raise an error if a file can't be written, before the work is done."""
    if is_stream(path):
        return
    if path.is_dir():
        raise ValueError(f"{path}: is a folder; name a file.")
    if not path.parent.is_dir():
        raise ValueError(f"{path}: there is no folder {path.parent}.")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise ValueError(
            f"{path}: nothing can be written to that folder ({error.strerror})."
        ) from None


def is_stream(path: Path) -> bool:
    """Return whether a path is standard output, a pipe or a device, which can't be renamed."""
    return str(path) == "-" or (path.exists() and not path.is_file() and not path.is_dir())


@contextmanager
def _stream(path: Path) -> Iterator[IO[bytes]]:
    if str(path) == "-":
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with path.open("wb") as target:
            yield target
