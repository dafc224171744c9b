"""Random samples of labels, and the accuracy that they show."""

import numpy as np
import pytest
from scipy import special, stats

from skpll.crowd import draw_audit, estimate_accuracy, plan_review, recalibrated
from skpll.crowd._audit import moved


def population(n, accuracy, slope, seed):
    """Confidences and whether labels are right, with the given mean."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0, slope, n)
    order = np.argsort(z + rng.logistic(size=n))
    right = np.zeros(n, bool)
    right[order[round((1 - accuracy) * n) :]] = True
    return special.expit(2 * z + 3), right


def covered(confidence, right, n_rows, n_audits):
    real = right.mean()
    known = {}
    hits = 0
    for seed in range(n_audits):
        sample = draw_audit(confidence, n_rows, seed=seed)
        found = right[sample.rows]
        sizes = np.bincount(sample.stratum, sample.weight)
        drawn = np.bincount(sample.stratum)
        key = (*np.bincount(sample.stratum, found), *drawn)
        if key not in known:
            known[key] = estimate_accuracy(found, sample.stratum, sizes)
        hits += known[key].low <= real <= known[key].high
    return hits


def test_intervals_of_a_hundred_rows_cover_as_often_as_they_say():
    cases = [(300, 0.9, 2.0), (800, 0.85, 1.0), (2000, 0.7, 0.5), (2000, 0.93, 2.0)]
    hits = [covered(*population(*case, 11), 100, 50) for case in cases]
    assert 0.93 * 200 <= sum(hits) <= 0.97 * 200


def test_one_row_is_a_sample():
    sample = draw_audit([0.5, 0.6, 0.9], 1)
    assert len(sample.rows) == 1
    assert sample.weight.tolist() == [3.0]


def p_values(k, n, accuracies):
    """By the binomial distribution: results that are less likely, and half of those as likely."""
    law = stats.binom.pmf(np.arange(n + 1)[:, None], n, accuracies)
    same = np.isclose(law, law[k], rtol=1e-7, atol=0)
    return np.where(same, law / 2, np.where(law < law[k], law, 0)).sum(axis=0)


@pytest.mark.parametrize(("k", "n"), [(45, 50), (100, 100), (99, 100), (60, 100), (3, 10)])
def test_one_stratum_without_limit_is_the_binomial_interval(k, n):
    found = estimate_accuracy([True] * k + [False] * (n - k))
    accuracies = np.linspace(0.0001, 0.9999, 9999)
    accepted = accuracies[p_values(k, n, accuracies) >= 0.05]
    assert found.low == pytest.approx(accepted.min(), abs=2e-4)
    assert found.high == pytest.approx(accepted.max(), abs=2e-4)


def test_strata_of_equal_size_and_irregular_ones_give_nearly_the_same():
    right = np.arange(100) % 12 > 0
    even = estimate_accuracy(right, np.arange(100) % 5, [400] * 5)
    odd = estimate_accuracy(right, np.arange(100) % 5, [403, 399, 401, 397, 400])
    assert odd.low == pytest.approx(even.low, abs=0.005)
    assert odd.high == pytest.approx(even.high, abs=0.005)


def test_all_rows_decided_leave_nothing_open():
    found = estimate_accuracy([True] * 8 + [False] * 2, np.arange(10) // 5, [5, 5])
    assert (found.accuracy, found.low, found.high) == (0.8, 0.8, 0.8)


def test_one_decision_says_next_to_nothing():
    right, wrong = estimate_accuracy([True]), estimate_accuracy([False])
    assert (right.accuracy, right.high) == (1, 1)
    assert (wrong.accuracy, wrong.low) == (0, 0)
    assert 0 < right.low < 0.2
    assert wrong.high == pytest.approx(1 - right.low)


def test_strata_that_differ_make_the_interval_shorter():
    right = np.repeat([True, False], [50, 50])
    apart = estimate_accuracy(right, np.repeat([0, 1], 50), [500, 500])
    mixed = estimate_accuracy(right, np.tile([0, 1], 50), [500, 500])
    assert apart.high - apart.low < 0.7 * (mixed.high - mixed.low)


def test_weights_stand_for_all_rows_and_strata_for_confidence():
    confidence = np.random.default_rng(0).random(103)
    sample = draw_audit(confidence, 47, seed=3)
    assert len(np.unique(sample.rows)) == 47
    assert sample.weight.sum() == pytest.approx(103)
    for h in range(sample.stratum.max()):
        lower, upper = (confidence[sample.rows[sample.stratum == s]] for s in (h, h + 1))
        assert lower.max() <= upper.min()


def test_every_row_is_as_likely_to_be_drawn():
    confidence = np.repeat([0.5, 1.0], [30, 70])
    times = np.zeros(100)
    for seed in range(400):
        times[draw_audit(confidence, 20, seed=seed).rows] += 1
    assert times.mean() == pytest.approx(80)
    assert np.abs(times - 80).max() < 5 * np.sqrt(400 * 0.2 * 0.8)


def test_more_rows_than_there_are_means_all():
    assert draw_audit([0.5, 0.6], 10).rows.tolist() == [0, 1]


def test_recalibration_meets_what_was_decided():
    confidence, right = population(5000, 0.8, 1.5, 2)
    sample = draw_audit(confidence, 400, seed=1)
    corrected = recalibrated(confidence, confidence[sample.rows], right[sample.rows], sample.weight)
    assert corrected.mean() == pytest.approx(0.8, abs=0.05)
    assert (np.diff(corrected[np.argsort(confidence)]) >= 0).all()
    top = confidence > np.quantile(confidence, 0.8)
    assert corrected[top].mean() == pytest.approx(right[top].mean(), abs=0.07)


def test_recalibration_is_the_most_probable_line_in_logits():
    """The slopes of the penalized likelihood are zero where a and b are read off the answer."""
    confidence, right = population(300, 0.8, 1.5, 3)
    confidence = np.clip(confidence, 0.05, 0.95)
    z = special.logit(confidence)
    for weight in (None, np.linspace(0.5, 1.5, 300)):
        line = special.logit(recalibrated([0.5, special.expit(1)], confidence, right, weight))
        a, b = line[0], line[1] - line[0]
        w = np.ones(300) if weight is None else weight * 300 / weight.sum()
        residuals = w * (special.expit(a + b * z) - right)
        assert residuals.sum() + a / 9 == pytest.approx(0, abs=0.02)
        assert (residuals * z).sum() + (b - 0.5) / 0.25 == pytest.approx(0, abs=0.02)
    assert recalibrated([0.2, 0.9], [0.2, 0.9] * 20, [True, False] * 20) == pytest.approx(
        0.5, abs=0.01
    )


@pytest.mark.parametrize(("chances", "mean"), [([1.0, 0.5], 0.3), ([0.0, 0.5], 0.7)])
def test_certain_rows_move_too_where_the_mean_asks_for_it(chances, mean):
    found = moved(np.array(chances), mean)
    assert found.mean() == pytest.approx(mean, abs=1e-6)
    assert ((found > 0) & (found < 1)).all()
    weighted = moved(np.array(chances), mean, np.array([1.0, 3.0]))
    assert weighted @ [0.25, 0.75] == pytest.approx(mean, abs=1e-6)


def test_the_plan_reviews_no_more_than_needed():
    confidence = np.array([0.9, 0.3, 0.5, 0.8])
    chance = np.array([0.9, 0.2, 0.5, 0.8])
    plan = plan_review(confidence, chance, 0.8)
    assert (plan.n_rows, plan.below) == (1, 0.5)
    assert plan.accuracy == pytest.approx((0.9 + 1 + 0.5 + 0.8) / 4)
    assert plan_review(confidence, chance, 0.5).n_rows == 0
    assert plan_review(confidence, chance, 1.0).n_rows == 4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: draw_audit([0.5, 1.2], 1), "confidence: row 2 has 1.2"),
        (lambda: draw_audit([], 1), "confidence: there are no rows"),
        (lambda: draw_audit([0.5], 0), "n_rows: 0 rows are no sample"),
        (lambda: estimate_accuracy([]), "right: no row is decided"),
        (lambda: estimate_accuracy([True], [1], [5, 5]), "no row of stratum 0 is decided"),
        (lambda: plan_review([0.5], [0.5], 95), "target: 95 is not an accuracy"),
    ],
)
def test_wrong_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
