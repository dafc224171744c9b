"""Tables against scores that are known, and the three ways to write them."""

import csv
import io
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from skpll.experiments import Specification, Store
from skpll.experiments.paper import CLAIMS, TABLE3
from skpll.experiments.tables import (
    Cell,
    Table,
    check_claim,
    choices_table,
    claims_table,
    penalty_table,
    score_table,
    sensitivity_table,
    spread_table,
    summarize,
    to_csv,
    to_latex,
    to_markdown,
    wins_table,
)

from .made_up import fill, measurement, shipped

TEXT = """
name = "small"
title = "A small comparison"
reference = "SP-PLL"
[protocol]
folds = 4
[[data]]
name = "glass"
p = [0.2, 0.6]
r = [1, 2]
[[data]]
name = "lost"
[[methods]]
label = "SP-PLL"
method = "sppll"
grid = { C = [0.1, 1] }
[[methods]]
label = "M3PL"
method = "m3pl"
[[methods]]
label = "PL-KNN"
method = "plknn"
"""

# Accuracies of the four folds of every case; M3PL is clearly worse, PL-KNN clearly better.
FOLDS = {
    "sppll": [0.70, 0.72, 0.68, 0.74],
    "m3pl": [0.60, 0.63, 0.57, 0.65],
    "plknn": [0.75, 0.78, 0.74, 0.78],
}


def known(definition):
    found = measurement(definition)
    penalty = 0.1 * (definition["p"] or 0)
    accuracy = FOLDS[definition["method"]][definition["split"]["split"]] - penalty
    found["metrics"]["accuracy"] = accuracy
    if definition["grid"]:
        found["chosen"] = {"C": 1 if definition["split"]["split"] else 0.1}
    return found


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    path = tmp_path_factory.mktemp("small") / "results.db"
    fill(path, [Specification.parse(TEXT)], measured=known)
    with Store.open(path, read_only=True) as store:
        return store.experiments()[0], store.results()


@pytest.fixture(scope="module")
def paper(tmp_path_factory):
    path = tmp_path_factory.mktemp("paper") / "results.db"
    names = ("table3", "figure2", "figure5")
    fill(path, [shipped(name) for name in names], absent=["msrcv2"])
    with Store.open(path, read_only=True) as store:
        return {entry.name: entry for entry in store.experiments()}, store.results()


def heads(table):
    return tuple(cell.text for cell in table.columns)


def entries(table, first):
    """Find the row whose first entries are the given texts."""
    (row,) = [row for row in table.rows if [cell.text for cell in row[: len(first)]] == list(first)]
    return dict(zip(heads(table), row, strict=True))


def test_summaries_are_means_of_the_folds_compared_by_paired_t_tests(small):
    scores = {
        (score.case.dataset, score.case.p, score.method): score
        for score in summarize(small[1], reference="SP-PLL")
        if score.case.r in (None, 1)
    }
    lost = scores["lost", None, "M3PL"]
    assert lost.mean == pytest.approx(np.mean(FOLDS["m3pl"]))
    assert lost.std == pytest.approx(np.std(FOLDS["m3pl"], ddof=1))
    expected = stats.ttest_rel(FOLDS["sppll"], FOLDS["m3pl"])
    assert lost.comparison.p_value == pytest.approx(expected.pvalue)
    assert lost.corrected.p_value > lost.comparison.p_value
    assert (lost.marker, scores["lost", None, "PL-KNN"].marker) == ("●", "○")
    assert scores["lost", None, "SP-PLL"].comparison is None
    assert scores["glass", 0.6, "SP-PLL"].mean == pytest.approx(0.71 - 0.06)
    assert lost.printed == TABLE3["lost"]["M3PL"]
    assert scores["glass", 0.6, "M3PL"].printed is None


def test_a_grid_of_p_and_r_has_a_row_a_case(small):
    table = score_table(*small)
    assert heads(table) == ("Data", "p", "r", "SP-PLL", "M3PL", "PL-KNN")
    assert [cell.detail for cell in table.columns] == ["", "", "", "4-fold", "4-fold", "4-fold"]
    row = entries(table, ["Glass Identification", "0.6", "2"])
    assert str(row["SP-PLL"]) == "0.650±0.026"
    assert str(row["M3PL"]) == "0.552±0.035 ●"
    assert str(row["PL-KNN"]) == "0.702±0.021 ○"
    assert [cell.best for cell in row.values()] == [False] * 5 + [True]
    assert [note for note in table.notes if "paired t-test" in note]


def test_real_data_have_the_papers_figure_beside(paper):
    experiments, results = paper
    table = score_table(experiments["table3"], of(results, "table3"))
    assert heads(table) == ("Method", "Lost", "FG-NET")
    row = entries(table, ["M3PL"])
    assert row["Lost"].detail == f"paper 0.732±0.035 ●, {row['Lost'].value - 0.732:+.3f}".replace(
        "-", "−"
    )
    record = next(
        record
        for record in table.records
        if (record["dataset"], record["method"]) == ("fgnet", "CLPL")
    )
    assert (record["paper_mean"], record["protocol"], record["folds"]) == (0.047, "3-fold", 3)
    assert record["minus_paper"] == pytest.approx(record["mean"] - 0.047)


def test_missing_folds_are_told(tmp_path):
    def broken(task):
        lost = task.definition["split"]["split"] == 3 and task.label == "M3PL"
        return "time limit" if lost and task.definition["dataset"] == "lost" else None

    path = fill(tmp_path / "a.db", [Specification.parse(TEXT)], measured=known, broken=broken)
    with Store.open(path, read_only=True) as store:
        table = score_table(store.experiments()[0], store.results())
        (failure,) = store.failures()
    row = entries(table, ["Lost"])
    assert row["M3PL"].detail.endswith("3 of 4 folds")
    assert "folds" not in row["SP-PLL"].detail
    assert failure.reason == "time limit"
    (record,) = [
        record
        for record in table.records
        if (record["dataset"], record["method"]) == ("lost", "M3PL")
    ]
    expected = stats.ttest_rel(FOLDS["sppll"][:3], FOLDS["m3pl"][:3])
    assert record["p_value"] == pytest.approx(expected.pvalue)


def test_times_are_not_compared(small):
    table = score_table(*small, metric="fit_seconds")
    assert {cell.mark for row in table.rows for cell in row} == {""}
    assert entries(table, ["Lost"])["SP-PLL"].text.endswith("s")
    assert table.records[0]["metric"] == "fit_seconds"


def test_wins(small):
    table = wins_table(*small)
    row = entries(table, ["M3PL"])
    assert {name: row[name].text for name in ("Cases", "Higher", "Lower", "Win/tie/loss")} == {
        "Cases": "5",
        "Higher": "100.0%",
        "Lower": "0.0%",
        "Win/tie/loss": "5/0/0",
    }
    assert entries(table, ["PL-KNN"])["Win/tie/loss"].text == "0/0/5"
    assert row["Mean gain"].value == pytest.approx(0.71 - 0.6125)
    alone = Specification.parse(TEXT.replace('reference = "SP-PLL"\n', ""))
    assert (
        wins_table(type(small[0])(**{**vars(small[0]), "specification": alone}), small[1]) is None
    )


def test_spread_over_the_cases_of_a_data_set(small):
    table = spread_table(*small)
    assert {row[0].text for row in table.rows} == {"Glass Identification"}
    row = entries(table, ["Glass Identification", "SP-PLL"])
    means = [0.71 - 0.02, 0.71 - 0.02, 0.71 - 0.06, 0.71 - 0.06]
    assert row["Max − min"].value == pytest.approx(0.04)
    assert row["Std"].value == pytest.approx(np.std(means, ddof=1))
    assert row["Mean"].value == pytest.approx(np.mean(means))


def test_choices(small):
    table = choices_table(*small)
    row = entries(table, ["Lost", "SP-PLL", "C"])
    assert (row["Most often"].text, row["All choices"].text) == ("1", "1 (3×), 0.1 (1×)")
    penalties = penalty_table(small[1])
    row = entries(penalties, ["Glass Identification"])
    assert [row[name].text for name in ("Chosen most often", "Paper", "All choices")] == [
        "1",
        "10",
        "1 (12×), 0.1 (4×)",
    ]
    assert penalty_table([r for r in small[1] if r.estimator != "sppll"]) is None
    assert penalty_table([replace(r, dataset="iris") for r in small[1]]) is None


def test_a_task_that_two_experiments_share_is_counted_once(small):
    twice = penalty_table([*small[1], *small[1]])
    assert twice.records == penalty_table(small[1]).records


def test_sensitivity(paper):
    experiments, results = paper
    table = sensitivity_table(experiments["figure5"], of(results, "figure5"))
    assert heads(table)[2:4] == ("pace_start = 0.1", "pace_start = 0.2")
    for row in table.rows:
        cells = row[2:]
        assert [cell.best for cell in cells].count(True) == 1
        assert max(cells, key=lambda cell: cell.value).best
    assert {record["folds"] for record in table.records} == {3}
    assert {cell.detail for row in table.rows for cell in row[2:]} == {""}
    missing = sensitivity_table(experiments["figure5"], of(results, "figure5")[1:])
    details = [cell.detail for row in missing.rows for cell in row[2:] if cell.detail]
    assert details == ["2 of 3 folds"]


def of(results, experiment):
    return [result for result in results if result.experiment == experiment]


def claim(name):
    return next(claim for claim in CLAIMS if claim.name == name)


@pytest.mark.parametrize(
    ("name", "measured", "cases"),
    [
        ("wins-over-m3pl", 1.0, 5),
        ("wins-over-plknn", 0.0, 5),
        ("gain-glass", 0.71 - 0.6125, 4),
        ("range-glass-sppll", 0.04, 4),
        ("deviation-glass-m3pl", np.std([0.02, 0.02, 0.06, 0.06], ddof=1), 4),
        ("range-vehicle", None, 0),
        ("losses-to-clpl", None, 0),
    ],
)
def test_claims_are_measured(small, name, measured, cases):
    assert check_claim(claim(name), small[1]) == (
        measured if measured is None else pytest.approx(measured),
        cases,
    )


def test_claims_about_losses_differences_and_best_values(small, paper):
    lost = replace(claim("losses-to-clpl"), rival="PL-KNN")
    assert check_claim(lost, small[1]) == (5.0, 5)
    results = of(paper[1], "figure5")
    value, cases = check_claim(claim("best-pace"), results, over="pace_start")
    means = {}
    for result in results:
        means.setdefault(result.parameters["pace_start"], []).append(result.metrics["accuracy"])
    assert (value, cases) == (max(means, key=lambda pace: np.mean(means[pace])), 2)


def test_the_table_of_claims_tells_what_was_not_run(paper):
    experiments, results = paper
    table = claims_table(experiments.values(), results)
    absent = entries(table, [claim("gain-msrcv2-m3pl").statement])
    assert (absent["Here"].text, absent["Cases"].text) == ("–", "none")
    gain = entries(table, [claim("gain-glass").statement])
    assert (gain["Paper"].text, gain["Where"].text) == ("0.0466", "figure2; 3-fold")
    assert entries(table, [claim("losses-to-clpl").statement])["Here"].text == "0 of 6"
    assert claims_table([], []) is None


ODD = Table(
    name="odd",
    title="100 % of $x_1$ & more",
    columns=(Cell("a|b"), Cell("n", detail="2-fold")),
    rows=((Cell("x|y", "x|y"), Cell("0.5±0.1", 0.5, "●", "paper 0.4, −0.1", True)),),
    notes=("Read {this}.",),
    records=({"a|b": 'x|y, "quoted"\nline', "n": 0.5, "none": None},),
)


def test_csv_can_be_read_back():
    (row,) = csv.DictReader(io.StringIO(to_csv(ODD), newline=""))
    assert row == {"a|b": 'x|y, "quoted"\nline', "n": "0.5", "none": ""}


def test_markdown():
    assert to_markdown(ODD).splitlines()[2:5] == [
        "| a\\|b | n (2-fold) |",
        "| --- | --- |",
        "| x\\|y | **0.5±0.1 ●** (paper 0.4, −0.1) |",
    ]


def test_latex_escapes_what_has_a_meaning():
    text = to_latex(ODD)
    assert r"\caption{100 \% of \$x\_1\$ \& more. Read \{this\}.}" in text
    assert r"  x|y & \textbf{0.5$\pm$0.1} $\bullet$ {\scriptsize (paper 0.4, $-$0.1)} \\" in text
    assert text.count(r"\toprule") == text.count(r"\midrule") == text.count(r"\bottomrule") == 1
