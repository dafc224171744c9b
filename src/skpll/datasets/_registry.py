"""The data sets that are known by name: what each one is, where it comes from, how to know it.

They are listed in ``registry.toml``, the only place to touch in order to add a data set.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from types import MappingProxyType
from urllib.parse import quote


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """A source that several data sets share.

    Parameters
    ----------
    origin : str
        Who made the data and through whom they come.
    licence : str
        The terms under which the data are offered.
    address : str or None
        Address to which a file's name is appended to download it.
    prefix : str
        What the names of files begin with here, but not at that address.
    folder : str
        A folder of a data directory in which the files may lie, too.
    """

    origin: str
    licence: str
    address: str | None = None
    prefix: str = ""
    folder: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetInfo:
    """What is known about a data set before its file has been opened.

    Parameters
    ----------
    name : str
        The name that :func:`load_dataset` takes.
    title : str
        The name used in the literature.
    task : str
        The field of application, in two or three words.
    n_samples, n_features, n_classes : int
        The shape. A file of another shape is refused.
    n_true_classes : int or None
        How many of the classes are the true label of some example; None where this is not known.
    mean_candidates : float or None
        Mean size of the candidate sets, to two digits; None for ordinary labels.
    candidate_range : tuple of two ints or None
        Sizes of the smallest and the largest candidate set, where known.
    n_singletons : int or None
        Number of examples with a single candidate, where known.
    description : str
        What the examples, the features and the candidates are.
    collection : Collection
        The source of the data, with its origin, licence and address.
    citation : str
        The work to cite.
    ordered : bool
        Whether the classes are numbers, so that a label can be nearly right.
    notes : tuple of str
        What a user should know before fitting a model.
    file_name : str or None
        Name of the file; None for a data set that ships with scikit-learn.
    sha256 : str or None
        Hash of the file, checked where it is known; of a compressed file, that of its content.
    more_files : dict
        Names and hashes of further files of the same data set.
    """

    name: str
    title: str
    task: str
    n_samples: int
    n_features: int
    n_classes: int
    description: str
    collection: Collection
    citation: str
    n_true_classes: int | None = None
    mean_candidates: float | None = None
    candidate_range: tuple[int, int] | None = None
    n_singletons: int | None = None
    ordered: bool = False
    notes: tuple[str, ...] = ()
    file_name: str | None = None
    sha256: str | None = None
    more_files: Mapping[str, str] = field(default_factory=dict)

    @property
    def parts(self) -> tuple[DatasetInfo, ...]:
        """One description for each file."""
        others = (
            replace(self, file_name=file_name, sha256=sha256, more_files={})
            for file_name, sha256 in self.more_files.items()
        )
        return (self, *others)

    @property
    def has_candidates(self) -> bool:
        """Whether the data come with candidate sets, and not only with true labels."""
        return self.mean_candidates is not None

    @property
    def url(self) -> str | None:
        """Address from which the file can be downloaded; None where there is none."""
        if self.file_name is None or self.collection.address is None:
            return None
        return self.collection.address + quote(self.file_name.removeprefix(self.collection.prefix))


def normalize_name(name: str) -> str:
    """Reduce a name to its letters and digits, so that "Yahoo! News" finds ``yahoo_news``."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def list_datasets() -> list[str]:
    """Names of all data sets that :func:`load_dataset` knows.

    Returns
    -------
    list of str
        Sets with real candidate labels first, then those with ordinary labels.

    Examples
    --------
    >>> from skpll.datasets import list_datasets
    >>> list_datasets()[:3]
    ['lost', 'birdsong', 'msrcv2']
    """
    return list(REGISTRY)


def dataset_info(name: str) -> DatasetInfo:
    """Look up a data set by name; nothing is read or downloaded.

    Parameters
    ----------
    name : str
        A name out of :func:`list_datasets`. Case, blanks and punctuation do not matter.

    Returns
    -------
    DatasetInfo
        Shape, origin, terms and file of the data set.

    Raises
    ------
    ValueError
        If there is no such data set.

    Examples
    --------
    >>> from skpll.datasets import dataset_info
    >>> info = dataset_info("FG-NET")
    >>> info.name, info.n_samples, info.n_classes
    ('fgnet', 1002, 78)
    """
    if not isinstance(name, str):
        raise ValueError(f"name must be a string, one of {', '.join(REGISTRY)}; got {name!r}.")
    by_key = {normalize_name(known): known for known in REGISTRY}
    key = normalize_name(name)
    if key in by_key:
        return REGISTRY[by_key[key]]
    close = difflib.get_close_matches(key, by_key, n=1)
    hint = f" Did you mean {by_key[close[0]]!r}?" if close else ""
    raise ValueError(f"name={name!r} is not a known data set.{hint} Known: {', '.join(REGISTRY)}.")


def _read_registry() -> Mapping[str, DatasetInfo]:
    text = (files("skpll.datasets") / "registry.toml").read_text(encoding="utf-8")
    known = tomllib.loads(text)
    collections = {name: Collection(**entry) for name, entry in known["collections"].items()}
    for name, entry in known["datasets"].items():
        entry |= {"name": name, "collection": collections[entry["collection"]]}
        entry |= {key: tuple(entry[key]) for key in ("candidate_range", "notes") if key in entry}
    return MappingProxyType({name: DatasetInfo(**e) for name, e in known["datasets"].items()})


REGISTRY = _read_registry()
