"""Bring the file of a data set onto this machine: look for it, or else let pooch download it."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import os
import sys
import zlib
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

from ._readers import check_beginning, read_file
from ._registry import DatasetInfo, dataset_info, normalize_name

ENVIRONMENT = "SKPLL_DATA"


def fetch_dataset(name: str, *, data_home: str | os.PathLike[str] | None = None) -> Path:
    """Make sure that the file of a data set is on this machine.

    The file is looked for in ``data_home``, in the directory that the environment variable
    ``SKPLL_DATA`` names, and in the user's cache, and downloaded if it is in none of them. It is
    checked against its published hash wherever that is known.

    Parameters
    ----------
    name : str
        A name out of :func:`list_datasets`.
    data_home : path-like, optional
        A directory to look in first, and to download to. By default downloads go to the cache.

    Returns
    -------
    path : Path
        Where the file is; the first of several.

    Raises
    ------
    ValueError
        If there is no such data set, if it ships with scikit-learn and has no file, or if the
        file found in ``data_home`` or ``SKPLL_DATA`` is not the published one. That file is left
        as it is.
    FileNotFoundError
        If the file is not here and cannot be downloaded. The message says where to get it and
        where to put it.

    Examples
    --------
    >>> from skpll.datasets import fetch_dataset
    >>> fetch_dataset("iris")
    Traceback (most recent call last):
    ...
    ValueError: name='iris' has no file to fetch: its data ship with scikit-learn.
    """
    return fetch_files(name, data_home=data_home)[0]


def fetch_files(name: str, *, data_home: str | os.PathLike[str] | None = None) -> list[Path]:
    """Return all files of a data set, in the order of the registry; see `fetch_dataset`."""
    info = dataset_info(name)
    if info.file_name is None:
        raise ValueError(f"name={name!r} has no file to fetch: its data ship with scikit-learn.")
    return [_fetch(part, str(part.file_name), data_home) for part in info.parts]


def _fetch(info: DatasetInfo, file_name: str, data_home: str | os.PathLike[str] | None) -> Path:
    path = _find(info, data_home)
    if path is None:
        return _download(info, file_name, data_home)
    try:
        check_file(path, info)
    except ValueError as error:
        if info.sha256 is not None and path.parent == cache_directory():
            path.unlink()  # it was downloaded, and has gone bad
            return _download(info, file_name, data_home)
        source = f", or get it from {info.url}" if info.url else ""
        raise ValueError(
            f"{error} Move the file away, so that it can be downloaded{source}."
        ) from error
    return path


def find_dataset(name: str, *, data_home: str | os.PathLike[str] | None = None) -> Path | None:
    """Look for the file of a data set on this machine, without checking or downloading it.

    Parameters
    ----------
    name : str
        A name out of :func:`list_datasets`.
    data_home : path-like, optional
        A directory to look in first.

    Returns
    -------
    Path or None
        The file that :func:`fetch_dataset` would take; None if it is not here, or if the data
        ship with scikit-learn and have no file.

    Examples
    --------
    >>> from skpll.datasets import find_dataset
    >>> find_dataset("iris") is None  # it ships with scikit-learn and has no file
    True
    """
    found = [_find(part, data_home) for part in dataset_info(name).parts]
    return None if None in found else found[0]


def _find(info: DatasetInfo, data_home: str | os.PathLike[str] | None) -> Path | None:
    """Look for one file, also in the folder of its collection."""
    if info.file_name is None:
        return None
    places = (data_home, os.environ.get(ENVIRONMENT), cache_directory())
    directories = [Path(place).expanduser() for place in places if place]
    inside = dict.fromkeys(("", info.collection.folder))
    found = (
        find_file(place / folder, info.file_name) for place in directories for folder in inside
    )
    return next((path for path in found if path is not None), None)


def cache_directory() -> Path | None:
    """Directory of the user's cache where downloads are kept; None where nothing can download."""
    if importlib.util.find_spec("pooch") is None:
        return None
    import pooch

    return Path(pooch.os_cache("skpll"))


def find_file(directory: Path, file_name: str) -> Path | None:
    """Find a file by name, whatever its case, blanks and punctuation.

    The exact name comes first. The directory need not exist.
    """
    exact = directory / file_name
    if exact.is_file():
        return exact
    if not directory.is_dir():
        return None
    key = normalize_name(file_name)
    same = (path for path in sorted(directory.iterdir()) if normalize_name(path.name) == key)
    return next((path for path in same if path.is_file()), None)


def check_file(path: Path, info: DatasetInfo) -> None:
    """Raise ValueError if a file is not the published one, by its beginning and its hash."""
    check_beginning(path)
    if info.sha256 is None:
        return
    found = _digest(path, info)
    if found != info.sha256:
        raise ValueError(
            f"{path} is not the published file of {info.title}, or it is damaged or cut off: its "
            f"sha256 is {found[:16]}… ({path.stat().st_size} bytes), where {info.sha256[:16]}… "
            "is expected."
        )


def _digest(path: Path, info: DatasetInfo) -> str:
    """Compute the hash of a file, or of its content where it is compressed."""
    compressed = str(info.file_name).endswith(".gz")
    try:
        with gzip.open(path) if compressed else path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is not a readable gzip file: {error}") from error


def _download(info: DatasetInfo, file_name: str, data_home: str | os.PathLike[str] | None) -> Path:
    """Download a file; it appears under its name only when it is whole and right."""
    directory = Path(data_home).expanduser() if data_home else cache_directory()
    if info.url is None:
        raise _not_available(info, directory, "no address is registered for it")
    if directory is None or importlib.util.find_spec("pooch") is None:
        reason = "downloading needs pooch (pip install 'skpll[data]')"
        raise _not_available(info, directory, reason)
    import pooch

    def transfer(url: str, path: str, _pooch: object) -> None:
        _transfer(url, path)
        try:
            check_beginning(Path(path))
            if info.sha256 is None:
                read_file(Path(path), info)
            elif file_name.endswith(".gz"):
                check_file(Path(path), info)
        except ValueError as error:
            raise ValueError(str(error).replace(path, file_name)) from error

    pooch.get_logger().setLevel("WARNING")
    try:
        known = None if file_name.endswith(".gz") else info.sha256
        return Path(pooch.retrieve(info.url, known, file_name, directory, downloader=transfer))
    except (OSError, ValueError) as error:
        raise _not_available(info, directory, f"the download failed: {error}") from error


def _transfer(url: str, path: str) -> None:
    """Write what an address answers to a file, with a progress bar on a terminal."""
    import pooch
    import requests

    watched = sys.stderr.isatty() and importlib.util.find_spec("tqdm") is not None
    with ExitStack() as connections:  # pooch leaves them open when a transfer fails
        hooks = {"response": lambda response, **_: connections.enter_context(response)}
        download = pooch.HTTPDownloader(progressbar=watched, hooks=hooks)
        try:
            download(url, path, None)
        except requests.ConnectionError as error:
            host = urlsplit(url).netloc
            raise OSError(f"there is no connection to {host}, or it was lost") from error


def _not_available(info: DatasetInfo, directory: Path | None, reason: str) -> FileNotFoundError:
    source = f"Get it from {info.url} and put" if info.url else "Put"
    place = f"{directory}, or into any directory" if directory else "any directory"
    return FileNotFoundError(
        f"The file {info.file_name!r} of the data set {info.title} is not on this machine, and "
        f"{reason.rstrip('.')}. {source} it into {place} that data_home= or the environment "
        f"variable {ENVIRONMENT} names."
    )
