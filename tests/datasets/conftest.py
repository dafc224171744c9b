"""A small data set of our own, registered for the length of a test."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from skpll.datasets import DatasetInfo, _download, _registry

N, D, Q = 12, 4, 5


@dataclass(frozen=True)
class Toy:
    """What a toy file holds, in the layout of the published files."""

    data: np.ndarray
    target: np.ndarray
    partial_target: np.ndarray

    @property
    def y(self) -> np.ndarray:
        return self.target.argmax(axis=0)

    def save(self, path: Path, **changes: object) -> Path:
        variables = {
            "data": self.data,
            "target": sparse.csc_matrix(self.target),
            "partial_target": sparse.csc_matrix(self.partial_target),
        }
        variables |= changes
        savemat(path, {name: value for name, value in variables.items() if value is not None})
        return path


@pytest.fixture
def toy() -> Toy:
    random = np.random.RandomState(3)
    y = random.randint(0, Q - 1, N)  # the last class is never true
    target = np.zeros((Q, N))
    target[y, np.arange(N)] = 1
    partial = np.maximum(target, random.random_sample((Q, N)) < 0.4)
    return Toy(random.standard_normal((N, D)), target, partial)


@pytest.fixture
def toy_info() -> DatasetInfo:
    return DatasetInfo(
        name="toy",
        title="Toy Set",
        task="testing",
        n_samples=N,
        n_features=D,
        n_classes=Q,
        mean_candidates=2.0,
        description="Numbers.",
        collection=_registry.Collection(origin="Nowhere.", licence="None."),
        citation="Nobody.",
        file_name="Toy Set.mat",
    )


@pytest.fixture
def toy_bytes(toy: Toy, tmp_path: Path) -> bytes:
    return toy.save(tmp_path / "scratch.mat").read_bytes()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache and no ``SKPLL_DATA``, whatever the machine has."""
    directory = tmp_path / "cache"
    monkeypatch.setattr(_download, "cache_directory", lambda: directory)
    monkeypatch.delenv("SKPLL_DATA", raising=False)
    return directory


@pytest.fixture
def register(
    toy_info: DatasetInfo, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., DatasetInfo]:
    """Put a toy entry with the given fields into the registry, next to an empty cache."""
    assert not cache.exists()

    def put(address: str | None = None, **fields: object) -> DatasetInfo:
        source = _registry.Collection(origin="Nowhere.", licence="None.", address=address)
        info = replace(toy_info, collection=source, **fields)
        monkeypatch.setattr(_registry, "REGISTRY", {**_registry.REGISTRY, "toy": info})
        return info

    return put


@pytest.fixture
def sha256(toy_bytes: bytes) -> str:
    return hashlib.sha256(toy_bytes).hexdigest()
