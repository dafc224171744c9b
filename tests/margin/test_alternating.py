import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skpll import M3PL, SPPLL, as_candidates
from skpll._examples import Examples
from skpll.datasets import make_partial_classification
from skpll.margin import _alternating
from skpll.margin._alternating import Alternation, Settings
from skpll.margin._start import class_bounds
from skpll.pacing import DIFFICULTIES, REGULARIZERS, SCALES, SCHEDULES, Pace, Stage

ACCURACY = Settings(
    tol=1e-6,
    max_passes=10,
    solver_tol=1e-2,
    weight_floor=1e-3,
    prior_price=np.inf,
)


def random_problem(seed, n=40, d=3, q=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    sets = [set(rng.choice(q, rng.integers(1, q), replace=False).tolist()) for _ in range(n)]
    return X, as_candidates(sets, classes=range(q)), rng


def start(seed, **settings):
    X, S, rng = random_problem(seed)
    bounds = class_bounds(S.expected_counts(), len(S), 0.0)
    return Alternation(
        Examples(X, S, rng.uniform(0.1, 2, len(S))),
        bounds,
        rng.random(len(S.indices)),
        replace(ACCURACY, **settings),
    )


@given(
    seed=st.integers(0, 10**6),
    difficulty=st.sampled_from(sorted(DIFFICULTIES)),
    weights=st.sampled_from(sorted(REGULARIZERS)),
    scale=st.sampled_from(sorted(SCALES)),
    schedule=st.sampled_from(sorted(SCHEDULES)),
    price=st.sampled_from([0.0, 0.05, 0.5, np.inf]),
)
@settings(max_examples=80)
def test_the_objective_never_rises_within_a_stage(
    seed, difficulty, weights, scale, schedule, price
):
    pace = Pace(difficulty, weights, scale, schedule=schedule, growth=1.4)
    alternation = start(seed, prior_price=price)
    for record in alternation.run(pace.stages([1e-3, 0.1, 10.0]), pace):
        trace = np.array(record["trace"])
        assert (np.diff(trace) <= 1e-9 * trace[:-1]).all()
        assert record["objective"] == trace[-1]
        assert record["passes"] == len(trace) / 2


@given(seed=st.integers(0, 10**6))
@settings(max_examples=30)
def test_labels_stay_inside_their_sets_and_bounds(seed):
    alternation = start(seed)
    for _ in alternation.run([Stage(0.1, 0.6), Stage(1.0, 1.0)], Pace("loss", scale="share")):
        S = alternation.candidates
        assert (S.indptr[:-1] <= alternation.assigned).all()
        assert (alternation.assigned < S.indptr[1:]).all()
        load = np.bincount(S.indices[alternation.assigned], minlength=S.shape[1])
        lower, upper = alternation.bounds
        assert (lower <= load).all()
        assert (load <= upper).all()


@pytest.mark.parametrize("price", [0.1, 0.5, np.inf])
def test_a_stage_is_a_local_optimum_of_both_steps(price):
    """Against enumeration: no other labeling is better under the final model."""
    X, S, rng = random_problem(3, n=7, q=3)
    bounds = class_bounds(S.expected_counts(), len(S), 0.0)
    exact = replace(
        ACCURACY, tol=0, max_passes=50, solver_tol=1e-8, weight_floor=0, prior_price=price
    )
    alternation = Alternation(Examples(X, S, np.ones(7)), bounds, np.zeros(len(S.indices)), exact)
    (record,) = alternation.run([Stage(1.0, 1.0)], None)
    places = [range(a, b) for a, b in itertools.pairwise(S.indptr)]
    costs = []
    for choice in itertools.product(*places):
        load = np.bincount(S.indices[list(choice)], minlength=3)
        breach = (np.maximum(bounds[0] - load, 0) + np.maximum(load - bounds[1], 0)).sum()
        if breach == 0 or np.isfinite(price):
            penalty = price * breach if breach else 0.0
            costs.append(alternation.losses[list(choice)].sum() + penalty)
    penalty = price * alternation.breach if alternation.breach else 0.0
    attained = alternation.losses[alternation.assigned].sum() + penalty
    assert attained == pytest.approx(min(costs))
    norm = (alternation.model.coef**2).sum() + (alternation.model.intercept**2).sum()
    assert record["objective"] == pytest.approx(norm / 2 + min(costs), rel=1e-6)


def test_a_model_that_got_worse_is_rejected(monkeypatch):
    alternation = start(0)
    list(alternation.run([Stage(1.0, 1.0)], None))
    before, model = alternation.objective(1.0), alternation.model
    worse = type(model)(
        **{name: getattr(model, name) for name in model.__slots__} | {"objective": 2 * before}
    )
    monkeypatch.setattr(Alternation, "_train", lambda *_: worse)
    assert not alternation.update_model(1.0)
    assert alternation.objective(1.0) == before
    assert alternation.model is model


def test_labels_that_cost_more_are_rejected(monkeypatch):
    alternation = start(0)
    list(alternation.run([Stage(1.0, 1.0)], None))
    before, assigned = alternation.objective(1.0), alternation.assigned
    worst = alternation.candidates.indptr[1:] - 1
    monkeypatch.setattr(Alternation, "_assign", lambda *_: (worst, 0))
    assert not alternation.update_labels(1.0)
    assert alternation.objective(1.0) == before
    np.testing.assert_array_equal(alternation.assigned, assigned)


def test_an_example_that_was_never_admitted_is_marked():
    alternation = start(0)
    pace = Pace("loss", "hard", "share", start=0.3, end=0.3)
    list(alternation.run([Stage(1.0, 0.3)], pace))
    assert set(alternation.admitted_at.tolist()) == {-1, 0}
    np.testing.assert_array_equal(alternation.admitted_at == 0, alternation.weights > 0)


@pytest.mark.parametrize("factor", [0.25, 4.0])
def test_the_price_of_the_prior_follows_the_weights(factor):
    """All weights times a factor and C divided by it: the same problem."""
    X, S, rng = random_problem(5)
    bounds = class_bounds(np.array([34.0, 2.0, 2.0, 2.0]), len(S), 0.0)
    importance, costs = rng.uniform(0.5, 2, len(S)), rng.random(len(S.indices))
    priced = replace(ACCURACY, prior_price=0.02, solver_tol=1e-8)
    plain = Alternation(Examples(X, S, importance), bounds, costs, priced)
    scaled = Alternation(Examples(X, S, factor * importance), bounds, costs, priced)
    (before,) = plain.run([Stage(1.0, 1.0)], None)
    (after,) = scaled.run([Stage(1.0 / factor, 1.0)], None)
    assert plain.breach == scaled.breach > 0
    assert after["objective"] == pytest.approx(before["objective"])


def test_a_pace_that_admits_nobody_keeps_the_weights():
    alternation = start(0)
    alternation.losses = np.full_like(alternation.losses, 5.0)
    alternation.update_weights(Pace("loss", start=0.01), Stage(1.0, 0.01))
    assert (alternation.weights == 1).all()


def test_self_pacing_with_everything_admitted_is_m3pl():
    X, S, _ = make_partial_classification(150, 5, 4, random_state=0)
    settings = {"C": 1.0, "init": "ridge", "class_prior": "candidates", "prior_price": None}
    plain = M3PL(**settings).fit(X, S)
    pace = Pace(weights="hard", scale="share", start=1.0, end=1.0)
    paced = SPPLL(**settings, pace=pace)
    paced.fit(X, S)
    np.testing.assert_array_equal(plain.coef_, paced.coef_)
    np.testing.assert_array_equal(plain.transduction_, paced.transduction_)
    assert (paced.weights_ == 1).all()
    assert (paced.labeled_iter_ == 0).all()


@pytest.mark.parametrize("settled", [0.0, 1.1])
def test_stages_are_left_out_where_scores_are_many_and_labels_settled(settled, monkeypatch):
    monkeypatch.setattr(_alternating, "LARGE_SCORES", 1)
    alternation = start(0, settled=settled)
    stages = [Stage(C, 1.0) for C in (0.01, 0.1, 1.0)]
    records = list(alternation.run(stages, Pace("loss", scale="share")))
    assert [record["C"] for record in records] == ([0.01, 1.0] if settled else [0.01, 0.1, 1.0])
    assert alternation.admitted_at.max() < len(records)
    for record in records:
        assert (np.diff(record["trace"]) <= 1e-9 * np.array(record["trace"][:-1])).all()
    loose = alternation.model.relative_gap
    alternation.finish(1.0)
    assert alternation.model.relative_gap <= ACCURACY.solver_tol
    assert loose <= 0.1


def test_few_scores_leave_no_stage_out():
    alternation = start(0, settled=1.1)
    pace = Pace("loss", scale="share")
    assert len(list(alternation.run([Stage(C, 1.0) for C in (0.01, 0.1, 1.0)], pace))) == 3
