"""Find the file of a data set on this machine, and make sure that it is the right one."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

from ._readers import check_beginning
from ._registry import DatasetInfo, normalize_name

ENVIRONMENT = "SKPLL_DATA"


def cache_directory() -> Path:
    r"""Directory of the user's cache where downloaded files are kept.

    It is ``~/Library/Caches/skpll`` on macOS, ``%LOCALAPPDATA%\skpll\Cache`` on Windows, and
    ``$XDG_CACHE_HOME/skpll`` (by default ``~/.cache/skpll``) elsewhere.
    """
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "skpll"
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "skpll" / "Cache"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "skpll"


def user_directories(data_home: str | os.PathLike[str] | None) -> list[Path]:
    """Directories that belong to the user: ``data_home``, then ``$SKPLL_DATA``, as far as given."""
    given = (data_home, os.environ.get(ENVIRONMENT))
    return [Path(directory).expanduser() for directory in given if directory]


def find_file(directory: Path, file_name: str) -> Path | None:
    """Find a file by name, whatever its case, blanks and punctuation.

    Parameters
    ----------
    directory : Path
        Where to look; it need not exist.
    file_name : str
        The name in the registry, such as ``"Yahoo! News.mat"``.

    Returns
    -------
    Path or None
        The file of exactly that name, or else the first one (``YahooNews.mat``) that differs only
        in what does not matter.
    """
    exact = directory / file_name
    if exact.is_file():
        return exact
    if not directory.is_dir():
        return None
    key = normalize_name(file_name)
    alike = (path for path in sorted(directory.iterdir()) if normalize_name(path.name) == key)
    return next((path for path in alike if path.is_file()), None)


def check_file(path: Path, info: DatasetInfo) -> None:
    """Check the beginning of a file, and its hash where that is known.

    Parameters
    ----------
    path : Path
        The file.
    info : DatasetInfo
        What it should be.

    Raises
    ------
    ValueError
        If the file is something else, or has been damaged or cut off.
    """
    check_beginning(path)
    if info.sha256 is None:
        return
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != info.sha256:
        raise ValueError(
            f"{path} is not the published file of {info.title}, or it is damaged or cut off: its "
            f"sha256 is {found[:16]}… ({path.stat().st_size} bytes), where {info.sha256[:16]}… "
            "is expected."
        )
