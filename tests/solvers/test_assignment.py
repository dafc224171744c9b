"""The assignment solver against HiGHS, brute force, and its own dual certificate."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog
from sklearn.utils.fixes import parse_version

from skpll.solvers.assignment import Assignment, assign_labels

FAST_HIGHS = pytest.mark.skipif(
    parse_version(scipy.__version__) < parse_version("1.15.3"),
    reason="linprog of SciPy before 1.15.3 takes minutes for larger problems",
)

# --- instances -----------------------------------------------------------------------------------


def pattern(mask):
    """CSR arrays of a binary matrix."""
    return np.concatenate([[0], np.cumsum(mask.sum(axis=1))]), np.nonzero(mask)[1]


def random_mask(rng, n, q):
    mask = rng.random((n, q)) < rng.uniform(0.1, 1)
    if q > 1 and rng.random() < 0.3:
        mask[:, rng.integers(q)] = False
    allowed = np.flatnonzero(mask.any(axis=0)) if mask.any() else np.array([0])
    for row in mask:
        if not row.any():
            row[rng.choice(allowed)] = True
    return mask


COSTS = {
    "uniform": lambda rng, mask: rng.random(mask.sum()),
    "integer": lambda rng, mask: rng.integers(0, 3, mask.sum()).astype(float),
    "zero": lambda rng, mask: np.zeros(mask.sum()),
    "equal": lambda rng, mask: np.repeat(1 / mask.sum(axis=1), mask.sum(axis=1)),
    "signed": lambda rng, mask: 10 * rng.normal(size=mask.sum()),
    "huge": lambda rng, mask: 1e9 * rng.integers(-5, 6, mask.sum()),
    "tiny": lambda rng, mask: 1e-9 * np.maximum(0, rng.normal(size=mask.sum())),
}


def expected_counts(mask):
    return (mask / mask.sum(axis=1, keepdims=True)).sum(axis=0)


def floor_and_ceiling(rng, mask):
    counts = expected_counts(mask)
    return np.floor(counts + 1e-9), np.ceil(counts - 1e-9)


def counts_of_a_labeling(rng, mask):
    labels = [rng.choice(np.flatnonzero(row)) for row in mask]
    counts = np.bincount(labels, minlength=mask.shape[1])
    return counts, counts


def counts_of_chance(rng, mask):
    n, q = mask.shape
    counts = rng.multinomial(n, np.full(q, 1 / q))
    return counts, counts


def slack(rng, mask):
    counts = expected_counts(mask)
    return np.floor(0.75 * counts), np.ceil(1.25 * counts)


def too_much(rng, mask):
    """Lower bounds that add up to more than n, some of them beyond the number of candidates."""
    n, q = mask.shape
    lower = rng.integers(0, n + 3, q)
    return lower, lower + rng.integers(0, 3, q)


def too_little(rng, mask):
    n, q = mask.shape
    upper = rng.integers(0, max(1, n // q) + 1, q)
    return upper - rng.integers(0, upper + 1), upper


def anything(rng, mask):
    n, q = mask.shape
    lower = rng.integers(0, n // q + 2, q)
    return lower, lower + rng.integers(0, 3, q)


BOUNDS = [
    floor_and_ceiling,
    counts_of_a_labeling,
    counts_of_chance,
    slack,
    too_much,
    too_little,
    anything,
]


def random_problem(rng, costs, bounds, n=None, q=None):
    n = n or int(rng.integers(1, 13) if rng.random() < 0.8 else rng.integers(13, 50))
    q = q or int(rng.integers(1, 8))
    mask = random_mask(rng, n, q)
    lower, upper = bounds(rng, mask)
    return *pattern(mask), COSTS[costs](rng, mask), lower.astype(int), upper.astype(int)


# --- oracles -------------------------------------------------------------------------------------


def violation(labels, lower, upper):
    load = np.bincount(labels, minlength=len(lower))
    return int((np.maximum(lower - load, 0) + np.maximum(load - upper, 0)).sum())


def highs(indptr, indices, costs, lower, upper):
    """Least violation of the bounds, and the least cost among the labelings that attain it."""
    n, q, m = len(indptr) - 1, len(lower), len(indices)
    scale = max(np.abs(costs).max(), 1e-300)
    one_each = sparse.csr_array((np.ones(m), np.arange(m), indptr), shape=(n, m))
    load = sparse.csr_array((np.ones(m), (indices, np.arange(m))), shape=(q, m))
    rows, limits = sparse.vstack([load, -load]), np.concatenate([upper, -lower])
    equal = {"A_eq": one_each, "b_eq": np.ones(n), "method": "highs"}
    strict = linprog(costs / scale, A_ub=rows, b_ub=limits, **equal)
    if strict.status == 0:
        return 0, strict.fun * scale

    assert strict.status == 2  # infeasible
    rows = sparse.hstack([rows, -sparse.eye_array(2 * q)])
    equal["A_eq"] = sparse.hstack([one_each, sparse.csr_array((n, 2 * q))])
    breach = np.concatenate([np.zeros(m), np.ones(2 * q)])
    first = linprog(breach, A_ub=rows, b_ub=limits, **equal)
    least = round(first.fun)
    rows = sparse.vstack([rows, sparse.csr_array(breach[None])])
    objective = np.concatenate([costs / scale, np.zeros(2 * q)])
    second = linprog(objective, A_ub=rows, b_ub=np.append(limits, least), **equal)
    assert first.status == second.status == 0
    return least, second.fun * scale


def brute_force(indptr, indices, costs, lower, upper):
    rows = [range(a, b) for a, b in itertools.pairwise(indptr)]
    return min(
        (violation(indices[list(entries)], lower, upper), costs[list(entries)].sum())
        for entries in itertools.product(*rows)
    )


def assert_certified(problem, result):
    """Check feasibility, complementary slackness, and that the dual value is the cost.

    With the bounds widened to what the result needs, this proves its cost to be least.
    """
    indptr, indices, costs, lower, upper = (np.asarray(part) for part in problem)
    n, q, prices = len(indptr) - 1, len(lower), result.prices
    assert result.labels.shape == (n,)
    assert prices.shape == (q,)
    assert np.isfinite(prices).all()
    rows = np.repeat(np.arange(n), np.diff(indptr))
    chosen = np.flatnonzero(indices == result.labels[rows])
    np.testing.assert_array_equal(rows[chosen], np.arange(n))
    np.testing.assert_array_equal(result.places, chosen)
    assert result.relaxed == violation(result.labels, lower, upper)

    scale = max(np.abs(costs).max(initial=0), np.abs(prices).max(initial=0))
    tolerance = 1e-13 * scale * (q + 10)
    np.testing.assert_allclose(result.cost, costs[chosen].sum(), rtol=1e-12, atol=tolerance)
    reduced = costs + prices[indices]
    assert (reduced >= reduced[chosen][rows] - tolerance).all()
    load = np.bincount(result.labels, minlength=q)
    assert (prices[load < upper] <= 0).all()
    assert (prices[load > lower] >= 0).all()

    lower, upper = np.minimum(lower, load), np.maximum(upper, load)
    dual = np.minimum.reduceat(reduced, indptr[:-1]).sum()
    dual -= np.maximum(lower * prices, upper * prices).sum()
    np.testing.assert_allclose(dual, result.cost, rtol=1e-9, atol=n * tolerance)


# --- exactness -----------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("costs", COSTS)
def test_agrees_with_highs(costs, bounds):
    rng = np.random.default_rng([len(costs), BOUNDS.index(bounds)])
    for _ in range(45):
        problem = random_problem(rng, costs, bounds)
        least, cost = highs(*problem)
        scale = np.abs(problem[2]).max()
        result = assign_labels(*problem)
        assert_certified(problem, result)
        assert result.relaxed == least
        assert result.cost == pytest.approx(cost, rel=1e-9, abs=1e-8 * scale)


def highs_with_penalty(indptr, indices, costs, lower, upper, penalty):
    """Least cost where every example outside the bounds costs a penalty."""
    n, q, m = len(indptr) - 1, len(lower), len(indices)
    one_each = sparse.csr_array((np.ones(m), np.arange(m), indptr), shape=(n, m))
    load = sparse.csr_array((np.ones(m), (indices, np.arange(m))), shape=(q, m))
    rows = sparse.hstack([sparse.vstack([load, -load]), -sparse.eye_array(2 * q)])
    solution = linprog(
        np.concatenate([costs, np.full(2 * q, penalty)]),
        A_ub=rows,
        b_ub=np.concatenate([upper, -lower]),
        A_eq=sparse.hstack([one_each, sparse.csr_array((n, 2 * q))]),
        b_eq=np.ones(n),
        method="highs",
    )
    assert solution.status == 0
    return solution.fun


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("costs", ["uniform", "integer", "zero", "signed"])
@pytest.mark.parametrize("penalty", [0.0, 0.1, 1.0, 20.0])
def test_a_finite_penalty_agrees_with_highs(costs, bounds, penalty):
    rng = np.random.default_rng([len(costs), BOUNDS.index(bounds), int(10 * penalty)])
    for _ in range(12):
        problem = random_problem(rng, costs, bounds)
        expected = highs_with_penalty(*problem, penalty)
        for prices in (None, rng.normal(size=len(problem[3]))):
            result = assign_labels(*problem, prices=prices, penalty=penalty)
            assert_certified(problem, result)
            assert (np.abs(result.prices) <= penalty * (1 + 1e-12)).all()
            total = result.cost + penalty * result.relaxed
            assert total == pytest.approx(expected, rel=1e-9, abs=1e-8)


@FAST_HIGHS
@pytest.mark.parametrize(("n", "q"), [(3000, 5), (2000, 60)])
def test_a_larger_problem_with_a_penalty_agrees_with_highs(n, q):
    problem = random_problem(np.random.default_rng(q), "uniform", counts_of_a_labeling, n, q)
    strict = assign_labels(*problem)
    for penalty in strict.prices.max() * np.array([0.05, 0.2]):
        result = assign_labels(*problem, prices=strict.prices, penalty=penalty)
        assert result.relaxed > strict.relaxed
        total = result.cost + penalty * result.relaxed
        assert total == pytest.approx(highs_with_penalty(*problem, penalty), rel=1e-9)


def test_a_penalty_beyond_all_costs_keeps_the_bounds():
    rng = np.random.default_rng(5)
    for _ in range(20):
        problem = random_problem(rng, "uniform", floor_and_ceiling)
        strict, soft = assign_labels(*problem), assign_labels(*problem, penalty=100.0)
        assert soft.relaxed == strict.relaxed == 0
        assert soft.cost == pytest.approx(strict.cost)


@pytest.mark.parametrize("penalty", [-1.0, np.nan])
def test_a_bad_penalty_is_named(penalty):
    with pytest.raises(ValueError, match="penalty must be non-negative"):
        assign_labels([0, 1], [0], [1.0], 0, 1, penalty=penalty)


@st.composite
def tiny_problems(draw):
    n, q = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    rows = [draw(st.sets(st.integers(0, q - 1), min_size=1)) for _ in range(n)]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    indices = np.array([p for row in rows for p in sorted(row)])
    numbers = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6))
    costs = np.array([draw(numbers) for _ in indices])
    lower = np.array([draw(st.integers(0, 4)) for _ in range(q)])
    upper = lower + [draw(st.integers(0, 3)) for _ in range(q)]
    prices = np.array([draw(st.floats(-1e9, 1e9)) for _ in range(q)])
    return (indptr, indices, costs, lower, upper), prices


@settings(max_examples=300, deadline=None)
@given(tiny_problems())
def test_agrees_with_brute_force_from_any_prices(case):
    problem, prices = case
    least, cost = brute_force(*problem)
    for start in (None, prices):
        result = assign_labels(*problem, prices=start)
        assert_certified(problem, result)
        assert result.relaxed == least
        assert result.cost == pytest.approx(cost, rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("bounds", [floor_and_ceiling, counts_of_a_labeling, slack, too_little])
@pytest.mark.parametrize("costs", COSTS)
@pytest.mark.parametrize(("n", "q"), [(3000, 5), (2000, 60), (300, 150)])
def test_larger_problems_are_certified(n, q, costs, bounds):
    rng = np.random.default_rng([n, len(costs)])
    problem = random_problem(rng, costs, bounds, n, q)
    result = assign_labels(*problem)
    assert_certified(problem, result)
    assert (result.relaxed == 0) == (bounds is not too_little)


@pytest.mark.parametrize("bounds", [floor_and_ceiling, counts_of_chance])
def test_problems_of_many_examples(bounds):
    rng = np.random.default_rng(1)
    mask = rng.random((9000, 6)) < 0.5
    mask[np.arange(9000), rng.integers(6, size=9000)] = True
    lower, upper = (part.astype(int) for part in bounds(rng, mask))
    problem = *pattern(mask), rng.random(mask.sum()), lower, upper
    result = assign_labels(*problem)
    assert_certified(problem, result)
    assert result.relaxed == 0


@FAST_HIGHS
def test_larger_infeasible_problem_agrees_with_highs():
    problem = random_problem(np.random.default_rng(3), "uniform", too_little, 400, 30)
    least, cost = highs(*problem)
    result = assign_labels(*problem)
    assert least > 0
    assert result.relaxed == least
    assert result.cost == pytest.approx(cost, rel=1e-9)


@FAST_HIGHS
@pytest.mark.parametrize("costs", ["uniform", "integer"])
@pytest.mark.parametrize(("n", "q", "width"), [(300, 30, 2), (3000, 12, 3), (2000, 200, 5)])
def test_neighbouring_candidates_move_along_long_paths(n, q, width, costs):
    """All examples like their first candidates best; most have to take their last."""
    rng = np.random.default_rng([n, q])
    first = rng.integers(0, q - width + 1, n)
    mask = (np.arange(q) >= first[:, None]) & (np.arange(q) < first[:, None] + width)
    values = np.sort(COSTS[costs](rng, mask).reshape(n, width)).ravel()
    counts = np.bincount(first + (width - 1) * (rng.random(n) < 0.7), minlength=q)
    problem = *pattern(mask), values, counts, counts
    result = assign_labels(*problem)
    assert_certified(problem, result)
    assert result.relaxed == 0
    assert result.cost == pytest.approx(highs(*problem)[1], rel=1e-9)


# --- starting prices -----------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", BOUNDS)
def test_any_starting_prices_lead_to_the_optimum(bounds):
    rng = np.random.default_rng(BOUNDS.index(bounds))
    for _ in range(40):
        problem = random_problem(rng, rng.choice(list(COSTS)), bounds)
        q, scale = len(problem[3]), max(np.abs(problem[2]).max(), 1e-12)
        cold = assign_labels(*problem)
        garbage = rng.normal(size=q) * 10.0 ** rng.integers(-12, 13)
        for prices in (garbage, cold.prices, -cold.prices, np.full(q, 1e300), np.full(q, -1e-300)):
            warm = assign_labels(*problem, prices=prices)
            assert_certified(problem, warm)
            assert warm.relaxed == cold.relaxed
            assert warm.cost == pytest.approx(cold.cost, rel=1e-12, abs=1e-12 * scale)


@pytest.mark.parametrize("q", [4, 40])
def test_prices_carry_over_while_costs_and_bounds_change(q):
    rng = np.random.default_rng(0)
    indptr, indices, costs, lower, upper = random_problem(rng, "uniform", slack, 1000, q)
    prices = None
    for step in range(20):
        problem = indptr, indices, costs, lower, upper
        result = assign_labels(*problem, prices=prices)
        assert_certified(problem, result)
        assert result.cost == pytest.approx(assign_labels(*problem).cost, rel=1e-12)
        prices = result.prices
        costs = np.abs(costs + 0.02 * rng.normal(size=costs.size))
        if step % 5 == 4:
            load = np.bincount(result.labels, minlength=q)
            lower, upper = load - rng.integers(0, 2, q), load + rng.integers(0, 2, q)
            lower = np.maximum(lower, 0)


def test_starting_prices_are_not_modified():
    problem = random_problem(np.random.default_rng(1), "uniform", floor_and_ceiling, 500, 8)
    prices = assign_labels(*problem).prices + 0.1
    before = prices.copy()
    assign_labels(*problem, prices=prices)
    np.testing.assert_array_equal(prices, before)


# --- corner cases --------------------------------------------------------------------------------


def test_one_example_one_class():
    result = assign_labels([0, 1], [0], [2.5], [1], [1])
    assert isinstance(result, Assignment)
    assert result.labels.tolist() == [0]
    assert (result.cost, result.relaxed) == (2.5, 0)


def test_no_example():
    result = assign_labels([0], [], [], [1, 2], [3, 4])
    assert result.labels.shape == (0,)
    assert (result.cost, result.relaxed) == (0.0, 3)


def test_bounds_that_cannot_be_met_give_by_the_least_amount():
    # Class 1 is nobody's candidate but wants 2; class 0 may take 1 but has two singletons.
    result = assign_labels([0, 1, 2, 4], [0, 0, 0, 2], [1.0, 1.0, 0.0, 9.0], [0, 2, 0], [1, 5, 5])
    assert result.labels.tolist() == [0, 0, 2]
    assert (result.cost, result.relaxed) == (11.0, 3)


def test_enormous_lower_bound():
    result = assign_labels([0, 1], [0], [1.0], [2**40], [2**41])
    assert result.relaxed == 2**40 - 1


def test_all_costs_equal_need_no_price():
    problem = random_problem(np.random.default_rng(5), "equal", floor_and_ceiling, 5000, 50)
    result = assign_labels(*problem)
    assert_certified(problem, result)
    np.testing.assert_array_equal(result.prices, 0)


def test_a_tie_goes_to_the_first_class():
    assert assign_labels([0, 3], [0, 1, 2], [1.0, 1.0, 1.0], None, None).labels.tolist() == [0]


@pytest.mark.parametrize("bounds", [floor_and_ceiling, counts_of_a_labeling, too_little])
def test_costs_of_all_magnitudes(bounds):
    rng = np.random.default_rng(6)
    for n, q in [(10, 3), (200, 10), (1000, 40)]:
        indptr, indices, _, lower, upper = random_problem(rng, "zero", bounds, n, q)
        costs = rng.choice([-1.0, 1.0], indices.size) * 10 ** rng.uniform(-12, 12, indices.size)
        problem = indptr, indices, costs, lower, upper
        result = assign_labels(*problem)
        assert_certified(problem, result)


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e200])
def test_extreme_scale(scale):
    indptr, indices, costs, lower, upper = random_problem(
        np.random.default_rng(7), "integer", counts_of_a_labeling, 8, 3
    )
    plain = assign_labels(indptr, indices, costs, lower, upper)
    scaled = assign_labels(indptr, indices, costs * scale, lower, upper)
    assert plain.cost > 0
    assert scaled.cost == pytest.approx(plain.cost * scale, rel=1e-12)
    assert np.isfinite(scaled.prices).all()


def test_bounds_may_be_scalars_or_missing():
    indptr, indices, costs, *_ = random_problem(np.random.default_rng(8), "uniform", slack, 30, 4)
    free = assign_labels(indptr, indices, costs, None, None)
    assert free.cost == pytest.approx(np.minimum.reduceat(costs, indptr[:-1]).sum())
    np.testing.assert_array_equal(free.prices, 0)
    scalar = assign_labels(indptr, indices, costs, 2, 12)
    arrays = assign_labels(indptr, indices, costs, np.full(4, 2), np.full(4, 12))
    np.testing.assert_array_equal(scalar.labels, arrays.labels)
    half = assign_labels(indptr, indices, costs, np.full(4, 2), None)
    assert half.cost <= scalar.cost + 1e-12


# --- behaviour -----------------------------------------------------------------------------------


def test_same_labels_for_all_forms_of_the_same_input():
    indptr, indices, costs, lower, upper = random_problem(
        np.random.default_rng(9), "integer", floor_and_ceiling, 600, 12
    )
    expected = assign_labels(indptr, indices, costs, lower, upper)
    forms = [
        (indptr.astype(np.int32), indices.astype(np.int32), costs.astype(int), lower, upper),
        (
            indptr.astype(np.uint64),
            indices.astype(np.uint8),
            np.repeat(costs, 2)[::2],
            lower,
            upper,
        ),
        tuple(part.tolist() for part in (indptr, indices, costs, lower, upper)),
        (indptr, indices, costs, lower.astype(float), upper.astype(np.int32)),
    ]
    for form in forms:
        result = assign_labels(*form)
        np.testing.assert_array_equal(result.labels, expected.labels)
        np.testing.assert_array_equal(result.prices, expected.prices)


def test_threads_do_not_disturb_each_other():
    rng = np.random.default_rng(10)
    problems = [random_problem(rng, "uniform", floor_and_ceiling, 800, 20) for _ in range(8)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda problem: assign_labels(*problem), problems))
    for problem, result in zip(problems, results, strict=True):
        np.testing.assert_array_equal(result.labels, assign_labels(*problem).labels)


def test_read_only_input():
    problem = random_problem(np.random.default_rng(11), "uniform", too_little, 40, 4)
    expected = assign_labels(*problem)
    for part in problem:
        part.flags.writeable = False
    np.testing.assert_array_equal(assign_labels(*problem).labels, expected.labels)


GOOD = {
    "indptr": [0, 2, 3],
    "indices": [0, 1, 1],
    "costs": [1.0, 2.0, 3.0],
    "lower": [0, 0],
    "upper": [2, 2],
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"indptr": [0, 3, 3]}, "example 1 no candidate"),
        ({"indptr": [0, 4, 3]}, "example 1 no candidate"),
        ({"indptr": [0, 2]}, "end with the number of indices, 3"),
        ({"indptr": [1, 2, 3]}, "start with 0"),
        ({"indptr": []}, "start with 0"),
        ({"indptr": [0.0, 2.0, 3.0]}, "indptr must be a one-dimensional array of integers"),
        ({"indices": [[0, 1, 1]]}, "indices must be a one-dimensional array of integers"),
        ({"indices": [0, 2, 1]}, r"indices\[1\] is no class index; there are bounds for 2 classes"),
        ({"indices": [0, 1, -1]}, r"indices\[2\] is no class index"),
        ({"indices": [0, 2**32, 1]}, r"indices\[1\] is no class index"),
        ({"indices": [0, 0, 1]}, "candidate of example 0 twice"),
        ({"costs": [1.0, np.nan, 3.0]}, r"costs must be finite, .*; costs\[1\] is not"),
        ({"costs": [1.0, 2.0, -np.inf]}, r"costs must be finite, .*; costs\[2\] is not"),
        ({"costs": [1.0, 2.0, 1e300]}, r"less than 1e\+250 in size; costs\[2\] is not"),
        ({"costs": [1.0, 2.0]}, r"costs must have shape \(3,\); got \(2,\)"),
        ({"lower": [0, -1]}, "lower must consist of non-negative integers; found -1 at position 1"),
        ({"upper": [0.5, 2]}, "upper must consist of non-negative integers; found 0.5"),
        ({"upper": [np.inf, 2]}, "Use None for no bound"),
        ({"upper": "many"}, "upper must be None, an integer, or an array"),
        ({"lower": [0, 3]}, "lower is greater than upper for class 1"),
        ({"lower": [0, 0, 0]}, "differ in length: 3 and 2"),
        ({"prices": [0.0]}, r"prices must have shape \(2,\); got \(1,\)"),
        ({"prices": [0.0, np.nan]}, r"prices must be finite; prices\[1\] is not"),
    ],
)
def test_bad_input_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        assign_labels(**(GOOD | change))
