"""Bring the file of a data set onto this machine: look for it, or else download it."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

from ._files import (
    ENVIRONMENT,
    cache_directory,
    check_file,
    find_file,
    user_directories,
)
from ._readers import read_file
from ._registry import DatasetInfo, dataset_info


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
    Path
        The file.

    Raises
    ------
    ValueError
        If there is no such data set, if it ships with scikit-learn and has no file, or if the
        file found in ``data_home`` or ``SKPLL_DATA`` is not the published one. That file is left
        as it is.
    FileNotFoundError
        If the file is not here and cannot be downloaded. The message says where to get it and
        where to put it.
    """
    info = dataset_info(name)
    if info.file_name is None:
        raise ValueError(f"name={name!r} has no file to fetch: its data ship with scikit-learn.")
    for directory in user_directories(data_home):
        path = find_file(directory, info.file_name)
        if path is not None:
            _check_user_file(path, info)
            return path
    cached = _find_cached(info, info.file_name)
    return cached if cached is not None else _download(info, info.file_name, data_home)


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
    """
    info = dataset_info(name)
    if info.file_name is None:
        return None
    for directory in (*user_directories(data_home), cache_directory()):
        path = find_file(directory, info.file_name)
        if path is not None:
            return path
    return None


def _check_user_file(path: Path, info: DatasetInfo) -> None:
    try:
        check_file(path, info)
    except ValueError as error:
        source = f", or get it from {info.url}" if info.url else ""
        raise ValueError(
            f"{error} Move the file away, so that it can be downloaded{source}."
        ) from error


def _find_cached(info: DatasetInfo, file_name: str) -> Path | None:
    """Find the file in the cache; remove it from there if it has gone bad.

    A file without a known hash was perhaps put there by hand: it is refused, but not removed.
    """
    path = find_file(cache_directory(), file_name)
    if path is None:
        return None
    if info.sha256 is None:
        _check_user_file(path, info)
        return path
    try:
        check_file(path, info)
    except ValueError:
        path.unlink()
        return None
    return path


def _download(info: DatasetInfo, file_name: str, data_home: str | os.PathLike[str] | None) -> Path:
    """Download a file, so that it appears under its name only when it is whole and right."""
    directory = Path(data_home).expanduser() if data_home else cache_directory()
    if info.url is None:
        raise _not_available(info, directory, "no address is registered for it")
    if importlib.util.find_spec("pooch") is None:
        reason = "downloading needs pooch (pip install 'skpll[data]')"
        raise _not_available(info, directory, reason)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".download-", dir=directory) as scratch:
            return _transfer_checked(info, info.url, Path(scratch) / file_name).replace(
                directory / file_name
            )
    except (OSError, ValueError) as error:
        raise _not_available(info, directory, f"the download failed: {error}") from error


def _transfer_checked(info: DatasetInfo, url: str, path: Path) -> Path:
    """Download to a temporary path, and check what came by its hash or else by its content."""
    _transfer(url, path)
    try:
        check_file(path, info)
        if info.sha256 is None:
            read_file(path, info)
    except ValueError as error:
        raise ValueError(str(error).replace(str(path), path.name)) from error
    return path


def _transfer(url: str, path: Path) -> None:
    """Write what an address answers to a file, with a progress bar if somebody is watching."""
    import pooch
    import requests

    watched = sys.stderr.isatty() and importlib.util.find_spec("tqdm") is not None
    with ExitStack() as connections:  # pooch leaves them open when a transfer fails
        hooks = {"response": lambda response, **_: connections.enter_context(response)}
        download = pooch.HTTPDownloader(progressbar=watched, hooks=hooks)
        try:
            download(url, str(path), None)
        except requests.ConnectionError as error:
            host = urlsplit(url).netloc
            raise OSError(f"there is no connection to {host}, or it was lost") from error


def _not_available(info: DatasetInfo, directory: Path, reason: str) -> FileNotFoundError:
    source = f"Get it from {info.url} and put" if info.url else "Put"
    return FileNotFoundError(
        f"The file {info.file_name!r} of the data set {info.title} is not on this machine, and "
        f"{reason.rstrip('.')}. {source} it into {directory}, or into any directory that "
        f"data_home= or the environment variable {ENVIRONMENT} names."
    )
