"""PL-LOO on Dask collections gives what it gives in memory."""

import os
import signal
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skpll import PLLOO
from skpll.datasets import make_partial_classification
from skpll.engine.limits import LIMITS
from skpll.leave_one_out._loop import Loop

dask = pytest.importorskip("dask", reason="Dask is optional")
array = pytest.importorskip("dask.array", reason="Dask is optional")
frames = pytest.importorskip("dask.dataframe", reason="data frames of Dask are optional")
distributed = pytest.importorskip("distributed", reason="Dask's clusters are optional")

THREADS = {"scheduler": dask.threaded.get}  # older Dask warns of a name where there is a client
LINEAR = {"kernel": "linear", "alpha": 0.1, "n_landmarks": 30, "max_iter": 5}
KERNEL = {"kernel": "rbf", "gamma": 1.0, "alpha": 0.1, "n_landmarks": 30, "noise": 0.1}


@pytest.fixture(scope="module")
def examples():
    return make_partial_classification(2600, 8, 5, p=0.8, r=2, class_sep=2.0, random_state=0)


@pytest.fixture(autouse=True)
def many(monkeypatch):
    """Take a few hundred examples for many, and a few dozen for a piece of a partition."""
    monkeypatch.setattr(LIMITS, "rows_in_memory", 300)
    monkeypatch.setattr(LIMITS, "block_numbers", 1000)


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="600MB", dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def assert_same(model, usual, X):
    assert_allclose(
        model.label_distributions_.compute().toarray(),
        usual.label_distributions_.toarray(),
        atol=1e-6,
    )
    assert_array_equal(model.transduction_.compute(), usual.transduction_)
    assert_allclose(model.missing_.compute(), usual.missing_, atol=1e-6)
    rows = array.from_array(X, chunks=(999, 3))
    assert_allclose(model.predict_proba(rows).compute(), usual.predict_proba(X), atol=1e-6)
    assert_array_equal(model.predict(rows).compute(), usual.predict(X))


@pytest.mark.parametrize("settings", [LINEAR, KERNEL])
def test_arrays_on_the_threads_of_this_computer(examples, settings):
    X, S, _ = examples
    rows = array.from_array(X, chunks=(700, 3))
    sets = array.from_array(np.asarray(S), chunks=(700, -1))
    weights = np.random.default_rng(0).uniform(0.5, 2, len(S))
    with dask.config.set(THREADS):
        model = PLLOO(**settings).fit(rows, sets, array.from_array(weights, chunks=700))
        assert_same(model, PLLOO(**settings).fit(X, S, weights), X)


def test_only_sums_and_samples_come_to_the_client(examples, client, monkeypatch):
    X, S, _ = examples
    gather, sizes = distributed.Client._gather, []

    async def watched(self, futures, *args, **kwargs):
        results = await gather(self, futures, *args, **kwargs)
        sizes.extend(
            np.size(part) for part in dask.core.flatten([results], container=(list, tuple))
        )
        return results

    monkeypatch.setattr(distributed.Client, "_gather", watched)
    monkeypatch.setattr(LIMITS, "choice_rows", 100)
    rows = array.from_array(X, chunks=(700, -1))
    PLLOO(**LINEAR).fit(rows, array.from_array(np.asarray(S), chunks=(700, -1)))
    assert sizes
    assert max(sizes) <= 100 * X.shape[1]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal")
def test_a_worker_may_be_lost(examples, client, monkeypatch):
    X, S, _ = examples
    usual = PLLOO(**LINEAR, tol=0.0).fit(X, S)
    rounds, killed = Loop.rounds, []

    def losing_a_worker(self, *settings):
        for record in rounds(self, *settings):
            if self.store.shape[0] == len(S) and not killed:
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)
            yield record

    monkeypatch.setattr(Loop, "rounds", losing_a_worker)
    rows = array.from_array(X, chunks=(700, -1))
    model = PLLOO(**LINEAR, tol=0.0).fit(rows, array.from_array(np.asarray(S), chunks=(700, -1)))
    assert killed
    assert_same(model, usual, X)
    assert killed[0] not in client.run(os.getpid).values()


@pytest.mark.parametrize("kind", ["strings", "lists"])
def test_frames_with_a_column_of_candidates(examples, tmp_path, kind):
    pandas = pytest.importorskip("pandas")
    X, S, _ = examples
    frame = pandas.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    frame["names"] = S.to_strings() if kind == "strings" else S.to_lists()
    frame.to_parquet(tmp_path / "examples.parquet", row_group_size=700)
    read = frames.read_parquet(tmp_path / "examples.parquet", split_row_groups=True)
    column = read["names"].str.split("|") if kind == "strings" else read["names"]
    model = PLLOO(**LINEAR).fit(read.drop(columns="names"), column)
    usual = PLLOO(**LINEAR).fit(X, S)
    assert_allclose(
        model.label_distributions_.compute().toarray(),
        usual.label_distributions_.toarray(),
        atol=1e-6,
    )
    assert model.feature_names_in_.tolist() == list(frame.columns[:-1])
    predicted = model.predict(read.drop(columns="names")).compute()
    assert_array_equal(predicted.astype(str), usual.predict(X).astype(str))


@pytest.mark.parametrize("layout", ["array", "frame"])
def test_candidates_and_weights_in_memory_are_split_by_the_partitions_of_the_rows(examples, layout):
    X, S, _ = examples
    weights = np.random.default_rng(0).uniform(0.5, 2, len(S))
    rows = array.from_array(X, chunks=((600, 700, 700, 600), 3))
    if layout == "frame":
        pytest.importorskip("pandas")
        rows = frames.from_dask_array(rows, columns=[f"f{i}" for i in range(X.shape[1])])
    with dask.config.set(THREADS):
        model, usual = PLLOO(**LINEAR).fit(rows, S, weights), PLLOO(**LINEAR).fit(X, S, weights)
        found = model.label_distributions_.compute().toarray()
    assert_allclose(found, usual.label_distributions_.toarray(), atol=1e-6)


def test_few_examples_are_fitted_in_memory(examples):
    X, S, _ = examples
    rows = array.from_array(X[:200], chunks=(90, -1))
    model = PLLOO(**LINEAR).fit(rows, array.from_array(np.asarray(S)[:200], chunks=(90, -1)))
    assert_array_equal(model.transduction_, PLLOO(**LINEAR).fit(X[:200], S[:200]).transduction_)


def test_a_class_that_is_nobodys_candidate_keeps_its_column(examples):
    X, S, _ = examples
    M = np.insert(np.asarray(S), 2, 0, axis=1)
    rows = array.from_array(X, chunks=(700, -1))
    model = PLLOO(**LINEAR).fit(rows, array.from_array(M, chunks=(700, -1)))
    assert_same(model, PLLOO(**LINEAR).fit(X, M), X)


def test_what_a_cluster_cannot_do_is_said(examples):
    X, S, _ = examples
    rows = array.from_array(X, chunks=(700, -1))
    with pytest.raises(ValueError, match="y: 100 examples for the 2600 rows of X"):
        PLLOO().fit(rows, S[:100])
    M = array.from_array(np.asarray(S), chunks=(1000, -1))
    with pytest.raises(ValueError, match="y: 3 partitions for the 4 of X"):
        PLLOO().fit(rows, M)
    with pytest.raises(ValueError, match="groups: not supported for Dask collections"):
        PLLOO(group_by="candidates").fit(rows, M)
    uneven = array.from_array(np.asarray(S), chunks=((600, 700, 700, 600), -1))
    with pytest.raises(ValueError, match=r"y: candidate labels of 600 examples for .00 rows"):
        PLLOO(**LINEAR).fit(rows, uneven)
    zero = array.zeros(len(S), chunks=700)
    with pytest.raises(ValueError, match="sample_weight: give each example on a cluster"):
        PLLOO(**LINEAR).fit(rows, M.rechunk((700, -1)), zero + 0.0)
