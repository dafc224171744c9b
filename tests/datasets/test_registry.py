"""The registry is complete, consistent and forgiving about spelling."""

import re
from dataclasses import FrozenInstanceError

import pytest

from skpll.datasets import dataset_info, describe_dataset, list_datasets

PARTIAL = ["lost", "birdsong", "msrcv2", "fgnet", "soccer_player", "yahoo_news", "mirflickr"]
ORDINARY = ["glass", "segment", "vehicle", "letter", "mnist", "fashion_mnist"]
ORDINARY += ["digits", "wine", "iris", "breast_cancer"]
NAMES = PARTIAL + ORDINARY
ORIGINS = (
    "https://raw.githubusercontent.com/",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
)


def test_all_names_are_listed():
    assert list_datasets() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_entry_is_complete(name):
    info = dataset_info(name)
    assert info.name == name
    assert info.has_candidates == (name in PARTIAL)
    assert info.collection.licence
    assert info.sha256 is None or re.fullmatch("[0-9a-f]{64}", info.sha256)
    text = describe_dataset(info.name)
    for expected in (info.title, str(info.n_samples), str(info.n_features), str(info.n_classes)):
        assert expected in text
    flowing = " ".join(text.split())
    for expected in (info.description, info.citation, info.collection.origin, *info.notes):
        assert expected in flowing
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("name", NAMES)
def test_a_file_has_an_address_and_embedded_data_have_none(name):
    info = dataset_info(name)
    if info.file_name is None:
        assert info.url is None
        return
    assert info.url.startswith(ORIGINS)
    assert " " not in info.url


def test_the_address_is_quoted():
    url = dataset_info("yahoo_news").url
    assert url.endswith("a43c823f1cf2575e7fc74bcdfc307463e0bd44bd/Yahoo%21%20News.mat")


@pytest.mark.parametrize(
    ("given", "name"),
    [("FG-NET", "fgnet"), ("Yahoo! News", "yahoo_news"), ("Soccer Player", "soccer_player")],
)
def test_spelling_does_not_matter(given, name):
    assert dataset_info(given).name == name


def test_unknown_name_suggests_a_known_one():
    with pytest.raises(ValueError, match=r"'birdsongs'.*Did you mean 'birdsong'\?.*lost"):
        dataset_info("birdsongs")
    with pytest.raises(ValueError, match=r"'xyz' is not a known data set. Known: lost"):
        dataset_info("xyz")
    with pytest.raises(ValueError, match=r"name must be a string.*got 3"):
        dataset_info(3)


def test_entries_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        dataset_info("lost").n_samples = 3
