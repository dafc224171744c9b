"""Labels from votes: against crowd-kit's results, by hand, and under changes of no account."""

import itertools
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skpll import crowd
from skpll.crowd import VoteTable, aggregate
from skpll.crowd._models import (
    expected_counts,
    full_confusions,
    vote_log_odds,
)

REFERENCE = json.loads((Path(__file__).parent / "reference.json").read_text("utf-8"))
TABLES = ("dog", "web", "CF", "s4_Face_Sentiment_Identification", "rte")
N_ITER = 20  # of the reference results
FITS = {
    "majority": crowd.fit_majority,
    "one-coin": lambda votes: crowd.fit_one_coin(votes, shrinkage=0, max_iter=N_ITER, tol=-1),
    "dawid-skene": lambda votes: crowd.fit_dawid_skene(votes, shrinkage=0, max_iter=N_ITER, tol=-1),
}


def shared_table(name):
    """Votes and truth of a real table, if the data directory has it."""
    folder = Path(os.environ.get("SKPLL_DATA", ".")) / "crowd"
    if name == "rte":
        path, columns, sep = folder / "rte_votes.tsv", (2, 1, 3, 4), "\t"
    else:
        path, columns, sep = folder / f"{name}_votes.csv", (0, 1, 2), ","
    if not path.exists():
        pytest.skip("the data directory has no tables of votes")
    cells = np.loadtxt(path, str, delimiter=sep, skiprows=1, usecols=columns)
    item, label = cells[:, 0].astype(int), cells[:, 2].astype(int)
    if name == "rte":
        truth = dict(zip(item.tolist(), cells[:, 3].astype(int).tolist(), strict=True))
    else:
        rows = np.loadtxt(folder / f"{name}_truth.csv", int, delimiter=",", skiprows=1)
        truth = dict(rows.tolist())
    return VoteTable.from_long(item, cells[:, 1], label), truth


def reference_table(name):
    if name == "made up":
        return VoteTable.from_long(*np.array(REFERENCE[name]["votes"]).T)
    return shared_table(name)[0]


def accuracy(found, truth):
    right = [
        label == truth[item]
        for item, label in zip(found.items.tolist(), found.labels.tolist(), strict=True)
        if item in truth
    ]
    return np.mean(right)


@pytest.mark.parametrize("method", FITS)
@pytest.mark.parametrize("name", ["made up", *TABLES])
def test_posteriors_are_those_of_crowd_kit(name, method):
    votes, wanted = reference_table(name), REFERENCE[name][method]
    posteriors = FITS[method](votes).posteriors[np.argsort(votes.items)]
    first = np.array(wanted["first_items"])
    np.testing.assert_allclose(posteriors.mean(axis=0), wanted["class_shares"], atol=2e-4)
    np.testing.assert_allclose(posteriors[: len(first)], first, atol=1e-4)


@pytest.mark.parametrize("name", ["made up", *TABLES])
def test_alpha_is_that_of_the_krippendorff_package(name):
    votes = reference_table(name)
    assert crowd.krippendorff_alpha(votes) == pytest.approx(REFERENCE[name]["alpha"], abs=1e-9)


@pytest.mark.parametrize("name", TABLES)
def test_auto_does_not_lose_to_the_majority_on_real_tables(name):
    votes, truth = shared_table(name)
    scores = {m: accuracy(crowd.aggregate_votes(votes, m), truth) for m in crowd.METHODS}
    assert scores["auto"] >= scores["majority"] - 0.005
    assert scores["auto"] >= max(scores["one-coin"], scores["dawid-skene"]) - 0.02


def few_votes_each(seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(5, size=300)
    item = np.repeat(np.arange(300), 5)
    annotator = rng.integers(450, size=len(item))
    skill = rng.uniform(0.45, 0.95, size=450)
    right = rng.random(len(item)) < skill[annotator]
    label = np.where(right, truth[item], rng.integers(5, size=len(item)))
    return VoteTable.from_long(item, annotator, label), dict(enumerate(truth.tolist()))


def test_shrinkage_protects_annotators_with_few_votes():
    votes, truth = few_votes_each()
    scores = [
        accuracy(crowd.aggregate_votes(votes, "dawid-skene", shrinkage=s), truth) for s in (0, 10)
    ]
    assert scores[1] > scores[0] + 0.02
    assert accuracy(crowd.aggregate_votes(votes), truth) >= (
        accuracy(crowd.aggregate_votes(votes, "majority"), truth) - 0.005
    )


def test_a_table_of_spammers_is_seen_through():
    rng = np.random.default_rng(3)
    truth = rng.integers(3, size=300)
    cells = np.where(rng.random((300, 9)) < 0.7, truth[:, None], rng.integers(3, size=(300, 9)))
    cells[:, 5:] = [0, 0, 1, 0]  # four of nine annotators always say the same
    votes = VoteTable.from_wide(cells)
    found = crowd.aggregate_votes(votes)
    majority = crowd.aggregate_votes(votes, "majority")
    assert np.mean(found.labels == truth) > np.mean(majority.labels == truth) + 0.1
    assert found.quality[:5].min() > found.quality[5:].max()
    assert found.confusions[5][:, 0].min() > 0.9


def test_one_step_of_dawid_skene_by_hand():
    votes = VoteTable.from_wide([["x", "x", "y"], ["y", "y", "y"], ["x", "y", None]])
    shares = votes.counts / votes.counts.sum(axis=1, keepdims=True)
    confusions = full_confusions(votes, 10.0)(expected_counts(votes, shares))
    prior = shares.mean(axis=0)
    wanted = np.tile(prior, (3, 1))
    pairs = list(zip(votes.pairs.annotator.tolist(), votes.pairs.label.tolist(), strict=True))
    for item, annotator, label in zip(votes.item, votes.annotator, votes.label, strict=True):
        wanted[item] *= confusions[pairs.index((annotator, label))]
    wanted /= wanted.sum(axis=1, keepdims=True)
    found = crowd.fit_dawid_skene(votes, max_iter=1).posteriors
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("method", crowd.METHODS)
def test_the_order_of_votes_and_the_names_do_not_matter(method):
    item, annotator, label = np.array(REFERENCE["made up"]["votes"]).T
    found = aggregate(item + 10, annotator, label, method)  # text sorts as these numbers do
    order = np.random.default_rng(0).permutation(len(item))
    other = aggregate(
        [f"i{i + 10}" for i in item[order]],
        [f"a{a}" for a in annotator[order]],
        np.array(["x", "y", "z"])[label[order]],
        method,
    )
    place = [other.items.tolist().index(f"i{i}") for i in found.items]
    np.testing.assert_allclose(other.posteriors[place], found.posteriors, atol=1e-9)
    who = [other.annotators.tolist().index(f"a{a}") for a in found.annotators]
    np.testing.assert_allclose(other.confusions[who], found.confusions, atol=1e-9)


@pytest.mark.parametrize("method", crowd.METHODS)
def test_the_record_fits_together(method):
    item, annotator, label = np.array(REFERENCE["made up"]["votes"]).T
    found = aggregate(item, annotator, label, method)
    n, a, q = found.votes.shape
    np.testing.assert_allclose(found.posteriors.sum(axis=1), 1)
    np.testing.assert_allclose(found.confusions.sum(axis=2), 1)
    assert found.confusions.shape == (a, q, q)
    assert found.quality.shape == (a,)
    assert ((found.quality > 0) & (found.quality < 1)).all()
    assert (found.confidence >= found.posteriors.max(axis=1) - 1e-9).all()
    assert all(x != y for x, y in zip(found.labels, found.runner_up, strict=True))
    assert set(found.answers) <= set(crowd.METHODS)
    assert all(len(labels) == n for labels in found.answers.values())


def test_auto_averages_and_the_best_on_held_out_votes_counts_twice():
    item, annotator, label = np.array(REFERENCE["made up"]["votes"]).T
    found = aggregate(item, annotator, label)
    best = max(found.held_out, key=found.held_out.get)
    parts = [aggregate(item, annotator, label, m).posteriors for m in (*crowd.METHODS[1:], best)]
    np.testing.assert_allclose(found.posteriors, np.mean(parts, axis=0), atol=1e-12)


def test_held_out_votes_tell_annotators_who_differ_by_class():
    rng = np.random.default_rng(1)
    truth = rng.integers(3, size=400)
    cells = np.where(rng.random((400, 6)) < 0.9, truth[:, None], rng.integers(3, size=(400, 6)))
    plain = crowd.aggregate_votes(VoteTable.from_wide(cells)).held_out
    assert plain["majority"] == pytest.approx(max(plain.values()), abs=0.01)
    for a in range(4):  # these say "1" for half of the items of class 2
        cells[:, a] = np.where((cells[:, a] == 2) & (rng.random(400) < 0.5), 1, cells[:, a])
    scores = crowd.aggregate_votes(VoteTable.from_wide(cells)).held_out
    assert max(scores, key=scores.get) == "dawid-skene"


def test_no_model_foretells_held_out_votes_that_are_random():
    cells = np.random.default_rng(0).integers(4, size=(200, 5))
    held_out = crowd.aggregate_votes(VoteTable.from_wide(cells)).held_out
    assert max(held_out.values()) < np.log(1 / 4) + 0.01


def test_ties_of_the_majority_go_to_the_class_with_more_votes():
    found = aggregate([1, 1, 2, 3], [1, 2, 1, 1], ["x", "y", "y", "y"], "majority")
    assert found.labels.tolist() == ["y", "y", "y"]
    assert found.confidence.tolist() == [0.5, 1.0, 1.0]
    assert found.runner_up.tolist() == ["x", None, None]
    assert found.unanimous.tolist() == [False, True, True]


def test_repeated_votes_count_once_and_the_last_one_does():
    found = aggregate([1, 1, 1, 1, 2], list("aaabb"), list("xxyyx"), "majority")
    assert len(found.votes) == 3
    assert found.labels.tolist() == ["y", "x"]
    (note,) = found.notes
    assert note.startswith("2 votes are of an annotator who voted on the same item again (1 of")


@pytest.mark.parametrize(
    ("labels", "left"),
    [
        ([0, 1, 2, -1], 3),
        (["0", "1", "2", "-1"], 3),
        ([0.0, 1.0, 2.0, float("nan")], 3),
        (["a", "b", "a", None], 3),
        ([0, 1, -99, -1], 2),
        ([-1, 0, 1, 1], 4),  # may be three classes
        ([-1, -1, -1, 0, 1], 2),  # more than half
        ([-1, 1, 1, -1], 4),
        (["-1", "a", "b", "a"], 4),
        ([-2, -1, 0, 1], 4),
    ],
)
def test_missing_votes(labels, left):
    votes = VoteTable.from_long(range(len(labels)), [1] * len(labels), labels)
    assert len(votes) == left
    n_codes = len({x for x in labels if x in (-1, -99, "-1")}) if left < len(labels) else 0
    assert len(votes.notes) == n_codes


def test_a_vote_counts_by_the_share_of_votes_that_are_right():
    assert vote_log_odds(30.0, 40.0, 4) == pytest.approx(np.log(0.75 / (0.25 / 3)))
    assert vote_log_odds(30.0, 40.0, 2) == pytest.approx(np.log(3))
    assert vote_log_odds(10.0, 40.0, 4) == pytest.approx(0)
    assert vote_log_odds(2.0, 40.0, 4) == 0  # less often right than by chance
    assert vote_log_odds(40.0, 40.0, 2) < 5


def test_names_of_items_and_annotators_keep_their_type():
    days = np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[D]")
    votes = VoteTable.from_long(days, np.array([7, 8], dtype=np.int16), ["a", "b"])
    assert votes.items.dtype == days.dtype
    assert votes.annotators.dtype == np.int16


def test_the_pooled_confusion_of_all_labels_sums_to_one():
    votes = reference_table("made up").with_all_pairs()
    counts = expected_counts(votes, votes.shares)
    found = full_confusions(votes, 10.0)(counts)
    sums = np.zeros((len(votes.annotators), len(votes.classes)))
    np.add.at(sums, votes.pairs.annotator, found)
    np.testing.assert_allclose(sums, 1)


def test_given_codes_are_missing():
    votes = VoteTable.from_wide([[9, 0], [0, 1], [1, -1]], missing=[9])
    assert len(votes) == 5
    assert votes.classes.tolist() == [-1, 0, 1]
    assert votes.notes == ("1 vote is 9, which counts as missing.",)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1], [1, 2], ["a"]), "labels: items, annotators and labels have 1, 2, 1 entries"),
        (([], [], []), "labels: there are no votes"),
        (([1, 2], [1, 1], ["a", "a"]), "labels: all votes are for 'a'"),
        (([1, 2], [1, 1], ["a", 3]), "labels: vote 1: the label 3 .int. can't be sorted"),
        (([1, 2], [1, 1], ["a", "b"], "best"), "method: 'best' is none of auto, majority"),
    ],
)
def test_wrong_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        aggregate(*arguments)


def test_wide_tables_are_matrices():
    with pytest.raises(ValueError, match="votes: expected a matrix, got 1 dimension"):
        VoteTable.from_wide([1, 2])


def brute_force_kappas(votes, min_shared):
    cells = np.full(votes.shape[:2], -1)
    cells[votes.item, votes.annotator] = votes.label
    found = {}
    for a, b in itertools.combinations(range(cells.shape[1]), 2):
        both = (cells[:, a] >= 0) & (cells[:, b] >= 0)
        x, y = cells[both, a], cells[both, b]
        if len(x) < min_shared:
            continue
        expected = sum(np.mean(x == k) * np.mean(y == k) for k in range(len(votes.classes)))
        if expected < 1:
            found[a, b] = ((np.mean(x == y) - expected) / (1 - expected), len(x))
    return found


def test_kappas_are_those_of_all_pairs():
    votes = reference_table("made up")
    found = crowd.agreement(votes)
    pairs = brute_force_kappas(votes, 5)
    kappas, sizes = np.array(list(pairs.values())).T
    assert found.n_pairs == len(pairs)
    assert found.kappa == pytest.approx(np.average(kappas, weights=sizes))
    own = [value for pair, value in pairs.items() if 4 in pair]
    wanted = np.average([k for k, _ in own], weights=[n for _, n in own])
    assert found.annotator_kappa[4] == pytest.approx(wanted)


def test_cost_is_the_alpha_without_the_annotator():
    votes = VoteTable.from_wide(
        [["x", "x", "y", None], ["y", "y", "y", "y"], ["x", None, "y", None], ["x", "y", "y", "x"]]
    )
    found = crowd.agreement(votes)
    for a in range(4):
        without = crowd.krippendorff_alpha(votes.select(votes.annotator != a))
        assert found.cost[a] == pytest.approx(without - found.alpha)
    assert found.cost[found.costliest[0]] == found.cost.max()


def test_alpha_of_a_class_is_that_of_the_class_or_another():
    votes = reference_table("made up")
    found = crowd.agreement(votes)
    for k in range(3):
        two = VoteTable.from_long(votes.item, votes.annotator, votes.label == k)
        assert found.class_alpha[k] == pytest.approx(crowd.krippendorff_alpha(two))


def test_agreement_where_there_is_nothing_to_compare():
    found = crowd.agreement(VoteTable.from_long([1, 2], [1, 2], ["a", "b"]))
    assert np.isnan([found.alpha, found.kappa, *found.annotator_kappa]).all()
    assert found.n_pairs == 0


def test_what_is_known_of_items_takes_the_place_of_the_class_shares():
    votes = VoteTable.from_wide([["x", "x", "y"], ["y", "y", "x"], ["x", "y", None], ["y"] * 3])
    prior = np.array([[0.0, 1.0], [np.nan, np.nan], [0.9, 0.1], [np.nan, np.nan]])
    for method in crowd.METHODS:
        found = crowd.aggregate_votes(votes.with_prior(prior), method)
        assert found.posteriors[0].tolist() == [0, 1]  # decided, whatever the votes say
        assert found.labels[2] == "x"
        np.testing.assert_allclose(found.posteriors.sum(axis=1), 1)
        assert ((found.likelihoods >= 0) & (found.likelihoods <= 1)).all()
        assert (found.likelihoods.max(axis=1) == 1).all()
    with pytest.raises(ValueError, match=r"prior: its shape is \(3, 2\)"):
        votes.with_prior(prior[:3])


def test_decided_items_tell_which_annotators_are_right():
    rng = np.random.default_rng(5)
    truth = rng.integers(3, size=200)
    cells = np.tile(truth[:, None], (1, 5))
    wrong = rng.random((200, 5)) < 0.1
    cells = np.where(wrong, rng.integers(3, size=(200, 5)), cells)
    cells[:, 2:] = ((truth + 1) % 3)[:, None]  # three who are wrong together
    prior = np.full((200, 3), np.nan)
    prior[:40] = np.eye(3)[truth[:40]]
    votes = VoteTable.from_wide(cells)
    assert np.mean(crowd.aggregate_votes(votes).labels == truth) < 0.2
    found = crowd.aggregate_votes(votes.with_prior(prior))
    assert np.mean(found.labels == truth) > 0.9


def test_likelihoods_are_the_posteriors_without_the_class_shares():
    item, annotator, label = np.array(REFERENCE["made up"]["votes"]).T
    found = aggregate(item, annotator, label, "dawid-skene")
    both = found.likelihoods * found.posteriors.mean(axis=0)
    np.testing.assert_allclose(both / both.sum(axis=1, keepdims=True), found.posteriors, atol=1e-12)


def test_counts_of_unknown_annotators_are_counted():
    votes = VoteTable.from_counts([[3, 0], [1, 2], [0, 0]], classes=["yes", "no"])
    found = crowd.aggregate_votes(votes)
    assert (found.classes.tolist(), found.labels.tolist()) == (["no", "yes"], ["yes", "no", "yes"])
    assert found.confidence.tolist() == pytest.approx([1, 2 / 3, 4 / 6])
    assert set(found.models) == {"majority"}
    by_hand = VoteTable.from_wide([["yes"] * 3, ["no", "no", "yes"]])
    assert crowd.krippendorff_alpha(votes) == pytest.approx(crowd.krippendorff_alpha(by_hand))


@pytest.mark.parametrize(
    ("counts", "message"),
    [([[1, 0.5]], "row 0 has 0.5"), ([[-1, 2]], "row 0 has -1"), ([[0, 0]], "no votes"),
     ([1, 2], "expected a matrix")],
)  # fmt: skip
def test_counts_that_are_none(counts, message):
    with pytest.raises(ValueError, match=message):
        VoteTable.from_counts(counts)


def test_two_annotators_who_disagree_are_counted():
    rng = np.random.default_rng(0)
    truth = rng.integers(5, size=300)
    cells = np.where(rng.random((300, 2)) < 0.7, truth[:, None], rng.integers(5, size=(300, 2)))
    found = crowd.aggregate_votes(VoteTable.from_wide(cells))
    np.testing.assert_array_equal(found.labels, found.answers["majority"])


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA])
def test_gaps_are_no_votes(gap):
    labels = pd.Series(["x", "x", gap, "y", "y", "x"], dtype="string")
    for given in (labels, list(labels)):
        found = aggregate([1, 1, 1, 2, 2, 2], list("abcabc"), given)
        assert list(found.labels) == ["x", "y"]
