"""What load_dataset gives: the fields, the types, the labels."""

import doctest
import importlib
import subprocess
import sys

import numpy as np
import pytest
from sklearn import datasets as sklearn_datasets
from sklearn.utils import Bunch

from skpll.candidates import CandidateSets
from skpll.datasets import dataset_info, load_dataset


def test_fields_of_a_partial_set(toy, register, tmp_path):
    info = register()
    toy.save(tmp_path / "Toy Set.mat")
    bunch = load_dataset("Toy", data_home=tmp_path)
    assert isinstance(bunch, Bunch)
    assert set(bunch) == {"X", "candidates", "y", "classes", "feature_names", "DESCR"}
    assert isinstance(bunch.candidates, CandidateSets)
    assert bunch.candidates.contains(bunch.y).all()
    np.testing.assert_array_equal(bunch.candidates.classes, bunch.classes)
    assert len(bunch.classes) == info.n_classes > len(np.unique(bunch.y))
    assert bunch.DESCR.startswith("Toy Set: testing\n================\n")


@pytest.mark.parametrize("name", ["digits", "wine", "iris", "breast_cancer"])
def test_embedded_sets(name):
    source = getattr(sklearn_datasets, f"load_{name}")()
    bunch = load_dataset(name)
    info = dataset_info(name)
    assert bunch.X.shape == (info.n_samples, info.n_features)
    np.testing.assert_array_equal(bunch.X, source.data)
    np.testing.assert_array_equal(bunch.y, source.target_names[source.target])
    np.testing.assert_array_equal(bunch.classes, np.sort(source.target_names))
    assert len(bunch.classes) == info.n_classes == info.n_true_classes
    assert bunch.feature_names == list(source.feature_names)
    assert bunch.candidates is None
    X, S, y = load_dataset(name, return_X_S_y=True)
    assert S is None
    np.testing.assert_array_equal(X, bunch.X)
    np.testing.assert_array_equal(y, bunch.y)


def test_note_on_digits_is_true():
    assert (np.ptp(load_dataset("digits").X, axis=0) == 0).sum() == 3


def test_unknown_name():
    with pytest.raises(ValueError, match=r"'loste'.*Did you mean 'lost'\?"):
        load_dataset("loste")


def test_import_is_light():
    code = (
        "import sys, skpll.datasets; "
        "heavy = {'pandas', 'pooch', 'requests', 'matplotlib', 'numba', 'sklearn', 'tqdm'}; "
        "print(*(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("module", ["_registry", "_load", "_partial_labels", "_synthetic"])
def test_examples_in_the_docstrings(module):
    result = doctest.testmod(importlib.import_module(f"skpll.datasets.{module}"))
    assert result.attempted > 0
    assert result.failed == 0
