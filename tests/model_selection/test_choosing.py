"""The automatic choice: the likeliest wins, it says so, and it depends on the seed alone."""

import warnings

import numpy as np
import pandas as pd
import pytest

from skpll import PLKNN, as_candidates
from skpll._errors import DiagnosisWarning
from skpll.datasets import make_partial_classification, make_partial_labels
from skpll.model_selection import choose_method, held_out_probabilities
from skpll.registry import make_method

RANDOM = np.random.default_rng(0)


def rings(n):
    """Two classes, one inside the other: no linear method can tell them apart."""
    angle, y = RANDOM.uniform(0, 2 * np.pi, n), RANDOM.integers(0, 2, n)
    radius = 1 + 2 * y + RANDOM.normal(scale=0.2, size=n)
    return np.column_stack((radius * np.cos(angle), radius * np.sin(angle))), y


def test_the_likelihood_of_held_out_sets_decides():
    X, y = rings(200)
    S = make_partial_labels(y, p=0.3, r=1, random_state=0)
    choice = choose_method(X, S, seed=0)
    trials = {trial.method: trial for trial in choice.trials}
    assert set(trials) == {"plloo", "crossfitclassifier", "sppll"}
    assert choice.best.likelihood >= max(t.likelihood - t.error for t in trials.values())
    assert min(trial.covering_rate for trial in trials.values()) > 0.95  # all have kernels or trees
    assert f"chose {choice.best}" in choice.reason
    assert f"{choice.best.likelihood:.3f}" in choice.reason


def test_a_forest_wins_where_most_features_say_nothing():
    X = RANDOM.normal(size=(400, 40))
    y = (X[:, 0] > 0).astype(int) + 2 * (X[:, 1] > 0)
    S = make_partial_labels(y, p=0.5, r=1, random_state=0)
    choice = choose_method(X, S, seed=0)
    assert choice.best.method == "crossfitclassifier"


def test_a_label_in_every_set_is_not_the_best_prediction():
    X, S, y = make_partial_classification(300, 4, 4, p=0.8, r=1, class_sep=2, random_state=0)
    with_another = as_candidates([{*labels, 9} for labels in S])
    choice = choose_method(X, with_another)
    method = make_method(choice.best.method, choice.best.parameters, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiagnosisWarning)  # not every method gives it
        method.fit(X, with_another)
    assert (method.transduction_ == y).mean() > 0.9
    likelihoods = {trial.method: trial.likelihood for trial in choice.trials}
    assert max(likelihoods.values()) < 0
    assert likelihoods["crossfitclassifier"] < likelihoods["plloo"] - 0.5


def test_rows_are_sampled_from_frames_and_lists():
    X, S, _ = make_partial_classification(60, 4, 3, class_sep=2, p=0.5, random_state=0)
    chosen = [choose_method(each, S, max_examples=30) for each in (X, pd.DataFrame(X), X.tolist())]
    assert len({choice.reason for choice in chosen}) == 1


def test_held_out_rows_were_not_learned_from():
    X, S = np.arange(12.0)[:, np.newaxis], as_candidates([{"a"}] * 6 + [{"b"}] * 6)
    nearest = PLKNN(n_neighbors=1)
    shares = held_out_probabilities(nearest, X, S, folds=12)
    at_border = shares[5]  # its nearest neighbour but itself is 4 or 6
    assert nearest.fit(X, S).predict_proba(X)[5, 0] == 1
    assert (shares.argmax(axis=1)[:5] == 0).all()
    assert at_border.sum() == pytest.approx(1)
    once = held_out_probabilities(nearest, X, S, folds=3, only_one=True)
    assert np.isnan(once[:, 0]).sum() == 8


def test_ties_go_to_the_preferred_method_and_the_seed_decides_the_rest():
    X = np.repeat([[0.0], [10.0]], 30, axis=0) + RANDOM.normal(scale=0.1, size=(60, 1))
    S = as_candidates([{"a"}] * 30 + [{"b"}] * 30)
    first, second = (choose_method(X, S, seed=3, max_examples=40) for _ in range(2))
    assert str(first.best) == "plloo"
    assert first.n_examples == 40
    assert [t.covering_rate for t in first.trials] == [t.covering_rate for t in second.trials]


def test_too_few_rows_can_not_be_compared():
    with pytest.raises(ValueError, match="5 examples are too few"):
        choose_method(np.zeros((5, 1)), as_candidates([{"a", "b"}] * 5))


def test_the_seed_reaches_the_methods_that_have_one():
    assert make_method("plsvm", {}, 7).random_state == 7
    assert make_method("plsvm", {"random_state": 3}, 7).random_state == 3
    assert make_method("sppll", {"C": 2}, 7).C == 2
