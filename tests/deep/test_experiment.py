"""The experiment `deep-uniform`, in its quick form."""

import pytest

from skpll.datasets import find_dataset
from skpll.experiments import Specification, Store, plan, run_experiment
from skpll.experiments.deep import DeepNetwork
from skpll.experiments.deep.tables import PRINTED
from skpll.experiments.tables import score_table

NAME = "deep-uniform"


@pytest.mark.skipif(
    find_dataset("fashion_mnist") is None, reason="Fashion-MNIST is not on this machine"
)
def test_the_quick_experiment_runs_and_has_printed_figures(tmp_path):
    quick = Specification.read(NAME, quick=True)
    summary = run_experiment(quick, tmp_path / "a.db", jobs=1)
    assert (summary.planned, summary.done, summary.failed) == (15, 15, 0)
    with Store.open(tmp_path / "a.db", read_only=True) as store:
        (experiment,), results = store.experiments(), store.results()
    assert set(results["n_train"]) == {600}
    assert set(results["n_test"]) == {100}
    assert (results.groupby("method")["accuracy"].mean() > 0.3).all()
    frame = score_table(results, experiment).set_index("method")
    assert frame.loc["MLP, PRODEN", "paper_mean"] == PRINTED["fashion_mnist"]["MLP, PRODEN"]["0.5"]
    assert frame.loc["MLP, PRODEN", "note"].startswith("paper 0.889, ")
    assert frame.loc["PL-LOO on pixels", "note"] == ""


def test_the_experiment_is_complete():
    tasks = list(plan(Specification.read(NAME)))
    assert len(tasks) == 2 * 4 * 5 * 10
    labels = {task.label for task in tasks}
    assert labels > {label for rows in PRINTED.values() for label in rows}


def test_a_network_of_an_experiment_is_a_classifier(digits):
    X, S, y = digits
    model = DeepNetwork(loss="crdpll", max_epochs=3, augment=["crop"], lr=0.05)
    assert not hasattr(model, "transduction_")
    model.fit(16 * X, S)
    assert model.predict_proba(16 * X).shape == (len(y), 10)
    assert (model.predict(16 * X) == y).mean() > 0.5
    assert len(model.history_) == 3
