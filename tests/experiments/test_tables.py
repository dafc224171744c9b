"""Tables against scores that are known, and the ways to write them."""

import csv
import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from skpll.experiments import Specification, Store
from skpll.experiments.paper import CLAIMS
from skpll.experiments.paper import tables as paper_tables
from skpll.experiments.render import lay_out, render
from skpll.experiments.tables import (
    Content,
    choices,
    scaling,
    score_table,
    scores,
    sensitivity,
    spread,
    titled,
    versions,
    wins,
)
from skpll.experiments.tasks import RESULT_VERSIONS

from .made_up import fill, measurement, shipped

TEXT = """
name = "small"
title = "A small comparison"
reference = "SP-PLL"
[protocol]
folds = 5
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

# Accuracies of the five folds of every case; M3PL is clearly worse, PL-KNN clearly better.
FOLDS = {
    "sppll": [0.70, 0.72, 0.68, 0.74, 0.71],
    "m3pl": [0.60, 0.63, 0.57, 0.65, 0.61],
    "plknn": [0.75, 0.78, 0.74, 0.78, 0.76],
}


def known(task):
    found = measurement(task)
    penalty = 0.1 * (task.p or 0)
    found["metrics"]["accuracy"] = FOLDS[task.method][task.split.split] - penalty
    if task.grid:
        found["chosen"] = {"C": 1 if task.split.split else 0.1}
    return found


def read(path):
    with Store.open(path, read_only=True) as store:
        return Content(store.experiments(), store.results(), store.failures())


def of(content, name):
    """Return the results of an experiment, and the experiment."""
    (experiment,) = [entry for entry in content.experiments if entry.name == name]
    return content.results[content.results["experiment"] == name], experiment


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp("small") / "results.db"
    return read(fill(path, [Specification.parse(TEXT)], measured=known))


@pytest.fixture(scope="module")
def small(stored):
    return of(stored, "small")


@pytest.fixture(scope="module")
def paper(tmp_path_factory):
    path = tmp_path_factory.mktemp("paper") / "results.db"
    names = ("table3", "figure2", "figure5")
    return read(fill(path, [shipped(name) for name in names], absent=["msrcv2"]))


def heads(frame):
    return tuple(head.text for head in lay_out(frame).heads)


def entries(frame, first):
    """Find the row whose first entries are the given texts."""
    table = lay_out(frame)
    (row,) = [row for row in table.rows if [cell.text for cell in row[: len(first)]] == list(first)]
    return dict(zip(heads(frame), row, strict=True))


def test_scores_are_means_of_the_folds_compared_by_paired_t_tests(small):
    frame = scores(*small)
    frame = frame[frame["r"].isna() | (frame["r"] == 1)].set_index(["case", "method"])
    lost = frame.loc["Lost", "M3PL"]
    assert lost["mean"] == pytest.approx(np.mean(FOLDS["m3pl"]))
    assert lost["std"] == pytest.approx(np.std(FOLDS["m3pl"], ddof=1))
    expected = stats.ttest_rel(FOLDS["sppll"], FOLDS["m3pl"])
    assert lost["p_value"] == pytest.approx(expected.pvalue)
    assert lost["p_value_corrected"] > lost["p_value"]
    assert (lost["mark"], frame.loc[("Lost", "PL-KNN"), "mark"]) == ("●", "○")
    assert np.isnan(frame.loc[("Lost", "SP-PLL"), "reference_minus_method"])
    glass = frame.loc[("Glass Identification, p = 0.6, r = 1", "SP-PLL"), "mean"]
    assert glass == pytest.approx(0.71 - 0.06)


def test_a_grid_of_p_and_r_has_a_row_a_case(small):
    frame = score_table(*small)
    table = lay_out(frame)
    assert heads(frame) == ("Data", "p", "r", "SP-PLL", "M3PL", "PL-KNN")
    assert [head.note for head in table.heads] == ["", "", "", "5-fold", "5-fold", "5-fold"]
    row = entries(frame, ["Glass Identification", "0.6", "2"])
    assert str(row["SP-PLL"]) == "0.650±0.022"
    assert str(row["M3PL"]) == "0.552±0.030 ●"
    assert str(row["PL-KNN"]) == "0.702±0.018 ○"
    assert [cell.best for cell in row.values()] == [False] * 5 + [True]
    assert [note for note in table.notes if "paired t-test" in note]


def test_who_is_told_the_truth_is_not_the_best(tmp_path):
    text = TEXT + '[[methods]]\nlabel = "Truth known"\nmethod = "knowntruth"'

    def measured(task):
        if task.method != "knowntruth":
            return known(task)
        found = known(replace(task, method="sppll"))
        return found | {"metrics": {"accuracy": 0.99}}

    stored = read(fill(tmp_path / "a.db", [Specification.parse(text)], measured=measured))
    row = entries(score_table(*of(stored, "small")), ["Lost"])
    assert row["Truth known"].text == "0.990±0.000"
    assert (row["Truth known"].best, row["PL-KNN"].best) == (False, True)
    table = score_table(*of(stored, "small"), metric="transductive_accuracy")
    assert "Truth known" not in heads(table)
    assert not [cell for row in lay_out(table).rows for cell in row if "nan" in str(cell)]


@pytest.mark.parametrize("metric", ["mean_confidence", "calibration_error"])
def test_more_of_it_is_not_better(tmp_path, metric):
    def measured(task):
        found = known(task)
        return found | {"metrics": {metric: found["metrics"]["accuracy"]}}

    stored = read(fill(tmp_path / "a.db", [Specification.parse(TEXT)], measured=measured))
    row = entries(score_table(*of(stored, "small"), metric=metric), ["Lost"])
    assert str(row["M3PL"]) == "0.612±0.030"
    assert not any(cell.best or cell.mark for cell in row.values())


@pytest.mark.parametrize("folds", [1, 4])
def test_few_folds_are_no_ground_for_a_mark(small, folds):
    results, experiment = small
    frame = score_table(results[results["split"] < folds], experiment)
    row = entries(frame, ["Lost"])
    assert row["M3PL"].mark == row["PL-KNN"].mark == ""
    assert ("±" in row["M3PL"].text) is (folds > 1)
    assert row["M3PL"].note == f"{folds} of 5 folds"
    assert not [note for note in frame.attrs["notes"] if "paired t-test" in note]
    counted = wins(results[results["split"] < folds], experiment)
    assert entries(counted, ["M3PL"])["Higher"].text == "100.0%"
    assert entries(counted, ["M3PL"])["Win/tie/loss"].text == "too few folds"


def test_the_papers_figures_stand_beside_its_own_experiments_only(paper, small):
    frame = score_table(*of(paper, "table3"))
    assert heads(frame) == ("Method", "Lost", "FG-NET")
    row = entries(frame, ["M3PL as published"])
    gap = f"{row['Lost'].value - 0.732:+.3f}".replace("-", "−")
    assert row["Lost"].note.startswith(f"paper 0.732±0.035 ●, {gap}")
    (record,) = frame[(frame["dataset"] == "fgnet") & (frame["method"] == "CLPL")].itertuples()
    assert (record.paper_mean, record.protocol, record.folds) == (0.047, "3-fold", 3)
    assert record.minus_paper == pytest.approx(record.mean - 0.047)
    same_labels = score_table(*small)
    assert "paper_mean" not in same_labels
    assert not [note for note in same_labels.attrs["notes"] if "the paper's figure" in note]


def test_missing_folds_are_told(tmp_path):
    def broken(task):
        lost = task.split.split == 4 and task.label == "M3PL"
        return "time limit" if lost and task.dataset == "lost" else None

    path = fill(tmp_path / "a.db", [Specification.parse(TEXT)], measured=known, broken=broken)
    content = read(path)
    frame = score_table(*of(content, "small"))
    row = entries(frame, ["Lost"])
    assert row["M3PL"].note == "4 of 5 folds"
    assert row["SP-PLL"].note == ""
    assert content.failures["reason"].tolist() == ["time limit"]
    (record,) = frame[(frame["dataset"] == "lost") & (frame["method"] == "M3PL")].itertuples()
    gains = np.subtract(FOLDS["sppll"][:4], FOLDS["m3pl"][:4])
    assert record.reference_minus_method == pytest.approx(gains.mean())


def test_times_are_not_compared(small):
    frame = score_table(*small, metric="fit_seconds")
    assert {cell.mark for row in lay_out(frame).rows for cell in row} == {""}
    assert entries(frame, ["Lost"])["SP-PLL"].text.endswith("s")
    assert set(frame["metric"]) == {"fit_seconds"}


def test_wins(small):
    row = entries(wins(*small), ["M3PL"])
    assert {name: row[name].text for name in ("Cases", "Higher", "Lower", "Win/tie/loss")} == {
        "Cases": "5",
        "Higher": "100.0%",
        "Lower": "0.0%",
        "Win/tie/loss": "5/0/0",
    }
    assert entries(wins(*small), ["PL-KNN"])["Win/tie/loss"].text == "0/0/5"
    assert row["Mean gain"].value == pytest.approx(0.71 - 0.612)
    results, experiment = small
    assert wins(results, replace(experiment, reference=None)).empty
    few = results[(results["method"] != "M3PL") | (results["split"] < 4)]
    row = entries(wins(few, experiment), ["M3PL"])
    assert row["Win/tie/loss"].text == row["Corrected"].text == "too few folds"
    assert entries(wins(few, experiment), ["PL-KNN"])["Win/tie/loss"].text == "0/0/5"


def test_spread_over_the_cases_of_a_data_set(small):
    frame = spread(*small)
    assert set(frame["data"]) == {"Glass Identification"}
    row = frame.set_index("method").loc["SP-PLL"]
    means = [0.71 - 0.02, 0.71 - 0.02, 0.71 - 0.06, 0.71 - 0.06]
    assert row["max_minus_min"] == pytest.approx(0.04)
    assert row["std"] == pytest.approx(np.std(means, ddof=1))
    assert row["mean"] == pytest.approx(np.mean(means))
    assert entries(frame, ["SP-PLL"])["Glass Identification"].text == "0.670±0.023"
    assert entries(frame, ["PL-KNN"])["Glass Identification"].best
    results, experiment = small
    some = spread(results[(results["method"] != "M3PL") | (results["split"] < 2)], experiment)
    assert some.set_index("method")["note"].to_dict() == {
        "SP-PLL": "5 folds",
        "M3PL": "2 folds",
        "PL-KNN": "5 folds",
    }


def test_choices(small, stored):
    row = entries(choices(*small), ["Lost", "SP-PLL", "C"])
    assert (row["Most often"].text, row["All choices"].text) == ("1", "1 (4×), 0.1 (1×)")
    row = entries(paper_tables.table4(stored), ["Glass Identification"])
    assert [row[name].text for name in ("Chosen most often", "Paper", "All choices")] == [
        "1",
        "10",
        "1 (16×), 0.1 (4×)",
    ]
    others = stored._replace(results=stored.results[stored.results["estimator"] != "sppll"])
    assert paper_tables.table4(others).empty
    assert paper_tables.table4(stored._replace(results=stored.results.assign(dataset="iris"))).empty


def test_ranks_over_all_cases_of_the_curves(stored):
    (experiment,) = stored.experiments
    results = stored.results[stored.results["dataset"] == "glass"]
    curves = stored._replace(experiments=[replace(experiment, kind="curves")], results=results)
    frame = paper_tables.ranks(curves)
    assert heads(frame) == ("Method", "Glass Identification", "Average rank", "From")
    shown = [[cell.text for cell in row] for row in lay_out(frame).rows]
    assert shown == [
        ["PL-KNN", "0.722", "1.00", "5 folds"],
        ["SP-PLL", "0.670", "2.00", "5 folds"],
        ["M3PL", "0.572", "3.00", "5 folds"],
    ]
    assert paper_tables.ranks(stored).empty
    again = results.assign(experiment="again")  # tasks that two experiments share count once
    both = curves._replace(
        experiments=[*curves.experiments, replace(experiment, kind="curves", name="again")],
        results=pd.concat([results, again]),
    )
    assert lay_out(paper_tables.ranks(both)).rows == lay_out(frame).rows


def test_which_scaling_was_chosen(small, tmp_path):
    def chose(task):
        names = ["sqrt", "none"] if task.method == "plknn" else ["zscore"]
        return known(task) | {"chosen": {"scaling": names[task.split.split % len(names)]}}

    text = TEXT.replace('name = "lost"', 'name = "lost"\nscaling = "auto"')
    fill(tmp_path / "a.db", [Specification.parse(text)], measured=chose)
    results, experiment = of(read(tmp_path / "a.db"), "small")
    frame = scaling(results, experiment)
    assert heads(frame) == ("Method", "Glass Identification", "Lost")
    assert entries(frame, ["PL-KNN"])["Lost"].text == "sqrt (3×), none (2×)"
    assert entries(frame, ["M3PL"])["Lost"].text == "zscore (5×)"
    assert scaling(*small) is None


def test_a_task_that_two_experiments_share_is_counted_once(stored):
    twice = stored._replace(results=pd.concat([stored.results, stored.results]))
    pd.testing.assert_frame_equal(paper_tables.table4(twice), paper_tables.table4(stored))


def test_versions(small):
    results, experiment = small
    frame = versions(results.assign(older=results["estimator"] == "m3pl"), experiment)
    assert frame.set_index("method")["older"].to_dict() == {"SP-PLL": 0, "M3PL": 25, "PL-KNN": 0}
    assert entries(frame, ["M3PL"])["Code has"].text == str(RESULT_VERSIONS["m3pl"])
    old = score_table(results.assign(older=True), experiment)
    assert set(old["note"]) == {"older than the code"}
    old = score_table(results.assign(older=results["estimator"] == "m3pl"), experiment)
    assert entries(old, ["Lost"])["M3PL"].note == "older than the code"


def test_sensitivity(paper):
    results, experiment = of(paper, "figure5")
    frame = sensitivity(results, experiment)
    table = lay_out(frame)
    assert heads(frame)[2:4] == ("pace__start = 0.1", "pace__start = 0.2")
    for row in table.rows:
        cells = row[2:]
        assert [cell.best for cell in cells].count(True) == 1
        assert max(cells, key=lambda cell: cell.value).best
    assert set(frame["folds"]) == {3}
    assert {cell.note for row in table.rows for cell in row[2:]} == {""}
    missing = lay_out(sensitivity(results[1:], experiment))
    notes = [cell.note for row in missing.rows for cell in row[2:] if cell.note]
    assert notes == ["2 of 3 folds"]


def claim(name):
    """Look up a claim, about the labels that are used here."""
    found = next(claim for claim in CLAIMS if claim.name == name)
    short = {"SP-PLL, our pace": "SP-PLL", "M3PL as published": "M3PL"}
    return replace(
        found,
        method=short.get(found.method, found.method),
        rival=short.get(found.rival, found.rival),
    )


@pytest.mark.parametrize(
    ("name", "measured", "cases"),
    [
        ("wins-over-m3pl", 1.0, 5),
        ("wins-over-plknn", 0.0, 5),
        ("gain-glass", 0.71 - 0.612, 4),
        ("range-glass-sppll", 0.04, 4),
        ("deviation-glass-m3pl", np.std([0.02, 0.02, 0.06, 0.06], ddof=1), 4),
        ("range-vehicle", None, 0),
        ("losses-to-clpl", None, 0),
    ],
)
def test_claims_are_measured(small, name, measured, cases):
    assert paper_tables.check_claim(claim(name), small[0]) == (
        measured if measured is None else pytest.approx(measured),
        cases,
    )


def test_claims_about_losses_differences_and_best_values(small, paper):
    lost = replace(claim("losses-to-clpl"), rival="PL-KNN")
    assert paper_tables.check_claim(lost, small[0]) == (5.0, 5)
    results, _ = of(paper, "figure5")
    value, cases = paper_tables.check_claim(claim("best-pace"), results, over="pace__start")
    means = {}
    for result in results.itertuples():
        means.setdefault(result.parameters["pace__start"], []).append(result.accuracy)
    assert (value, cases) == (max(means, key=lambda pace: np.mean(means[pace])), 2)


def test_the_table_of_claims_tells_what_was_not_run(paper, stored):
    frame = paper_tables.claims(paper)
    absent = entries(frame, [claim("gain-msrcv2-m3pl").statement])
    assert (absent["Here"].text, absent["Cases"].text) == ("–", "0")
    gain = entries(frame, [claim("gain-glass").statement])
    assert (gain["Paper"].text, gain["Where"].text) == ("0.0466", "figure2; 3-fold")
    lost = entries(frame, [claim("losses-to-clpl").statement])
    assert (lost["Here"].text, lost["Here"].value, lost["Difference"].value) == ("0 of 4", 0, -3)
    assert all(cell.is_number for row in lay_out(frame).rows for cell in row[1:4])
    assert paper_tables.claims(stored).empty


ODD = titled(
    pd.DataFrame(
        {
            "a|b": ["x|y"],
            "name": ["n"],
            "mean": [0.5],
            "std": [0.1],
            "mark": ["●"],
            "note": ["paper 0.4, −0.1"],
            "best": [True],
            "quoted": ['"quoted"\nline'],
            "none": [None],
        }
    ),
    "100 % of $x_1$ & more",
    wide=(["a|b"], "name"),
    formats={"mean": "{:.1f}"},
    under="2-fold",
    notes=["Read {this}."],
)


def test_csv_can_be_read_back():
    (row,) = csv.DictReader(io.StringIO(render(ODD, "csv"), newline=""))
    assert (row["a|b"], row["quoted"], row["mean"], row["none"]) == (
        "x|y", '"quoted"\nline', "0.5", ""
    )  # fmt: skip


def test_markdown():
    assert render(ODD, "md").splitlines() == [
        "**100 % of $x_1$ & more**",
        "",
        "| A\\|b | n |",
        "| --- | --- |",
        "| x\\|y | **0.5±0.1 ●** (paper 0.4, −0.1) |",
        "",
        "Read {this}.",
        "",
        "Protocol: 2-fold.",
    ]


def test_latex_escapes_what_has_a_meaning():
    text = render(ODD, "tex", "odd")
    assert r"\caption{100 \% of \$x\_1\$ \& more. Read \{this\}.}" in text
    assert r"\label{tab:odd}" in text
    assert r"x|y & \textbf{0.5$\pm$0.1} $\bullet$ {\scriptsize (paper 0.4, $-$0.1)} \\" in text
    assert text.count(r"\toprule") == text.count(r"\midrule") == text.count(r"\bottomrule") == 1


def test_html_is_escaped_and_knows_what_to_sort_by():
    frame = titled(pd.DataFrame({"a": ["<b>&", "y" * 50], "n": [1.5, None]}), 'A "title"')
    text = render(frame, "html", "odd")
    assert "&lt;b&gt;&amp;" in text
    assert 'aria-label="A &#34;title&#34;"' in text
    assert 'data-value="1.5">1.500<' in text
    assert '<td class="number">–</td>' in text
    assert ' long"' in text
