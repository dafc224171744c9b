"""Files are found where they may be, and checked."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from skpll.datasets import fetch_dataset, load_dataset
from skpll.datasets._download import cache_directory, check_file, find_file


@pytest.mark.parametrize(
    "given", ["Toy Set.mat", "toy set.mat", "ToySet.MAT", "toy_set.mat", "TOY-SET.mat"]
)
def test_spelling_of_a_file_does_not_matter(tmp_path, given):
    (tmp_path / "other.mat").touch()
    (tmp_path / given).touch()
    assert find_file(tmp_path, "Toy Set.mat") == tmp_path / given


def test_the_exact_name_comes_first(tmp_path):
    (tmp_path / "Toy Set (1).mat").touch()
    (tmp_path / "ToySet.mat").touch()
    (tmp_path / "Toy Set.mat").touch()
    assert find_file(tmp_path, "Toy Set.mat") == tmp_path / "Toy Set.mat"


def test_directories_and_missing_places_hold_no_file(tmp_path):
    (tmp_path / "Toy Set.mat").mkdir()
    assert find_file(tmp_path, "Toy Set.mat") is None
    assert find_file(tmp_path / "nowhere", "Toy Set.mat") is None


def test_order_of_the_places(toy, register, cache, tmp_path, monkeypatch):
    register()
    places = [tmp_path / "home", tmp_path / "environment", cache]
    for place in places:
        place.mkdir()
        toy.save(place / "Toy Set.mat")
    monkeypatch.setenv("SKPLL_DATA", str(places[1]))
    for place in places:
        path = fetch_dataset("toy", data_home=places[0])
        assert path == place / "Toy Set.mat"
        path.unlink()


def test_load_reads_the_file_it_finds(toy, register, tmp_path):
    register()
    toy.save(tmp_path / "toyset.mat")
    X, S, y = load_dataset("toy", data_home=str(tmp_path), return_X_S_y=True)
    assert X.tolist() == toy.data.tolist()
    assert y.tolist() == toy.y.tolist()
    assert S.to_matrix().toarray().T.tolist() == toy.partial_target.tolist()


def test_a_tilde_is_the_home_directory(toy, register, tmp_path, monkeypatch):
    register()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    toy.save(tmp_path / "Toy Set.mat")
    assert fetch_dataset("toy", data_home="~") == tmp_path / "Toy Set.mat"


def test_hash(toy_info, tmp_path, toy_bytes, sha256):
    info = replace(toy_info, sha256=sha256)
    path = tmp_path / "Toy Set.mat"
    path.write_bytes(toy_bytes)
    check_file(path, info)
    path.write_bytes(toy_bytes[:-1])
    with pytest.raises(ValueError, match=rf"Toy Set\.mat is not .*{sha256[:16]}… is expected"):
        check_file(path, info)


@pytest.mark.parametrize("content", [b"<html>404</html>", b"MATLAB 5.0 damaged", b""])
@pytest.mark.parametrize("where", ["data_home", "SKPLL_DATA"])
def test_a_bad_file_of_the_user_is_named_and_kept(
    register, sha256, tmp_path, monkeypatch, content, where
):
    register("https://example.org/", sha256=sha256)
    path = tmp_path / "Toy Set.mat"
    path.write_bytes(content)
    if where == "SKPLL_DATA":
        monkeypatch.setenv("SKPLL_DATA", str(tmp_path))
    home = tmp_path if where == "data_home" else None
    with pytest.raises(ValueError, match=r"Toy Set\.mat is .*https://example\.org/Toy%20Set\.mat"):
        fetch_dataset("toy", data_home=home)
    assert path.read_bytes() == content


def test_without_a_hash_the_shape_decides(toy, register, tmp_path):
    register(n_features=7)
    toy.save(tmp_path / "Toy Set.mat")
    with pytest.raises(ValueError, match="12 × 4 features and 5 classes, where 12 × 7"):
        load_dataset("toy", data_home=tmp_path)


def test_a_file_put_into_the_cache_by_hand_is_never_removed(register, cache):
    register()
    cache.mkdir()
    path = cache / "Toy Set.mat"
    path.write_bytes(b"MATLAB 7.3 MAT-file, much work went into this")
    with pytest.raises(ValueError, match=r"7\.3"):
        fetch_dataset("toy")
    assert path.exists()


def test_embedded_data_have_no_file():
    with pytest.raises(ValueError, match="'iris' has no file to fetch"):
        fetch_dataset("iris")


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="XDG is for the other systems")
def test_cache_directory(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere/cache")
    assert cache_directory() == Path("/somewhere/cache/skpll")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_directory() == Path.home() / ".cache" / "skpll"
