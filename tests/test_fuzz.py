"""A sample of the fuzzer's problems; `make fuzz` runs thousands."""

import numpy as np
import pytest
from scipy import sparse

from skpll import PLKNN, all_methods

from .fuzz import Problem, attempt, is_clear, make_problem, run

SAMPLE = 3
"""Number of problems of each method."""


@pytest.mark.parametrize("name", list(all_methods()))
def test_a_method_fits_or_refuses(name):
    """Each method has problems of its own, so that the sample is a large one all the same."""
    place = sorted(all_methods()).index(name)
    numbers = range(place * SAMPLE, (place + 1) * SAMPLE)
    outcomes = list(run(numbers, {name: all_methods()[name]}))
    assert [entry for entry in outcomes if entry[2].kind not in ("fitted", "refused")] == []


@pytest.mark.parametrize("number", [20011, 20062, 20572, 20963, 21048, 21592])
def test_em_on_curvatures_that_are_singular_but_for_rounding(number):
    """Problems that once ended in a LinAlgError."""
    assert attempt(all_methods()["em"], make_problem(number)).kind == "fitted"


def test_problems_are_those_of_their_number():
    first, again = make_problem(11), make_problem(11)
    assert first.traits == again.traits
    assert first.sets == again.sets
    dense = [sparse.csr_array(problem.X).toarray() for problem in (first, again)]
    np.testing.assert_array_equal(*dense)
    assert len({make_problem(number).traits for number in range(40)}) > 30


class Broken(PLKNN):
    """Its confidences are no numbers."""

    def _fit(self, examples):
        return np.full(len(examples.sets.indices), np.nan)


class Raw(PLKNN):
    """Fails inside of numpy."""

    def _fit(self, examples):
        return np.ones(3) + np.ones(len(examples.sets.indices) + 4)


def test_the_fuzzer_sees_defects():
    rng = np.random.default_rng(0)
    sets = make_problem(2).sets
    problem = Problem(rng.normal(size=(len(sets), 2)), sets, None, ())
    assert attempt(PLKNN, problem).kind == "fitted"
    assert attempt(Broken, problem).kind not in ("fitted", "refused")
    assert attempt(Raw, problem).kind == "ValueError"
    assert "broadcast" in attempt(Raw, problem).detail
    refused = attempt(PLKNN, Problem(np.full((len(sets), 2), np.nan), sets, None, ()))
    assert refused.kind == "refused"
    assert "NaN" in refused.detail


@pytest.mark.parametrize(
    "error", [np.linalg.LinAlgError("singular"), KeyError("x"), TypeError("no number")]
)
def test_raw_errors_are_not_clear(error):
    assert not is_clear(error)
