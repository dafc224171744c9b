"""Pictures in compressed idx files."""

import gzip
import hashlib
import struct
from dataclasses import replace

import numpy as np
import pytest

from skpll.datasets import _registry, dataset_info, find_dataset, load_dataset
from skpll.datasets._readers import read_idx


def idx(array):
    head = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.astype(np.uint8).tobytes()


def write(folder, names, pictures, labels):
    for name, array in zip(names, (*pictures, *labels), strict=True):
        (folder / name).write_bytes(gzip.compress(idx(array)))


PICTURES = np.arange(5 * 4).reshape(5, 2, 2)
LABELS = np.array([1, 0, 2, 1, 0])


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """Files of a tiny data set under MNIST's names, which the registry is told to expect."""
    info = dataset_info("mnist")
    arrays = [PICTURES[:3], LABELS[:3], PICTURES[3:], LABELS[3:]]
    (tmp_path / "images").mkdir()
    hashes = {}
    for part, array in zip(info.parts, arrays, strict=True):
        (tmp_path / "images" / part.file_name).write_bytes(gzip.compress(idx(array)))
        hashes[part.file_name] = hashlib.sha256(idx(array)).hexdigest()
    first = hashes.pop(info.file_name)
    small = replace(info, sha256=first, more_files=hashes, n_samples=5, n_features=4, n_classes=3)
    monkeypatch.setattr(_registry, "REGISTRY", {"mnist": small})
    return tmp_path


def test_training_and_test_pictures_come_one_after_the_other(tiny):
    X, candidates, y = load_dataset("mnist", data_home=tiny, return_X_S_y=True)
    np.testing.assert_array_equal(X, PICTURES.reshape(5, 4))
    np.testing.assert_array_equal(y, LABELS)
    assert candidates is None
    assert X.dtype == np.uint8


def test_another_compression_is_the_same_file(tiny):
    path = find_dataset("mnist", data_home=tiny)
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()), compresslevel=1))
    assert load_dataset("mnist", data_home=tiny).X.shape == (5, 4)


def test_other_content_is_refused(tiny):
    path = find_dataset("mnist", data_home=tiny)
    path.write_bytes(gzip.compress(idx(PICTURES[:3] + 1)))
    with pytest.raises(ValueError, match="is not the published file of MNIST"):
        load_dataset("mnist", data_home=tiny)


def test_a_missing_part_is_found_out(tiny, monkeypatch):
    monkeypatch.delenv("SKPLL_DATA", raising=False)
    (tiny / "images" / "mnist-t10k-labels-idx1-ubyte.gz").unlink()
    assert find_dataset("mnist", data_home=tiny) is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no gzip", "not a readable gzip file"),
        (gzip.compress(b"\0\0\x0d\x01abcd"), "not an idx file of bytes"),
        (gzip.compress(b"\0\0"), "not an idx file of bytes"),
        (gzip.compress(idx(LABELS)[:-1]), "may have been cut off"),
        (gzip.compress(idx(LABELS[:2])), "2 labels for 5 pictures"),
    ],
    ids=["no gzip", "other type", "too short", "cut off", "fewer labels"],
)
def test_bad_files_are_named(tmp_path, content, message):
    pictures, labels = tmp_path / "pictures.gz", tmp_path / "labels.gz"
    pictures.write_bytes(gzip.compress(idx(PICTURES)))
    labels.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_idx(pictures, labels)


def test_addresses_are_those_of_the_origins():
    parts = dataset_info("fashion_mnist").parts
    assert [part.url.rsplit("/", 1)[1] for part in parts] == [
        "train-images-idx3-ubyte.gz",
        "train-labels-idx1-ubyte.gz",
        "t10k-images-idx3-ubyte.gz",
        "t10k-labels-idx1-ubyte.gz",
    ]
