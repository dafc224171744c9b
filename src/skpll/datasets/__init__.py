"""Data sets by name, and generators of partial labels."""

from ._download import fetch_dataset, find_dataset
from ._load import describe_dataset, load_dataset
from ._partial_labels import make_partial_labels
from ._registry import DatasetInfo, dataset_info, list_datasets
from ._synthetic import make_partial_classification

__all__ = [
    "DatasetInfo",
    "dataset_info",
    "describe_dataset",
    "fetch_dataset",
    "find_dataset",
    "list_datasets",
    "load_dataset",
    "make_partial_classification",
    "make_partial_labels",
]


def __dir__() -> list[str]:
    return __all__
