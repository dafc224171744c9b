"""The published files hold what the registry and the literature say; skipped where they are not."""

import os
from pathlib import Path

import numpy as np
import pytest

from skpll.datasets import dataset_info, load_dataset
from skpll.datasets._download import check_file, find_file

# n, d, classes, classes with a true example, mean candidates, smallest, largest, singletons
PARTIAL = {
    "lost": ("42a8cc43e0557808", 1122, 108, 16, 14, 2.23, 1, 3, 67),
    "birdsong": ("2170d46765a151ac", 4998, 38, 13, 13, 2.18, 1, 4, 1632),
    "msrcv2": ("948e4d443a545030", 1758, 48, 23, 23, 3.16, 1, 7, 140),
    "fgnet": ("5b8d43e40cee007f", 1002, 262, 78, 63, 7.48, 2, 11, 0),
}
ORDINARY = {
    "glass": ("7666478791baf605", 214, 9, 6),
    "segment": ("fc99b13f74a51f0c", 2310, 19, 7),
    "vehicle": ("c815585534f9e8c5", 846, 18, 4),
    "letter": ("4207f96c1a503ce7", 20000, 16, 26),
}
PUBLISHED_SHAPES = {
    "soccer_player": (17472, 279, 171, 2.09),
    "yahoo_news": (22991, 163, 219, 1.91),
    "mirflickr": (2780, 1536, 14, 2.76),
}


def load(name):
    directory = os.environ.get("SKPLL_DATA")
    file_name = dataset_info(name).file_name
    if not directory or find_file(Path(directory).expanduser(), file_name) is None:
        pytest.skip(f"{file_name} is not in the directory that SKPLL_DATA names")
    return load_dataset(name)


@pytest.mark.parametrize("name", PARTIAL)
def test_partial_sets(name):
    _, n, d, q, q_true, mean, smallest, largest, singletons = PARTIAL[name]
    bunch = load(name)
    sizes = bunch.candidates.sizes
    assert bunch.X.shape == (n, d)
    assert np.isfinite(bunch.X).all()
    assert bunch.candidates.shape == (n, q)
    np.testing.assert_array_equal(bunch.classes, np.arange(q))
    assert len(np.unique(bunch.y)) == q_true
    assert round(sizes.mean(), 2) == mean
    assert (sizes.min(), sizes.max()) == (smallest, largest)
    assert (sizes == 1).sum() == singletons
    assert bunch.candidates.contains(bunch.y).all()


@pytest.mark.parametrize("name", PARTIAL)
def test_registry_of_partial_sets(name):
    start, n, d, q, q_true, mean, smallest, largest, singletons = PARTIAL[name]
    info = dataset_info(name)
    assert info.sha256.startswith(start)
    assert (info.n_samples, info.n_features, info.n_classes) == (n, d, q)
    assert (info.n_true_classes, info.mean_candidates, info.n_singletons) == (
        q_true,
        mean,
        singletons,
    )
    assert info.candidate_range == (smallest, largest)


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_sets(name):
    start, n, d, q = ORDINARY[name]
    info = dataset_info(name)
    assert info.sha256.startswith(start)
    assert (info.n_samples, info.n_features, info.n_classes) == (n, d, q)
    bunch = load(name)
    assert bunch.X.shape == (n, d)
    assert bunch.X.dtype == np.float64
    assert bunch.candidates is None
    np.testing.assert_array_equal(bunch.classes, np.unique(bunch.y))
    assert len(bunch.classes) == q
    assert len(set(bunch.feature_names)) == d


@pytest.mark.parametrize("name", PUBLISHED_SHAPES)
def test_registry_of_sets_with_an_unknown_hash(name):
    info = dataset_info(name)
    shape = (info.n_samples, info.n_features, info.n_classes, info.mean_candidates)
    assert shape == PUBLISHED_SHAPES[name]
    assert info.sha256 is None


def counts(y):
    labels, numbers = np.unique(y, return_counts=True)
    return dict(zip(labels.tolist(), numbers.tolist(), strict=True))


def test_glass():
    bunch = load("glass")
    assert counts(bunch.y) == {
        "build wind float": 70,
        "build wind non-float": 76,
        "vehic wind float": 17,
        "containers": 13,
        "tableware": 9,
        "headlamps": 29,
    }
    assert bunch.feature_names == ["RI", "Na", "Mg", "Al", "Si", "K", "Ca", "Ba", "Fe"]


def test_vehicle():
    assert counts(load("vehicle").y) == {"opel": 212, "saab": 217, "bus": 218, "van": 199}


def test_segment():
    bunch = load("segment")
    assert set(counts(bunch.y).values()) == {330}
    assert np.flatnonzero(np.ptp(bunch.X, axis=0) == 0).tolist() == [2]
    assert bunch.feature_names[2] == "region-pixel-count"


def test_letter():
    bunch = load("letter")
    assert "".join(bunch.classes) == "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    assert (counts(bunch.y)["A"], counts(bunch.y)["Z"]) == (789, 734)


def test_notes_on_lost_and_birdsong():
    X, S, y = load_and_unpack("lost")
    assert (round(X.min()), round(X.max())) == (-7558, 7168)
    assert sorted(set(S.classes) - set(y)) == [14, 15]
    assert set(np.unique(S.indices)) == set(range(16))
    X, _, _ = load_and_unpack("birdsong")
    assert (round(X.min(), 2), round(X.max())) == (-0.02, 101040)


def test_notes_on_msrcv2():
    X, _, y = load_and_unpack("msrcv2")
    assert (X.min(), X.max()) == (0, 1)
    assert min(counts(y).values()) == 3
    assert len(X) - len(np.unique(X, axis=0)) == 5


def test_notes_on_fgnet():
    X, _, y = load_and_unpack("fgnet")
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-8)
    np.testing.assert_allclose(X.std(axis=0, ddof=1), 1, atol=1e-8)
    assert (y.min(), y.max()) == (0, 69)


def load_and_unpack(name):
    bunch = load(name)
    return bunch.X, bunch.candidates, bunch.y


@pytest.mark.parametrize("name", [*PARTIAL, *ORDINARY])
def test_a_flipped_byte_is_noticed(name, tmp_path):
    load(name)
    info = dataset_info(name)
    source = find_file(Path(os.environ["SKPLL_DATA"]).expanduser(), info.file_name)
    content = bytearray(source.read_bytes())
    content[len(content) // 2] ^= 1
    path = tmp_path / info.file_name
    path.write_bytes(content)
    with pytest.raises(ValueError, match="sha256"):
        check_file(path, info)
