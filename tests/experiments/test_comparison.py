"""Comparisons against scipy, published tables and hand-computed values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import skpll
from skpll import plotting
from skpll.experiments import comparison
from skpll.experiments.comparison import (
    compare_pair,
    compare_ranks,
    nemenyi_quantile,
)

# Demšar (2006), Table 6: AUC of C4.5 with variations on 14 UCI data sets. One value has a digit
# more than printed, so that two that are printed alike rank as they do there.
DEMSAR = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ]
)
METHODS = ["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"]


def as_scores(table):
    return {f"data {i}": dict(zip(METHODS, row, strict=True)) for i, row in enumerate(table)}


scores = st.integers(2, 20).flatmap(
    lambda n: st.tuples(
        *[st.lists(st.floats(0, 1).map(lambda x: round(x, 3)), min_size=n, max_size=n)] * 2
    )
)


@given(scores)
def test_the_t_test_is_that_of_scipy(pair):
    a, b = pair
    ours = compare_pair(a, b)
    if np.ptp(np.round(np.subtract(a, b), 12)) == 0:
        assert ours.p_value == (1.0 if ours.difference == 0 else 0.0)
        return
    theirs = stats.ttest_rel(a, b)
    assert ours.statistic == pytest.approx(theirs.statistic, rel=1e-6)
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-6, abs=1e-300)
    interval = theirs.confidence_interval(0.95)
    assert ours.interval == pytest.approx((interval.low, interval.high), abs=1e-9)
    assert ours.effect_size == pytest.approx(theirs.statistic / np.sqrt(len(a)), rel=1e-6)
    mirrored = compare_pair(b, a)
    assert mirrored.p_value == pytest.approx(ours.p_value)
    assert (ours.verdict, mirrored.verdict) in [
        ("better", "worse"),
        ("worse", "better"),
        ("tie", "tie"),
    ]


def test_the_corrected_t_test_by_hand():
    a, b = [0.80, 0.84, 0.81, 0.87, 0.83], [0.78, 0.80, 0.80, 0.82, 0.80]
    # Differences 2, 4, 1, 5, 3 points: mean 3, variance 2.5, variance of the mean (1/5 + 1/4) 2.5.
    found = compare_pair(a, b, test_train_ratio=1 / 4)
    assert found.statistic == pytest.approx(3 / np.sqrt(0.45 * 2.5))
    assert found.p_value == pytest.approx(2 * stats.t.sf(3 / np.sqrt(0.45 * 2.5), 4))
    half = stats.t.ppf(0.975, 4) * np.sqrt(0.45 * 2.5) / 100
    assert found.interval == pytest.approx((0.03 - half, 0.03 + half))
    plain = compare_pair(a, b)
    assert plain.statistic == pytest.approx(3 / np.sqrt(0.5))
    assert plain.p_value < found.p_value
    assert (plain.effect_size, found.effect_size) == pytest.approx((3 / np.sqrt(2.5),) * 2)


def test_identical_methods_tie():
    found = compare_pair([0.5, 0.6, 0.7], [0.5, 0.6, 0.7])
    assert (found.verdict, found.p_value, found.difference) == ("tie", 1.0, 0.0)
    assert found.interval == (0.0, 0.0)


@pytest.mark.parametrize(
    ("k", "q"),
    [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (6, 2.850), (8, 3.031), (10, 3.164)],
)
def test_critical_values_of_demsar_2006(k, q):
    assert nemenyi_quantile(k) == pytest.approx(q, abs=1e-3)


def test_ranks_of_demsar_2006():
    found = compare_ranks(as_scores(DEMSAR))
    assert found.average_ranks == pytest.approx(
        {"C4.5+m+cf": 1.964, "C4.5+m": 2.000, "C4.5+cf": 2.893, "C4.5": 3.143}, abs=1e-3
    )
    assert next(iter(found.average_ranks)) == "C4.5+m+cf"
    assert found.critical_difference == pytest.approx(1.25, abs=0.005)
    # Published without the correction for ties: chi-square 9.28, F 3.69; scipy corrects.
    theirs = stats.friedmanchisquare(*DEMSAR.T)
    assert found.chi_square == pytest.approx(theirs.statistic)
    assert found.p_value == pytest.approx(theirs.pvalue)
    # The best and the worst differ by 1.18: no two methods differ.
    assert found.groups == (("C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5"),)


def test_groups_are_the_largest_runs_within_the_critical_difference():
    # Over 30 data sets a beats b beats c beats d, except that b and c swap every other time.
    rows = [{"a": 4, "b": 3, "c": 2, "d": 1}, {"a": 4, "b": 2, "c": 3, "d": 1}]
    found = compare_ranks({str(i): rows[i % 2] for i in range(30)})
    assert found.average_ranks == {"a": 1.0, "b": 2.5, "c": 2.5, "d": 4.0}
    assert found.critical_difference == pytest.approx(0.856, abs=1e-3)
    assert found.groups == (("b", "c"),)
    few = compare_ranks({str(i): rows[i % 2] for i in range(4)})
    assert few.critical_difference == pytest.approx(2.345, abs=1e-3)
    assert few.groups == (("a", "b", "c"), ("b", "c", "d"))


def test_a_perfect_order_and_no_order_at_all():
    assert compare_ranks({name: {"x": 2.0, "y": 1.0} for name in "abc"}).chi_square == 3.0
    alike = compare_ranks({name: {"x": 1.0, "y": 1.0} for name in "abc"})
    assert (alike.chi_square, alike.p_value) == (0.0, 1.0)
    assert alike.groups == (("x", "y"),)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: compare_pair([1], [2]), "at least two folds"),
        (lambda: compare_pair([1, np.nan], [2, 1]), "NaN or infinite"),
        (lambda: compare_pair([1, 2], [2, 1], alpha=5), "alpha: 5"),
        (lambda: compare_pair([1, 2], [2, 1], test_train_ratio=-1), "test_train_ratio: -1"),
        (lambda: compare_ranks({"d": {"a": 1, "b": 2}}), "two data sets"),
        (
            lambda: compare_ranks({"d": {"a": 1, "b": 2}, "e": {"a": 1, "c": 2}}),
            "score of every method",
        ),
        (lambda: compare_ranks({"d": {"a": 1, "b": 2}, "e": {"a": 1, "b": np.nan}}), "finite"),
    ],
)
def test_wrong_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("module", "name"),
    [(skpll.comparison, "compare_pair"), (plotting, "CriticalDifferenceDisplay")],
)
def test_old_places_warn(module, name):
    with pytest.warns(FutureWarning, match=r"has moved to skpll\.experiments\.comparison"):
        assert getattr(module, name) is getattr(comparison, name)
    with pytest.raises(AttributeError, match="no_such_name"):
        getattr(module, "no_such_" + "name")


def test_the_old_comparison_of_all_methods_still_works():
    scores = {
        "lost": {"ours": [0.76, 0.78, 0.75, 0.79], "theirs": [0.73, 0.76, 0.74, 0.75]},
        "glass": {"ours": [0.60, 0.66, 0.58, 0.63], "theirs": [0.61, 0.64, 0.59, 0.63]},
    }
    with pytest.warns(FutureWarning, match="compare ends with 0.3"):
        found = skpll.comparison.compare(scores, reference="ours")
    assert found.pair("theirs", "lost") == compare_pair(*scores["lost"].values())
    assert found.counts == {"theirs": (1, 1, 0)}
    assert found.ranks.average_ranks == {"ours": 1.25, "theirs": 1.75}
    close = {"c": [0.3, 0.5, 0.4], "a": [0.1 + 0.2, 0.4, 0.3], "b": [0.2, 0.4, 0.3]}
    with pytest.warns(FutureWarning, match="compare ends with 0.3"):
        found = skpll.comparison.compare(close, test="wilcoxon")
    assert [method for method, _ in found.pairs] == ["a", "b"]  # in the order of the table
    assert (
        found.pair("a").p_value == stats.wilcoxon([0.0, 0.1, 0.1]).pvalue
    )  # a difference of rounding
    for wrong in ({"test": "z"}, {"reference": "z"}):
        with (
            pytest.warns(FutureWarning, match="compare ends with 0.3"),
            pytest.raises(ValueError, match="'z' is"),
        ):
            skpll.comparison.compare(close, **wrong)
    with pytest.warns(FutureWarning, match="compare ends with 0.3"):
        one = skpll.comparison.compare(scores["lost"], test="wilcoxon")
    assert one.ranks is None
    assert one.pair("theirs").verdict == "tie"  # of four folds, it never rejects
    assert one.pair("theirs").p_value == pytest.approx(0.125)
